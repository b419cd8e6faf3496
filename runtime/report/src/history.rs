//! What happened in a run, folded from its journal without judging anything.

use std::collections::BTreeMap;

use journal::{
    CaseOutcome, Environment, Event, Failure, LoadFacts, MemoryFacts, Record, RepetitionFacts, RepetitionId, RunEnd,
    RunId, Stage, StepEnd,
};
use plan::{ContentHash, Metric, StepId};

use crate::model::Sent;

/// What happened so far. A journal that stops anywhere leaves a history that can be shown.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The run's name, once known.
    pub run: Option<RunId>,
    /// Version of the journal's format.
    pub journal: String,
    /// Hash of the plan that the journal last named.
    pub plan: Option<ContentHash>,
    /// Where it ran, first the start, then one per resumption.
    pub stretches: Vec<Stretch>,
    /// Candidates that can't be measured here, in order of events, the last word of each.
    pub not_measured: Vec<NotMeasured>,
    /// The contract's outcomes, in order of events, the last of each candidate.
    pub contracts: Vec<Contract>,
    /// The last end of each step.
    pub steps: BTreeMap<StepId, FinishedStep>,
    /// Every repetition that was begun, in order.
    pub attempts: Vec<Attempt>,
    /// How the run ended, where the journal says so.
    pub end: Option<RunEnd>,
    /// Time of the last record, Unix ns.
    pub last_ns: u64,
    /// Number of records.
    pub records: u64,
}

/// One stretch of a run: from its start or resumption until it ended, was interrupted or died.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// First record, Unix ns.
    pub from_ns: u64,
    /// Last record, Unix ns.
    pub to_ns: u64,
    /// Where it ran.
    pub environment: Environment,
    /// Finished repetitions that were kept and measured anew; `None` for the first stretch.
    pub resumed: Option<(u64, u64)>,
}

/// A candidate that can't be measured here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotMeasured {
    /// The candidate.
    pub candidate: String,
    /// Why not.
    pub why: String,
    /// The command that mends it.
    pub mend: String,
}

/// The contract's outcome for one candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// The candidate.
    pub candidate: String,
    /// One outcome per case.
    pub cases: Vec<CaseOutcome>,
}

/// A step that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedStep {
    /// How it ended.
    pub end: StepEnd,
    /// How long it took, ns.
    pub took_ns: u64,
}

/// One repetition that was begun.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// The repetition.
    pub id: RepetitionId,
    /// Hash of the cell's step when it was measured; `None` where the journal has no start of it.
    pub hash: Option<ContentHash>,
    /// The levels, chosen and computed ones included.
    pub levels: BTreeMap<String, String>,
    /// When it began, Unix ns.
    pub started_ns: u64,
    /// What it does or did last, since when and for how long (0 where unknown).
    pub stage: Option<(Stage, u64, u64)>,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a repetition ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It runs, or the journal ends inside it.
    Unfinished,
    /// Measured at this time (Unix ns).
    Measured {
        /// When, Unix ns.
        at_ns: u64,
        /// The facts that a reader may want beside the figures.
        window: Window,
    },
    /// It could not be measured.
    Failed {
        /// When, Unix ns.
        at_ns: u64,
        /// Why.
        failure: Failure,
    },
}

/// A few raw facts of a repetition, kept for the report. Histograms stay in the journal, so that memory stays flat.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Window {
    /// Length of the window, ns.
    pub length_ns: u64,
    /// Requests answered as expected.
    pub ok: u64,
    /// Failures by reason, over all streams.
    pub failures: BTreeMap<String, u64>,
    /// The first few wrong answers.
    pub evidence: Vec<String>,
    /// Who sent the load, and distributions beside the figures.
    pub sent: Sent,
    /// Problems met while facts were gathered, as `what: why`.
    pub findings: Vec<String>,
    /// What has a course over the window: seconds after its start, value.
    pub course: BTreeMap<Metric, Vec<(f64, f64)>>,
}

impl Window {
    fn of(facts: &RepetitionFacts) -> Self {
        let mut window = Self {
            length_ns: facts.window.end_ns.saturating_sub(facts.window.start_ns),
            findings: facts.findings.iter().map(|finding| format!("{}: {}", finding.what, finding.why)).collect(),
            ..Self::default()
        };
        if let Some(memory) = facts.candidate.as_ref().and_then(|counters| counters.memory.as_ref()) {
            window.course.insert(Metric::Memory, memory.points().collect());
        }
        if let Some(throughput) = facts.load.as_ref().and_then(throughput) {
            window.course.insert(Metric::Throughput, throughput);
        }
        window.sent = facts.load.as_ref().map(Sent::of).unwrap_or_default();
        if let Some(pgbench) = &facts.pgbench {
            window.ok = pgbench.transactions;
        }
        for stream in facts.load.iter().flat_map(|load| &load.streams) {
            window.ok = window.ok.saturating_add(stream.census.ok);
            for (reason, &count) in &stream.failures {
                let sum = window.failures.entry(reason.clone()).or_default();
                *sum = sum.saturating_add(count);
            }
            window.evidence.extend(stream.evidence.iter().map(|line| format!("{}: {line}", stream.name)));
        }
        window
    }
}

