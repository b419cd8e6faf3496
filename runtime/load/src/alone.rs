//! The generator without a study: one URL, one summary (`exp load URL`).

use std::collections::BTreeMap;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::AtomicBool;

use journal::facts::{Census, Histogram, LoadFacts};
use plan::{Body, CpuSet, Expect, Gate, Request, Stream, Text, Workload};
use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::prepare::prepare;
use crate::sys;
use crate::wire::{Arrivals, Job, Transport};

/// What to send where, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// `http://host[:port][/path]`.
    pub url: String,
    /// Method.
    pub method: String,
    /// Headers in order.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Option<String>,
    /// Statuses that are expected; empty: 200 to 299.
    pub expect: Vec<u16>,
    /// Connections.
    pub connections: u32,
    /// Requests per second on a fixed schedule; `None`: closed loop.
    pub rate: Option<f64>,
    /// How the schedule's slots are spread.
    pub arrivals: Arrivals,
    /// Load before the window, ns.
    pub warm_up_ns: u64,
    /// The window, ns.
    pub window_ns: u64,
    /// Time-out of a request, ns.
    pub timeout_ns: u64,
    /// Threads.
    pub threads: u32,
    /// CPUs that they are pinned to; empty: not pinned.
    pub cpus: CpuSet,
    /// Have the kernel note when answers arrive on every connection, not on a sample of them only.
    pub kernel_time: bool,
    /// Send also to an address that is not this machine's own.
    pub beyond_loopback: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            url: String::new(),
            method: "GET".into(),
            headers: Vec::new(),
            body: None,
            expect: Vec::new(),
            connections: 64,
            rate: None,
            arrivals: Arrivals::Constant,
            warm_up_ns: 0,
            window_ns: 10_000_000_000,
            timeout_ns: 10_000_000_000,
            threads: 1,
            cpus: CpuSet::default(),
            kernel_time: false,
            beyond_loopback: false,
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// Method and URL.
    pub request: String,
    /// The window, s.
    pub seconds: f64,
    /// Expected answers per second of the window.
    pub per_second: f64,
    /// Where every request went.
    pub census: Census,
    /// Failures by reason.
    pub failures: BTreeMap<String, u64>,
    /// The latencies, each under its own name; `corrected` and `send-lag` in an open loop only. `receive-queue` is the part of `service`
    /// for which answers lay in the kernel until the generator read them, of the connections on which that was noted.
    pub latencies: BTreeMap<String, Spread>,
    /// Utilisation of the generator's busiest thread, without the time in which it polled and found nothing to do; `None` where its CPU
    /// time could not be read.
    pub generator_busy: Option<f64>,
    /// What must be known to read the figures, in sentences.
    pub limits: Vec<String>,
    /// Everything that was recorded.
    pub facts: LoadFacts,
}

/// A distribution of latencies, ms. A percentile that fewer than ten values lie beyond is left out: it would be a
/// few requests' accident.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Spread {
    /// Values.
    pub count: u64,
    /// Mean.
    pub mean_ms: Option<f64>,
    /// Median.
    pub p50_ms: Option<f64>,
    /// 90 %.
    pub p90_ms: Option<f64>,
    /// 99 %.
    pub p99_ms: Option<f64>,
    /// 99.9 %.
    pub p999_ms: Option<f64>,
    /// Largest.
    pub max_ms: Option<f64>,
}

impl Spread {
    /// The spread of a histogram.
    pub fn of(histogram: &Histogram) -> Self {
        let quantile = |q: f64| {
            (histogram.count as f64 * (1.0 - q) >= 9.999)
                .then(|| histogram.quantile_ns(q).map(|ns| ns as f64 / 1e6))
                .flatten()
        };
        Self {
            count: histogram.count,
            mean_ms: histogram.mean_ns().map(|ns| ns / 1e6),
            p50_ms: quantile(0.5),
            p90_ms: quantile(0.9),
            p99_ms: quantile(0.99),
            p999_ms: quantile(0.999),
            max_ms: (histogram.count > 0).then_some(histogram.max_ns as f64 / 1e6),
        }
    }
}

/// Sends the load and sums it up. Setting `stop` ends it at once.
///
/// # Errors
/// When the URL is none, lies beyond this machine without leave, or the job can't be run.
pub fn run(options: &Options, stop: &AtomicBool) -> Result<Summary, LoadError> {
    let job = job(options)?;
    let prepared = prepare(&job)?;
    let at_ns = sys::now_ns() + START_NOTICE_NS;
    let facts = prepared.run(at_ns, stop)?;
    Ok(summary(options, &job, at_ns, facts))
}

/// Notice that the threads get before the start.
const START_NOTICE_NS: u64 = 50_000_000;

