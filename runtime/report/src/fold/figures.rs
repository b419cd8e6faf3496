//! The judge's figures as the report stores them.

use judge::{Judgement, Outcome};

use crate::model::{Figure, Level, Seen};

/// Every figure, in the judge's order: the plan's order of phases and cells.
pub(super) fn figures(judgement: &Judgement) -> Vec<Figure> {
    judgement
        .figures
        .iter()
        .map(|figure| {
            let (value, interval, coverage, not_determined) = match &figure.outcome {
                Outcome::Determined { value, interval, coverage } => (Some(*value), *interval, *coverage, None),
                Outcome::NotDetermined { why } => (None, None, None, Some(why.clone())),
            };
            Figure {
                name: figure.name.clone(),
                phase: figure.phase.clone(),
                metric: figure.metric,
                cell: levels(&figure.cell),
                value,
                unit: figure.unit.clone(),
                interval,
                coverage,
                not_determined,
                seen: figure.seen.map(|seen| Seen { min: seen.min, median: seen.median, max: seen.max, n: seen.n }),
                bound: figure.bound.clone(),
                estimator: figure.estimator.clone(),
                formula: figure.formula.clone(),
                rounding: figure.rounding.clone(),
                spread: figure.spread,
                notes: figure.notes.clone(),
                published: figure.published,
                valid: figure.valid,
                void: figure.void,
                rows: figure.rows.iter().map(ToString::to_string).collect(),
            }
        })
        .collect()
}

/// Pairs of factor and level in the report's words.
pub(super) fn levels(pairs: &[(String, String)]) -> Vec<Level> {
    pairs.iter().map(|(factor, level)| Level { factor: factor.clone(), level: level.clone() }).collect()
}
