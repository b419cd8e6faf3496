//! One connection of a thread, and how connections are opened.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::http::Reader;
use crate::tally::Stamps;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Open, with no request in flight.
    Idle,
    /// A request is in flight.
    Waiting,
    /// Being opened, since `stamps.sent`.
    Opening,
    /// Could not be opened; tried again at `stamps.due`.
    Down,
    /// Not needed any more.
    Closed,
}

/// One connection. Small, so that thousands fit into the cache.
pub struct Connection {
    /// The socket; `None` while down or closed.
    pub stream: Option<TcpStream>,
    /// What it is doing.
    pub state: State,
    /// The kernel notes when answers arrive on it.
    pub timed: bool,
    /// It has brought at least one answer.
    pub answered: bool,
    /// Failed attempts in a row.
    pub attempts: u8,
    /// The stream of the request in flight.
    pub lane: u16,
    /// How often it was opened: events of an earlier socket are told by it.
    pub generation: u32,
    /// The ordinal in its stream of the request in flight.
    pub ordinal: u64,
    /// The stamps of the request in flight.
    pub stamps: Stamps,
    /// The reader of an answer that comes in pieces.
    pub reader: Option<Box<Reader>>,
    /// What of a request the socket had no room for yet, and how far it has been written.
    pub unwritten: Option<Box<Unwritten>>,
}

/// The rest of a request that did not fit into the socket at once.
#[derive(Default)]
pub struct Unwritten {
    /// The whole request.
    pub bytes: Vec<u8>,
    /// How many of them are written.
    pub written: usize,
}

impl Connection {
    /// An open one.
    pub fn open(stream: TcpStream) -> Self {
        Self {
            stream: Some(stream),
            state: State::Idle,
            timed: false,
            answered: false,
            attempts: 0,
            lane: 0,
            generation: 0,
            ordinal: 0,
            stamps: Stamps::default(),
            reader: None,
            unwritten: None,
        }
    }

    /// What its events carry.
    pub fn token(&self, index: u32) -> u64 {
        (u64::from(self.generation) << 32) | u64::from(index)
    }

    /// When to try again after so many failed attempts: 1 ms, doubled up to 128 ms.
    pub fn backoff_ns(&self) -> u64 {
        1_000_000 << self.attempts.saturating_sub(1).min(7)
    }
}

/// Opens a connection and waits for it.
///
/// # Errors
/// As the system says; `WouldBlock` or `TimedOut` when nothing answers within the time given.
pub fn open(target: SocketAddr, within: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&target, within)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Begins to open a connection. It is open, or has failed, when it becomes writable.
///
/// # Errors
/// As the system says.
pub fn begin(target: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(target), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    socket.set_tcp_nodelay(true)?;
    match socket.connect(&target.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(socket.into())
}
