//! The report as Markdown: verdict and confidence first, then the tables, then everything that a reader may doubt.

mod derivation;
pub(crate) mod items;
pub(crate) mod run;
pub mod text;

pub(crate) mod anchor {
    //! Names of places in the HTML report.

    use crate::render::words::slug;

    /// Where a figure is derived.
    pub fn figure(index: usize) -> String {
        format!("figure-{index}")
    }

    /// Where a repetition is listed.
    pub fn repetition(id: &str) -> String {
        format!("repetition-{}", slug(id))
    }
}

use std::fmt::Write as _;

pub(crate) use self::items::{bar_chart, choice_name, choice_words, moments, value_at, with_seconds, worst};
pub(crate) use self::run::agreement_cell;
use self::text::{code, escape, list, sentence};
use super::reasons::reasons;
use super::words;
use crate::model::Report;
use crate::number;

/// What the Markdown is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A file of its own: charts are drawn with characters.
    File,
    /// The source of the HTML report: charts are drawings, and figures link to what they are made of.
    Page,
}

/// The whole report.
pub fn markdown(report: &Report) -> String {
    document(report, Form::File)
}

/// The whole report in one of its forms.
pub(crate) fn document(report: &Report, form: Form) -> String {
    let mut out = String::new();
    head(&mut out, report);
    items::items(&mut out, report, form);
    limits(&mut out, report);
    run::contract(&mut out, report);
    items::choices_without_table(&mut out, report);
    run::agreements(&mut out, report);
    run::repetitions(&mut out, report, form);
    run::failures(&mut out, report);
    run::gates(&mut out, report);
    run::environment(&mut out, report);
    run::reproduce(&mut out, report);
    derivation::derivation(&mut out, report, form);
    out
}

fn head(out: &mut String, report: &Report) {
    let study = &report.study;
    let title = if study.title.is_empty() { &study.name } else { &study.title };
    let _ = writeln!(out, "# {}\n", escape(title));
    if !study.question.is_empty() && study.question != *title {
        let _ = writeln!(out, "{}\n", escape(&study.question));
    }
    let _ =
        writeln!(out, "**Verdict: {}.** Confidence: {}.\n", report.verdict.kind.name(), report.confidence.level.name());
    if let Some(ending) = words::ending(&report.ending) {
        let _ = writeln!(out, "{}\n", escape(&ending));
    }
    if !report.verdict.reasons.is_empty() {
        let _ = writeln!(out, "{}", list(reasons(report).iter().map(|reason| begun(report, reason))));
    }
    if !report.confidence.reasons.is_empty() {
        let _ = writeln!(out, "Confidence is {} because:\n", report.confidence.level.name());
        let _ = writeln!(out, "{}", list(report.confidence.reasons.iter().map(|reason| begun(report, reason))));
    }
    for note in &report.not_measured {
        let label = if note.label == note.candidate { String::new() } else { format!(" ({})", escape(&note.label)) };
        let mend = if note.mend.is_empty() { String::new() } else { format!(" To mend it: {}", code(&note.mend)) };
        let _ = writeln!(out, "**Not measured: {}**{label}: {}{mend}\n", escape(&note.candidate), sentence(&note.why));
    }
    facts(out, report);
}

/// The line that says what this is a report of.
fn facts(out: &mut String, report: &Report) {
    let mut parts = vec![format!("study {}", escape(&report.study.name))];
    if let Some(run) = &report.run {
        parts.push(format!("run {}", escape(run)));
    }
    if let Some(stretch) = report.environment.first() {
        parts.push(stretch.from.clone());
    }
    parts.push(format!("machine {}", escape(&report.study.machine)));
    if let Some(profile) = &report.study.profile {
        parts.push(format!("profile {}", escape(profile)));
    }
    if !report.repetitions.is_empty() {
        let valid = report.repetitions.iter().filter(|repetition| repetition.valid).count() as u64;
        let all = report.repetitions.len() as u64;
        parts.push(format!(
            "{}, {} valid and {} void",
            number::counted(all, "repetition", "repetitions"),
            number::count(valid),
            number::count(all - valid)
        ));
    }
    if report.durations.total_ns > 0 {
        parts.push(number::duration(report.durations.total_ns));
    }
    if let Some((low, high)) = words::pace_range(report) {
        parts.push(words::pace(low, high));
    }
    let _ = writeln!(out, "{}\n", parts.join(" · "));
}

/// A sentence that begins with a capital, unless it begins with a name of the study.
fn begun(report: &Report, text: &str) -> String {
    let first = text.split([' ', ':', '.', ',']).next().unwrap_or_default();
    let is_name = report.study.candidates.iter().any(|(name, _)| name == first)
        || report.gates.iter().any(|phase| phase.phase == first)
        || report.agreements.iter().any(|agreement| agreement.name == first);
    let text = sentence(text);
    let mut characters = text.chars();
    match characters.next() {
        Some(letter) if !is_name => letter.to_uppercase().chain(characters).collect(),
        _ => text,
    }
}

fn limits(out: &mut String, report: &Report) {
    let _ = writeln!(out, "## Limits\n");
    if report.limits.is_empty() {
        let _ = writeln!(out, "None beyond what the verdict says.\n");
    } else {
        let _ = writeln!(out, "{}", list(report.limits.iter().map(|limit| begun(report, limit))));
    }
}
