//! What a thread sends, and when: the next request of a closed loop, the due slots of an open one.

use std::io::{self, Write};

use super::Worker;
use crate::connection::State;
use crate::sys;
use crate::tally::{Failure, Stamps};

impl Worker<'_> {
    /// A connection has nothing to do: gives it the next request, if there is one.
    #[inline]
    pub(super) fn idle(&mut self, index: u32, now: u64) {
        if self.window.open {
            self.free.push_back(index);
            self.dispatch(now);
        } else if self.watch.is_ring() {
            self.resting.push(index);
        } else {
            self.next_of_closed(index, now);
        }
    }

    /// Sends a connection's next request in a closed loop, if there is one.
    #[inline]
    pub(super) fn next_of_closed(&mut self, index: u32, now: u64) {
        if now < self.window.end && self.left > 0 {
            let number = self.numbered;
            self.numbered += 1;
            self.left -= 1;
            self.issue(index, self.program.turns.at(number), None);
        }
    }

    /// Sends what is due, as long as connections are free.
    #[inline]
    pub(super) fn dispatch(&mut self, mut now: u64) {
        self.arrive(now);
        while let Some(slot) = self.next {
            let due = self.start + slot.after_ns;
            if due > now {
                break;
            }
            let Some(index) = self.free.pop_front() else { break };
            self.next_slot();
            self.issue(index, slot.lane, Some(due));
            now = self.last;
            self.arrive(now);
        }
    }

    /// Counts the slots that have become due.
    #[inline]
    pub(super) fn arrive(&mut self, now: u64) {
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

    pub(super) fn next_slot(&mut self) {
        let following = self.slots.as_mut().and_then(Iterator::next);
        self.next = self.slot_of(following);
        self.backlog = self.backlog.saturating_sub(1);
    }

    /// Sends a request on an idle connection.
    #[inline]
    pub(super) fn issue(&mut self, index: u32, lane_index: u16, due: Option<u64>) {
        let program = self.program;
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
        let begun = if program.keep_alive {
            Ok(())
        } else {
            super::fresh::begin(connection, index, &mut self.watch, program.target)
        };
        let token = connection.token(index);
        let written = begun.and_then(|()| match &mut connection.stream {
            Some(stream) => self.watch.write(stream, bytes, token),
            None => Err(io::Error::from_raw_os_error(libc::ENOTCONN)),
        });
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
        let free_since = connection.stamps.done;
        connection.state = State::Waiting;
        connection.lane = lane_index;
        connection.ordinal = ordinal;
        connection.stamps = Stamps { due: due.unwrap_or(0), sent, first: 0, done: 0 };
        self.tallies[usize::from(lane_index)].sent(&self.window, &connection.stamps, free_since);
        match written {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                let now = self.stamp();
                let code = error.raw_os_error().unwrap_or(libc::EIO);
                if program.keep_alive {
                    self.lost(index, now, Failure::Broken(code));
                } else {
                    self.not_sent(index, now, Failure::Connect(code));
                }
            }
            Ok(_) if program.keep_alive => {}
            Ok(_) => {
                let now = self.stamp();
                self.connected(index, now);
            }
        }
    }

    /// Writes on with a request that did not fit into the socket at once.
    #[cold]
    pub(super) fn write_rest(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        let connecting = connection.connecting;
        let (Some(stream), Some(rest)) = (&mut connection.stream, &mut connection.unwritten) else { return };
        let (began_at, mut failure) = (rest.written, None);
        while rest.written < rest.bytes.len() {
            match stream.write(&rest.bytes[rest.written..]) {
                Ok(written) => rest.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let (moved, complete) = (rest.written > began_at, rest.written == rest.bytes.len());
        if connecting && moved {
            let now = self.stamp();
            self.connected(index, now);
        }
        let connection = &mut self.connections[index as usize];
        if complete {
            self.unwrittens.extend(connection.unwritten.take());
            return;
        }
        let Some(failure) = failure else { return };
        if connection.connecting {
            let now = self.stamp();
            self.not_sent(index, now, Failure::Connect(failure.raw_os_error().unwrap_or(libc::EIO)));
            return;
        }
        // An answer may have come before the connection broke, such as 413 to a large body: reading tells.
        self.unwrittens.extend(connection.unwritten.take());
        if failure.raw_os_error() != Some(libc::EPIPE) {
            let now = self.stamp();
            self.lost(index, now, Failure::Broken(failure.raw_os_error().unwrap_or(libc::EIO)));
        }
    }
}
