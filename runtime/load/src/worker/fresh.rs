//! Requests that have a connection each: it is opened when the request is sent, which counts as part of the request, and closed
//! when the request has ended. A place among the worker's connections then is one request at a time, not a socket.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use super::Worker;
use super::watching::{Standing, Watch};
use crate::connection::{self, Connection, State};
use crate::sys;
use crate::tally::{Failure, Outcome};

/// Begins to open a connection for the request that is about to be written on it.
///
/// # Errors
/// As the system says: `AddrNotAvailable` when no local port is left.
pub fn begin(connection: &mut Connection, index: u32, watch: &mut Watch, target: SocketAddr) -> io::Result<()> {
    let stream = connection::begin(target)?;
    if connection.timed {
        sys::time_arrivals(stream.as_fd())?;
    }
    watch.add(stream.as_fd(), connection.token(index), Standing::Opening { timed: connection.timed })?;
    connection.stream = Some(stream);
    connection.connecting = true;
    Ok(())
}

impl Worker<'_> {
    /// The connection of the request in flight stands: its first bytes could be written.
    #[inline]
    pub(super) fn connected(&mut self, index: u32, now: u64) {
        let connection = &mut self.connections[index as usize];
        connection.connecting = false;
        connection.attempts = 0;
        self.tallies[usize::from(connection.lane)].connected(&self.window, &connection.stamps, now);
    }

    /// The request has ended: its connection goes, and its place is free for the next one.
    pub(super) fn free_place(&mut self, index: u32, now: u64) {
        self.clear_place(index).state = State::Idle;
        self.idle(index, now);
    }

    /// The request in flight could not be sent: it has failed, and its place rests, longer each time.
    #[cold]
    pub(super) fn not_sent(&mut self, index: u32, now: u64, failure: Failure) {
        self.connections[index as usize].stamps.done = now;
        self.end(index, Outcome::Failed(failure));
        let place = self.clear_place(index);
        place.state = State::Down;
        place.attempts = place.attempts.saturating_add(1);
        let retry = now + place.backoff_ns();
        place.stamps.due = retry;
        self.next_retry = self.next_retry.min(retry);
    }

    fn clear_place(&mut self, index: u32) -> &mut Connection {
        let place = &mut self.connections[index as usize];
        place.stream = None;
        place.connecting = false;
        place.generation = place.generation.wrapping_add(1);
        self.unwrittens.extend(place.unwritten.take());
        if let Some(mut reader) = place.reader.take() {
            reader.reset();
            self.readers.push(reader);
        }
        place
    }
}
