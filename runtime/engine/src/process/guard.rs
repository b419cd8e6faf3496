//! The guard: a small process between `exp` and a server, which ends everything that the server started when `exp` or
//! the server itself ends.
//!
//! A server may fork workers, and workers may outlive it. `PR_SET_PDEATHSIG` reaches only the first process and fires
//! when the *thread* that started it ends, so it does not do. The guard is the server's parent and adopts its
//! orphans (`PR_SET_CHILD_SUBREAPER`). It holds the reading end of a pipe whose writing end only `exp` has: when that
//! is closed, on purpose or by `kill -9` of `exp`, it kills all its descendants and ends. It ends as the server ended. And
//! since it waits for every one of them, their CPU time adds up in it.
//!
//! It is forked from `exp` between fork and exec of the server and never executes another program, so it allocates nothing and
//! makes only system calls.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// What the child does between fork and exec: become a session of its own, fork the guard's ward, and be the guard.
/// Returns in the ward only, which then executes the server.
///
/// To be called in a `pre_exec` closure. `life` is the reading end of the pipe.
pub fn stand_between(life: &OwnedFd) -> io::Result<()> {
    // SAFETY: system calls on values of our own; the process has one thread here.
    unsafe {
        if libc::setsid() == -1 {
            return Err(io::Error::last_os_error());
        }
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // Should the guard be killed, the server goes with it.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
                Ok(())
            }
            ward => guard(ward, life.as_raw_fd()),
        }
    }
}

/// Waits for the ward's end or for the pipe's, kills what is left, and ends as the ward ended.
///
/// # Safety
/// Only in a freshly forked process, which it never returns from.
unsafe fn guard(ward: libc::pid_t, life: RawFd) -> ! {
    // SAFETY: system calls on values of our own, all of them async-signal-safe.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"exp-guard".as_ptr(), 0, 0, 0);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        let mut of_children: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut of_children);
        libc::sigaddset(&mut of_children, libc::SIGCHLD);

        // Every other file that `exp` has open would stay open in here: ends of other pipes, listening sockets, and the pipe by
        // which the standard library waits for exec.
        let pipe = libc::dup2(life, 3);
        close_from(4);
        let signals = libc::signalfd(-1, &of_children, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);

        let mut status = 0;
        let mut ended = false;
        while !ended {
            let mut waited = [
                libc::pollfd { fd: pipe, events: libc::POLLIN, revents: 0 },
                libc::pollfd { fd: signals, events: libc::POLLIN, revents: 0 },
            ];
            // The time-out covers an end that came before the signal was watched for.
            libc::poll(waited.as_mut_ptr(), 2, 200);
            let mut drained = [0u8; 512];
            while libc::read(signals, drained.as_mut_ptr().cast(), drained.len()) > 0 {}
            loop {
                let mut one = 0;
                let pid = libc::waitpid(-1, &mut one, libc::WNOHANG);
                if pid <= 0 {
                    break;
                }
                if pid == ward {
                    status = one;
                    ended = true;
                }
            }
            if waited[0].revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
                break;
            }
        }
        kill_descendants(ward, &mut status);
        let signal = libc::WTERMSIG(status);
        if libc::WIFSIGNALED(status) {
            // Ends by the same signal, so that whoever waits for the guard sees what happened to the server.
            libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
            libc::signal(signal, libc::SIG_DFL);
            // Only this one: a SIGTERM to the group waits here too.
            let mut one: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut one);
            libc::sigaddset(&mut one, signal);
            libc::sigprocmask(libc::SIG_UNBLOCK, &one, std::ptr::null_mut());
            libc::kill(libc::getpid(), signal);
            libc::_exit(128 + signal);
        }
        libc::_exit(libc::WEXITSTATUS(status));
    }
}

/// Kills children until there are none: each round makes their children ours.
unsafe fn kill_descendants(ward: libc::pid_t, status: &mut libc::c_int) {
    const ROUNDS: u32 = 5_000;
    let pause = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    for _ in 0..ROUNDS {
        // SAFETY: system calls on values of our own.
        unsafe {
            each_child(|child| {
                libc::kill(child, libc::SIGKILL);
            });
            loop {
                let mut one = 0;
                match libc::waitpid(-1, &mut one, libc::WNOHANG) {
                    -1 => return,
                    0 => break,
                    pid if pid == ward => *status = one,
                    _ => {}
                }
            }
            libc::nanosleep(&pause, std::ptr::null_mut());
        }
    }
}

