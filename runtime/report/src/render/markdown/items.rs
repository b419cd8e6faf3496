//! Tables, charts, choices and capacity plans as Markdown.

use std::fmt::Write as _;

use judge::{ChoiceOutcome, Chosen};
use plan::Metric;

use super::text::{block, escape, list, sentence, table};
use super::{Form, anchor};
use crate::model::{Bar, BarChart, CapacityPlan, Cell, Figure, Item, Line, LineChart, Report, Table};
use crate::number::{counted, percent, quantity, significant, with_unit};
use crate::render::drawing;
use crate::render::words;
use crate::width;

/// Columns of the longest bar.
const BAR: usize = 40;
/// A bar beside its label has at least this room; with less it stands under it.
const SHORTEST_BAR: usize = 12;

pub(super) fn items(out: &mut String, report: &Report, form: Form) {
    if report.repetitions.is_empty() {
        let _ = writeln!(out, "## Results\n\nNothing was measured, so there are no tables.\n");
        return;
    }
    for item in &report.items {
        let _ = writeln!(out, "## {}\n", escape(item.title()));
        if !item.shows_something(report) {
            let _ = writeln!(out, "{}\n", sentence(&why_nothing(report, item)));
            continue;
        }
        match item {
            Item::Table(table) => figures(out, report, table, form),
            Item::BarChart(chart) => bars(out, report, chart, form),
            Item::LineChart(chart) => lines(out, report, chart, form),
            Item::Choices(choices) => {
                let chosen: Vec<&ChoiceOutcome> =
                    choices.choices.iter().filter_map(|&index| report.choices.get(index)).collect();
                match &choices.missing {
                    Some(why) => {
                        let _ = writeln!(out, "{}\n", sentence(&format!("Nothing was chosen: {why}")));
                    }
                    None => choice_table(out, report, &chosen),
                }
            }
            Item::CapacityPlan(plan) => capacity(out, plan),
        }
    }
}

/// Why an item has nothing to show: the reasons of all its cells, each once.
pub(crate) fn why_nothing(report: &Report, item: &Item) -> String {
    let of_cell = |cell: &Cell| match found(report, cell) {
        Some(figure) => figure.not_determined.clone(),
        None => cell.missing.clone(),
    };
    let all: Vec<Option<String>> = match item {
        Item::Table(table) => table.rows.iter().flat_map(|row| &row.cells).map(of_cell).collect(),
        Item::BarChart(chart) => chart.bars.iter().map(|bar| of_cell(&bar.cell)).collect(),
        Item::LineChart(chart) => chart.lines.iter().map(|line| of_cell(&line.cell)).collect(),
        Item::Choices(table) => table
            .choices
            .iter()
            .filter_map(|&index| report.choices.get(index))
            .map(|choice| match &choice.outcome {
                Chosen::None { why } => Some(why.clone()),
                Chosen::Level(_) => None,
            })
            .chain([table.missing.clone()])
            .collect(),
        Item::CapacityPlan(plan) => plan.rows.iter().map(|row| row.missing.clone()).collect(),
    };
    let mut reasons: Vec<String> = Vec::new();
    for reason in all.into_iter().flatten() {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    match (item, reasons.as_slice()) {
        (Item::CapacityPlan(_), _) => "No ceiling is determined that it could be made of".to_owned(),
        (_, []) => "Nothing was measured for it".to_owned(),
        (_, reasons) => format!("Nothing to show: {}", reasons.join("; ")),
    }
}

/// Choices that no item of the report shows: every later figure rests on them.
pub(super) fn choices_without_table(out: &mut String, report: &Report) {
    let shown: Vec<usize> = report
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Choices(table) => Some(table.choices.iter().copied()),
            _ => None,
        })
        .flatten()
        .collect();
    let others: Vec<&ChoiceOutcome> = report
        .choices
        .iter()
        .enumerate()
        .filter(|(index, _)| !shown.contains(index))
        .map(|(_, choice)| choice)
        .collect();
    if !others.is_empty() && !report.repetitions.is_empty() {
        let _ = writeln!(out, "## Choices\n");
        choice_table(out, report, &others);
    }
}

