//! Phases: sets of cells measured by one procedure, and what is made of them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::gate::Gate;
use crate::hash::ContentHash;
use crate::tool::Tool;

/// A set of cells measured by one procedure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Phase {
    /// Name, as written after `phase`.
    pub name: String,
    /// How a repetition is measured.
    pub procedure: Procedure,
    /// What varies, in the order of `over`.
    pub axes: Vec<Axis>,
    /// Factors whose level another phase chose.
    pub with: Vec<Chosen>,
    /// Every combination of the axes' levels.
    pub cells: Vec<Cell>,
    /// How often and in which order.
    pub repeat: Repeat,
    /// The planned repetitions, in order. Repetitions that are measured again follow in further blocks.
    pub slots: Vec<Slot>,
    /// Checks of each repetition.
    pub gates: Vec<Gate>,
    /// Conditions under which a repetition carries its rate (open loop); empty otherwise.
    pub carried: Vec<Condition>,
    /// How values are made of a cell's repetitions.
    pub estimates: Vec<Estimate>,
    /// What is chosen from the cells for later phases.
    pub choose: Option<Choice>,
    /// Whether the relevant lower bound over the rate axis is the phase's `carried` figure.
    pub relevant_lower_bound: bool,
    /// The factor of resources whose smallest level that carries the load is the phase's `demand` figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demand: Option<String>,
    /// Phases that this one reads.
    pub reads: Vec<String>,
}

/// A factor whose level another phase chose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Chosen {
    /// The factor.
    pub factor: String,
    /// The phase that chose it.
    pub from: String,
}

/// How a repetition is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Procedure {
    /// The database alone, by pgbench.
    Pgbench(PgbenchProcedure),
    /// A candidate under load.
    Load(LoadProcedure),
    /// A candidate's start.
    Start(StartProcedure),
}

/// A candidate's start, from the request to start it to its first ready answer, with no load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StartProcedure {
    /// The window, in nanoseconds. It begins with the request to start the candidate, which must be ready within it.
    pub window_ns: u64,
}

/// pgbench against a fresh clone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PgbenchProcedure {
    /// The script.
    pub script: crate::subject::SqlFile,
    /// Concurrent clients.
    pub clients: u32,
    /// Threads of pgbench.
    pub jobs: u32,
    /// The window, in nanoseconds (whole seconds).
    pub window_ns: u64,
    /// Transactions per second on a schedule; `None`: as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// With a rate: transactions that would begin later than this are skipped, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_limit_ns: Option<u64>,
}

/// A candidate under load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LoadProcedure {
    /// The workload's name.
    pub workload: String,
    /// `None`: closed loop. Otherwise the rate of the open loop; where it is not constant, its mean over the window; where the
    /// streams have rates of their own, the sum of them.
    pub rate: Option<Rate>,
    /// How the rate goes over the window, leg by leg: together as long as the window. Empty: it is constant.
    #[serde(default)]
    pub course: Vec<Leg>,
    /// How an open loop's requests are spread in time.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Connections; where a factor gives them, the most of its levels.
    pub connections: u32,
    /// The factor whose level is the number of connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_of: Option<String>,
    /// Whether connections are kept; otherwise each request has one of its own.
    #[serde(default = "kept")]
    pub keep_alive: bool,
    /// The window, in nanoseconds.
    pub window_ns: u64,
    /// Load before the window, in nanoseconds.
    pub warm_up_ns: u64,
    /// An answer that takes longer has timed out, in nanoseconds.
    pub timeout_ns: u64,
    /// What sends it.
    #[serde(default, skip_serializing_if = "Tool::is_own")]
    pub with: Tool,
    /// How the requests travel.
    #[serde(default, skip_serializing_if = "crate::transport::Travel::is_plain")]
    pub travel: crate::transport::Travel,
}

fn kept() -> bool {
    true
}

/// A stretch of the window of an open loop in which the rate goes evenly from one value to another: a ramp, or a step where
/// both are the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Leg {
    /// Rate at its start, requests per second.
    pub from: f64,
    /// Rate at its end, requests per second.
    pub to: f64,
    /// Its length, ns.
    pub for_ns: u64,
}

impl Leg {
    /// The mean rate over legs, per second: the integral of the rate ÷ the time. 0 without any.
    pub fn mean(legs: &[Self]) -> f64 {
        let time: f64 = legs.iter().map(|leg| leg.for_ns as f64).sum();
        let area: f64 = legs.iter().map(|leg| (leg.from + leg.to) / 2.0 * leg.for_ns as f64).sum();
        if time > 0.0 { area / time } else { 0.0 }
    }
}

