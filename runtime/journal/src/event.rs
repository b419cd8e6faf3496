//! The closed set of events, and the record that carries each of them.

use std::collections::BTreeMap;

use plan::{ContentHash, StepId};
use serde::{Deserialize, Serialize};

use crate::facts::RepetitionFacts;
use crate::id::{RepetitionId, RunId};

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Record {
    /// From 0, without gaps.
    pub seq: u64,
    /// Wall clock, Unix nanoseconds.
    pub at_ns: u64,
    /// What happened.
    pub event: Event,
}

/// What can happen in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The first event of a journal.
    RunStarted {
        /// Version of the journal's format.
        journal: String,
        /// The run.
        run: RunId,
        /// The study's name.
        study: String,
        /// Hash of the plan.
        plan: ContentHash,
        /// Where it runs.
        environment: Environment,
    },
    /// The run goes on after it was interrupted.
    RunResumed {
        /// Hash of the plan now.
        plan: ContentHash,
        /// Where it runs now.
        environment: Environment,
        /// Finished repetitions that are kept.
        kept: u64,
        /// Finished repetitions that are measured anew, because what made them changed.
        superseded: u64,
    },
    /// A candidate can't be measured here.
    NotMeasured {
        /// The candidate.
        candidate: String,
        /// Why not.
        why: String,
        /// The command that mends it.
        mend: String,
    },
    /// A step began.
    StepStarted {
        /// The step.
        step: StepId,
    },
    /// A step got on.
    StepProgress {
        /// The step.
        step: StepId,
        /// What it does now, such as `Step 3/9 : RUN go build`.
        what: String,
        /// How far it is.
        done: u64,
        /// Of how much; 0 where unknown.
        of: u64,
    },
    /// A step is over.
    StepFinished {
        /// The step.
        step: StepId,
        /// How.
        end: StepEnd,
        /// How long it took.
        took_ns: u64,
    },
    /// The contract was checked against a candidate.
    ContractChecked {
        /// The candidate.
        candidate: String,
        /// One outcome per case, in order.
        cases: Vec<CaseOutcome>,
    },
    /// A repetition began.
    RepetitionStarted {
        /// The repetition.
        repetition: RepetitionId,
        /// Hash of the cell's step: rows of another hash no longer count.
        hash: ContentHash,
        /// The levels, chosen and computed ones included.
        levels: BTreeMap<String, String>,
    },
    /// A repetition got on.
    RepetitionStage {
        /// The repetition.
        repetition: RepetitionId,
        /// What it does now.
        stage: Stage,
        /// How long that is expected to take, ns; 0 where unknown.
        expected_ns: u64,
    },
    /// A repetition was measured. Whether it is valid follows from the facts of the whole run.
    RepetitionMeasured {
        /// The repetition.
        repetition: RepetitionId,
        /// What was recorded.
        facts: Box<RepetitionFacts>,
    },
    /// A repetition could not be measured.
    RepetitionFailed {
        /// The repetition.
        repetition: RepetitionId,
        /// Why.
        failure: Failure,
    },
    /// The run is over.
    RunEnded {
        /// How.
        end: RunEnd,
    },
}

/// What a repetition does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Clone, prewarm, checkpoint, settle.
    PreparingDatabase,
    /// The probe server is driven.
    Probing,
    /// The candidate starts and becomes ready.
    Starting,
    /// Load before the window.
    WarmingUp,
    /// The window.
    Measuring,
    /// Rows and counters afterwards, and the candidate's end.
    Checking,
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepEnd {
    /// Done.
    Done {
        /// What came of it, for people: `1,000,000 rows, locked`.
        detail: String,
    },
    /// Nothing had to be done: the result was there.
    Reused {
        /// What was there.
        detail: String,
    },
    /// Failed.
    Failed(Failure),
    /// Not tried, because a step that it needs failed.
    Skipped {
        /// Which and why.
        why: String,
    },
}

/// A failure: what happened, why, what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Failure {
    /// One sentence that stands alone, with the values involved.
    pub what: String,
    /// Why, where known.
    pub why: String,
    /// What to do next.
    pub next: String,
    /// The last lines of the log of what failed.
    pub log: Vec<String>,
}

/// The outcome of one case of the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CaseOutcome {
    /// The case's name.
    pub case: String,
    /// `None`: passed. Otherwise what was expected and what came.
    pub problem: Option<String>,
}

/// Where a run ran.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Environment {
    /// Version of `exp`.
    pub exp: String,
    /// `docker` or `process`.
    pub backend: String,
    /// Version of the Docker Engine.
    pub docker: Option<String>,
    /// Kernel.
    pub kernel: String,
    /// CPU model.
    pub cpu: String,
    /// Logical CPUs that are online.
    pub cpus: String,
    /// Whether a hypervisor is beneath.
    pub virtual_machine: bool,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Version of PostgreSQL.
    pub postgres: Option<String>,
    /// cgroup version, 0 where none could be read.
    pub cgroup: u8,
    /// Host facts that weaken absolute figures: a governor, turbo, SMT.
    pub notes: Vec<String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnd {
    /// Everything that could be measured was.
    Completed,
    /// Ctrl-C or SIGTERM.
    Interrupted,
    /// A step failed that everything needs.
    Failed(Failure),
}
