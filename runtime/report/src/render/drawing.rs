//! Charts as SVG for the HTML report, with every repetition as a mark or line that tells its verdict.

use std::fmt::Write as _;

use super::html::escape;
use super::words;
use crate::model::{BarChart, LineChart, Report};
use crate::number::quantity;

/// Width of the drawing in its own units: labels, bars, and room for the longest text beside a bar.
const WIDTH: f64 = 1_060.0;
/// Where bars begin.
const LEFT: f64 = 290.0;
/// Where the longest bar ends.
const RIGHT: f64 = 700.0;
/// Height of one bar with its surroundings.
const ROW: f64 = 36.0;

/// The chart as one element without blank lines, so that Markdown takes it for one block.
pub(super) fn bars(report: &Report, chart: &BarChart) -> String {
    let largest = chart
        .bars
        .iter()
        .flat_map(|bar| bar.value.into_iter().chain(bar.points.iter().map(|point| point.value)))
        .filter(|value| value.is_finite())
        .fold(0.0, f64::max);
    let place = |value: f64| {
        let share = if largest > 0.0 && value.is_finite() { (value / largest).clamp(0.0, 1.0) } else { 0.0 };
        LEFT + share * (RIGHT - LEFT)
    };
    let height = ROW * chart.bars.len() as f64 + 8.0;
    let mut out =
        format!("<div><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">", escape(&chart.title));
    for (index, bar) in chart.bars.iter().enumerate() {
        let middle = ROW * index as f64 + ROW / 2.0 + 4.0;
        let label = match &bar.group {
            Some(group) => format!("{}, {group}", bar.label),
            None => bar.label.clone(),
        };
        let figure = bar.cell.figure.and_then(|index| report.figures.get(index));
        let text = match figure {
            Some(figure) => words::figure_value(figure),
            None => bar.cell.missing.clone().unwrap_or_default(),
        };
        let _ = write!(out, "<text x=\"0\" y=\"{:.1}\">{}</text>", middle + 4.0, escape(&label));
        let mut end = LEFT;
        if let Some(value) = bar.value {
            end = place(value);
            let _ = write!(
                out,
                "<rect class=\"bar\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"18\"/>",
                middle - 9.0,
                end - LEFT
            );
        }
        for point in &bar.points {
            let x = place(point.value);
            end = end.max(x);
            let word = if point.valid { "valid" } else { "void" };
            let title = escape(&format!("{}: {}, {word}", point.repetition, quantity(point.value, &chart.unit)));
            if point.valid {
                let _ = write!(
                    out,
                    "<circle class=\"valid\" cx=\"{x:.1}\" cy=\"{middle:.1}\" r=\"4\"><title>{title}</title></circle>"
                );
            } else {
                let _ = write!(
                    out,
                    "<path class=\"void\" d=\"M{:.1} {:.1}l8 8m0 -8l-8 8\"><title>{title}</title></path>",
                    x - 4.0,
                    middle - 4.0
                );
            }
        }
        let _ = write!(
            out,
            "<text class=\"faint\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            end + 12.0,
            middle + 4.0,
            escape(&text)
        );
    }
    out.push_str("</svg></div>\n");
    out
}

/// Height of the field of a chart over time, and the room around it.
const FIELD: f64 = 260.0;
/// Left edge of the field; what stands before it are values.
const FIELD_LEFT: f64 = 110.0;
/// Right edge of the field; what stands after it are labels.
const FIELD_RIGHT: f64 = 780.0;
/// Colours of lines, in order; they are told apart by their labels too.
const COLOURS: [&str; 6] = ["#3b6ea5", "#c0582b", "#4d8b57", "#8a5fa8", "#a8862d", "#5a6570"];

/// The chart over time as one element without blank lines.
pub(super) fn lines(report: &Report, chart: &LineChart) -> String {
    let all = || {
        chart.lines.iter().flat_map(|line| {
            line.points
                .iter()
                .chain(line.repetitions.iter().flat_map(|trace| &trace.points))
                .filter(|(_, value)| value.is_finite())
        })
    };
    let longest = all().map(|(seconds, _)| *seconds).fold(0.0, f64::max);
    let largest = all().map(|(_, value)| *value).fold(0.0, f64::max);
    let x =
        |seconds: f64| FIELD_LEFT + if longest > 0.0 { seconds / longest } else { 0.0 } * (FIELD_RIGHT - FIELD_LEFT);
    let y = |value: f64| 10.0 + FIELD - if largest > 0.0 { (value / largest).clamp(0.0, 1.0) } else { 0.0 } * FIELD;
    let path = |points: &[(f64, f64)]| {
        let places: Vec<String> = points
            .iter()
            .filter(|(_, value)| value.is_finite())
            .map(|(seconds, value)| format!("{:.1},{:.1}", x(*seconds), y(*value)))
            .collect();
        places.join(" ")
    };
    let height = FIELD + 40.0;
    let mut out =
        format!("<div><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">", escape(&chart.title));
    for share in [0.0, 0.5, 1.0] {
        let (value, at) = (largest * share, y(largest * share));
        let _ = write!(
            out,
            "<line x1=\"{FIELD_LEFT}\" x2=\"{FIELD_RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#8884\"/>\
             <text class=\"faint\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            FIELD_LEFT - 8.0,
            at + 4.0,
            escape(&quantity(value, &chart.unit))
        );
        let _ = write!(
            out,
            "<text class=\"faint\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x(longest * share),
            FIELD + 30.0,
            escape(&quantity(longest * share, "s"))
        );
    }
    let mut labels: Vec<f64> = Vec::new();
    for (line, colour) in chart.lines.iter().zip(COLOURS.iter().cycle()) {
        for trace in &line.repetitions {
            let (word, dash) = if trace.valid { ("valid", "") } else { ("void", " stroke-dasharray=\"3 4\"") };
            let _ = write!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-opacity=\".35\"{dash}><title>{}</title></polyline>",
                path(&trace.points),
                escape(&format!("{}, {word}", trace.repetition))
            );
        }
        if !line.points.is_empty() {
            let _ = write!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\"><title>{}</title></polyline>",
                path(&line.points),
                escape(&line.label)
            );
        }
        // A label stands at its line's end, and below those that are there already.
        let last = line.points.last().or_else(|| line.repetitions.iter().find_map(|trace| trace.points.last()));
        let mut at = last.map_or(FIELD, |(_, value)| y(*value));
        while let Some(taken) = labels.iter().find(|taken| (**taken - at).abs() < 16.0) {
            at = taken + 16.0;
        }
        labels.push(at);
        let value = match line.cell.figure.and_then(|index| report.figures.get(index)) {
            Some(figure) => words::figure_value(figure),
            None => line.cell.missing.clone().unwrap_or_default(),
        };
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" style=\"fill:{colour}\">{}</text>",
            FIELD_RIGHT + 10.0,
            at + 4.0,
            escape(&format!("{}: {value}", line.label))
        );
    }
    out.push_str("</svg></div>\n");
    out
}