/// How the requests of an open loop are spread in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// On schedule: request `i` is due when the rate has amounted to `i` requests.
    #[default]
    Constant,
    /// A Poisson process of the same rate: seeded, gaps of an exponential distribution.
    Poisson,
}

/// The rate of an open loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// Requests per second.
    PerSecond(f64),
    /// The level of this factor.
    Factor(String),
}

/// One factor of a phase and its levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Axis {
    /// `candidate`, `cores`, or a factor of the study.
    pub factor: String,
    /// In the order of the study.
    pub levels: Vec<Level>,
}

/// One value of a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// A whole number.
    Integer(i64),
    /// A word, such as a candidate's name.
    Word(String),
    /// A rate in requests per second.
    PerSecond(f64),
    /// A share of a figure that another phase determines; known at run time.
    ShareOf {
        /// Ratio, such as 0.87.
        share: f64,
        /// The figure.
        of: MetricRef,
    },
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Word(word) => f.write_str(word),
            Self::PerSecond(rate) => write!(f, "{rate}/s"),
            Self::ShareOf { share, .. } => write!(f, "{}%", (share * 1e6).round() / 1e4),
        }
    }
}

/// One combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cell {
    /// The levels, one per axis of the phase, in the axes' order.
    pub levels: Vec<Level>,
    /// Hash over everything that can change what is measured here.
    pub hash: ContentHash,
}

/// How often a cell is measured, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Repeat {
    /// Valid repetitions that are wanted.
    pub valid: u32,
    /// Repetitions that are measured at the most, void ones included.
    pub at_most: u32,
    /// The order.
    pub order: Order,
}

/// The order of repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Randomised complete blocks: every block holds each cell once, in a seeded random order.
    Blocks,
    /// As listed, all repetitions of a cell in a row.
    Listed,
}

/// One planned repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Slot {
    /// Block, from 0.
    pub block: u32,
    /// Index into the phase's cells.
    pub cell: u32,
}

/// A figure of a phase, such as `pool-sweep.throughput`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MetricRef {
    /// The phase.
    pub phase: String,
    /// What of it.
    pub metric: Metric,
}

impl fmt::Display for MetricRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.phase, self.metric.name())
    }
}

/// What can be measured, estimated or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Expected answers per second of the window.
    Throughput,
    /// CPU time of the candidate per expected answer, in µs.
    CpuPerRequest,
    /// CPU per request × pace × (1 − steal), in µs.
    PacedCpuPerRequest,
    /// CPU time of the candidate ÷ window, in cores.
    CoresUsed,
    /// CPU time of the database per expected answer, in µs.
    DatabaseCpuPerRequest,
    /// CPU time of the database ÷ window, in cores.
    DatabaseCoresUsed,
    /// What the database did meanwhile: a group of figures.
    Database,
    /// Peak memory of the candidate, in bytes.
    Memory,
    /// Slope of the candidate's memory over the window, in bytes per second.
    MemoryGrowth,
    /// Request to start the candidate → its first ready answer, in ms.
    StartTime,
    /// CPU time of the candidate until its first ready answer, in ms.
    StartCpu,
    /// Request sent → last byte, in ms.
    ServiceP50,
    /// See [`Metric::ServiceP50`].
    ServiceP99,
    /// Request sent → first byte, in ms.
    TtfbP99,
    /// Due → last byte, open loop, in ms.
    CorrectedP50,
    /// See [`Metric::CorrectedP50`].
    CorrectedP99,
    /// See [`Metric::CorrectedP50`].
    CorrectedP999,
    /// Answers ÷ requests that were due, open loop, 0–1.
    Achieved,
    /// Failed, timed out and unsent requests.
    Errors,
    /// Transactions per second (pgbench).
    Tps,
    /// Mean latency of a transaction (pgbench), in ms.
    TransactionLatency,
    /// The rate that was carried, in requests per second.
    Carried,
    /// The smallest level of a resource that carries the load.
    Demand,
    /// The level that the phase chose, and what the worst one costs.
    Choice,
}

impl Metric {
    /// Every metric.
    pub const ALL: [Self; 24] = [
        Self::Throughput,
        Self::CpuPerRequest,
        Self::PacedCpuPerRequest,
        Self::CoresUsed,
        Self::DatabaseCpuPerRequest,
        Self::DatabaseCoresUsed,
        Self::Database,
        Self::Memory,
        Self::MemoryGrowth,
        Self::StartTime,
        Self::StartCpu,
        Self::ServiceP50,
        Self::ServiceP99,
        Self::TtfbP99,
        Self::CorrectedP50,
        Self::CorrectedP99,
        Self::CorrectedP999,
        Self::Achieved,
        Self::Errors,
        Self::Tps,
        Self::TransactionLatency,
        Self::Carried,
        Self::Demand,
        Self::Choice,
    ];

