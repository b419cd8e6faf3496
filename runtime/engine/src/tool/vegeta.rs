//! vegeta: open loop. Its results are encoded as CSV, one line per request.

use std::io;
use std::path::Path;

use journal::Histogram;

use super::{Call, Told, milliseconds, write};

/// Its results, as it writes them.
const RESULTS: &str = "results.bin";

/// Writes the targets and gives the arguments.
pub fn arguments(call: &Call<'_>) -> io::Result<Vec<String>> {
    let mut targets = String::new();
    let body = match call.requests.first().and_then(|request| request.body.as_ref()) {
        Some(body) => Some(write(call.directory, "body", body)?),
        None => None,
    };
    for request in call.requests {
        targets.push_str(&format!("{} {}{}\n", request.method, call.url, request.path));
        for (name, value) in &request.headers {
            targets.push_str(&format!("{name}: {value}\n"));
        }
        if let Some(body) = &body {
            targets.push_str(&format!("@{body}\n"));
        }
        targets.push('\n');
    }
    let connections = call.job.connections.to_string();
    // A rate is a whole number of requests in a time: a thousand seconds keep three decimals.
    let rate = format!("{}/1000s", (call.job.rate.unwrap_or(0.0) * 1_000.0).round().max(1.0) as u64);
    let options = [
        ("-targets", write(call.directory, "targets", targets.as_bytes())?),
        ("-rate", rate),
        ("-duration", milliseconds(call.length)),
        ("-timeout", format!("{}ms", (call.job.timeout_ns / 1_000_000).max(1))),
        ("-connections", connections.clone()),
        ("-max-connections", connections.clone()),
        ("-workers", connections.clone()),
        ("-max-workers", connections),
        ("-max-body", "0".to_owned()),
        ("-redirects", "-1".to_owned()),
        ("-output", call.directory.join(RESULTS).to_string_lossy().into_owned()),
    ];
    let mut words = vec!["attack".to_owned(), "-http2=false".to_owned()];
    words.extend(options.into_iter().map(|(name, value)| format!("{name}={value}")));
    Ok(words)
}

/// The arguments that print the results as CSV.
pub fn encoding(directory: &Path) -> Vec<String> {
    vec!["encode".to_owned(), "-to=csv".to_owned(), directory.join(RESULTS).to_string_lossy().into_owned()]
}

/// Reads the results: timestamp in ns, status (0: no answer), latency in ns, bytes out, bytes in, error, and more.
///
/// # Errors
/// What is no measurement.
pub fn read(rows: &str) -> Result<Told, String> {
    let mut told = Told::default();
    let (mut first, mut last) = (u64::MAX, 0);
    let mut latencies = Vec::new();
    for row in rows.lines() {
        let unreadable = || format!("`{}` is no result", row.chars().take(120).collect::<String>());
        let mut fields = row.split(',');
        let mut number = || fields.next().and_then(|field| field.parse::<u64>().ok()).ok_or_else(unreadable);
        let (at, status, latency) = (number()?, number()?, number()?);
        let error = fields.nth(2).ok_or_else(unreadable)?;
        first = first.min(at);
        last = last.max(at.saturating_add(latency));
        match u16::try_from(status).map_err(|_| unreadable())? {
            0 if error.contains("Client.Timeout") || error.contains("deadline exceeded") => told.timed_out += 1,
            0 => *told.failures.entry(reason(error)).or_default() += 1,
            status => {
                *told.statuses.entry(status).or_default() += 1;
                latencies.push(latency);
            }
        }
    }
    if last <= first {
        return Err("it told no request".to_owned());
    }
    told.measured_ns = last - first;
    told.service = Histogram::of(latencies);
    Ok(told)
}

/// An error without what differs from request to request: `Get "http://…": dial tcp 0.0.0.0:0->127.0.0.1:80: connect: …`.
fn reason(error: &str) -> String {
    let error = error.trim_matches('"');
    match error.rsplit(": ").next().map(str::trim) {
        Some(last) if !last.is_empty() => last.to_owned(),
        _ => "no answer, and no reason told".to_owned(),
    }
}
