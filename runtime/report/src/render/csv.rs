//! The tables as CSV (RFC 4180): one file per table of the report, every figure, every repetition. Values are exact.

use std::collections::BTreeSet;

use plan::Metric;

use super::words::slug;
use crate::model::{Figure, Item, Level, LineChart, Report};

/// Columns that describe one figure, in every table.
const FIGURE_COLUMNS: [&str; 16] = [
    "value",
    "unit",
    "interval_low",
    "interval_high",
    "interval_coverage",
    "floor",
    "not_determined",
    "seen_min",
    "seen_median",
    "seen_max",
    "seen_n",
    "estimator",
    "valid",
    "void",
    "spread",
    "repetitions",
];

/// File names and texts, in the report's order; the names differ.
pub fn csv(report: &Report) -> Vec<(String, String)> {
    let mut files =
        vec![("figures.csv".to_owned(), figures(report)), ("repetitions.csv".to_owned(), repetitions(report))];
    for item in &report.items {
        let text = match item {
            Item::Table(table) => {
                let cells = table.rows.iter().flat_map(|row| {
                    row.cells
                        .iter()
                        .zip(&table.columns)
                        .map(|(cell, column)| (row.label.as_str(), column.as_str(), cell))
                });
                of_cells(report, cells)
            }
            Item::BarChart(chart) => {
                let cells = chart
                    .bars
                    .iter()
                    .map(|bar| (bar.label.as_str(), bar.group.as_deref().unwrap_or_default(), &bar.cell));
                of_cells(report, cells)
            }
            Item::LineChart(chart) => lines(chart),
            Item::Choices(table) => choices(report, &table.choices),
            Item::CapacityPlan(plan) => capacity(plan),
        };
        let base = slug(item.title());
        let mut name = format!("{base}.csv");
        let mut number = 2;
        while files.iter().any(|(taken, _)| *taken == name) {
            name = format!("{base}-{number}.csv");
            number += 1;
        }
        files.push((name, text));
    }
    files
}

/// Rows as RFC 4180 text: fields quoted where they must be, lines ended by CRLF.
fn text(rows: Vec<Vec<String>>) -> String {
    let mut writer = ::csv::WriterBuilder::new().terminator(::csv::Terminator::CRLF).from_writer(Vec::new());
    for row in rows {
        // All rows of a table are made with its head's columns, and memory takes every write.
        if let Err(error) = writer.write_record(&row) {
            return format!("this table can't be written: {error}\r\n");
        }
    }
    match writer.into_inner() {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("this table can't be written: {error}\r\n"),
    }
}

/// The shortest decimal that reads back as the same number; empty where there is none.
fn exact(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
}

/// A row per moment: of the median of each line, then of every repetition.
fn lines(chart: &LineChart) -> String {
    let mut rows = vec![["line", "repetition", "valid", "seconds", "value", "unit"].map(str::to_owned).to_vec()];
    let mut add = |label: &str, repetition: &str, valid: &str, points: &[(f64, f64)]| {
        rows.extend(points.iter().map(|(seconds, value)| {
            let texts = [label, repetition, valid].map(str::to_owned);
            let numbers = [exact(Some(*seconds)), exact(Some(*value)), chart.unit.clone()];
            texts.into_iter().chain(numbers).collect::<Vec<String>>()
        }));
    };
    for line in &chart.lines {
        add(&line.label, "median of the valid ones", "", &line.points);
        for trace in &line.repetitions {
            add(&line.label, &trace.repetition, if trace.valid { "true" } else { "false" }, &trace.points);
        }
    }
    text(rows)
}

fn describe(figure: &Figure) -> Vec<String> {
    vec![
        exact(figure.value),
        figure.unit.clone(),
        exact(figure.interval.map(|(low, _)| low)),
        exact(figure.interval.map(|(_, high)| high)),
        exact(figure.coverage),
        figure.bound.clone().unwrap_or_default(),
        figure.not_determined.clone().unwrap_or_default(),
        exact(figure.seen.map(|seen| seen.min)),
        exact(figure.seen.map(|seen| seen.median)),
        exact(figure.seen.map(|seen| seen.max)),
        figure.seen.map_or_else(String::new, |seen| seen.n.to_string()),
        figure.estimator.clone(),
        figure.valid.to_string(),
        figure.void.to_string(),
        exact(figure.spread),
        figure.rows.join(" "),
    ]
}

