//! The cheapest HTTP/1.1 server there can be: it answers every request with the same 200 and a small JSON body.
//!
//! Behind the study's own connections and workload it shows what generator and machine could carry if the candidate cost
//! nothing: the built-in probe. It is also the peer that the generator itself is measured against.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use plan::CpuSet;

use crate::sys::{self, Epoll, Event, Interest};

/// What is answered where nothing else is asked for: about 100 bytes of JSON.
pub const BODY: &str =
    r#"{"id":1,"kind":"page_view","at":"2026-01-01T00:00:00Z","payload":{"path":"/pricing","ms":12345}}"#;

/// Longest wait for events: how soon a stop is seen.
const TICK_MS: u32 = 50;
/// Bytes read at a time.
const BUFFER: usize = 64 * 1024;
/// Longest request head.
const HEAD_LIMIT: usize = 64 * 1024;

/// How the server is to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Threads that answer.
    pub threads: u32,
    /// CPUs that they are pinned to, round robin; empty: not pinned.
    pub cpus: CpuSet,
    /// Status of every answer.
    pub status: u16,
    /// Body of every answer.
    pub body: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            threads: 1,
            cpus: CpuSet::default(),
            status: 200,
            body: BODY.into(),
        }
    }
}

/// A running server. Dropping it ends it.
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Server {
    /// Starts a server.
    ///
    /// # Errors
    /// When it can't listen, or a thread can't be pinned or started.
    pub fn start(options: &Options) -> io::Result<Self> {
        let listener = TcpListener::bind(options.listen)?;
        // A second time, for a longer queue than the library's 128: thousands of connections come at once.
        socket2::SockRef::from(&listener).listen(4_096)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let answer: Arc<[u8]> = format!(
            "HTTP/1.1 {} OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
            options.status,
            options.body.len(),
            options.body
        )
        .into_bytes()
        .into();
        let mut server = Self { address, stop: Arc::default(), threads: Vec::new() };
        let mut doors = Vec::new();
        for index in 0..options.threads.max(1) as usize {
            let epoll = Arc::new(Epoll::new()?);
            let (sender, inbox) = channel();
            let cpu = options.cpus.cpus().get(index % options.cpus.len().max(1)).copied();
            let (pinned, is_pinned) = channel();
            let worker = Worker {
                epoll: Arc::clone(&epoll),
                inbox,
                answer: Arc::clone(&answer),
                connections: Vec::new(),
                stop: Arc::clone(&server.stop),
            };
            server.threads.push(std::thread::Builder::new().name(format!("noop-{index}")).spawn(move || {
                let result = cpu.map_or(Ok(()), sys::pin_to_cpu);
                // The starter waits for this word; that it has gone away means only that it failed elsewhere.
                drop(pinned.send(result));
                worker.run()
            })?);
            is_pinned.recv().map_err(|_| io::Error::other("a thread of the server ended at once"))??;
            doors.push((epoll, sender));
        }
        let stop = Arc::clone(&server.stop);
        server.threads.push(
            std::thread::Builder::new().name("noop-accept".into()).spawn(move || accept(&listener, &doors, &stop))?,
        );
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the server ends, which it does not do by itself unless the system fails it.
    ///
    /// # Errors
    /// When a thread ended with an error.
    pub fn wait(mut self) -> io::Result<()> {
        for thread in std::mem::take(&mut self.threads) {
            thread.join().map_err(|_| io::Error::other("a thread of the server ended in a panic"))??;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // What a thread ended with is of no interest to who no longer wants it.
            drop(thread.join());
        }
    }
}

/// Where new connections of a thread are handed in.
type Door = (Arc<Epoll>, Sender<TcpStream>);

/// Hands new connections to the threads in turn. The socket goes in first and is watched afterwards, so its first event
/// finds it in the inbox at the latest.
fn accept(listener: &TcpListener, doors: &[Door], stop: &AtomicBool) -> io::Result<()> {
    let epoll = Epoll::new()?;
    epoll.add(listener.as_fd(), 0, Interest::Read)?;
    let mut events = [Event::NONE; 1];
    let mut turn = 0;
    while !stop.load(Ordering::Relaxed) {
        epoll.wait(&mut events, TICK_MS)?;
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The connection that was to be accepted is gone again, or files ran out for a moment.
                Err(_) => break,
            };
            let (epoll, inbox) = &doors[turn % doors.len()];
            turn += 1;
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            let token = stream.as_raw_fd() as u64;
            // A duplicate keeps the socket open until it is watched, should the thread drop its own at once.
            let watched = stream.try_clone();
            if inbox.send(stream).is_err() {
                return Ok(());
            }
            if let Ok(watched) = watched {
                epoll.add(watched.as_fd(), token, Interest::Read)?;
            }
        }
    }
    Ok(())
}

struct Worker {
    epoll: Arc<Epoll>,
    inbox: Receiver<TcpStream>,
    answer: Arc<[u8]>,
    /// By file descriptor.
    connections: Vec<Option<Connection>>,
    stop: Arc<AtomicBool>,
}

struct Connection {
    stream: TcpStream,
    /// The start of a request whose head has not come completely.
    partial: Vec<u8>,
    /// Bytes of a request's body still to come.
    body: u64,
    /// Answers that the socket had no room for.
    unwritten: Vec<u8>,
}

