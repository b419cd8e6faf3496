//! A PostgreSQL server of this machine, for the process backend: made in a directory of its own, pinned, ended.
//!
//! PostgreSQL refuses to run as root, so a root that measures starts it as the user `postgres`, or `nobody` where there
//! is none. Its files lie in a directory `exp-postgres-<run>` that this user owns, by default below `/var/tmp`, which is a
//! disk where `/tmp` often is memory. The server dies with the thread that started it (`PR_SET_PDEATHSIG`), so a `kill -9`
//! of `exp` leaves a directory and no process; [`leftovers`] finds it.
//!
//! A memory limit of the study is not applied here: that needs a cgroup, which the docker backend has.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, chown};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use journal::RunId;
use plan::CpuSet;

use super::pinned::pinned;
use super::remains::Remains;
use super::{Binaries, Server};
use crate::error::StepError;
use crate::host::{self, CounterSource, Exit, STOP_GRACE, Server as _};
use crate::port;
use crate::sample::clock;

/// What the directory of every server begins with; the run's id follows.
const DIRECTORY_PREFIX: &str = "exp-postgres-";
/// The superuser that is made.
const USER: &str = "exp";
/// How long making the cluster may take.
const INITDB_LIMIT: Duration = Duration::from_secs(120);
/// How long the first start may take.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long the sessions of a crashed server take to end.
const SESSIONS_NOTICE: Duration = Duration::from_millis(300);
/// Lines of the log that are shown with a failure.
const LOG_LINES: usize = 20;
/// Longest path of a Unix socket; `/.s.PGSQL.65535` comes after the directory.
const MAX_SOCKET_DIRECTORY: usize = 107 - 15;

/// A server to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalSpec {
    /// The run that it belongs to.
    pub run: RunId,
    /// CPUs that it may use, the sessions' processes included.
    pub cpus: CpuSet,
    /// The memory limit of the study, bytes. It is noted and not applied.
    pub memory_bytes: Option<u64>,
    /// Its port on 127.0.0.1; `None`: one that is free.
    pub port: Option<u16>,
    /// Server settings of the study, in order. Ours (address, port, socket, log) come after them.
    pub settings: Vec<(String, String)>,
    /// The directory below which its own directory is made; see [`default_scratch`].
    pub scratch: PathBuf,
    /// Where its log is written; it outlives the server.
    pub log: PathBuf,
}

/// A running server. Dropping it ends it at once; [`host::Server::stop`] ends it in order.
#[derive(Debug)]
pub struct LocalPostgres {
    access: Server,
    asked_ns: u64,
    child: Child,
    exit: Option<Exit>,
    directory: Directory,
    log: PathBuf,
    notes: Vec<String>,
    remains: Remains,
}

/// Who runs PostgreSQL, when we are root.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    name: String,
    uid: u32,
    gid: u32,
}

/// The server's directory, removed when it is dropped.
#[derive(Debug)]
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // What could not be removed is found again by `leftovers`.
        drop(fs::remove_dir_all(&self.0));
    }
}

impl Directory {
    fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    fn remove(&self) -> Result<(), StepError> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StepError::environment(
                format!("PostgreSQL's directory {} could not be removed", self.0.display()),
                error.to_string(),
                "run `exp clean`, or remove it by hand",
            )),
            _ => Ok(()),
        }
    }
}

/// Where servers of the process backend keep their files: `$TMPDIR` where it is set, else `/var/tmp`.
pub fn default_scratch() -> PathBuf {
    std::env::var_os("TMPDIR").filter(|path| !path.is_empty()).map_or_else(|| "/var/tmp".into(), PathBuf::from)
}