/// Names of the factors that some of these cells have, in order of appearance.
fn factors<'a>(cells: impl Iterator<Item = &'a [Level]>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for level in cells.flatten() {
        if !names.contains(&level.factor) {
            names.push(level.factor.clone());
        }
    }
    names
}

fn at(levels: &[Level], factor: &str) -> String {
    levels.iter().find(|level| level.factor == factor).map_or_else(String::new, |level| level.level.clone())
}

fn figures(report: &Report) -> String {
    let factors = factors(report.figures.iter().map(|figure| figure.cell.as_slice()));
    let mut head = vec!["figure".to_owned()];
    head.extend(factors.iter().cloned());
    head.extend(FIGURE_COLUMNS.map(str::to_owned));
    head.push("formula".to_owned());
    let mut rows = vec![head];
    for figure in &report.figures {
        let mut row = vec![figure.name.clone()];
        row.extend(factors.iter().map(|factor| at(&figure.cell, factor)));
        row.extend(describe(figure));
        row.push(figure.formula.clone());
        rows.push(row);
    }
    text(rows)
}

fn of_cells<'a>(report: &Report, cells: impl Iterator<Item = (&'a str, &'a str, &'a crate::model::Cell)>) -> String {
    let cells: Vec<_> = cells.collect();
    let found = |cell: &crate::model::Cell| cell.figure.and_then(|index| report.figures.get(index));
    let factors = factors(cells.iter().filter_map(|(_, _, cell)| found(cell)).map(|figure| figure.cell.as_slice()));
    let mut head = vec!["row".to_owned(), "column".to_owned(), "figure".to_owned()];
    head.extend(factors.iter().cloned());
    head.extend(FIGURE_COLUMNS.map(str::to_owned));
    let mut rows = vec![head];
    for (label, column, cell) in cells {
        let mut row = vec![label.to_owned(), column.to_owned()];
        match found(cell) {
            Some(figure) => {
                row.push(figure.name.clone());
                row.extend(factors.iter().map(|factor| at(&figure.cell, factor)));
                row.extend(describe(figure));
            }
            None => {
                row.push(String::new());
                row.extend(factors.iter().map(|_| String::new()));
                row.extend(FIGURE_COLUMNS.map(|name| {
                    if name == "not_determined" { cell.missing.clone().unwrap_or_default() } else { String::new() }
                }));
            }
        }
        rows.push(row);
    }
    text(rows)
}

fn choices(report: &Report, indices: &[usize]) -> String {
    let chosen: Vec<_> = indices.iter().filter_map(|&index| report.choices.get(index)).collect();
    let mut factors: Vec<&str> = Vec::new();
    for (factor, _) in chosen.iter().flat_map(|choice| &choice.for_each) {
        if !factors.contains(&factor.as_str()) {
            factors.push(factor);
        }
    }
    let mut head: Vec<String> = factors.iter().map(|&factor| factor.to_owned()).collect();
    head.extend(
        ["factor", "level", "score", "basis", "chosen", "provisional", "not_bracketed", "why_none", "repetitions"]
            .map(str::to_owned),
    );
    let mut rows = vec![head];
    for choice in chosen {
        let (winner, why) = match &choice.outcome {
            judge::Chosen::Level(level) => (Some(level.as_str()), ""),
            judge::Chosen::None { why } => (None, why.as_str()),
        };
        for level in &choice.levels {
            let mut row: Vec<String> = factors
                .iter()
                .map(|&factor| {
                    choice
                        .for_each
                        .iter()
                        .find(|(name, _)| name == factor)
                        .map_or_else(String::new, |(_, level)| level.clone())
                })
                .collect();
            row.extend([
                choice.factor.clone(),
                level.level.clone(),
                exact(level.score),
                choice.basis.clone(),
                if winner == Some(level.level.as_str()) { "yes" } else { "no" }.to_owned(),
                choice.provisional.clone().unwrap_or_default(),
                choice.not_bracketed.clone().unwrap_or_default(),
                why.to_owned(),
                level.rows.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            ]);
            rows.push(row);
        }
    }
    text(rows)
}

