//! One generating thread: its connections, its epoll, its books. Threads share nothing but the [`Program`] and the stop flag.
//!
//! In a closed loop the thread sleeps in `epoll_wait` whenever nothing has arrived. In an open loop it sleeps on a timer until
//! 60 µs before the next slot and then polls, because a sleeping thread's wake-up takes longer than that: sends
//! would be late by it, and lateness of ours would look like latency of the target's.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use journal::facts::Stall;

use crate::connection::{self, Connection, State, Unwritten};
use crate::error::LoadError;
use crate::http::{self, Look, Reader, Response, Violation, excerpt};
use crate::parameter::Values;
use crate::program::Program;
use crate::schedule::{Slot, Slots, Turns};
use crate::sys::{self, Epoll, Event, Interest, Timer, Usage};
use crate::tally::{Failure, Outcome, Stalls, Stamps, Tally, Window};

/// How long before a slot the thread stops sleeping.
const SPIN_NS: u64 = 60_000;
/// Longest sleep of a closed loop: what bounds the blur of a stall that began in a sleep.
const CLOSED_SLEEP_MS: u32 = 5;
/// Longest sleep of an open loop: how soon a stop is seen.
const OPEN_SLEEP_MS: u32 = 20;
/// Events taken at a time.
const BATCH: usize = 64;
/// Bytes read at a time.
const BUFFER: usize = 64 * 1024;
/// What the timer's events carry: no connection has this number.
const TIMER: u64 = u64::MAX;
/// Never.
const NEVER: u64 = u64::MAX;

/// What a thread hands back.
pub struct Account {
    /// Books by stream.
    pub tallies: Vec<Tally>,
    /// Absences.
    pub stalls: Vec<Stall>,
    /// Usage across the window; `None` where it could not be read.
    pub usage: Option<Usage>,
    /// Connections that brought an answer.
    pub connections_used: u32,
    /// Connections opened again within the window.
    pub reconnects: u64,
    /// Times that bytes came unasked within the window.
    pub unsolicited: u64,
    /// Most slots due and not sent at one time.
    pub max_backlog: u64,
}

/// One generating thread, before and while it runs.
pub struct Worker<'a> {
    program: &'a Program,
    window: Window,
    connections: Vec<Connection>,
    epoll: Epoll,
    timer: Timer,
    /// What the timer is set to.
    timer_at: u64,
    tallies: Vec<Tally>,
    stalls: Stalls,
    /// The last clock reading: a gap to the next one that no wait explains is a stall.
    last: u64,

    start: u64,
    /// The turn of this thread's next request (closed loop).
    numbered: u64,
    /// The ordinal of each stream's next request.
    ordinals: Vec<u64>,
    /// Slots still to send, and the next of them.
    slots: Option<Slots>,
    next: Option<Slot>,
    /// The same slots, as they become due.
    arriving: Option<Slots>,
    next_arrival: Option<Slot>,
    /// Slots due and not sent.
    backlog: u64,
    max_backlog: u64,
    /// Idle connections of an open loop, longest idle first.
    free: VecDeque<u32>,
    in_flight: u64,
    issued: u64,
    ended: u64,
    reconnects: u64,
    unsolicited: u64,
    next_sweep: u64,
    next_retry: u64,

    buffer: Box<[u8]>,
    request: Vec<u8>,
    scratch: Vec<u8>,
    values: Values,
    readers: Vec<Box<Reader>>,
    unwrittens: Vec<Box<Unwritten>>,
}

/// What became of the bytes of a read.
enum Taken {
    /// The answer goes on.
    More,
    /// The request has ended; whether the connection can carry another.
    Ended { usable: bool },
}