/// The job that these options ask for.
///
/// # Errors
/// When the URL is none, or lies beyond this machine without leave.
pub fn job(options: &Options) -> Result<Job, LoadError> {
    let (host, path) = split(&options.url)?;
    let target = resolve(&options.url, host)?;
    if !target.ip().is_loopback() && !options.beyond_loopback {
        return Err(LoadError::job(
            format!("{host} is {}, which is not this machine", target.ip()),
            "send load to 127.0.0.1, or say that the target is yours to load",
        ));
    }
    let has_type = options.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let is_json = options.body.as_ref().is_some_and(|body| body.trim_start().starts_with(['{', '[']));
    let stream = Stream {
        name: "requests".into(),
        share: 1.0,
        rate: None,
        request: Request {
            method: options.method.clone(),
            path: Text::literal(path),
            headers: options.headers.iter().map(|(name, value)| (name.clone(), Text::literal(value.clone()))).collect(),
            bearer: None,
            body: options.body.clone().map(|body| Body::Text(Text::literal(body))),
            content_type: (is_json && !has_type).then(|| "application/json".into()),
            accept_gzip: false,
        },
        parameters: Vec::new(),
        expect: Expect { status: options.expect.clone(), ..Expect::default() },
        creates_row_in: None,
    };
    Ok(Job {
        target,
        host: host.to_owned(),
        workload: Workload { name: "alone".into(), streams: vec![stream] },
        tokens: BTreeMap::new(),
        variables: BTreeMap::new(),
        connections: options.connections,
        keep_alive: true,
        rate: options.rate,
        course: Vec::new(),
        arrivals: options.arrivals,
        warm_up_ns: options.warm_up_ns,
        window_ns: options.window_ns,
        timeout_ns: options.timeout_ns,
        grace_ns: options.timeout_ns,
        threads: options.threads,
        cpus: options.cpus.clone(),
        kernel_time: options.kernel_time,
        seed: 1,
        part: None,
        requests: None,
        transport: Transport::default(),
    })
}

/// Host with port, and path with query.
fn split(url: &str) -> Result<(&str, &str), LoadError> {
    let next = "write it as http://127.0.0.1:8080/path";
    if url.starts_with("https://") {
        return Err(LoadError::job(format!("`{url}` asks for TLS, which the generator does not speak yet"), next));
    }
    let rest =
        url.strip_prefix("http://").ok_or_else(|| LoadError::job(format!("`{url}` is not a URL of http"), next))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    if host.is_empty() || host.contains('@') {
        return Err(LoadError::job(format!("`{url}` names no host that can be loaded"), next));
    }
    let path = path.split('#').next().unwrap_or_default();
    match path {
        "" => Ok((host, "/")),
        path if path.starts_with('/') => Ok((host, path)),
        _ => Err(LoadError::job(format!("`{url}` has a query without a path"), next)),
    }
}

fn resolve(url: &str, host: &str) -> Result<SocketAddr, LoadError> {
    let has_port = host.rsplit(':').next().is_some_and(|port| host.contains(':') && port.parse::<u16>().is_ok());
    let found = if has_port { host.to_socket_addrs() } else { (host, 80).to_socket_addrs() };
    let addresses: Vec<SocketAddr> = found.map(Iterator::collect).unwrap_or_default();
    // A name with addresses of both families: the older one is what most servers under test listen on.
    addresses
        .iter()
        .find(|address| address.is_ipv4())
        .or_else(|| addresses.first())
        .copied()
        .ok_or_else(|| LoadError::job(format!("the host of `{url}` has no address"), "check its name and port"))
}

fn summary(options: &Options, job: &Job, at_ns: u64, facts: LoadFacts) -> Summary {
    let seconds = job.window_ns as f64 / 1e9;
    let stream = facts.streams.first().cloned().unwrap_or_default();
    let mut latencies = BTreeMap::from([
        ("service".to_owned(), Spread::of(&stream.service)),
        ("ttfb".to_owned(), Spread::of(&stream.ttfb)),
    ]);
    for (name, histogram) in [("corrected", &stream.corrected), ("send-lag", &stream.send_lag)] {
        if let Some(histogram) = histogram {
            latencies.insert(name.into(), Spread::of(histogram));
        }
    }
    if let Some(receive) = &facts.generator.receive {
        latencies.insert("receive-queue".into(), Spread::of(&receive.queue));
    }
    let generator_busy = facts.generator.busiest(facts.took_ns.unwrap_or(job.window_ns));
    let census = stream.census;
    Summary {
        request: format!("{} {}", options.method, options.url),
        seconds,
        per_second: census.ok as f64 / seconds,
        census,
        failures: stream.failures.clone(),
        latencies,
        generator_busy,
        limits: limits(&facts, &census, generator_busy, job.window_start_ns(at_ns)),
        facts,
    }
}

