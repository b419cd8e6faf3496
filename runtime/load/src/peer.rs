//! A service whose true capacity and true faults are known: what a generator, and a whole study, is tried against.
//!
//! [`Peer`] answers from one thread. Its workers are arithmetic: a request occupies the worker that is free first, from
//! the later of its arrival and that worker's last end, for exactly its hold. Ends are absolute deadlines, so late
//! wake-ups don't add up and the capacity is workers ÷ hold whatever the CPU does: 8 workers that each hold 4 ms carry
//! 2,000 per second.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::http::head_range;
use crate::sys::{self, Epoll, Event, Interest, Timer};

/// One request as the peer saw it.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Requests before it, on all connections.
    pub number: u64,
    /// Requests before it on its connection.
    pub on_connection: u64,
    /// When its last byte was read, CLOCK_MONOTONIC ns.
    pub at_ns: u64,
    /// Method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The whole head.
    pub head: String,
    /// Body.
    pub body: Vec<u8>,
}

/// What the peer does about a request.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Bytes to send, piece by piece; each piece is written on its own, [`Reply::gap_ns`] apart.
    pub pieces: Vec<Vec<u8>>,
    /// Time between pieces, ns.
    pub gap_ns: u64,
    /// How long a worker is held before the first piece, ns.
    pub hold_ns: u64,
    /// What happens to the connection afterwards.
    pub then: Then,
}

/// What happens to a connection after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It stays open.
    Keep,
    /// It is closed in good order.
    Close,
    /// It is reset.
    Reset,
}

impl Reply {
    /// An answer in one piece, at once.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self { pieces: vec![bytes.into()], gap_ns: 0, hold_ns: 0, then: Then::Keep }
    }

    /// An answer with this status and JSON body.
    pub fn json(status: u16, body: &str) -> Self {
        Self::new(format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    /// No answer ever.
    pub fn never() -> Self {
        Self { pieces: Vec::new(), gap_ns: 0, hold_ns: 0, then: Then::Keep }
    }

    /// The same after holding a worker.
    pub fn after(mut self, hold_ns: u64) -> Self {
        self.hold_ns = hold_ns;
        self
    }

    /// The same, and then this happens to the connection.
    pub fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }
}

/// A running peer. Dropping it ends it.
pub struct Peer {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    freeze_at: AtomicU64,
    freeze_for: AtomicU64,
    arrivals: Mutex<Vec<u64>>,
    connections: AtomicU64,
}

impl Peer {
    /// Starts a peer on a free port of 127.0.0.1 with this many workers (0: as many as there are requests).
    ///
    /// # Errors
    /// When it can't listen or start its thread.
    pub fn start(workers: usize, answer: impl FnMut(&Asked) -> Reply + Send + 'static) -> io::Result<Self> {
        Self::listen(SocketAddr::from(([127, 0, 0, 1], 0)), workers, answer)
    }

