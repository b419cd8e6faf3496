//! What came of a load, for a person or a program.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use journal::facts::{Census, Histogram, LoadFacts, PartFacts, StreamFacts};
use plan::{Gate, Leg};
use serde::{Deserialize, Serialize};

use super::Options;
use crate::merge::add_stream;
use crate::prepare::IO_URING;
use crate::sys::uring;
use crate::wire::Job;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// Method and URL.
    pub request: String,
    /// The window, s.
    pub seconds: f64,
    /// Ramps and steps of the rate; empty: it is constant, or there is none.
    pub course: Vec<Leg>,
    /// The window was ended before its time.
    pub cut_short: bool,
    /// Expected answers per second of the window.
    pub per_second: f64,
    /// Where every request went.
    pub census: Census,
    /// Failures by reason.
    pub failures: BTreeMap<String, u64>,
    /// The first few wrong answers.
    pub evidence: Vec<String>,
    /// The latencies, each under its own name; `corrected` and `send-lag` in an open loop only, `failed` where an answer was wrong.
    /// `receive-queue` is the part of `service` for which answers lay in the kernel until the generator read them, of the connections on
    /// which that was noted; `connect` the part of it that was connecting, where each request has a connection of its own.
    pub latencies: BTreeMap<String, Spread>,
    /// Utilisation of the generators' busiest thread, without the time in which it polled and found nothing to do; `None` where its CPU
    /// time could not be read.
    pub generator_busy: Option<f64>,
    /// Why the generator, and not the target, set the figures; `None` where nothing says so.
    pub bottleneck: Option<String>,
    /// The generators, where there were several.
    pub generators: Vec<PartFacts>,
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

/// A stillness of the target this many times its median service time is no slow answer.
const STILL: u64 = 5;

impl Summary {
    /// Sums up what the account of a job says that began at this instant.
    pub fn of(options: &Options, job: &Job, at_ns: u64, facts: LoadFacts) -> Self {
        let window_ns = facts.took_ns.unwrap_or(job.window_ns);
        let seconds = window_ns as f64 / 1e9;
        let mut all = StreamFacts::default();
        facts.streams.iter().for_each(|stream| add_stream(&mut all, stream.clone()));
        let mut latencies = BTreeMap::from([
            ("service".to_owned(), Spread::of(&all.service)),
            ("ttfb".to_owned(), Spread::of(&all.ttfb)),
        ]);
        for (name, histogram) in [("corrected", &all.corrected), ("send-lag", &all.send_lag), ("connect", &all.connect)]
        {
            if let Some(histogram) = histogram {
                latencies.insert(name.into(), Spread::of(histogram));
            }
        }
        if all.failed.count > 0 {
            latencies.insert("failed".into(), Spread::of(&all.failed));
        }
        if let Some(receive) = &facts.generator.receive {
            latencies.insert("receive-queue".into(), Spread::of(&receive.queue));
        }
        let generator_busy = facts.generator.busiest(window_ns);
        let bottleneck = bottleneck(&facts, generator_busy);
        let mut limits: Vec<String> = bottleneck.iter().cloned().collect();
        limits.extend(self::limits(&facts, &all, generator_busy, job.window_start_ns(at_ns)));
        Self {
            request: format!("{} {}", options.method, options.url),
            seconds,
            course: job.course.clone(),
            cut_short: facts.took_ns.is_some() && job.requests.is_none_or(|requests| all.census.sent < requests),
            per_second: if window_ns == 0 { 0.0 } else { all.census.ok as f64 / seconds },
            census: all.census,
            failures: all.failures,
            evidence: all.evidence,
            latencies,
            generator_busy,
            bottleneck,
            generators: facts.generators.clone(),
            limits,
            facts,
        }
    }

    /// Requests that were due or under way in the window and have no expected answer ÷ all that were; 0–1.
    pub fn failed_share(&self) -> f64 {
        let census = &self.census;
        let lost = census.failed + census.timed_out + census.unanswered + census.unsent;
        let all = lost + census.ok;
        if all == 0 { 1.0 } else { lost as f64 / all as f64 }
    }
}

/// Why the generator set the figures, by the thresholds of the gate.
fn bottleneck(facts: &LoadFacts, busy: Option<f64>) -> Option<String> {
    if let Some(busy) = busy.filter(|busy| *busy > Gate::GENERATOR_BUSY) {
        return Some(format!(
            "The generator was the bottleneck: a thread of it was busy {:.0} % of the time. The target may carry more, and the latencies hold the generator's own queue.",
            busy * 100.0
        ));
    }
    let receive = facts.generator.receive.as_ref()?;
    let share = receive.share_of_service().filter(|share| *share > Gate::RECEIVE_QUEUE)?;
    let queue_ns = receive.queue.quantile_ns(0.5).filter(|ns| *ns > Gate::WAKE_UP_NS)?;
    Some(format!(
        "The generator was the bottleneck of the latencies: answers lay in the kernel for {:.0} µs until it read them, {:.0} % of the service time (medians of {} answers on {} connections).",
        queue_ns as f64 / 1e3,
        share * 100.0,
        grouped(receive.queue.count as f64),
        receive.connections
    ))
}

