//! io_uring, as far as the generator needs it: sends handed over in batches, receives that stay armed, polls.
//!
//! The ring belongs to one thread and its work is deferred (`SINGLE_ISSUER`, `DEFER_TASKRUN`): the kernel touches the memory that is
//! lent to it within that thread's calls of `io_uring_enter` only.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use io_uring::types::{BufRingEntry, Fd, SubmitArgs, Timespec};
use io_uring::{Builder, IoUring, cqueue, opcode, squeue};

use super::{Event, check};

/// Most sends that are handed over with one system call, and so the most by which a request can leave after the stamp of its own.
pub const SENDS: usize = 64;
/// Entries of the submission queue: a batch of sends, and what their connections may need besides.
const QUEUE: u32 = 256;
/// Room for the requests of a batch, bytes.
const OUTGOING: usize = 64 * 1024;
/// Bytes of one buffer for what comes in.
pub const PIECE: usize = 4 * 1024;
/// Fewest and most of these buffers; a power of two each.
const PIECES: (u16, u16) = (64, 4_096);
/// The group of the buffers; a ring has one.
const GROUP: u16 = 0;
/// What kind of work a completion is of stands between a token's generation and its index.
const KIND_SHIFT: u32 = 24;
const KIND_MASK: u64 = 0xff << KIND_SHIFT;

/// What a completion is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A poll.
    Poll,
    /// A receive.
    Receive,
    /// A send that failed or was cut short: one that succeeds causes no completion.
    Send,
}

impl Kind {
    fn bits(self) -> u64 {
        (self as u64) << KIND_SHIFT
    }
}

/// One completion.
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// The number that the work was given.
    pub token: u64,
    /// What it is of.
    pub kind: Kind,
    /// Bytes, a poll mask, or the negated error code.
    pub result: i32,
    /// The work stays armed: more completions of it follow.
    pub stays: bool,
    /// The buffer that holds what came.
    piece: Option<u16>,
}

impl Completion {
    /// The poll's event; of an error: that there is something to see.
    pub fn event(&self) -> Event {
        Event::of_poll(u32::try_from(self.result).unwrap_or((libc::POLLERR | libc::POLLHUP) as u32), self.token)
    }
}

/// A ring. Tokens are those of epoll; their index is below 2^24.
pub struct Ring {
    // Dropped before the memory that is lent to it.
    ring: IoUring,
    pieces: Pieces,
    outgoing: Vec<u8>,
    sends: usize,
    failed: Option<io::Error>,
}

/// Whether this process may use io_uring as [`Ring`] does.
///
/// # Errors
/// Why not: `EPERM` where it is forbidden, `ENOSYS` where the kernel lacks it, `EINVAL` where it is older than Linux 6.1.
pub fn probe() -> io::Result<()> {
    Ring::new(1).map(drop)
}

impl Ring {
    /// A ring for so many connections, not yet any thread's.
    ///
    /// # Errors
    /// As [`probe`].
    pub fn new(connections: u32) -> io::Result<Self> {
        let completions = connections.saturating_mul(2).clamp(1_024, 16_384).next_power_of_two();
        let mut builder: Builder = IoUring::builder();
        let ring: IoUring = builder
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_r_disabled()
            .setup_cqsize(completions)
            .build(QUEUE)?;
        let count = connections.clamp(PIECES.0.into(), PIECES.1.into()).next_power_of_two() as u16;
        let pieces = Pieces::new(count)?;
        // SAFETY: the entries are mapped, aligned to a page, and unmapped after the ring has been dropped (order of the fields).
        unsafe { ring.submitter().register_buf_ring_with_flags(pieces.base.as_ptr() as u64, count, GROUP, 0)? };
        Ok(Self { ring, pieces, outgoing: Vec::with_capacity(OUTGOING), sends: 0, failed: None })
    }

