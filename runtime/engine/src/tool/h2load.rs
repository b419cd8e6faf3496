//! h2load over HTTP/1.1: closed loop, or a rate for each connection. Its log has one line per request.

use std::io;
use std::path::{Path, PathBuf};

use journal::Histogram;

use super::{Call, Told, milliseconds, write};

/// Where its log goes.
pub fn log(directory: &Path) -> PathBuf {
    directory.join("requests.tsv")
}

/// Gives the arguments, and writes what does not fit there.
pub fn arguments(call: &Call<'_>) -> io::Result<Vec<String>> {
    let log = log(call.directory);
    // It appends, and the warm-up wrote there.
    if log.exists() {
        std::fs::remove_file(&log)?;
    }
    let connections = call.job.connections.max(1);
    let options = [
        ("--clients", connections.to_string()),
        ("--threads", call.job.threads.clamp(1, connections).to_string()),
        ("--duration", milliseconds(call.length)),
        ("--log-file", log.to_string_lossy().into_owned()),
    ];
    let mut words = vec!["--h1".to_owned()];
    words.extend(options.into_iter().map(|(name, value)| format!("{name}={value}")));
    if let Some(rate) = call.job.rate {
        words.push(format!("--rps={}", rate / f64::from(connections)));
    }
    let Some(request) = call.requests.first() else { return Ok(words) };
    words.push(format!("--header=:method: {}", request.method));
    for (name, value) in &request.headers {
        words.push(format!("--header={name}: {value}"));
    }
    if let Some(body) = &request.body {
        words.push(format!("--data={}", write(call.directory, "body", body)?));
    }
    let urls: String = call.requests.iter().map(|request| format!("{}{}\n", call.url, request.path)).collect();
    words.push(format!("--input-file={}", write(call.directory, "urls", urls.as_bytes())?));
    Ok(words)
}

/// Reads the log (start in µs of the epoch, status or -1, latency in µs) and the line of counts in the text, which must agree.
///
/// # Errors
/// What is missing, contradicts itself, or is no measurement.
pub fn read(text: &str, log: &str, connections: u32) -> Result<Told, String> {
    let line = text.lines().find(|line| line.starts_with("requests: ")).ok_or("it told no counts")?;
    let count = |name: &str| {
        let mut parts = line.trim_start_matches("requests: ").split(", ");
        let part = parts.find_map(|part| part.strip_suffix(name)).map(str::trim);
        part.and_then(|number| number.parse::<u64>().ok())
            .ok_or_else(|| format!("`{line}` does not tell how many were{name}"))
    };
    let (started, done, errored, timed_out) =
        (count(" started")?, count(" done")?, count(" errored")?, count(" timeout")?);
    let mut told = Told { timed_out, sent: Some(started), ..Told::default() };
    let (mut first, mut last, mut rows) = (u64::MAX, 0, 0u64);
    let mut latencies = Vec::new();
    for row in log.lines() {
        let unreadable = || format!("`{row}` is no request");
        let mut fields = row.split('\t').map(str::parse::<i64>);
        let (Some(Ok(at)), Some(Ok(status)), Some(Ok(latency))) = (fields.next(), fields.next(), fields.next()) else {
            return Err(unreadable());
        };
        let (at, latency) = (u64::try_from(at).map_err(|_| unreadable())?, u64::try_from(latency).unwrap_or(0));
        first = first.min(at);
        last = last.max(at.saturating_add(latency));
        rows += 1;
        if let Ok(status) = u16::try_from(status) {
            *told.statuses.entry(status).or_default() += 1;
            latencies.push(latency.saturating_mul(1_000));
        } else {
            *told.failures.entry("no complete answer".to_owned()).or_default() += 1;
        }
    }
    if rows == 0 || last <= first {
        return Err(format!("its log has no request ({started} were started)"));
    }
    if told.statuses.values().sum::<u64>() + errored < done {
        return Err(format!("it tells {done} answers, and its log has {}", told.statuses.values().sum::<u64>()));
    }
    told.measured_ns = (last - first).saturating_mul(1_000);
    told.service = Histogram::of(latencies);
    // What is under way when it ends is cut off.
    told.unknown = started.saturating_sub(done).min(u64::from(connections));
    Ok(told)
}
