//! Binds threads and processes to CPUs, and gives a thread precedence where the machine allows it.

use std::io;

use plan::CpuSet;

/// The kernel's form of a CPU set.
#[derive(Clone, Copy)]
pub struct Mask(libc::cpu_set_t);

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mask")
    }
}

impl Mask {
    /// The set in the kernel's form; an error names a CPU that is beyond it, and refuses an empty set.
    pub fn of(cpus: &CpuSet) -> io::Result<Self> {
        if cpus.is_empty() {
            return Err(io::Error::other("there is no CPU in the set"));
        }
        // SAFETY: a cpu_set_t is a plain array of integers, for which zero is the empty set.
        let mut mask: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        for &cpu in cpus.cpus() {
            if cpu >= libc::CPU_SETSIZE as u32 {
                return Err(io::Error::other(format!(
                    "CPU {cpu} is beyond the largest number that can be bound to, {}",
                    libc::CPU_SETSIZE - 1
                )));
            }
            // SAFETY: the index is within the set, checked above.
            unsafe { libc::CPU_SET(cpu as usize, &mut mask) };
        }
        Ok(Self(mask))
    }

    /// Binds a thread (0: the calling one). Allocates nothing, so that it may be called between fork and exec.
    pub fn bind(&self, thread: libc::pid_t) -> io::Result<()> {
        // SAFETY: the set lives and its size is told.
        let result = unsafe { libc::sched_setaffinity(thread, std::mem::size_of::<libc::cpu_set_t>(), &self.0) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Binds the calling thread. Threads that it starts later inherit this.
pub fn pin_self(cpus: &CpuSet) -> io::Result<()> {
    Mask::of(cpus)?.bind(0)
}

/// Binds every thread of this process: so `exp` keeps to the load's CPUs during a window. Threads that end meanwhile
/// are skipped; threads that are started meanwhile inherit from the one that starts them.
pub fn pin_process(cpus: &CpuSet) -> io::Result<()> {
    let mask = Mask::of(cpus)?;
    for entry in std::fs::read_dir("/proc/self/task")? {
        let Some(thread) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        match mask.bind(thread) {
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// CPUs that the calling thread may use.
pub fn allowed() -> io::Result<CpuSet> {
    // SAFETY: as in `Mask::of`.
    let mut mask: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set lives and its size is told.
    if unsafe { libc::sched_getaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &mut mask) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: indices within the set.
    Ok(CpuSet::new((0..libc::CPU_SETSIZE as u32).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu as usize, &mask) })))
}

/// Lets the calling thread run before every ordinary one of its CPU: lowest real-time priority, or failing that a
/// higher nice level. Only for moments, and for threads that sleep nearly all the time. Returns whether it now runs
/// before every ordinary thread.
pub fn take_precedence() -> bool {
    let wanted = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter lives; 0 is the calling thread. Who may do neither keeps the present level: the thread is
    // only woken later, which its readings tell.
    unsafe {
        let granted = libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &wanted) == 0;
        if !granted {
            libc::setpriority(libc::PRIO_PROCESS, 0, -10);
        }
        granted
    }
}

/// Makes the calling thread an ordinary one again.
pub fn give_up_precedence() {
    let wanted = libc::sched_param { sched_priority: 0 };
    // SAFETY: as above. To ask for less is always granted.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &wanted);
        libc::setpriority(libc::PRIO_PROCESS, 0, 0);
    }
}

/// Lets the kernel wake the calling thread on time, not up to 50 µs later to save wake-ups.
pub fn wake_exactly() {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_bound_and_impossible_sets_are_refused() {
        std::thread::spawn(|| {
            let all = allowed().expect("readable");
            let first = all.first(1).expect("at least one CPU");
            pin_self(&first).expect("one of the allowed CPUs");
            assert_eq!(allowed().expect("readable"), first);
            pin_process(&all).expect("the allowed CPUs");
            assert_eq!(allowed().expect("readable"), all);
        })
        .join()
        .expect("no panic");
        for (cpus, why) in [
            (CpuSet::default(), "no CPU in the set"),
            (CpuSet::new([5_000]), "CPU 5000 is beyond"),
            (CpuSet::new([1_023]), "Invalid argument"),
        ] {
            let error = pin_self(&cpus).expect_err(why).to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
