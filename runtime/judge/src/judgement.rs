//! What a run's evidence amounts to: judged repetitions, figures, choices, agreements, verdict, confidence.
//!
//! Everything here is derived: the same plan and the same events give the same judgement, live and replayed.

use std::collections::BTreeMap;

use journal::RepetitionId;
use plan::{Metric, MetricRef};
use serde::{Deserialize, Serialize};

/// What a run's evidence amounts to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Judgement {
    /// Every repetition that ended, in the order of the journal; superseded ones too, marked.
    pub repetitions: Vec<JudgedRepetition>,
    /// Every figure of every phase, in the plan's order of phases and cells.
    pub figures: Vec<Figure>,
    /// Every choice, one for each combination of the factors it is made for.
    pub choices: Vec<ChoiceOutcome>,
    /// Every agreement of the plan.
    pub agreements: Vec<AgreementOutcome>,
    /// Whether the study's figures may be published, and why.
    pub verdict: Verdict,
    /// How far they may be trusted, and why.
    pub confidence: Confidence,
    /// The quiet time of each CPU that the witness ran on, by CPU number.
    pub quiet: BTreeMap<u32, QuietTime>,
    /// Sentences that weaken what may be claimed: the plan's own limits and those that the run showed.
    pub limits: Vec<String>,
}

impl Judgement {
    /// The figure of a phase at a cell, given by the levels of the figure's own factors.
    pub fn figure(&self, phase: &str, metric: Metric, cell: &[(String, String)]) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.phase == phase && figure.metric == metric && figure.cell == cell)
    }

    /// The judged repetitions of a cell that still count, in the order of the journal.
    pub fn repetitions_of<'a>(&'a self, phase: &'a str, cell: u32) -> impl Iterator<Item = &'a JudgedRepetition> {
        self.repetitions.iter().filter(move |repetition| {
            !repetition.superseded && repetition.id.phase == phase && repetition.id.cell == cell
        })
    }
}

/// One repetition, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct JudgedRepetition {
    /// Which one.
    pub id: RepetitionId,
    /// Valid, or void for the gates that failed.
    pub verdict: RepetitionVerdict,
    /// Measured under settings that have changed since: it stays, and counts for nothing.
    pub superseded: bool,
    /// Every gate, passed ones too, with the values that decided.
    pub gates: Vec<GateOutcome>,
    /// What was measured, in each metric's unit. Always finite; a metric without data is in `missing`.
    pub values: BTreeMap<Metric, f64>,
    /// Why a metric that this kind of phase yields has no value.
    pub missing: BTreeMap<Metric, String>,
    /// The pace of each CPU of the candidate in the window.
    pub pace: BTreeMap<u32, CpuPace>,
    /// Open loop with `carried` conditions: each condition. Empty otherwise.
    pub conditions: Vec<ConditionOutcome>,
    /// Whether every condition held; `None` where there is none or one can't be judged.
    pub carried: Option<bool>,
    /// Open loop: the rate that was offered, per second.
    pub rate: Option<f64>,
    /// Set where something other than the candidate was the limit: the sentence that a floor prints.
    pub limited_by: Option<String>,
    /// What a reader should know though it voids nothing: a checkpoint in the window, foreign load, what could not be read.
    pub remarks: Vec<String>,
    /// The levels, chosen and computed ones included.
    pub levels: BTreeMap<String, String>,
}

impl JudgedRepetition {
    /// Whether it is valid.
    pub fn is_valid(&self) -> bool {
        self.verdict == RepetitionVerdict::Valid
    }

    /// Whether it was measured at all, valid or not.
    pub fn is_measured(&self) -> bool {
        self.gates.iter().all(|gate| gate.gate != NOT_MEASURED)
    }

    /// The gates that failed.
    pub fn failed_gates(&self) -> impl Iterator<Item = &GateOutcome> {
        self.gates.iter().filter(|gate| !gate.passed)
    }

    /// Whether it was measured and every gate that failed is of one of these kinds; true of a valid one.
    pub fn failed_only(&self, kinds: &[GateKind]) -> bool {
        !self.superseded && self.failed_gates().all(|gate| kinds.contains(&gate.kind))
    }
}

/// The name of the outcome that a repetition has which could not be measured.
pub const NOT_MEASURED: &str = "measured";