impl LocalPostgres {
    /// Makes a cluster and starts its server, pinned, on 127.0.0.1. Returns when it answers.
    ///
    /// The calling thread must live as long as the server: the server ends with it.
    ///
    /// # Errors
    /// When the port is taken, the directory can't be used, `initdb` fails or the server ends or does not answer; with the
    /// last lines of its log. Class environment.
    pub async fn start(binaries: &Binaries, spec: &LocalSpec) -> Result<Self, StepError> {
        let port = match spec.port {
            Some(port) => {
                port::require_free(port, "PostgreSQL")?;
                port
            }
            None => port::free()?,
        };
        let owner = owner()?;
        let directory = make_directory(spec, owner.as_ref())?;
        let password = password();
        make_cluster(binaries, spec, owner.as_ref(), &directory, &password).await?;
        let mut notes = Vec::new();
        if let Some(bytes) = spec.memory_bytes {
            notes.push(format!("database: the memory limit of {bytes} bytes is not enforced on processes"));
        }
        if is_memory(&directory.0) {
            let scratch = spec.scratch.display();
            notes.push(format!("database: its files lie in memory ({scratch}), so that writing costs no disk"));
        }
        let failed = |error: io::Error| not_started(&spec.log, &error.to_string());
        let mut command = owned(&binaries.directory.join("postgres"), spec, owner.as_ref()).map_err(failed)?;
        command.arg("-D").arg(directory.data());
        for (name, value) in &spec.settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let socket = directory.0.as_os_str().len() <= MAX_SOCKET_DIRECTORY;
        let socket = if socket { directory.0.display().to_string() } else { String::new() };
        for (name, value) in [
            ("listen_addresses", "127.0.0.1"),
            ("port", &port.to_string()),
            ("unix_socket_directories", &socket),
            ("logging_collector", "off"),
            ("log_destination", "stderr"),
        ] {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let (out, err) = log_file(&spec.log).map_err(failed)?;
        let asked_ns = clock::monotonic_ns();
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn().map_err(failed)?;
        let access = Server::local(port, USER, password);
        let mut local = Self {
            access,
            asked_ns,
            child,
            exit: None,
            directory,
            log: spec.log.clone(),
            notes,
            remains: Remains::default(),
        };
        local.wait_started().await?;
        local.remains = Remains::of(local.child.id(), &local.directory.data());
        Ok(local)
    }

    async fn wait_started(&mut self) -> Result<(), StepError> {
        let begin = Instant::now();
        loop {
            if let Some(exit) = self.exited()? {
                return Err(not_started(&self.log, &format!("it ended at once: {exit}")));
            }
            // Short looks, so that a server that ends is noticed at once.
            match self.access.wait_ready(Duration::ZERO).await {
                Ok(_) => return Ok(()),
                Err(error) if begin.elapsed() > START_LIMIT => return Err(error.with_log(self.logs(LOG_LINES))),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// How to get in.
    pub fn access(&self) -> &Server {
        &self.access
    }

    fn wait(&mut self, within: Duration) -> Result<Option<Exit>, StepError> {
        let begin = Instant::now();
        loop {
            if let Some(exit) = self.exited()? {
                return Ok(Some(exit));
            }
            if begin.elapsed() >= within {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl host::Server for LocalPostgres {
    fn name(&self) -> &str {
        "database"
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
                let told = format!("whether PostgreSQL (process {}) still runs can't be told", self.child.id());
                StepError::step(told, error.to_string(), "run the study again")
            })?;
            self.exit = status.map(exit);
        }
        Ok(self.exit)
    }

    fn logs(&self, last: usize) -> Vec<String> {
        last_lines(&self.log, last)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// A fast shutdown, which ends sessions and writes a checkpoint; after [`STOP_GRACE`] an immediate one, which loses only
    /// what nobody needs any more; after another [`STOP_GRACE`] it is killed. Then its directory is removed.
    fn stop(&mut self) -> Result<Exit, StepError> {
        let ended = self.end(&[libc::SIGINT, libc::SIGQUIT, libc::SIGKILL])?;
        self.directory.remove()?;
        Ok(ended)
    }
}

impl LocalPostgres {
    /// Sends one signal after the other until it ends.
    fn end(&mut self, signals: &[i32]) -> Result<Exit, StepError> {
        for &signal in signals {
            if let Some(exit) = self.exited()? {
                return Ok(exit);
            }
            // SAFETY: kill takes plain numbers. The child was not waited for yet, so its number is not another's.
            unsafe { libc::kill(self.child.id().cast_signed(), signal) };
            if let Some(exit) = self.wait(STOP_GRACE)? {
                return Ok(exit);
            }
        }
        Err(StepError::step(
            format!("PostgreSQL (process {}) did not end, although it was killed", self.child.id()),
            "a process that can't be killed waits inside the kernel, most often for a disk",
            "look at `dmesg`; restart the machine if it stays",
        ))
    }
}

impl Drop for LocalPostgres {
    fn drop(&mut self) {
        // An immediate shutdown ends the sessions' processes and removes shared memory, which SIGKILL alone leaves.
        // A failure can't be told from here; `leftovers` finds what stays.
        if self.end(&[libc::SIGQUIT, libc::SIGKILL]).is_ok_and(|exit| exit.code != 0) {
            // A server that crashed: its sessions notice within moments that it is gone, and let go of the memory.
            std::thread::sleep(SESSIONS_NOTICE);
            self.remains.remove();
        }
    }
}

fn exit(status: ExitStatus) -> Exit {
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1);
    Exit { code: i64::from(code), out_of_memory: false }
}

/// A directory that a server left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The directory.
    pub path: PathBuf,
    /// The run that it belonged to.
    pub run: RunId,
    /// The server that still uses it.
    pub running: Option<u32>,
}

/// Finds directories of servers below `scratch`, those that still run included.
pub fn leftovers(scratch: &Path) -> Vec<Leftover> {
    let Ok(entries) = fs::read_dir(scratch) else { return Vec::new() };
    let mut found: Vec<Leftover> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let run = RunId(name.strip_prefix(DIRECTORY_PREFIX)?.to_owned());
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            is_directory.then(|| Leftover { running: postmaster(&entry.path()), path: entry.path(), run })
        })
        .collect();
    found.sort_by(|left, right| left.path.cmp(&right.path));
    found
}

/// Removes what a server left behind.
///
/// # Errors
/// When a server still runs in it, or the files can't be removed.
pub fn remove_leftover(leftover: &Leftover) -> Result<(), StepError> {
    let told = || format!("{} could not be removed", leftover.path.display());
    if let Some(pid) = postmaster(&leftover.path) {
        let why = format!("PostgreSQL of run {} still runs in it as process {pid}", leftover.run);
        return Err(StepError::environment(told(), why, "end that run first (Ctrl-C)"));
    }
    fs::remove_dir_all(&leftover.path)
        .map_err(|error| StepError::environment(told(), error.to_string(), "remove it as the user that owns it"))
}

/// The server that runs in a directory: the process of its pid file, if that is a PostgreSQL of this directory.
fn postmaster(directory: &Path) -> Option<u32> {
    let data = directory.join("data");
    let pid: u32 = fs::read_to_string(data.join("postmaster.pid")).ok()?.lines().next()?.trim().parse().ok()?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let data = data.into_os_string().into_encoded_bytes();
    command.split(|&byte| byte == 0).any(|argument| argument == data).then_some(pid)
}

/// Whom PostgreSQL runs as; `None`: us.
fn owner() -> Result<Option<Owner>, StepError> {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return Ok(None);
    }
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    match unprivileged(&passwd) {
        Some(owner) => Ok(Some(owner)),
        None => Err(StepError::environment(
            "PostgreSQL can't be started",
            "it refuses to run as root, and /etc/passwd has neither a user postgres nor nobody",
            "run exp as a user, or make the user postgres",
        )),
    }
}

fn unprivileged(passwd: &str) -> Option<Owner> {
    ["postgres", "nobody"].iter().find_map(|name| {
        passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (uid, gid) = (fields.next() == Some(name)).then(|| (fields.nth(1), fields.next()))?;
            Some(Owner { name: (*name).to_owned(), uid: uid?.parse().ok()?, gid: gid?.parse().ok()? })
        })
    })
}

