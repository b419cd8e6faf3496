//! A run: walks the plan's DAG, measures what is wanted, and removes everything of ours at the end.
//!
//! Deliberately no general workflow engine: preparations run side by side, everything from the database's start on runs
//! alone, and the repetitions of a phase follow its blocks until the judge wants no more.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use journal::{Environment, Event, Failure, Record, RepetitionId, RunEnd, RunId, StepEnd};
use judge::Judgement;
use plan::{Plan, Step, StepId, StepKind};

use crate::backend::{Backend, Prepared};
use crate::credentials::Minted;
use crate::error::{Class, StepError};
use crate::secret::Secrets;
use crate::step;
use crate::stop::Stop;
use crate::stream::{Onlooker, Stream};
use crate::tool::Installed;

/// What a run is given.
pub struct Setup {
    /// What is executed.
    pub plan: Plan,
    /// Directory of the study; build contexts are relative to it.
    pub root: PathBuf,
    /// The run.
    pub run: RunId,
    /// Directory for files of this run alone; removed by the caller at the end.
    pub scratch: PathBuf,
    /// Directory of the run's results; logs of what died are kept there.
    pub results: PathBuf,
    /// The `exp` binary, for the generator and the built-in probe.
    pub exp: PathBuf,
    /// Where roles run.
    pub backend: Backend,
    /// Where it runs, for the journal.
    pub environment: Environment,
    /// Candidates that can't be measured here, with the reason and what mends it.
    pub not_measured: Vec<NotMeasured>,
    /// Values of the plan's secrets.
    pub secrets: Secrets,
    /// The tools that loads are left to; see [`crate::tool::installed`].
    pub tools: Vec<Installed>,
}

/// A candidate that can't be measured here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotMeasured {
    /// The candidate.
    pub candidate: String,
    /// Why.
    pub why: String,
    /// The command that mends it.
    pub mend: String,
}

/// The state of a run while it goes on.
pub struct Run {
    pub(crate) plan: Plan,
    pub(crate) root: PathBuf,
    pub(crate) run: RunId,
    pub(crate) scratch: PathBuf,
    pub(crate) results: PathBuf,
    pub(crate) exp: PathBuf,
    pub(crate) backend: Backend,
    pub(crate) stream: Stream,
    pub(crate) stop: Stop,
    /// What was built, by what it is for.
    pub(crate) prepared: BTreeMap<Subject, Prepared>,
    pub(crate) tools: Vec<Installed>,
    pub(crate) database: Option<step::database::RunningDatabase>,
    pub(crate) minted: Minted,
    secrets: Secrets,
    /// Candidates that are not measured, or failed before anything was measured.
    pub(crate) left_out: BTreeSet<String>,
    /// Repetitions in a row that failed without facts, by phase and cell: such a cell is given up after [`GIVE_UP_AFTER`].
    failures: BTreeMap<(String, u32), u32>,
    /// What could not be removed at the end.
    left_behind: Vec<String>,
}

/// How a run ended.
pub struct Ended {
    /// What ended it before its end, if anything did: an interruption, a lost journal, a step that everything needs. The
    /// class decides the exit code.
    pub result: Result<(), StepError>,
    /// What could not be removed; the next command tries again.
    pub left_behind: Vec<String>,
}

/// What an image or a build is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    Candidate(String),
    Database,
    Probe,
}

/// A cell whose repetitions fail without facts this often in a row is given up: the cause is not chance.
const GIVE_UP_AFTER: u32 = 2;

