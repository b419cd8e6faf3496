//! What to measure next, and at which levels: what the engine asks between repetitions.

use std::collections::{BTreeMap, BTreeSet};

use plan::{Gate, Level, Metric, MetricRef, Phase, Plan};

use crate::derive::candidate_of;
use crate::evidence::Evidence;
use crate::judgement::{GateKind, JudgedRepetition, Judgement};
use crate::mapping::{Levels, cell_levels, map, show, with_chosen};

/// The cells (indices, ascending) of a phase that need another repetition within its `at_most`; empty: the phase is done.
///
/// A cell whose candidate can't be measured or failed its contract needs none. A cell whose levels can't be told (see [`levels`]) is
/// still wanted: only the attempt shows it.
pub fn wanted(plan: &Plan, phase: &str, judgement: &Judgement, evidence: &Evidence) -> Vec<u32> {
    let Some(phase) = plan.phase(phase) else {
        return Vec::new();
    };
    let mut counts: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for repetition in judgement.repetitions.iter().filter(|one| !one.superseded && one.id.phase == phase.name) {
        let (ended, valid) = counts.entry(repetition.id.cell).or_default();
        *ended += 1;
        *valid += u32::from(repetition.is_valid());
    }
    (0..phase.cells.len() as u32)
        .filter(|cell| {
            let (ended, valid) = counts.get(cell).copied().unwrap_or_default();
            valid < phase.repeat.valid
                && ended < phase.repeat.at_most
                && candidate_of(plan, phase, *cell).is_none_or(|name| evidence.excluded(plan, name).is_none())
        })
        .collect()
}

/// The level of every factor of a cell: its own, those that other phases chose, and shares of figures as rates.
///
/// A rate is written in requests per second without a unit, to two decimals at most. Levels are decided once: a cell that has
/// repetitions keeps theirs, whatever the figures behind them have become since, so that all its repetitions are of one kind.
///
/// # Errors
/// Why a level can't be told: the phase that chooses or determines it gave nothing usable.
pub fn levels(plan: &Plan, phase: &str, cell: u32, judgement: &Judgement) -> Result<BTreeMap<String, String>, String> {
    let phase = plan.phase(phase).ok_or_else(|| format!("there is no phase `{phase}` in the plan"))?;
    let Some(own) = phase.cells.get(cell as usize) else {
        return Err(format!("the phase `{}` has {} cells and none with number {cell}", phase.name, phase.cells.len()));
    };
    let factors: Vec<&String> =
        phase.axes.iter().map(|axis| &axis.factor).chain(phase.with.iter().map(|with| &with.factor)).collect();
    let decided = judgement
        .repetitions_of(&phase.name, cell)
        .find(|repetition| factors.iter().all(|factor| repetition.levels.contains_key(*factor)));
    if let Some(decided) = decided {
        return Ok(factors.into_iter().map(|factor| (factor.clone(), decided.levels[factor].clone())).collect());
    }
    let known = with_chosen(phase, cell, judgement)?;
    let mut levels: BTreeMap<String, String> = known.iter().cloned().collect();
    for (axis, level) in phase.axes.iter().zip(&own.levels) {
        let rate = match level {
            Level::PerSecond(rate) => *rate,
            Level::ShareOf { share, of } => share * reading(plan, judgement, of, &known)?.value,
            Level::Integer(_) | Level::Word(_) => continue,
        };
        if !rate.is_finite() || rate <= 0.0 {
            return Err(format!("`{}` of {} would be {rate} requests per second", axis.factor, show(&known)));
        }
        levels.insert(axis.factor.clone(), plain(rate));
    }
    Ok(levels)
}

/// The rate, per second, at which the generator probe of a cell is driven: the gate's `at` × the figure that it names, mapped
/// onto this cell, or × the highest rate that this cell has shown already where that is more: a probe below what it is to
/// vouch for would never pass.
///
/// # Errors
/// When the phase has no such gate, or the figure gave nothing usable.
pub fn probe_target(plan: &Plan, phase: &str, cell: u32, judgement: &Judgement) -> Result<f64, String> {
    let found = plan.phase(phase).ok_or_else(|| format!("there is no phase `{phase}` in the plan"))?;
    let Some((at, of)) = probe_gate(found) else {
        return Err(format!("the phase `{phase}` has no `generator-probe` gate"));
    };
    let shown = judgement
        .repetitions_of(phase, cell)
        .filter(|repetition| repetition.failed_only(&[GateKind::Disturbed, GateKind::BenchLimited]))
        .filter_map(|repetition| repetition.values.get(&Metric::Throughput).copied())
        .fold(0.0, f64::max);
    let known = with_chosen(found, cell, judgement).unwrap_or_else(|_| cell_levels(found, cell));
    let base = match reading(plan, judgement, of, &known) {
        Ok(reading) => reading.value.max(shown),
        Err(_) if shown > 0.0 => shown,
        Err(why) => return Err(why),
    };
    let target = at * base * PROBE_MARGIN;
    if target.is_finite() && target > 0.0 {
        Ok(target)
    } else {
        Err(format!("{at} × {of} is {target} requests per second for {}", show(&known)))
    }
}