    /// Makes the calling thread the one that may use the ring from now on.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enable(&self) -> io::Result<()> {
        self.ring.submitter().register_enable_rings()
    }

    /// Queues a send. It is tried once, with the next [`flush`](Self::flush) or [`wait`](Self::wait), and only what it could not send
    /// has a completion: the number of bytes that were sent, or the error.
    #[inline]
    pub fn send(&mut self, socket: BorrowedFd<'_>, bytes: &[u8], token: u64) {
        if self.sends >= SENDS || self.outgoing.len() + bytes.len() > self.outgoing.capacity() {
            self.flush();
            if self.failed.is_some() {
                return;
            }
            // Nothing is queued now: the room may move. The kernel hasn't kept a pointer to it.
            self.outgoing.reserve(bytes.len());
        }
        let at = self.outgoing.len();
        self.outgoing.extend_from_slice(bytes);
        self.sends += 1;
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        // Tried once, like a write to a non-blocking socket, because of DONTWAIT: never left pending. With WAITALL a send that is cut short
        // counts as failed and so has a completion.
        let send = opcode::Send::new(Fd(socket.as_raw_fd()), self.outgoing[at..].as_ptr(), length)
            .flags(libc::MSG_DONTWAIT | libc::MSG_WAITALL | libc::MSG_NOSIGNAL)
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS);
        self.push(send, token | Kind::Send.bits());
    }

    /// Arms a receive: whatever comes has completions, until one of them says that it does not stay armed.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, token: u64) {
        let receive = opcode::RecvMulti::new(Fd(socket.as_raw_fd()), GROUP).build();
        self.push(receive, token | Kind::Receive.bits());
    }

    /// Waits once until a socket may have room to write.
    pub fn poll_writable(&mut self, socket: BorrowedFd<'_>, token: u64) {
        self.poll(socket.as_raw_fd(), libc::POLLOUT, false, token);
    }

    /// Watches a socket as an edge-triggered epoll does.
    pub fn poll_all(&mut self, socket: BorrowedFd<'_>, token: u64) {
        self.poll(socket.as_raw_fd(), libc::POLLIN | libc::POLLOUT | libc::POLLRDHUP, true, token);
    }

    fn poll(&mut self, socket: RawFd, events: libc::c_short, stays: bool, token: u64) {
        let poll = opcode::PollAdd::new(Fd(socket), events as u32).multi(stays).build();
        self.push(poll, token | Kind::Poll.bits());
    }

    /// Ends all work on a socket that is about to be closed: the ring would otherwise keep it open.
    pub fn release(&mut self, socket: BorrowedFd<'_>) {
        // What is queued names it by its number, which may be another's soon.
        self.flush();
        // SAFETY: touches no memory. A socket that is not connected any more is refused, and has no work that waits.
        unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
    }

    fn push(&mut self, entry: squeue::Entry, user_data: u64) {
        let entry = entry.user_data(user_data);
        if self.ring.submission().is_full() {
            self.flush();
        }
        // SAFETY: a send points into `outgoing`, which neither moves nor changes while anything is queued, and the kernel is done with it
        // when the entry has been submitted: it is tried once. Receives use `pieces`, which outlive the ring. Polls have no memory. Sockets
        // are named by number: a wrong one is an error of the work. A queue that is still full has failed, and the ring is of no use.
        let _pushed = unsafe { self.ring.submission().push(&entry) };
    }

    /// Hands over what is queued. A failure is told by the next [`wait`](Self::wait).
    pub fn flush(&mut self) {
        while !self.ring.submission().is_empty() {
            match self.ring.submit() {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failed = Some(error);
                    return;
                }
            }
        }
        self.outgoing.clear();
        self.sends = 0;
    }

    /// Hands over what is queued and waits for a completion, at most `timeout_ms` (0: not at all). Says how many are there to be
    /// [taken](Self::pop); `None` when a signal may have ended the wait.
    ///
    /// # Errors
    /// When the kernel refuses.
    #[inline]
    pub fn wait(&mut self, timeout_ms: u32) -> io::Result<Option<usize>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let timeout = Timespec::from(Duration::from_millis(timeout_ms.into()));
        let entered =
            self.ring.submitter().submit_with_args(usize::from(timeout_ms > 0), &SubmitArgs::new().timespec(&timeout));
        // What a call that was interrupted may have left.
        self.flush();
        let there = self.ring.completion().len();
        match entered {
            // A wait that also handed something over does not tell how it ended.
            Ok(_) => Ok((there > 0 || timeout_ms == 0).then_some(there)),
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME) => Ok(Some(there)),
                // Busy: completions have to be taken first.
                Some(libc::EBUSY) if there > 0 => Ok(Some(there)),
                Some(libc::EINTR) => Ok((there > 0).then_some(there)),
                _ => Err(error),
            },
        }
    }

    /// The next completion that is there.
    #[inline]
    pub fn pop(&mut self) -> Option<Completion> {
        let entry = self.ring.completion().next()?;
        let (data, flags) = (entry.user_data(), entry.flags());
        let kind = match (data & KIND_MASK) >> KIND_SHIFT {
            0 => Kind::Poll,
            1 => Kind::Receive,
            _ => Kind::Send,
        };
        Some(Completion {
            token: data & !KIND_MASK,
            kind,
            result: entry.result(),
            stays: cqueue::more(flags),
            piece: cqueue::buffer_select(flags),
        })
    }

    /// Moves what a receive brought into a buffer of at least [`PIECE`] bytes, and gives its place back to the kernel. To be called once
    /// for each completion; returns the number of bytes.
    #[inline]
    pub fn take(&mut self, completion: &Completion, into: &mut [u8]) -> usize {
        let Some(piece) = completion.piece else { return 0 };
        let length = usize::try_from(completion.result).unwrap_or(0).min(PIECE).min(into.len());
        into[..length].copy_from_slice(&self.pieces.bytes(piece)[..length]);
        self.pieces.give(piece);
        length
    }
}

