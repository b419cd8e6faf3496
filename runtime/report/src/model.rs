//! The report as data: what `report.json` holds, and all that the other renders read.
//!
//! Values are exact and in the unit that stands beside them; nothing here is rounded or laid out.

mod over_time;
mod sent;

use std::collections::BTreeMap;

use judge::{AgreementOutcome, ChoiceOutcome, ConditionOutcome, Confidence, CpuPace, GateOutcome, QuietTime, Verdict};
use plan::Metric;
use serde::{Deserialize, Serialize};

pub use over_time::{Line, LineChart, Trace};
pub use sent::{Sent, Spread};

/// Version of `report.json`: a reader refuses another major version and ignores unknown fields.
pub const REPORT_VERSION: &str = "1.0";

/// Everything that is published about one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// [`REPORT_VERSION`] of the program that made it.
    pub version: String,
    /// What was asked.
    pub study: Study,
    /// The run; `None` where the journal ends before its first record.
    pub run: Option<String>,
    /// The verdict and its reasons.
    pub verdict: Verdict,
    /// How far the figures can be trusted, derived.
    pub confidence: Confidence,
    /// How the run ended.
    pub ending: Ending,
    /// What weakens the figures, in order of weight.
    pub limits: Vec<String>,
    /// Tables, charts and plans, in the study's order.
    pub items: Vec<Item>,
    /// Candidates that could not be measured.
    pub not_measured: Vec<NotMeasured>,
    /// The contract's outcome for each candidate that was asked.
    pub contract: Vec<ContractOutcome>,
    /// Every figure, published in a table or not.
    pub figures: Vec<Figure>,
    /// Levels that phases chose.
    pub choices: Vec<ChoiceOutcome>,
    /// Checks between phases.
    pub agreements: Vec<AgreementOutcome>,
    /// Every repetition that counts, valid or void.
    pub repetitions: Vec<Repetition>,
    /// Quiet time of the pace witness on each CPU.
    pub quiet: BTreeMap<u32, QuietTime>,
    /// Repetitions and steps that could not be carried out.
    pub failures: Vec<FailureNote>,
    /// Repetitions that were measured and no longer count, because what made them changed.
    pub superseded: Vec<Superseded>,
    /// Where it ran, one entry per start or resumption.
    pub environment: Vec<Stretch>,
    /// The gates of each phase with their thresholds, in words.
    pub gates: Vec<PhaseGates>,
    /// How long everything took.
    pub durations: Durations,
    /// How to get the same figures again.
    pub reproduce: Reproduce,
}

/// The study and the conditions it was compiled for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Study {
    /// Its name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// The question.
    pub question: String,
    /// The machine's name.
    pub machine: String,
    /// Why this machine.
    pub machine_chosen: String,
    /// CPUs of each role, as the kernel writes lists.
    pub cpus: BTreeMap<String, String>,
    /// Where each of several generators runs, in words; empty where there is one process on the load role's CPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<String>,
    /// The profile, if one was applied.
    pub profile: Option<String>,
    /// Names and labels of the candidates, in the study's order.
    pub candidates: Vec<(String, String)>,
}

/// How the run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Everything that could be measured was.
    Completed,
    /// Ctrl-C or SIGTERM.
    Interrupted,
    /// A step failed that everything needs.
    Failed {
        /// The failure, in one sentence.
        what: String,
        /// Why, where known.
        why: String,
        /// What to do next.
        next: String,
    },
    /// The journal has no end: the run goes on, or was killed.
    Open,
}

/// One level of one factor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level {
    /// The factor.
    pub factor: String,
    /// Its level.
    pub level: String,
}

