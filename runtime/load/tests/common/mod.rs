//! What the generator's tests share: jobs against a peer, and the books that every account must keep.
#![expect(dead_code, reason = "each test binary uses the parts that it needs")]

pub mod child;
pub mod servers;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use journal::facts::{Histogram, LoadFacts, StreamFacts};
use load::{Arrivals, Engine, Job, LoadError, sys};
use plan::{BodyCheck, CpuSet, Expect, JsonTest, Parameter, ParameterKind, Piece, Request, Stream, Text, Workload};

pub const MS: u64 = 1_000_000;

/// A text in which `$name` alone stands for a variable.
pub fn text(pieces: &[&str]) -> Text {
    Text(
        pieces
            .iter()
            .map(|piece| match piece.strip_prefix('$') {
                Some(name) => Piece::Variable(name.into()),
                None => Piece::Literal((*piece).into()),
            })
            .collect(),
    )
}

pub fn request(method: &str, path: Text) -> Request {
    Request {
        method: method.into(),
        path,
        headers: Vec::new(),
        bearer: None,
        body: None,
        content_type: None,
        accept_gzip: false,
    }
}

pub fn status(status: u16) -> Expect {
    Expect { status: vec![status], ..Expect::default() }
}

pub fn json_equals(status: u16, path: &str, value: Text) -> Expect {
    Expect {
        status: vec![status],
        headers: Vec::new(),
        body: vec![BodyCheck::Json { path: path.into(), test: JsonTest::Equals(value) }],
    }
}

pub fn stream(name: &str, share: f64, request: Request, expect: Expect) -> Stream {
    Stream { name: name.into(), share, rate: None, request, parameters: Vec::new(), expect, creates_row_in: None }
}

/// Reads of one row by id, each answer's id compared.
pub fn reads(share: f64) -> Stream {
    Stream {
        parameters: vec![Parameter { name: "id".into(), kind: ParameterKind::Uniform { from: 1, to: 1_000_000 } }],
        ..stream("read", share, request("GET", text(&["/events/", "$id"])), json_equals(200, "$.id", text(&["$id"])))
    }
}

/// One plain GET that expects 200.
pub fn plain() -> Vec<Stream> {
    vec![stream("get", 1.0, request("GET", text(&["/"])), status(200))]
}

pub fn job(target: SocketAddr, streams: Vec<Stream>) -> Job {
    Job {
        target,
        host: target.to_string(),
        workload: Workload { name: "test".into(), streams },
        tokens: BTreeMap::new(),
        variables: BTreeMap::new(),
        connections: 16,
        keep_alive: true,
        rate: None,
        course: Vec::new(),
        arrivals: Arrivals::Constant,
        warm_up_ns: 50 * MS,
        window_ns: 300 * MS,
        timeout_ns: 2_000 * MS,
        grace_ns: 2_500 * MS,
        threads: 1,
        cpus: CpuSet::default(),
        kernel_time: false,
        seed: 7,
        part: None,
        requests: None,
        transport: load::Transport::default(),
        engine: Engine::default(),
    }
}

/// Both loops on epoll and a closed one on io_uring, each as its rate and its engine.
pub fn ways(rate: f64) -> [(Option<f64>, Engine); 3] {
    [(None, Engine::Epoll), (Some(rate), Engine::Epoll), (None, Engine::Uring)]
}

/// Runs a job from 100 ms from now on and checks what holds for every account.
pub fn run(job: &Job) -> Result<LoadFacts, LoadError> {
    let prepared = load::prepare(job)?;
    let facts = prepared.run(sys::now_ns() + 100 * MS, &AtomicBool::new(false))?;
    balanced(job, &facts);
    Ok(facts)
}

