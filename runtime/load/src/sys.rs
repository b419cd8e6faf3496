//! The kernel's side: clock, epoll, timerfd, affinity, CPU time, limits. The only module with `unsafe`.
//!
//! Each function is one system call with its error turned into [`io::Error`]; nothing here decides anything.

pub mod uring;

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Now on CLOCK_MONOTONIC, ns. Read through the vDSO: no system call on the machines this runs on.
#[inline]
pub fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time that the calling thread has used, ns.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[inline]
fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `time` is a valid place for a timespec; the clocks asked for exist on every Linux, so the call fills it.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Sleeps until an instant of CLOCK_MONOTONIC. May return earlier when a signal comes.
pub fn sleep_until(at_ns: u64) {
    let at = timespec(at_ns);
    // SAFETY: `at` is a valid timespec for the length of the call, and a null remainder is allowed with TIMER_ABSTIME.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const at, std::ptr::null_mut());
    }
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as libc::time_t, tv_nsec: (ns % 1_000_000_000) as libc::c_long }
}

/// Asks for wake-ups at the very instant: the default slack of 50 µs would be added to every sleep of this thread.
pub fn set_least_timer_slack() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches no memory of ours.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0);
    }
}

/// Lets the calling thread run only where no other wants to (SCHED_IDLE). Where the kernel refuses, it runs as before.
pub fn give_way() {
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: `priority` is valid to read for the length of the call, and 0 names the calling thread.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const priority);
    }
}

/// Now on CLOCK_REALTIME, ns since 1970.
pub fn wall_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

/// The CPUs that the calling thread may run on.
///
/// # Errors
/// When the kernel refuses.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    // SAFETY: an all-zero cpu_set_t is an empty set; the kernel writes at most the size that is passed; CPU_ISSET is asked
    // for numbers below CPU_SETSIZE only.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        check(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set))?;
        Ok((0..libc::CPU_SETSIZE as u32).filter(|cpu| libc::CPU_ISSET(*cpu as usize, &set)).collect())
    }
}

/// Pins the calling thread to one CPU.
///
/// # Errors
/// When the CPU doesn't exist or the thread may not run there.
pub fn pin_to_cpu(cpu: u32) -> io::Result<()> {
    if cpu as usize >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: an all-zero cpu_set_t is an empty set; CPU_SET stays inside it because `cpu` < CPU_SETSIZE (checked above);
    // the kernel reads exactly the size that is passed.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    check(result).map(drop)
}

/// What the calling thread has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// CPU time in user space and kernel, ns.
    pub cpu_ns: u64,
    /// Part of it in user space, ns.
    pub user_ns: u64,
    /// Times that it was taken off its CPU though it could run.
    pub involuntary_switches: u64,
}

/// Reads the calling thread's usage. The total comes from the thread's CPU clock, which is exact; the kernel only
/// scales its split into user and system to that total.
///
/// # Errors
/// When the kernel refuses.
pub fn thread_usage() -> io::Result<Usage> {
    let usage = usage_of(libc::RUSAGE_THREAD)?;
    Ok(Usage { cpu_ns: thread_cpu_ns(), ..usage })
}

/// What the children that have ended and were waited for have used.
///
/// # Errors
/// When the kernel refuses.
pub fn children_usage() -> io::Result<Usage> {
    usage_of(libc::RUSAGE_CHILDREN)
}

fn usage_of(whom: libc::c_int) -> io::Result<Usage> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a valid place for an rusage, and all-zero is a valid one should the call fail.
    let (result, usage) = unsafe {
        let result = libc::getrusage(whom, usage.as_mut_ptr());
        (result, usage.assume_init())
    };
    check(result)?;
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    Ok(Usage {
        cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
        user_ns: ns(usage.ru_utime),
        involuntary_switches: usage.ru_nivcsw.max(0) as u64,
    })
}