fn capacity(plan: &crate::model::CapacityPlan) -> String {
    let mut rows = vec![
        ["candidate", "ceiling", "target", "instances", "cores", "upper_bound", "missing"].map(str::to_owned).to_vec(),
    ];
    if let Some(why) = &plan.not_possible {
        let mut row = vec![String::new(); 6];
        row.push(why.clone());
        rows.push(row);
    }
    for row in &plan.rows {
        if row.needs.is_empty() {
            let mut empty = vec![row.candidate.clone(), exact(row.ceiling)];
            empty.extend(vec![String::new(); 4]);
            empty.push(row.missing.clone().unwrap_or_default());
            rows.push(empty);
        }
        for need in &row.needs {
            rows.push(vec![
                row.candidate.clone(),
                exact(row.ceiling),
                exact(Some(need.target)),
                need.instances.to_string(),
                exact(Some(need.cores)),
                if row.upper_bound { "yes" } else { "no" }.to_owned(),
                String::new(),
            ]);
        }
    }
    text(rows)
}

fn repetitions(report: &Report) -> String {
    let levels: BTreeSet<&String> = report.repetitions.iter().flat_map(|repetition| repetition.levels.keys()).collect();
    let cpus: BTreeSet<u32> =
        report.repetitions.iter().flat_map(|repetition| repetition.pace.keys().copied()).collect();
    let metrics: Vec<Metric> = Metric::ALL
        .into_iter()
        .filter(|metric| report.repetitions.iter().any(|repetition| repetition.values.contains_key(metric.name())))
        .collect();
    let mut head: Vec<String> = ["repetition", "phase", "cell", "number"].map(str::to_owned).to_vec();
    head.extend(levels.iter().map(|&level| level.clone()));
    head.extend(
        ["verdict", "failed_gates", "reasons", "carried", "expected_answers", "window_s", "took_s"].map(str::to_owned),
    );
    head.extend(metrics.iter().map(|metric| match metric.unit() {
        "" => metric.name().to_owned(),
        unit => format!("{} ({unit})", metric.name()),
    }));
    head.extend(cpus.iter().flat_map(|cpu| [format!("pace of CPU {cpu}"), format!("quiet share of CPU {cpu}")]));
    let mut rows = vec![head];
    for repetition in &report.repetitions {
        let mut row = vec![
            repetition.id.clone(),
            repetition.phase.clone(),
            repetition.cell.to_string(),
            repetition.number.to_string(),
        ];
        row.extend(levels.iter().map(|&level| repetition.levels.get(level).cloned().unwrap_or_default()));
        let failed: Vec<&str> =
            repetition.gates.iter().filter(|gate| !gate.passed).map(|gate| gate.gate.as_str()).collect();
        row.extend([
            if repetition.valid { "valid" } else { "void" }.to_owned(),
            failed.join(" "),
            repetition.reasons.join("; "),
            repetition.carried.map_or_else(String::new, |carried| if carried { "yes" } else { "no" }.to_owned()),
            repetition.ok.to_string(),
            (repetition.window_ns as f64 / 1e9).to_string(),
            (repetition.took_ns as f64 / 1e9).to_string(),
        ]);
        row.extend(metrics.iter().map(|metric| exact(repetition.values.get(metric.name()).copied())));
        row.extend(cpus.iter().flat_map(|cpu| {
            let pace = repetition.pace.get(cpu);
            [exact(pace.map(|pace| pace.pace)), exact(pace.map(|pace| pace.quiet_share))]
        }));
        rows.push(row);
    }
    text(rows)
}