/// A stillness of the target this many times its median service time is no slow answer.
const STILL: u64 = 5;

fn limits(facts: &LoadFacts, census: &Census, busy: Option<f64>, window_start: u64) -> Vec<String> {
    let mut limits = Vec::new();
    let seconds_in = |at_ns: u64| at_ns.saturating_sub(window_start) as f64 / 1e9;
    match busy {
        None => limits.push("The generator's CPU time could not be read: whether it was the limit is unknown.".into()),
        Some(busy) if busy > Gate::GENERATOR_BUSY => limits.push(format!(
            "The generator was the bottleneck: a thread of it was busy {:.0} % of the time. The target may carry more, and the latencies hold the generator's own queue.",
            busy * 100.0
        )),
        Some(_) => {}
    }
    let receive = facts.generator.receive.as_ref();
    match receive.and_then(|receive| Some((receive, receive.share_of_service()?))) {
        None => limits.push(
            "No answer's arrival was noted by the kernel: how long answers waited for the generator is unknown.".into(),
        ),
        Some((receive, share)) if share > Gate::RECEIVE_QUEUE => limits.push(format!(
            "The generator was the bottleneck of the latencies: answers lay in the kernel for {:.0} µs until it read them, {:.0} % of the service time (medians of {} answers on {} connections).",
            receive.queue.quantile_ns(0.5).unwrap_or(0) as f64 / 1e3,
            share * 100.0,
            grouped(receive.queue.count as f64),
            receive.connections
        )),
        Some(_) => {}
    }
    let median = facts.streams.iter().filter_map(|stream| stream.service.quantile_ns(0.5)).max().unwrap_or(0);
    let silence = facts.silences.iter().max_by_key(|silence| silence.for_ns);
    if let Some(silence) = silence.filter(|silence| silence.for_ns > STILL * median) {
        limits.push(format!(
            "The target stood still for {:.1} ms, {:.3} s into the window: requests were in flight, the generator was there, and nothing came.",
            silence.for_ns as f64 / 1e6,
            seconds_in(silence.at_ns)
        ));
    }
    let stalls = &facts.generator.stalls;
    if let Some(longest) = stalls.iter().max_by_key(|stall| stall.for_ns) {
        let all: u64 = stalls.iter().map(|stall| stall.for_ns).sum();
        limits.push(format!(
            "The generator itself stood still {} times, {:.1} ms in all and {:.1} ms at the longest, {:.3} s into the window: that is in the latencies and is not the target's.",
            stalls.len(),
            all as f64 / 1e6,
            longest.for_ns as f64 / 1e6,
            seconds_in(longest.at_ns)
        ));
    }
    let lost = census.failed + census.timed_out + census.unanswered;
    if lost > 0 {
        limits.push(format!(
            "{lost} requests got no expected answer; they are in no latency of the service and not in the rate."
        ));
    }
    let evidence = facts.streams.iter().flat_map(|stream| &stream.evidence);
    limits.extend(evidence.take(1).map(|first| format!("The first wrong answer: {first}")));
    if census.unsent > 0 {
        limits.push(format!(
            "{} requests that were due were never sent: every connection was waiting for an answer.",
            census.unsent
        ));
    }
    if facts.connections_used < facts.connections {
        limits.push(format!(
            "{} of {} connections never got an answer.",
            facts.connections - facts.connections_used,
            facts.connections
        ));
    }
    if facts.reconnects > 0 {
        limits.push(format!("Connections were opened again {} times within the window.", facts.reconnects));
    }
    if facts.unsolicited > 0 {
        limits.push(format!("{} times bytes came that no request had asked for.", facts.unsolicited));
    }
    limits
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = &self.facts;
        let loop_ = facts.rate.map_or("closed loop".to_owned(), |rate| format!("open loop, {}/s", grouped(rate)));
        writeln!(
            f,
            "{} · {loop_} · {} connections · {:.1} s",
            self.request,
            grouped(f64::from(facts.connections)),
            self.seconds
        )?;
        let census = &self.census;
        write!(f, "  {} answers as expected, {}/s", grouped(census.ok as f64), grouped(self.per_second))?;
        for (count, what) in [
            (census.failed, "failed"),
            (census.timed_out, "timed out"),
            (census.unanswered, "unanswered"),
            (census.unsent, "unsent"),
        ] {
            if count > 0 {
                write!(f, " · {} {what}", grouped(count as f64))?;
            }
        }
        writeln!(f)?;
        for (reason, count) in &self.failures {
            writeln!(f, "    {:>10}  {reason}", grouped(*count as f64))?;
        }
        writeln!(f, "  {:<13} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}", "ms", "mean", "p50", "p90", "p99", "p99.9", "max")?;
        for name in ["service", "ttfb", "receive-queue", "corrected", "send-lag"] {
            let Some(spread) = self.latencies.get(name) else { continue };
            write!(f, "  {name:<13}")?;
            for value in [spread.mean_ms, spread.p50_ms, spread.p90_ms, spread.p99_ms, spread.p999_ms, spread.max_ms] {
                write!(f, " {:>9}", value.map_or("–".to_owned(), |value| format!("{value:.3}")))?;
            }
            writeln!(f)?;
        }
        write!(f, "  generator     ")?;
        match self.generator_busy {
            Some(busy) if facts.generator.threads == 1 => write!(f, "{:.0} % busy", busy * 100.0)?,
            Some(busy) => {
                write!(f, "{} threads, the busiest {:.0} % of the time", facts.generator.threads, busy * 100.0)?;
            }
            None => write!(f, "CPU time unknown")?,
        }
        if facts.rate.is_some() {
            write!(f, " · at most {} slots waiting", grouped(facts.generator.max_backlog as f64))?;
        }
        writeln!(f)?;
        for limit in &self.limits {
            writeln!(f, "  ! {limit}")?;
        }
        Ok(())
    }
}

