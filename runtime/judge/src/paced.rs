//! CPU per request at quiet pace: what stands beside a raw figure, and where none is determined.

use plan::{Gate, Metric, Phase};

use crate::judgement::JudgedRepetition;
use crate::words::percent;

/// From this many repetitions on, a regression on the slowdown checks the estimate.
const LEAST_FOR_REGRESSION: usize = 8;

/// A regression that explains less says nothing.
const LEAST_R_SQUARED: f64 = 0.5;

/// The slowdowns have to differ at least by this ratio for a regression.
const LEAST_RANGE: f64 = 0.1;

/// Estimate and regression may differ by this ratio.
const MAY_DIFFER: f64 = 0.10;

/// The repetitions that count: valid ones, and those that are void for pace or steal and for what follows from these only.
///
/// A CPU that ran slower raises the CPU per request (service-demand), and stolen time lowers the cores used (saturation): failures of
/// these two are forgiven beside a failed pace or steal. Demand may be compared at equal utilisation only, so a repetition that
/// failed saturation counts only when its cores used ÷ (1 − steal) are within the gate of the highest.
pub(crate) fn usable<'a>(phase: &Phase, ended: &[&'a JudgedRepetition]) -> Vec<&'a JudgedRepetition> {
    let usable: Vec<&JudgedRepetition> = ended.iter().copied().filter(|repetition| only_slowed(repetition)).collect();
    let drop = phase.gates.iter().find_map(|gate| match gate {
        Gate::Saturation { drop } => Some(*drop),
        _ => None,
    });
    let Some(drop) = drop else {
        return usable;
    };
    let highest = usable.iter().filter_map(|repetition| available_use(repetition)).fold(0.0, f64::max);
    usable
        .into_iter()
        .filter(|repetition| {
            let saturated = !repetition.failed_gates().any(|gate| gate.gate == "saturation");
            saturated || available_use(repetition).is_some_and(|used| used >= (1.0 - drop) * highest)
        })
        .collect()
}

fn only_slowed(repetition: &JudgedRepetition) -> bool {
    let failed: Vec<&str> = repetition.failed_gates().map(|gate| gate.gate.as_str()).collect();
    let slowed = failed.iter().any(|gate| matches!(*gate, "pace" | "steal"));
    repetition.is_valid()
        || (!repetition.superseded
            && slowed
            && failed.iter().all(|gate| matches!(*gate, "pace" | "steal" | "service-demand" | "saturation")))
}

/// Cores used ÷ (1 − steal): the use of what the hypervisor left.
fn available_use(repetition: &JudgedRepetition) -> Option<f64> {
    let used = *repetition.values.get(&Metric::CoresUsed)?;
    let steal = repetition
        .gates
        .iter()
        .find(|gate| gate.gate == "steal")
        .and_then(|gate| {
            let shares: Vec<f64> = gate
                .values
                .iter()
                .filter(|value| value.name.starts_with("steal of CPU"))
                .filter_map(|value| value.value)
                .collect();
            stats::mean(&shares)
        })
        .unwrap_or(0.0);
    let use_of_rest = used / (1.0 - steal);
    use_of_rest.is_finite().then_some(use_of_rest)
}

/// What a reader has to know beside a paced figure.
pub(crate) fn note(usable: &[&JudgedRepetition]) -> String {
    let slowed = usable.iter().filter(|repetition| !repetition.is_valid()).count();
    format!(
        "at quiet pace: an estimate from {} repetitions, {slowed} of them void as absolute figures for pace or steal only",
        usable.len()
    )
}

/// Where at least eight repetitions differ in their slowdown: why the estimate is withheld, because a regression of the raw CPU
/// per request on the slowdown foretells another value at quiet pace.
pub(crate) fn contradiction(with_value: &[(f64, &JudgedRepetition)]) -> Option<String> {
    let rows: Vec<(f64, f64)> = with_value
        .iter()
        .filter_map(|(paced, repetition)| {
            let raw = *repetition.values.get(&Metric::CpuPerRequest)?;
            let slowdown = raw / paced;
            slowdown.is_finite().then_some((slowdown, raw))
        })
        .collect();
    if rows.len() < LEAST_FOR_REGRESSION {
        return None;
    }
    let slowdowns: Vec<f64> = rows.iter().map(|row| row.0).collect();
    let raw: Vec<f64> = rows.iter().map(|row| row.1).collect();
    let range = stats::quantile(&slowdowns, 1.0)? - stats::quantile(&slowdowns, 0.0)?;
    if range < LEAST_RANGE {
        return None;
    }
    let fitted = stats::Regression::fit(&raw, &[&slowdowns])?;
    let paced: Vec<f64> = with_value.iter().map(|(paced, _)| *paced).collect();
    let differ = fitted.at(&[1.0])? / stats::median(&paced)? - 1.0;
    (fitted.r_squared >= LEAST_R_SQUARED && differ.abs() > MAY_DIFFER).then(|| {
        format!(
            "two ways to the CPU per request at quiet pace differ by {}, more than {}: in proportion to pace, and by regression \
             over {} repetitions",
            percent(differ.abs()),
            percent(MAY_DIFFER),
            rows.len()
        )
    })
}