impl<'a> Worker<'a> {
    /// A thread with its connections, all open.
    ///
    /// # Errors
    /// When the system refuses an epoll or a timer.
    pub fn new(program: &'a Program, thread: u32, connections: Vec<Connection>) -> Result<Self, LoadError> {
        let next = "close other programs or raise the limit of open files (`ulimit -n`)";
        let epoll = Epoll::new().map_err(LoadError::system("watch its connections", next))?;
        let timer = Timer::new().map_err(LoadError::system("set a timer", next))?;
        epoll.add(timer.as_fd(), TIMER, Interest::Read).map_err(LoadError::system("watch its timer", next))?;
        for (index, connection) in (0u32..).zip(&connections) {
            if let Some(stream) = &connection.stream {
                epoll
                    .add(stream.as_fd(), connection.token(index), Interest::ReadWrite)
                    .map_err(LoadError::system("watch a connection", next))?;
            }
        }
        let slots = program.slots(thread);
        Ok(Self {
            program,
            window: Window { start: 0, end: 0, open: program.rate.is_some(), timeout: program.timeout },
            free: VecDeque::with_capacity(connections.len()),
            connections,
            epoll,
            timer,
            timer_at: NEVER,
            tallies: program.lanes.iter().map(|_| Tally::new()).collect(),
            stalls: Stalls::new(),
            last: 0,
            start: 0,
            numbered: Turns::first(thread),
            ordinals: vec![u64::from(thread); program.lanes.len()],
            arriving: slots.clone(),
            slots,
            next: None,
            next_arrival: None,
            backlog: 0,
            max_backlog: 0,
            in_flight: 0,
            issued: 0,
            ended: 0,
            reconnects: 0,
            unsolicited: 0,
            next_sweep: NEVER,
            next_retry: NEVER,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            request: Vec::with_capacity(4_096),
            scratch: Vec::with_capacity(1_024),
            values: Values::default(),
            readers: Vec::new(),
            unwrittens: Vec::new(),
        })
    }

    /// Runs the job from its start to its end.
    ///
    /// # Errors
    /// When it is stopped, the system fails it, or its books don't balance.
    pub fn run(mut self, at: u64, stop: &AtomicBool) -> Result<Account, LoadError> {
        sys::set_least_timer_slack();
        self.start = at;
        self.window.start = at + self.program.warm_up;
        self.window.end = self.window.start + self.program.window;
        let deadline = self.window.end + self.program.grace;
        self.next = self.slots.as_mut().and_then(Iterator::next);
        self.next_arrival = self.arriving.as_mut().and_then(Iterator::next);
        if let Some(late_ns) = sys::now_ns().checked_sub(at).filter(|late| *late > LATEST_START_NS) {
            return Err(LoadError::Late { late_ns });
        }
        loop {
            let now = sys::now_ns();
            if stop.load(Ordering::Relaxed) {
                return Err(LoadError::Stopped);
            }
            if now >= at {
                break;
            }
            sys::sleep_until(at.min(now + 20_000_000));
        }
        self.last = sys::now_ns();
        self.stalls.between(&self.window, at, self.last);
        self.next_sweep = self.last + self.sweep_every();
        for index in 0..self.connections.len() as u32 {
            self.idle(index, self.last);
        }

        let mut events = [Event::NONE; BATCH];
        let (mut usage_start, mut usage_end) = (None, None);
        loop {
            let now = self.stamp();
            if stop.load(Ordering::Relaxed) {
                return Err(LoadError::Stopped);
            }
            if usage_start.is_none() && now >= self.window.start {
                usage_start = Some(sys::thread_usage());
            }
            if usage_end.is_none() && now >= self.window.end {
                usage_end = Some(sys::thread_usage());
            }
            if now >= self.next_sweep {
                self.sweep(now);
            }
            if now >= self.next_retry {
                self.retry(now);
            }
            if self.window.open {
                self.dispatch(now);
            }
            if now >= deadline || (now >= self.window.end && self.in_flight == 0 && self.next.is_none()) {
                break;
            }

            let milestone = [
                if usage_start.is_none() { self.window.start } else { NEVER },
                if usage_end.is_none() { self.window.end } else { deadline },
                self.next_retry,
            ]
            .into_iter()
            .min()
            .unwrap_or(NEVER);
            let (timeout_ms, expected_by) = self.sleep(milestone)?;
            let slept = self.stamp();
            let count = self
                .epoll
                .wait(&mut events, timeout_ms)
                .map_err(LoadError::system("wait for its connections", "run it again"))?;
            let woke = sys::now_ns();
            // A wait explains the gap up to its own limit. Woken later than that with something to do, the thread was away.
            let explained = if timeout_ms == 0 { slept } else { expected_by.max(slept) };
            if count > 0 || timeout_ms == 0 {
                self.stalls.between(&self.window, explained, woke);
            }
            self.last = woke;
            for event in &events[..count] {
                self.handle(*event);
            }
        }
        let usage = match (usage_start, usage_end) {
            (Some(Ok(start)), Some(Ok(end))) => Some(Usage {
                cpu_ns: end.cpu_ns.saturating_sub(start.cpu_ns),
                user_ns: end.user_ns.saturating_sub(start.user_ns),
                involuntary_switches: end.involuntary_switches.saturating_sub(start.involuntary_switches),
            }),
            _ => None,
        };
        self.close_books(usage)
    }