/// The probe is driven this much above what the gate asks of the expected rate: a repetition that turns out somewhat
/// faster than expected is then still vouched for.
const PROBE_MARGIN: f64 = 1.1;

/// The probe gate of a phase.
pub(crate) fn probe_gate(phase: &Phase) -> Option<(f64, &MetricRef)> {
    phase.gates.iter().find_map(|gate| match gate {
        Gate::GeneratorProbe { at, of } => Some((*at, of)),
        _ => None,
    })
}

/// A figure as another phase reads it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    pub value: f64,
    /// Why it is not the figure's own value, if so.
    pub provisional: Option<String>,
}

/// The value of a figure for a cell of another phase with these levels: the determined value, else the largest that was seen in
/// repetitions that failed for disturbance or for the bench's own limit only.
pub(crate) fn reading(plan: &Plan, judgement: &Judgement, of: &MetricRef, levels: &Levels) -> Result<Reading, String> {
    let cell = map(plan, &judgement.choices, &of.phase, of.metric, levels)?;
    let figure = judgement
        .figure(&of.phase, of.metric, &cell)
        .ok_or_else(|| format!("the phase `{}` gives no `{}` for {}", of.phase, of.metric.name(), show(&cell)))?;
    let why = match &figure.outcome {
        crate::judgement::Outcome::Determined { value, .. } => {
            return Ok(Reading { value: *value, provisional: None });
        }
        crate::judgement::Outcome::NotDetermined { why } => why,
    };
    let phase = plan.phase(&of.phase).ok_or_else(|| format!("there is no phase `{}`", of.phase))?;
    let best = (0..phase.cells.len() as u32)
        .filter(|&index| {
            let own = cell_levels(phase, index);
            cell.iter().all(|level| own.contains(level))
        })
        .flat_map(|index| judgement.repetitions_of(&of.phase, index))
        .filter(|repetition| repetition.failed_only(&[GateKind::Disturbed, GateKind::BenchLimited]))
        .filter_map(|repetition| usable_value(repetition, of.metric))
        .fold(None, |best: Option<f64>, value| Some(best.map_or(value, |best| best.max(value))));
    match best {
        Some(value) => Ok(Reading {
            value,
            provisional: Some(format!(
                "{of} for {} is not determined ({why}); what reads it takes the largest value seen, {}",
                show(&cell),
                crate::words::with_unit(value, of.metric.unit())
            )),
        }),
        None => Err(format!("{of} for {} is not determined ({why}), and nothing usable was seen", show(&cell))),
    }
}

/// The sentences that readings of undetermined figures add to the limits, each once.
pub(crate) fn provisional_readings(plan: &Plan, evidence: &Evidence, judgement: &Judgement) -> Vec<String> {
    let mut limits = Vec::new();
    for phase in &plan.phases {
        // What was never measured has read nothing.
        let measured: BTreeSet<u32> = judgement
            .repetitions
            .iter()
            .filter(|repetition| !repetition.superseded && repetition.id.phase == phase.name)
            .map(|repetition| repetition.id.cell)
            .filter(|cell| (*cell as usize) < phase.cells.len())
            .collect();
        for cell in measured {
            if candidate_of(plan, phase, cell).is_some_and(|name| evidence.excluded(plan, name).is_some()) {
                continue;
            }
            let known = with_chosen(phase, cell, judgement).unwrap_or_else(|_| cell_levels(phase, cell));
            let shares = phase.cells[cell as usize].levels.iter().filter_map(|level| match level {
                Level::ShareOf { of, .. } => Some(of),
                _ => None,
            });
            for of in shares.chain(probe_gate(phase).map(|(_, of)| of)) {
                let provisional = reading(plan, judgement, of, &known).ok().and_then(|reading| reading.provisional);
                if let Some(sentence) = provisional
                    && !limits.contains(&sentence)
                {
                    limits.push(sentence);
                }
            }
        }
    }
    limits
}

/// The value of a metric in one repetition; for `carried` its rate, where it carried it.
fn usable_value(repetition: &JudgedRepetition, metric: Metric) -> Option<f64> {
    if metric == Metric::Carried {
        return (repetition.carried == Some(true)).then_some(repetition.rate).flatten();
    }
    repetition.values.get(&metric).copied()
}

/// A rate as text: two decimals at most, none where it is whole.
fn plain(rate: f64) -> String {
    format!("{}", stats::round::half_even(rate, 2))
}
