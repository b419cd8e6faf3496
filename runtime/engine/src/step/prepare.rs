//! Prepares what servers are started from: images are built or pulled, commands are built. Two at a time.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use journal::{Event, StepEnd};
use plan::{Image, ProcessRun, Step, StepId, StepKind};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::backend::{Backend, Prepared, blocking};
use crate::error::{Class, StepError};
use crate::host::Progress;
use crate::run::{Run, Subject, nanos};
use crate::stop::Stop;

/// Preparations side by side: they wait for the network as much as for a CPU.
const AT_A_TIME: usize = 2;

type Outcome = (StepId, Subject, Instant, Result<(Prepared, StepEnd), StepError>);
type Work<'a> = Pin<Box<dyn Future<Output = Outcome> + 'a>>;

impl Run {
    /// Prepares everything that the plan's steps need and that is not left out. A candidate whose preparation fails is
    /// left out; the database and the probe are needed by everything.
    pub(crate) async fn prepare(&mut self, steps: &[Step]) -> Result<(), StepError> {
        let (sender, mut progress) = unbounded_channel();
        let mut waiting = Vec::new();
        for step in steps {
            let subject = match &step.kind {
                StepKind::PrepareCandidate { candidate } => Subject::Candidate(candidate.clone()),
                StepKind::PrepareDatabase => Subject::Database,
                StepKind::PrepareProbe => Subject::Probe,
                _ => continue,
            };
            if let Subject::Candidate(candidate) = &subject
                && self.left_out.contains(candidate)
            {
                self.stream.publish(Event::StepStarted { step: step.id })?;
                let end = StepEnd::Skipped { why: format!("{candidate} can't be measured here") };
                self.stream.publish(Event::StepFinished { step: step.id, end, took_ns: 0 })?;
                continue;
            }
            waiting.push((step.id, subject));
        }
        // In the plan's order, the first ones first.
        waiting.reverse();
        let outcomes = self.work_off(waiting, &sender, &mut progress).await?;
        let mut needed = None;
        for (subject, result) in outcomes {
            match (subject, result) {
                (subject, Ok(prepared)) => {
                    self.prepared.insert(subject, prepared);
                }
                (Subject::Candidate(candidate), Err(_)) => {
                    self.left_out.insert(candidate);
                }
                (Subject::Database | Subject::Probe, Err(error)) => needed = Some(error),
            }
        }
        let everybody: BTreeSet<&String> = self.plan.candidates.iter().map(|candidate| &candidate.name).collect();
        match needed {
            Some(error) => Err(error),
            None if everybody.iter().all(|name| self.left_out.contains(*name)) => Err(StepError::environment(
                "no candidate could be prepared",
                "every image or build failed",
                "mend one of them: the lines above show where each failed",
            )),
            None => Ok(()),
        }
    }

    /// Runs the preparations and publishes their events; the events of all of them come through this one place.
    async fn work_off(
        &mut self,
        mut waiting: Vec<(StepId, Subject)>,
        sender: &UnboundedSender<(StepId, Progress)>,
        progress: &mut UnboundedReceiver<(StepId, Progress)>,
    ) -> Result<Vec<(Subject, Result<Prepared, StepError>)>, StepError> {
        let Self { plan, root, scratch, backend, stream, stop, .. } = self;
        let mut running: FuturesUnordered<Work<'_>> = FuturesUnordered::new();
        let mut outcomes = Vec::new();
        loop {
            while running.len() < AT_A_TIME
                && let Some((step, subject)) = waiting.pop()
            {
                stream.publish(Event::StepStarted { step })?;
                let sender = sender.clone();
                let (plan, root, scratch, backend, stop) = (&*plan, &*root, &*scratch, &*backend, &*stop);
                running.push(Box::pin(async move {
                    let began = Instant::now();
                    let tell = move |now: Progress| {
                        // The receiver outlives the work.
                        let _ = sender.send((step, now));
                    };
                    let (image, process) = match &subject {
                        Subject::Candidate(name) => {
                            let candidate = plan.candidate(name);
                            (
                                candidate.and_then(|candidate| candidate.image.clone()),
                                candidate.and_then(|candidate| candidate.process.clone()),
                            )
                        }
                        // The process backend starts the machine's own PostgreSQL.
                        Subject::Database => (
                            plan.database.as_ref().and_then(|database| database.image.clone()),
                            Some(ProcessRun::BuiltIn),
                        ),
                        Subject::Probe => (
                            plan.probe.as_ref().and_then(|probe| probe.image.clone()),
                            plan.probe.as_ref().and_then(|probe| probe.process.clone()),
                        ),
                    };
                    let result = prepare_one(backend, root, scratch, image, process, stop, tell).await;
                    (step, subject, began, result)
                }));
            }
            if running.is_empty() {
                return Ok(outcomes);
            }
            let next = tokio::select! {
                biased;
                Some((step, now)) = progress.recv() => {
                    stream.publish(Event::StepProgress { step, what: now.what, done: now.done, of: now.of })?;
                    continue;
                }
                next = stop.guard(async { Ok(running.next().await) }) => next?,
            };
            let Some((step, subject, began, result)) = next else { continue };
            let took_ns = nanos(began.elapsed());
            let (result, end) = match result {
                Ok((prepared, end)) => (Ok(prepared), end),
                Err(error) if error.class == Class::Interrupted => return Err(error),
                Err(error) => {
                    let end = StepEnd::Failed(error.failure.clone());
                    (Err(error), end)
                }
            };
            stream.publish(Event::StepFinished { step, end, took_ns })?;
            outcomes.push((subject, result));
        }
    }
}

async fn prepare_one(
    backend: &Backend,
    root: &std::path::Path,
    scratch: &std::path::Path,
    image: Option<Image>,
    process: Option<ProcessRun>,
    stop: &Stop,
    tell: impl Fn(Progress) + Clone + Send + 'static,
) -> Result<(Prepared, StepEnd), StepError> {
    match backend {
        Backend::Docker(docker) => match (image, process) {
            (Some(image), _) => {
                let (docker, root) = (docker.clone(), root.to_owned());
                let made = blocking(move || docker.image(&image, &root, tell)).await?;
                let detail = made.reference.clone();
                let end = if made.reused { StepEnd::Reused { detail } } else { StepEnd::Done { detail } };
                Ok((Prepared::Image(made.reference), end))
            }
            (None, Some(ProcessRun::BuiltIn)) => {
                Ok((Prepared::BuiltIn, StepEnd::Reused { detail: "built in".to_owned() }))
            }
            (None, _) => Err(StepError::environment(
                "there is no image",
                "the study declares none",
                "add an `image` to the study",
            )),
        },
        Backend::Process => match process {
            Some(ProcessRun::BuiltIn) => {
                Ok((Prepared::BuiltIn, StepEnd::Reused { detail: "of this machine".to_owned() }))
            }
            Some(ProcessRun::Command(command)) => {
                let processes = crate::backend::processes(root, scratch, stop)?;
                let built = command.clone();
                // The build is a child of the thread that waits for it.
                blocking(move || processes.build(&built, tell)).await?;
                let detail = command.run.join(" ");
                Ok((Prepared::Command(command), StepEnd::Done { detail }))
            }
            None => Err(StepError::environment(
                "there is no way to run it as a process",
                "the study declares none",
                "add a `process` to the study, or start a Docker Engine",
            )),
        },
    }
}
