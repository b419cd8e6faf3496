//! `excluded.md`: everything that was measured or tried and does not count, with the reason and the values.

use std::fmt::Write as _;

use plan::Metric;

use super::markdown::text::{block, code, escape, list, sentence};
use super::words;
use crate::model::{Repetition, Report};
use crate::number::{count, counted, with_unit};

/// Every void repetition with reason and values, superseded ones, failures, candidates that were not measured.
pub fn excluded(report: &Report) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "# What does not count\n");
    let run = report.run.as_deref().unwrap_or("without a name");
    let _ = writeln!(out, "Study {}, run {}.\n", escape(&report.study.name), escape(run));
    let void: Vec<&Repetition> = report.repetitions.iter().filter(|repetition| !repetition.valid).collect();
    if void.is_empty() && report.superseded.is_empty() && report.failures.is_empty() && report.not_measured.is_empty() {
        let _ = writeln!(
            out,
            "Nothing was excluded: {} measured, all valid.",
            counted(report.repetitions.len() as u64, "repetition was", "repetitions were")
        );
        return out;
    }
    if !report.not_measured.is_empty() {
        let _ = writeln!(out, "## Candidates that were not measured\n");
        let lines = report.not_measured.iter().map(|note| {
            let mend = if note.mend.is_empty() { String::new() } else { format!(" To mend it: {}", code(&note.mend)) };
            format!("{}: {}{mend}", escape(&note.candidate), sentence(&note.why))
        });
        let _ = writeln!(out, "{}", list(lines));
    }
    if !void.is_empty() {
        let _ = writeln!(
            out,
            "## Void repetitions\n\n{} of {} repetitions are void. They enter no figure.\n",
            count(void.len() as u64),
            count(report.repetitions.len() as u64)
        );
        for repetition in void {
            void_repetition(&mut out, repetition);
        }
    }
    if !report.superseded.is_empty() {
        let _ = writeln!(out, "## Superseded repetitions\n");
        let lines = report.superseded.iter().map(|old| {
            let levels: Vec<(String, String)> =
                old.levels.iter().map(|(factor, level)| (factor.clone(), level.clone())).collect();
            format!("{} ({}): {}", code(&old.id), escape(&words::pairs(&levels)), sentence(&old.why))
        });
        let _ = writeln!(out, "{}", list(lines));
    }
    if !report.failures.is_empty() {
        let _ = writeln!(out, "## What could not be carried out\n");
        for failure in &report.failures {
            let _ = writeln!(out, "**{}**: {}\n", escape(&failure.of), escape(&words::failure(failure)));
            if !failure.log.is_empty() {
                let _ = writeln!(out, "{}", block(&failure.log.join("\n")));
            }
        }
    }
    out
}

fn void_repetition(out: &mut String, repetition: &Repetition) {
    let levels: Vec<(String, String)> =
        repetition.levels.iter().map(|(factor, level)| (factor.clone(), level.clone())).collect();
    let _ = writeln!(out, "### {}\n", escape(&repetition.id));
    let _ = writeln!(out, "{}\n", escape(&words::pairs(&levels)));
    let mut lines = Vec::new();
    for gate in repetition.gates.iter().filter(|gate| !gate.passed) {
        let values: Vec<String> = gate.values.iter().map(words::gate_value).collect();
        let values =
            if values.is_empty() { String::new() } else { format!(" Values: {}.", escape(&values.join(", "))) };
        lines.push(format!("**{}**: {}{values}", escape(&gate.gate), sentence(&gate.sentence)));
    }
    if lines.is_empty() {
        lines.extend(repetition.reasons.iter().map(|reason| sentence(reason)));
    }
    let seen: Vec<String> = Metric::ALL
        .into_iter()
        .filter_map(|metric| {
            let value = repetition.values.get(metric.name())?;
            Some(format!("{} {}", words::metric(metric), with_unit(metric, *value)))
        })
        .collect();
    if !seen.is_empty() {
        lines.push(format!("It read: {}.", escape(&seen.join(", "))));
    }
    if !repetition.failures.is_empty() {
        let reasons: Vec<String> =
            repetition.failures.iter().map(|(reason, &times)| format!("{reason} ({})", count(times))).collect();
        lines.push(format!("Answers that were not as expected: {}.", escape(&reasons.join(", "))));
    }
    lines.extend(repetition.findings.iter().map(|finding| format!("Found: {}", sentence(finding))));
    let _ = writeln!(out, "{}", list(lines));
    if !repetition.evidence.is_empty() {
        let _ = writeln!(out, "{}", block(&repetition.evidence.join("\n")));
    }
}