/// Raises the limit of open files to what this process may have, and returns the limit then in force.
///
/// # Errors
/// When the kernel refuses.
pub fn raise_open_files() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit to fill.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: `limit` is a valid rlimit to read.
        check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    }
    Ok(limit.rlim_cur)
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// One event: what happened, and the number that the file was registered with.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Event(libc::epoll_event);

impl Event {
    /// No event; what an event buffer is filled with at first.
    pub const NONE: Self = Self(libc::epoll_event { events: 0, u64: 0 });

    /// The event of a poll(2) mask, whose bits are those of epoll.
    #[inline]
    pub fn of_poll(mask: u32, token: u64) -> Self {
        Self(libc::epoll_event { events: mask, u64: token })
    }

    /// The number that the file was registered with.
    #[inline]
    pub fn token(&self) -> u64 {
        self.0.u64
    }

    /// There may be something to read: data, an end, or an error.
    #[inline]
    pub fn is_readable(&self) -> bool {
        self.0.events & (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
    }

    /// There may be room to write, or a connection attempt has ended.
    #[inline]
    pub fn is_writable(&self) -> bool {
        self.0.events & (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
    }

    /// The other side has ended the connection: after the data that is there, nothing comes.
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.0.events & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
    }
}

/// Asks the kernel to note when bytes arrive on a socket (SO_TIMESTAMPNS), for [`receive_timed`].
///
/// # Errors
/// When the kernel refuses.
pub fn time_arrivals(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open for the length of the call, and the kernel reads exactly the size that is passed.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Reads from a socket, and says how long the last of the bytes that were read had lain in the kernel, ns. `None` where the kernel gave
/// no timestamp, or the wall clock was set back meanwhile.
///
/// # Errors
/// As `read`.
pub fn receive_timed(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    // Aligned as a cmsghdr has to be, and with room for more than the one message of 32 bytes that is asked for.
    let mut control = [0u64; 8];
    let mut parts = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all-zero is a valid msghdr; its pointers are set to memory that outlives the call, with its true sizes.
    let (length, arrived) = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut parts;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let length = libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0);
        if length < 0 {
            return Err(io::Error::last_os_error());
        }
        (length as usize, arrival(&message))
    };
    Ok((length, arrived.and_then(|arrived| wall_ns().checked_sub(arrived))))
}

/// The receive timestamp among a message's control messages.
///
/// # Safety
/// The message's control buffer is valid, and was filled by the kernel.
unsafe fn arrival(message: &libc::msghdr) -> Option<u64> {
    // SAFETY: the CMSG functions walk the buffer that the kernel has filled and stay inside its length; a message of this type carries a
    // timespec, which need not be aligned.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(found) = header.as_ref() {
            if found.cmsg_level == libc::SOL_SOCKET && found.cmsg_type == libc::SCM_TIMESTAMPNS {
                let time = libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
                // Zero stands for none: the kernel begins to take timestamps a moment after the first socket asked for them.
                if time.tv_sec == 0 {
                    return None;
                }
                return Some((time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64));
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    None
}

/// What a file is watched for. Both are edge-triggered and registered once: no further `epoll_ctl` ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Data, and the end.
    Read,
    /// Data, the end, and room to write. A socket whose buffer never fills up causes no event for the latter but its first.
    ReadWrite,
}

/// An epoll instance.
pub struct Epoll(OwnedFd);