/// One figure: a metric of a phase in one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Figure {
    /// Such as `ceiling.throughput`.
    pub name: String,
    /// The phase.
    pub phase: String,
    /// The metric, stored by its name.
    #[serde(with = "by_name")]
    pub metric: Metric,
    /// The cell's levels, stored as an object of levels by factor.
    #[serde(with = "by_factor")]
    pub cell: Vec<Level>,
    /// The value; `None` when it is not determined.
    pub value: Option<f64>,
    /// Unit of value, interval and seen.
    pub unit: String,
    /// Interval of the estimate, where the repetitions allow one.
    pub interval: Option<(f64, f64)>,
    /// The interval's coverage, 0–1.
    pub coverage: Option<f64>,
    /// Why there is no value.
    pub not_determined: Option<String>,
    /// What was seen in every measured repetition, void ones included.
    pub seen: Option<Seen>,
    /// Why the value is only a bound: a floor.
    pub bound: Option<String>,
    /// The estimator.
    pub estimator: String,
    /// How it is derived from the facts.
    pub formula: String,
    /// The rounding rule.
    pub rounding: String,
    /// (largest − smallest) ÷ median of the repetitions that count, a ratio.
    pub spread: Option<f64>,
    /// What a reader has to know beside the value.
    pub notes: Vec<String>,
    /// Whether an estimate or the report of the study names it.
    pub published: bool,
    /// Valid repetitions that it is made of.
    pub valid: u32,
    /// Void repetitions that it is not made of.
    pub void: u32,
    /// The repetitions that it is made of.
    pub rows: Vec<String>,
}

impl Figure {
    /// The levels as text: `go, 1 core`; empty for a phase without axes.
    pub fn cell_name(&self) -> String {
        name_of(&self.cell)
    }

    /// The level of one factor in this cell.
    pub fn level(&self, factor: &str) -> Option<&str> {
        self.cell.iter().find(|level| level.factor == factor).map(|level| level.level.as_str())
    }
}

/// Levels as people say them: `go, 1 core, pool 8`.
pub fn name_of(levels: &[Level]) -> String {
    levels.iter().map(|level| crate::render::words::level(&level.factor, &level.level)).collect::<Vec<_>>().join(", ")
}

/// What was seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Seen {
    /// Smallest.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Largest.
    pub max: f64,
    /// Repetitions.
    pub n: u32,
}

/// One item of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Item {
    /// A table of figures.
    Table(Table),
    /// A bar chart of figures.
    BarChart(BarChart),
    /// A metric over the window.
    LineChart(LineChart),
    /// Levels that a phase chose, and what the worst would have cost.
    Choices(ChoiceTable),
    /// Cores and instances for a target rate.
    CapacityPlan(CapacityPlan),
}

impl Item {
    /// The heading.
    pub fn title(&self) -> &str {
        match self {
            Self::Table(table) => &table.title,
            Self::BarChart(chart) => &chart.title,
            Self::LineChart(chart) => &chart.title,
            Self::Choices(choices) => &choices.title,
            Self::CapacityPlan(plan) => &plan.title,
        }
    }

    /// Whether anything was measured that it could show, determined or only seen.
    pub fn shows_something(&self, report: &Report) -> bool {
        let is_seen = |cell: &Cell| {
            cell.figure
                .and_then(|index| report.figures.get(index))
                .is_some_and(|figure| figure.value.is_some() || figure.seen.is_some())
        };
        match self {
            Self::Table(table) => table.rows.iter().flat_map(|row| &row.cells).any(is_seen),
            Self::BarChart(chart) => chart.bars.iter().any(|bar| is_seen(&bar.cell) || !bar.points.is_empty()),
            Self::LineChart(chart) => chart.lines.iter().any(|line| !line.repetitions.is_empty()),
            Self::Choices(table) => table
                .choices
                .iter()
                .filter_map(|&index| report.choices.get(index))
                .any(|choice| choice.levels.iter().any(|level| level.score.is_some())),
            // It says itself why it can't be made; without ceilings the table of the ceilings says why.
            Self::CapacityPlan(plan) => {
                plan.not_possible.is_some() || plan.rows.iter().any(|row| row.ceiling.is_some())
            }
        }
    }
}

