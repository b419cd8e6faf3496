//! Where roles run: the words that both backends share.
//!
//! A backend starts servers (candidate, probe, database) pinned to CPUs and tells where their counters are; the study
//! does not change between backends.

use std::path::PathBuf;
use std::time::Duration;

use journal::RunId;
use plan::{CpuSet, Role};

use crate::error::StepError;

/// The label (Docker) and environment variable (processes) that everything we make carries, with the run's id.
pub const RUN_LABEL: &str = "exp.run";
/// See [`RUN_LABEL`].
pub const RUN_VARIABLE: &str = "EXP_RUN";
/// Label of images that we built: the hash of what they were made from. Images are a cache and outlive a run.
pub const IMAGE_LABEL: &str = "exp.image";

/// A server to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    /// The run that it belongs to.
    pub run: RunId,
    /// Short name, unique within the run: `go`, `probe`, `database`.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// CPUs that it may use.
    pub cpus: CpuSet,
    /// Memory limit, bytes; swap is not allowed beyond it.
    pub memory_bytes: Option<u64>,
    /// Shared memory (`/dev/shm`), bytes, where it differs from the engine's default.
    pub shared_memory_bytes: Option<u64>,
    /// Open files limit.
    pub open_files: u64,
    /// Environment.
    pub env: Vec<(String, String)>,
    /// Arguments after the image's entrypoint, or after the command.
    pub arguments: Vec<String>,
    /// The TCP port on 127.0.0.1 that it will listen on; checked to be free before the start.
    pub port: u16,
    /// A directory that outlives the server and is removed with the run (the database's files): where it is mounted
    /// in a container. Processes get a directory of their own.
    pub data_volume: Option<String>,
}

/// Where a server's CPU and memory counters are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CounterSource {
    /// cgroup v1: directories of the `cpuacct` and `memory` hierarchies.
    CgroupV1 {
        /// Holds `cpuacct.usage`.
        cpuacct: PathBuf,
        /// Holds `cpu.stat`, where the `cpu` hierarchy is elsewhere than `cpuacct`.
        cpu: Option<PathBuf>,
        /// Holds `memory.usage_in_bytes`.
        memory: PathBuf,
    },
    /// cgroup v2: the group's directory, which holds `cpu.stat` and `memory.current`.
    CgroupV2 {
        /// The directory.
        group: PathBuf,
    },
    /// `/proc`: the process and everything that descends from it, ended children included.
    Processes {
        /// The process.
        root: u32,
    },
}

/// How long a server may take to stop before it is killed.
pub const STOP_GRACE: Duration = Duration::from_secs(5);

/// How far a long piece of work is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What is done now, such as `Step 3/9 : RUN go build`.
    pub what: String,
    /// How far it is.
    pub done: u64,
    /// Of how much; 0 where unknown.
    pub of: u64,
}

/// How a server or a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// Exit status; 128 + the signal's number where a signal ended it, as shells count.
    pub code: i64,
    /// Whether the kernel killed it for memory. Processes have no limit of their own, so only containers tell.
    pub out_of_memory: bool,
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.out_of_memory, self.code) {
            (true, code) => write!(f, "killed at its memory limit (exit status {code})"),
            (false, code @ 129..=192) => write!(f, "ended by signal {} (exit status {code})", code - 128),
            (false, code) => write!(f, "exit status {code}"),
        }
    }
}

/// What a command that ran to its end left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// How it ended.
    pub exit: Exit,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A server that was started, on either backend. Dropping it without [`Server::stop`] kills it.
pub trait Server: Send {
    /// Its name within the run, as in [`ServerSpec`].
    fn name(&self) -> &str;

    /// Its process on this machine: what the kernel's files and [`CounterSource`] go by.
    fn pid(&self) -> u32;

    /// When the backend was asked to start it, on CLOCK_MONOTONIC, ns: a container that was made, a program that was found.
    fn asked_ns(&self) -> u64;

    /// Where its counters are; an environment failure when they are not on this machine or can't be found.
    fn counters(&self) -> Result<CounterSource, StepError>;

    /// How it ended, or `None` while it runs.
    fn exited(&mut self) -> Result<Option<Exit>, StepError>;

    /// The last lines of its standard output and error.
    fn logs(&self, last: usize) -> Vec<String>;

    /// What the backend could not do as asked, such as a memory limit: for the report's limits.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Stops it: asked first, killed after [`STOP_GRACE`]; everything of it is removed but a data volume. Says how it ended.
    fn stop(&mut self) -> Result<Exit, StepError>;
}