impl Epoll {
    /// A new instance.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes a flag, returns a new descriptor or -1.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Watches a file, edge-triggered, until it is closed.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn add(&self, file: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        let events = match interest {
            Interest::Read => libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET,
            Interest::ReadWrite => libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET,
        };
        let mut event = libc::epoll_event { events: events as u32, u64: token };
        // SAFETY: both descriptors are open for the length of the call, and `event` is valid to read.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, file.as_raw_fd(), &raw mut event) })
            .map(drop)
    }

    /// Waits for events, at most `timeout_ms` (0: not at all), and returns how many came. A signal counts as none.
    ///
    /// # Errors
    /// When the kernel refuses.
    #[inline]
    pub fn wait(&self, events: &mut [Event], timeout_ms: u32) -> io::Result<usize> {
        self.wait_or_signal(events, timeout_ms).map(|count| count.unwrap_or(0))
    }

    /// The same, but `None` when a signal ended the wait. Being stopped and continued does so, too, without any handler (signal(7)): the
    /// wait is over, events or not, and how long the process was stopped is for the caller to see by the clock.
    ///
    /// # Errors
    /// When the kernel refuses.
    #[inline]
    pub fn wait_or_signal(&self, events: &mut [Event], timeout_ms: u32) -> io::Result<Option<usize>> {
        let room = i32::try_from(events.len()).unwrap_or(i32::MAX);
        let timeout = i32::try_from(timeout_ms).unwrap_or(i32::MAX);
        // SAFETY: `Event` is transparent over epoll_event, and the kernel writes at most `room` of them.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr().cast(), room, timeout) };
        if count >= 0 {
            return Ok(Some(count as usize));
        }
        let error = io::Error::last_os_error();
        if error.kind() == io::ErrorKind::Interrupted { Ok(None) } else { Err(error) }
    }
}

/// A timer that an [`Epoll`] can watch. Edge-triggered, so it needs no reading.
pub struct Timer(OwnedFd);

impl Timer {
    /// A new timer, not set.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes two flags, returns a new descriptor or -1.
        let fd = check(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) })?;
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sets the timer to an instant of CLOCK_MONOTONIC; an instant that has passed fires at once.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set(&self, at_ns: u64) -> io::Result<()> {
        let at = libc::itimerspec { it_interval: timespec(0), it_value: timespec(at_ns.max(1)) };
        // SAFETY: `at` is valid to read; the old value isn't asked for.
        check(unsafe {
            libc::timerfd_settime(self.0.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &raw const at, std::ptr::null_mut())
        })
        .map(drop)
    }
}

/// A timer that a task of tokio's can wait for, to the microsecond where tokio's own go by milliseconds.
pub struct Alarm(tokio::io::unix::AsyncFd<Timer>);