/// Makes the server's own directory, owned by whom it runs as and reachable for them.
fn make_directory(spec: &LocalSpec, owner: Option<&Owner>) -> Result<Directory, StepError> {
    let path = spec.scratch.join(format!("{DIRECTORY_PREFIX}{}", spec.run));
    let told = || format!("PostgreSQL's directory {} can't be made", path.display());
    if path.exists() {
        let run = spec.run.clone();
        remove_leftover(&Leftover { path: path.clone(), run, running: None })?;
    }
    if let Some(owner) = owner {
        for ancestor in spec.scratch.ancestors().filter(|ancestor| !ancestor.as_os_str().is_empty()) {
            let mode = fs::metadata(ancestor).map(|metadata| metadata.permissions().mode());
            if mode.is_ok_and(|mode| mode & 0o001 == 0) {
                return Err(StepError::environment(
                    told(),
                    format!("the user {} can't pass through {}", owner.name, ancestor.display()),
                    "let exp keep its files where every user can pass through: set TMPDIR to such a directory, as /var/tmp is",
                ));
            }
        }
    }
    let io = |error: io::Error| {
        StepError::environment(told(), error.to_string(), "set TMPDIR to a directory with space that can be written")
    };
    fs::create_dir(&path).map_err(io)?;
    let directory = Directory(path.clone());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).map_err(io)?;
    if let Some(owner) = owner {
        chown(&path, Some(owner.uid), Some(owner.gid)).map_err(io)?;
    }
    Ok(directory)
}

/// 128 random bits, in hexadecimal.
pub fn password() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// A program of PostgreSQL that runs as its owner, on its CPUs, and dies with us.
fn owned(program: &Path, spec: &LocalSpec, owner: Option<&Owner>) -> io::Result<Command> {
    let mut command = pinned(program, &spec.run, &spec.cpus, libc::SIGQUIT)?;
    if let Some(owner) = owner {
        // The supplementary groups of root are given up with its user.
        command.gid(owner.gid).uid(owner.uid);
    }
    Ok(command)
}

