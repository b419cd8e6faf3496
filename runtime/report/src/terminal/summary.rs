//! The end of a run on a terminal: verdict first, then the tables, then where the run lies and what to do next.

use super::line::{Line, Style, flow};
use crate::model::{CapacityPlan, Cell, Ending, Figure, Item, LineChart, Report, Table};
use crate::number::{counted, duration, significant, with_unit};
use crate::render::markdown::{bar_chart, choice_name, choice_words, moments, value_at, with_seconds, worst};
use crate::render::reasons::reasons;
use crate::render::words;
use crate::width;
use judge::{ConfidenceLevel, VerdictKind};
use plan::Metric;

/// Sentences that are printed of one kind; the report has all.
const SENTENCES: usize = 12;

/// All lines.
pub(super) fn summary(report: &Report, run_dir: &str, columns: usize) -> Vec<Line> {
    let mut lines = verdict(report, columns);
    // Where nothing was measured, tables would only say so in every cell.
    let (shown, empty): (Vec<&Item>, Vec<&Item>) =
        report.items.iter().partition(|item| item.shows_something(report) && !report.repetitions.is_empty());
    for item in shown {
        lines.push(Line::new());
        lines.extend(heading(item.title(), columns));
        lines.extend(match item {
            Item::Table(table) => figures(report, table, columns),
            Item::BarChart(chart) => bar_chart(report, chart, columns.min(120) - 2)
                .into_iter()
                .map(|line| Line::new().plain("  ").plain(line))
                .collect(),
            Item::LineChart(chart) => over_time(report, chart, columns),
            Item::Choices(choices) => match &choices.missing {
                Some(why) => {
                    flow(Line::new().plain("  "), Style::Plain, &format!("nothing was chosen: {why}"), None, columns)
                }
                None => choices
                    .choices
                    .iter()
                    .filter_map(|&index| report.choices.get(index))
                    .flat_map(|choice| {
                        let (chosen, notes) = choice_words(choice);
                        let head = Line::new().plain(format!("  {}: ", choice_name(report, choice)));
                        let mut text = format!("{chosen}; worst: {}", worst(choice));
                        for note in notes {
                            text.push_str("; ");
                            text.push_str(&note);
                        }
                        flow(head, Style::Plain, &text, None, columns)
                    })
                    .collect(),
            },
            Item::CapacityPlan(plan) => capacity(plan, columns),
        });
    }
    if !empty.is_empty() {
        let titles: Vec<&str> = empty.iter().map(|item| item.title()).collect();
        lines.push(Line::new());
        lines.extend(flow(Line::new().plain("nothing to show for: "), Style::Plain, &titles.join("; "), None, columns));
    }
    lines.push(Line::new());
    lines.extend(next(report, run_dir, columns));
    lines
}

/// One line per cell: its values at a few moments of the window.
fn over_time(report: &Report, chart: &LineChart, columns: usize) -> Vec<Line> {
    let moments = moments(chart);
    chart
        .lines
        .iter()
        .flat_map(|line| {
            let values: Vec<String> = moments
                .iter()
                .map(|&seconds| format!("{} after {}", value_at(chart, line, seconds), with_seconds(seconds)))
                .collect();
            let figure = line.cell.figure.and_then(|index| report.figures.get(index));
            let text = match (line.points.is_empty(), figure) {
                (false, _) => values.join(", "),
                (true, Some(figure)) => words::figure_value(figure),
                (true, None) => line.cell.missing.clone().unwrap_or_else(|| "not measured".to_owned()),
            };
            flow(Line::new().plain(format!("  {}: ", line.label)), Style::Plain, &text, None, columns)
        })
        .collect()
}

fn heading(text: &str, columns: usize) -> Vec<Line> {
    flow(Line::new(), Style::Strong, text, None, columns)
}

