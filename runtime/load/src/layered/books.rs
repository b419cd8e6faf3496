//! What a layered thread sends and when, and its books. The same rules as the engine on epoll, over places: a place is room for
//! one request in flight, and a connection of HTTP/2 has several.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use journal::facts::Stall;
use tokio::task::AbortHandle;

use super::exchange::Ready;
use super::open::{Sender, Way};
use super::stamped::{Flight, Pulse};
use crate::check::Scratch;
use crate::error::LoadError;
use crate::own::Receiving;
use crate::parameter::Values;
use crate::program::Program;
use crate::schedule::{Slot, Slots, Turns};
use crate::sys::{self, Usage};
use crate::tally::{Failure, Outcome, Stalls, Stamps, Tally, Window};
use crate::worker::Account;

/// What a place is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its connection is not open, or nothing is left to send.
    Parked,
    /// Ready for a request (open loop).
    Free,
    /// A request is in flight.
    Waiting,
}

/// A request that is to be sent, or to be sent again.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// The stream.
    pub lane: u16,
    /// The slot's instant; 0 in a closed loop.
    pub due: u64,
    /// The ordinal in its stream, where it was drawn before.
    pub ordinal: Option<u64>,
}

/// Room for one request in flight.
pub struct Place {
    /// Its connection.
    pub line: usize,
    /// What it is doing.
    pub state: State,
    turn: Turn,
    lane: u16,
    ordinal: u64,
    flight: Rc<Flight>,
    free_since: u64,
    /// The task that waits for the answer.
    pub task: Option<AbortHandle>,
    /// What the target put back unprocessed.
    put_back: Option<Turn>,
}

/// A connection.
pub struct Line {
    /// What requests are given to; `None` while it is not open, or HTTP/1.1 is at work.
    pub sender: Option<Sender>,
    /// It is open.
    pub up: bool,
    /// Its stamps.
    pub pulse: Rc<Pulse>,
    /// It has brought an answer.
    pub answered: bool,
    /// Failed attempts in a row.
    pub attempts: u8,
    /// Its places.
    pub places: Range<usize>,
    /// Its connection is to be dropped at once, or left to drain while another is opened. Each connection has its own.
    pub change: Rc<tokio::sync::Notify>,
    /// Which of the two.
    pub drop_it: bool,
}

/// Something to send: the request, with all that the task needs that waits for its answer.
pub struct Issue {
    /// The place.
    pub place: usize,
    /// What it is given to.
    pub sender: Sender,
    /// The request.
    pub ready: Ready,
    /// Its stamps.
    pub flight: Rc<Flight>,
    /// Its connection's stamps.
    pub pulse: Rc<Pulse>,
    /// Its connection's changes.
    pub change: Rc<tokio::sync::Notify>,
    /// The stream.
    pub lane: u16,
}

/// One layered thread's books.
pub struct Books {
    /// The job.
    pub program: Arc<Program>,
    /// The way to the target.
    pub way: Arc<Way>,
    /// The window.
    pub window: Window,
    /// Books by stream.
    pub tallies: Vec<Tally>,
    /// Absences.
    pub stalls: Stalls,
    /// The last reading of the clock.
    pub last: u64,
    /// The job's start.
    pub start: u64,
    /// It has come.
    pub running: bool,
    /// Connections.
    pub lines: Vec<Line>,
    /// Places.
    pub places: Vec<Place>,
    /// Requests that may still be sent (closed loop).
    pub left: u64,
    /// How long the window was, where it ended otherwise than by its time.
    pub took_ns: Option<u64>,
    /// The next slot to send.
    pub next: Option<Slot>,
    /// Time in which it polled and found nothing to do, ns.
    pub polling_ns: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Requests that were put back and not sent again yet.
    pub put_back: u64,
    /// Requests that were sent again.
    pub sent_again: u64,
    /// Connections opened again within the window.
    pub reconnects: u64,
    /// Connections that ended because of bytes that nobody asked for, within the window.
    pub unsolicited: u64,
    /// Idle places of an open loop, longest idle first.
    pub free: VecDeque<usize>,
    /// To be sent in this turn of the loop.
    pub issues: Vec<Issue>,
    constants: Vec<Option<Ready>>,
    numbered: u64,
    ordinals: Vec<u64>,
    slots: Option<Slots>,
    arriving: Option<Slots>,
    next_arrival: Option<Slot>,
    backlog: u64,
    max_backlog: u64,
    issued: u64,
    ended: u64,
    request: Vec<u8>,
    scratch: Scratch,
    values: Values,
}