/// Whether a repetition counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RepetitionVerdict {
    /// Every gate passed.
    Valid,
    /// Some gate failed, or it could not be measured.
    Void,
}

/// The outcome of one gate on one repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GateOutcome {
    /// The gate's name.
    pub gate: String,
    /// Whether it passed.
    pub passed: bool,
    /// The values that decided, thresholds included.
    pub values: Vec<GateValue>,
    /// One sentence that stands alone.
    pub sentence: String,
    /// What its failure means.
    pub kind: GateKind,
}

/// One value that a gate looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GateValue {
    /// What it is: `quiet share of CPU 0`.
    pub name: String,
    /// The value; `None` where it could not be had.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: String,
}

/// What the failure of a gate means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateKind {
    /// What was recorded is not what was asked for: answers, rows, counters, window, mix.
    Wrong,
    /// Something outside the study slowed the measured CPUs: pace, steal, stalls, demand above the cell's lowest.
    Disturbed,
    /// The bench and not the candidate was the limit.
    BenchLimited,
}

/// The pace of one CPU within a window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CpuPace {
    /// Quiet time ÷ capped mean of the samples, 0–1; about 1 on a quiet core.
    pub pace: f64,
    /// Share of the samples within 15 % of the quiet time, 0–1.
    pub quiet_share: f64,
    /// Mean of the samples, each capped at 3 × the quiet time, ns.
    pub capped_mean_ns: f64,
    /// The speed to which the CPU was slowed in the moments that were not quiet, as a share of its quiet speed.
    pub slowed_to: f64,
    /// Samples in the window.
    pub samples: u64,
}

/// The quiet time of one CPU: how long the witness's fixed work takes there when nobody disturbs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct QuietTime {
    /// The 10th percentile of the run's samples, ns.
    pub quiet_ns: f64,
    /// The run's samples.
    pub samples: u64,
    /// Why it can't serve as a reference, if so: too few samples, or no quiet moments in the run.
    pub problem: Option<String>,
}

/// A condition of `carried` on one repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ConditionOutcome {
    /// As the study writes it.
    pub written: String,
    /// The value, in the metric's unit; `None` where there is none, and then it does not hold.
    pub value: Option<f64>,
    /// Whether it held.
    pub held: bool,
}

/// A figure: one metric of one phase at one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Figure {
    /// `ceiling.throughput`.
    pub name: String,
    /// The phase.
    pub phase: String,
    /// What of it.
    pub metric: Metric,
    /// The levels of the figure's factors, in the phase's order. A `carried` figure has none for its rate.
    pub cell: Vec<(String, String)>,
    /// The value, or why there is none.
    pub outcome: Outcome,
    /// What all measured repetitions showed, void ones included. Never hidden, never a result.
    pub seen: Option<Seen>,
    /// Unit of every value here.
    pub unit: String,
    /// How the value is made of the repetitions.
    pub estimator: String,
    /// Repetitions that count for it.
    pub valid: u32,
    /// Repetitions that don't.
    pub void: u32,
    /// Set where the value only bounds the truth: the sentence that stands beside it.
    pub bound: Option<String>,
    /// The formula.
    pub formula: String,
    /// The repetitions it was made of.
    pub rows: Vec<RepetitionId>,
    /// The rounding rule.
    pub rounding: String,
    /// (largest − smallest) ÷ median of the repetitions that count, as a ratio.
    pub spread: Option<f64>,
    /// Whether the study publishes it: an estimate or the report names it.
    pub published: bool,
    /// A best value that the second best misses by more than 2 %, or that stands alone.
    pub not_reproduced: bool,
    /// What a reader has to know beside the value: the gap to the second best, inversions, a paced basis.
    pub notes: Vec<String>,
}

impl Figure {
    /// The value, where it is determined.
    pub fn value(&self) -> Option<f64> {
        match self.outcome {
            Outcome::Determined { value, .. } => Some(value),
            Outcome::NotDetermined { .. } => None,
        }
    }
}

/// The value of a figure, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Determined.
    Determined {
        /// In the figure's unit, in full precision.
        value: f64,
        /// Interval of the estimate, where the estimator gives one.
        interval: Option<(f64, f64)>,
        /// The interval's coverage, 0–1: what it really is, not what was asked for.
        coverage: Option<f64>,
    },
    /// Not determined: the value is withheld.
    NotDetermined {
        /// Why, in one sentence.
        why: String,
    },
}