fn verdict(report: &Report, columns: usize) -> Vec<Line> {
    let style = match report.verdict.kind {
        VerdictKind::Published => Style::Good,
        VerdictKind::PublishedWithLimits => Style::Warning,
        VerdictKind::Void => Style::Bad,
    };
    let confidence = match report.confidence.level {
        ConfidenceLevel::High => Style::Good,
        ConfidenceLevel::Medium => Style::Warning,
        ConfidenceLevel::Low => Style::Bad,
    };
    let mut lines = Vec::new();
    let first = Line::new().with(Style::Strong, "verdict: ").with(style, report.verdict.kind.name());
    let second = Line::new().plain("confidence: ").with(confidence, report.confidence.level.name());
    if columns == usize::MAX || first.columns() + 3 + second.columns() <= columns {
        let mut line = first.with(Style::Faint, " · ");
        line.0.extend(second.0);
        lines.push(line);
    } else {
        lines.extend([first, second]);
    }
    if let Some(ending) = words::ending(&report.ending) {
        lines.extend(flow(Line::new().plain("  "), Style::Warning, &ending, None, columns));
    }
    lines.extend(sentences("", &reasons(report), columns));
    lines.extend(sentences("confidence", &report.confidence.reasons, columns));
    // A limit that is a reason already is not said twice.
    let limits: Vec<String> = report
        .limits
        .iter()
        .filter(|limit| !report.verdict.reasons.contains(limit) && !report.confidence.reasons.contains(limit))
        .cloned()
        .collect();
    lines.extend(sentences("limits", &limits, columns));
    for note in &report.not_measured {
        let mend = if note.mend.is_empty() { String::new() } else { format!(" Mend it: {}", note.mend) };
        let why = note.why.trim_end_matches('.');
        let head =
            Line::new().plain("  ").with(Style::Warning, "– ").plain(format!("{} not measured: ", note.candidate));
        lines.extend(flow(head, Style::Plain, &format!("{why}.{mend}"), None, columns));
    }
    lines
}

fn sentences(head: &str, all: &[String], columns: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    if !head.is_empty() && !all.is_empty() {
        lines.push(Line::new().plain(format!("{head}:")));
    }
    for sentence in all.iter().take(SENTENCES) {
        lines.extend(flow(Line::new().plain("  - "), Style::Plain, sentence, None, columns));
    }
    if all.len() > SENTENCES {
        lines.push(Line::new().with(Style::Faint, format!("  … {} more in report.md", all.len() - SENTENCES)));
    }
    lines
}

/// A table of figures: in columns where they fit, else one line a figure.
fn figures(report: &Report, table: &Table, columns: usize) -> Vec<Line> {
    let cells: Vec<Vec<(String, Vec<String>)>> =
        table.rows.iter().map(|row| row.cells.iter().map(|cell| value_and_under(report, cell)).collect()).collect();
    let label = table.rows.iter().map(|row| width::of(&row.label)).max().unwrap_or(0);
    let widths: Vec<usize> = table
        .columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            cells
                .iter()
                .filter_map(|row| row.get(index))
                .map(|(value, under)| under.iter().map(|line| width::of(line)).fold(width::of(value), usize::max))
                .chain([width::of(column)])
                .max()
                .unwrap_or(0)
        })
        .collect();
    let all = 2 + label + widths.iter().map(|width| width + 2).sum::<usize>();
    let mut lines = Vec::new();
    if all <= columns {
        let mut head = Line::new().plain(" ".repeat(2 + label));
        for (column, width_of) in table.columns.iter().zip(&widths) {
            head = head.plain("  ").with(Style::Faint, width::pad(column, *width_of));
        }
        lines.push(head);
        for (row, cells) in table.rows.iter().zip(&cells) {
            let mut values = Line::new().plain("  ").plain(width::pad(&row.label, label));
            let deepest = cells.iter().map(|(_, under)| under.len()).max().unwrap_or(0);
            let mut unders = vec![Line::new().plain(" ".repeat(2 + label)); deepest];
            for ((value, under), width_of) in cells.iter().zip(&widths) {
                values = values.plain("  ").with(Style::Strong, width::pad(value, *width_of));
                for (index, line) in unders.iter_mut().enumerate() {
                    let text = under.get(index).map_or("", String::as_str);
                    *line = std::mem::take(line).plain("  ").with(Style::Faint, width::pad(text, *width_of));
                }
            }
            lines.push(values);
            lines.extend(unders);
        }
    } else {
        for (row, cells) in table.rows.iter().zip(&cells) {
            for ((value, under), column) in cells.iter().zip(&table.columns) {
                let place =
                    if table.columns.len() > 1 { format!("{}, {column}", row.label) } else { row.label.clone() };
                let beside = if under.is_empty() { String::new() } else { format!(" ({})", under.join("; ")) };
                lines.extend(flow(
                    Line::new().plain("  "),
                    Style::Plain,
                    &format!("{place}: {value}{beside}"),
                    None,
                    columns,
                ));
            }
        }
    }
    lines.extend(floors(report, table, columns));
    lines
}