impl Books {
    /// The books of a thread whose connections are not open yet.
    ///
    /// # Errors
    /// When a request can't be sent this way.
    pub fn new(program: Arc<Program>, way: Arc<Way>, thread: u32) -> Result<Self, LoadError> {
        let each = way.transport.in_flight as usize;
        let lines = program.connections_of(thread) as usize;
        let mut constants = Vec::new();
        for lane in &program.lanes {
            constants.push(lane.template.constant().map(|bytes| Ready::new(&way, bytes)).transpose()?);
        }
        let slots = program.slots(thread);
        Ok(Self {
            window: Window {
                start: 0,
                end: 0,
                open: program.rate.is_some(),
                timeout: program.timeout,
                slice: Window::slice(program.window),
            },
            tallies: crate::course::books(&program),
            stalls: Stalls::new(),
            last: sys::now_ns(),
            start: 0,
            running: false,
            lines: (0..lines)
                .map(|line| Line {
                    sender: None,
                    up: false,
                    pulse: Rc::default(),
                    answered: false,
                    attempts: 0,
                    places: line * each..(line + 1) * each,
                    change: Rc::default(),
                    drop_it: false,
                })
                .collect(),
            places: (0..lines * each)
                .map(|place| Place {
                    line: place / each,
                    state: State::Parked,
                    turn: Turn { lane: 0, due: 0, ordinal: None },
                    lane: 0,
                    ordinal: 0,
                    flight: Rc::default(),
                    free_since: 0,
                    task: None,
                    put_back: None,
                })
                .collect(),
            left: program.requests_of(thread).unwrap_or(u64::MAX),
            took_ns: None,
            next: None,
            polling_ns: 0,
            in_flight: 0,
            put_back: 0,
            sent_again: 0,
            reconnects: 0,
            unsolicited: 0,
            free: VecDeque::with_capacity(lines * each),
            issues: Vec::new(),
            constants,
            numbered: Turns::first(thread),
            ordinals: vec![u64::from(thread); program.lanes.len()],
            arriving: slots.clone(),
            slots,
            next_arrival: None,
            backlog: 0,
            max_backlog: 0,
            issued: 0,
            ended: 0,
            request: Vec::with_capacity(4_096),
            scratch: Scratch::default(),
            values: Values::default(),
            program,
            way,
        })
    }

    /// The job begins.
    pub fn begin(&mut self, at: u64) {
        self.start = at;
        self.window.start = at + self.program.warm_up;
        self.window.end = self.window.start + self.program.window;
        self.next = self.slots.as_mut().and_then(Iterator::next);
        self.next_arrival = self.arriving.as_mut().and_then(Iterator::next);
    }

    /// Ends the window early.
    pub fn cut(&mut self, at: u64) {
        self.window.end = at;
        self.took_ns = Some(at - self.window.start);
        self.next = self.slot_of(self.next);
        self.next_arrival = self.slot_of(self.next_arrival);
    }

    fn slot_of(&self, slot: Option<Slot>) -> Option<Slot> {
        slot.filter(|slot| self.start + slot.after_ns < self.window.end)
    }

    /// Reads the clock. A gap to the last reading is a stall.
    pub fn stamp(&mut self) -> u64 {
        let now = sys::now_ns();
        self.stalls.between(&self.window, self.last, now);
        self.last = now;
        now
    }

    pub fn in_window(&self, now: u64) -> bool {
        (self.window.start..self.window.end).contains(&now)
    }

    /// Whether anything is left to send on a new connection.
    pub fn is_needed(&self, now: u64) -> bool {
        if !self.running || self.put_back > 0 {
            return true;
        }
        if self.window.open { self.next.is_some() } else { now < self.window.end && self.left > 0 }
    }

    /// A place has nothing to do: gives it the next request, if there is one.
    pub fn idle(&mut self, place: usize, now: u64) {
        let line = &self.lines[self.places[place].line];
        if !self.running || !line.up || line.sender.as_ref().is_none_or(Sender::is_closed) {
            // HTTP/2 that takes no more requests drains; another connection is opened beside it.
            if self.running && line.up {
                line.change.notify_one();
            }
            self.places[place].state = State::Parked;
            return;
        }
        if let Some(turn) = self.places[place].put_back.take() {
            self.put_back -= 1;
            // A closed loop that is over needs it no more; a slot is owed until the end.
            if self.window.open || now < self.window.end {
                self.sent_again += 1;
                self.issue(place, turn);
                return;
            }
        }
        if self.window.open {
            self.places[place].state = State::Free;
            self.free.push_back(place);
            self.dispatch(now);
        } else if now < self.window.end && self.left > 0 {
            let number = self.numbered;
            self.numbered += 1;
            self.left -= 1;
            self.issue(place, Turn { lane: self.program.turns.at(number), due: 0, ordinal: None });
        } else {
            self.places[place].state = State::Parked;
        }
    }

