//! The derivation ledger: for every printed figure its formula, its repetitions and its exact value.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::text::{code, escape, table};
use super::{Form, anchor};
use crate::model::{Cell, Figure, Item, Report};
use crate::number::ROUNDING;
use crate::render::words;

pub(super) fn derivation(out: &mut String, report: &Report, form: Form) {
    let _ = writeln!(out, "## Derivation\n\n{ROUNDING}\n");
    let printed = printed(report);
    if report.repetitions.is_empty() {
        return;
    }
    let mut roundings: Vec<&str> = printed.iter().map(|&index| report.figures[index].rounding.as_str()).collect();
    roundings.dedup();
    let common = match roundings.as_slice() {
        [one] if !one.is_empty() => {
            let _ = writeln!(out, "Rounding of every figure below: {}.\n", escape(one));
            Some(*one)
        }
        _ => None,
    };
    let mut names: Vec<&str> = Vec::new();
    for &index in &printed {
        let name = report.figures[index].name.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let figures: Vec<(usize, &Figure)> = printed
            .iter()
            .map(|&index| (index, &report.figures[index]))
            .filter(|(_, figure)| figure.name == name)
            .collect();
        ledger(out, name, &figures, common, form);
    }
    let others = report.figures.len() - printed.len();
    if others > 0 {
        let _ =
            writeln!(out, "Further figures of this run ({others}) are in `tables/figures.csv` and `report.json`.\n");
    }
}

/// Indices of the figures that the report prints or the study estimates, in order.
fn printed(report: &Report) -> BTreeSet<usize> {
    let cells = report.items.iter().flat_map(|item| -> Vec<&Cell> {
        match item {
            Item::Table(table) => table.rows.iter().flat_map(|row| &row.cells).collect(),
            Item::BarChart(chart) => chart.bars.iter().map(|bar| &bar.cell).collect(),
            Item::LineChart(chart) => chart.lines.iter().map(|line| &line.cell).collect(),
            Item::Choices(_) | Item::CapacityPlan(_) => Vec::new(),
        }
    });
    let mut printed: BTreeSet<usize> =
        cells.filter_map(|cell| cell.figure).filter(|&index| index < report.figures.len()).collect();
    printed.extend(report.figures.iter().enumerate().filter(|(_, figure)| figure.published).map(|(index, _)| index));
    printed
}

fn ledger(out: &mut String, name: &str, figures: &[(usize, &Figure)], common_rounding: Option<&str>, form: Form) {
    let _ = writeln!(out, "### {}\n", escape(name));
    let mut rules: Vec<(&str, &str, &str)> = Vec::new();
    for (_, figure) in figures {
        let rule = (figure.formula.as_str(), figure.estimator.as_str(), figure.rounding.as_str());
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    for (formula, estimator, rounding) in &rules {
        let mut parts = vec![escape(formula)];
        if !estimator.is_empty() {
            parts.push(format!("estimator: {}", escape(estimator)));
        }
        if !rounding.is_empty() && common_rounding != Some(rounding) {
            parts.push(format!("rounding: {}", escape(rounding)));
        }
        let _ = writeln!(out, "{}.\n", parts.join("; "));
    }
    let head = ["cell", "exact value", "unit", "repetitions", "made of"].map(str::to_owned);
    let name_of = |index: usize, figure: &Figure| {
        let cell = figure.cell_name();
        let name = if cell.is_empty() { escape(&figure.phase) } else { escape(&cell) };
        match form {
            Form::File => name,
            Form::Page => format!("<a id=\"{}\"></a>{name}", anchor::figure(index)),
        }
    };
    let row_name = |id: &String| match form {
        Form::File => escape(id),
        Form::Page => format!("[{}](#{})", escape(id), anchor::repetition(id)),
    };
    let missing: Vec<String> = figures
        .iter()
        .filter(|(_, figure)| figure.value.is_none())
        .map(|&(index, figure)| format!("{} ({})", name_of(index, figure), words::repetitions(figure)))
        .collect();
    if !missing.is_empty() {
        let _ = writeln!(out, "Not determined: {}.\n", missing.join("; "));
    }
    let rows: Vec<Vec<String>> = figures
        .iter()
        .filter(|(_, figure)| figure.value.is_some())
        .map(|&(index, figure)| {
            let made_of: Vec<String> = figure.rows.iter().map(row_name).collect();
            vec![
                name_of(index, figure),
                figure.value.map_or_else(String::new, |value| code(&value.to_string())),
                escape(&figure.unit),
                words::repetitions(figure),
                if made_of.is_empty() { "none".to_owned() } else { made_of.join(", ") },
            ]
        })
        .collect();
    if !rows.is_empty() {
        let _ = writeln!(out, "{}", table(&head, &rows, false));
    }
}