/// Executes a plan. `earlier` are the records of the journal that is continued, empty for a new run.
///
/// The end is also the journal's last event. The caller writes the report from the journal. Everything of ours is removed
/// in every case.
pub async fn execute(
    setup: Setup,
    journal: journal::Journal,
    earlier: Vec<Record>,
    onlookers: Vec<Box<dyn Onlooker>>,
    stop: Stop,
) -> Ended {
    let Setup { plan, root, run, scratch, results, exp, backend, environment, not_measured, secrets, tools } = setup;
    let stream = Stream::new(journal, &earlier, onlookers, secrets.clone());
    let now_s = i64::try_from(crate::stream::unix_ns() / 1_000_000_000).unwrap_or(0);
    let minted = match Minted::mint(&plan.credentials, now_s) {
        Ok(minted) => minted,
        Err(error) => return Ended { result: Err(error), left_behind: Vec::new() },
    };
    let mut run = Run {
        plan,
        root,
        run,
        scratch,
        results,
        exp,
        backend,
        stream,
        stop,
        prepared: BTreeMap::new(),
        tools,
        database: None,
        minted,
        secrets,
        left_out: BTreeSet::new(),
        failures: BTreeMap::new(),
        left_behind: Vec::new(),
    };
    let mut result = run.begin(&earlier, environment, not_measured);
    if result.is_ok() {
        result = run.steps().await;
    }
    result = result.map_err(|error| run.secrets.hide_error(error));
    run.clean_up().await;
    let end = match &result {
        Ok(()) => RunEnd::Completed,
        Err(error) if error.class == Class::Interrupted => RunEnd::Interrupted,
        Err(error) => RunEnd::Failed(error.failure.clone()),
    };
    let journal_is_lost = matches!(&result, Err(error) if error.class == Class::Journal);
    if !journal_is_lost && let Err(error) = run.stream.publish(Event::RunEnded { end }) {
        result = Err(error);
    }
    Ended { result, left_behind: run.left_behind }
}

impl Run {
    fn begin(
        &mut self,
        earlier: &[Record],
        environment: Environment,
        not_measured: Vec<NotMeasured>,
    ) -> Result<(), StepError> {
        let plan = self.plan.hash();
        if earlier.is_empty() {
            self.stream.publish(Event::RunStarted {
                journal: journal::JOURNAL_VERSION.to_owned(),
                run: self.run.clone(),
                study: self.plan.study.clone(),
                plan,
                environment,
            })?;
        } else {
            let (mut kept, mut superseded) = (0, 0);
            let mut hashes = BTreeMap::new();
            for record in earlier {
                match &record.event {
                    Event::RepetitionStarted { repetition, hash, .. } => {
                        hashes.insert(repetition.clone(), hash.clone());
                    }
                    Event::RepetitionMeasured { repetition, .. } => {
                        let still = judge::cell_hash(&self.plan, &repetition.phase, repetition.cell);
                        if still.is_some() && still == hashes.get(repetition) { kept += 1 } else { superseded += 1 }
                    }
                    _ => {}
                }
            }
            self.stream.publish(Event::RunResumed { plan, environment, kept, superseded })?;
        }
        for NotMeasured { candidate, why, mend } in not_measured {
            self.left_out.insert(candidate.clone());
            self.stream.publish(Event::NotMeasured { candidate, why, mend })?;
        }
        Ok(())
    }

    /// The tool that a load is left to; `None` for our own generator.
    ///
    /// # Errors
    /// When it was not looked up before the run.
    pub(crate) fn tool(&self, load: &plan::LoadProcedure) -> Result<Option<Installed>, StepError> {
        if load.with.is_own() {
            return Ok(None);
        }
        let found = self.tools.iter().find(|installed| installed.tool == load.with).cloned();
        found.map_or_else(|| crate::tool::find(load.with), Ok).map(Some)
    }

    /// The processes of this run.
    pub(crate) fn processes(&self) -> Result<crate::process::Process, StepError> {
        crate::backend::processes(&self.root, &self.scratch, &self.stop)
    }

