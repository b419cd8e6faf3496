//! A connection's bytes with their instants: the stamps of the requests on it are taken here, at the write that carries a
//! request and at the read that completes its answer, not where hyper was asked or answers.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::sys;

/// Bytes in both directions: a socket, with TLS or a tunnel below or without.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

/// A request on its way.
#[derive(Debug, Default)]
pub struct Flight {
    /// Just before the write that carried it; before that, when hyper was given it.
    pub sent: Cell<u64>,
    /// Whether that write has happened.
    pub written: Cell<bool>,
}

/// What a connection's bytes tell.
#[derive(Debug, Default)]
pub struct Pulse {
    /// Just after the last read that brought something.
    pub last_read: Cell<u64>,
    /// Just after the first read since the last write of a request; 0: none yet.
    pub first_read: Cell<u64>,
    /// How the target began: enough to tell who speaks.
    pub beginning: RefCell<Vec<u8>>,
    /// Told when it has begun.
    pub begun: tokio::sync::Notify,
    /// Requests that hyper was given since the last write.
    given: RefCell<Vec<Rc<Flight>>>,
}

/// Bytes of the beginning that are kept.
const BEGINNING: usize = 12;

impl Pulse {
    /// A request is about to be given to hyper.
    pub fn give(&self, flight: Rc<Flight>) {
        self.given.borrow_mut().push(flight);
    }

    fn writes(&self) {
        let mut given = self.given.borrow_mut();
        if !given.is_empty() {
            let now = sys::now_ns();
            for flight in given.drain(..) {
                flight.sent.set(now);
                flight.written.set(true);
            }
            self.first_read.set(0);
        }
    }

    fn has_read(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let now = sys::now_ns();
        self.last_read.set(now);
        if self.first_read.get() == 0 {
            self.first_read.set(now);
        }
        let mut beginning = self.beginning.borrow_mut();
        let room = BEGINNING - beginning.len();
        if beginning.is_empty() {
            self.begun.notify_one();
        }
        if room > 0 {
            beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }
}

/// A connection whose reads and writes are stamped.
pub struct Stamped {
    inner: Box<dyn Duplex>,
    pulse: Rc<Pulse>,
}

impl Stamped {
    /// Stamps the bytes of a connection.
    pub fn new(inner: Box<dyn Duplex>, pulse: Rc<Pulse>) -> Self {
        Self { inner, pulse }
    }
}

impl AsyncRead for Stamped {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if matches!(polled, Poll::Ready(Ok(()))) {
            self.pulse.has_read(&buffer.filled()[before..]);
        }
        polled
    }
}

impl AsyncWrite for Stamped {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.pulse.writes();
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.pulse.writes();
        Pin::new(&mut self.inner).poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