    /// Issues what is due, as long as places are free.
    pub fn dispatch(&mut self, now: u64) {
        self.arrive(now);
        while let Some(slot) = self.next {
            let due = self.start + slot.after_ns;
            if due > now {
                break;
            }
            let Some(place) = self.free.pop_front() else { break };
            let line = &self.lines[self.places[place].line];
            if line.sender.as_ref().is_none_or(Sender::is_closed) {
                line.change.notify_one();
                self.places[place].state = State::Parked;
                continue;
            }
            self.next_slot();
            self.issue(place, Turn { lane: slot.lane, due, ordinal: None });
        }
    }

    /// Counts the slots that have become due.
    fn arrive(&mut self, now: u64) {
        let before = self.backlog;
        while let Some(slot) = self.next_arrival.filter(|slot| self.start + slot.after_ns <= now) {
            self.tallies[usize::from(slot.lane)].due(&self.window, self.start + slot.after_ns);
            self.backlog += 1;
            let following = self.arriving.as_mut().and_then(Iterator::next);
            self.next_arrival = self.slot_of(following);
        }
        if self.backlog != before && self.in_window(now) {
            self.max_backlog = self.max_backlog.max(self.backlog);
        }
    }

    fn next_slot(&mut self) {
        let following = self.slots.as_mut().and_then(Iterator::next);
        self.next = self.slot_of(following);
        self.backlog = self.backlog.saturating_sub(1);
    }

    /// Lays out a request and leaves it in `issues`.
    fn issue(&mut self, place: usize, turn: Turn) {
        let program = Arc::clone(&self.program);
        let lane_index = turn.lane;
        let lane = &program.lanes[usize::from(lane_index)];
        let ordinal = turn.ordinal.unwrap_or(self.ordinals[usize::from(lane_index)]);
        let ready = match &self.constants[usize::from(lane_index)] {
            Some(ready) => ready.clone(),
            None => {
                lane.parameters.draw(ordinal, &mut self.values);
                lane.template.render(&self.values, &mut self.request);
                match Ready::new(&self.way, &self.request) {
                    Ok(ready) => ready,
                    Err(error) => {
                        // Values of parameters that no request can carry: said with the first request that has one.
                        self.tallies[usize::from(lane_index)].keep_evidence(error.to_string());
                        self.unfit(place, turn, lane_index);
                        return;
                    }
                }
            }
        };
        let line = &mut self.lines[self.places[place].line];
        let sender = match line.sender.take() {
            Some(Sender::Http2(sender)) => {
                line.sender = Some(Sender::Http2(sender.clone()));
                Sender::Http2(sender)
            }
            Some(sender) => sender,
            // Its callers have looked: it is there.
            None => return,
        };
        let (pulse, change) = (Rc::clone(&line.pulse), Rc::clone(&line.change));
        if turn.ordinal.is_none() {
            self.ordinals[usize::from(lane_index)] += u64::from(program.threads);
        }
        self.issued += 1;
        self.in_flight += 1;
        let flight = Rc::new(Flight::default());
        flight.sent.set(self.stamp());
        let taken = &mut self.places[place];
        taken.state = State::Waiting;
        taken.turn = turn;
        taken.lane = lane_index;
        taken.ordinal = ordinal;
        taken.flight = Rc::clone(&flight);
        self.issues.push(Issue { place, sender, ready, flight, pulse, change, lane: lane_index });
    }

    /// Enters a request that can't be laid out as failed.
    fn unfit(&mut self, place: usize, turn: Turn, lane: u16) {
        let now = self.stamp();
        self.ordinals[usize::from(lane)] += u64::from(self.program.threads);
        self.issued += 1;
        self.ended += 1;
        let stamps = Stamps { due: turn.due, sent: now, first: 0, done: now };
        let tally = &mut self.tallies[usize::from(lane)];
        tally.sent(&self.window, &stamps, now);
        tally.ended(&self.window, &stamps, Outcome::Failed(Failure::Broken(libc::EINVAL)));
        self.places[place].state = State::Parked;
    }

    /// Checks an answer.
    pub fn verify(&mut self, place: usize, response: &crate::http::Response<'_>) -> Outcome {
        let program = Arc::clone(&self.program);
        let place = &self.places[place];
        let (lane_index, ordinal) = (place.lane, place.ordinal);
        self.lines[place.line].answered = true;
        let lane = &program.lanes[usize::from(lane_index)];
        if !lane.parameters.is_empty() {
            lane.parameters.draw(ordinal, &mut self.values);
        }
        match lane.checks.verify(response, &self.values, &mut self.scratch) {
            Ok(()) => Outcome::Ok,
            Err(mismatch) => {
                let tally = &mut self.tallies[usize::from(lane_index)];
                if tally.wants_evidence() {
                    tally.keep_evidence(format!(
                        "{}: {} · {}",
                        lane.checks.explain(mismatch, response, &self.values),
                        crate::http::excerpt(response.status_line(), 80),
                        crate::http::excerpt(response.body, 160),
                    ));
                }
                Outcome::Failed(Failure::Mismatch(mismatch))
            }
        }
    }