/// A table of figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Table {
    /// Heading.
    pub title: String,
    /// The figure's name, such as `ceiling.throughput`.
    pub of: String,
    /// What the figure is, in words: the metric, its unit, the estimator.
    pub about: String,
    /// Factors whose levels are the same in every cell of the table, stored as an object of levels by factor.
    #[serde(with = "by_factor")]
    pub fixed: Vec<Level>,
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// One row of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Row {
    /// What people read: a candidate's label, further levels.
    pub label: String,
    /// The levels, stored as an object of levels by factor.
    #[serde(with = "by_factor")]
    pub levels: Vec<Level>,
    /// One cell per column.
    pub cells: Vec<Cell>,
}

/// One cell of a table or bar of a chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cell {
    /// Index into the report's figures.
    pub figure: Option<usize>,
    /// Why there is no figure at all.
    pub missing: Option<String>,
}

/// A bar chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BarChart {
    /// Heading.
    pub title: String,
    /// The figure's name.
    pub of: String,
    /// What the figure is, in words.
    pub about: String,
    /// Unit of the values.
    pub unit: String,
    /// The bars, in order.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Bar {
    /// What people read.
    pub label: String,
    /// Level of the factor within a group.
    pub group: Option<String>,
    /// The figure, if there is one.
    pub cell: Cell,
    /// Its value; `None` when not determined.
    pub value: Option<f64>,
    /// The value of every repetition behind or beside it, with the repetition's verdict.
    pub points: Vec<Point>,
}

/// One repetition in a chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Point {
    /// The repetition.
    pub repetition: String,
    /// Its value.
    pub value: f64,
    /// Whether it is valid.
    pub valid: bool,
}

/// Levels that a phase chose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ChoiceTable {
    /// Heading.
    pub title: String,
    /// The phase that chose.
    pub phase: String,
    /// The factor that was chosen.
    pub factor: String,
    /// Indices into the report's choices.
    pub choices: Vec<usize>,
    /// Why there are none.
    pub missing: Option<String>,
}

/// Cores and instances for target rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CapacityPlan {
    /// Heading.
    pub title: String,
    /// The phase whose ceilings are used.
    pub of: String,
    /// Cores of one instance.
    pub cores: i64,
    /// Why it can't be made here.
    pub not_possible: Option<String>,
    /// How it is derived.
    pub formula: String,
    /// Target rates, per second.
    pub targets: Vec<f64>,
    /// One row per candidate.
    pub rows: Vec<CapacityRow>,
}

/// What one candidate needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CapacityRow {
    /// The candidate.
    pub candidate: String,
    /// Its label.
    pub label: String,
    /// The ceiling of one instance, per second.
    pub ceiling: Option<f64>,
    /// Whether the ceiling is only a floor, so that the needs are upper bounds.
    pub upper_bound: bool,
    /// Why nothing can be said.
    pub missing: Option<String>,
    /// One need per target.
    pub needs: Vec<Need>,
}

/// What a target needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Need {
    /// The target, per second.
    pub target: f64,
    /// Instances: ⌈target ÷ ceiling⌉.
    pub instances: u64,
    /// Cores: target ÷ ceiling × cores of an instance, that is target × CPU per request ÷ attained utilisation.
    pub cores: f64,
}

/// A candidate that could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NotMeasured {
    /// The candidate.
    pub candidate: String,
    /// Its label.
    pub label: String,
    /// Why not.
    pub why: String,
    /// The command that mends it.
    pub mend: String,
}

/// The contract's outcome for one candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ContractOutcome {
    /// The candidate.
    pub candidate: String,
    /// Cases that passed.
    pub passed: u64,
    /// Cases that were tried.
    pub tried: u64,
    /// Cases of the study.
    pub of: u64,
    /// Those that failed, with what was expected and what came.
    pub failed: Vec<(String, String)>,
}

