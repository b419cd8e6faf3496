//! Opening a connection, layer by layer: TCP to the target or its proxy, a tunnel, TLS, HTTP.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use plan::Protocol;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::stamped::{Duplex, Pulse, Stamped};
use super::tls::{self, Fault};
use crate::error::{LoadError, connect_next, connect_words};
use crate::http::{Asked, Reader, excerpt};
use crate::tally::Failure;
use crate::wire::{Job, Transport};

/// The way to a target.
pub struct Way {
    /// The target.
    pub target: SocketAddr,
    /// Value of the `Host` header.
    pub host: String,
    /// How requests travel.
    pub transport: Transport,
    secure: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl Way {
    /// The way that a job's requests take.
    ///
    /// # Errors
    /// When the job contradicts itself, or certificates can't be read.
    pub fn new(job: &Job) -> Result<Self, LoadError> {
        let transport = job.transport.clone();
        if transport.in_flight == 0 || (transport.protocol == Protocol::Http1 && transport.in_flight > 1) {
            return Err(LoadError::job(
                format!("{} requests in flight on each connection were asked for", transport.in_flight),
                "ask for one, or for HTTP/2",
            ));
        }
        if transport.protocol == Protocol::Http2 && !job.keep_alive {
            return Err(LoadError::job(
                "HTTP/2 was asked for together with one connection per request",
                "leave one of them out",
            ));
        }
        let protocol: &[u8] = match transport.protocol {
            Protocol::Http1 => b"http/1.1",
            Protocol::Http2 => b"h2",
        };
        let secure = match &transport.tls {
            None => None,
            Some(tls) => Some((tls::config(tls, &[protocol])?, tls::server_name(tls, &job.host)?)),
        };
        Ok(Self { target: job.target, host: job.host.clone(), transport, secure })
    }

    /// Whether requests go to a proxy in absolute form.
    pub fn is_absolute(&self) -> bool {
        self.transport.proxy.is_some() && self.secure.is_none() && self.transport.protocol == Protocol::Http1
    }

    /// The scheme of its URLs.
    pub fn scheme(&self) -> &'static str {
        if self.secure.is_some() { "https" } else { "http" }
    }
}

/// What requests are given to.
pub enum Sender {
    /// One request at a time.
    Http1(http1::SendRequest<Full<Bytes>>),
    /// Several.
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Sender {
    /// Whether nothing can be sent any more.
    pub fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }
}

/// An open connection.
pub struct Opened {
    /// What requests are given to.
    pub sender: Sender,
    /// What moves its bytes; it ends with the connection.
    pub driver: Pin<Box<dyn Future<Output = Result<(), hyper::Error>>>>,
    /// Its stamps.
    pub pulse: Rc<Pulse>,
    /// Version and cipher suite, with TLS.
    pub agreed: Option<String>,
}

/// Why a connection could not be opened.
pub enum Trouble {
    /// TCP.
    Connect(io::Error),
    /// The proxy refused the tunnel: status, and its words.
    Tunnel(u16, String),
    /// TLS.
    Tls(Fault, String),
    /// HTTP/2, with how the target began.
    NoHttp2(String),
    /// The target allows fewer requests in flight.
    Streams(usize),
    /// Nothing came in time.
    TimedOut(Duration),
}

impl Trouble {
    /// As the failure of the request that would have gone over it.
    pub fn failure(&self) -> Failure {
        match self {
            Self::Connect(error) => Failure::Connect(error.raw_os_error().unwrap_or(libc::EIO)),
            Self::Tunnel(status, _) => Failure::Tunnel(*status),
            Self::Tls(fault, _) => Failure::Tls(*fault),
            Self::NoHttp2(_) | Self::Streams(_) => Failure::NoHttp2,
            Self::TimedOut(_) => Failure::ConnectTimeout,
        }
    }

    /// As what keeps a job from running.
    pub fn error(&self, way: &Way, number: u32, of: u32) -> LoadError {
        let (why, next) = match self {
            Self::Connect(error) => (connect_words(error), connect_next(error)),
            Self::Tunnel(_, words) => {
                (format!("the proxy refused the tunnel: {words}"), "allow CONNECT to this target in the proxy")
            }
            Self::Tls(fault, words) => (words.clone(), fault.next()),
            Self::NoHttp2(beginning) => (
                format!("it does not speak HTTP/2; it began with `{beginning}`"),
                "leave `protocol=http2` (--http2) out, or switch it on at the target",
            ),
            Self::Streams(allowed) => (
                format!(
                    "it allows {allowed} requests in flight on a connection, and {} were asked for",
                    way.transport.in_flight
                ),
                "ask for fewer in flight and more connections",
            ),
            Self::TimedOut(within) => (
                format!("it was not ready within {:.0} s", within.as_secs_f64()),
                match way.secure {
                    Some(_) => {
                        "check that the target speaks TLS on this port, and that it accepts this many connections"
                    }
                    None => "check that the target accepts this many connections, or ask for fewer",
                },
            ),
        };
        let target = match (self, way.transport.proxy) {
            (Self::Connect(_) | Self::Tunnel(..), Some(proxy)) => proxy,
            _ => way.target,
        };
        LoadError::Connect { target, number, of, why, next }
    }
}

