//! The process backend: servers as processes of this machine, where there is no Docker Engine or none is wanted.
//!
//! A server is bound to its CPUs before it executes, has a session and a guard of its own (see `guard`), carries the run's id in
//! its environment, and writes its output to a file of the run's scratch directory. Its memory is not limited, which
//! [`Server::notes`] tells.

mod build;
mod clean;
mod guard;

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use plan::ProcessCommand;

pub(crate) use self::build::program_on_path;
use crate::error::StepError;
use crate::host::{CounterSource, Exit, RUN_VARIABLE, STOP_GRACE, Server, ServerSpec};
use crate::port;
use crate::sample::clock;
use crate::sample::pin::Mask;

pub use clean::clean;

/// The process backend of a run.
#[derive(Debug, Clone)]
pub struct Process {
    root: PathBuf,
    scratch: PathBuf,
    interrupt: Arc<AtomicBool>,
}

impl Process {
    /// A backend for the study under `root`, which puts logs into `scratch` (made where it is missing).
    pub fn new(root: &Path, scratch: &Path) -> Result<Self, StepError> {
        std::fs::create_dir_all(scratch).map_err(|error| {
            StepError::environment(
                format!("the run's scratch directory {} can't be made", scratch.display()),
                error.to_string(),
                "Free the path, or let `exp` write there.",
            )
        })?;
        let interrupt = Arc::new(AtomicBool::new(false));
        Ok(Self { root: root.to_owned(), scratch: scratch.to_owned(), interrupt })
    }

    /// Builds end with [`crate::error::Class::Interrupted`] soon after this is set.
    #[must_use]
    pub fn interrupted_by(mut self, interrupt: Arc<AtomicBool>) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// Starts a server. It is running when this returns, and may not be listening yet.
    pub fn start(&self, spec: &ServerSpec, command: &ProcessCommand) -> Result<RunningProcess, StepError> {
        self.require_programs(command)?;
        port::require_free(spec.port, &spec.name)?;
        let failed = |why: String, next: &str| {
            StepError::environment(format!("{} can't be started: `{}`", spec.name, command.run.join(" ")), why, next)
        };
        let mask = Mask::of(&spec.cpus).map_err(|error| {
            failed(error.to_string(), "Give the role CPUs of this machine (`exp doctor` lists them).")
        })?;
        let files = open_files(spec.open_files).map_err(|why| failed(why, "Run the study again."))?;
        let fewer_files = (files.rlim_cur < spec.open_files).then(|| {
            format!("{}: {} open files instead of {}, the hard limit here", spec.name, files.rlim_cur, spec.open_files)
        });
        let log = self.scratch.join(format!("{}.log", spec.name));
        let out = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .and_then(|file| Ok((file.try_clone()?, file)))
            .map_err(|error| {
                failed(format!("its log {} can't be written: {error}", log.display()), "Free disk space.")
            })?;
        let log_from = out.0.metadata().map_or(0, |metadata| metadata.len());
        let (life_read, life) = pipe().map_err(|error| failed(error.to_string(), "Close files: `ulimit -n`."))?;

        let mut run = self.command(command, &command.run);
        run.args(&spec.arguments)
            .envs(spec.env.iter().map(|(name, value)| (name, value)))
            .env(RUN_VARIABLE, &spec.run.0)
            .stdin(Stdio::null())
            .stdout(out.0)
            .stderr(out.1);
        // SAFETY: the closure makes system calls on values that were made before the fork, and allocates nothing.
        unsafe {
            run.pre_exec(move || {
                mask.bind(0)?;
                if libc::setrlimit(libc::RLIMIT_NOFILE, &files) != 0 {
                    return Err(io::Error::last_os_error());
                }
                guard::stand_between(&life_read)
            });
        }
        let asked_ns = clock::monotonic_ns();
        let child = run.spawn().map_err(|error| {
            let next = "Look whether the program is there, is executable, and the role's CPUs are this machine's.";
            failed(error.to_string(), next)
        })?;
        Ok(RunningProcess {
            name: spec.name.clone(),
            memory_bytes: spec.memory_bytes,
            fewer_files,
            asked_ns,
            child,
            life: Some(life),
            exit: None,
            log,
            log_from,
        })
    }

