//! Connections that have to be opened again, and requests that have waited too long.

use std::os::fd::AsFd;

use super::watching::Standing;
use super::{NEVER, Worker};
use crate::connection::{self, State};
use crate::sys;
use crate::tally::{Failure, Outcome, Stamps};

impl Worker<'_> {
    /// Opens a connection again, unless nothing is left to send on it.
    pub(super) fn reopen(&mut self, index: u32, now: u64) {
        if !self.program.keep_alive {
            return self.free_place(index, now);
        }
        let needed = if self.window.open { self.next.is_some() } else { now < self.window.end && self.left > 0 };
        self.reconnects += u64::from(needed && self.in_window(now));
        self.release(index);
        let connection = &mut self.connections[index as usize];
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
        let timed = connection.timed;
        let opening = connection::begin(self.program.target)
            .and_then(|stream| if timed { sys::time_arrivals(stream.as_fd()).map(|()| stream) } else { Ok(stream) })
            .and_then(|stream| self.watch.add(stream.as_fd(), token, Standing::Opening { timed }).map(|()| stream));
        match opening {
            Ok(stream) => self.connections[index as usize].stream = Some(stream),
            Err(error) => self.not_opened(index, now, Failure::Connect(error.raw_os_error().unwrap_or(libc::EIO))),
        }
    }

    /// A connection attempt has ended.
    #[cold]
    pub(super) fn opened(&mut self, index: u32) {
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
                connection.stamps.done = now;
                self.watch_opened(index);
                self.idle(index, now);
            }
            Some(error) => {
                self.not_opened(index, now, Failure::Connect(error.raw_os_error().unwrap_or(libc::EIO)));
            }
        }
    }

    /// A connection could not be opened: that costs the request that would have gone over it, and is tried again.
    #[cold]
    pub(super) fn not_opened(&mut self, index: u32, now: u64, failure: Failure) {
        self.release(index);
        let connection = &mut self.connections[index as usize];
        let began = connection.stamps.sent;
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
        let Some((lane, due, sent)) = request else { return };
        let lane = usize::from(lane);
        self.ordinals[lane] += u64::from(self.program.threads);
        self.issued += 1;
        self.ended += 1;
        let stamps = Stamps { due, sent, first: 0, done: now };
        self.tallies[lane].sent(&self.window, &stamps, now);
        self.tallies[lane].ended(&self.window, &stamps, Outcome::Failed(failure));
    }

    /// Tries again to open what could not be opened.
    #[cold]
    pub(super) fn retry(&mut self, now: u64) {
        self.next_retry = NEVER;
        for index in 0..self.connections.len() as u32 {
            let connection = &self.connections[index as usize];
            if connection.state == State::Down {
                if connection.stamps.due <= now {
                    self.connections[index as usize].stamps.done = now;
                    self.reopen(index, now);
                } else {
                    // At most once a millisecond, however many connections are down.
                    self.next_retry = self.next_retry.min(connection.stamps.due.max(now + 1_000_000));
                }
            }
        }
    }

    /// How often time-outs are looked for. They are exact for what is answered; this is for what never is.
    pub(super) fn sweep_every(&self) -> u64 {
        (self.program.timeout / 20).clamp(1_000_000, 100_000_000)
    }

    /// Ends what has waited too long.
    #[cold]
    pub(super) fn sweep(&mut self, now: u64) {
        self.next_sweep = now + self.sweep_every();
        for index in 0..self.connections.len() as u32 {
            let connection = &mut self.connections[index as usize];
            if now.saturating_sub(connection.stamps.sent) <= self.program.timeout {
                continue;
            }
            match connection.state {
                State::Waiting if connection.connecting => self.not_sent(index, now, Failure::ConnectTimeout),
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
}