/// The log, twice: for standard output and standard error. The server writes to what we opened, so it needs no right to
/// the run directory.
fn log_file(path: &Path) -> io::Result<(File, File)> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    Ok((file.try_clone()?, file))
}

/// A program that is ended when nobody waits for it any more.
struct Helper(Child);

impl Drop for Helper {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }
}

/// Runs `initdb`. UTF-8 with the order of code points, as the container images have it, so that both sort alike.
async fn make_cluster(
    binaries: &Binaries,
    spec: &LocalSpec,
    owner: Option<&Owner>,
    directory: &Directory,
    password: &str,
) -> Result<(), StepError> {
    let failed = |why: String| {
        let next =
            format!("read {}, free space in {}, or check the installation", spec.log.display(), spec.scratch.display());
        StepError::environment("PostgreSQL's cluster could not be made by initdb", why, next)
            .with_log(last_lines(&spec.log, LOG_LINES))
    };
    let io_failed = |error: io::Error| failed(error.to_string());
    let password_file = directory.0.join("password");
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&password_file)
        .and_then(|mut file| file.write_all(password.as_bytes()))
        .and_then(|()| owner.map_or(Ok(()), |owner| chown(&password_file, Some(owner.uid), Some(owner.gid))));
    written.map_err(io_failed)?;
    let mut command = owned(&binaries.directory.join("initdb"), spec, owner).map_err(io_failed)?;
    command
        .arg(format!("--pgdata={}", directory.data().display()))
        .arg(format!("--username={USER}"))
        .arg(format!("--pwfile={}", password_file.display()))
        .args(["--encoding=UTF8", "--locale=C.UTF-8", "--lc-messages=C"])
        .args(["--auth-host=scram-sha-256", "--auth-local=scram-sha-256"])
        // Nothing here is to outlive a power failure; the checkpoint before each cell writes what is measured.
        .arg("--no-sync");
    let (out, err) = log_file(&spec.log).map_err(io_failed)?;
    let mut child = Helper(command.stdin(Stdio::null()).stdout(out).stderr(err).spawn().map_err(io_failed)?);
    let begin = Instant::now();
    let ended = loop {
        match child.0.try_wait() {
            Ok(Some(status)) if status.success() => break Ok(()),
            Ok(Some(status)) => break Err(status.to_string()),
            Ok(None) if begin.elapsed() > INITDB_LIMIT => {
                break Err(format!("it was not done within {INITDB_LIMIT:?}"));
            }
            Ok(None) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(error) => break Err(error.to_string()),
        }
    };
    drop(child);
    // It is used up; the directory goes with the server anyhow.
    drop(fs::remove_file(&password_file));
    ended.map_err(failed)
}

fn not_started(log: &Path, why: &str) -> StepError {
    let next = format!("read {}; a wrong setting of the study is named there", log.display());
    StepError::environment("PostgreSQL did not start", why, next).with_log(last_lines(log, LOG_LINES))
}

/// Whether a path lies in memory rather than on a disk.
fn is_memory(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: `path` ends with a zero, `facts` is a valid place for the answer, and is only read after success.
    unsafe {
        let mut facts: libc::statfs = std::mem::zeroed();
        libc::statfs(path.as_ptr(), &mut facts) == 0 && facts.f_type == libc::TMPFS_MAGIC
    }
}

/// The last lines of a log; empty where it can't be read.
fn last_lines(log: &Path, last: usize) -> Vec<String> {
    let read = || -> io::Result<String> {
        let mut file = File::open(log)?;
        let start = file.metadata()?.len().saturating_sub(16 * 1024);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(16 * 1024).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(last)..].iter().map(|&line| line.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postgres_runs_as_postgres_or_nobody() {
        let root = "root:x:0:0:root:/root:/bin/sh\n";
        let nobody = "nobody:x:65534:65533:nobody:/:/usr/sbin/nologin\n";
        let postgres = "postgres:x:101:104::/var/lib/postgresql:/bin/bash\n";
        let found = |text: &str| unprivileged(text).map(|owner| (owner.name, owner.uid, owner.gid));
        assert_eq!(found(&format!("{root}{nobody}{postgres}")), Some(("postgres".to_owned(), 101, 104)));
        assert_eq!(found(&format!("{root}{nobody}")), Some(("nobody".to_owned(), 65534, 65533)));
        assert_eq!(found(root), None);
    }
}
