//! One request, one answer: for contract cases and for asking whether a candidate is ready. Plain blocking sockets.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plan::{Expect, Request, Tls};
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use crate::check::{CONTENT_ENCODING, Checks, Scratch, decode};
use crate::error::{LoadError, connect_words};
use crate::http::{self, Asked, Reader, excerpt};
use crate::layered;
use crate::parameter::{Parameters, Values};
use crate::request::{Names, Template};

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Status.
    pub status: u16,
    /// Headers in order, names as they came.
    pub headers: Vec<(String, String)>,
    /// The body, decoded.
    pub body: Vec<u8>,
    /// Status line and headers as they came.
    pub head: Vec<u8>,
}

/// Why a single request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum SingleError {
    /// The request can't be sent as it is written.
    #[error(transparent)]
    Request(#[from] LoadError),
    /// No connection.
    #[error("no connection to {target}: {why}")]
    Connect {
        /// The target.
        target: SocketAddr,
        /// Why, in plain words.
        why: String,
    },
    /// The connection broke or ended.
    #[error("{target} ended the connection {when}: {why}")]
    Broken {
        /// The target.
        target: SocketAddr,
        /// At which point.
        when: &'static str,
        /// Why, in plain words.
        why: String,
    },
    /// The time was up.
    #[error("{target} gave no complete answer within {timeout:?}; {received} bytes of it had come")]
    TimedOut {
        /// The target.
        target: SocketAddr,
        /// The time given.
        timeout: Duration,
        /// Bytes that had come.
        received: u64,
    },
    /// What came is no answer.
    #[error("{target} sent what is no answer: {why}; it begins `{start}`")]
    Protocol {
        /// The target.
        target: SocketAddr,
        /// What is wrong with it.
        why: &'static str,
        /// How it begins.
        start: String,
    },
}

/// A connection, with TLS or without.
enum Link {
    Plain(TcpStream),
    Secure(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Link {
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Secure(stream) => &stream.sock,
        }
    }
}

impl Read for Link {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            // An end without a farewell is an end: whether the answer was complete is judged by its framing.
            Self::Secure(stream) => match stream.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                result => result,
            },
        }
    }
}

impl Write for Link {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Secure(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Secure(stream) => stream.flush(),
        }
    }
}

/// Sends one request on a connection of its own, over TLS where that is declared, and reads the answer.
///
/// # Errors
/// When the request can't be sent, or no complete answer comes within `timeout`.
pub fn single_shot(
    target: SocketAddr,
    host: &str,
    request: &Request,
    tokens: &BTreeMap<String, String>,
    variables: &BTreeMap<String, String>,
    timeout: Duration,
    tls: Option<&Tls>,
) -> Result<Response, SingleError> {
    let secure = match tls {
        None => None,
        Some(tls) => Some((layered::tls::config(tls, &[b"http/1.1"])?, layered::tls::server_name(tls, host)?)),
    };
    let parameters = Parameters::new(&[], 0, 0)?;
    let template = Template::new(request, host, tokens, Names { variables, parameters: &[] }, &parameters)?;
    let mut bytes = Vec::new();
    template.render(&Values::default(), &mut bytes);
    let deadline = Instant::now() + timeout;
    let mut received = 0u64;
    // A zero time-out would mean "none" to the socket.
    let left = |received: u64| match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(SingleError::TimedOut { target, timeout, received }),
        left => Ok(left),
    };
    let broken = |when: &'static str, received: u64| {
        move |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => SingleError::TimedOut { target, timeout, received },
            _ => SingleError::Broken { target, when, why: error.to_string() },
        }
    };
    let socket = TcpStream::connect_timeout(&target, left(0)?)
        .map_err(|error| SingleError::Connect { target, why: connect_words(&error) })?;
    socket.set_nodelay(true).map_err(broken("at once", 0))?;
    socket.set_write_timeout(Some(left(0)?)).map_err(broken("at once", 0))?;
    let mut stream = match secure {
        None => Link::Plain(socket),
        Some((config, name)) => {
            socket.set_read_timeout(Some(left(0)?)).map_err(broken("at once", 0))?;
            let mut connection = ClientConnection::new(config, name)
                .map_err(|error| SingleError::Connect { target, why: format!("TLS can't be begun: {error}") })?;
            let mut socket = socket;
            while connection.is_handshaking() {
                connection.complete_io(&mut socket).map_err(|error| match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                        SingleError::TimedOut { target, timeout, received: 0 }
                    }
                    _ => {
                        let (fault, words) = layered::tls::explain(&error);
                        SingleError::Connect { target, why: format!("{words}; {}", fault.next()) }
                    }
                })?;
            }
            Link::Secure(Box::new(StreamOwned::new(connection, socket)))
        }
    };
    let written = stream.write_all(&bytes).and_then(|()| stream.flush());
    let mut reader = Reader::new();
    let asked = Asked { is_head: template.is_head(), keep_body: true };
    let mut buffer = [0u8; 16 * 1024];
    let mut start = Vec::new();
    loop {
        stream.socket().set_read_timeout(Some(left(received)?)).map_err(broken("while it was read", received))?;
        let length = match stream.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(broken("before its answer was complete", received)(error)),
        };
        if length == 0 {
            if reader.end() {
                break;
            }
            written.map_err(broken("before the request was sent", received))?;
            return Err(SingleError::Broken {
                target,
                when: if received == 0 { "before an answer" } else { "in the middle of its answer" },
                why: format!("{received} bytes had come"),
            });
        }
        received += length as u64;
        if start.len() < 200 {
            start.extend_from_slice(&buffer[..length]);
        }
        let protocol = |violation: http::Violation| SingleError::Protocol {
            target,
            why: violation.words(),
            start: excerpt(&start, 200),
        };
        match reader.feed(&buffer[..length], asked).map_err(protocol)? {
            Some(used) if used < length => return Err(protocol(http::Violation::Excess)),
            Some(_) => break,
            None => {}
        }
    }
    let response = reader.response();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut decoded = Vec::new();
    let body = match decode(&response, request.accept_gzip, &mut decoded) {
        Ok(whole) => whole.body,
        Err(_) => {
            return Err(SingleError::Protocol {
                target,
                why: "its body is not compressed as the request asked and its header says",
                start: excerpt(&start, 200),
            });
        }
    };
    // What has been decoded is not compressed any more.
    let is_decoded = !std::ptr::eq(body, response.body);
    let head = response.head.split_inclusive(|byte| *byte == b'\n').filter(|line| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        !(is_decoded && name.eq_ignore_ascii_case(CONTENT_ENCODING.as_bytes()))
    });
    let head = head.flatten().copied().collect();
    Ok(Response {
        status: response.status,
        headers: response.headers().map(|(name, value)| (text(name), text(value))).collect(),
        body: body.to_vec(),
        head,
    })
}

/// What an answer should have been and what came, or `None` when it is as expected. An expectation that can't be checked counts as
/// not met.
pub fn check(expect: &Expect, response: &Response, variables: &BTreeMap<String, String>) -> Option<String> {
    let checks = match Checks::new(expect, false, Names { variables, parameters: &[] }) {
        Ok(checks) => checks,
        Err(error) => return Some(error.to_string()),
    };
    let came = http::Response {
        status: response.status,
        head: &response.head,
        body: &response.body,
        body_length: response.body.len() as u64,
        persists: false,
    };
    let values = Values::default();
    checks
        .verify(&came, &values, &mut Scratch::default())
        .err()
        .map(|mismatch| checks.explain(mismatch, &came, &values))
}
