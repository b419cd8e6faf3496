//! The machine's clocks, and sleeping until an instant of the monotonic one.

/// The three clocks, read one right after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// CLOCK_MONOTONIC: stands still while the machine is suspended.
    pub monotonic_ns: u64,
    /// CLOCK_BOOTTIME: goes on while the machine is suspended.
    pub boot_ns: u64,
    /// CLOCK_REALTIME: jumps when it is set.
    pub wall_ns: u64,
}

impl Clocks {
    /// Now. The monotonic clock is read before and after, and its middle taken; of three tries the quickest counts, so
    /// that a thread that loses its CPU between two reads makes no jump.
    pub fn now() -> Self {
        let mut best: Option<(u64, Self)> = None;
        for _ in 0..3 {
            let before = monotonic_ns();
            let (boot_ns, wall_ns) = (read(libc::CLOCK_BOOTTIME), read(libc::CLOCK_REALTIME));
            let took = monotonic_ns() - before;
            if best.is_none_or(|(quickest, _)| took < quickest) {
                best = Some((took, Self { monotonic_ns: before + took / 2, boot_ns, wall_ns }));
            }
        }
        best.map_or(Self { monotonic_ns: 0, boot_ns: 0, wall_ns: 0 }, |(_, clocks)| clocks)
    }

    /// What the clocks showed at an instant of the monotonic clock near this one, as far as they went alike since.
    pub fn at(self, monotonic_ns: u64) -> Self {
        let shifted = |ns: u64| (ns + monotonic_ns).saturating_sub(self.monotonic_ns);
        Self { monotonic_ns, boot_ns: shifted(self.boot_ns), wall_ns: shifted(self.wall_ns) }
    }
}

/// CLOCK_MONOTONIC now, ns.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread, ns.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of this process, all threads, ns.
pub fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Sleeps until an instant of CLOCK_MONOTONIC; returns at once when it is over.
pub fn sleep_until(monotonic_ns: u64) {
    let until = libc::timespec {
        tv_sec: (monotonic_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (monotonic_ns % 1_000_000_000) as libc::c_long,
    };
    // A signal may wake the thread early, so it goes on to the same instant.
    // SAFETY: `until` lives, and a remaining time is not asked for.
    while unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, std::ptr::null_mut()) }
        == libc::EINTR
    {}
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives. These clocks exist on every Linux since 2.6.39, so the call can't fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_go_alike_while_nothing_happens() {
        let first = Clocks::now();
        sleep_until(first.monotonic_ns + 20_000_000);
        let second = Clocks::now();
        let foretold = first.at(second.monotonic_ns);
        assert!(second.monotonic_ns >= first.monotonic_ns + 20_000_000);
        // A wall clock that is slewed by NTP is off by less than 500 ppm.
        assert!(foretold.boot_ns.abs_diff(second.boot_ns) < 1_000_000, "{foretold:?} {second:?}");
        assert!(foretold.wall_ns.abs_diff(second.wall_ns) < 1_000_000, "{foretold:?} {second:?}");
        assert_eq!(first.at(first.monotonic_ns), first);
    }

    #[test]
    fn the_past_is_no_reason_to_sleep() {
        let before = monotonic_ns();
        sleep_until(before.saturating_sub(1));
        sleep_until(0);
        assert!(monotonic_ns() - before < 1_000_000_000);
    }
}