    /// The same on a given address.
    ///
    /// # Errors
    /// When it can't listen or start its thread.
    pub fn listen(
        address: SocketAddr,
        workers: usize,
        answer: impl FnMut(&Asked) -> Reply + Send + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        // A second time, for a longer queue than the library's 128: thousands of connections come at once.
        socket2::SockRef::from(&listener).listen(4_096)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let mut service = Service {
            epoll: Epoll::new()?,
            timer: Timer::new()?,
            listener,
            free_at: (0..workers).map(|_| Reverse(0)).collect(),
            answer,
            connections: BTreeMap::new(),
            opened: 0,
            due: BinaryHeap::new(),
            numbered: 0,
            ordered: 0,
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new().name("peer".into()).spawn(move || service.run())?;
        Ok(Self { address, shared, thread: Some(thread) })
    }

    /// The service of known capacity: 8 workers that each hold 4 ms, 2,000 requests per second, correct answers.
    ///
    /// # Errors
    /// When it can't listen or start its thread.
    pub fn of_known_capacity() -> io::Result<Self> {
        Self::start(8, |_| Reply::json(200, crate::noop::BODY).after(4_000_000))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stands still from an instant of CLOCK_MONOTONIC on: reads nothing, sends nothing, as a stopped process does.
    pub fn freeze(&self, at_ns: u64, for_ns: u64) {
        self.shared.freeze_for.store(for_ns, Ordering::Relaxed);
        self.shared.freeze_at.store(at_ns, Ordering::Release);
    }

    /// When each request was read, CLOCK_MONOTONIC ns, in order.
    pub fn arrivals(&self) -> Vec<u64> {
        self.shared.arrivals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Waits until the peer ends, which it does not do by itself unless the system fails it.
    ///
    /// # Errors
    /// When its thread ended with an error.
    pub fn wait(mut self) -> io::Result<()> {
        self.thread.take().map_or(Ok(()), |thread| {
            thread.join().map_err(|_| io::Error::other("the peer's thread ended in a panic"))?
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // What it ended with is of no interest to who no longer wants it.
            drop(thread.join());
        }
    }
}

const LISTENER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
/// Longest wait for events: how soon a stop is seen.
const TICK_MS: u32 = 20;

struct Service<F> {
    epoll: Epoll,
    timer: Timer,
    listener: TcpListener,
    /// When each worker is free.
    free_at: BinaryHeap<Reverse<u64>>,
    answer: F,
    connections: BTreeMap<u64, Connection>,
    opened: u64,
    due: BinaryHeap<Reverse<Due>>,
    numbered: u64,
    ordered: u64,
    shared: Arc<Shared>,
}

struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    requests: u64,
}

/// A piece that is sent at an instant.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ns: u64,
    order: u64,
    connection: u64,
    piece: Vec<u8>,
    then: Option<ThenOrder>,
}

/// [`Then`] with an order, which the heap's entries need as a whole.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum ThenOrder {
    Close,
    Reset,
}

impl<F: FnMut(&Asked) -> Reply> Service<F> {
    fn run(&mut self) -> io::Result<()> {
        sys::set_least_timer_slack();
        self.epoll.add(self.listener.as_fd(), LISTENER, Interest::Read)?;
        self.epoll.add(self.timer.as_fd(), TIMER, Interest::Read)?;
        let mut events = [Event::NONE; 64];
        let mut buffer = vec![0u8; 64 * 1024];
        while !self.shared.stop.load(Ordering::Relaxed) {
            let mut wake = self.due.peek().map_or(u64::MAX, |Reverse(due)| due.at_ns);
            let freeze_at = self.shared.freeze_at.load(Ordering::Acquire);
            if freeze_at > 0 {
                wake = wake.min(freeze_at);
            }
            if wake != u64::MAX {
                self.timer.set(wake)?;
            }
            let count = self.epoll.wait(&mut events, TICK_MS)?;
            if freeze_at > 0 && sys::now_ns() >= freeze_at {
                self.shared.freeze_at.store(0, Ordering::Relaxed);
                let end = freeze_at + self.shared.freeze_for.load(Ordering::Relaxed);
                while sys::now_ns() < end && !self.shared.stop.load(Ordering::Relaxed) {
                    sys::sleep_until(end);
                }
            }
            for event in &events[..count] {
                match event.token() {
                    LISTENER => self.accept()?,
                    TIMER => {}
                    connection => self.read(connection, &mut buffer)?,
                }
            }
            self.send_due();
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    let number = self.opened;
                    self.opened += 1;
                    self.shared.connections.store(self.opened, Ordering::Relaxed);
                    self.epoll.add(stream.as_fd(), number, Interest::Read)?;
                    self.connections.insert(number, Connection { stream, received: Vec::new(), requests: 0 });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn read(&mut self, number: u64, buffer: &mut [u8]) -> io::Result<()> {
        loop {
            let Some(connection) = self.connections.get_mut(&number) else { return Ok(()) };
            match connection.stream.read(buffer) {
                Ok(0) => {
                    self.connections.remove(&number);
                    return Ok(());
                }
                Ok(length) => {
                    connection.received.extend_from_slice(&buffer[..length]);
                    while let Some(asked) = self.take(number) {
                        self.shared.arrivals.lock().unwrap_or_else(PoisonError::into_inner).push(asked.at_ns);
                        let reply = (self.answer)(&asked);
                        self.order(number, asked.at_ns, reply);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.connections.remove(&number);
                    return Ok(());
                }
            }
        }
    }

    /// The next complete request of a connection.
    fn take(&mut self, number: u64) -> Option<Asked> {
        let connection = self.connections.get_mut(&number)?;
        let end = head_range(&connection.received)?.end;
        let head = String::from_utf8_lossy(&connection.received[..end]).into_owned();
        let length = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .and_then(|(_, value)| value.trim().parse::<usize>().ok())
            .unwrap_or(0);
        if connection.received.len() < end + length {
            return None;
        }
        let body = connection.received[end..end + length].to_vec();
        connection.received.drain(..end + length);
        let mut words = head.split(' ');
        let asked = Asked {
            number: self.numbered,
            on_connection: connection.requests,
            at_ns: sys::now_ns(),
            method: words.next().unwrap_or_default().to_owned(),
            path: words.next().unwrap_or_default().to_owned(),
            head: head.clone(),
            body,
        };
        self.numbered += 1;
        connection.requests += 1;
        Some(asked)
    }

    /// Gives a request to the worker that is free first.
    fn order(&mut self, connection: u64, arrived: u64, reply: Reply) {
        let mut at_ns = arrived + reply.hold_ns;
        if reply.hold_ns > 0
            && let Some(Reverse(free)) = self.free_at.pop()
        {
            at_ns = arrived.max(free) + reply.hold_ns;
            self.free_at.push(Reverse(at_ns));
        }
        let then = match reply.then {
            Then::Keep => None,
            Then::Close => Some(ThenOrder::Close),
            Then::Reset => Some(ThenOrder::Reset),
        };
        let mut pieces = reply.pieces;
        if pieces.is_empty() && then.is_some() {
            pieces.push(Vec::new());
        }
        let last = pieces.len().saturating_sub(1);
        for (index, piece) in pieces.into_iter().enumerate() {
            let order = self.ordered;
            self.ordered += 1;
            let then = then.filter(|_| index == last);
            self.due.push(Reverse(Due { at_ns, order, connection, piece, then }));
            at_ns += reply.gap_ns;
        }
    }

    fn send_due(&mut self) {
        while self.due.peek().is_some_and(|Reverse(due)| due.at_ns <= sys::now_ns()) {
            let Some(Reverse(due)) = self.due.pop() else { return };
            let Some(connection) = self.connections.get_mut(&due.connection) else { continue };
            let mut sent = 0;
            let mut ended = due.then.is_some();
            while sent < due.piece.len() {
                match connection.stream.write(&due.piece[sent..]) {
                    Ok(written) => sent += written,
                    // Test answers are smaller than a socket's buffer, so this is short; a client that never reads ends it.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        if self.shared.stop.load(Ordering::Relaxed) {
                            return;
                        }
                        std::thread::yield_now();
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => {
                        ended = true;
                        break;
                    }
                }
            }
            if ended {
                if due.then == Some(ThenOrder::Reset) {
                    // Lingering for no time makes the close a reset.
                    let socket = socket2::SockRef::from(&connection.stream);
                    drop(socket.set_linger(Some(std::time::Duration::ZERO)));
                }
                self.connections.remove(&due.connection);
            }
        }
    }
}