fn figures(out: &mut String, report: &Report, shown: &Table, form: Form) {
    let fixed: Vec<String> = shown.fixed.iter().map(|level| words::level(&level.factor, &level.level)).collect();
    let fixed = if fixed.is_empty() { String::new() } else { format!(" All cells: {}.", escape(&fixed.join(", "))) };
    let _ = writeln!(out, "{}.{fixed}\n", shown.about);
    let mut head = vec![String::new()];
    head.extend(shown.columns.iter().map(|column| escape(column)));
    let rows: Vec<Vec<String>> = shown
        .rows
        .iter()
        .map(|row| {
            let mut cells = vec![escape(&row.label)];
            cells.extend(row.cells.iter().map(|cell| figure_cell(report, cell, form)));
            cells
        })
        .collect();
    let _ = writeln!(out, "{}", table(&head, &rows, true));
    let places = shown.rows.iter().flat_map(|row| {
        row.cells.iter().zip(&shown.columns).map(move |(cell, column)| {
            let column = if shown.columns.len() > 1 { format!(", {column}") } else { String::new() };
            (format!("{}{column}", row.label), cell)
        })
    });
    notes(out, report, places);
}

fn figure_cell(report: &Report, cell: &Cell, form: Form) -> String {
    let Some(figure) = found(report, cell) else {
        return escape(cell.missing.as_deref().unwrap_or("not measured"));
    };
    let mut value = escape(&words::figure_value(figure));
    if let (Form::Page, Some(index)) = (form, cell.figure) {
        value = format!("[{value}](#{})", anchor::figure(index));
    }
    if figure.value.is_some() {
        return format!("**{value}** ({})", escape(&words::figure_beside(figure)));
    }
    match words::paced_beside(report, figure) {
        Some(paced) => format!("{value}; {}", escape(&paced)),
        None => value,
    }
}

fn found<'a>(report: &'a Report, cell: &Cell) -> Option<&'a Figure> {
    cell.figure.and_then(|index| report.figures.get(index))
}

/// Why figures are missing or only floors, and what has to be known beside them: each sentence once, with its cells.
fn notes<'a>(out: &mut String, report: &Report, cells: impl Iterator<Item = (String, &'a Cell)>) {
    let mut sentences: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |text: &str, place: &str| match sentences.iter_mut().find(|(known, _)| known == text) {
        Some((_, places)) => places.push(place.to_owned()),
        None => sentences.push((text.to_owned(), vec![place.to_owned()])),
    };
    let mut all = 0;
    for (place, cell) in cells {
        all += 1;
        if let Some(figure) = found(report, cell) {
            let said: Vec<&str> =
                figure.not_determined.iter().chain(&figure.bound).chain(&figure.notes).map(String::as_str).collect();
            if !said.is_empty() {
                add(&said.join("; "), &place);
            }
        }
    }
    if !sentences.is_empty() {
        let lines = sentences.into_iter().map(|(text, places)| {
            let text = text.strip_prefix(&format!("{}: ", places[0])).unwrap_or(&text).to_owned();
            let places = if all > 1 && places.len() == all { "all cells".to_owned() } else { places.join("; ") };
            format!("{}: {}", escape(&places), sentence(&text))
        });
        let _ = writeln!(out, "{}", list(lines));
    }
}

fn bars(out: &mut String, report: &Report, chart: &BarChart, form: Form) {
    if form == Form::Page {
        let _ = writeln!(out, "{}. Every repetition is a mark: filled where valid, a cross where void.\n", chart.about);
        let _ = writeln!(out, "{}", drawing::bars(report, chart));
        return;
    }
    let _ = writeln!(out, "{}. Under each bar every repetition of the cell: `o` valid, `x` void.\n", chart.about);
    let _ = writeln!(out, "{}", block(&bar_chart(report, chart, 120).join("\n")));
}

fn lines(out: &mut String, report: &Report, chart: &LineChart, form: Form) {
    if form == Form::Page {
        let _ = writeln!(out, "{}. Thin lines are repetitions, dashed where void.\n", chart.about);
        let _ = writeln!(out, "{}", drawing::lines(report, chart));
    } else {
        let _ = writeln!(out, "{}. Every repetition's own course is in `report.json`.\n", chart.about);
    }
    let moments = moments(chart);
    if !moments.is_empty() {
        let mut head = vec![String::new()];
        head.extend(moments.iter().map(|seconds| format!("after {}", with_seconds(*seconds))));
        // Why a line has no values stands below.
        let rows: Vec<Vec<String>> = chart
            .lines
            .iter()
            .filter(|line| !line.points.is_empty())
            .map(|line| {
                let mut cells = vec![escape(&line.label)];
                cells.extend(moments.iter().map(|&seconds| escape(&value_at(chart, line, seconds))));
                cells
            })
            .collect();
        let _ = writeln!(out, "{}", table(&head, &rows, true));
    }
    notes(out, report, chart.lines.iter().map(|line| (line.label.clone(), &line.cell)));
}