    /// Enters the end of a place's request.
    pub fn end(&mut self, place: usize, first: u64, done: u64, outcome: Outcome) {
        let place = &mut self.places[place];
        if place.state != State::Waiting {
            return;
        }
        place.state = State::Parked;
        place.task = None;
        let sent = place.flight.sent.get();
        let stamps = Stamps { due: place.turn.due, sent, first: first.max(sent), done: done.max(sent) };
        let tally = &mut self.tallies[usize::from(place.lane)];
        tally.sent(&self.window, &stamps, place.free_since);
        tally.ended(&self.window, &stamps, outcome);
        place.free_since = stamps.done;
        self.in_flight -= 1;
        self.ended += 1;
    }

    /// The target put a place's request back: it is sent again.
    pub fn again(&mut self, place: usize) {
        let place = &mut self.places[place];
        place.state = State::Parked;
        place.task = None;
        place.put_back = Some(Turn { ordinal: Some(place.ordinal), ..place.turn });
        self.put_back += 1;
        self.in_flight -= 1;
        self.issued -= 1;
    }

    /// A connection could not be opened: that costs the request that would have gone over it.
    pub fn not_opened(&mut self, began: u64, failure: Failure) {
        let now = self.stamp();
        let turn = if self.window.open {
            self.arrive(now);
            self.next.filter(|slot| self.start + slot.after_ns <= now).map(|slot| {
                self.next_slot();
                (slot.lane, self.start + slot.after_ns, now)
            })
        } else {
            (began < self.window.end && self.left > 0).then(|| {
                let number = self.numbered;
                self.numbered += 1;
                self.left -= 1;
                (self.program.turns.at(number), 0, began)
            })
        };
        let Some((lane, due, sent)) = turn else { return };
        let lane = usize::from(lane);
        self.ordinals[lane] += u64::from(self.program.threads);
        self.issued += 1;
        self.ended += 1;
        let stamps = Stamps { due, sent, first: 0, done: now };
        self.tallies[lane].sent(&self.window, &stamps, now);
        self.tallies[lane].ended(&self.window, &stamps, Outcome::Failed(failure));
    }

    /// Ends what has waited too long. Gives the places whose tasks are to be ended.
    pub fn sweep(&mut self, now: u64) -> Vec<usize> {
        let timeout = self.window.timeout;
        let late: Vec<usize> = (0..self.places.len())
            .filter(|index| {
                let place = &self.places[*index];
                place.state == State::Waiting && now.saturating_sub(place.flight.sent.get()) > timeout
            })
            .collect();
        for place in &late {
            if let Some(task) = self.places[*place].task.take() {
                task.abort();
            }
            self.end(*place, 0, now, Outcome::TimedOut);
        }
        late
    }

    /// Enters what is left, and checks that nothing was lost.
    ///
    /// # Errors
    /// When the books don't balance.
    pub fn close(mut self, usage: Option<Usage>) -> Result<(Account, u64), LoadError> {
        let now = sys::now_ns();
        let waiting = self.places.iter().filter(|place| place.state == State::Waiting).count() as u64;
        if self.issued != self.ended + waiting || waiting != self.in_flight {
            return Err(LoadError::LostCount { issued: self.issued, ended: self.ended, in_flight: waiting });
        }
        for place in 0..self.places.len() {
            self.end(place, 0, now, Outcome::Unanswered);
        }
        self.arrive(u64::MAX);
        for place in 0..self.places.len() {
            if let Some(turn) = self.places[place].put_back.take().filter(|_| self.window.open) {
                self.tallies[usize::from(turn.lane)].unsent(&self.window, turn.due, now);
            }
        }
        while let Some(slot) = self.next {
            self.tallies[usize::from(slot.lane)].unsent(&self.window, self.start + slot.after_ns, now);
            self.next_slot();
        }
        let stalls: Vec<Stall> = self.stalls.into_kept();
        Ok((
            Account {
                tallies: self.tallies,
                stalls,
                usage,
                connections_used: self.lines.iter().filter(|line| line.answered).count() as u32,
                reconnects: self.reconnects,
                unsolicited: self.unsolicited,
                max_backlog: self.max_backlog,
                took_ns: self.took_ns,
                // What lies between the kernel and hyper is not timed, and hyper's own turns hide whether the target was still.
                timed: 0,
                receiving: Receiving::new(),
                silences: Vec::new(),
                polling_ns: self.polling_ns,
            },
            self.sent_again,
        ))
    }
}