/// A whole number with its thousands set apart.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noop;
    use crate::peer::{Peer, Reply};

    fn options(address: SocketAddr, path: &str) -> Options {
        Options {
            url: format!("http://{address}{path}"),
            connections: 4,
            warm_up_ns: 20_000_000,
            window_ns: 200_000_000,
            timeout_ns: 1_000_000_000,
            ..Options::default()
        }
    }

    #[test]
    fn one_url_gives_a_summary_with_the_latencies_side_by_side() {
        let server = noop::Server::start(&noop::Options::default()).expect("a server");
        let open = Options { rate: Some(1_000.0), ..options(server.address(), "") };
        let summary = run(&open, &AtomicBool::new(false)).expect("a summary");
        assert_eq!((summary.census.ok, summary.per_second), (200, 1_000.0));
        let text = summary.to_string();
        for part in
            ["open loop, 1,000/s", "200 answers as expected, 1,000/s", "service", "ttfb", "corrected", "send-lag"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        // 200 values: ten lie beyond the 95th percentile, so p90 is shown and p99 is not.
        let service = summary.latencies["service"];
        assert!(service.p90_ms.is_some() && service.p99_ms.is_none() && service.max_ms.is_some());
        let json = serde_json::to_string(&summary).expect("JSON");
        let back: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(back["latencies"]["corrected"]["count"], 200);

        let closed = run(&options(server.address(), "/x?y=1"), &AtomicBool::new(false)).expect("a summary");
        assert!(!closed.latencies.contains_key("corrected"));
        assert!(closed.census.ok > 200);
    }

    #[test]
    fn what_limits_the_figures_is_said() {
        let peer =
            Peer::start(0, |asked| Reply::json(if asked.number % 2 == 0 { 200 } else { 503 }, "{}")).expect("a peer");
        let summary = run(&options(peer.address(), "/"), &AtomicBool::new(false)).expect("a summary");
        let text = summary.to_string();
        for part in
            ["status 503", "got no expected answer", "The first wrong answer: status is 503, expected 200 to 299"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn urls_are_read_or_refused_with_the_way_to_write_them() {
        for (url, host, path) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", "/"),
            ("http://localhost/a?b=c#d", "localhost", "/a?b=c"),
            ("http://[::1]:80/x", "[::1]:80", "/x"),
        ] {
            assert_eq!(split(url).expect("a URL"), (host, path));
        }
        for url in ["127.0.0.1:8080", "https://127.0.0.1/", "http:///x", "http://user@host/", "http://host?x"] {
            let error = split(url).expect_err("no URL").to_string();
            assert!(error.contains("http://127.0.0.1:8080/path"), "{error}");
        }
        let away = Options { url: "http://192.0.2.1:80/".into(), ..Options::default() };
        let error = job(&away).expect_err("not this machine").to_string();
        assert!(error.contains("192.0.2.1"), "{error}");
        assert!(job(&Options { beyond_loopback: true, ..away }).is_ok());
    }

    #[test]
    fn numbers_are_grouped() {
        for (value, text) in [(0.0, "0"), (999.4, "999"), (1_000.0, "1,000"), (1_234_567.0, "1,234,567")] {
            assert_eq!(grouped(value), text);
        }
    }
}
