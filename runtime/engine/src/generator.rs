//! The generator as a process of its own: started pinned, told when to begin, asked for its account.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use journal::{LoadFacts, RunId};
use load::wire::{Answer, Job, Order};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::error::StepError;
use crate::postgres::pinned::pinned;

/// A generator process that has its job and its connections.
pub struct Generator {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    complaints: Lines<BufReader<ChildStderr>>,
    job: Job,
}

/// How long a generator may take to open its connections.
const CONNECT_WITHIN: Duration = Duration::from_secs(15);
/// How much longer than its own schedule a generator may take to answer.
const SLACK: Duration = Duration::from_secs(10);

impl Generator {
    /// Starts a generator with a job and waits until its connections stand.
    ///
    /// # Errors
    /// When it can't be started, can't connect, or dies.
    pub async fn start(exp: &Path, run: &RunId, job: Job) -> Result<Self, StepError> {
        // On this thread, which lives as long as the run: the kernel ends the generator when it ends.
        let spawned = pinned(exp, run, &job.cpus, libc::SIGKILL).and_then(|command| {
            let mut command = Command::from(command);
            command.args(["load", "--control"]).kill_on_drop(true);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn()
        });
        let mut child = spawned.map_err(|error| {
            StepError::environment(
                format!("the generator `{} load --control` can't be started: {error}", exp.display()),
                "the generator is a process of `exp` itself",
                "check that the binary still exists and may be executed",
            )
        })?;
        let (Some(orders), Some(answers), Some(complaints)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(StepError::step("the generator has no standard streams", "", "run the command again"));
        };
        let mut generator = Self {
            child,
            orders,
            answers: BufReader::new(answers).lines(),
            complaints: BufReader::new(complaints).lines(),
            job: job.clone(),
        };
        generator.send(&Order::Job(Box::new(job))).await?;
        match generator.answer(CONNECT_WITHIN, "open its connections").await? {
            Answer::Ready { .. } => Ok(generator),
            Answer::Failed { why } => Err(generator.failed(&why)),
            other => Err(generator.failed(&format!("it answers {other:?} to its job"))),
        }
    }

    /// Begins at an instant of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// When the generator has died.
    pub async fn begin(&mut self, at_ns: u64) -> Result<(), StepError> {
        self.send(&Order::Start { at_ns, every_ns: 0 }).await
    }

    /// Waits for the account of a generator that has begun.
    ///
    /// # Errors
    /// When it fails, dies, or takes longer than its schedule allows.
    pub async fn finish(mut self) -> Result<LoadFacts, StepError> {
        let job = &self.job;
        let scheduled = Duration::from_nanos(job.warm_up_ns + job.window_ns + job.timeout_ns + job.grace_ns);
        match self.answer(scheduled + SLACK, "give its account").await? {
            Answer::Finished { facts } => {
                // It ends by itself once its standard input is closed; dropping it kills what is left.
                drop(self.orders);
                match tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await {
                    Ok(Ok(status)) if !status.success() => Err(StepError::step(
                        format!("the generator gave its account and then ended with {status}"),
                        "an account of a generator that crashed is not used",
                        "run the same command again",
                    )),
                    _ => Ok(*facts),
                }
            }
            Answer::Failed { why } => Err(self.failed(&why)),
            other => Err(self.failed(&format!("it answers {other:?} to its start"))),
        }
    }

    fn failed(&self, why: &str) -> StepError {
        StepError::step(
            format!("the generator failed: {why}"),
            format!("it was to send load to {} over {} connections", self.job.target, self.job.connections),
            "run the same command again; `exp load` with the same URL shows the failure alone",
        )
    }

    async fn send(&mut self, order: &Order) -> Result<(), StepError> {
        let mut line = serde_json::to_vec(order).map_err(|error| {
            StepError::step(format!("an order can't be written as JSON: {error}"), "", "report this")
        })?;
        line.push(b'\n');
        if let Err(error) = self.orders.write_all(&line).await {
            return Err(self.died(&format!("its standard input is closed ({error})")).await);
        }
        Ok(())
    }

    async fn answer(&mut self, within: Duration, what: &str) -> Result<Answer, StepError> {
        match tokio::time::timeout(within, self.answers.next_line()).await {
            Ok(Ok(Some(line))) => serde_json::from_str(&line).map_err(|error| {
                StepError::step(format!("the generator's answer can't be read: {error}"), line, "report this")
            }),
            Ok(Ok(None)) => Err(self.died("it ended without a word").await),
            Ok(Err(error)) => Err(self.died(&format!("its standard output can't be read ({error})")).await),
            Err(_) => Err(StepError::step(
                format!("the generator did not {what} within {:.0} s", within.as_secs_f64()),
                "its CPU may be taken by something else, or the target accepts no connections",
                "run the same command again on a quieter host",
            )),
        }
    }

    async fn died(&mut self, how: &str) -> StepError {
        let mut log = Vec::new();
        while let Ok(Ok(Some(line))) =
            tokio::time::timeout(Duration::from_millis(500), self.complaints.next_line()).await
        {
            log.push(line);
            if log.len() > 20 {
                log.remove(0);
            }
        }
        let status = match tokio::time::timeout(Duration::from_millis(500), self.child.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            _ => "no exit status".to_owned(),
        };
        StepError::step(
            format!("the generator died: {how}, {status}"),
            "a repetition without the generator's account is void, never a zero",
            "run the same command again; if it dies again, report it with the log",
        )
        .with_log(log)
    }
}
