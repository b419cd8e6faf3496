//! How a thread hears of its connections and sends on them: epoll, or io_uring in batches.
//!
//! On io_uring sends are queued at their stamps and leave together when the thread waits next; receives stay armed and bring the bytes
//! along. A connection whose answers the kernel times is polled and read as with epoll, and so is the rest of a request that did
//! not fit into its socket.

use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use super::{BATCH, TIMER, Taken, Worker};
use crate::connection::State;
use crate::error::LoadError;
use crate::sys::uring::{Completion, Kind, Ring};
use crate::sys::{Epoll, Event, Interest, Timer};
use crate::tally::Failure;
use crate::wire::Engine;

/// What a socket is when it comes to be watched.
#[derive(Debug, Clone, Copy)]
pub enum Standing {
    /// Open.
    Open,
    /// Being opened.
    Opening {
        /// The kernel times its answers.
        timed: bool,
    },
}

/// What tells a thread of its sockets.
pub enum Watch {
    /// Edge-triggered; reads and writes are system calls of their own.
    Epoll(Epoll),
    /// In batches.
    Ring(Box<Ring>),
}

impl Watch {
    /// Nothing watched but the timer, which an open loop sleeps on; io_uring has none.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn new(engine: Engine, connections: u32, timer: &Timer) -> io::Result<Self> {
        Ok(match engine {
            Engine::Epoll => {
                let epoll = Epoll::new()?;
                epoll.add(timer.as_fd(), TIMER, Interest::Read)?;
                Self::Epoll(epoll)
            }
            Engine::Uring => Self::Ring(Box::new(Ring::new(connections)?)),
        })
    }

    /// Whether it is io_uring.
    #[inline]
    pub fn is_ring(&self) -> bool {
        matches!(self, Self::Ring(_))
    }

    /// Watches a socket until it is closed. One that is open is taken by io_uring when the thread begins, and by epoll at once.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn add(&mut self, socket: BorrowedFd<'_>, token: u64, standing: Standing) -> io::Result<()> {
        match (self, standing) {
            (Self::Epoll(epoll), _) => return epoll.add(socket, token, Interest::ReadWrite),
            (Self::Ring(_), Standing::Open) => {}
            (Self::Ring(ring), Standing::Opening { timed: true }) => ring.poll_all(socket, token),
            (Self::Ring(ring), Standing::Opening { timed: false }) => ring.poll_writable(socket, token),
        }
        Ok(())
    }

    /// Writes, or queues what is to be written; `Ok` then says only that.
    ///
    /// # Errors
    /// As `write`.
    #[inline]
    pub fn write(&mut self, stream: &mut TcpStream, bytes: &[u8], token: u64) -> io::Result<usize> {
        match self {
            Self::Epoll(_) => stream.write(bytes),
            Self::Ring(ring) => {
                ring.send(stream.as_fd(), bytes, token);
                Ok(bytes.len())
            }
        }
    }

    /// Sends what is queued, waits, and says how much there is to be handled; `None` when a signal ended the wait.
    ///
    /// # Errors
    /// When the kernel refuses.
    #[inline]
    pub fn wait(&mut self, events: &mut [Event], timeout_ms: u32) -> io::Result<Option<usize>> {
        match self {
            Self::Epoll(epoll) => epoll.wait_or_signal(events, timeout_ms),
            Self::Ring(ring) => ring.wait(timeout_ms),
        }
    }
}