/// Moments of a chart over time that a table has columns for.
const MOMENTS: usize = 6;

/// The moments that a table of a chart over time shows: spread evenly over those of its longest line.
pub(crate) fn moments(chart: &LineChart) -> Vec<f64> {
    let Some(longest) = chart.lines.iter().max_by_key(|line| line.points.len()) else { return Vec::new() };
    let all: Vec<f64> = longest.points.iter().map(|(seconds, _)| *seconds).collect();
    if all.len() <= MOMENTS {
        return all;
    }
    (0..MOMENTS).map(|index| all[index * (all.len() - 1) / (MOMENTS - 1)]).collect()
}

/// What a line has at a moment, for people: of its nearest point.
pub(crate) fn value_at(chart: &LineChart, line: &Line, seconds: f64) -> String {
    let nearest =
        line.points.iter().min_by(|left, right| (left.0 - seconds).abs().total_cmp(&(right.0 - seconds).abs()));
    nearest.map_or_else(|| "not determined".to_owned(), |(_, value)| quantity(*value, &chart.unit))
}

/// A moment for people: `12.5 s`.
pub(crate) fn with_seconds(seconds: f64) -> String {
    quantity(seconds, "s")
}

/// A bar chart of characters in lines of at most `columns` columns, every repetition under its bar.
pub(crate) fn bar_chart(report: &Report, chart: &BarChart, columns: usize) -> Vec<String> {
    let largest = chart
        .bars
        .iter()
        .flat_map(|bar| bar.value.into_iter().chain(bar.points.iter().map(|point| point.value)))
        .filter(|value| value.is_finite())
        .fold(0.0, f64::max);
    let labels: Vec<String> = chart
        .bars
        .iter()
        .map(|bar| match &bar.group {
            Some(group) => format!("{}, {group}", bar.label),
            None => bar.label.clone(),
        })
        .collect();
    let texts: Vec<String> = chart
        .bars
        .iter()
        .map(|bar| match found(report, &bar.cell) {
            Some(figure) => width::harmless(&words::figure_value(figure)),
            None => width::harmless(bar.cell.missing.as_deref().unwrap_or("not measured")),
        })
        .collect();
    // Beside the labels where everything fits, else under them.
    let widest = labels.iter().map(|label| width::of(label)).max().unwrap_or(0);
    let with_bar = |text: &str, bar: &Bar| width::of(text) + if bar.value.is_some() { 1 } else { 0 };
    let text_of_bars = chart.bars.iter().zip(&texts).filter(|(bar, _)| bar.value.is_some());
    let beside = text_of_bars.map(|(bar, text)| with_bar(text, bar)).max().unwrap_or(0);
    let longest_text = texts.iter().map(|text| width::of(text)).max().unwrap_or(0);
    let is_beside = widest + 2 + longest_text <= columns && widest + 2 + beside + SHORTEST_BAR <= columns;
    let indent = if is_beside { widest + 2 } else { 2 };
    let bar_columns = columns.saturating_sub(indent + beside).clamp(1, BAR);
    let place = |value: f64| {
        let share = if largest > 0.0 { (value / largest).clamp(0.0, 1.0) } else { 0.0 };
        (share * bar_columns as f64).round() as usize
    };
    let mut lines = Vec::new();
    for ((bar, label), text) in chart.bars.iter().zip(&labels).zip(&texts) {
        let line = "█".repeat(bar.value.map_or(0, place));
        let gap = if line.is_empty() { "" } else { " " };
        if is_beside {
            lines.push(format!("{}  {line}{gap}{text}", width::pad(label, widest)));
        } else {
            lines.extend(width::wrap(label, columns));
            let wrapped = width::wrap(&format!("{line}{gap}{text}"), columns.saturating_sub(indent));
            lines.extend(wrapped.into_iter().map(|line| format!("{}{line}", " ".repeat(indent))));
        }
        if !bar.points.is_empty() {
            let mut strip = vec![' '; bar_columns];
            for point in &bar.points {
                let mark = &mut strip[place(point.value).saturating_sub(1).min(bar_columns - 1)];
                // A void repetition stays visible where a valid one has the same place.
                *mark = if point.valid && *mark != 'x' { 'o' } else { 'x' };
            }
            let strip: String = strip.into_iter().collect();
            lines.push(format!("{}{}", " ".repeat(indent), strip.trim_end()));
        }
    }
    lines
}

