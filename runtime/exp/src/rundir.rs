//! Run directories: `results/<study>/<run>/`, and which of them can be continued.

use std::fs;
use std::path::{Path, PathBuf};

use journal::{Event, RunEnd, RunId};
use plan::Plan;

/// A run's directory.
#[derive(Debug, Clone)]
pub struct RunDirectory {
    /// Where it is.
    pub path: PathBuf,
    /// The run.
    pub run: RunId,
}

impl RunDirectory {
    /// The journal's file.
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// The plan's file.
    pub fn plan(&self) -> PathBuf {
        self.path.join("plan.json")
    }

    /// The directory of an existing run.
    ///
    /// # Errors
    /// A sentence that says what is missing.
    pub fn open(path: &Path) -> Result<Self, String> {
        let name = fs::canonicalize(path)
            .map_err(|error| format!("{} can't be read: {error}", path.display()))?
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let directory = Self { path: path.to_owned(), run: RunId(name) };
        for file in [directory.plan(), directory.journal()] {
            if !file.is_file() {
                return Err(format!("{} is no run's directory: it has no {}", path.display(), file.display()));
            }
        }
        Ok(directory)
    }

    /// The plan that was stored.
    ///
    /// # Errors
    /// A sentence that names the file and what is wrong with it.
    pub fn read_plan(&self) -> Result<Plan, String> {
        let path = self.plan();
        let text = fs::read_to_string(&path).map_err(|error| format!("{} can't be read: {error}", path.display()))?;
        let plan: Plan =
            serde_json::from_str(&text).map_err(|error| format!("{} is no plan: {error}", path.display()))?;
        if plan.version != plan::PLAN_VERSION {
            return Err(format!(
                "{} is a plan of version {}; this exp reads version {}",
                path.display(),
                plan.version,
                plan::PLAN_VERSION
            ));
        }
        Ok(plan)
    }

    /// Stores the plan and the study, expanded.
    ///
    /// # Errors
    /// When a file can't be written.
    pub fn store(&self, plan: &Plan, study: &str) -> std::io::Result<()> {
        fs::create_dir_all(&self.path)?;
        let mut json = serde_json::to_string_pretty(plan).map_err(std::io::Error::other)?;
        json.push('\n');
        fs::write(self.plan(), json)?;
        fs::write(self.path.join("study.kdl"), study)
    }
}

/// The newest run of a study with the same machine and profile, where it has not come to its end.
///
/// An older one that was left is not gone back to.
pub fn unfinished(results: &Path, plan: &Plan) -> Option<RunDirectory> {
    let mut names: Vec<PathBuf> =
        fs::read_dir(results.join(&plan.study)).ok()?.flatten().map(|entry| entry.path()).collect();
    names.sort();
    let directory = names.into_iter().rev().find_map(|path| {
        let directory = RunDirectory::open(&path).ok()?;
        let stored = directory.read_plan().ok()?;
        (stored.machine.name == plan.machine.name && stored.profile == plan.profile).then_some(directory)
    })?;
    let mut completed = false;
    for record in journal::read(&directory.journal()).ok()? {
        // What can't be read makes `Journal::reopen` say why; here it is only not completed.
        let Ok(record) = record else { break };
        completed = matches!(record.event, Event::RunEnded { end: RunEnd::Completed });
    }
    (!completed).then_some(directory)
}

/// A new run's directory, named for the time and two random letters.
///
/// # Errors
/// When it can't be made.
pub fn new_run(results: &Path, study: &str) -> std::io::Result<RunDirectory> {
    let now = jiff::Timestamp::now();
    let stamp = now.strftime("%Y-%m-%d-%H%M");
    let mut entropy = u64::try_from(now.as_nanosecond().unsigned_abs() % u128::from(u64::MAX)).unwrap_or(0)
        ^ (u64::from(std::process::id()) << 32);
    for _ in 0..64 {
        const LETTERS: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";
        let mut tail = String::new();
        for _ in 0..2 {
            entropy = entropy.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            tail.push(char::from(LETTERS[(entropy >> 33) as usize % LETTERS.len()]));
        }
        let run = RunId(format!("{stamp}-{tail}"));
        let path = results.join(study).join(&run.0);
        fs::create_dir_all(results.join(study))?;
        match fs::create_dir(&path) {
            Ok(()) => return Ok(RunDirectory { path, run }),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other("no free name for a run was found in 64 tries"))
}
