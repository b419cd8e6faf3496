//! The connection to a Docker Engine, and waiting for it from ordinary threads.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use bollard::errors::Error;

use crate::error::{Class, StepError};

/// How long an engine may take to answer at all.
const ANSWER: Duration = Duration::from_secs(5);
/// How long an engine may take to begin its answer to one request, s: stopping a container includes the grace.
const REQUEST_S: u64 = 120;
/// How often a wait looks whether it was interrupted.
const LOOK: Duration = Duration::from_millis(100);

/// A connection to a Docker Engine. Cheap to clone. Every method waits; none needs an asynchronous runtime around it,
/// and none disturbs one.
#[derive(Debug, Clone)]
pub struct Docker {
    pub(super) client: bollard::Docker,
    threads: Arc<Threads>,
    interrupt: Arc<AtomicBool>,
    version: String,
}

/// The thread that the client's tasks run on. It sleeps while nothing is asked.
#[derive(Debug)]
struct Threads {
    handle: tokio::runtime::Handle,
    _until_dropped: tokio::sync::oneshot::Sender<()>,
}

impl Docker {
    /// Connects to the engine that `DOCKER_HOST` names (`unix://` or `tcp://`), or else to this machine's.
    pub fn connect() -> Result<Self, StepError> {
        let named = std::env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty());
        Self::connect_to(&named.unwrap_or_else(default_host))
    }

    /// Connects to the engine at an address.
    pub fn connect_to(host: &str) -> Result<Self, StepError> {
        let no_engine = |why: &str| {
            StepError::environment(
                format!("no Docker Engine answers at {host}"),
                why,
                "Start one (`systemctl start docker`; tests/docker-engine.sh where there is no systemd), point DOCKER_HOST at one, or run the study with processes.",
            )
        };
        let mut client = bollard::Docker::connect_with_host(host).map_err(|error| no_engine(&error.to_string()))?;
        client.set_timeout(Duration::from_secs(REQUEST_S));
        let threads = Threads::start().map_err(|error| no_engine(&format!("no thread can be started: {error}")))?;
        let negotiated = threads.wait(None, async move {
            let client = client.negotiate_version().await?;
            let version = client.version().await?;
            Ok::<_, Error>((client, version))
        });
        let (client, version) = match negotiated {
            Waited::Done(Ok(done)) => done,
            Waited::Done(Err(error)) => return Err(no_engine(&error.to_string())),
            Waited::Late => {
                return Err(no_engine(&format!("it did not answer within {} s", ANSWER.as_secs())));
            }
            Waited::Lost => return Err(no_engine("the client's thread ended")),
        };
        Ok(Self {
            client,
            threads: Arc::new(threads),
            interrupt: Arc::new(AtomicBool::new(false)),
            version: version.version.unwrap_or_else(|| "unknown".to_owned()),
        })
    }

    /// Long waits (builds, pulls, commands) end with [`Class::Interrupted`] soon after this is set.
    #[must_use]
    pub fn interrupted_by(mut self, interrupt: Arc<AtomicBool>) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// The engine's version, as it said when we connected.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether the engine answers now.
    pub fn answers(&self) -> bool {
        let client = self.client.clone();
        matches!(self.threads.wait(None, async move { client.ping().await }), Waited::Done(Ok(_)))
    }

    /// Lets work go on beside the caller, on the client's thread.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.threads.handle.spawn(work);
    }

    /// Waits for a request that is answered soon. An interruption does not end it, since cleaning up consists of such.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        what: &str,
        request: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, StepError> {
        self.try_ask(request).map_err(|error| failed(what, &error))
    }

    /// [`Docker::ask`] with the client's own error, for those who tell cases apart.
    pub(super) fn try_ask<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        match self.threads.wait(Some(Duration::from_secs(REQUEST_S)), request) {
            Waited::Done(result) => result,
            Waited::Late | Waited::Lost => Err(Error::RequestTimeoutError),
        }
    }

    /// Runs a long piece of work that tells news on the way; `hear` gets them on the calling thread. Ends with an
    /// error when the interrupt is set, or when there is no end within a time; the work is then dropped, which closes
    /// its connections.
    pub(super) fn follow<N: Send + 'static, T: Send + 'static, W>(
        &self,
        what: &str,
        within: Option<Duration>,
        work: impl FnOnce(mpsc::Sender<N>) -> W,
        mut hear: impl FnMut(N),
    ) -> Result<T, StepError>
    where
        W: Future<Output = T> + Send + 'static,
    {
        let until = within.map(|within| std::time::Instant::now() + within);
        let (news, heard) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let work = work(news);
        let task = self.threads.handle.spawn(async move {
            // Nobody listens any more when the wait was given up.
            let _unheard = tell.send(work.await);
        });
        let given_up = |class, why: String, next: &str| {
            task.abort();
            StepError::new(class, what, why, next)
        };
        loop {
            match heard.recv_timeout(LOOK) {
                Ok(news) => hear(news),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    // The work is over, or at its last step.
                    match told.recv_timeout(LOOK) {
                        Ok(result) => return Ok(result),
                        Err(RecvTimeoutError::Timeout) => {}
                        Err(RecvTimeoutError::Disconnected) => {
                            return Err(given_up(
                                Class::Environment,
                                "the client's thread ended".into(),
                                "Run the study again.",
                            ));
                        }
                    }
                }
            }
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(given_up(Class::Interrupted, "it was interrupted".into(), ""));
            }
            if let (Some(until), Some(within)) = (until, within)
                && std::time::Instant::now() > until
            {
                let why = format!("it did not end within {:.0} s", within.as_secs_f64());
                return Err(given_up(Class::Step, why, "Look at the command; give it more time if it needs that."));
            }
        }
    }
}

