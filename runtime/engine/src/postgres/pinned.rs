//! Commands that run on given CPUs and die with us.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use journal::RunId;
use plan::CpuSet;

use crate::host::RUN_VARIABLE;
use crate::sample::pin::Mask;

/// A command with a clean environment and the run's id, on these CPUs, which gets `signal` when the thread that starts it
/// ends.
///
/// # Errors
/// When the CPUs can't be told to the kernel.
pub(crate) fn pinned(program: &Path, run: &RunId, cpus: &CpuSet, signal: i32) -> io::Result<Command> {
    let mask = Mask::of(cpus)?;
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .env(RUN_VARIABLE, &run.0)
        .current_dir("/")
        // Ctrl-C on the terminal is ours to answer.
        .process_group(0);
    // SAFETY: getpid has no preconditions.
    let parent = unsafe { libc::getpid() };
    let prepare = move || {
        mask.bind(0)?;
        // This comes after a change of user, which would clear it.
        // SAFETY: prctl takes plain numbers here, getppid nothing.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // Whoever started us may have ended before that was set.
        if unsafe { libc::getppid() } != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: the closure only makes system calls on values made before the fork, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    Ok(command)
}
