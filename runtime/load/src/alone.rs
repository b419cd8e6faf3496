//! The generator without a study: one URL, one summary (`exp load URL`).

mod summary;
mod url;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use plan::{Body, BodyCheck, CpuSet, Expect, Leg, Piece, Request, Stream, Text, Workload};

pub use self::summary::{Spread, Summary, grouped};
use crate::error::LoadError;
use crate::prepare::prepare;
use crate::sys;
use crate::wire::{Arrivals, Engine, Job, Transport};

/// What to send where, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// `http://host[:port][/path]`.
    pub url: String,
    /// Method.
    pub method: String,
    /// Headers in order.
    pub headers: Vec<(String, String)>,
    /// Value of the `Host` header; `None`: as the URL has it.
    pub host: Option<String>,
    /// Where connections go; `None`: where the URL says.
    pub connect_to: Option<SocketAddr>,
    /// Bearer token.
    pub bearer: Option<String>,
    /// Body.
    pub body: Option<Body>,
    /// Statuses that are expected; empty: 200 to 299.
    pub expect: Vec<u16>,
    /// A part that each body must have.
    pub expect_body: Option<String>,
    /// Each request on a connection of its own.
    pub without_keep_alive: bool,
    /// Asks for gzip, and unpacks it before a body is checked.
    pub compressed: bool,
    /// How requests travel. TLS is set from the URL.
    pub transport: Transport,
    /// What sends plain HTTP/1.1.
    pub engine: Engine,
    /// Connections.
    pub connections: u32,
    /// Requests per second on a fixed schedule; `None`: closed loop, or as the course says.
    pub rate: Option<f64>,
    /// Ramps and steps of an open loop, one after the other; they are the window then.
    pub course: Vec<Leg>,
    /// How the schedule's slots are spread.
    pub arrivals: Arrivals,
    /// Requests after which it ends. With a rate the window is as long as they take; without one it is the longest that they may
    /// take.
    pub requests: Option<u64>,
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
    /// Seed of random arrivals.
    pub seed: u64,
    /// Have the kernel note when answers arrive on every connection, not on a sample of them only.
    pub kernel_time: bool,
    /// A host, as the URL names it, that may be loaded though it is not this machine.
    pub allow_host: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            url: String::new(),
            method: "GET".into(),
            headers: Vec::new(),
            host: None,
            connect_to: None,
            bearer: None,
            body: None,
            expect: Vec::new(),
            expect_body: None,
            without_keep_alive: false,
            compressed: false,
            transport: Transport::default(),
            engine: Engine::default(),
            connections: 64,
            rate: None,
            course: Vec::new(),
            arrivals: Arrivals::default(),
            requests: None,
            warm_up_ns: 0,
            window_ns: 10_000_000_000,
            timeout_ns: 10_000_000_000,
            threads: 1,
            cpus: CpuSet::default(),
            seed: 1,
            kernel_time: false,
            allow_host: None,
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
    Ok(Summary::of(options, &job, at_ns, facts))
}

/// Notice that the threads get before the start.
pub const START_NOTICE_NS: u64 = 50_000_000;

/// The job that these options ask for.
///
/// # Errors
/// When the URL is none, or lies beyond this machine without leave.
pub fn job(options: &Options) -> Result<Job, LoadError> {
    let place = url::split(&options.url)?;
    let target = match options.connect_to {
        Some(target) => target,
        None => url::resolve(&options.url, &place)?,
    };
    if !target.ip().is_loopback() && options.allow_host.as_deref() != Some(place.name()) {
        return Err(LoadError::job(
            format!("{} is {}, which is not this machine", place.authority, target.ip()),
            format!("send load to 127.0.0.1, or, if that host is yours to load, say so: --allow-host {}", place.name()),
        ));
    }
    let mut window_ns = options.window_ns;
    let mut requests = options.requests;
    if let (Some(rate), Some(count)) = (options.rate, requests) {
        window_ns = window_of(rate, options.warm_up_ns, count);
        requests = None;
    }
    let mut rate = options.rate;
    if !options.course.is_empty() {
        if rate.is_some() || requests.is_some() {
            return Err(LoadError::job(
                "ramps or steps were asked for together with a rate or a number of requests",
                "they say both: leave the others out",
            ));
        }
        rate = Some(Leg::mean(&options.course));
        window_ns = options.course.iter().fold(0, |sum, leg| sum.saturating_add(leg.for_ns));
    }
    let mut transport = options.transport.clone();
    if !place.is_tls {
        transport.tls = None;
    } else if transport.tls.is_none() {
        transport.tls = Some(plan::Tls { ca: None, name: None, unchecked: false });
    }
    Ok(Job {
        target,
        host: options.host.clone().unwrap_or_else(|| place.authority.to_owned()),
        workload: Workload { name: "alone".into(), streams: vec![stream(options, place.path)] },
        tokens: BTreeMap::new(),
        variables: BTreeMap::new(),
        connections: options.connections,
        keep_alive: !options.without_keep_alive,
        rate,
        course: options.course.clone(),
        arrivals: options.arrivals,
        warm_up_ns: options.warm_up_ns,
        window_ns,
        timeout_ns: options.timeout_ns,
        grace_ns: options.timeout_ns,
        threads: options.threads,
        cpus: options.cpus.clone(),
        seed: options.seed,
        kernel_time: options.kernel_time,
        part: None,
        requests,
        transport,
        engine: options.engine,
    })
}