    /// The name in the language, the journal and the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::CpuPerRequest => "cpu-per-request",
            Self::PacedCpuPerRequest => "paced-cpu-per-request",
            Self::CoresUsed => "cores-used",
            Self::DatabaseCpuPerRequest => "database-cpu-per-request",
            Self::DatabaseCoresUsed => "database-cores-used",
            Self::Database => "database",
            Self::Memory => "memory",
            Self::MemoryGrowth => "memory-growth",
            Self::StartTime => "start-time",
            Self::StartCpu => "start-cpu",
            Self::ServiceP50 => "service.p50",
            Self::ServiceP99 => "service.p99",
            Self::TtfbP99 => "ttfb.p99",
            Self::CorrectedP50 => "corrected.p50",
            Self::CorrectedP99 => "corrected.p99",
            Self::CorrectedP999 => "corrected.p99.9",
            Self::Achieved => "achieved",
            Self::Errors => "errors",
            Self::Tps => "tps",
            Self::TransactionLatency => "transaction-latency",
            Self::Carried => "carried",
            Self::Demand => "demand",
            Self::Choice => "choice",
        }
    }

    /// The latency that it is a percentile of: the part of its name before the point, or the whole name.
    pub fn latency(self) -> &'static str {
        let name = self.name();
        name.split_once('.').map_or(name, |(latency, _)| latency)
    }

    /// The metric called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }

    /// The unit in which its value is stored and printed.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput | Self::Tps | Self::Carried => "1/s",
            Self::CpuPerRequest | Self::PacedCpuPerRequest | Self::DatabaseCpuPerRequest => "µs",
            Self::CoresUsed | Self::DatabaseCoresUsed => "cores",
            Self::Memory => "bytes",
            Self::MemoryGrowth => "bytes/s",
            Self::ServiceP50
            | Self::ServiceP99
            | Self::TtfbP99
            | Self::CorrectedP50
            | Self::CorrectedP99
            | Self::CorrectedP999
            | Self::TransactionLatency
            | Self::StartTime
            | Self::StartCpu => "ms",
            Self::Achieved => "ratio",
            Self::Errors | Self::Demand => "count",
            Self::Database | Self::Choice => "",
        }
    }
}

/// A condition on one repetition, such as `corrected.p99 < 10ms`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Condition {
    /// What is compared.
    pub metric: Metric,
    /// How.
    pub comparison: Comparison,
    /// With what, in the metric's unit.
    pub value: f64,
    /// As the study writes it.
    pub written: String,
}

/// How a condition compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the variants are the comparisons")]
pub enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

impl Comparison {
    /// Whether `left` compares so with `right`. Never true of a NaN.
    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Equal => left == right,
            Self::GreaterOrEqual => left >= right,
            Self::Greater => left > right,
        }
    }
}

/// How one value is made of a cell's valid repetitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Estimate {
    /// What is estimated.
    pub metric: Metric,
    /// How.
    pub by: Estimator,
}

/// Reduces a cell's valid repetitions to one value with an uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// The largest.
    Best,
    /// The largest of the valid ones, where interference can only subtract.
    BestOfValid,
    /// The median, with an interval by order statistics.
    Median,
    /// The mean.
    Mean,
    /// Carried in more than half of the repetitions.
    Majority,
}

impl Estimator {
    /// The name in the language and the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::BestOfValid => "best-of-valid",
            Self::Median => "median",
            Self::Mean => "mean",
            Self::Majority => "majority",
        }
    }
}

/// What is chosen from the cells for later phases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Choice {
    /// The factor whose level is chosen.
    pub factor: String,
    /// What is maximised.
    pub maximising: Metric,
    /// Chosen anew for each combination of these factors.
    pub for_each: Vec<String>,
}

/// A check between two figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Agreement {
    /// Name, as written after `agreement`.
    pub name: String,
    /// One figure.
    pub left: MetricRef,
    /// The other, the base of the ratio.
    pub right: MetricRef,
    /// |left ÷ right − 1| must not exceed this ratio.
    pub within: f64,
    /// Why it can't be checked in this profile, where a phase was left out.
    pub not_checked: Option<String>,
}