impl Worker {
    fn run(mut self) -> io::Result<()> {
        let mut events = [Event::NONE; 64];
        let mut buffer = vec![0u8; BUFFER];
        while !self.stop.load(Ordering::Relaxed) {
            let count = self.epoll.wait(&mut events, TICK_MS)?;
            for event in &events[..count] {
                let index = event.token() as usize;
                while self.connections.get(index).is_none_or(Option::is_none) {
                    let Ok(stream) = self.inbox.try_recv() else { break };
                    let at = stream.as_raw_fd() as usize;
                    if self.connections.len() <= at {
                        self.connections.resize_with(at + 1, || None);
                    }
                    self.connections[at] =
                        Some(Connection { stream, partial: Vec::new(), body: 0, unwritten: Vec::new() });
                }
                let Some(place) = self.connections.get_mut(index) else { continue };
                let Some(connection) = place else { continue };
                if !connection.serve(&mut buffer, &self.answer, event.is_ended()) {
                    *place = None;
                }
            }
        }
        Ok(())
    }
}

impl Connection {
    /// Answers what has come; `false` when the connection has ended.
    #[inline]
    fn serve(&mut self, buffer: &mut [u8], answer: &[u8], ended: bool) -> bool {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return false,
                Ok(length) => {
                    let Some(requests) = self.requests(&buffer[..length]) else { return false };
                    for _ in 0..requests {
                        if self.unwritten.is_empty() {
                            match self.stream.write(answer) {
                                Ok(written) => self.unwritten.extend_from_slice(&answer[written..]),
                                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                                    self.unwritten.extend_from_slice(answer);
                                }
                                Err(_) => return false,
                            }
                        } else {
                            self.unwritten.extend_from_slice(answer);
                        }
                    }
                    if !self.flush() {
                        return false;
                    }
                    if length < buffer.len() && !ended {
                        return true;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Writes what the socket had no room for. A client that pipelines without reading is read no further until it has
    /// read; the socket's own buffers bound what that can hold.
    fn flush(&mut self) -> bool {
        while !self.unwritten.is_empty() {
            match self.stream.write(&self.unwritten) {
                Ok(written) => {
                    self.unwritten.drain(..written);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// How many requests end in these bytes; `None` when they are none.
    #[inline]
    fn requests(&mut self, bytes: &[u8]) -> Option<u32> {
        // The usual case: one request without a body, complete.
        if self.partial.is_empty() && self.body == 0 && bytes.starts_with(b"GET ") {
            let end = memchr::memmem::find(bytes, b"\r\n\r\n").map(|end| end + 4);
            if end == Some(bytes.len()) {
                return Some(1);
            }
        }
        self.count(bytes)
    }

    fn count(&mut self, mut bytes: &[u8]) -> Option<u32> {
        let mut requests = 0;
        loop {
            if self.body > 0 {
                let skipped = bytes.len().min(usize::try_from(self.body).unwrap_or(usize::MAX));
                self.body -= skipped as u64;
                bytes = &bytes[skipped..];
                if self.body > 0 {
                    return Some(requests);
                }
                requests += 1;
            }
            if bytes.is_empty() {
                return Some(requests);
            }
            let before = self.partial.len();
            self.partial.extend_from_slice(bytes);
            let Some(end) = memchr::memmem::find(&self.partial, b"\r\n\r\n").map(|end| end + 4) else {
                return (self.partial.len() <= HEAD_LIMIT).then_some(requests);
            };
            let length = content_length(&self.partial[..end])?;
            bytes = &bytes[end - before..];
            self.partial.clear();
            if length == 0 {
                requests += 1;
            } else {
                self.body = length;
            }
        }
    }
}

/// The length of a request's body; `None` where the head makes no sense to this server.
fn content_length(head: &[u8]) -> Option<u64> {
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        if line[..colon].eq_ignore_ascii_case(b"content-length") {
            return std::str::from_utf8(line[colon + 1..].trim_ascii()).ok()?.parse().ok();
        }
        if line[..colon].eq_ignore_ascii_case(b"transfer-encoding") {
            return None;
        }
    }
    Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests in pieces of every size get as many answers as there are requests.
    #[test]
    fn answers_every_request_however_it_is_cut() {
        let server = Server::start(&Options { threads: 2, ..Options::default() }).expect("a server");
        let requests = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST /e HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloGET /2 HTTP/1.1\r\n\r\n";
        for piece in [1, 3, 26, 27, 50, requests.len()] {
            let mut stream = TcpStream::connect(server.address()).expect("a connection");
            stream.set_nodelay(true).expect("no delay");
            stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).expect("a time-out");
            for part in requests.chunks(piece) {
                stream.write_all(part).expect("written");
            }
            stream.shutdown(std::net::Shutdown::Write).expect("shut");
            let mut answers = String::new();
            stream.read_to_string(&mut answers).expect("answers");
            assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 3, "pieces of {piece}");
            assert!(answers.ends_with(BODY));
        }
    }

    #[test]
    fn ends_the_connection_on_what_is_no_request_to_it() {
        let server = Server::start(&Options::default()).expect("a server");
        let mut stream = TcpStream::connect(server.address()).expect("a connection");
        stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).expect("a time-out");
        stream.write_all(b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n").expect("written");
        let mut answer = Vec::new();
        // A reset is an end as well.
        drop(stream.read_to_end(&mut answer));
        assert!(answer.is_empty());
    }
}