/// Expected answers per second over the window, all streams together, in at most [`MemoryFacts::MOST`] parts.
fn throughput(load: &LoadFacts) -> Option<Vec<(f64, f64)>> {
    let slices = load.streams.iter().map(|stream| stream.progress.len()).max().filter(|&slices| slices > 0)?;
    let seconds = load.slice_ns as f64 / 1e9;
    if seconds <= 0.0 {
        return None;
    }
    let answers = |slice: usize| -> u64 {
        load.streams.iter().filter_map(|stream| stream.progress.get(slice)).fold(0, |sum, &ok| sum.saturating_add(ok))
    };
    let together = slices.div_ceil(MemoryFacts::MOST as usize);
    let points = (0..slices).step_by(together).map(|first| {
        let last = (first + together).min(slices);
        let ok: u64 = (first..last).map(answers).fold(0, u64::saturating_add);
        let middle = (first + last) as f64 / 2.0 * seconds;
        (middle, ok as f64 / ((last - first) as f64 * seconds))
    });
    Some(points.collect())
}

impl History {
    /// Takes the next record.
    pub fn take(&mut self, record: &Record) {
        self.records += 1;
        self.last_ns = self.last_ns.max(record.at_ns);
        match &record.event {
            Event::RunStarted { journal, run, plan, environment, .. } => {
                self.run = Some(run.clone());
                self.journal = journal.clone();
                self.plan = Some(plan.clone());
                self.begin(record.at_ns, environment, None);
            }
            Event::RunResumed { plan, environment, kept, superseded } => {
                self.plan = Some(plan.clone());
                self.end = None;
                self.begin(record.at_ns, environment, Some((*kept, *superseded)));
            }
            Event::NotMeasured { candidate, why, mend } => {
                self.not_measured.retain(|known| known.candidate != *candidate);
                self.not_measured.push(NotMeasured {
                    candidate: candidate.clone(),
                    why: why.clone(),
                    mend: mend.clone(),
                });
            }
            Event::StepStarted { .. } | Event::StepProgress { .. } => {}
            Event::StepFinished { step, end, took_ns } => {
                self.steps.insert(*step, FinishedStep { end: end.clone(), took_ns: *took_ns });
            }
            Event::ContractChecked { candidate, cases } => {
                self.contracts.retain(|known| known.candidate != *candidate);
                self.contracts.push(Contract { candidate: candidate.clone(), cases: cases.clone() });
            }
            Event::RepetitionStarted { repetition, hash, levels } => self.attempts.push(Attempt {
                id: repetition.clone(),
                hash: Some(hash.clone()),
                levels: levels.clone(),
                started_ns: record.at_ns,
                stage: None,
                outcome: Outcome::Unfinished,
            }),
            Event::RepetitionStage { repetition, stage, expected_ns } => {
                if let Some(attempt) = self.running(repetition) {
                    attempt.stage = Some((*stage, record.at_ns, *expected_ns));
                }
            }
            Event::RepetitionMeasured { repetition, facts } => {
                let outcome = Outcome::Measured { at_ns: record.at_ns, window: Window::of(facts) };
                self.finish(repetition, record.at_ns, outcome).levels.extend(facts.levels.clone());
            }
            Event::RepetitionFailed { repetition, failure } => {
                self.finish(
                    repetition,
                    record.at_ns,
                    Outcome::Failed { at_ns: record.at_ns, failure: failure.clone() },
                );
            }
            Event::RunEnded { end } => self.end = Some(end.clone()),
        }
        if let Some(stretch) = self.stretches.last_mut() {
            stretch.to_ns = stretch.to_ns.max(record.at_ns);
        }
    }

    fn begin(&mut self, at_ns: u64, environment: &Environment, resumed: Option<(u64, u64)>) {
        // What could not be measured before may be measurable now; if not, the resumed run says so again.
        self.not_measured.clear();
        self.stretches.push(Stretch { from_ns: at_ns, to_ns: at_ns, environment: environment.clone(), resumed });
    }

    fn running(&mut self, id: &RepetitionId) -> Option<&mut Attempt> {
        self.attempts.iter_mut().rev().find(|attempt| attempt.id == *id && attempt.outcome == Outcome::Unfinished)
    }

    fn finish(&mut self, id: &RepetitionId, at_ns: u64, outcome: Outcome) -> &mut Attempt {
        let open =
            self.attempts.iter().rposition(|attempt| attempt.id == *id && attempt.outcome == Outcome::Unfinished);
        let index = open.unwrap_or_else(|| {
            self.attempts.push(Attempt {
                id: id.clone(),
                hash: None,
                levels: BTreeMap::new(),
                started_ns: at_ns,
                stage: None,
                outcome: Outcome::Unfinished,
            });
            self.attempts.len() - 1
        });
        let attempt = &mut self.attempts[index];
        attempt.outcome = outcome;
        attempt
    }

    /// The repetition that is being measured.
    pub fn current(&self) -> Option<&Attempt> {
        self.attempts.last().filter(|attempt| attempt.outcome == Outcome::Unfinished)
    }

    /// Where the run ran last.
    pub fn environment(&self) -> Option<&Environment> {
        self.stretches.last().map(|stretch| &stretch.environment)
    }

    /// Time in which the run ran, pauses between an interruption and the resumption left out, ns.
    pub fn active_ns(&self) -> u64 {
        self.stretches.iter().map(|stretch| stretch.to_ns.saturating_sub(stretch.from_ns)).sum()
    }
}

impl Attempt {
    /// How long it took, ns; `None` while it runs.
    pub fn took_ns(&self) -> Option<u64> {
        match self.outcome {
            Outcome::Unfinished => None,
            Outcome::Measured { at_ns, .. } | Outcome::Failed { at_ns, .. } => {
                Some(at_ns.saturating_sub(self.started_ns))
            }
        }
    }
}
