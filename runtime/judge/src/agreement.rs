//! Agreements: two figures from different phases that have to be the same.

use plan::{Agreement, MetricRef, Plan};

use crate::judgement::{AgreementCell, AgreementCheck, AgreementOutcome, ChoiceOutcome, Figure, Outcome};
use crate::mapping::{Levels, figure_factors, map, show};
use crate::words::{percent, with_unit};

/// Checks every agreement of the plan on the figures.
pub(crate) fn check(plan: &Plan, choices: &[ChoiceOutcome], figures: &[Figure]) -> Vec<AgreementOutcome> {
    plan.agreements.iter().map(|agreement| one(plan, agreement, choices, figures)).collect()
}

fn one(plan: &Plan, agreement: &Agreement, choices: &[ChoiceOutcome], figures: &[Figure]) -> AgreementOutcome {
    let mut outcome = AgreementOutcome {
        name: agreement.name.clone(),
        left: agreement.left.clone(),
        right: agreement.right.clone(),
        within: agreement.within,
        not_checked: agreement.not_checked.clone(),
        cells: Vec::new(),
    };
    if outcome.not_checked.is_some() {
        return outcome;
    }
    let (Some(left), Some(right)) = (plan.phase(&agreement.left.phase), plan.phase(&agreement.right.phase)) else {
        outcome.not_checked =
            Some(format!("`{}` or `{}` is not in the plan", agreement.left.phase, agreement.right.phase));
        return outcome;
    };
    let shared: Vec<&str> = figure_factors(left, agreement.left.metric)
        .into_iter()
        .filter(|factor| figure_factors(right, agreement.right.metric).contains(factor))
        .collect();
    let mut keys: Vec<Levels> = Vec::new();
    for figure in figures.iter().filter(|figure| is_of(figure, &agreement.left)) {
        let key: Levels = figure.cell.iter().filter(|(factor, _)| shared.contains(&factor.as_str())).cloned().collect();
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    if keys.is_empty() {
        outcome.not_checked = Some(format!("there is no figure {}", agreement.left));
    }
    outcome.cells = keys.into_iter().map(|key| pair(plan, agreement, choices, figures, key)).collect();
    outcome
}

fn is_of(figure: &Figure, of: &MetricRef) -> bool {
    figure.phase == of.phase && figure.metric == of.metric
}

fn pair(
    plan: &Plan,
    agreement: &Agreement,
    choices: &[ChoiceOutcome],
    figures: &[Figure],
    key: Levels,
) -> AgreementCell {
    let value = |of: &MetricRef| -> Result<f64, String> {
        let cell = map(plan, choices, &of.phase, of.metric, &key)?;
        let figure = figures
            .iter()
            .find(|figure| is_of(figure, of) && figure.cell == cell)
            .ok_or_else(|| format!("there is no {of} for {}", show(&cell)))?;
        match &figure.outcome {
            Outcome::Determined { value, .. } => Ok(*value),
            Outcome::NotDetermined { why } => Err(format!("{of} is not determined: {why}")),
        }
    };
    let (left, right) = (value(&agreement.left), value(&agreement.right));
    let mut cell = AgreementCell {
        cell: key,
        left: left.as_ref().ok().copied(),
        right: right.as_ref().ok().copied(),
        difference: None,
        check: AgreementCheck::Agrees,
    };
    let (left, right) = match (left, right) {
        (Ok(left), Ok(right)) => (left, right),
        (Err(why), _) | (_, Err(why)) => {
            cell.check = AgreementCheck::NotChecked { why };
            return cell;
        }
    };
    let difference = left / right - 1.0;
    if !difference.is_finite() {
        cell.check = AgreementCheck::NotChecked { why: format!("{} is 0", agreement.right) };
        return cell;
    }
    cell.difference = Some(difference);
    if difference.abs() > agreement.within {
        cell.check = AgreementCheck::Disagrees {
            why: format!(
                "{}: {} {} and {} {} differ by {}, more than {}",
                agreement.name,
                agreement.left,
                with_unit(left, agreement.left.metric.unit()),
                agreement.right,
                with_unit(right, agreement.right.metric.unit()),
                percent(difference.abs()),
                percent(agreement.within)
            ),
        };
    }
    cell
}

/// Withholds the figures that disagree.
pub(crate) fn withhold(
    plan: &Plan,
    choices: &[ChoiceOutcome],
    agreements: &[AgreementOutcome],
    figures: &mut [Figure],
) {
    for agreement in agreements {
        for pair in &agreement.cells {
            let AgreementCheck::Disagrees { why } = &pair.check else {
                continue;
            };
            for of in [&agreement.left, &agreement.right] {
                let Ok(cell) = map(plan, choices, &of.phase, of.metric, &pair.cell) else {
                    continue;
                };
                for figure in figures.iter_mut().filter(|figure| is_of(figure, of) && figure.cell == cell) {
                    if figure.value().is_some() {
                        figure.outcome = Outcome::NotDetermined { why: format!("withheld: {why}") };
                    }
                }
            }
        }
    }
}