fn stream(options: &Options, path: &str) -> Stream {
    let literal = |(name, value): &(String, String)| (name.clone(), Text::literal(value.clone()));
    let has_type = options.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let is_json = match &options.body {
        Some(Body::Text(text)) => {
            matches!(text.0.first(), Some(Piece::Literal(text)) if looks_like_json(text.as_bytes()))
        }
        Some(Body::File(file)) => looks_like_json(&file.content),
        None => false,
    };
    let mut headers: Vec<_> = options.headers.iter().map(literal).collect();
    if let Some(token) = &options.bearer {
        headers.push(("Authorization".to_owned(), Text::literal(format!("Bearer {token}"))));
    }
    Stream {
        name: "requests".into(),
        share: 1.0,
        rate: None,
        request: Request {
            method: options.method.clone(),
            path: Text::literal(path),
            headers,
            bearer: None,
            body: options.body.clone(),
            content_type: (is_json && !has_type).then(|| "application/json".into()),
            accept_gzip: options.compressed,
        },
        parameters: Vec::new(),
        expect: Expect {
            status: options.expect.clone(),
            body: options.expect_body.iter().map(|part| BodyCheck::Contains(Text::literal(part.clone()))).collect(),
            ..Expect::default()
        },
        creates_row_in: None,
    }
}

/// Whether a body begins as JSON does.
fn looks_like_json(body: &[u8]) -> bool {
    body.trim_ascii_start().first().is_some_and(|first| matches!(first, b'{' | b'['))
}

