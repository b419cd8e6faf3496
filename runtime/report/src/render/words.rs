//! Phrases that every render uses, so that a figure reads the same everywhere.

use plan::Metric;

use crate::model::{Ending, FailureNote, Figure, Report};
use crate::number::{self, counted, percent, range, with_unit};

/// A metric in a column's head.
pub fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::CpuPerRequest => "CPU per request",
        Metric::PacedCpuPerRequest => "CPU per request at quiet pace",
        Metric::CoresUsed => "cores used",
        Metric::DatabaseCpuPerRequest => "database CPU per request",
        Metric::DatabaseCoresUsed => "database cores used",
        Metric::Database => "database",
        Metric::Memory => "peak memory",
        Metric::MemoryGrowth => "memory growth",
        Metric::StartTime => "start",
        Metric::StartCpu => "CPU time of the start",
        Metric::ServiceP50 => "service p50",
        Metric::ServiceP99 => "service p99",
        Metric::TtfbP99 => "first byte p99",
        Metric::CorrectedP50 => "corrected p50",
        Metric::CorrectedP99 => "corrected p99",
        Metric::CorrectedP999 => "corrected p99.9",
        Metric::Achieved => "achieved",
        Metric::Errors => "errors",
        Metric::Tps => "transactions",
        Metric::TransactionLatency => "transaction latency",
        Metric::Carried => "rate carried",
        Metric::Demand => "demand",
        Metric::Choice => "choice",
    }
}

/// What a metric is.
pub fn definition(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "expected answers per second of the window",
        Metric::CpuPerRequest => "CPU time of the candidate per expected answer",
        Metric::PacedCpuPerRequest => "CPU per request × pace × (1 − steal): what a quiet core would need",
        Metric::CoresUsed => "CPU time of the candidate ÷ window",
        Metric::DatabaseCpuPerRequest => "CPU time of the database per expected answer",
        Metric::DatabaseCoresUsed => "CPU time of the database ÷ window",
        Metric::Database => "what the database did meanwhile",
        Metric::Memory => "largest memory of the candidate seen in the window",
        Metric::MemoryGrowth => "slope of the candidate's memory over the window",
        Metric::StartTime => "start asked for → first ready answer, with nothing else going on",
        Metric::StartCpu => "CPU time of the candidate until its first ready answer",
        Metric::ServiceP50 | Metric::ServiceP99 => "request sent → last byte, of the expected answers",
        Metric::TtfbP99 => "request sent → first byte, of the expected answers",
        Metric::CorrectedP50 | Metric::CorrectedP99 | Metric::CorrectedP999 => {
            "moment a request was due → last byte (open loop)"
        }
        Metric::Achieved => "expected answers ÷ requests that were due",
        Metric::Errors => "failed, timed out and unsent requests",
        Metric::Tps => "transactions per second as pgbench counts them",
        Metric::TransactionLatency => "mean time of a transaction as pgbench counts it",
        Metric::Carried => "highest rate carried below the lowest that was not",
        Metric::Demand => "smallest amount of the resource from which on every one carries the load",
        Metric::Choice => "the level that was chosen",
    }
}

/// A level with its factor: `2 cores`, `pool 16`, `30% of rate`; a candidate is its name.
pub fn level(factor: &str, level: &str) -> String {
    match factor {
        "candidate" => level.to_owned(),
        "cores" => format!("{level} {}", if level == "1" { "core" } else { "cores" }),
        _ => format!("{factor} {level}"),
    }
}

/// A figure's value for people: `4,120/s`, `≥ 4,120/s`, `221 µs at quiet pace`,
/// `not determined (seen 3,900–4,420/s, 6 repetitions)`, `not determined`, or `not measured`.
pub fn figure_value(figure: &Figure) -> String {
    let pace = if figure.metric == Metric::PacedCpuPerRequest { " at quiet pace" } else { "" };
    match figure.value {
        Some(value) => {
            let floor = if figure.bound.is_some() { "≥ " } else { "" };
            format!("{floor}{}{pace}", with_unit(figure.metric, value))
        }
        None => match figure.seen {
            Some(seen) if seen.n > 0 => format!(
                "not determined (seen {}{pace}, {})",
                range(figure.metric, seen.min, seen.max),
                counted(seen.n.into(), "repetition", "repetitions")
            ),
            // Measured, and nothing came of it that could be shown: no rate of a grid was carried.
            _ if figure.valid + figure.void > 0 => "not determined".to_owned(),
            _ => "not measured".to_owned(),
        },
    }
}