    /// How long to sleep: the limit for `epoll_wait` in ms, and the instant by which the thread expects to be awake.
    fn sleep(&mut self, milestone: u64) -> Result<(u32, u64), LoadError> {
        let now = self.last;
        let longest = if self.window.open { OPEN_SLEEP_MS } else { CLOSED_SLEEP_MS };
        let until = milestone.min(now + u64::from(longest) * 1_000_000);
        let timeout_ms = until.saturating_sub(now).div_ceil(1_000_000) as u32;
        let blocking = Ok((timeout_ms, now + u64::from(timeout_ms) * 1_000_000));
        let Some(slot) = self.next else { return blocking };
        if self.free.is_empty() {
            // Nothing could be sent: what is due waits for an answer, and so does this thread.
            return blocking;
        }
        let wake = (self.start + slot.after_ns).saturating_sub(SPIN_NS);
        if now >= wake {
            return Ok((0, now));
        }
        if wake < until {
            if self.timer_at != wake {
                self.timer.set(wake).map_err(LoadError::system("set its timer", "run it again"))?;
                self.timer_at = wake;
            }
            return Ok((timeout_ms, wake));
        }
        blocking
    }

    /// Reads the clock. A gap to the last reading in which the thread did not wait is a stall.
    #[inline]
    fn stamp(&mut self) -> u64 {
        let now = sys::now_ns();
        self.stalls.between(&self.window, self.last, now);
        self.last = now;
        now
    }

    #[inline]
    fn handle(&mut self, event: Event) {
        let token = event.token();
        if token == TIMER {
            self.timer_at = NEVER;
            return;
        }
        let index = token as u32;
        let connection = &self.connections[index as usize];
        if u64::from(connection.generation) != token >> 32 {
            return;
        }
        match connection.state {
            State::Opening => {
                if event.is_writable() {
                    self.opened(index);
                }
            }
            State::Idle | State::Waiting => {
                if connection.unwritten.is_some() && event.is_writable() {
                    self.write_rest(index);
                }
                if event.is_readable() {
                    self.readable(index, event.is_ended());
                }
            }
            State::Down | State::Closed => {}
        }
    }

