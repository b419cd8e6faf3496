//! Bar charts as SVG for the HTML report, with every repetition as a mark that tells its value and verdict.

use std::fmt::Write as _;

use super::html::escape;
use super::words;
use crate::model::{BarChart, Report};
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
