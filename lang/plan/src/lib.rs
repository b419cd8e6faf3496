//! The plan: everything the runtime needs to execute a study, as plain data.
//!
//! `lang/analysis` lowers a checked study to a [`Plan`]; `runtime/engine` executes it; `runtime/judge` and
//! `runtime/report` read it. The plan is complete: it carries the text of every SQL file, the digest of every
//! image's build context and the resolved value of every setting, so nobody asks the study again. The same
//! sources always give the same bytes.
//!
//! Invariant: this crate depends on none of ours, does no I/O, and holds no behaviour beyond its own consistency
//! (topological order, content hashes, CPU sets, text with variables).

pub mod cpus;
pub mod gate;
pub mod graph;
pub mod hash;
pub mod input;
pub mod phase;
pub mod report;
pub mod subject;
pub mod text;
pub mod tool;
pub mod transport;
pub mod workload;

use serde::{Deserialize, Serialize};

pub use cpus::CpuSet;
pub use gate::Gate;
pub use graph::{Step, StepId, StepKind};
pub use hash::ContentHash;
pub use input::Input;
pub use phase::{
    Agreement, Arrivals, Axis, Cell, Choice, Condition, Estimate, Estimator, Leg, Level, LoadProcedure, Metric,
    MetricRef, Order, PgbenchProcedure, Phase, Procedure, Rate, Repeat, Slot, StartProcedure,
};
pub use report::{ReportItem, ReportPlan};
pub use subject::{
    Candidate, CellDatabase, Credentials, Database, GeneratorOn, GeneratorPlace, Image, ImageSource, Machine, Probe,
    ProcessCommand, ProcessRun, Ready, Role, SqlFile, Table, Token,
};
pub use text::{Piece, Text};
pub use tool::{Account, Tool};
pub use transport::{Certificates, Protocol, Tls, Travel};
pub use workload::{
    Body, BodyCheck, BodyFile, ContractCase, Expect, HeaderCheck, JsonTest, JsonType, Parameter, ParameterKind,
    Request, RowOrder, Stream, Workload,
};

/// Version of the plan's own format. A runtime refuses a plan of another version.
pub const PLAN_VERSION: u32 = 1;

/// A study, resolved and checked, ready to be executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Plan {
    /// [`PLAN_VERSION`] of the compiler that made it.
    pub version: u32,
    /// The study's name, as written after `study`.
    pub study: String,
    /// One line for people.
    pub title: String,
    /// The question that the study answers.
    pub question: String,
    /// Directory of the study file, relative to the place it was read from; build contexts are relative to it.
    pub root: String,
    /// The CPU layout that was chosen.
    pub machine: Machine,
    /// The profile that was applied, if any.
    pub profile: Option<String>,
    /// Seed of every random choice (order of blocks, generated parameters).
    pub seed: u64,
    /// Environment variables that the study reads, with the values that its texts hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// Environment variables whose values are secret: texts hold `${env:NAME}`, and only whoever executes the plan fills
    /// it in, at use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Issuers and the tokens they mint.
    pub credentials: Vec<Credentials>,
    /// The database under the candidates, if the study has one.
    pub database: Option<Database>,
    /// The no-op server that generator probes drive, if a gate needs it.
    pub probe: Option<Probe>,
    /// The systems under test, in the order of the study.
    pub candidates: Vec<Candidate>,
    /// What every candidate must answer before anything is measured.
    pub contract: Vec<ContractCase>,
    /// The traffic.
    pub workloads: Vec<Workload>,
    /// Topologically sorted: a phase stands after every phase that it reads.
    pub phases: Vec<Phase>,
    /// Checks between phases.
    pub agreements: Vec<Agreement>,
    /// What is published.
    pub report: ReportPlan,
    /// Time that the study may take, ns, where it says so. A run that took longer says so among its limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns: Option<u64>,
    /// Known before the run and printed in the report: accepted lints, shared CPUs, phases that a profile left out.
    pub limits: Vec<Limit>,
    /// The DAG: what has to happen, in a topological order.
    pub steps: Vec<Step>,
}

/// Something that weakens what the study may claim, known before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Limit {
    /// A short kebab-case name, such as `cpus-shared` or the name of an allowed lint.
    pub name: String,
    /// The sentence that the report prints.
    pub text: String,
    /// Whether the confidence of every figure is lowered by it.
    pub lowers_confidence: bool,
}

impl Plan {
    /// The phase called `name`.
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// The candidate called `name`.
    pub fn candidate(&self, name: &str) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.name == name)
    }

    /// The workload called `name`.
    pub fn workload(&self, name: &str) -> Option<&Workload> {
        self.workloads.iter().find(|workload| workload.name == name)
    }

    /// Hash over the whole plan.
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(self)
    }
}