/// A cell's value, and what stands under it.
fn value_and_under(report: &Report, cell: &Cell) -> (String, Vec<String>) {
    let Some(figure) = found(report, cell) else {
        return (cell.missing.clone().unwrap_or_else(|| "not measured".to_owned()), Vec::new());
    };
    if figure.value.is_some() {
        return (words::figure_value(figure), vec![words::figure_beside(figure)]);
    }
    let value = words::figure_value(figure);
    let seen = value.strip_prefix("not determined (").and_then(|rest| rest.strip_suffix(')'));
    let Some(seen) = seen else { return (value, Vec::new()) };
    let mut under = vec![seen.to_owned()];
    under.extend(words::paced_beside(report, figure));
    ("not determined".to_owned(), under)
}

fn found<'a>(report: &'a Report, cell: &Cell) -> Option<&'a Figure> {
    cell.figure.and_then(|index| report.figures.get(index))
}

/// Why figures of a table are only floors; why others are not determined is among the verdict's reasons.
fn floors(report: &Report, table: &Table, columns: usize) -> Vec<Line> {
    let mut bounds: Vec<&str> = Vec::new();
    for cell in table.rows.iter().flat_map(|row| &row.cells) {
        if let Some(bound) = found(report, cell).and_then(|figure| figure.bound.as_deref())
            && !bounds.contains(&bound)
        {
            bounds.push(bound);
        }
    }
    bounds.into_iter().flat_map(|bound| flow(Line::new().plain("  ≥ "), Style::Plain, bound, None, columns)).collect()
}

fn capacity(plan: &CapacityPlan, columns: usize) -> Vec<Line> {
    if let Some(why) = &plan.not_possible {
        return flow(Line::new().plain("  "), Style::Plain, &format!("not possible here: {why}"), None, columns);
    }
    let mut lines = Vec::new();
    for row in &plan.rows {
        let most = if row.upper_bound { "at most " } else { "" };
        let text = match row.ceiling {
            Some(_) => row
                .needs
                .iter()
                .map(|need| {
                    format!(
                        "{} needs {most}{} ({} cores)",
                        with_unit(Metric::Throughput, need.target),
                        counted(need.instances, "instance", "instances"),
                        significant(need.cores)
                    )
                })
                .collect::<Vec<_>>()
                .join("; "),
            None => row.missing.clone().unwrap_or_else(|| "not determined".to_owned()),
        };
        lines.extend(flow(Line::new().plain(format!("  {}: ", row.label)), Style::Plain, &text, None, columns));
    }
    lines
}

fn next(report: &Report, run_dir: &str, columns: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut say = |head: &str, text: &str| {
        lines.extend(flow(Line::new().plain(format!("{head:<10}")), Style::Active, text, None, columns));
    };
    let mut measured = counted(report.repetitions.len() as u64, "repetition", "repetitions");
    if report.durations.total_ns > 0 {
        measured = format!("{measured} in {}", duration(report.durations.total_ns));
    }
    say("measured", &measured);
    if !run_dir.is_empty() {
        let directory = run_dir.trim_end_matches('/');
        say("report", &format!("{directory}/report.md"));
        if report.repetitions.iter().any(|repetition| !repetition.valid) || !report.failures.is_empty() {
            say("excluded", &format!("{directory}/excluded.md"));
        }
    }
    if report.ending != Ending::Completed && !report.reproduce.command.is_empty() {
        say("continue", &report.reproduce.command);
    } else if !run_dir.is_empty() {
        say("next", &format!("exp report {}", run_dir.trim_end_matches('/')));
    }
    lines
}