/// The buffers for what comes in, and the queue by which they go to the kernel: one mapping.
struct Pieces {
    base: NonNull<BufRingEntry>,
    count: u16,
    tail: u16,
}

// SAFETY: the mapping belongs to this value alone, on whatever thread it is.
unsafe impl Send for Pieces {}

impl Pieces {
    fn new(count: u16) -> io::Result<Self> {
        let length = Self::length(count);
        // SAFETY: a new anonymous mapping, at a place of the kernel's choice.
        let place = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let base = NonNull::new(place.cast()).filter(|_| place != libc::MAP_FAILED);
        let base = base.ok_or_else(io::Error::last_os_error)?;
        let mut pieces = Self { base, count, tail: 0 };
        (0..count).for_each(|piece| pieces.give(piece));
        Ok(pieces)
    }

    fn queue_length(count: u16) -> usize {
        // Whole pages: the buffers begin after it.
        (usize::from(count) * size_of::<BufRingEntry>()).next_multiple_of(PIECE)
    }

    fn length(count: u16) -> usize {
        Self::queue_length(count) + usize::from(count) * PIECE
    }

    fn place(&self, piece: u16) -> NonNull<u8> {
        let offset = Self::queue_length(self.count) + usize::from(piece % self.count) * PIECE;
        // SAFETY: the offset is inside the mapping, whose length counts the queue and all pieces.
        unsafe { self.base.cast::<u8>().add(offset) }
    }

    /// A piece that the kernel has handed out and not got back.
    fn bytes(&self, piece: u16) -> &[u8] {
        // SAFETY: inside the mapping, zeroed at first; the kernel does not write it until it is given back, which takes `&mut self`.
        unsafe { std::slice::from_raw_parts(self.place(piece).as_ptr(), PIECE) }
    }