/// Calls `act` for every child of this process. `/proc/<pid>/task/<tid>/children` is not on every kernel, so the parent
/// of each process is looked at.
unsafe fn each_child(mut act: impl FnMut(libc::pid_t)) {
    /// Bytes of a directory record before its name: inode, offset, length, type.
    const NAME: usize = 19;
    // SAFETY: the buffers live, their lengths are told; records are walked as the kernel wrote them.
    unsafe {
        let me = libc::getpid();
        let directory = libc::open(c"/proc".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC);
        if directory < 0 {
            return;
        }
        let mut records = [0u8; 4_096];
        loop {
            let length = libc::syscall(libc::SYS_getdents64, directory, records.as_mut_ptr(), records.len());
            let Ok(length) = usize::try_from(length) else { break };
            if length == 0 {
                break;
            }
            let mut at = 0;
            while at + NAME < length {
                let size = usize::from(u16::from_ne_bytes([records[at + 16], records[at + 17]]));
                if let Some(pid) = number(&records[at + NAME..length])
                    && parent(pid) == Some(me)
                {
                    act(pid);
                }
                at += size.max(1);
            }
        }
        libc::close(directory);
    }
}

/// The parent of a process, from `/proc/<pid>/stat`.
fn parent(pid: libc::pid_t) -> Option<libc::pid_t> {
    let mut path = [0u8; 32];
    let mut at = 0;
    for part in [b"/proc/".as_slice(), &digits(pid), b"/stat"] {
        for &byte in part.iter().filter(|byte| **byte != 0) {
            path[at] = byte;
            at += 1;
        }
    }
    let mut text = [0u8; 512];
    // SAFETY: the path ends with a zero byte, since the array is longer than any path of this form.
    let length = unsafe {
        let file = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let length = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        length
    };
    let text = &text[..usize::try_from(length).ok()?];
    let name_ends = text.iter().rposition(|byte| *byte == b')')?;
    // After the name: a space, the state, a space, the parent.
    number(text.get(name_ends + 4..)?)
}

/// The number that a text begins with, where something else than a letter ends it.
fn number(text: &[u8]) -> Option<libc::pid_t> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    if end == 0 || text.get(end).is_some_and(u8::is_ascii_alphabetic) {
        return None;
    }
    text[..end]
        .iter()
        .try_fold(0, |number: libc::pid_t, byte| number.checked_mul(10)?.checked_add(libc::pid_t::from(byte - b'0')))
}

/// The digits of a process id, padded with zero bytes on the left.
fn digits(pid: libc::pid_t) -> [u8; 10] {
    let mut digits = [0; 10];
    let mut rest = pid;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    digits
}

/// Closes every file from a number on.
unsafe fn close_from(first: RawFd) {
    /// Older kernels have no `close_range`; few programs have more files open than this.
    const FILES: RawFd = 4_096;
    // SAFETY: closing a number that is not open does nothing.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) != 0 {
            for file in first..FILES {
                libc::close(file);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_parents_are_read_without_allocation() {
        for (text, expected) in [
            (&b"123\0\0"[..], Some(123)),
            (b"1 (init)", Some(1)),
            (b"self", None),
            (b"12ab", None),
            (b"", None),
            (b"99999999999", None),
        ] {
            assert_eq!(number(text), expected, "{text:?}");
        }
        for (pid, expected) in [(7, &b"7"[..]), (4_194_304, b"4194304"), (i32::MAX, b"2147483647")] {
            let digits: Vec<u8> = digits(pid).into_iter().filter(|byte| *byte != 0).collect();
            assert_eq!(digits, expected);
        }
        let me = std::process::id() as libc::pid_t;
        assert_eq!(parent(me), Some(std::os::unix::process::parent_id() as libc::pid_t));
        assert_eq!(parent(0x7fff_fff0), None);
    }
}