fn choice_table(out: &mut String, report: &Report, choices: &[&ChoiceOutcome]) {
    let head: Vec<String> = ["for", "chosen", "compared", "cost of the worst"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = choices
        .iter()
        .map(|choice| {
            let for_each = choice_name(report, choice);
            let (chosen, _) = choice_words(choice);
            let compared: Vec<String> = choice
                .levels
                .iter()
                .map(|level| match level.score {
                    Some(score) => format!("{}: {}", level.level, with_unit(choice.maximising, score)),
                    None => format!("{}: nothing usable", level.level),
                })
                .collect();
            vec![escape(&for_each), escape(&chosen), escape(&compared.join(", ")), escape(&worst(choice))]
        })
        .collect();
    let _ = writeln!(out, "{}", table(&head, &rows, false));
    let mut sentences: Vec<String> = Vec::new();
    for choice in choices {
        let (_, notes) = choice_words(choice);
        sentences
            .extend(notes.iter().map(|note| format!("{}: {}", escape(&choice_name(report, choice)), sentence(note))));
    }
    if !sentences.is_empty() {
        let _ = writeln!(out, "{}", list(sentences));
    }
}

/// For which cells a choice was made, candidates by their labels.
pub(crate) fn choice_name(report: &Report, choice: &ChoiceOutcome) -> String {
    if choice.for_each.is_empty() {
        return choice.phase.clone();
    }
    choice
        .for_each
        .iter()
        .map(|(factor, level)| {
            if factor == "candidate" {
                report
                    .study
                    .candidates
                    .iter()
                    .find(|(name, _)| name == level)
                    .map_or_else(|| level.clone(), |(_, label)| label.clone())
            } else {
                words::level(factor, level)
            }
        })
        .collect::<Vec<_>>()
        .join(", ")
}

/// What was chosen, and the sentences that stand beside it.
pub(crate) fn choice_words(choice: &ChoiceOutcome) -> (String, Vec<String>) {
    let mut notes = Vec::new();
    let chosen = match &choice.outcome {
        Chosen::Level(level) => {
            let provisional = if choice.provisional.is_some() { " (provisional)" } else { "" };
            format!("{} {level}{provisional}", choice.factor)
        }
        Chosen::None { why } => {
            notes.push(why.clone());
            "nothing".to_owned()
        }
    };
    notes.extend(choice.provisional.clone());
    notes.extend(choice.not_bracketed.clone());
    (chosen, notes)
}

/// What the worst level of a choice would have cost.
pub(crate) fn worst(choice: &ChoiceOutcome) -> String {
    match &choice.worst {
        Some(worst) => format!("{} {}: {} {}", choice.factor, worst.level, percent(worst.cost_of_best), worst.base),
        None => "not known".to_owned(),
    }
}

fn capacity(out: &mut String, plan: &CapacityPlan) {
    if let Some(why) = &plan.not_possible {
        let _ = writeln!(out, "{}\n", sentence(&format!("Not possible here: {why}")));
        return;
    }
    let _ = writeln!(out, "{}.\n", escape(&plan.formula));
    if plan.rows.is_empty() {
        let _ = writeln!(out, "No cell of {} has {} cores.\n", escape(&plan.of), plan.cores);
        return;
    }
    let mut head = vec![String::new(), "one instance".to_owned()];
    head.extend(plan.targets.iter().map(|target| with_unit(Metric::Throughput, *target)));
    let rows: Vec<Vec<String>> = plan
        .rows
        .iter()
        .map(|row| {
            let mut cells = vec![escape(&row.label)];
            match row.ceiling {
                Some(ceiling) => {
                    let (floor, most) = if row.upper_bound { ("≥ ", "at most ") } else { ("", "") };
                    cells.push(format!("{floor}{}", with_unit(Metric::Throughput, ceiling)));
                    cells.extend(row.needs.iter().map(|need| {
                        format!(
                            "{most}{} ({} cores)",
                            counted(need.instances, "instance", "instances"),
                            significant(need.cores)
                        )
                    }));
                }
                None => {
                    cells.push(escape(row.missing.as_deref().unwrap_or("not determined")));
                    let word = match row.missing.as_deref() {
                        Some(missing) if missing.starts_with("not determined") => "not determined",
                        _ => "not measured",
                    };
                    cells.extend(plan.targets.iter().map(|_| word.to_owned()));
                }
            }
            cells
        })
        .collect();
    let _ = writeln!(out, "{}", table(&head, &rows, true));
}
