//! Gates that compare a repetition with the best of its cell: CPU per request and cores used.
//!
//! They see what no probe sees: a host that slows the candidate makes the same request cost more, or keeps it off its cores.

use plan::{Gate, Metric, Phase};

use super::Draft;
use crate::judgement::{GateKind, GateOutcome, JudgedRepetition};
use crate::words::{number, percent, with_unit};

/// Adds the outcomes of the phase's relative gates to its repetitions. The base is the best repetition of the same cell at the
/// same levels among those whose answers, rows and counters are right.
///
/// Service-demand comes first: a repetition in which every request cost more may well have used more of its cores, and is no base
/// for saturation.
pub(crate) fn apply(phase: &Phase, repetitions: &mut [JudgedRepetition]) {
    let (demand, others): (Vec<&Gate>, Vec<&Gate>) =
        phase.gates.iter().partition(|gate| matches!(gate, Gate::ServiceDemand { .. }));
    for gate in demand.into_iter().chain(others) {
        let (metric, better): (Metric, fn(f64, f64) -> bool) = match gate {
            Gate::ServiceDemand { .. } => (Metric::CpuPerRequest, |value, best| value < best),
            Gate::Saturation { .. } => (Metric::CoresUsed, |value, best| value > best),
            _ => continue,
        };
        let outcomes: Vec<(usize, GateOutcome)> = repetitions
            .iter()
            .enumerate()
            .filter(|(_, repetition)| judged_here(phase, repetition))
            .map(|(index, repetition)| {
                let base = repetitions
                    .iter()
                    .filter(|other| other.id.cell == repetition.id.cell && judged_here(phase, other))
                    .filter(|other| other.levels == repetition.levels && can_be_base(other))
                    .filter_map(|other| Some((*other.values.get(&metric)?, other.id.number)))
                    .reduce(|best, other| if better(other.0, best.0) { other } else { best });
                (index, compare(gate, metric, repetition, base))
            })
            .collect();
        for (index, outcome) in outcomes {
            repetitions[index].gates.push(outcome);
        }
    }
}

/// Whether it was measured in this phase and still counts. What could not be measured has nothing to compare.
fn judged_here(phase: &Phase, repetition: &JudgedRepetition) -> bool {
    !repetition.superseded && repetition.id.phase == phase.name && repetition.is_measured()
}

fn can_be_base(repetition: &JudgedRepetition) -> bool {
    repetition.failed_gates().all(|gate| gate.kind != GateKind::Wrong && gate.gate != "service-demand")
}

fn compare(gate: &Gate, metric: Metric, repetition: &JudgedRepetition, base: Option<(f64, u32)>) -> GateOutcome {
    let mut draft = Draft::new(GateKind::Disturbed);
    let unit = metric.unit();
    let value = repetition.values.get(&metric).copied();
    draft.note(metric.name(), value, unit);
    draft.note("the cell's best", base.map(|base| base.0), unit);
    match (value, base) {
        (None, _) => {
            let why = repetition.missing.get(&metric).cloned().unwrap_or_else(|| "it was not recorded".to_owned());
            draft.fail(format!("{} is missing: {why}", metric.name()));
        }
        (Some(_), None) => draft.fail("no repetition of the cell is sound enough to compare with"),
        (Some(value), Some((best, number_of_best))) => match gate {
            Gate::ServiceDemand { rise } => {
                let risen = value / best - 1.0;
                draft.note("rise", Some(risen), "ratio");
                draft.note("largest accepted rise", Some(*rise), "ratio");
                if !risen.is_finite() || risen > *rise {
                    draft.fail(format!(
                        "CPU per request was {}, {} above the cell's lowest ({} in #{number_of_best}), more than {}",
                        with_unit(value, unit),
                        percent(risen),
                        with_unit(best, unit),
                        percent(*rise)
                    ));
                }
                draft.pass_with(|| {
                    format!(
                        "CPU per request was {}, {} above the cell's lowest",
                        with_unit(value, unit),
                        percent(risen)
                    )
                });
            }
            Gate::Saturation { drop } => {
                let dropped = 1.0 - value / best;
                draft.note("drop", Some(dropped), "ratio");
                draft.note("largest accepted drop", Some(*drop), "ratio");
                if !dropped.is_finite() || dropped > *drop {
                    draft.fail(format!(
                        "the candidate used {} cores, {} below the cell's highest ({} in #{number_of_best}), more than {}",
                        number(value),
                        percent(dropped),
                        number(best),
                        percent(*drop)
                    ));
                }
                draft.pass_with(|| {
                    format!("the candidate used {} cores, {} below the cell's highest", number(value), percent(dropped))
                });
            }
            _ => {}
        },
    }
    draft.named(gate.name())
}