    /// Gives a piece to the kernel.
    fn give(&mut self, piece: u16) {
        let address = self.place(piece).as_ptr() as u64;
        // SAFETY: the index is below `count`, so the entry is inside the mapping; the kernel reads entries below the tail only. The tail
        // overlays a field of the first entry that none of the setters touches, is aligned, and is shared with the kernel alone.
        unsafe {
            let entry = &mut *self.base.as_ptr().add(usize::from(self.tail & (self.count - 1)));
            entry.set_addr(address);
            entry.set_len(PIECE as u32);
            entry.set_bid(piece % self.count);
            self.tail = self.tail.wrapping_add(1);
            AtomicU16::from_ptr(BufRingEntry::tail(self.base.as_ptr()).cast_mut()).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made, of the same length; nothing refers to it any more.
        let result = unsafe { libc::munmap(self.base.as_ptr().cast(), Self::length(self.count)) };
        debug_assert!(check(result).is_ok());
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let one = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        (one, listener.accept().expect("accepted").0)
    }

    fn ring() -> Ring {
        let ring = Ring::new(4).expect("a ring");
        ring.enable().expect("enabled");
        ring
    }

    fn completion(ring: &mut Ring) -> Completion {
        for _ in 0..100 {
            if let Some(completion) = ring.pop() {
                return completion;
            }
            ring.wait(100).expect("a wait");
        }
        panic!("no completion within ten seconds")
    }

    #[test]
    fn what_is_sent_arrives_and_what_comes_is_received_until_the_end() {
        let (mut ring, (own, mut other)) = (ring(), pair());
        let mut buffer = vec![0; PIECE];
        let token = 7 << 32 | 3;
        ring.receive(own.as_fd(), token);
        // More rounds than there are pieces: each is given back.
        for round in 0..u32::from(PIECES.0) * 3 {
            ring.send(own.as_fd(), &round.to_le_bytes(), token);
            ring.flush();
            let mut got = [0; 4];
            other.read_exact(&mut got).expect("read");
            other.write_all(&got).expect("written");
            let came = completion(&mut ring);
            assert_eq!((came.token, came.kind, came.result, came.stays), (token, Kind::Receive, 4, true));
            assert_eq!(ring.take(&came, &mut buffer), 4);
            assert_eq!(buffer[..4], round.to_le_bytes());
        }
        drop(other);
        let came = completion(&mut ring);
        assert_eq!((came.kind, came.result, came.stays), (Kind::Receive, 0, false));
        assert_eq!(ring.wait(1).expect("a wait"), Some(0), "nothing else, and sends that succeed say nothing");
    }

    #[test]
    fn a_send_is_tried_once_and_says_what_it_did_not_send() {
        let (mut ring, (own, mut other)) = (ring(), pair());
        let large = vec![b'x'; 64 << 20];
        ring.send(own.as_fd(), &large, 5);
        let cut = completion(&mut ring);
        assert_eq!((cut.token, cut.kind), (5, Kind::Send));
        assert!(cut.result > 0 && (cut.result as usize) < large.len(), "{}", cut.result);
        ring.send(own.as_fd(), b"full", 6);
        assert_eq!(completion(&mut ring).result, -libc::EAGAIN);
        ring.poll_writable(own.as_fd(), 8);
        assert_eq!(ring.wait(1).expect("a wait").unwrap_or(0), 0, "there is no room");
        let mut got = vec![0; cut.result as usize];
        other.read_exact(&mut got).expect("read");
        let writable = completion(&mut ring);
        assert_eq!((writable.token, writable.kind, writable.stays), (8, Kind::Poll, false));
        assert!(writable.event().is_writable() && !writable.event().is_ended());
        drop(other);
        ring.poll_all(own.as_fd(), 9);
        assert!(completion(&mut ring).event().is_ended());
    }

    #[test]
    fn a_released_socket_ends_its_work_and_is_closed_for_the_other_side() {
        let (mut ring, (own, mut other)) = (ring(), pair());
        ring.receive(own.as_fd(), 1);
        assert_eq!(ring.wait(1).expect("a wait").unwrap_or(0), 0);
        ring.send(own.as_fd(), b"last", 1);
        ring.release(own.as_fd());
        drop(own);
        let mut got = Vec::new();
        other.read_to_end(&mut got).expect("the end");
        assert_eq!(got, b"last", "what was queued for it went to it");
        assert_eq!(completion(&mut ring).result, 0);
    }

    #[test]
    fn buffers_that_run_out_cost_another_receive_and_no_bytes() {
        let (mut ring, (own, mut other)) = (ring(), pair());
        let sent: Vec<u8> = (0..usize::from(PIECES.0) * PIECE * 2).map(|at| (at / PIECE) as u8).collect();
        let expected = sent.clone();
        let sender = std::thread::spawn(move || other.write_all(&sent).map(|()| other));
        ring.receive(own.as_fd(), 2);
        let (mut got, mut buffer, mut ended) = (Vec::new(), vec![0; PIECE], 0);
        // Lets them run out first: nothing is taken while the first wait goes on and the other side sends.
        for _ in 0..200 {
            ring.wait(10).expect("a wait");
            if ring.ring.completion().len() > usize::from(PIECES.0) {
                break;
            }
        }
        while got.len() < expected.len() {
            let came = completion(&mut ring);
            let length = ring.take(&came, &mut buffer);
            got.extend_from_slice(&buffer[..length]);
            if !came.stays {
                assert!(came.result == -libc::ENOBUFS || came.result > 0, "{}", came.result);
                ended += 1;
                ring.receive(own.as_fd(), 2);
            }
        }
        assert!(got == expected, "bytes in another order");
        assert!(ended > 0, "twice as much as the buffers hold");
        drop(sender.join().expect("no panic").expect("all sent"));
    }
}