/// Runs a job again, a bounded number of times, until its warm-up (where it has one) and its window saw at least this many
/// requests: a window of some milliseconds may pass on a busy machine before the generator has its turn.
pub fn run_seeing(at_least: u64, job: &Job) -> LoadFacts {
    let mut last = None;
    for _ in 0..10 {
        let facts = run(job).expect("a run");
        let seen = |of: fn(&StreamFacts) -> u64| facts.streams.iter().map(of).sum::<u64>();
        let window = seen(|s| s.census.ok + s.census.failed + s.census.timed_out);
        let all = seen(|s| s.acknowledged + s.unknown + s.warm_up_failed + s.census.failed);
        if window >= at_least && (job.warm_up_ns == 0 || all > window) {
            return facts;
        }
        eprintln!("only {window} requests in the window, {all} in all; run again");
        last = Some(facts);
    }
    panic!("ten runs saw too few requests; the last: {last:?}")
}

/// What holds for every account whatever the target did.
pub fn balanced(job: &Job, facts: &LoadFacts) {
    let open = job.rate.is_some();
    assert_eq!(facts.connections, job.connections);
    assert_eq!(facts.rate, job.rate);
    assert_eq!(facts.streams.len(), job.workload.streams.len());
    for stream in &facts.streams {
        let census = stream.census;
        assert!(census.is_conserved(open), "{} {census:?}", stream.name);
        assert_eq!(stream.failures.values().sum::<u64>(), census.failed, "each failure has its reason");
        for histogram in [&stream.service, &stream.ttfb] {
            assert_eq!(histogram.count, census.ok, "only expected answers have a latency");
            assert!(histogram.max_ns <= job.timeout_ns);
        }
        assert!(stream.ttfb.sum_ns <= stream.service.sum_ns);
        assert_eq!(stream.corrected.is_some(), open);
        assert_eq!(stream.send_lag.is_some(), open);
        assert_eq!(stream.progress.len() as u64, job.window_ns.div_ceil(facts.slice_ns));
        let progressed: u64 = stream.progress.iter().sum();
        assert!(
            if open { progressed <= stream.acknowledged } else { progressed == census.ok },
            "{:?}",
            stream.progress
        );
        if let (Some(corrected), Some(lag)) = (&stream.corrected, &stream.send_lag) {
            assert_eq!(corrected.count, census.ok + census.timed_out + census.unanswered + census.unsent);
            assert_eq!(lag.count, census.sent);
            let own = stream.own_lag.as_ref().expect("an open loop has a lag of its own");
            assert_eq!(own.count, census.sent);
            assert!(own.sum_ns <= lag.sum_ns && own.max_ns <= lag.max_ns);
            assert_eq!(census.due, census.sent + census.unsent);
            assert!(corrected.sum_ns >= stream.service.sum_ns);
        }
        for histogram in
            [&stream.service, &stream.ttfb, &stream.failed].into_iter().chain(&stream.corrected).chain(&stream.send_lag)
        {
            whole(histogram);
        }
        if census.failed > 0
            && stream.failures.keys().any(|reason| reason.starts_with("body") || reason.starts_with("status"))
        {
            assert!(!stream.evidence.is_empty(), "wrong answers leave evidence");
        }
    }
    let generator = &facts.generator;
    assert_eq!(generator.threads, job.threads.min(job.connections));
    assert!(generator.cpu_ns.is_some_and(|cpu| cpu > 0), "{generator:?}");
    assert!(generator.user_ns.is_some() && generator.involuntary_switches.is_some());
    assert!(facts.connections_used <= facts.connections);
}

fn whole(histogram: &Histogram) {
    assert_eq!(histogram.buckets.iter().map(|(_, count)| count).sum::<u64>(), histogram.count);
    assert!(histogram.buckets.windows(2).all(|pair| pair[0].0 < pair[1].0));
}

/// The only stream's account.
pub fn only(facts: &LoadFacts) -> &StreamFacts {
    assert_eq!(facts.streams.len(), 1);
    &facts.streams[0]
}

/// Measures again, a bounded number of times, where another program on this machine can spoil a measurement: the last
/// attempt's complaint is the test's.
pub fn within_attempts(attempts: u32, mut measure: impl FnMut() -> Result<(), String>) {
    for attempt in 1..=attempts {
        match measure() {
            Ok(()) => return,
            Err(complaint) if attempt == attempts => panic!("{complaint} (attempt {attempt} of {attempts})"),
            Err(complaint) => eprintln!("{complaint} (attempt {attempt} of {attempts}; measured again)"),
        }
    }
}
