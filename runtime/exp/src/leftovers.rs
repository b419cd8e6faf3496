//! What a run that was killed left behind, and its removal by whichever `exp` command comes next.
//!
//! Every run has a scratch directory with a locked file in it. The kernel releases the lock when the run ends, however
//! it ends; a directory whose lock is free belongs to a dead run, and everything that carries that run's id is removed:
//! processes, containers, volumes, the directory itself. What does not carry such an id is never touched.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use journal::RunId;

use crate::lock::lock;

/// A live run's scratch directory.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _alive: File,
}

/// Name of the file that a live run keeps locked.
const ALIVE: &str = "alive";

/// The directory of all scratch directories of this user.
fn base() -> PathBuf {
    // SAFETY: `getuid` always succeeds and touches no memory.
    let user = unsafe { libc::getuid() };
    if user == 0 { PathBuf::from("/var/tmp/exp") } else { PathBuf::from(format!("/var/tmp/exp-{user}")) }
}

impl Scratch {
    /// Makes the scratch directory of a run.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn make(run: &RunId) -> std::io::Result<Self> {
        use std::os::unix::fs::PermissionsExt;
        let path = base().join(&run.0);
        fs::create_dir_all(&path)?;
        // An unprivileged PostgreSQL walks through these directories to its own.
        for directory in [base(), path.clone()] {
            fs::set_permissions(&directory, fs::Permissions::from_mode(0o755))?;
        }
        let alive = OpenOptions::new().create(true).truncate(false).write(true).open(path.join(ALIVE))?;
        if !lock(&alive) {
            return Err(std::io::Error::other(format!("{} belongs to a run that is alive", path.display())));
        }
        Ok(Self { path, _alive: alive })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What can't be removed now is removed by the next command.
        let _ = fs::remove_dir_all(&self.path);
        let _ = fs::remove_dir(base());
    }
}

/// Runs whose scratch directory is there and whose lock is free.
pub fn dead_runs() -> Vec<RunId> {
    let Ok(entries) = fs::read_dir(base()) else { return Vec::new() };
    let mut dead = Vec::new();
    for entry in entries.flatten() {
        let alive = entry.path().join(ALIVE);
        let is_dead = match OpenOptions::new().write(true).open(&alive) {
            Ok(file) => lock(&file),
            // Killed between making the directory and the file.
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        if is_dead {
            dead.push(RunId(entry.file_name().to_string_lossy().into_owned()));
        }
    }
    dead.sort();
    dead
}

/// Removes everything of dead runs. Returns a line per thing that was removed, and per thing that could not be.
pub fn sweep() -> Vec<String> {
    let dead = dead_runs();
    if dead.is_empty() {
        return Vec::new();
    }
    let mut lines = Vec::new();
    for run in &dead {
        match engine::process::clean(Some(run), &[]) {
            Ok(ended) => lines.extend(ended),
            Err(error) => lines.push(error.failure.what),
        }
    }
    lines.extend(sweep_containers(&dead));
    for run in &dead {
        let path = base().join(&run.0);
        match fs::remove_dir_all(&path) {
            Ok(()) => lines.push(format!("removed the files of run {run}")),
            Err(error) => lines.push(format!("{} can't be removed: {error}", path.display())),
        }
    }
    let _ = fs::remove_dir(base());
    lines
}

fn sweep_containers(dead: &[RunId]) -> Vec<String> {
    // Without an engine there are no containers of ours that run.
    let Ok(docker) = engine::docker::Docker::connect() else { return Vec::new() };
    let mut lines = Vec::new();
    for run in dead {
        match docker.clean(Some(run), &[]) {
            Ok(removed) => lines.extend(removed.into_iter().map(|what| format!("removed {what} of run {run}"))),
            Err(error) => lines.push(error.failure.what),
        }
    }
    lines
}

/// Runs whose scratch directory is there and whose lock is held.
pub fn live_runs() -> Vec<RunId> {
    let Ok(entries) = fs::read_dir(base()) else { return Vec::new() };
    let mut live: Vec<RunId> = entries
        .flatten()
        .filter(|entry| OpenOptions::new().write(true).open(entry.path().join(ALIVE)).is_ok_and(|file| !lock(&file)))
        .map(|entry| RunId(entry.file_name().to_string_lossy().into_owned()))
        .collect();
    live.sort();
    live
}