impl Alarm {
    /// A new alarm, watched by the runtime that this is called in.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the timer owns its descriptor, gives the same one each time that it is asked, and nobody takes it out or
        // replaces it before the alarm is dropped.
        let watched = unsafe { tokio::io::unix::AsyncFd::register(Timer::new()?) };
        Ok(Self(watched.map_err(|error| error.into_parts().1)?))
    }

    /// Sleeps until an instant of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub async fn sleep_until(&self, at_ns: u64) -> io::Result<()> {
        self.0.get_ref().set(at_ns)?;
        loop {
            let mut fired = self.0.readable().await?;
            // Edge-triggered: what was left of an earlier setting is told from this one's by the clock.
            fired.clear_ready();
            if now_ns() >= at_ns {
                return Ok(());
            }
        }
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_and_sleeping_reaches_the_instant() {
        let start = now_ns();
        sleep_until(start + 5_000_000);
        assert!(now_ns() >= start + 5_000_000);
        let cpu = thread_cpu_ns();
        let mut sum = 0u64;
        for value in 0..1_000_000u64 {
            sum = std::hint::black_box(sum.wrapping_add(value));
        }
        assert!(thread_cpu_ns() > cpu);
        assert!(thread_usage().expect("the usage of this thread").cpu_ns > cpu);
    }

    #[test]
    fn a_timer_wakes_an_epoll_once_per_setting() {
        let (epoll, timer) = (Epoll::new().expect("an epoll"), Timer::new().expect("a timer"));
        epoll.add(timer.as_fd(), 9, Interest::Read).expect("watched");
        let mut events = [Event::NONE; 4];
        for _ in 0..3 {
            let at = now_ns() + 2_000_000;
            timer.set(at).expect("set");
            assert_eq!(epoll.wait(&mut events, 1_000).expect("a wait"), 1);
            assert_eq!(events[0].token(), 9);
            assert!(now_ns() >= at);
            assert_eq!(epoll.wait(&mut events, 0).expect("a wait"), 0, "no second event without a second setting");
        }
    }

    #[test]
    fn whatever_passes_memory_to_the_kernel_gets_sense_back() {
        set_least_timer_slack();
        assert!(wall_ns() > 1_600_000_000_000_000_000);
        assert!(children_usage().expect("the usage of children").cpu_ns >= children_usage().expect("the same").user_ns);
        assert!(raise_open_files().expect("the limit of open files") > 0);
        let cpus = allowed_cpus().expect("the CPUs of this thread");
        assert!(!cpus.is_empty() && cpus.is_sorted(), "{cpus:?}");
        std::thread::spawn(give_way).join().expect("no panic");
    }

    #[test]
    fn an_alarm_wakes_its_task_at_the_instant_and_not_before() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let alarm = Alarm::new().expect("an alarm");
            for _ in 0..3 {
                let at = now_ns() + 1_500_000;
                alarm.sleep_until(at).await.expect("slept");
                assert!(now_ns() >= at);
            }
            // Given up before it fired: the next setting holds.
            let far = now_ns() + 60_000_000_000;
            drop(tokio::time::timeout(std::time::Duration::from_millis(1), alarm.sleep_until(far)).await);
            let at = now_ns() + 1_500_000;
            alarm.sleep_until(at).await.expect("slept");
            assert!((at..far).contains(&now_ns()));
        });
    }

    #[test]
    fn pinning_to_a_cpu_that_does_not_exist_is_an_error() {
        assert!(pin_to_cpu(1_023).is_err());
        assert!(pin_to_cpu(u32::MAX).is_err());
        std::thread::spawn(|| pin_to_cpu(0).expect("CPU 0 exists")).join().expect("no panic");
    }

    #[test]
    fn bytes_that_lie_in_the_kernel_say_how_long() {
        use std::io::Write;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut sender = std::net::TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let receiver = listener.accept().expect("accepted").0;
        let mut buffer = [0; 16];
        sender.write_all(b"untimed").expect("sent");
        assert_eq!(receive_timed(receiver.as_fd(), &mut buffer).expect("read"), (7, None), "nobody asked for it");
        time_arrivals(receiver.as_fd()).expect("asked");
        // The kernel begins to take timestamps a moment after the first socket asked for them.
        let began = (0..1_000).any(|_| {
            sender.write_all(b"timed").expect("sent");
            let timed = receive_timed(receiver.as_fd(), &mut buffer).expect("read").1.is_some();
            sleep_until(now_ns() + if timed { 0 } else { 2_000_000 });
            timed
        });
        assert!(began, "a thousand messages over two seconds without a timestamp");
        for pause_ms in [0, 30] {
            let before = now_ns();
            sender.write_all(b"timed").expect("sent");
            sleep_until(now_ns() + pause_ms * 1_000_000);
            let (length, waited) = receive_timed(receiver.as_fd(), &mut buffer).expect("read");
            let most = now_ns() - before;
            let waited = waited.expect("a timestamp");
            assert_eq!(length, 5);
            // Arrived after it was sent, and before the pause: as far as the wall clock runs like the monotonic one.
            assert!(waited <= most + 1_000_000, "{waited} of at most {most} ns");
            assert!(waited + 1_000_000 >= pause_ms * 1_000_000, "{waited} of {pause_ms} ms");
        }
        receiver.set_nonblocking(true).expect("nonblocking");
        let error = receive_timed(receiver.as_fd(), &mut buffer).expect_err("nothing there");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        drop(sender);
        assert_eq!(receive_timed(receiver.as_fd(), &mut buffer).expect("the end").0, 0);
    }
}
