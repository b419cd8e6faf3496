//! The verdict's reasons for people: a sentence that is said of many cells is said once, with the cells.
//!
//! `report.json` holds every sentence as the judge wrote it. Two of them are joined here only where they differ in nothing
//! but the cell that they name.

use std::collections::BTreeMap;

use super::words;
use crate::model::{Ending, Report};

/// Cells that a joined sentence names; the rest is counted.
const NAMED: usize = 8;

/// How the judge's sentences about the run's end begin; every render says the same, and more, beside the verdict.
const ENDINGS: [&str; 3] = ["the run was interrupted", "the run failed: ", "the run has not ended: "];

/// A sentence shorter than this is never taken for the cause of another.
const SHORTEST_CAUSE: usize = 20;

/// The reasons, joined, in the judge's order of their first appearance.
pub fn reasons(report: &Report) -> Vec<String> {
    let cells = cells(report);
    let all = &report.verdict.reasons;
    let causes: Vec<&str> = all.iter().flat_map(|reason| [reason.as_str(), without_cell(reason)]).collect();
    // What stands before and after the cell, and the cells.
    let mut joined: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for reason in all {
        if report.ending != Ending::Completed && ENDINGS.iter().any(|start| reason.starts_with(start)) {
            continue;
        }
        // What only follows from another reason adds nothing: a figure that is withheld because an agreement failed.
        let is_consequence = causes
            .iter()
            .any(|cause| cause.len() < reason.len() && cause.len() > SHORTEST_CAUSE && follows(reason, cause));
        if is_consequence {
            continue;
        }
        let (before, named, after) = split(reason, &cells);
        match joined.iter_mut().find(|(known, rest, cells)| *known == before && *rest == after && !cells.is_empty()) {
            Some((_, _, cells)) if !named.is_empty() => cells.extend(named),
            _ => joined.push((before, after, named)),
        }
    }
    joined
        .into_iter()
        // Where nothing at all was measured, no cell's own absence says more.
        .filter(|(_, _, cells)| cells.is_empty() || !report.repetitions.is_empty())
        .map(|(before, after, cells)| match cells.as_slice() {
            // A phase without axes has one cell, which needs no name.
            [] => before.replace(" for the only cell", ""),
            cells => {
                let named = cells.iter().take(NAMED).copied().collect::<Vec<_>>().join("; ");
                let more = match cells.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    1 => " and one more cell".to_owned(),
                    more => format!(" and {more} more cells"),
                };
                format!("{before} for {named}{more}{after}")
            }
        })
        .collect()
}

/// Every cell as the judge's sentences name it, and as people do.
fn cells(report: &Report) -> BTreeMap<String, String> {
    let of_figures = report.figures.iter().map(|figure| {
        figure.cell.iter().map(|level| (level.factor.clone(), level.level.clone())).collect::<Vec<(String, String)>>()
    });
    let of_agreements = report.agreements.iter().flat_map(|agreement| &agreement.cells).map(|cell| cell.cell.clone());
    let of_choices = report.choices.iter().map(|choice| choice.for_each.clone());
    of_figures
        .chain(of_agreements)
        .chain(of_choices)
        .filter(|cell| !cell.is_empty())
        .map(|cell| {
            let judged: Vec<String> = cell.iter().map(|(factor, level)| format!("{factor} {level}")).collect();
            (judged.join(", "), words::pairs(&cell))
        })
        .collect()
}

/// A reason before its cells, the cells in people's words, and the rest. The longest name counts: `candidate go, cores 1`
/// is the beginning of `candidate go, cores 1, pool 8`.
fn split<'a>(reason: &'a str, cells: &'a BTreeMap<String, String>) -> (&'a str, Vec<&'a str>, &'a str) {
    const FOR: &str = " for ";
    let Some(at) = reason.find(FOR) else { return (reason, Vec::new(), "") };
    let first = |text: &str| {
        cells.iter().filter(|(judged, _)| text.starts_with(judged.as_str())).max_by_key(|(judged, _)| judged.len())
    };
    let mut rest = &reason[at + FOR.len()..];
    let mut named = Vec::new();
    while let Some((judged, people)) = first(rest) {
        named.push(people.as_str());
        rest = &rest[judged.len()..];
        match rest.strip_prefix("; ") {
            Some(next) if first(next).is_some() => rest = next,
            _ => break,
        }
    }
    if named.is_empty() { (reason, named, "") } else { (&reason[..at], named, rest) }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_longest_cell_and_leaves_other_sentences_alone() {
        let cells: BTreeMap<String, String> = [
            ("candidate go, cores 1".to_owned(), "go, 1 core".to_owned()),
            ("candidate go, cores 1, pool 8".to_owned(), "go, 1 core, pool 8".to_owned()),
        ]
        .into();
        assert_eq!(
            split("x for candidate go, cores 1, pool 8 is y", &cells),
            ("x", vec!["go, 1 core, pool 8"], " is y")
        );
        assert_eq!(
            split("x for candidate go, cores 1; candidate go, cores 1, pool 8: y; z", &cells),
            ("x", vec!["go, 1 core", "go, 1 core, pool 8"], ": y; z")
        );
        assert_eq!(split("x for nobody", &cells), ("x for nobody", vec![], ""));
        assert_eq!(split("x", &cells), ("x", vec![], ""));
        assert!(follows("a: withheld: the cause of it all", "the cause of it all"));
        assert!(!follows("nothing to do with it", "with it"));
        assert_eq!(without_cell("they differ (candidate go)"), "they differ");
    }
}
