//! One generating thread: its connections, its epoll, its books. Threads share nothing but the [`Program`] and the stop flag.
//!
//! In a closed loop the thread sleeps in `epoll_wait` whenever nothing has arrived. In an open loop it sleeps on a timer until
//! 60 µs before the next slot and then polls, because a sleeping thread's wake-up takes longer than that: sends
//! would be late by it, and lateness of ours would look like latency of the target's.

mod fresh;
mod opening;
mod receiving;
mod sending;
mod watching;

use std::collections::VecDeque;
use std::os::fd::AsFd;

use journal::facts::Stall;

use crate::check::Scratch;
use crate::connection::{Connection, State, Unwritten};
use crate::course::{Shelf, Signals};
use crate::error::LoadError;
use crate::http::Reader;
use crate::own::{Receiving, Silences};
use crate::parameter::Values;
use crate::program::Program;
use crate::schedule::{Slot, Slots, Turns};
use crate::sys::{self, Event, Timer, Usage};
use crate::tally::{Outcome, STALL_NS, Stalls, Tally, Window};
use watching::{Standing, Watch};

/// How long before a slot the thread stops sleeping.
pub const SPIN_NS: u64 = 60_000;
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
    /// How long the window was, ns, where it ended otherwise than by its time.
    pub took_ns: Option<u64>,
    /// Connections whose answers the kernel timed.
    pub timed: u32,
    /// How long those lay in the kernel.
    pub receiving: Receiving,
    /// Times in which requests were in flight, the thread was there, and nothing came.
    pub silences: Vec<(u64, u64)>,
    /// Time in which it polled and found nothing to do, ns.
    pub polling_ns: u64,
}