/// Opens a connection within a time.
///
/// # Errors
/// The layer that failed.
pub async fn open(way: &Way, within: Duration) -> Result<Opened, Trouble> {
    match tokio::time::timeout(within, layers(way)).await {
        Ok(result) => result,
        Err(_) => Err(Trouble::TimedOut(within)),
    }
}

async fn layers(way: &Way) -> Result<Opened, Trouble> {
    let first = way.transport.proxy.unwrap_or(way.target);
    let mut stream = TcpStream::connect(first).await.map_err(Trouble::Connect)?;
    stream.set_nodelay(true).map_err(Trouble::Connect)?;
    if way.transport.proxy.is_some() && !way.is_absolute() {
        tunnel(&mut stream, way).await?;
    }
    let mut agreed = None;
    let stream: Box<dyn Duplex> = match &way.secure {
        None => Box::new(stream),
        Some((config, name)) => {
            let secured = TlsConnector::from(Arc::clone(config)).connect(name.clone(), stream).await;
            let secured = secured.map_err(|error| {
                let (fault, words) = tls::explain(&error);
                Trouble::Tls(fault, words)
            })?;
            let connection = secured.get_ref().1;
            agreed = Some(tls::agreed(connection));
            let protocol = connection.alpn_protocol();
            if way.transport.protocol == Protocol::Http2 && protocol != Some(b"h2") {
                let chosen =
                    protocol.map_or("nothing in ALPN".into(), |name| String::from_utf8_lossy(name).into_owned());
                return Err(Trouble::NoHttp2(chosen));
            }
            Box::new(secured)
        }
    };
    let pulse = Rc::new(Pulse::default());
    let io = TokioIo::new(Stamped::new(stream, Rc::clone(&pulse)));
    let (sender, driver) = speak(way, io, &pulse).await?;
    Ok(Opened { sender, driver, pulse, agreed })
}

type Driver = Pin<Box<dyn Future<Output = Result<(), hyper::Error>>>>;

async fn speak(way: &Way, io: TokioIo<Stamped>, pulse: &Pulse) -> Result<(Sender, Driver), Trouble> {
    let began = || excerpt(&pulse.beginning.borrow(), 12);
    match way.transport.protocol {
        Protocol::Http1 => {
            let (sender, driver) = http1::Builder::new()
                .title_case_headers(true)
                .handshake(io)
                .await
                .map_err(|error| Trouble::Connect(io::Error::other(error)))?;
            Ok((Sender::Http1(sender), Box::pin(driver)))
        }
        Protocol::Http2 => {
            let (sender, driver) =
                http2::Builder::new(OnThisThread).handshake(io).await.map_err(|_| Trouble::NoHttp2(began()))?;
            let mut driver = Box::pin(driver);
            // The target speaks HTTP/2 when its settings have come; they also say how much may be in flight.
            let settled = tokio::select! {
                biased;
                _ended = &mut driver => false,
                () = pulse.begun.notified() => true,
            };
            if !settled || pulse.beginning.borrow().starts_with(b"HTTP/") {
                return Err(Trouble::NoHttp2(began()));
            }
            let allowed = driver.current_max_send_streams();
            if allowed < way.transport.in_flight as usize {
                return Err(Trouble::Streams(allowed));
            }
            Ok((Sender::Http2(sender), driver))
        }
    }
}

/// Runs hyper's own tasks on this thread.
#[derive(Clone)]
pub struct OnThisThread;

impl<F: Future + 'static> hyper::rt::Executor<F> for OnThisThread {
    fn execute(&self, future: F) {
        // Nobody waits for it: it ends with its connection.
        drop(tokio::task::spawn_local(async move {
            future.await;
        }));
    }
}

/// Asks the proxy for a tunnel to the target (RFC 9110 §9.3.6).
async fn tunnel(stream: &mut TcpStream, way: &Way) -> Result<(), Trouble> {
    let target = way.target;
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(Trouble::Connect)?;
    // An answer to CONNECT has no body, whatever its header says.
    let asked = Asked { is_head: true, keep_body: false };
    let mut reader = Reader::new();
    // Byte by byte: what follows the answer belongs to the target.
    let mut buffer = [0u8; 1];
    let mut came = Vec::new();
    loop {
        let length = stream.read(&mut buffer).await.map_err(Trouble::Connect)?;
        if length == 0 {
            return Err(Trouble::Tunnel(0, "it ended the connection without an answer".into()));
        }
        came.extend_from_slice(&buffer);
        match reader.feed(&buffer, asked) {
            Ok(None) => {}
            Ok(Some(_)) => break,
            Err(_) => return Err(Trouble::Tunnel(0, format!("it answered `{}`", excerpt(&came, 80)))),
        }
    }
    let response = reader.response();
    if (200..300).contains(&response.status) {
        return Ok(());
    }
    Err(Trouble::Tunnel(response.status, format!("it answered `{}`", excerpt(response.status_line(), 80))))
}
