//! Figures: what a phase measures, which factors a figure varies with, and whether one phase's cells say which cells of
//! another are meant.

use plan::{Level, Metric, MetricRef, Phase, Procedure, Rate};

/// Whether the phase yields this figure.
pub fn produces(phase: &Phase, metric: Metric, has_database: bool) -> bool {
    let open = matches!(&phase.procedure, Procedure::Load(load) if load.rate.is_some());
    match (&phase.procedure, metric) {
        (Procedure::Pgbench(_), Metric::Tps | Metric::TransactionLatency | Metric::DatabaseCoresUsed) => true,
        (Procedure::Pgbench(_), _) => false,
        (Procedure::Start(_), Metric::StartTime | Metric::StartCpu | Metric::Memory) => true,
        (Procedure::Start(_), _) => false,
        (Procedure::Load(_), Metric::Tps | Metric::TransactionLatency | Metric::StartTime | Metric::StartCpu) => false,
        (
            Procedure::Load(_),
            Metric::CorrectedP50 | Metric::CorrectedP99 | Metric::CorrectedP999 | Metric::Achieved,
        ) => open && matches!(&phase.procedure, Procedure::Load(load) if super::tool::accounts_for(load, metric)),
        (Procedure::Load(_), Metric::Carried) => !phase.carried.is_empty(),
        (Procedure::Load(_), Metric::Demand) => phase.demand.is_some(),
        (Procedure::Load(_), Metric::Choice) => phase.choose.is_some(),
        (Procedure::Load(_), Metric::Database | Metric::DatabaseCoresUsed | Metric::DatabaseCpuPerRequest) => {
            has_database
        }
        (Procedure::Load(load), _) => super::tool::accounts_for(load, metric),
    }
}

/// The metrics that the phase yields.
pub fn produced(phase: &Phase, has_database: bool) -> impl Iterator<Item = Metric> {
    Metric::ALL.into_iter().filter(move |metric| produces(phase, *metric, has_database))
}

/// The factor that gives the phase's rates, if it varies them.
pub fn rate_factor(phase: &Phase) -> Option<&str> {
    match &phase.procedure {
        Procedure::Load(load) => match &load.rate {
            Some(Rate::Factor(factor)) if phase.axes.iter().any(|axis| axis.factor == *factor) => Some(factor),
            _ => None,
        },
        Procedure::Pgbench(_) | Procedure::Start(_) => None,
    }
}

/// The factors of which the figure has one value per level: all axes of the phase, but what the figure itself decides
/// (the carried rate over the rates, the choice over the levels it chooses from).
pub fn axes(phase: &Phase, metric: Metric) -> Vec<&str> {
    let decided = match metric {
        Metric::Carried => rate_factor(phase),
        Metric::Demand => phase.demand.as_deref(),
        Metric::Choice => phase.choose.as_ref().map(|choice| choice.factor.as_str()),
        _ => None,
    };
    phase.axes.iter().map(|axis| axis.factor.as_str()).filter(|factor| Some(*factor) != decided).collect()
}

/// Why a figure has no single value for a cell of the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmapped {
    /// The figure varies with a factor that the reader has not.
    Factor(String),
    /// The reader has a level that the figure's phase lacks.
    Level {
        /// The factor.
        factor: String,
        /// The level.
        level: String,
    },
}

/// Whether every cell of `reader` (with `own` axes) says which value of `of` is meant.
///
/// # Errors
/// The factor or level that leaves it open.
pub fn maps(of: &MetricRef, source: &Phase, reader: &Phase, own: &[&str]) -> Result<(), Unmapped> {
    for factor in axes(source, of.metric) {
        if own.contains(&factor) {
            let levels = |phase: &Phase| -> Vec<Level> {
                phase.axes.iter().find(|axis| axis.factor == factor).map(|axis| axis.levels.clone()).unwrap_or_default()
            };
            let there = levels(source);
            if let Some(level) = levels(reader).iter().find(|level| !there.contains(level)) {
                return Err(Unmapped::Level { factor: factor.to_owned(), level: level.to_string() });
            }
            continue;
        }
        let taken = reader.with.iter().any(|chosen| chosen.factor == factor);
        let chosen = source.choose.as_ref().is_some_and(|choice| {
            choice.factor == factor && choice.for_each.iter().all(|each| own.contains(&each.as_str()))
        });
        if !taken && !chosen {
            return Err(Unmapped::Factor(factor.to_owned()));
        }
    }
    Ok(())
}
