//! Tests of the whole, from outside: what several of them share.
//!
//! They run the real `exp` binary on real parts. A host can hold one run at a time, so tests that run studies take
//! [`the_host`] first.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// Where this build's binaries are.
fn binaries() -> PathBuf {
    let test = std::env::current_exe().expect("a test is a program");
    test.parent().and_then(Path::parent).expect("target/<profile>/deps").to_owned()
}

/// The `exp` binary, built once in the profile of the tests.
pub fn exp_binary() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let place = binaries();
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "--package", "exp", "--package", "tests", "--bins", "--offline"])
            .current_dir(root());
        cargo.env("CARGO_TARGET_DIR", place.parent().expect("target"));
        if place.file_name().is_some_and(|name| name == "release") {
            cargo.arg("--release");
        }
        let status = cargo.status().expect("cargo runs");
        assert!(status.success(), "exp can't be built");
        place.join("exp")
    })
}

/// The service of known capacity and chosen faults.
pub fn faulty_binary() -> PathBuf {
    exp_binary();
    binaries().join("faulty")
}

/// Runs on a host one at a time, over all test binaries.
pub fn the_host() -> fs::File {
    let path = std::env::temp_dir().join("exp-tests.lock");
    let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path).expect("a lock file");
    file.lock().expect("the lock");
    file
}

/// A directory for one test, removed at its end.
pub struct Place(PathBuf);

impl Place {
    /// A new directory.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("exp-test-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into it.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("inside")).expect("a directory");
        fs::write(&path, text).expect("a file");
        path
    }

    /// Copies the service of known capacity to `bin/faulty`.
    pub fn with_faulty(self) -> Self {
        fs::create_dir_all(self.0.join("bin")).expect("a directory");
        fs::copy(faulty_binary(), self.0.join("bin/faulty")).expect("the service");
        self
    }

    /// The only run of a study in `results`.
    pub fn only_run(&self, study: &str) -> PathBuf {
        let mut runs: Vec<PathBuf> = fs::read_dir(self.0.join("results").join(study))
            .expect("results")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.remove(0)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `exp` with these arguments, in a directory, not started yet.
pub fn exp(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(exp_binary());
    command.args(arguments).current_dir(directory).stdin(Stdio::null()).env("NO_COLOR", "1");
    command
}

/// How `exp` ended and what it printed.
#[derive(Debug)]
pub struct Ended {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ended {
    /// The summary object of `--format json`.
    pub fn summary(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in:\n{}\n{}", self.out, self.err))
    }

    /// Panics with everything that was printed unless the exit code is one of these.
    pub fn expect_code(self, codes: &[i32]) -> Self {
        assert!(
            codes.contains(&self.code),
            "exit code {}, expected {codes:?}\n── out\n{}\n── err\n{}",
            self.code,
            self.out,
            self.err
        );
        self
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs `exp` to its end.
pub fn run(directory: &Path, arguments: &[&str]) -> Ended {
    exp(directory, arguments).output().expect("exp runs").into()
}

/// Starts `exp` with its output kept in files, so that it can be signalled.
pub fn start(directory: &Path, arguments: &[&str]) -> Started {
    let (out, err) = (directory.join("out.txt"), directory.join("err.txt"));
    let child = exp(directory, arguments)
        .stdout(fs::File::create(&out).expect("a file"))
        .stderr(fs::File::create(&err).expect("a file"))
        .spawn()
        .expect("exp starts");
    Started { child, out, err }
}

/// A running `exp`.
pub struct Started {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Drop for Started {
    fn drop(&mut self) {
        // A test that failed leaves nothing running that the next one would stumble over.
        if let Ok(None) = self.child.try_wait() {
            self.signal(2);
            let began = Instant::now();
            while self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
                if began.elapsed() > Duration::from_secs(15) {
                    let _ = self.child.kill();
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

impl Started {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, by its number.
    pub fn signal(&self, signal: i32) {
        let status = Command::new("kill").arg(format!("-{signal}")).arg(self.pid().to_string()).status().expect("kill");
        assert!(status.success(), "signal {signal} can't be sent");
    }

    /// Waits until `condition` holds, at most `within`.
    pub fn wait_until(&mut self, within: Duration, what: &str, mut condition: impl FnMut() -> bool) {
        let began = Instant::now();
        while !condition() {
            let ended = self.child.try_wait().expect("a child");
            assert!(ended.is_none(), "exp ended before {what}: {ended:?}\n{}", self.printed());
            assert!(began.elapsed() < within, "{what} did not come within {within:?}\n{}", self.printed());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn printed(&self) -> String {
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        format!("── out\n{}\n── err\n{}", read(&self.out), read(&self.err))
    }

    /// Waits for its end, at most `within`.
    pub fn end(mut self, within: Duration) -> Ended {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
                return Ended { code: status.code().unwrap_or(-1), out: read(&self.out), err: read(&self.err) };
            }
            if began.elapsed() > within {
                let printed = self.printed();
                let _ = self.child.kill();
                let _ = self.child.wait();
                panic!("exp did not end within {within:?}\n{printed}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The records of a run's journal, as JSON.
pub fn journal(run: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(run.join("journal.jsonl")).expect("a journal");
    // A torn last line is part of what a kill leaves.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// How many records carry this event.
pub fn count_events(records: &[serde_json::Value], event: &str) -> usize {
    records.iter().filter(|record| record["event"].get(event).is_some()).count()
}

/// Processes that carry a run's id in their environment.
pub fn processes_of(run: &str) -> Vec<String> {
    let wanted = format!("EXP_RUN={run}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
        if environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes()) {
            let command = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default().replace('\0', " ");
            found.push(format!("{}: {command}", entry.file_name().to_string_lossy()));
        }
    }
    found
}

/// Asserts that nothing of a run is left on this host: no process, no file, no container, no volume.
pub fn assert_nothing_left(run: &Path) {
    let id = run.file_name().expect("a run's name").to_string_lossy().into_owned();
    let began = Instant::now();
    // What was killed needs a moment to be gone.
    while !processes_of(&id).is_empty() && began.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(processes_of(&id), Vec::<String>::new(), "processes of run {id} are left");
    for scratch in ["/var/tmp/exp", "/var/tmp/exp-0"] {
        assert!(!Path::new(scratch).join(&id).exists(), "{scratch}/{id} is left");
    }
    for list in [&["ps", "--all"][..], &["volume", "ls"], &["network", "ls"]] {
        let output =
            Command::new("docker").args(list).args(["--quiet", "--filter", &format!("label=exp.run={id}")]).output();
        // Where no engine answers there are no containers.
        if let Ok(output) = output
            && output.status.success()
        {
            assert_eq!(String::from_utf8_lossy(&output.stdout), "", "docker {list:?} shows what run {id} left");
        }
    }
}