/// What stands beside a determined value: its interval or spread, and n.
pub fn figure_beside(figure: &Figure) -> String {
    if figure.value.is_none() {
        return String::new();
    }
    let mut parts = Vec::new();
    if let Some((low, high)) = figure.interval {
        let coverage = figure.coverage.map_or_else(String::new, |coverage| format!("{} ", percent(coverage)));
        parts.push(format!("{coverage}interval {}", range(figure.metric, low, high)));
    } else if let Some(spread) = figure.spread {
        parts.push(format!("spread {}", percent(spread)));
    }
    parts.push(repetitions(figure));
    parts.join(", ")
}

/// `n 5` or `n 5, 1 void`.
pub fn repetitions(figure: &Figure) -> String {
    if figure.void == 0 { format!("n {}", figure.valid) } else { format!("n {}, {} void", figure.valid, figure.void) }
}

/// The paced figure beside a CPU per request that is not determined, where there is one.
pub fn paced_beside(report: &Report, figure: &Figure) -> Option<String> {
    if figure.metric != Metric::CpuPerRequest || figure.value.is_some() {
        return None;
    }
    let paced = report.figures.iter().find(|other| {
        other.metric == Metric::PacedCpuPerRequest && other.phase == figure.phase && other.cell == figure.cell
    })?;
    paced.value?;
    Some(format!("{} ({})", figure_value(paced), figure_beside(paced)))
}

/// How the run ended, as a sentence; `None` where nothing needs to be said.
pub fn ending(ending: &Ending) -> Option<String> {
    match ending {
        Ending::Completed => None,
        Ending::Interrupted => Some(
            "The run was interrupted: what is missing was not measured. The same command goes on where it stopped."
                .to_owned(),
        ),
        Ending::Open => Some(
            "The journal has no end: the run still goes on, or was killed. The same command goes on where it stopped."
                .to_owned(),
        ),
        Ending::Failed { what, why, next } => {
            let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
            let next = if next.is_empty() { String::new() } else { format!(" Next: {next}") };
            Some(format!("The run failed: {what}{why}.{next}"))
        }
    }
}

/// A failure as a text: what happened, why, what to do next.
pub fn failure(failure: &FailureNote) -> String {
    let mut text = failure.what.trim_end_matches('.').to_owned();
    if !failure.why.is_empty() {
        text.push_str(": ");
        text.push_str(failure.why.trim_end_matches('.'));
    }
    text.push('.');
    if !failure.next.is_empty() {
        text.push_str(" Next: ");
        text.push_str(failure.next.trim_end_matches('.'));
        text.push('.');
    }
    text
}

/// The range of pace over the candidate's CPUs in all repetitions of a report.
pub fn pace_range(report: &Report) -> Option<(f64, f64)> {
    pace_of(report.repetitions.iter().flat_map(|repetition| repetition.pace.values().map(|cpu| cpu.pace)))
}

/// Smallest and largest of some paces.
pub fn pace_of(paces: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    paces.filter(|pace| pace.is_finite()).fold(None, |range, pace| match range {
        None => Some((pace, pace)),
        Some((low, high)) => Some((low.min(pace), high.max(pace))),
    })
}

/// A range of pace: `0.62–0.98`, with a warning where it is far from quiet.
pub fn pace(low: f64, high: f64) -> String {
    let noisy = if low < 0.9 { " (noisy: absolute figures may not be determinable)" } else { "" };
    if (high - low) < 0.005 { format!("pace {low:.2}{noisy}") } else { format!("pace {low:.2}–{high:.2}{noisy}") }
}

/// A file name made of a heading: lower case, digits and hyphens.
pub fn slug(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            out.push(character.to_ascii_lowercase());
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
    }
    let out = out.trim_end_matches('-');
    if out.is_empty() { "table".to_owned() } else { out.to_owned() }
}

/// A gate's value for people: `quiet share of CPU 0 62 %`, or `… unknown`.
pub fn gate_value(value: &judge::GateValue) -> String {
    match value.value {
        Some(number) => format!("{} {}", value.name, number::quantity(number, &value.unit)),
        None => format!("{} unknown", value.name),
    }
}

/// Pairs of factor and level as people say them: `go, 2 cores, pool 8`.
pub fn pairs(pairs: &[(String, String)]) -> String {
    pairs.iter().map(|(factor, of)| level(factor, of)).collect::<Vec<_>>().join(", ")
}
/// Where each of a machine's generators runs: `process on CPUs 1`.
pub fn generators(places: &[plan::GeneratorPlace]) -> Vec<String> {
    let words = |place: &plan::GeneratorPlace| match (&place.on, place.cpus.is_empty()) {
        (on, true) => format!("{on}, not pinned"),
        (on, false) if place.cpus.len() == 1 => format!("{on} on CPU {}", place.cpus),
        (on, false) => format!("{on} on CPUs {}", place.cpus),
    };
    places.iter().map(words).collect()
}
