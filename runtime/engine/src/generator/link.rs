//! One generator and its standard streams, as a process or in a container.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use journal::RunId;
use load::wire::{Answer, Order};
use plan::{CpuSet, Role};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::backend::blocking;
use crate::docker::{Complaints, Container, Docker};
use crate::error::StepError;
use crate::host::{Server, ServerSpec};
use crate::postgres::pinned::pinned;

/// A generator that can be spoken to.
pub(super) struct Link {
    orders: Option<mpsc::UnboundedSender<Vec<u8>>>,
    answers: mpsc::UnboundedReceiver<String>,
    complaints: Complaints,
    body: Body,
}

enum Body {
    Process(Child),
    /// `None` once it was stopped.
    Container(Option<Container>),
}

/// What it is told to be.
const ARGUMENTS: [&str; 2] = ["load", "--control"];
/// Files that a generator may open: connections and a few.
const OPEN_FILES: u64 = 65_536;
/// How long a generator may take to end once its input has.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Why a generator gives no answer.
pub(super) enum Silence {
    /// It has ended, and how.
    Died(String),
    /// It says nothing in time.
    Late,
    /// It says something that is no answer.
    Nonsense(String, String),
}

impl Link {
    /// Starts a generator as a process on these CPUs (empty: on any).
    pub(super) fn process(exp: &Path, run: &RunId, cpus: &CpuSet) -> std::io::Result<Self> {
        let cpus = if cpus.is_empty() { CpuSet::new(load::sys::allowed_cpus()?) } else { cpus.clone() };
        // On this thread, which lives as long as the run: the kernel ends the generator when it ends.
        let mut command = Command::from(pinned(exp, run, &cpus, libc::SIGKILL)?);
        command.args(ARGUMENTS).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let none = || std::io::Error::other("it has no standard streams");
        let mut input = child.stdin.take().ok_or_else(none)?;
        let mut output = BufReader::new(child.stdout.take().ok_or_else(none)?).lines();
        let mut errors = BufReader::new(child.stderr.take().ok_or_else(none)?).lines();
        let (orders, mut ordered) = mpsc::unbounded_channel::<Vec<u8>>();
        let (answer, answers) = mpsc::unbounded_channel();
        let complaints = Complaints::default();
        let heard = complaints.clone();
        tokio::spawn(async move {
            while let Some(line) = ordered.recv().await {
                if input.write_all(&line).await.is_err() {
                    return;
                }
            }
        });
        tokio::spawn(async move {
            while let Ok(Some(line)) = output.next_line().await {
                let _unheard = answer.send(line);
            }
        });
        tokio::spawn(async move {
            while let Ok(Some(line)) = errors.next_line().await {
                heard.add(line);
            }
        });
        Ok(Self { orders: Some(orders), answers, complaints, body: Body::Process(child) })
    }

    /// Starts a generator in a container with the host's network.
    pub(super) async fn container(
        docker: &Docker,
        image: &str,
        run: &RunId,
        name: &str,
        cpus: &CpuSet,
    ) -> Result<Self, StepError> {
        let spec = ServerSpec {
            run: run.clone(),
            name: name.to_owned(),
            role: Role::Load,
            cpus: cpus.clone(),
            memory_bytes: None,
            shared_memory_bytes: None,
            open_files: OPEN_FILES,
            env: Vec::new(),
            arguments: Vec::new(),
            port: 0,
            data_volume: None,
        };
        let (docker, image) = (docker.clone(), image.to_owned());
        let attached = blocking(move || docker.start_attached(&spec, &image, &ARGUMENTS)).await?;
        Ok(Self {
            orders: Some(attached.orders),
            answers: attached.answers,
            complaints: attached.complaints,
            body: Body::Container(Some(attached.container)),
        })
    }

    /// Where orders go, for somebody else who gives some too.
    pub(super) fn orders(&self) -> Option<mpsc::UnboundedSender<Vec<u8>>> {
        self.orders.clone()
    }

    /// Gives an order. That nobody takes it is found when the answer doesn't come.
    pub(super) fn send(&self, order: &Order) -> serde_json::Result<()> {
        let line = line(order)?;
        if let Some(orders) = &self.orders {
            let _nobody = orders.send(line);
        }
        Ok(())
    }

    /// The next answer.
    pub(super) async fn answer(&mut self, within: Duration) -> Result<Answer, Silence> {
        match tokio::time::timeout(within, self.answers.recv()).await {
            Ok(Some(line)) => serde_json::from_str(&line).map_err(|error| Silence::Nonsense(error.to_string(), line)),
            Ok(None) => Err(Silence::Died(self.ended().await)),
            Err(_) => Err(Silence::Late),
        }
    }

    /// Ends its input and waits for its end.
    ///
    /// # Errors
    /// How it ended, where that was not well.
    pub(super) async fn close(mut self) -> Result<(), String> {
        self.orders = None;
        match &mut self.body {
            Body::Process(child) => match tokio::time::timeout(END_WITHIN, child.wait()).await {
                Ok(Ok(status)) if !status.success() => Err(status.to_string()),
                // Dropping it kills what is left.
                _ => Ok(()),
            },
            Body::Container(container) => {
                let Some(mut container) = container.take() else { return Ok(()) };
                let ended = blocking(move || {
                    let until = std::time::Instant::now() + END_WITHIN;
                    let mut exit = container.exited()?;
                    while exit.is_none() && std::time::Instant::now() < until {
                        std::thread::sleep(Duration::from_millis(10));
                        exit = container.exited()?;
                    }
                    container.stop()?;
                    Ok(exit)
                });
                match ended.await {
                    Ok(Some(exit)) if exit.code != 0 || exit.out_of_memory => Err(exit.to_string()),
                    Ok(_) => Ok(()),
                    Err(error) => Err(error.failure.why),
                }
            }
        }
    }

    /// What it wrote on standard error last.
    pub(super) fn complaints(&self) -> Vec<String> {
        self.complaints.lines()
    }

    async fn ended(&mut self) -> String {
        let unknown = "no exit status".to_owned();
        match &mut self.body {
            Body::Process(child) => match tokio::time::timeout(Duration::from_millis(500), child.wait()).await {
                Ok(Ok(status)) => status.to_string(),
                _ => unknown,
            },
            Body::Container(container) => {
                let Some(mut container) = container.take() else { return unknown };
                let ended = blocking(move || {
                    // The engine learns of an end a moment after the streams do.
                    for _ in 0..50 {
                        if let Some(exit) = container.exited()? {
                            return Ok(Some(exit));
                        }
                        std::thread::sleep(Duration::from_millis(10));
                    }
                    Ok(None)
                });
                match ended.await {
                    Ok(Some(exit)) => exit.to_string(),
                    _ => unknown,
                }
            }
        }
    }
}

/// An order as a line.
pub(super) fn line(order: &Order) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(order)?;
    line.push(b'\n');
    Ok(line)
}