/// A request of the engine that failed.
pub(super) fn failed(what: &str, error: &Error) -> StepError {
    match error {
        Error::DockerResponseServerError { status_code, message } => {
            // Debian's engine only recommends the package that holds it.
            let next = if message.contains("docker-init") {
                "Install the engine's init program: apt-get install tini"
            } else {
                "Do what the engine's message asks for, and run the study again."
            };
            StepError::environment(what, format!("the Docker Engine refused ({status_code}): {message}"), next)
        }
        other => StepError::environment(
            what,
            format!("the Docker Engine can't be reached: {other}"),
            "Look whether it still runs (`docker info`), and run the study again.",
        ),
    }
}

/// Whether an error is the engine's answer with this HTTP status.
pub(super) fn is_status(error: &Error, status: u16) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code, .. } if *status_code == status)
}

/// This machine's engine: the system's socket, or else that of an engine without root.
fn default_host() -> String {
    let system = PathBuf::from("/var/run/docker.sock");
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(|directory| PathBuf::from(directory).join("docker.sock"));
    let socket = match own {
        Some(own) if !system.exists() && own.exists() => own,
        _ => system,
    };
    format!("unix://{}", socket.display())
}

/// How waiting ended.
enum Waited<T> {
    Done(T),
    Late,
    Lost,
}

impl Threads {
    fn start() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (until_dropped, dropped) = tokio::sync::oneshot::channel::<()>();
        std::thread::Builder::new().name("docker".to_owned()).spawn(move || {
            // Ends with an error when the sender is dropped, which is what is waited for.
            let _dropped = runtime.block_on(dropped);
        })?;
        Ok(Self { handle, _until_dropped: until_dropped })
    }

    fn wait<T: Send + 'static>(
        &self,
        within: Option<Duration>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Waited<T> {
        let (tell, told) = mpsc::channel();
        let task = self.handle.spawn(async move {
            // Nobody listens any more when the wait was given up.
            let _unheard = tell.send(work.await);
        });
        match told.recv_timeout(within.unwrap_or(ANSWER)) {
            Ok(done) => Waited::Done(done),
            Err(RecvTimeoutError::Timeout) => {
                task.abort();
                Waited::Late
            }
            Err(RecvTimeoutError::Disconnected) => Waited::Lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_and_silence_are_told_apart() {
        let refusal =
            |message: &str| Error::DockerResponseServerError { status_code: 500, message: message.to_owned() };
        for (error, why, next) in [
            (refusal("no space left"), "the Docker Engine refused (500): no space left", "the engine's message"),
            (
                refusal("exec: \"docker-init\": executable file not found in $PATH"),
                "docker-init",
                "apt-get install tini",
            ),
            (Error::RequestTimeoutError, "the Docker Engine can't be reached", "docker info"),
        ] {
            let told = failed("it failed", &error);
            assert_eq!((told.class, told.failure.what.as_str()), (Class::Environment, "it failed"));
            assert!(told.failure.why.contains(why) && told.failure.next.contains(next), "{told:?}");
        }
        assert!(
            is_status(&refusal(""), 500)
                && !is_status(&refusal(""), 404)
                && !is_status(&Error::RequestTimeoutError, 500)
        );
    }
}