/// The window, ns, that holds exactly `count` slots of this rate after a warm-up.
fn window_of(rate: f64, warm_up_ns: u64, count: u64) -> u64 {
    // As the schedule counts: a rate in units of 10⁻⁶ per second, ⌊rate × span⌋ slots in a span.
    const SCALE: u128 = 1_000_000_000_000_000;
    let micro_rate = ((rate * 1e6).round() as u128).max(1);
    let before = (u128::from(warm_up_ns) * micro_rate).div_ceil(SCALE);
    let span = ((before + u128::from(count)) * SCALE).div_ceil(micro_rate);
    u64::try_from(span).unwrap_or(u64::MAX).saturating_sub(warm_up_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noop;
    use crate::peer::{Peer, Reply, Then};

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

    fn summary(options: &Options) -> Summary {
        run(options, &AtomicBool::new(false)).expect("a summary")
    }

    #[test]
    fn one_url_gives_a_summary_with_the_latencies_side_by_side() {
        let server = noop::Server::start(&noop::Options::default()).expect("a server");
        let open = summary(&Options { rate: Some(1_000.0), ..options(server.address(), "") });
        assert_eq!((open.census.ok, open.per_second), (200, 1_000.0));
        let text = open.text(80);
        for part in
            ["open loop, 1,000/s", "200 answers as expected, 1,000/s", "service", "ttfb", "corrected", "send-lag"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        // 200 values: ten lie beyond the 95th percentile, so p90 is shown and p99 is not.
        let service = open.latencies["service"];
        assert!(service.p90_ms.is_some() && service.p99_ms.is_none() && service.max_ms.is_some());
        let json = serde_json::to_string(&open).expect("JSON");
        let back: Summary = serde_json::from_str(&json).expect("a summary");
        assert_eq!(back, open);

        let closed = summary(&options(server.address(), "/x?y=1"));
        assert!(!closed.latencies.contains_key("corrected"));
        assert!(closed.census.ok > 200);
    }

    #[test]
    fn what_limits_the_figures_is_said() {
        let peer =
            Peer::start(0, |asked| Reply::json(if asked.number % 2 == 0 { 200 } else { 503 }, "{}")).expect("a peer");
        let text = summary(&options(peer.address(), "/")).text(200);
        for part in
            ["status 503", "got no expected answer", "First wrong answer: status is 503, expected 200 to 299", "failed"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_number_of_requests_is_exact_with_and_without_a_rate() {
        let server = noop::Server::start(&noop::Options::default()).expect("a server");
        for (rate, warm_up_ns, requests) in [
            (None, 0, 1),
            (None, 0, 1_234),
            (Some(2_000.0), 0, 321),
            (Some(333.3), 50_000_001, 77),
            (Some(1_999.999_999), 49_999_999, 100),
        ] {
            let asked = Options {
                rate,
                warm_up_ns,
                requests: Some(requests),
                window_ns: 20_000_000_000,
                ..options(server.address(), "/")
            };
            let got = summary(&asked);
            let counted = if rate.is_some() { got.census.due } else { got.census.sent };
            assert_eq!((counted, got.census.ok), (requests, requests), "{rate:?} {warm_up_ns}");
            assert!(got.seconds < 20.0, "{}", got.seconds);
        }
    }

    #[test]
    fn what_is_asked_for_reaches_the_server() {
        let peer = Peer::start(0, |asked| {
            let head = ["Authorization: Bearer secret", "Host: shop.test", "Connection: close"]
                .iter()
                .filter(|header| asked.head.contains(**header));
            let body = String::from_utf8_lossy(&asked.body).into_owned();
            let body = format!("{} {}|{body}|{}|{}", asked.method, asked.path, head.count(), asked.on_connection);
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            Reply::new(head + &body).then(Then::Close)
        });
        let peer = peer.expect("a peer");
        let asked = Options {
            method: "POST".into(),
            body: Some(Body::Text(Text::literal("{\"a\":1}"))),
            bearer: Some("secret".into()),
            host: Some("shop.test".into()),
            expect: vec![200],
            expect_body: Some("POST /a?b|{\"a\":1}|3|0".into()),
            without_keep_alive: true,
            connect_to: Some(peer.address()),
            url: "http://127.0.0.1:1/a?b".into(),
            ..options(peer.address(), "")
        };
        let got = summary(&asked);
        assert!(got.census.ok > 0 && got.census.failed == 0, "{:?}", got.failures);
        // Each request had a connection of its own, whose opening is in its time.
        let connect = got.latencies.get("connect").expect("what connecting took");
        assert_eq!(connect.count, got.census.ok);
        assert!(got.facts.reconnects == 0 && got.text(100).contains("connect  "), "{}", got.text(100));
    }

    #[test]
    fn ramps_and_steps_are_sent_exactly() {
        let server = noop::Server::start(&noop::Options::default()).expect("a server");
        let leg = |from, to, for_ns| Leg { from, to, for_ns };
        let course =
            vec![leg(0.0, 1_000.0, 200_000_000), leg(1_000.0, 1_000.0, 100_000_000), leg(300.0, 300.0, 100_000_000)];
        let asked = Options { course, ..options(server.address(), "/") };
        let got = summary(&asked);
        assert_eq!((got.census.due, got.census.ok, got.seconds), (230, 230, 0.4));
        let text = got.text(200);
        assert!(text.contains("open loop, 0 to 1,000/s, then 1,000/s, then 300/s"), "{text}");
        let error = job(&Options { rate: Some(5.0), ..asked }).expect_err("two rates").to_string();
        assert!(error.contains("together with a rate"), "{error}");
    }

    #[test]
    fn gzip_is_asked_for_and_unpacked() {
        let peer = Peer::start(0, |asked| {
            let wanted = asked.head.contains("Accept-Encoding: gzip");
            Reply::json(if wanted { 200 } else { 406 }, "{}")
        });
        let peer = peer.expect("a peer");
        for compressed in [true, false] {
            let got = summary(&Options { compressed, ..options(peer.address(), "/") });
            assert_eq!(got.census.failed == 0, compressed, "{:?}", got.failures);
        }
    }

    #[test]
    fn another_host_is_loaded_only_where_it_is_named() {
        let away = Options { url: "http://192.0.2.1:80/".into(), ..Options::default() };
        let error = job(&away).expect_err("not this machine").to_string();
        assert!(error.contains("192.0.2.1") && error.contains("--allow-host 192.0.2.1"), "{error}");
        assert!(job(&Options { allow_host: Some("192.0.2.2".into()), ..away.clone() }).is_err());
        assert!(job(&Options { allow_host: Some("192.0.2.1".into()), ..away }).is_ok());
    }
}
