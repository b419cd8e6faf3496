//! What an estimate or an agreement came to, in one line. The figures themselves are derived from the journal.

use judge::{AgreementCheck, Chosen, Judgement};
use plan::Plan;

/// What a phase came to: how many figures are determined, and what was chosen.
pub(crate) fn detail(plan: &Plan, phase: &str, judgement: &Judgement) -> String {
    let declared: Vec<_> = plan
        .phase(phase)
        .map(|phase| phase.estimates.iter().map(|estimate| estimate.metric).collect())
        .unwrap_or_default();
    let figures: Vec<_> =
        judgement.figures.iter().filter(|figure| figure.phase == phase && declared.contains(&figure.metric)).collect();
    let determined = figures.iter().filter(|figure| figure.value().is_some()).count();
    let mut parts = Vec::new();
    if !figures.is_empty() {
        parts.push(format!("{determined} of {} figures determined", figures.len()));
    }
    for choice in judgement.choices.iter().filter(|choice| choice.phase == phase) {
        let place: Vec<&str> = choice.for_each.iter().map(|(_, level)| level.as_str()).collect();
        parts.push(match &choice.outcome {
            Chosen::Level(level) => format!("{}: {} {level}", place.join(" "), choice.factor),
            Chosen::None { .. } => format!("{}: no {} chosen", place.join(" "), choice.factor),
        });
    }
    parts.join(" · ")
}

/// What an agreement came to.
pub(crate) fn agreement(name: &str, judgement: &Judgement) -> String {
    let Some(outcome) = judgement.agreements.iter().find(|agreement| agreement.name == name) else {
        return "not checked".to_owned();
    };
    if let Some(why) = &outcome.not_checked {
        return format!("not checked: {why}");
    }
    let count = |wanted: fn(&AgreementCheck) -> bool| outcome.cells.iter().filter(|cell| wanted(&cell.check)).count();
    let agrees = count(|check| matches!(check, AgreementCheck::Agrees));
    let disagrees = count(|check| matches!(check, AgreementCheck::Disagrees { .. }));
    let open = count(|check| matches!(check, AgreementCheck::NotChecked { .. }));
    format!("{agrees} agree, {disagrees} disagree, {open} could not be checked")
}