/// One generating thread, before and while it runs.
pub struct Worker<'a> {
    program: &'a Program,
    window: Window,
    connections: Vec<Connection>,
    watch: Watch,
    /// Connections that await their next request at the end of a batch (io_uring).
    resting: Vec<u32>,
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
    /// Requests that this thread may still send (closed loop).
    left: u64,
    /// How long the window was, where it ended otherwise than by its time.
    took_ns: Option<u64>,
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
    receiving: Receiving,
    /// How long the bytes that are being taken had lain in the kernel, where that was noted.
    lay: Option<u64>,
    silences: Silences,
    /// When something last came from the target.
    heard: u64,
    polling_ns: u64,
    next_sweep: u64,
    next_retry: u64,

    buffer: Box<[u8]>,
    request: Vec<u8>,
    scratch: Scratch,
    values: Values,
    #[expect(clippy::vec_box, reason = "a box goes from here to a connection and back without being made again")]
    readers: Vec<Box<Reader>>,
    #[expect(clippy::vec_box, reason = "as above")]
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
    pub fn new(program: &'a Program, thread: u32, mut connections: Vec<Connection>) -> Result<Self, LoadError> {
        let next = "close other programs or raise the limit of open files (`ulimit -n`)";
        let timer = Timer::new().map_err(LoadError::system("set a timer", next))?;
        let mut watch = Watch::new(program.engine, connections.len() as u32, &timer)
            .map_err(LoadError::system("watch its connections", next))?;
        for (index, connection) in (0u32..).zip(&mut connections) {
            // A place without a connection gives it to each of its requests' own.
            connection.timed = !program.keep_alive && index.is_multiple_of(program.timed_every);
            if let Some(stream) = &connection.stream {
                if index.is_multiple_of(program.timed_every) {
                    let next = "run it on a kernel that has SO_TIMESTAMPNS";
                    sys::time_arrivals(stream.as_fd()).map_err(LoadError::system("time its answers", next))?;
                    connection.timed = true;
                }
                watch
                    .add(stream.as_fd(), connection.token(index), Standing::Open)
                    .map_err(LoadError::system("watch a connection", next))?;
            }
        }
        let slots = program.slots(thread);
        Ok(Self {
            program,
            window: Window {
                start: 0,
                end: 0,
                open: program.rate.is_some(),
                timeout: program.timeout,
                slice: Window::slice(program.window),
            },
            free: VecDeque::with_capacity(connections.len()),
            resting: Vec::with_capacity(connections.len()),
            connections,
            watch,
            timer,
            timer_at: NEVER,
            tallies: program.lanes.iter().map(|_| Tally::new(program.window)).collect(),
            stalls: Stalls::new(),
            last: 0,
            start: 0,
            numbered: Turns::first(thread),
            left: program.requests_of(thread).unwrap_or(u64::MAX),
            took_ns: None,
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
            receiving: Receiving::new(),
            lay: None,
            silences: Silences::new(),
            heard: 0,
            polling_ns: 0,
            next_sweep: NEVER,
            next_retry: NEVER,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            request: Vec::with_capacity(4_096),
            scratch: Scratch::default(),
            values: Values::default(),
            readers: Vec::new(),
            unwrittens: Vec::new(),
        })
    }

    /// Runs the job from its start to its end.
    ///
    /// # Errors
    /// When it is stopped, the system fails it, or its books don't balance.
    pub fn run(mut self, at: u64, signals: Signals<'_>, shelf: Option<(u64, &Shelf)>) -> Result<Account, LoadError> {
        sys::set_least_timer_slack();
        self.begin_watching()?;
        self.start = at;
        self.window.start = at + self.program.warm_up;
        self.window.end = self.window.start + self.program.window;
        let mut deadline = self.window.end + self.program.grace;
        let mut next_interval = shelf.map_or(NEVER, |(every, _)| self.window.start + every);
        self.next = self.slots.as_mut().and_then(Iterator::next);
        self.next_arrival = self.arriving.as_mut().and_then(Iterator::next);
        let latest = LATEST_START_NS.max(self.program.warm_up / 4);
        if let Some(late_ns) = sys::now_ns().checked_sub(at).filter(|late| *late > latest) {
            return Err(LoadError::Late { late_ns });
        }
        loop {
            let now = sys::now_ns();
            if signals.stopped() {
                return Err(LoadError::Stopped);
            }
            if now >= at {
                break;
            }
            sys::sleep_until(at.min(now + 20_000_000));
        }
        self.last = sys::now_ns();
        self.heard = self.last;
        self.stalls.between(&self.window, at, self.last);
        self.next_sweep = self.last + self.sweep_every();
        for index in 0..self.connections.len() as u32 {
            self.idle(index, self.last);
        }
        self.end_batch();

        let mut events = [Event::NONE; BATCH];
        let (mut usage_start, mut usage_end) = (None, None);
        loop {
            let now = self.stamp();
            let issued = self.issued;
            if signals.stopped() {
                return Err(LoadError::Stopped);
            }
            if signals.cut_at() < self.window.end {
                deadline = self.cut(signals.cut_at(), now)?;
            }
            if now >= next_interval
                && let Some((every, shelf)) = shelf
                && shelf.lay_down(&mut self.tallies)
            {
                next_interval += every;
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
            let over = now >= self.window.end || self.left == 0;
            if now >= deadline || (over && self.in_flight == 0 && self.next.is_none()) {
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
            let idle = self.issued == issued;
            let slept = self.stamp();
            let waited = self
                .watch
                .wait(&mut events, timeout_ms)
                .map_err(LoadError::system("wait for its connections", "run it again"))?;
            let woke = sys::now_ns();
            let count = waited.unwrap_or(0);
            // A wait explains the gap up to its own limit. Woken later than that with something to do, the thread was away; and so it was
            // when it was stopped in its sleep, which ends the wait before what has come meanwhile is looked at.
            let explained = if timeout_ms == 0 { slept } else { expected_by.max(slept) };
            if count > 0 || timeout_ms == 0 || waited.is_none() {
                self.stalls.between(&self.window, explained, woke);
            }
            // A turn of the loop that found nothing to do; one that took longer than a stall's length is the stall's.
            if idle && count == 0 && timeout_ms == 0 && woke - now <= STALL_NS && self.in_window(now) {
                self.polling_ns += woke - now;
            }
            self.last = woke;
            if self.watch.is_ring() {
                self.complete(count);
            } else {
                for event in &events[..count] {
                    self.handle(*event);
                }
            }
        }
        if self.left == 0 {
            // The requests that were asked for have all ended.
            self.took_ns = Some(self.last.min(self.window.end) - self.window.start);
            usage_end = usage_end.or_else(|| Some(sys::thread_usage()));
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

    /// Ends the window early, and gives the instant by which everything must have ended.
    #[cold]
    fn cut(&mut self, at: u64, now: u64) -> Result<u64, LoadError> {
        if at <= self.window.start {
            return Err(LoadError::Stopped);
        }
        if let Some(late_ns) = now.checked_sub(at).filter(|late_ns| *late_ns > 0) {
            return Err(LoadError::CutLate { late_ns });
        }
        self.window.end = at;
        self.took_ns = Some(at - self.window.start);
        let (start, end) = (self.start, self.window.end);
        let within = |slot: &Slot| start + slot.after_ns < end;
        self.next = self.next.filter(within);
        self.next_arrival = self.next_arrival.filter(within);
        Ok(at + self.program.grace.min(CUT_GRACE_NS))
    }

    /// The next slot of an iterator, unless it lies beyond the window's end.
    #[inline]
    fn slot_of(&self, slot: Option<Slot>) -> Option<Slot> {
        slot.filter(|slot| self.start + slot.after_ns < self.window.end)
    }

    /// How long to sleep: the limit for `epoll_wait` in ms, and the instant by which the thread expects to be awake.
    fn sleep(&mut self, milestone: u64) -> Result<(u32, u64), LoadError> {
        let now = self.last;
        let longest = if self.window.open { OPEN_SLEEP_MS } else { CLOSED_SLEEP_MS };
        let until = milestone.min(now + u64::from(longest) * 1_000_000);
        let timeout_ms = until.saturating_sub(now).div_ceil(1_000_000) as u32;
        let blocking = Ok((timeout_ms, now + u64::from(timeout_ms) * 1_000_000));
        // Without a free connection nothing could be sent: what is due waits for an answer, and so does this thread.
        let Some(slot) = self.next.filter(|_| !self.free.is_empty()) else { return blocking };
        let spin = (self.start + slot.after_ns).saturating_sub(SPIN_NS);
        if now >= spin {
            return Ok((0, now));
        }
        // The timer also for other milestones: the limit of `epoll_wait` is in whole milliseconds and could overrun the slot.
        let wake = spin.min(until);
        if self.timer_at != wake {
            self.timer.set(wake).map_err(LoadError::system("set its timer", "run it again"))?;
            self.timer_at = wake;
        }
        Ok((timeout_ms, wake))
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
    fn in_window(&self, now: u64) -> bool {
        (self.window.start..self.window.end).contains(&now)
    }

    /// Enters what is left, and checks that nothing was lost.
    fn close_books(mut self, usage: Option<Usage>) -> Result<Account, LoadError> {
        let now = sys::now_ns();
        let waiting = self.connections.iter().filter(|connection| connection.state == State::Waiting).count() as u64;
        if self.issued != self.ended + waiting || waiting != self.in_flight {
            return Err(LoadError::LostCount { issued: self.issued, ended: self.ended, in_flight: waiting });
        }
        let oldest = self.connections.iter().filter(|connection| connection.state == State::Waiting);
        if let Some(oldest) = oldest.map(|connection| connection.stamps.sent).min() {
            self.silences.between(&self.window, self.heard.max(oldest), now);
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
            self.tallies[usize::from(slot.lane)].unsent(&self.window, self.start + slot.after_ns, now);
            self.next_slot();
        }
        let stalls = self.stalls.into_kept();
        Ok(Account {
            tallies: self.tallies,
            timed: self.connections.iter().filter(|connection| connection.timed).count() as u32,
            receiving: self.receiving,
            silences: self.silences.without(&stalls),
            polling_ns: self.polling_ns,
            stalls,
            usage,
            connections_used: self.connections.iter().filter(|connection| connection.answered).count() as u32,
            reconnects: self.reconnects,
            unsolicited: self.unsolicited,
            max_backlog: self.max_backlog,
            took_ns: self.took_ns,
        })
    }
}

/// After an early end of the window, what is under way is drained for this long at the most.
pub const CUT_GRACE_NS: u64 = 1_000_000_000;

/// A start this far in the past, or by a quarter of the warm-up, is still honoured: the first sends are late by it, and say so.
pub const LATEST_START_NS: u64 = 10_000_000;