fn limits(facts: &LoadFacts, all: &StreamFacts, busy: Option<f64>, window_start: u64) -> Vec<String> {
    let mut limits = Vec::new();
    if facts.transport.as_ref().is_some_and(|way| way.engine == IO_URING) {
        limits.push(format!(
            "io_uring sends in batches of up to {}: a request may leave that many sends after its stamp, and its times count that as the target's.",
            uring::SENDS
        ));
    }
    let census = &all.census;
    let seconds_in = |at_ns: u64| at_ns.saturating_sub(window_start) as f64 / 1e9;
    if busy.is_none() {
        limits.push("The generator's CPU time could not be read: whether it was the limit is unknown.".into());
    }
    let receive = facts.generator.receive.as_ref();
    let queue = receive.and_then(|receive| Some((receive.queue.quantile_ns(0.5)?, receive.share_of_service()?)));
    match queue {
        None => limits.push(
            "No answer's arrival was noted by the kernel: how long answers waited for the generator is unknown.".into(),
        ),
        Some((ns, share))
            if share > Gate::RECEIVE_QUEUE
                && ns <= Gate::WAKE_UP_NS
                && busy.is_some_and(|busy| busy <= Gate::GENERATOR_BUSY) =>
            limits.push(format!(
            "{:.0} µs of the service time, {:.0} % of it, is the generator's own wake-up: answers lay in the kernel that long until it read them (medians).",
            ns as f64 / 1e3,
            share * 100.0
        )),
        Some(_) => {}
    }
    let median = all.service.quantile_ns(0.5).unwrap_or(0);
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
        let sum: u64 = stalls.iter().map(|stall| stall.for_ns).sum();
        limits.push(format!(
            "The generator itself stood still {} times, {:.1} ms in all and {:.1} ms at the longest, {:.3} s into the window: that is in the latencies and is not the target's.",
            stalls.len(),
            sum as f64 / 1e6,
            longest.for_ns as f64 / 1e6,
            seconds_in(longest.at_ns)
        ));
    }
    let lost = census.failed + census.timed_out + census.unanswered;
    if lost > 0 {
        limits.push(format!(
            "{} requests got no expected answer; they are in no latency of the service and not in the rate.",
            grouped(lost as f64)
        ));
    }
    if census.unsent > 0 {
        limits.push(format!(
            "{} requests that were due were never sent: every connection was waiting for an answer.",
            grouped(census.unsent as f64)
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
        limits.push(format!(
            "Connections were opened again {} times within the window.",
            grouped(facts.reconnects as f64)
        ));
    }
    if facts.unsolicited > 0 {
        limits.push(format!("{} times bytes came that no request had asked for.", facts.unsolicited));
    }
    let apart = facts.generators.iter().map(|part| part.clock_uncertainty_ns).max().unwrap_or(0);
    if apart > 0 {
        limits.push(format!(
            "The generators' clocks are known to within {:.3} ms of each other: they began that much apart at the most.",
            apart as f64 / 1e6
        ));
    }
    limits
}

/// A column's name, and its value of a distribution.
type Column = (&'static str, fn(&Spread) -> Option<f64>);

/// Columns of the table of latencies, the least needed first: what a narrow terminal loses.
const COLUMNS: [Column; 6] = [
    ("mean", |spread| spread.mean_ms),
    ("p50", |spread| spread.p50_ms),
    ("p90", |spread| spread.p90_ms),
    ("p99", |spread| spread.p99_ms),
    ("p99.9", |spread| spread.p999_ms),
    ("max", |spread| spread.max_ms),
];
/// Which of them go first.
const DISPENSABLE: [&str; 3] = ["p90", "mean", "p99.9"];

impl Summary {
    /// The summary for people, in lines of at most `width` columns.
    pub fn text(&self, width: usize) -> String {
        let mut out = String::new();
        let facts = &self.facts;
        let census = &self.census;
        let loop_ = match facts.rate {
            None => "closed loop".to_owned(),
            Some(rate) if self.course.is_empty() => format!("open loop, {}/s", grouped(rate)),
            Some(_) => {
                let leg = |leg: &Leg| match leg.from == leg.to {
                    true => format!("{}/s", grouped(leg.to)),
                    false => format!("{} to {}/s", grouped(leg.from), grouped(leg.to)),
                };
                format!("open loop, {}", self.course.iter().map(leg).collect::<Vec<_>>().join(", then "))
            }
        };
        let mut head = vec![
            self.request.clone(),
            loop_,
            match facts.connections {
                1 => "1 connection".to_owned(),
                several => format!("{} connections", grouped(f64::from(several))),
            },
            format!("{:.1} s", self.seconds),
        ];
        if let Some(way) = facts.transport.as_ref().filter(|way| way.engine != "epoll") {
            head.push(format!("{}, {} in flight on each connection", way.protocol, way.in_flight));
            head.extend(way.tls.clone());
            head.extend(way.certificate_unchecked.then(|| "certificate not checked".to_owned()));
            head.extend(way.proxy.as_ref().map(|proxy| format!("through the proxy {proxy}")));
            head.push(format!("sent by {}", way.engine));
        }
        if self.cut_short {
            head.push("CUT SHORT".to_owned());
        }
        wrapped(&mut out, width, "", "  ", &head, " · ");
        let mut outcome =
            vec![format!("{} answers as expected, {}/s", grouped(census.ok as f64), rate(self.per_second))];
        for (count, what) in [
            (census.failed, "failed"),
            (census.timed_out, "timed out"),
            (census.unanswered, "unanswered"),
            (census.unsent, "unsent"),
        ] {
            if count > 0 {
                outcome.push(format!("{} {what}", grouped(count as f64)));
            }
        }
        wrapped(&mut out, width, "  ", "    ", &outcome, " · ");
        for (reason, count) in &self.failures {
            let count = format!("    {:>9}  ", grouped(*count as f64));
            wrapped(&mut out, width, &count, "               ", &words(reason), " ");
        }
        if let Some(first) = self.evidence.first() {
            wrapped(&mut out, width, "    ", "    ", &words(&format!("First wrong answer: {first}")), " ");
        }
        self.table(&mut out, width);
        self.honesty(&mut out, width);
        for limit in &self.limits {
            wrapped(&mut out, width, "  ! ", "    ", &words(limit), " ");
        }
        out
    }

    fn table(&self, out: &mut String, width: usize) {
        let mut columns: Vec<_> = COLUMNS.to_vec();
        let each = if width < 60 { 7 } else { 9 };
        for name in DISPENSABLE {
            if 15 + (each + 1) * columns.len() > width {
                columns.retain(|(column, _)| *column != name);
            }
        }
        let _ = write!(out, "  {:<13}", "ms");
        columns.iter().for_each(|(name, _)| {
            let _ = write!(out, " {name:>each$}");
        });
        out.push('\n');
        for name in ["service", "connect", "ttfb", "receive-queue", "corrected", "send-lag", "failed"] {
            let Some(spread) = self.latencies.get(name) else { continue };
            let _ = write!(out, "  {name:<13}");
            for (_, value) in &columns {
                let _ = write!(out, " {:>each$}", value(spread).map_or("–".to_owned(), |value| format!("{value:.3}")));
            }
            out.push('\n');
        }
    }

    fn honesty(&self, out: &mut String, width: usize) {
        let generator = &self.facts.generator;
        let threads =
            if generator.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", generator.threads) };
        let mut line = vec![match self.generator_busy {
            Some(busy) if generator.threads == 1 => format!("{threads}, {:.0} % busy", busy * 100.0),
            Some(busy) => format!("{threads}, the busiest {:.0} % of the time", busy * 100.0),
            None => format!("{threads}, CPU time unknown"),
        }];
        if self.facts.rate.is_some() {
            line.push(format!("at most {} slots waiting", grouped(generator.max_backlog as f64)));
        }
        if let Some(switches) = generator.involuntary_switches.filter(|switches| *switches > 0) {
            line.push(format!("{} involuntary switches", grouped(switches as f64)));
        }
        wrapped(out, width, "  generator  ", "    ", &line, " · ");
        for (index, part) in self.generators.iter().enumerate() {
            let mut line = vec![
                format!("{} on {}", part.place, part.host),
                format!("CPUs {}", part.cpus),
                format!("{} answers", grouped(part.ok as f64)),
                format!("{} connections", part.connections),
            ];
            if part.clock_uncertainty_ns > 0 {
                line.push(format!("clock known to {:.3} ms", part.clock_uncertainty_ns as f64 / 1e6));
            }
            wrapped(out, width, &format!("    {}  ", index + 1), "       ", &line, " · ");
        }
    }
}

impl std::fmt::Display for Summary {
    /// The summary for people, each sentence on a line of its own.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text(usize::MAX))
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Writes parts with a separator between them, on as many lines as they need. A part that is wider than a line is broken.
fn wrapped(out: &mut String, width: usize, first: &str, others: &str, parts: &[String], separator: &str) {
    let mut line = first.to_owned();
    let mut is_fresh = true;
    for part in parts {
        let needed = part.chars().count() + if is_fresh { 0 } else { separator.chars().count() };
        if !is_fresh && line.chars().count() + needed > width {
            out.push_str(line.trim_end());
            out.push('\n');
            others.clone_into(&mut line);
            is_fresh = true;
        }
        if !is_fresh {
            line.push_str(separator);
        }
        is_fresh = false;
        for letter in part.chars() {
            if line.chars().count() >= width.max(others.len() + 8) {
                out.push_str(&line);
                out.push('\n');
                others.clone_into(&mut line);
            }
            line.push(letter);
        }
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// A rate: whole numbers from 100 on, below that with a decimal.
fn rate(per_second: f64) -> String {
    if per_second >= 99.95 || per_second == 0.0 { grouped(per_second) } else { format!("{per_second:.1}") }
}

/// A whole number with its thousands set apart.
pub fn grouped(value: f64) -> String {
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

    #[test]
    fn numbers_are_grouped() {
        for (value, text) in [(0.0, "0"), (999.4, "999"), (1_000.0, "1,000"), (1_234_567.0, "1,234,567")] {
            assert_eq!(grouped(value), text);
        }
        assert_eq!([rate(0.0), rate(2.34), rate(1_234.5)], ["0", "2.3", "1,234"]);
    }

    #[test]
    fn a_wake_up_is_no_bottleneck_and_a_queue_is_one() {
        let facts = |queue_ns, service_ns, cpu_ns| LoadFacts {
            generator: journal::GeneratorFacts {
                by_thread: vec![journal::ThreadFacts { cpu_ns: Some(cpu_ns), ..journal::ThreadFacts::default() }],
                receive: Some(journal::ReceiveFacts {
                    connections: 1,
                    queue: Histogram::of([queue_ns; 100]),
                    service: Histogram::of([service_ns; 100]),
                }),
                ..journal::GeneratorFacts::default()
            },
            ..LoadFacts::default()
        };
        let window_ns = 1_000_000;
        for (what, queue_ns, service_ns, cpu_ns, bottleneck, wake_up) in [
            ("an idle open loop", 15_000, 42_000, 70_000, None, true),
            ("one connection in a closed loop", 56_000, 120_000, 300_000, None, true),
            ("a target that is the limit", 60_000, 700_000, 840_000, None, false),
            ("a saturated closed loop", 485_000, 654_000, 960_000, Some("busy 96 %"), false),
            ("a queue without much CPU", 485_000, 654_000, 500_000, Some("µs until it read them, 74 %"), false),
            ("a busy thread with a short queue", 50_000, 100_000, 900_000, Some("busy 90 %"), false),
        ] {
            let facts = facts(queue_ns, service_ns, cpu_ns);
            let busy = facts.generator.busiest(window_ns);
            match (super::bottleneck(&facts, busy), bottleneck) {
                (None, None) => {}
                (Some(said), Some(words)) => assert!(said.contains(words), "{what}: {said}"),
                (said, expected) => panic!("{what}: {said:?}, expected {expected:?}"),
            }
            let limits = super::limits(&facts, &StreamFacts::default(), busy, 0);
            let says = limits.iter().any(|limit| limit.contains("the generator's own wake-up"));
            assert_eq!(says, wake_up, "{what}: {limits:?}");
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_columns_go_one_by_one() {
        let facts = LoadFacts {
            rate: Some(5_000.0),
            connections: 64,
            streams: vec![StreamFacts {
                census: Census { due: 3, ok: 2, failed: 1, ..Census::default() },
                failures: [(
                    "body: $.id is no integer, and a reason that goes on for longer than a narrow line".to_owned(),
                    1,
                )]
                .into(),
                evidence: vec!["x".repeat(200)],
                service: Histogram::of(0..20_000),
                corrected: Some(Histogram::of(0..20_000)),
                ..StreamFacts::default()
            }],
            generators: vec![
                PartFacts {
                    place: "container".into(),
                    host: "h".into(),
                    cpus: "0-3".into(),
                    ..PartFacts::default()
                };
                2
            ],
            ..LoadFacts::default()
        };
        let options = Options {
            url: "http://127.0.0.1:8080/a/long/path/that/does/not/fit/into/fifty/columns".into(),
            ..Options::default()
        };
        let job = crate::alone::job(&options).expect("a job");
        let summary = Summary::of(&options, &job, 0, facts);
        for (width, columns) in [(40, 3), (50, 4), (76, 6), (80, 6), (160, 6)] {
            let text = summary.text(width);
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            let header = text.lines().find(|line| line.trim_start().starts_with("ms ")).expect("a table");
            assert_eq!(header.split_whitespace().count() - 1, columns, "{header}");
            assert!(text.contains("service") && text.contains("corrected") && text.contains("1 failed"), "{text}");
        }
        assert_eq!(summary.failed_share(), 1.0 / 3.0);
    }
}