    /// The command in its directory. A program with a slash is meant relative to that directory.
    fn command(&self, command: &ProcessCommand, words: &[String]) -> Command {
        let directory = self.root.join(&command.directory);
        let program = words.first().map_or("", String::as_str);
        let program = if program.contains('/') { directory.join(program) } else { PathBuf::from(program) };
        let mut ready = Command::new(program);
        ready.args(words.iter().skip(1)).current_dir(directory);
        ready
    }
}

/// A pipe: reading end, writing end; both closed when another program is executed.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors, which are then ours alone.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// The limit of open files to set: what is wanted, or the hard limit of this process where that is lower. Even root can't
/// always raise it.
fn open_files(wanted: u64) -> Result<libc::rlimit, String> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure lives.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut now) } != 0 {
        return Err(format!("the limit of open files can't be read: {}", io::Error::last_os_error()));
    }
    Ok(libc::rlimit { rlim_cur: wanted.min(now.rlim_max), rlim_max: now.rlim_max })
}

/// A server that runs as a process.
#[derive(Debug)]
pub struct RunningProcess {
    name: String,
    memory_bytes: Option<u64>,
    /// Set where it has fewer open files than was asked for.
    fewer_files: Option<String>,
    asked_ns: u64,
    child: Child,
    /// The end of the guard's pipe: closing it ends the server and everything of it.
    life: Option<OwnedFd>,
    exit: Option<Exit>,
    log: PathBuf,
    /// Where this start's output begins in the log.
    log_from: u64,
}

impl RunningProcess {
    /// The file that its output goes to.
    pub fn log_file(&self) -> &Path {
        &self.log
    }

    fn wait(&mut self, within: Duration) -> Result<Option<Exit>, StepError> {
        let until = Instant::now() + within;
        loop {
            if let Some(exit) = self.exited()? {
                return Ok(Some(exit));
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Server for RunningProcess {
    fn name(&self) -> &str {
        &self.name
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn asked_ns(&self) -> u64 {
        self.asked_ns
    }

    fn counters(&self) -> Result<CounterSource, StepError> {
        Ok(CounterSource::Processes { root: self.child.id() })
    }

    fn exited(&mut self) -> Result<Option<Exit>, StepError> {
        if self.exit.is_none() {
            let status = self.child.try_wait().map_err(|error| {
                StepError::step(
                    format!("it can't be told whether {} (process {}) still runs", self.name, self.child.id()),
                    error.to_string(),
                    "Run the study again.",
                )
            })?;
            self.exit = status.map(exit);
        }
        Ok(self.exit)
    }

    fn logs(&self, last: usize) -> Vec<String> {
        last_lines(&self.log, self.log_from, last)
            .unwrap_or_else(|error| vec![format!("({} can't be read: {error})", self.log.display())])
    }

    fn notes(&self) -> Vec<String> {
        self.memory_bytes
            .iter()
            .map(|bytes| format!("{}: the memory limit of {bytes} bytes is not enforced on processes", self.name))
            .chain(self.fewer_files.clone())
            .collect()
    }

    fn stop(&mut self) -> Result<Exit, StepError> {
        if let Some(exit) = self.exited()? {
            return Ok(exit);
        }
        let group = self.child.id() as libc::pid_t;
        // SAFETY: no pointers. The guard leads the group and was not waited for yet, so the number is not another's.
        unsafe { libc::kill(-group, libc::SIGTERM) };
        if let Some(exit) = self.wait(STOP_GRACE)? {
            return Ok(exit);
        }
        self.life = None;
        self.wait(STOP_GRACE)?.ok_or_else(|| {
            StepError::step(
                format!("{} (process {group}) did not end, although it was killed", self.name),
                "a process that can't be killed waits inside the kernel, most often for a disk",
                "Look at `dmesg`; restart the machine if it stays.",
            )
        })
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        self.life = None;
        // A failure can't be told from here; the guard ends by itself.
        let _ended = self.wait(STOP_GRACE);
    }
}

fn exit(status: ExitStatus) -> Exit {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1);
    Exit { code: i64::from(code), out_of_memory: false }
}

/// The last lines of a file's part from a position on. Only its last 64 KiB are looked at.
fn last_lines(path: &Path, from: u64, last: usize) -> io::Result<Vec<String>> {
    const MOST: u64 = 65_536;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(from.max(length.saturating_sub(MOST))))?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(last)..].iter().map(|line| (*line).to_owned()).collect())
}