impl Worker<'_> {
    /// Makes io_uring this thread's, and arms the open connections.
    pub(super) fn begin_watching(&mut self) -> Result<(), LoadError> {
        let Watch::Ring(ring) = &mut self.watch else { return Ok(()) };
        ring.enable().map_err(LoadError::system("begin to use io_uring", "leave the engine at epoll"))?;
        for index in 0..self.connections.len() as u32 {
            self.arm(index);
        }
        Ok(())
    }

    /// A connection that was being opened stands now.
    pub(super) fn watch_opened(&mut self, index: u32) {
        // One that is timed has been polled from its beginning.
        if !self.connections[index as usize].timed {
            self.arm(index);
        }
    }

    fn arm(&mut self, index: u32) {
        let connection = &self.connections[index as usize];
        let (Watch::Ring(ring), Some(stream)) = (&mut self.watch, &connection.stream) else { return };
        let token = connection.token(index);
        if connection.timed { ring.poll_all(stream.as_fd(), token) } else { ring.receive(stream.as_fd(), token) }
    }

    /// Closes a connection's socket.
    pub(super) fn release(&mut self, index: u32) {
        let Some(stream) = self.connections[index as usize].stream.take() else { return };
        if let Watch::Ring(ring) = &mut self.watch {
            ring.release(stream.as_fd());
        }
    }

    /// Handles what io_uring has completed, and then sends what the connections that became free send next: one that its target has
    /// closed behind its answer is not taken for free.
    pub(super) fn complete(&mut self, count: usize) {
        for _ in 0..count.min(BATCH) {
            let Watch::Ring(ring) = &mut self.watch else { return };
            let Some(completion) = ring.pop() else { break };
            let index = completion.token as u32;
            match completion.kind {
                Kind::Receive => self.received(index, &completion),
                _ if !self.is_current(completion.token) => {}
                Kind::Send => self.not_written(index, completion.result),
                Kind::Poll => self.polled(index, &completion),
            }
        }
        self.end_batch();
    }

    /// Sends what the connections that became free send next.
    pub(super) fn end_batch(&mut self) {
        for place in 0..self.resting.len() {
            let index = self.resting[place];
            let connection = &self.connections[index as usize];
            if connection.state == State::Idle && connection.stream.is_some() {
                self.next_of_closed(index, self.last);
            }
        }
        self.resting.clear();
    }

    /// Whether a token is of a connection's socket of now.
    fn is_current(&self, token: u64) -> bool {
        u64::from(self.connections[token as u32 as usize].generation) == token >> 32
    }

    #[inline]
    fn received(&mut self, index: u32, completion: &Completion) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let Watch::Ring(ring) = &mut self.watch else { return };
        let length = ring.take(completion, &mut buffer);
        if self.is_current(completion.token) {
            let now = self.stamp();
            self.lay = None;
            match completion.result {
                0 => self.hung_up(index, now),
                1.. => match self.bytes_came(index, &buffer[..length], now) {
                    Some(Taken::Ended { usable: true }) => self.idle(index, now),
                    Some(Taken::Ended { usable: false }) => self.reopen(index, now),
                    None | Some(Taken::More) => {}
                },
                // No buffer was free: they are by now.
                code if code == -libc::ENOBUFS => {}
                code => self.lost(index, now, Failure::Broken(-code)),
            }
            if !completion.stays && self.is_current(completion.token) {
                self.arm(index);
            }
        }
        self.buffer = buffer;
    }

    #[cold]
    fn polled(&mut self, index: u32, completion: &Completion) {
        let timed = self.connections[index as usize].timed;
        // Of a socket whose bytes come by receives, polls are for writing; reading it besides would mix up their order.
        let event = if timed { completion.event() } else { Event::of_poll(libc::POLLOUT as u32, completion.token) };
        self.handle(event);
        if !self.is_current(completion.token) {
            return;
        }
        if timed && !completion.stays {
            self.arm(index);
        }
        self.await_room(index);
    }

    /// A send did not take all of the request: keeps the rest, or says that the connection has failed.
    #[cold]
    fn not_written(&mut self, index: u32, result: i32) {
        let connection = &mut self.connections[index as usize];
        if connection.state != State::Waiting {
            return;
        }
        if result < 0 && result != -libc::EAGAIN {
            let now = self.stamp();
            return self.lost(index, now, Failure::Broken(-result));
        }
        let lane = &self.program.lanes[usize::from(connection.lane)];
        let mut rest = self.unwrittens.pop().unwrap_or_default();
        match lane.template.constant() {
            Some(bytes) => {
                rest.bytes.clear();
                rest.bytes.extend_from_slice(bytes);
            }
            None => {
                lane.parameters.draw(connection.ordinal, &mut self.values);
                lane.template.render(&self.values, &mut rest.bytes);
            }
        }
        rest.written = usize::try_from(result).unwrap_or(0);
        connection.unwritten = Some(rest);
        self.write_rest(index);
        self.await_room(index);
    }

    /// Polls for room where a request is not completely written. A connection that is timed is polled for it anyway.
    fn await_room(&mut self, index: u32) {
        let connection = &self.connections[index as usize];
        if connection.unwritten.is_none() || connection.timed {
            return;
        }
        if let (Watch::Ring(ring), Some(stream)) = (&mut self.watch, &connection.stream) {
            ring.poll_writable(stream.as_fd(), connection.token(index));
        }
    }
}