    /// Reads what there is.
    #[inline]
    fn readable(&mut self, index: u32, ended: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            let connection = &mut self.connections[index as usize];
            let Some(stream) = &mut connection.stream else { break };
            let got = stream.read(&mut buffer);
            let now = self.stamp();
            let connection = &mut self.connections[index as usize];
            match got {
                Ok(0) => {
                    self.hung_up(index, now);
                    break;
                }
                Ok(length) => {
                    if connection.state != State::Waiting {
                        self.unsolicited += u64::from(self.in_window(now));
                        self.free.retain(|free| *free != index);
                        self.reopen(index, now);
                        break;
                    }
                    if connection.stamps.first == 0 {
                        connection.stamps.first = now;
                    }
                    connection.stamps.done = now;
                    match self.take(index, &buffer[..length]) {
                        Taken::More => {
                            if length < buffer.len() && !ended {
                                break;
                            }
                        }
                        Taken::Ended { usable } => {
                            if !usable || ended {
                                self.reopen(index, now);
                                break;
                            }
                            self.idle(index, now);
                            if length < buffer.len() {
                                break;
                            }
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.lost(index, now, Failure::Broken(error.raw_os_error().unwrap_or(libc::EIO)));
                    break;
                }
            }
        }
        self.buffer = buffer;
    }

    /// Takes bytes of an answer; ends the request when it is complete or beyond saving.
    #[inline]
    fn take(&mut self, index: u32, bytes: &[u8]) -> Taken {
        let connection = &mut self.connections[index as usize];
        let asked = self.program.lanes[usize::from(connection.lane)].asked;
        let Some(mut reader) = connection.reader.take() else {
            return match http::look(bytes, asked.is_head) {
                Look::Whole { response, used } => self.answered(index, &response, &bytes[used..]),
                Look::Bad(violation) => self.violated(index, violation, bytes),
                Look::Other => {
                    let reader = self.readers.pop().unwrap_or_default();
                    self.connections[index as usize].reader = Some(reader);
                    self.take(index, bytes)
                }
            };
        };
        match reader.feed(bytes, asked) {
            Ok(None) => {
                connection.reader = Some(reader);
                Taken::More
            }
            Ok(Some(used)) => {
                let taken = self.answered(index, &reader.response(), &bytes[used..]);
                self.put_back(reader);
                taken
            }
            Err(violation) => {
                self.put_back(reader);
                self.violated(index, violation, bytes)
            }
        }
    }

    fn put_back(&mut self, mut reader: Box<Reader>) {
        reader.reset();
        self.readers.push(reader);
    }

    /// Ends a request with its complete answer.
    #[inline]
    fn answered(&mut self, index: u32, response: &Response<'_>, excess: &[u8]) -> Taken {
        let program = self.program;
        let connection = &mut self.connections[index as usize];
        connection.answered = true;
        let lane = &program.lanes[usize::from(connection.lane)];
        if !excess.is_empty() {
            return self.violated(index, Violation::Excess, excess);
        }
        // An answer before the request was sent completely: the connection can't carry another request.
        let usable = response.persists && connection.unwritten.is_none();
        if !lane.parameters.is_empty() {
            lane.parameters.draw(connection.ordinal, &mut self.values);
        }
        let outcome = match lane.checks.verify(response, &self.values, &mut self.scratch) {
            Ok(()) => Outcome::Ok,
            Err(mismatch) => {
                let tally = &mut self.tallies[usize::from(connection.lane)];
                if tally.wants_evidence() {
                    tally.keep_evidence(format!(
                        "{}: {} · {}",
                        lane.checks.explain(mismatch, response, &self.values),
                        excerpt(response.status_line(), 80),
                        excerpt(response.body, 160),
                    ));
                }
                Outcome::Failed(Failure::Mismatch(mismatch))
            }
        };
        self.end(index, outcome);
        Taken::Ended { usable }
    }

    #[cold]
    fn violated(&mut self, index: u32, violation: Violation, bytes: &[u8]) -> Taken {
        let lane = self.connections[index as usize].lane;
        let tally = &mut self.tallies[usize::from(lane)];
        if tally.wants_evidence() {
            tally.keep_evidence(format!("{}: {}", violation.words(), excerpt(bytes, 200)));
        }
        self.end(index, Outcome::Failed(Failure::Violation(violation)));
        Taken::Ended { usable: false }
    }

    /// Enters the end of a connection's request into the books, at its `done` stamp.
    #[inline]
    fn end(&mut self, index: u32, outcome: Outcome) {
        let connection = &mut self.connections[index as usize];
        connection.state = State::Idle;
        self.in_flight -= 1;
        self.ended += 1;
        self.tallies[usize::from(connection.lane)].ended(&self.window, &connection.stamps, outcome);
    }

    /// The other side ended the connection.
    #[cold]
    fn hung_up(&mut self, index: u32, now: u64) {
        let connection = &mut self.connections[index as usize];
        if connection.state != State::Waiting {
            self.free.retain(|free| *free != index);
            self.reopen(index, now);
            return;
        }
        connection.stamps.done = now;
        match connection.reader.take() {
            None => self.lost(index, now, Failure::Closed),
            Some(mut reader) => {
                if reader.end() {
                    self.answered(index, &reader.response(), &[]);
                    self.put_back(reader);
                    self.reopen(index, now);
                } else {
                    self.put_back(reader);
                    self.lost(index, now, Failure::Truncated);
                }
            }
        }
    }

    /// The connection is of no use any more, and its request has failed if there was one.
    #[cold]
    fn lost(&mut self, index: u32, now: u64, failure: Failure) {
        let connection = &mut self.connections[index as usize];
        if connection.state == State::Waiting {
            connection.stamps.done = now;
            self.end(index, Outcome::Failed(failure));
        } else {
            self.free.retain(|free| *free != index);
        }
        self.reopen(index, now);
    }

    /// A connection has nothing to do: gives it the next request, if there is one.
    #[inline]
    fn idle(&mut self, index: u32, now: u64) {
        if self.window.open {
            self.free.push_back(index);
            self.dispatch(now);
        } else if now < self.window.end {
            let number = self.numbered;
            self.numbered += 1;
            self.issue(index, number, None);
        }
    }

    /// Sends what is due, as long as connections are free.
    #[inline]
    fn dispatch(&mut self, mut now: u64) {
        self.arrive(now);
        while let Some(slot) = self.next {
            let due = self.start + slot.after_ns;
            if due > now {
                break;
            }
            let Some(index) = self.free.pop_front() else { break };
            self.next_slot();
            self.issue(index, slot.turn, Some(due));
            now = self.last;
            self.arrive(now);
        }
    }

    /// Counts the slots that have become due.
    #[inline]
    fn arrive(&mut self, now: u64) {
        let before = self.backlog;
        while let Some(slot) = self.next_arrival.filter(|slot| self.start + slot.after_ns <= now) {
            self.tallies[usize::from(self.program.turns.at(slot.turn))].due(&self.window, self.start + slot.after_ns);
            self.backlog += 1;
            self.next_arrival = self.arriving.as_mut().and_then(Iterator::next);
        }
        if self.backlog != before && self.in_window(now) {
            self.max_backlog = self.max_backlog.max(self.backlog);
        }
    }

    fn next_slot(&mut self) {
        self.next = self.slots.as_mut().and_then(Iterator::next);
        self.backlog = self.backlog.saturating_sub(1);
    }

    #[inline]
    fn in_window(&self, now: u64) -> bool {
        (self.window.start..self.window.end).contains(&now)
    }

    /// Sends a request on an idle connection.
    #[inline]
    fn issue(&mut self, index: u32, turn: u64, due: Option<u64>) {
        let program = self.program;
        let lane_index = program.turns.at(turn);
        let lane = &program.lanes[usize::from(lane_index)];
        let ordinal = self.ordinals[usize::from(lane_index)];
        let bytes = match lane.template.constant() {
            Some(bytes) => bytes,
            None => {
                lane.parameters.draw(ordinal, &mut self.values);
                lane.template.render(&self.values, &mut self.request);
                &self.request
            }
        };
        let sent = sys::now_ns();
        self.stalls.between(&self.window, self.last, sent);
        self.last = sent;
        if due.is_none() && sent >= self.window.end {
            return;
        }
        let connection = &mut self.connections[index as usize];
        let written = match &mut connection.stream {
            Some(stream) => stream.write(bytes),
            None => Err(io::Error::from_raw_os_error(libc::ENOTCONN)),
        };
        let unwritten = match &written {
            Ok(written) if *written == bytes.len() => None,
            Ok(written) => Some(*written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(0),
            Err(_) => None,
        };
        if let Some(written) = unwritten {
            let mut rest = self.unwrittens.pop().unwrap_or_default();
            rest.bytes.clear();
            rest.bytes.extend_from_slice(bytes);
            rest.written = written;
            connection.unwritten = Some(rest);
        }
        self.ordinals[usize::from(lane_index)] += u64::from(program.threads);
        self.issued += 1;
        self.in_flight += 1;
        connection.state = State::Waiting;
        connection.lane = lane_index;
        connection.ordinal = ordinal;
        connection.stamps = Stamps { due: due.unwrap_or(0), sent, first: 0, done: 0 };
        self.tallies[usize::from(lane_index)].sent(&self.window, &connection.stamps);
        if let Err(error) = written {
            if error.kind() != io::ErrorKind::WouldBlock {
                let now = self.stamp();
                self.lost(index, now, Failure::Broken(error.raw_os_error().unwrap_or(libc::EIO)));
            }
        }
    }

    /// Writes on with a request that did not fit into the socket at once.
    #[cold]
    fn write_rest(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        let (Some(stream), Some(rest)) = (&mut connection.stream, &mut connection.unwritten) else { return };
        let failure = loop {
            if rest.written == rest.bytes.len() {
                self.unwrittens.extend(connection.unwritten.take());
                return;
            }
            match stream.write(&rest.bytes[rest.written..]) {
                Ok(written) => rest.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break error,
            }
        };
        // An answer may have come before the connection broke, such as 413 to a large body: reading tells.
        self.unwrittens.extend(connection.unwritten.take());
        if failure.raw_os_error() != Some(libc::EPIPE) {
            let now = self.stamp();
            self.lost(index, now, Failure::Broken(failure.raw_os_error().unwrap_or(libc::EIO)));
        }
    }

    /// Opens a connection again, unless nothing is left to send on it.
    fn reopen(&mut self, index: u32, now: u64) {
        let needed = if self.window.open { self.next.is_some() } else { now < self.window.end };
        self.reconnects += u64::from(needed && self.in_window(now));
        let connection = &mut self.connections[index as usize];
        connection.stream = None;
        connection.generation = connection.generation.wrapping_add(1);
        connection.state = State::Closed;
        self.unwrittens.extend(connection.unwritten.take());
        if let Some(mut reader) = connection.reader.take() {
            reader.reset();
            self.readers.push(reader);
        }
        if !needed {
            return;
        }
        connection.state = State::Opening;
        connection.stamps = Stamps { due: 0, sent: now, first: 0, done: 0 };
        let token = connection.token(index);
        let opening = connection::begin(self.program.target)
            .and_then(|stream| self.epoll.add(stream.as_fd(), token, Interest::ReadWrite).map(|()| stream));
        match opening {
            Ok(stream) => self.connections[index as usize].stream = Some(stream),
            Err(error) => self.not_opened(index, now, Failure::Connect(error.raw_os_error().unwrap_or(libc::EIO))),
        }
    }

    /// A connection attempt has ended.
    #[cold]
    fn opened(&mut self, index: u32) {
        let now = self.stamp();
        let connection = &mut self.connections[index as usize];
        let error = match &connection.stream {
            Some(stream) => stream.take_error().unwrap_or_else(Some),
            None => return,
        };
        match error {
            None => {
                connection.state = State::Idle;
                connection.attempts = 0;
                self.idle(index, now);
            }
            Some(error) => {
                self.not_opened(index, now, Failure::Connect(error.raw_os_error().unwrap_or(libc::EIO)));
            }
        }
    }

    /// A connection could not be opened: that costs the request that would have gone over it, and is tried again.
    #[cold]
    fn not_opened(&mut self, index: u32, now: u64, failure: Failure) {
        let connection = &mut self.connections[index as usize];
        let began = connection.stamps.sent;
        connection.stream = None;
        connection.generation = connection.generation.wrapping_add(1);
        connection.state = State::Down;
        connection.attempts = connection.attempts.saturating_add(1);
        let retry = now + connection.backoff_ns();
        connection.stamps.due = retry;
        self.next_retry = self.next_retry.min(retry);
        let request = if self.window.open {
            self.arrive(now);
            self.next.filter(|slot| self.start + slot.after_ns <= now).map(|slot| {
                self.next_slot();
                (slot.turn, self.start + slot.after_ns, now)
            })
        } else {
            (began < self.window.end).then(|| {
                let number = self.numbered;
                self.numbered += 1;
                (number, 0, began)
            })
        };
        let Some((number, due, sent)) = request else { return };
        let lane = usize::from(self.program.turns.at(number));
        self.ordinals[lane] += u64::from(self.program.threads);
        self.issued += 1;
        self.ended += 1;
        let stamps = Stamps { due, sent, first: 0, done: now };
        self.tallies[lane].sent(&self.window, &stamps);
        self.tallies[lane].ended(&self.window, &stamps, Outcome::Failed(failure));
    }

    /// Tries again to open what could not be opened.
    #[cold]
    fn retry(&mut self, now: u64) {
        self.next_retry = NEVER;
        for index in 0..self.connections.len() as u32 {
            let connection = &self.connections[index as usize];
            if connection.state == State::Down {
                if connection.stamps.due <= now {
                    self.reopen(index, now);
                } else {
                    self.next_retry = self.next_retry.min(connection.stamps.due);
                }
            }
        }
    }

    /// How often time-outs are looked for. They are exact for what is answered; this is for what never is.
    fn sweep_every(&self) -> u64 {
        (self.program.timeout / 20).clamp(1_000_000, 100_000_000)
    }

    /// Ends what has waited too long.
    #[cold]
    fn sweep(&mut self, now: u64) {
        self.next_sweep = now + self.sweep_every();
        for index in 0..self.connections.len() as u32 {
            let connection = &mut self.connections[index as usize];
            if now.saturating_sub(connection.stamps.sent) <= self.program.timeout {
                continue;
            }
            match connection.state {
                State::Waiting => {
                    connection.stamps.done = now;
                    self.end(index, Outcome::TimedOut);
                    self.reopen(index, now);
                }
                State::Opening => self.not_opened(index, now, Failure::ConnectTimeout),
                State::Idle | State::Down | State::Closed => {}
            }
        }
    }

    /// Enters what is left, and checks that nothing was lost.
    fn close_books(mut self, usage: Option<Usage>) -> Result<Account, LoadError> {
        let now = sys::now_ns();
        let waiting = self.connections.iter().filter(|connection| connection.state == State::Waiting).count() as u64;
        if self.issued != self.ended + waiting || waiting != self.in_flight {
            return Err(LoadError::LostCount { issued: self.issued, ended: self.ended, in_flight: waiting });
        }
        for index in 0..self.connections.len() as u32 {
            let connection = &mut self.connections[index as usize];
            if connection.state == State::Waiting {
                connection.stamps.done = now;
                self.end(index, Outcome::Unanswered);
            }
        }
        self.arrive(NEVER);
        while let Some(slot) = self.next {
            let lane = usize::from(self.program.turns.at(slot.turn));
            self.tallies[lane].unsent(&self.window, self.start + slot.after_ns, now);
            self.next_slot();
        }
        Ok(Account {
            tallies: self.tallies,
            stalls: self.stalls.into_kept(),
            usage,
            connections_used: self.connections.iter().filter(|connection| connection.answered).count() as u32,
            reconnects: self.reconnects,
            unsolicited: self.unsolicited,
            max_backlog: self.max_backlog,
        })
    }
}

/// A start this far in the past is still honoured: the first sends are late by it, and say so.
const LATEST_START_NS: u64 = 10_000_000;