/// What the measured repetitions showed, void ones included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Seen {
    /// Smallest.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Largest.
    pub max: f64,
    /// Repetitions with a value.
    pub n: u32,
}

/// What was chosen for one combination of the factors that a choice is made for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ChoiceOutcome {
    /// The phase.
    pub phase: String,
    /// The factor whose level is chosen.
    pub factor: String,
    /// What is maximised.
    pub maximising: Metric,
    /// The combination it is made for.
    pub for_each: Vec<(String, String)>,
    /// The level, or why there is none.
    pub outcome: Chosen,
    /// Every level with what it scored.
    pub levels: Vec<LevelScore>,
    /// What is compared: `throughput`, or `throughput ÷ pace ÷ (1 − steal)`.
    pub basis: String,
    /// Why the choice is provisional, if it is.
    pub provisional: Option<String>,
    /// Set where the winner is the first or last level: the optimum may lie outside.
    pub not_bracketed: Option<String>,
    /// What the worst level costs, as a share of the best, with that base named: `30.7 % of the best (8) lost at 64`.
    pub worst: Option<WorstLevel>,
}

/// The chosen level, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chosen {
    /// Chosen.
    Level(String),
    /// Nothing could be chosen.
    None {
        /// Why not.
        why: String,
    },
}

/// What one level of a choice scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LevelScore {
    /// The level.
    pub level: String,
    /// What it scored; `None` where no repetition is usable.
    pub score: Option<f64>,
    /// The repetitions behind it.
    pub rows: Vec<RepetitionId>,
}

/// What the worst level of a choice costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WorstLevel {
    /// The level.
    pub level: String,
    /// (best − worst) ÷ best, as a ratio.
    pub cost_of_best: f64,
    /// The base, in words: `of the best, 8`.
    pub base: String,
}

/// An agreement, checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AgreementOutcome {
    /// Its name.
    pub name: String,
    /// One figure.
    pub left: MetricRef,
    /// The other, the base of the ratio.
    pub right: MetricRef,
    /// Largest accepted |left ÷ right − 1|.
    pub within: f64,
    /// Why it could not be checked at all, if so.
    pub not_checked: Option<String>,
    /// Each pair of cells.
    pub cells: Vec<AgreementCell>,
}

/// An agreement at one pair of cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AgreementCell {
    /// The levels of the factors that both figures have.
    pub cell: Vec<(String, String)>,
    /// The left figure's value.
    pub left: Option<f64>,
    /// The right figure's value.
    pub right: Option<f64>,
    /// left ÷ right − 1.
    pub difference: Option<f64>,
    /// What came of it.
    pub check: AgreementCheck,
}

/// What came of an agreement at one pair of cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgreementCheck {
    /// The figures agree.
    Agrees,
    /// They don't: both are withheld.
    Disagrees {
        /// In one sentence, with both values.
        why: String,
    },
    /// It could not be checked.
    NotChecked {
        /// Why not.
        why: String,
    },
}

/// Whether the study's figures may be published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Verdict {
    /// What it is.
    pub kind: VerdictKind,
    /// Why; empty only where it is `published`.
    pub reasons: Vec<String>,
}

/// The three verdicts on a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// Everything that the study publishes is determined, and nothing weakens it.
    Published,
    /// Something is determined, and the reasons say what is not or what weakens it.
    PublishedWithLimits,
    /// Nothing may be published.
    Void,
}

impl VerdictKind {
    /// The words that the report prints.
    pub fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::PublishedWithLimits => "published with limits",
            Self::Void => "void",
        }
    }
}

/// How far the figures may be trusted: derived, never typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Confidence {
    /// How far.
    pub level: ConfidenceLevel,
    /// What lowers it.
    pub reasons: Vec<String>,
}

/// The three degrees of confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfidenceLevel {
    /// Something weighty, or at least three things, lower it; or nothing is published.
    Low,
    /// One or two things lower it.
    Medium,
    /// Nothing lowers it.
    High,
}

impl ConfidenceLevel {
    /// The word that the report prints.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}
