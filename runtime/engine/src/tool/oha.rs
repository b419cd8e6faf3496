//! oha: closed loop, and open loop with its latency correction. Its JSON tells percentiles, no distribution.

use std::collections::BTreeMap;
use std::io;

use journal::ToldLatency;
use serde::Deserialize;

use super::{Call, Told, milliseconds, write};

/// What oha's JSON tells that is used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    summary: Summary,
    latency_percentiles: BTreeMap<String, Option<f64>>,
    first_byte_percentiles: Option<BTreeMap<String, Option<f64>>>,
    status_code_distribution: BTreeMap<String, u64>,
    error_distribution: BTreeMap<String, u64>,
}

/// Seconds.
#[derive(Deserialize)]
struct Summary {
    total: f64,
    average: Option<f64>,
}

/// Gives the arguments, and writes what does not fit there.
pub fn arguments(call: &Call<'_>) -> io::Result<Vec<String>> {
    let mut words: Vec<String> = [
        "--no-tui",
        "--output-format",
        "json",
        "--redirect",
        "0",
        "--disable-compression",
        "--wait-ongoing-requests-after-deadline",
        "-c",
    ]
    .map(str::to_owned)
    .to_vec();
    words.push(call.job.connections.to_string());
    words.extend(["-z".to_owned(), milliseconds(call.length)]);
    words.extend(["-t".to_owned(), format!("{}ms", (call.job.timeout_ns / 1_000_000).max(1))]);
    if let Some(rate) = call.job.rate {
        words.extend(["-q".to_owned(), rate.to_string(), "--latency-correction".to_owned()]);
    }
    let Some(request) = call.requests.first() else { return Ok(words) };
    words.extend(["-m".to_owned(), request.method.clone()]);
    for (name, value) in &request.headers {
        words.extend(["-H".to_owned(), format!("{name}: {value}")]);
    }
    if let Some(body) = &request.body {
        words.extend(["-D".to_owned(), write(call.directory, "body", body)?]);
    }
    if call.requests.len() > 1 {
        let urls: String = call.requests.iter().map(|request| format!("{}{}\n", call.url, request.path)).collect();
        words.extend(["--urls-from-file".to_owned(), write(call.directory, "urls", urls.as_bytes())?]);
    } else {
        words.push(format!("{}{}", call.url, request.path));
    }
    Ok(words)
}

/// Reads the report. With its correction on, the latencies are corrected ones.
///
/// # Errors
/// What it lacks, or what in it is no measurement.
pub fn read(text: &str, open: bool) -> Result<Told, String> {
    if text.trim().is_empty() {
        return Err("it told nothing".to_owned());
    }
    let report: Report = serde_json::from_str(text).map_err(|error| format!("its JSON is not as expected: {error}"))?;
    let mut told = Told { measured_ns: nanoseconds(report.summary.total).unwrap_or(0), ..Told::default() };
    if told.measured_ns == 0 {
        return Err(format!("it measured for {} s", report.summary.total));
    }
    for (status, count) in report.status_code_distribution {
        let status = status.parse().map_err(|_| format!("`{status}` is no status"))?;
        told.statuses.insert(status, count);
    }
    for (reason, count) in report.error_distribution {
        match reason.as_str() {
            "timeout" => told.timed_out += count,
            "aborted due to deadline" => told.unknown += count,
            _ => *told.failures.entry(reason).or_default() += count,
        }
    }
    let count = told.answers();
    let latency = |percentiles: &BTreeMap<String, Option<f64>>, mean: Option<f64>| {
        let of = |name: &str| percentiles.get(name).copied().flatten().and_then(nanoseconds);
        ToldLatency {
            count,
            mean_ns: mean.map(|s| s * 1e9).filter(|ns| ns.is_finite()),
            p50_ns: of("p50"),
            p99_ns: of("p99"),
            p999_ns: of("p99.9"),
        }
    };
    if count > 0 {
        let all = latency(&report.latency_percentiles, report.summary.average);
        if all.p50_ns.is_none() || all.p99_ns.is_none() {
            return Err(format!("it tells no p50 or p99 of {count} answers"));
        }
        told.percentiles.insert(if open { "corrected" } else { "service" }.to_owned(), all);
        if let Some(first) = &report.first_byte_percentiles {
            told.percentiles.insert("ttfb".to_owned(), latency(first, None));
        }
    }
    Ok(told)
}

fn nanoseconds(seconds: f64) -> Option<u64> {
    (0.0..1e9).contains(&seconds).then(|| (seconds * 1e9).round() as u64)
}