    /// Where this run's generators are started from.
    pub(crate) fn generators(&self) -> crate::generator::Start<'_> {
        crate::generator::Start {
            exp: &self.exp,
            run: &self.run,
            scratch: &self.scratch,
            docker: match &self.backend {
                Backend::Docker(docker) => Some(docker),
                Backend::Process => None,
            },
        }
    }

    /// Values of the variables: levels, credentials, secrets, and the database that is used.
    pub(crate) fn variables(
        &self,
        levels: &BTreeMap<String, String>,
        database: Option<&str>,
    ) -> BTreeMap<String, String> {
        let mut values = self.minted.variables().clone();
        values.extend(self.secrets.variables());
        values.extend(levels.iter().map(|(factor, level)| (factor.clone(), level.clone())));
        if let (Some(running), Some(name)) = (&self.database, database) {
            values.insert("database.url".to_owned(), running.server.url(name));
            values.insert("database.host".to_owned(), running.server.host.to_string());
            values.insert("database.port".to_owned(), running.server.port.to_string());
            values.insert("database.user".to_owned(), running.server.user.clone());
            values.insert("database.password".to_owned(), running.server.password.clone());
            values.insert("database.name".to_owned(), name.to_owned());
        }
        values
    }

    /// Walks the steps in the plan's order, which is topological.
    async fn steps(&mut self) -> Result<(), StepError> {
        let steps = self.plan.steps.clone();
        plan::graph::topological_order(&steps).map_err(|why| {
            StepError::step(
                format!("the plan is not a DAG: {why}"),
                "the plan's steps contradict each other",
                "make the plan again",
            )
        })?;
        self.prepare(&steps).await?;
        let mut measured = BTreeSet::new();
        for step in &steps {
            self.stop.check()?;
            match &step.kind {
                StepKind::PrepareCandidate { .. } | StepKind::PrepareDatabase | StepKind::PrepareProbe => {}
                StepKind::StartDatabase => self.step(step, step::database::start).await?,
                StepKind::MakeTemplate => self.step(step, step::template::make).await?,
                StepKind::VerifyContract { candidate } => self.verify(step, candidate).await?,
                StepKind::MeasureCell { phase, .. } => {
                    // The cells of a phase are interleaved, so its first cell measures them all.
                    if measured.insert(phase.clone()) {
                        self.measure_phase(phase).await?;
                    }
                }
                StepKind::Estimate { phase } => {
                    let judgement = self.judgement();
                    let detail = step::estimate::detail(&self.plan, phase, &judgement);
                    self.finish_at_once(step, detail)?;
                }
                StepKind::Agree { agreement } => {
                    let judgement = self.judgement();
                    let detail = step::estimate::agreement(agreement, &judgement);
                    self.finish_at_once(step, detail)?;
                }
                // The caller writes the report from the journal; here it is only marked.
                StepKind::Report => self.finish_at_once(step, String::new())?,
            }
        }
        Ok(())
    }

    fn finish_at_once(&mut self, step: &Step, detail: String) -> Result<(), StepError> {
        self.stream.publish(Event::StepStarted { step: step.id })?;
        self.stream.publish(Event::StepFinished { step: step.id, end: StepEnd::Done { detail }, took_ns: 0 })
    }

    /// What follows from the facts so far.
    pub(crate) fn judgement(&self) -> Judgement {
        judge::judge(&self.plan, self.stream.evidence())
    }

    /// Runs one step that everything needs, between its two events.
    async fn step(
        &mut self,
        step: &Step,
        work: impl AsyncFnOnce(&mut Self, StepId) -> Result<StepEnd, StepError>,
    ) -> Result<(), StepError> {
        self.stream.publish(Event::StepStarted { step: step.id })?;
        let began = Instant::now();
        let result = work(self, step.id).await;
        let took_ns = nanos(began.elapsed());
        match result {
            Ok(end) => self.stream.publish(Event::StepFinished { step: step.id, end, took_ns }),
            Err(error) => {
                if error.class != Class::Journal {
                    let end = StepEnd::Failed(error.failure.clone());
                    self.stream.publish(Event::StepFinished { step: step.id, end, took_ns })?;
                }
                Err(error)
            }
        }
    }

    /// Checks the contract of one candidate; a candidate that fails it is left out, the others go on.
    async fn verify(&mut self, step: &Step, candidate: &str) -> Result<(), StepError> {
        if self.left_out.contains(candidate) {
            let why = format!("{candidate} can't be measured here");
            return self.skip(step, why);
        }
        let name = candidate.to_owned();
        let outcome = self.step(step, async |run: &mut Self, _| step::contract::verify(run, &name).await).await;
        match outcome {
            Ok(()) => {}
            Err(error) if error.class == Class::Step => {
                self.left_out.insert(candidate.to_owned());
                let left = self.plan.candidates.iter().any(|candidate| !self.left_out.contains(&candidate.name));
                let last = self.plan.steps.iter().rfind(|step| matches!(step.kind, StepKind::VerifyContract { .. }));
                // Nothing is measured when nobody is left; until the last was checked, somebody may be.
                if !left && last.is_some_and(|last| last.id == step.id) {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn skip(&mut self, step: &Step, why: String) -> Result<(), StepError> {
        self.stream.publish(Event::StepStarted { step: step.id })?;
        self.stream.publish(Event::StepFinished { step: step.id, end: StepEnd::Skipped { why }, took_ns: 0 })
    }

    /// Measures a phase: its planned blocks, then blocks of what has to be measured again.
    async fn measure_phase(&mut self, name: &str) -> Result<(), StepError> {
        let Some(phase) = self.plan.phase(name).cloned() else { return Ok(()) };
        let judgement = self.judgement();
        let done: Vec<usize> =
            (0..phase.cells.len()).map(|cell| judgement.repetitions_of(name, cell as u32).count()).collect();
        let mut planned = vec![0usize; phase.cells.len()];
        for slot in &phase.slots {
            let cell = slot.cell as usize;
            planned[cell] += 1;
            // What an interrupted run has finished is not measured again.
            if planned[cell] <= done[cell] {
                continue;
            }
            self.repetition(name, slot.cell).await?;
        }
        // Bounded by `at_most`, which the judge respects; the bound here is a belt to those braces.
        let most: u64 = phase.cells.len() as u64 * u64::from(phase.repeat.at_most);
        for block in 0..most {
            let judgement = self.judgement();
            let mut wanted = judge::wanted(&self.plan, name, &judgement, self.stream.evidence());
            wanted.retain(|&cell| !self.is_given_up(name, cell));
            if wanted.is_empty() {
                break;
            }
            shuffle(&mut wanted, self.plan.seed ^ (block + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for cell in wanted {
                self.repetition(name, cell).await?;
            }
        }
        Ok(())
    }

    fn is_given_up(&self, phase: &str, cell: u32) -> bool {
        let failed = self.failures.get(&(phase.to_owned(), cell)).copied().unwrap_or(0);
        failed >= GIVE_UP_AFTER
            || step::repetition::candidate_of(&self.plan, phase, cell).is_some_and(|name| self.left_out.contains(name))
    }

    /// One repetition of a cell, between its events. Its failure voids it and nothing else.
    async fn repetition(&mut self, phase: &str, cell: u32) -> Result<(), StepError> {
        self.stop.check()?;
        if self.is_given_up(phase, cell) {
            return Ok(());
        }
        let number = self.stream.evidence().next_number(phase, cell);
        let repetition = RepetitionId { phase: phase.to_owned(), cell, number };
        match step::repetition::measure(self, &repetition).await {
            Ok(facts) => {
                self.failures.remove(&(phase.to_owned(), cell));
                self.stream.publish(Event::RepetitionMeasured { repetition, facts: Box::new(facts) })
            }
            Err(error) if matches!(error.class, Class::Step | Class::Environment) => {
                *self.failures.entry((phase.to_owned(), cell)).or_default() += 1;
                let failure = self.secrets.hide_failure(error.failure);
                self.keep_log(&repetition, &failure);
                self.stream.publish(Event::RepetitionFailed { repetition, failure })
            }
            Err(error) => Err(error),
        }
    }

    /// Keeps the log of what died beside the results; the journal has its last lines in any case.
    fn keep_log(&self, repetition: &RepetitionId, failure: &Failure) {
        if failure.log.is_empty() {
            return;
        }
        let directory = self.results.join("logs");
        let name = format!("{}-{}-{}.log", repetition.phase, repetition.cell, repetition.number);
        let text = format!("{}\n\n{}\n", failure.what, failure.log.join("\n"));
        let _ = std::fs::create_dir_all(&directory).and_then(|()| std::fs::write(directory.join(name), text));
    }

    /// Removes everything of ours, whatever the ending was. Never takes longer than a few seconds.
    async fn clean_up(&mut self) {
        let work = async {
            if let Some(database) = self.database.take() {
                database.stop().await;
            }
            for left in self.backend.clean(&self.run).await {
                self.left_behind.push(left);
            }
        };
        tokio::select! {
            _ = tokio::time::timeout(Duration::from_secs(30), work) => {}
            // Asked twice: the next command removes what is left.
            () = self.stop.now() => {}
        }
    }
}

/// Fisher–Yates with SplitMix64: the same seed gives the same order everywhere.
fn shuffle(cells: &mut [u32], mut state: u64) {
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    for index in (1..cells.len()).rev() {
        let other = (next() % (index as u64 + 1)) as usize;
        cells.swap(index, other);
    }
}

/// A duration in nanoseconds.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
