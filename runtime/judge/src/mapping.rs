//! Which cell of one phase a cell of another one reads.

use plan::{Metric, Phase, Plan};

use crate::judgement::{ChoiceOutcome, Chosen, Judgement};

/// Levels by factor, in the phase's order.
pub(crate) type Levels = Vec<(String, String)>;

/// The levels of a cell, as text.
pub(crate) fn cell_levels(phase: &Phase, cell: u32) -> Levels {
    let Some(cell) = phase.cells.get(cell as usize) else {
        return Levels::new();
    };
    phase.axes.iter().zip(&cell.levels).map(|(axis, level)| (axis.factor.clone(), level.to_string())).collect()
}

/// The factor over which a phase's `carried` figure is taken, if it has one.
pub(crate) fn rate_factor(phase: &Phase) -> Option<&str> {
    match &phase.procedure {
        plan::Procedure::Load(load) => match &load.rate {
            Some(plan::Rate::Factor(factor)) => Some(factor),
            _ => None,
        },
        plan::Procedure::Pgbench(_) | plan::Procedure::Start(_) => None,
    }
}

/// The factors of a figure: the phase's, less the one that the figure itself decides.
pub(crate) fn figure_factors(phase: &Phase, metric: Metric) -> Vec<&str> {
    let decided = match metric {
        Metric::Carried => rate_factor(phase),
        Metric::Demand => phase.demand.as_deref(),
        _ => None,
    };
    phase.axes.iter().map(|axis| axis.factor.as_str()).filter(|factor| Some(*factor) != decided).collect()
}

/// The level of `factor` in these levels.
pub(crate) fn level<'a>(levels: &'a [(String, String)], factor: &str) -> Option<&'a str> {
    levels.iter().find(|(name, _)| name == factor).map(|(_, level)| level.as_str())
}

/// The choice of a phase that applies to a cell with these levels.
///
/// # Errors
/// When the phase makes no such choice, or could not choose.
pub(crate) fn chosen<'a>(
    choices: &'a [ChoiceOutcome],
    phase: &str,
    factor: &str,
    levels: &[(String, String)],
) -> Result<(&'a str, &'a ChoiceOutcome), String> {
    let choice = choices
        .iter()
        .find(|choice| {
            choice.phase == phase
                && choice.factor == factor
                && choice.for_each.iter().all(|(name, value)| level(levels, name).is_none_or(|other| other == value))
        })
        .ok_or_else(|| format!("the phase `{phase}` makes no choice of `{factor}` for {}", show(levels)))?;
    match &choice.outcome {
        Chosen::Level(level) => Ok((level, choice)),
        Chosen::None { why } => Err(format!("`{phase}` could choose no `{factor}` for {}: {why}", show(levels))),
    }
}

/// Levels in a sentence: `candidate go, cores 2`.
pub(crate) fn show(levels: &[(String, String)]) -> String {
    if levels.is_empty() {
        return "the only cell".to_owned();
    }
    levels.iter().map(|(factor, level)| format!("{factor} {level}")).collect::<Vec<_>>().join(", ")
}

/// The levels of `from`'s figure of `metric` that a cell of another phase with `levels` reads: equal factors have equal levels; a
/// factor that the reader lacks takes the level that the phase itself chose.
///
/// # Errors
/// When a factor's level can't be told.
pub(crate) fn map(
    plan: &Plan,
    choices: &[ChoiceOutcome],
    from: &str,
    metric: Metric,
    levels: &[(String, String)],
) -> Result<Levels, String> {
    let phase = plan.phase(from).ok_or_else(|| format!("there is no phase `{from}`"))?;
    figure_factors(phase, metric)
        .into_iter()
        .map(|factor| {
            if let Some(level) = level(levels, factor) {
                return Ok((factor.to_owned(), level.to_owned()));
            }
            match &phase.choose {
                Some(choice) if choice.factor == factor => {
                    let (level, _) = chosen(choices, from, factor, levels)?;
                    Ok((factor.to_owned(), level.to_owned()))
                }
                _ => match phase.axes.iter().find(|axis| axis.factor == factor).map(|axis| &axis.levels[..]) {
                    Some([only]) => Ok((factor.to_owned(), only.to_string())),
                    _ => Err(format!(
                        "`{from}` varies `{factor}`, and nothing says which level belongs to {}",
                        show(levels)
                    )),
                },
            }
        })
        .collect()
}

/// The levels of a cell together with those that other phases chose for it.
///
/// # Errors
/// When a choice could not be made.
pub(crate) fn with_chosen(phase: &Phase, cell: u32, judgement: &Judgement) -> Result<Levels, String> {
    let mut levels = cell_levels(phase, cell);
    for with in &phase.with {
        let (level, _) = chosen(&judgement.choices, &with.from, &with.factor, &levels)?;
        let level = level.to_owned();
        levels.push((with.factor.clone(), level));
    }
    Ok(levels)
}
