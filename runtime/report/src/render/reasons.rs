//! The verdict's reasons for people: sentences that say the same of many figures are said once.
//!
//! `report.json` holds every sentence as the judge wrote it. Here a sentence is folded into a group only where it is
//! exactly the one that the judge derives from a figure or an agreement; any other stays as it is.

use std::collections::BTreeMap;

use judge::{AgreementCheck, Chosen};

use super::words;
use crate::model::{Ending, Report};

/// Cells that a grouped sentence names; the rest is counted.
const NAMED: usize = 8;

/// How the judge's sentences about the run's end begin; every render says the same, and more, beside the verdict.
const ENDINGS: [&str; 3] = ["the run was interrupted", "the run failed: ", "the run has not ended: "];

/// A sentence shorter than this is never taken for the cause of another.
const SHORTEST_CAUSE: usize = 20;

/// A reason without the cell in brackets at its end.
fn without_cell(reason: &str) -> &str {
    match reason.rfind(" (") {
        Some(at) if reason.ends_with(')') => &reason[..at],
        _ => reason,
    }
}

/// Whether a reason ends with its cause, as `…: withheld: CAUSE` and `…: CAUSE` do.
fn follows(reason: &str, cause: &str) -> bool {
    reason.strip_suffix(cause).is_some_and(|before| before.ends_with(": "))
}

/// What a group says of its members.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// Figures of a phase that are not determined for this reason.
    Figures { phase: String, why: String },
    /// An agreement that was not checked for this reason.
    Agreement { name: String, why: String },
    /// A choice that could not be made for this reason.
    Choice { phase: String, factor: String, why: String },
}

/// One member: a cell, and the metric where the group is of figures.
type Member = (String, String);

/// The reasons, grouped, in the judge's order of their first appearance.
pub fn reasons(report: &Report) -> Vec<String> {
    let expected = expected(report);
    let causes: Vec<&str> =
        report.verdict.reasons.iter().flat_map(|reason| [reason.as_str(), without_cell(reason)]).collect();
    let mut order: Vec<Result<Group, String>> = Vec::new();
    let mut members: BTreeMap<Group, Vec<Member>> = BTreeMap::new();
    for reason in &report.verdict.reasons {
        // What only follows from another reason adds nothing: a candidate that is not measured has no figures.
        if report.ending != Ending::Completed && ENDINGS.iter().any(|start| reason.starts_with(start)) {
            continue;
        }
        if causes
            .iter()
            .any(|cause| cause.len() < reason.len() && cause.len() > SHORTEST_CAUSE && follows(reason, cause))
        {
            continue;
        }
        match expected.get(reason) {
            // Where nothing at all was measured, no figure's own absence says more.
            Some(_) if report.repetitions.is_empty() => {}
            Some((group, member)) => {
                if !members.contains_key(group) {
                    order.push(Ok(group.clone()));
                }
                members.entry(group.clone()).or_default().push(member.clone());
            }
            None => order.push(Err(reason.clone())),
        }
    }
    order
        .into_iter()
        .flat_map(|entry| match entry {
            Err(reason) => vec![reason],
            Ok(group) => {
                let members = members.remove(&group).unwrap_or_default();
                sentences(&group, &members)
            }
        })
        .collect()
}

/// The sentences that the judge derives from figures and agreements, and what each of them says.
fn expected(report: &Report) -> BTreeMap<String, (Group, Member)> {
    let mut expected = BTreeMap::new();
    for figure in &report.figures {
        let Some(why) = &figure.not_determined else { continue };
        let cell: Vec<(String, String)> =
            figure.cell.iter().map(|level| (level.factor.clone(), level.level.clone())).collect();
        expected.insert(
            format!("{} for {} is not determined: {why}", figure.name, judged_cell(&cell)),
            (
                Group::Figures { phase: figure.phase.clone(), why: why.clone() },
                (words::pairs(&cell), words::metric(figure.metric).to_owned()),
            ),
        );
    }
    for agreement in &report.agreements {
        for cell in &agreement.cells {
            if let AgreementCheck::NotChecked { why } = &cell.check {
                expected.insert(
                    format!("{} for {}: not checked: {why}", agreement.name, judged_cell(&cell.cell)),
                    (
                        Group::Agreement { name: agreement.name.clone(), why: why.clone() },
                        (words::pairs(&cell.cell), String::new()),
                    ),
                );
            }
        }
    }
    for choice in &report.choices {
        if let Chosen::None { why } = &choice.outcome {
            expected.insert(
                format!("{}: no {} for {}: {why}", choice.phase, choice.factor, judged_cell(&choice.for_each)),
                (
                    Group::Choice { phase: choice.phase.clone(), factor: choice.factor.clone(), why: why.clone() },
                    (words::pairs(&choice.for_each), String::new()),
                ),
            );
        }
    }
    expected
}

/// A cell as the judge's sentences name it.
fn judged_cell(levels: &[(String, String)]) -> String {
    if levels.is_empty() {
        return "the only cell".to_owned();
    }
    levels.iter().map(|(factor, level)| format!("{factor} {level}")).collect::<Vec<_>>().join(", ")
}

fn sentences(group: &Group, members: &[Member]) -> Vec<String> {
    match group {
        Group::Agreement { name, why } => {
            let cells: Vec<&str> = members.iter().map(|(cell, _)| cell.as_str()).collect();
            vec![format!("{name} was not checked{}: {why}", for_cells(&cells))]
        }
        Group::Choice { phase, factor, why } => {
            let cells: Vec<&str> = members.iter().map(|(cell, _)| cell.as_str()).collect();
            vec![format!("{phase}: no {factor} could be chosen{}: {why}", for_cells(&cells))]
        }
        Group::Figures { phase, why } => {
            // Cells that lack the same metrics are named together.
            let mut by_cell: Vec<(&str, Vec<&str>)> = Vec::new();
            for (cell, metric) in members {
                match by_cell.iter_mut().find(|(known, _)| known == cell) {
                    Some((_, metrics)) => metrics.push(metric),
                    None => by_cell.push((cell, vec![metric])),
                }
            }
            let mut by_metrics: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
            for (cell, metrics) in by_cell {
                match by_metrics.iter_mut().find(|(known, _)| *known == metrics) {
                    Some((_, cells)) => cells.push(cell),
                    None => by_metrics.push((metrics, vec![cell])),
                }
            }
            by_metrics
                .into_iter()
                .map(|(metrics, cells)| {
                    format!("{phase}: {} not determined{}: {why}", metrics.join(", "), for_cells(&cells))
                })
                .collect()
        }
    }
}

fn for_cells(cells: &[&str]) -> String {
    let named: Vec<&str> = cells.iter().copied().filter(|cell| !cell.is_empty()).take(NAMED).collect();
    if named.is_empty() {
        return String::new();
    }
    let more = if cells.len() > NAMED { format!(" and {} more cells", cells.len() - NAMED) } else { String::new() };
    format!(" for {}{more}", named.join("; "))
}
