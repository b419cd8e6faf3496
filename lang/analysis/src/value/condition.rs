//! Conditions on one repetition: `corrected.p99 < 10ms`, `achieved >= 99%`, `errors == 0`.

use plan::phase::Comparison;
use plan::{Condition, Metric};

use super::text::TextProblem;
use super::units;
use crate::names;

const OPERATORS: &[(&str, Comparison)] = &[
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("==", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// Reads a condition.
///
/// # Errors
/// What is wrong and where, in bytes of the text.
pub fn read(text: &str) -> Result<Condition, TextProblem> {
    let problem = |message: String, from: usize, to: usize| Err(TextProblem { message, from, to });
    let Some(at) = text.find(['<', '>', '=']) else {
        return problem(
            format!("`{text}` compares nothing; write it like `corrected.p99 < 10ms`, with <, <=, ==, >= or >"),
            0,
            text.len(),
        );
    };
    let Some((written, comparison)) = OPERATORS.iter().find(|(written, _)| text[at..].starts_with(written)) else {
        return problem("`=` is not a comparison; write `==`".to_owned(), at, at + 1);
    };
    let name = text[..at].trim();
    let start = text[..at].len() - text[..at].trim_start().len();
    let Some(metric) = Metric::from_name(name) else {
        let near = names::nearest(name, Metric::ALL.iter().map(|metric| metric.name()));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return problem(format!("no metric is called `{name}`{hint}"), start, start + name.len());
    };
    let value_start = at + written.len();
    let raw = &text[value_start..];
    let value_at = value_start + (raw.len() - raw.trim_start().len());
    let value_text = raw.trim();
    match value(metric, value_text) {
        Ok(value) => Ok(Condition { metric, comparison: *comparison, value, written: text.trim().to_owned() }),
        Err(why) => problem(why, value_at, value_at + value_text.len().max(1)),
    }
}

/// A value in the metric's unit.
fn value(metric: Metric, text: &str) -> Result<f64, String> {
    let fits = |units: &[(&str, f64)], problem: units::UnitProblem| {
        format!("`{text}` is no value of {}: {problem}; units that fit: {}", metric.name(), units::names(units))
    };
    match metric.unit() {
        "ms" => units::duration(text).map(|ns| ns as f64 / 1e6).map_err(|problem| fits(units::DURATION_UNITS, problem)),
        "µs" => {
            units::duration(text).map(|ns| ns as f64 / 1e3).map_err(|problem| fits(units::DURATION_UNITS, problem))
        }
        "1/s" => units::rate(text).map_err(|problem| fits(units::RATE_UNITS, problem)),
        "bytes" => units::bytes(text).map(|bytes| bytes as f64).map_err(|problem| fits(units::BYTE_UNITS, problem)),
        "ratio" => units::percent(text).map_err(|problem| fits(units::PERCENT_UNITS, problem)),
        "count" | "cores" => text
            .parse::<f64>()
            .ok()
            .filter(|value| value.is_finite() && *value >= 0.0)
            .ok_or_else(|| format!("`{text}` is no value of {}: it must be a number without a unit", metric.name())),
        _ => Err(format!("`{}` is a group of figures; a condition needs a single one", metric.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_conditions() {
        for (text, metric, value) in [
            ("corrected.p99 < 10ms", Metric::CorrectedP99, 10.0),
            ("achieved >= 99%", Metric::Achieved, 0.99),
            ("errors == 0", Metric::Errors, 0.0),
            ("corrected.p99.9<=1s", Metric::CorrectedP999, 1_000.0),
            ("cpu-per-request < 1ms", Metric::CpuPerRequest, 1_000.0),
        ] {
            let condition = read(text).unwrap_or_else(|problem| panic!("{text}: {problem:?}"));
            assert_eq!((condition.metric, condition.value), (metric, value), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        for (text, part, from, to) in [
            ("corrected.p99", "compares nothing", 0, 13),
            ("errors = 0", "write `==`", 7, 8),
            ("corected.p99 < 10ms", "did you mean `corrected.p99`", 0, 12),
            ("corrected.p99 < 10", "it has no unit", 16, 18),
            ("achieved >= 10ms", "units that fit: %", 12, 16),
            ("database < 1", "group of figures", 11, 12),
            ("errors == ", "without a unit", 10, 11),
        ] {
            let problem = read(text).expect_err(text);
            assert!(problem.message.contains(part), "{text}: {}", problem.message);
            assert_eq!((problem.from, problem.to), (from, to), "{text}");
        }
    }
}
