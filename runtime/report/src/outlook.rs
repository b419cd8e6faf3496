//! How long a plan is expected to take, from the plan alone; corrected by what was measured once a run is going.
//!
//! The overheads are expectations for people who wait, never used for a figure.

use plan::{Gate, Phase, Plan, Procedure, StepKind};

/// Clone, prewarm, checkpoint and settling of a fresh database, ns.
pub const DATABASE_NS: u64 = 3_000_000_000;
/// Start of a candidate until it is ready, and its end, ns.
pub const SERVER_NS: u64 = 1_500_000_000;
/// The generator probe before a repetition: its server's start, the drive, its end, ns.
pub const PROBE_NS: u64 = 3_500_000_000;
/// The contract of one candidate, start and end included, ns.
pub const CONTRACT_NS: u64 = 3_000_000_000;
/// Start of the database server and the template, ns.
pub const TEMPLATE_NS: u64 = 15_000_000_000;

/// What a plan is expected to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// One entry per phase, in the plan's order.
    pub phases: Vec<PhaseOutlook>,
    /// Template and contracts, ns. Images that have to be built come on top: nobody knows how long that takes.
    pub preparation_ns: u64,
}

/// What one phase is expected to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseOutlook {
    /// The phase.
    pub phase: String,
    /// Its cells.
    pub cells: u64,
    /// Repetitions if none is void.
    pub repetitions: u64,
    /// Repetitions if every budget is used up.
    pub at_most: u64,
    /// One repetition with all that surrounds it, ns.
    pub repetition_ns: u64,
}

impl PhaseOutlook {
    /// The expectation for a phase of the plan.
    pub fn of(plan: &Plan, phase: &Phase) -> Self {
        let window = match &phase.procedure {
            Procedure::Pgbench(pgbench) => pgbench.window_ns,
            Procedure::Start(start) => start.window_ns.saturating_add(SERVER_NS),
            Procedure::Load(load) => load.window_ns.saturating_add(load.warm_up_ns).saturating_add(SERVER_NS),
        };
        let database =
            if plan.database.as_ref().is_some_and(|database| database.each_cell.clone) { DATABASE_NS } else { 0 };
        let probe =
            if phase.gates.iter().any(|gate| matches!(gate, Gate::GeneratorProbe { .. })) { PROBE_NS } else { 0 };
        let cells = phase.cells.len() as u64;
        Self {
            phase: phase.name.clone(),
            cells,
            repetitions: phase.slots.len() as u64,
            at_most: cells.saturating_mul(u64::from(phase.repeat.at_most)).max(phase.slots.len() as u64),
            repetition_ns: window.saturating_add(database).saturating_add(probe),
        }
    }

    /// The phase if no repetition is void, ns.
    pub fn planned_ns(&self) -> u64 {
        self.repetitions.saturating_mul(self.repetition_ns)
    }

    /// The phase if every budget is used up, ns.
    pub fn at_most_ns(&self) -> u64 {
        self.at_most.saturating_mul(self.repetition_ns)
    }
}

impl Outlook {
    /// The expectation for a plan.
    pub fn of(plan: &Plan) -> Self {
        let contracts =
            plan.steps.iter().filter(|step| matches!(step.kind, StepKind::VerifyContract { .. })).count() as u64;
        let template = if plan.database.is_some() { TEMPLATE_NS } else { 0 };
        Self {
            phases: plan.phases.iter().map(|phase| PhaseOutlook::of(plan, phase)).collect(),
            preparation_ns: template.saturating_add(contracts.saturating_mul(CONTRACT_NS)),
        }
    }

    /// Repetitions of all phases if none is void.
    pub fn repetitions(&self) -> u64 {
        self.phases.iter().map(|phase| phase.repetitions).sum()
    }

    /// Repetitions of all phases if every budget is used up.
    pub fn at_most(&self) -> u64 {
        self.phases.iter().map(|phase| phase.at_most).sum()
    }

    /// The whole run if no repetition is void, ns.
    pub fn planned_ns(&self) -> u64 {
        self.phases.iter().fold(self.preparation_ns, |sum, phase| sum.saturating_add(phase.planned_ns()))
    }

    /// The whole run if every budget is used up, ns.
    pub fn at_most_ns(&self) -> u64 {
        self.phases.iter().fold(self.preparation_ns, |sum, phase| sum.saturating_add(phase.at_most_ns()))
    }
}
