//! `report.json`, and the one object that `--format json` prints.

use serde_json::{Map, Value, json};

use crate::model::{Figure, Report};

/// The whole report: exact values, a `version` that readers check.
pub fn json(report: &Report) -> Value {
    // The report's types have only string keys, and a number that is not finite becomes null, so nothing can fail; if
    // serde refused all the same, its sentence is better than a report that says nothing.
    serde_json::to_value(report)
        .unwrap_or_else(|error| json!({ "version": report.version, "error": error.to_string() }))
}

/// The summary of a run for machines: its directory, verdict, reasons and figures.
///
/// The figures are those of [`json`], with the fields that a machine decides on.
pub fn summary_json(report: &Report, run_dir: &str) -> Value {
    json!({
        "version": report.version,
        "run": run_dir,
        "study": report.study.name,
        "verdict": report.verdict.kind.name(),
        "reasons": report.verdict.reasons,
        "confidence": report.confidence.level.name(),
        "limits": report.limits,
        "figures": report.figures.iter().map(figure).collect::<Vec<_>>(),
    })
}

fn figure(figure: &Figure) -> Value {
    let cell: Map<String, Value> =
        figure.cell.iter().map(|level| (level.factor.clone(), Value::from(level.level.clone()))).collect();
    json!({
        "name": figure.name,
        "cell": cell,
        "value": figure.value,
        "unit": figure.unit,
        "interval": figure.interval,
        "estimator": figure.estimator,
        "valid": figure.valid,
        "void": figure.void,
        "floor": figure.bound.is_some(),
        "not-determined": figure.not_determined,
        "seen": figure.seen.map(|seen| json!({ "min": seen.min, "median": seen.median, "max": seen.max, "n": seen.n })),
    })
}
