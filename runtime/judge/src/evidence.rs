//! The fold of a journal's events: what has been measured so far, and what is known beside it.

use std::collections::BTreeMap;

use journal::{
    CaseOutcome, Environment, Event, Failure, Histogram, Record, RepetitionFacts, RepetitionId, RunEnd, StepEnd,
};
use plan::{ContentHash, Plan, StepKind};

use crate::latency::{Latency, merge};

/// What a run's events say. Fold them in with [`Evidence::take`], in the journal's order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// Every repetition that began, in the order of the journal.
    repetitions: Vec<Attempt>,
    /// Candidates that can't be measured here: why, and the command that mends it.
    pub not_measured: BTreeMap<String, (String, String)>,
    /// Outcomes of the contract, by candidate; the latest check counts.
    pub contracts: BTreeMap<String, Vec<CaseOutcome>>,
    /// Where it runs now.
    pub environment: Option<Environment>,
    /// Steps whose latest end was a failure, by number.
    pub step_failures: BTreeMap<u32, Failure>,
    /// How the run ended; `None` while it goes on, or where it was killed.
    pub end: Option<RunEnd>,
    /// The witness's samples of the whole run, by CPU.
    pub(crate) witness: BTreeMap<u32, Histogram>,
}

/// One repetition as the journal has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Attempt {
    pub id: RepetitionId,
    /// Hash under which it was started; `None` where its start is not in the journal.
    pub hash: Option<ContentHash>,
    pub levels: BTreeMap<String, String>,
    pub end: AttemptEnd,
}

/// How a repetition ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AttemptEnd {
    /// Not yet, or the run was killed within it.
    Open,
    Measured(Box<Measured>),
    Failed(Failure),
}

/// The facts of a repetition, its latencies summed up.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measured {
    /// Without the streams' histograms.
    pub facts: RepetitionFacts,
    pub latency: Latency,
}

impl Measured {
    fn of(facts: &RepetitionFacts) -> Self {
        let mut facts = facts.clone();
        let latency = facts.load.as_mut().map(Latency::take).unwrap_or_default();
        Self { facts, latency }
    }
}

impl Evidence {
    /// No evidence.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next record of the journal.
    pub fn take(&mut self, record: &Record) {
        match &record.event {
            Event::RunStarted { environment, .. } => self.environment = Some(environment.clone()),
            Event::RunResumed { environment, .. } => {
                // Another CPU model has another quiet time: the witness starts anew there.
                if self.environment.as_ref().is_some_and(|before| before.cpu != environment.cpu) {
                    self.witness.clear();
                }
                self.environment = Some(environment.clone());
                self.not_measured.clear();
                self.step_failures.clear();
                self.end = None;
            }
            Event::NotMeasured { candidate, why, mend } => {
                self.not_measured.insert(candidate.clone(), (why.clone(), mend.clone()));
            }
            Event::StepFinished { step, end, .. } => match end {
                StepEnd::Failed(failure) => {
                    self.step_failures.insert(step.0, failure.clone());
                }
                StepEnd::Done { .. } | StepEnd::Reused { .. } | StepEnd::Skipped { .. } => {
                    self.step_failures.remove(&step.0);
                }
            },
            Event::ContractChecked { candidate, cases } => {
                self.contracts.insert(candidate.clone(), cases.clone());
            }
            Event::RepetitionStarted { repetition, hash, levels } => self.repetitions.push(Attempt {
                id: repetition.clone(),
                hash: Some(hash.clone()),
                levels: levels.clone(),
                end: AttemptEnd::Open,
            }),
            Event::RepetitionMeasured { repetition, facts } => {
                for (&cpu, pace) in &facts.pace {
                    merge(self.witness.entry(cpu).or_default(), &pace.samples);
                }
                self.finish(repetition, AttemptEnd::Measured(Box::new(Measured::of(facts))));
            }
            Event::RepetitionFailed { repetition, failure } => {
                self.finish(repetition, AttemptEnd::Failed(failure.clone()));
            }
            Event::RunEnded { end } => self.end = Some(end.clone()),
            Event::StepStarted { .. } | Event::StepProgress { .. } | Event::RepetitionStage { .. } => {}
        }
    }

    fn finish(&mut self, id: &RepetitionId, end: AttemptEnd) {
        let open =
            self.repetitions.iter_mut().rev().find(|attempt| attempt.id == *id && attempt.end == AttemptEnd::Open);
        match open {
            Some(attempt) => attempt.end = end,
            // Its start is missing, so nobody knows what it was measured under: it is kept, and counts for nothing.
            None => {
                self.repetitions.push(Attempt { id: id.clone(), hash: None, levels: BTreeMap::new(), end });
            }
        }
    }

    /// Every repetition that ended, in the journal's order.
    pub(crate) fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.repetitions.iter().filter(|attempt| attempt.end != AttemptEnd::Open)
    }

    /// The number that the next repetition of a cell gets: from 1, counting every one that began.
    pub fn next_number(&self, phase: &str, cell: u32) -> u32 {
        self.repetitions
            .iter()
            .filter(|attempt| attempt.id.phase == phase && attempt.id.cell == cell)
            .map(|attempt| attempt.id.number)
            .max()
            .unwrap_or(0)
            .saturating_add(1)
    }

    /// Why a candidate has nothing to be judged, where its image, its build or its contract failed.
    pub fn excluded(&self, plan: &Plan, candidate: &str) -> Option<String> {
        if let Some((why, mend)) = self.not_measured.get(candidate) {
            let mend = if mend.is_empty() { String::new() } else { format!("; {mend}") };
            return Some(format!("{candidate} is not measured: {why}{mend}"));
        }
        let failed_step = plan.steps.iter().find_map(|step| match &step.kind {
            StepKind::PrepareCandidate { candidate: of } | StepKind::VerifyContract { candidate: of }
                if of == candidate =>
            {
                self.step_failures.get(&step.id.0)
            }
            _ => None,
        });
        if let Some(problem) = self.contract_problem(candidate) {
            return Some(problem);
        }
        failed_step.map(|failure| format!("{candidate} is not measured: {}", failure.what))
    }

    /// The first cases of the contract that a candidate failed, in one sentence.
    pub(crate) fn contract_problem(&self, candidate: &str) -> Option<String> {
        let cases = self.contracts.get(candidate)?;
        let failed: Vec<String> = cases
            .iter()
            .filter_map(|case| case.problem.as_ref().map(|problem| format!("`{}`: {problem}", case.case)))
            .collect();
        let first = failed.first()?;
        let others = if failed.len() > 1 { format!(" (and {} more)", failed.len() - 1) } else { String::new() };
        Some(format!("{candidate} failed its contract in {} of {} cases, {first}{others}", failed.len(), cases.len()))
    }
}

/// The hash under which a cell's repetitions count: that of the step that measures it, or the cell's own where the plan
/// has no such step. `RepetitionStarted` carries it; a repetition with another one is superseded.
pub fn cell_hash<'a>(plan: &'a Plan, phase: &str, cell: u32) -> Option<&'a ContentHash> {
    let step = plan.steps.iter().find(
        |step| matches!(&step.kind, StepKind::MeasureCell { phase: of, cell: index } if of == phase && *index == cell),
    );
    match step {
        Some(step) => Some(&step.hash),
        None => plan.phase(phase)?.cells.get(cell as usize).map(|cell| &cell.hash),
    }
}