/// A repetition that counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Repetition {
    /// Such as `ceiling/2#1`.
    pub id: String,
    /// The phase.
    pub phase: String,
    /// Index of the cell in the phase.
    pub cell: u32,
    /// From 1 within the cell.
    pub number: u32,
    /// The levels, chosen and computed ones included.
    pub levels: BTreeMap<String, String>,
    /// Whether it is valid.
    pub valid: bool,
    /// Why it is void, one sentence per gate that failed.
    pub reasons: Vec<String>,
    /// Every gate's outcome and the values that decided it.
    pub gates: Vec<GateOutcome>,
    /// Its values by the metric's name, in each metric's unit.
    pub values: BTreeMap<String, f64>,
    /// Why a metric has no value, by its name.
    pub missing: BTreeMap<String, String>,
    /// The course of a metric over the window, by its name: seconds after the window's start, value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub course: BTreeMap<String, Vec<(f64, f64)>>,
    /// The pace of each CPU of the candidate.
    pub pace: BTreeMap<u32, CpuPace>,
    /// Each condition of `carried`, in an open loop that has some.
    pub conditions: Vec<ConditionOutcome>,
    /// Whether its rate was carried.
    pub carried: Option<bool>,
    /// Requests of the window that were answered as expected.
    pub ok: u64,
    /// Failures of the window by reason.
    pub failures: BTreeMap<String, u64>,
    /// The first few wrong answers.
    pub evidence: Vec<String>,
    /// Who sent its load, and distributions beside the figures.
    #[serde(default, skip_serializing_if = "Sent::is_empty")]
    pub sent: Sent,
    /// Problems met while its facts were gathered.
    pub findings: Vec<String>,
    /// Window, ns.
    pub window_ns: u64,
    /// With everything around it, ns.
    pub took_ns: u64,
}

/// Something that could not be carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FailureNote {
    /// The step or repetition.
    pub of: String,
    /// What happened.
    pub what: String,
    /// Why, where known.
    pub why: String,
    /// What to do next.
    pub next: String,
    /// The last lines of its log.
    pub log: Vec<String>,
}

/// A repetition that no longer counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Superseded {
    /// Such as `ceiling/2#1`.
    pub id: String,
    /// Its levels.
    pub levels: BTreeMap<String, String>,
    /// Why it no longer counts.
    pub why: String,
}

/// One stretch of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Stretch {
    /// First record, RFC 3339 in UTC.
    pub from: String,
    /// Length, ns.
    pub took_ns: u64,
    /// Finished repetitions kept and measured anew, for a resumption.
    pub resumed: Option<(u64, u64)>,
    /// Where it ran.
    pub environment: journal::Environment,
}

/// A phase's gates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PhaseGates {
    /// The phase.
    pub phase: String,
    /// How a repetition is measured, in words.
    pub procedure: String,
    /// Valid repetitions wanted of each cell.
    pub wanted: u32,
    /// Repetitions measured at the most.
    pub at_most: u32,
    /// The gates with their thresholds, in words.
    pub gates: Vec<String>,
}

/// How long everything took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Durations {
    /// The whole run without pauses between stretches, ns.
    pub total_ns: u64,
    /// Steps of preparation: name and ns.
    pub steps: Vec<(String, u64)>,
    /// Phases: name, repetitions, ns spent in them.
    pub phases: Vec<(String, u64, u64)>,
}

/// How to get the same figures again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reproduce {
    /// The command line that makes every figure of the report.
    pub command: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// Hash of the plan.
    pub plan: String,
    /// Version of the journal's format.
    pub journal: String,
}

/// A metric as its name in the language.
mod by_name {
    use plan::Metric;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(metric: &Metric, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(metric.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Metric, D::Error> {
        let name = String::deserialize(deserializer)?;
        Metric::from_name(&name).ok_or_else(|| serde::de::Error::custom(format!("`{name}` is no metric")))
    }
}

/// Levels as an object.
mod by_factor {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::Level;

    pub fn serialize<S: Serializer>(levels: &[Level], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(levels.iter().map(|level| (&level.factor, &level.level)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Level>, D::Error> {
        let levels = BTreeMap::<String, String>::deserialize(deserializer)?;
        Ok(levels.into_iter().map(|(factor, level)| Level { factor, level }).collect())
    }
}
