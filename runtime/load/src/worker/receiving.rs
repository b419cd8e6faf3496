//! What a thread does when something has come: reading, checking, ending requests.

use std::io::{self, Read};
use std::os::fd::AsFd;

use super::{NEVER, TIMER, Taken, Worker};
use crate::connection::State;
use crate::http::{self, Look, Reader, Response, Violation, excerpt};
use crate::sys::{self, Event};
use crate::tally::{Failure, Outcome};

impl Worker<'_> {
    #[inline]
    pub(super) fn handle(&mut self, event: Event) {
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
                    // What a target says unasked may have come with the connection; it causes no second event.
                    if event.is_readable()
                        && matches!(self.connections[index as usize].state, State::Idle | State::Waiting)
                    {
                        self.readable(index, event.is_ended());
                    }
                }
            }
            State::Idle | State::Waiting => {
                if connection.unwritten.is_some() && event.is_writable() {
                    self.write_rest(index);
                }
                // Writing may have failed and the connection be another one now, which has events of its own.
                let is_same = u64::from(self.connections[index as usize].generation) == token >> 32;
                if is_same && event.is_readable() {
                    self.readable(index, event.is_ended());
                }
            }
            State::Down | State::Closed => {}
        }
    }

    /// Reads what there is.
    #[inline]
    pub(super) fn readable(&mut self, index: u32, ended: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            let connection = &mut self.connections[index as usize];
            let Some(stream) = &mut connection.stream else { break };
            let got = if connection.timed {
                sys::receive_timed(stream.as_fd(), &mut buffer).map(|(length, lay)| {
                    self.lay = lay;
                    length
                })
            } else {
                self.lay = None;
                stream.read(&mut buffer)
            };
            let now = self.stamp();
            match got {
                Ok(0) => {
                    self.hung_up(index, now);
                    break;
                }
                Ok(length) => match self.bytes_came(index, &buffer[..length], now) {
                    None => break,
                    Some(Taken::More) => {
                        if length < buffer.len() && !ended {
                            break;
                        }
                    }
                    Some(Taken::Ended { usable }) => {
                        if !usable || ended || !self.program.keep_alive {
                            self.reopen(index, now);
                            break;
                        }
                        self.idle(index, now);
                        if length < buffer.len() {
                            break;
                        }
                    }
                },
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

    /// Bytes have come: stamps and takes them. `None` when nobody had asked for them, and their connection was given up.
    #[inline]
    pub(super) fn bytes_came(&mut self, index: u32, bytes: &[u8], now: u64) -> Option<Taken> {
        let connection = &mut self.connections[index as usize];
        self.silences.between(&self.window, self.heard.max(connection.stamps.sent), now);
        self.heard = now;
        if connection.state != State::Waiting {
            self.unsolicited += u64::from(self.in_window(now));
            self.free.retain(|free| *free != index);
            self.reopen(index, now);
            return None;
        }
        if connection.stamps.first == 0 {
            connection.stamps.first = now;
        }
        connection.stamps.done = now;
        Some(self.take(index, bytes))
    }

    /// Takes bytes of an answer; ends the request when it is complete or beyond saving.
    #[inline]
    pub(super) fn take(&mut self, index: u32, bytes: &[u8]) -> Taken {
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

    pub(super) fn put_back(&mut self, mut reader: Box<Reader>) {
        reader.reset();
        self.readers.push(reader);
    }

    /// Ends a request with its complete answer.
    #[inline]
    pub(super) fn answered(&mut self, index: u32, response: &Response<'_>, excess: &[u8]) -> Taken {
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
            Ok(()) => {
                if let Some(lay) = self.lay
                    && self.window.counts(&connection.stamps)
                {
                    self.receiving.record(lay, connection.stamps.done - connection.stamps.sent);
                }
                Outcome::Ok
            }
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
    pub(super) fn violated(&mut self, index: u32, violation: Violation, bytes: &[u8]) -> Taken {
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
    pub(super) fn end(&mut self, index: u32, outcome: Outcome) {
        let connection = &mut self.connections[index as usize];
        connection.state = State::Idle;
        self.in_flight -= 1;
        self.ended += 1;
        self.tallies[usize::from(connection.lane)].ended(&self.window, &connection.stamps, outcome);
    }

    /// The other side ended the connection.
    #[cold]
    pub(super) fn hung_up(&mut self, index: u32, now: u64) {
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
    pub(super) fn lost(&mut self, index: u32, now: u64, failure: Failure) {
        let connection = &mut self.connections[index as usize];
        if connection.state == State::Waiting {
            connection.stamps.done = now;
            self.end(index, Outcome::Failed(failure));
        } else {
            self.free.retain(|free| *free != index);
        }
        self.reopen(index, now);
    }
}
