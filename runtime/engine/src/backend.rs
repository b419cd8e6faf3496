//! The two backends behind one face: what a run prepares, starts and removes.

use std::sync::Arc;

use journal::RunId;

use crate::docker::Docker;
use crate::error::StepError;
use crate::postgres::Binaries;
use crate::process::Process;
use crate::stop::Stop;

/// Where roles run.
pub enum Backend {
    /// On a Docker Engine.
    Docker(Docker),
    /// As processes of this machine.
    Process,
}

/// What a server is started from.
#[derive(Debug, Clone)]
pub(crate) enum Prepared {
    /// An image of the engine, by its reference.
    Image(String),
    /// A command that was built.
    Command(plan::ProcessCommand),
    /// The server inside `exp`.
    BuiltIn,
}

impl Backend {
    /// The Docker Engine that answers.
    ///
    /// # Errors
    /// When none answers; says how to start one.
    pub async fn docker(stop: &Stop) -> Result<Self, StepError> {
        let flag = stop.flag();
        let docker = blocking(Docker::connect).await?;
        Ok(Self::Docker(docker.interrupted_by(flag)))
    }

    /// Processes of this machine.
    pub fn process() -> Self {
        Self::Process
    }

    /// The name in the journal and the report.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Docker(_) => "docker",
            Self::Process => "process",
        }
    }

    /// The engine's version.
    pub fn docker_version(&self) -> Option<String> {
        match self {
            Self::Docker(docker) => Some(docker.version().to_owned()),
            Self::Process => None,
        }
    }

    /// The process backend's PostgreSQL, as its program names itself. A container's is known once it runs.
    pub fn postgres_version(&self) -> Option<String> {
        match self {
            Self::Docker(_) => None,
            Self::Process => {
                let program = Binaries::find().ok()?.directory.join("postgres");
                let output = std::process::Command::new(program).arg("--version").output().ok()?;
                Some(
                    String::from_utf8_lossy(&output.stdout)
                        .trim()
                        .trim_start_matches("postgres (PostgreSQL) ")
                        .to_owned(),
                )
            }
        }
    }

    /// Removes everything that carries the run's id. Returns what could not be removed.
    pub(crate) async fn clean(&self, run: &RunId) -> Vec<String> {
        let mut left = Vec::new();
        if let Self::Docker(docker) = self {
            let (docker, run) = (docker.clone().interrupted_by(Arc::default()), run.clone());
            if let Err(error) = blocking(move || docker.clean(Some(&run), &[])).await {
                left.push(error.failure.what);
            }
        }
        let run = run.clone();
        if let Err(error) = blocking(move || crate::process::clean(Some(&run), &[])).await {
            left.push(error.failure.what);
        }
        left
    }
}

/// Waits for work that blocks a thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StepError> + Send + 'static,
) -> Result<T, StepError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => {
            Err(StepError::step(format!("a step ended without a result: {error}"), "a defect of exp", "report this"))
        }
    }
}

/// The process backend of a run.
pub(crate) fn processes(root: &std::path::Path, scratch: &std::path::Path, stop: &Stop) -> Result<Process, StepError> {
    Ok(Process::new(root, scratch)?.interrupted_by(stop.flag()))
}
