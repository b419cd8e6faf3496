//! One connection of a thread, and how connections are opened.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::http::Reader;
use crate::sys::{self, Epoll, Event, Interest};
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
    /// It was begun for the request in flight and does not stand yet.
    pub connecting: bool,
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
        Self { stream: Some(stream), ..Self::place() }
    }

    /// A place for requests that have a connection each: there is none until one is sent.
    pub fn place() -> Self {
        Self {
            stream: None,
            state: State::Idle,
            connecting: false,
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

/// Connections that are being opened at a time: a listener whose queue is full drops the rest, and each dropped attempt is
/// repeated after a second, so that one after the other could take minutes.
const AT_A_TIME: usize = 64;

/// Opens connections and waits for all of them.
///
/// # Errors
/// The number of the first that failed, from 1, and why; `TimedOut` when nothing answers one within the time given.
pub fn open_all(target: SocketAddr, count: u32, within: Duration) -> Result<Vec<TcpStream>, (u32, io::Error)> {
    let epoll = Epoll::new().map_err(|error| (1, error))?;
    let mut streams = Vec::with_capacity(count as usize);
    let mut opening: Vec<(u32, u64, TcpStream)> = Vec::with_capacity(AT_A_TIME);
    let mut events = [Event::NONE; AT_A_TIME];
    let within = u64::try_from(within.as_nanos()).unwrap_or(u64::MAX);
    let mut begun = 0;
    while streams.len() < count as usize {
        while begun < count && opening.len() < AT_A_TIME {
            begun += 1;
            let stream = begin(target).map_err(|error| (begun, error))?;
            epoll.add(stream.as_fd(), u64::from(begun), Interest::ReadWrite).map_err(|error| (begun, error))?;
            opening.push((begun, sys::now_ns().saturating_add(within), stream));
        }
        let came = epoll.wait(&mut events, 100).map_err(|error| (begun, error))?;
        for event in &events[..came] {
            let place = opening.iter().position(|(number, ..)| u64::from(*number) == event.token());
            let Some(place) = place.filter(|_| event.is_writable()) else { continue };
            let (number, _, stream) = opening.swap_remove(place);
            if let Some(error) = stream.take_error().unwrap_or_else(Some) {
                return Err((number, error));
            }
            streams.push(stream);
        }
        let now = sys::now_ns();
        if let Some((number, ..)) = opening.iter().find(|(_, until, _)| *until < now) {
            return Err((*number, io::ErrorKind::TimedOut.into()));
        }
    }
    Ok(streams)
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
