//! Closed and open loops against peers whose truth is known: counts, mix, rates, latencies.

mod common;

use common::{MS, job, json_equals, only, plain, reads, request, run, status, stream, text, ways, within_attempts};
use load::noop::{Options, Server};
use load::peer::{Peer, Reply};
use load::{Arrivals, Engine};
use plan::{Body, Parameter, ParameterKind, Stream};

#[test]
fn an_open_loop_sends_exactly_its_schedule() {
    let server = Server::start(&Options::default()).expect("a server");
    for (rate, threads, warm_up_ns, window_ns, due) in [
        (5_000.0, 1, 100 * MS, 400 * MS, 2_000),
        (5_000.0, 2, 100 * MS, 400 * MS, 2_000),
        (333.0, 3, 0, 1_000 * MS, 333),
        (10.0, 1, 0, 300 * MS, 3),
    ] {
        let facts =
            run(&load::Job { rate: Some(rate), threads, warm_up_ns, window_ns, ..job(server.address(), plain()) })
                .expect("a run");
        let stream = only(&facts);
        assert_eq!(stream.census.due, due, "{rate}/s");
        assert_eq!(stream.census.ok, due, "{rate}/s {:?}", stream.failures);
        assert_eq!(stream.acknowledged, (rate * (warm_up_ns + window_ns) as f64 / 1e9) as u64);
    }
}

#[test]
fn random_arrivals_have_the_rate_and_keep_the_books() {
    let server = Server::start(&Options::default()).expect("a server");
    let facts = run(&load::Job {
        rate: Some(4_000.0),
        arrivals: Arrivals::Poisson,
        threads: 2,
        window_ns: 500 * MS,
        ..job(server.address(), plain())
    })
    .expect("a run");
    // 2,000 expected, standard deviation 45.
    assert!((1_800..2_200).contains(&only(&facts).census.due), "{:?}", only(&facts).census);
}

#[test]
fn the_mix_is_exact_in_both_loops() {
    let server = Server::start(&Options::default()).expect("a server");
    let streams = |shares: [f64; 3]| {
        ["a", "b", "c"]
            .into_iter()
            .zip(shares)
            .map(|(name, share)| stream(name, share, request("GET", text(&["/", name])), status(200)))
            .collect::<Vec<Stream>>()
    };
    for (rate, engine) in ways(4_000.0) {
        for shares in [[0.5, 0.5, 0.0], [0.6, 0.3, 0.1]] {
            let facts =
                run(&load::Job { rate, engine, threads: 2, ..job(server.address(), streams(shares)) }).expect("a run");
            let all: u64 = facts.streams.iter().map(|stream| stream.census.sent).sum();
            assert!(all > 100);
            for (stream, share) in facts.streams.iter().zip(shares) {
                let off = stream.census.sent as f64 - all as f64 * share;
                assert!(off.abs() <= 20.0, "{} is off by {off} of {all} at {rate:?}", stream.name);
            }
        }
    }
}

#[test]
fn every_answer_is_compared_with_its_own_request() {
    let peer = Peer::start(0, |asked| {
        let id = asked.path.rsplit('/').next().unwrap_or_default();
        // Every hundredth answer is somebody else's.
        let wrong = asked.number % 100 == 99;
        Reply::json(200, &format!("{{\"id\":{}}}", if wrong { "0" } else { id }))
    })
    .expect("a peer");
    for engine in [Engine::Epoll, Engine::Uring] {
        let facts = run(&load::Job { engine, ..job(peer.address(), vec![reads(1.0)]) }).expect("a run");
        let stream = only(&facts);
        assert!(stream.census.ok > 500, "{:?}", stream.census);
        let share = stream.census.failed as f64 / (stream.census.ok + stream.census.failed) as f64;
        assert!((0.008..0.012).contains(&share), "{share}");
        assert_eq!(stream.failures.keys().collect::<Vec<_>>(), ["body: $.id is not the expected value"]);
        assert!(stream.evidence[0].starts_with("body: $.id is 0, expected "), "{:?}", stream.evidence);
        assert_eq!(stream.failed.count, stream.census.failed);
    }
}

/// What was written comes back: parameters in path, header and body, and a Content-Length that fits each body.
#[test]
fn varying_requests_arrive_as_they_were_meant() {
    let peer = Peer::start(0, |asked| {
        let id = asked.path.rsplit('/').next().unwrap_or_default();
        let header = asked.head.lines().find_map(|line| line.strip_prefix("X-Id: ")).unwrap_or_default();
        let body = String::from_utf8_lossy(&asked.body).into_owned();
        Reply::json(201, &format!("{{\"path\":{id:?},\"header\":{header:?},\"body\":{body}}}"))
    })
    .expect("a peer");
    let with = |path: &str, value: &str| plan::BodyCheck::Json {
        path: path.into(),
        test: plan::JsonTest::Equals(text(&[&format!("${value}")])),
    };
    let stream = Stream {
        parameters: vec![
            Parameter { name: "n".into(), kind: ParameterKind::Sequence { from: 1, to: 100_000 } },
            Parameter {
                name: "word".into(),
                kind: ParameterKind::Choice(vec!["a".into(), "ünï".into(), "x".repeat(3_000)]),
            },
            Parameter { name: "uuid".into(), kind: ParameterKind::Uuid },
        ],
        request: plan::Request {
            method: "POST".into(),
            path: text(&["/e/", "$uuid"]),
            headers: vec![("X-Id".into(), text(&["$uuid"]))],
            bearer: None,
            body: Some(Body::Text(text(&["{\"n\":", "$n", ",\"word\":\"", "$word", "\"}"]))),
            content_type: Some("application/json".into()),
            accept_gzip: false,
        },
        expect: plan::Expect {
            status: vec![201],
            headers: vec![plan::HeaderCheck { name: "content-type".into(), contains: Some("json".into()) }],
            body: vec![
                with("$.path", "uuid"),
                with("$.header", "uuid"),
                with("$.body.n", "n"),
                with("$.body.word", "word"),
            ],
        },
        ..reads(1.0)
    };
    for engine in [Engine::Epoll, Engine::Uring] {
        let job = load::Job { engine, threads: 2, ..job(peer.address(), vec![stream.clone()]) };
        let facts = run(&job).expect("a run");
        let stream = only(&facts);
        assert!(stream.census.ok > 200, "{:?} {:?}", stream.failures, stream.evidence);
        assert_eq!(stream.census.failed, 0, "{:?} {:?}", stream.failures, stream.evidence);
    }
}

#[test]
fn a_service_of_known_capacity_is_measured_at_its_capacity() {
    let peer = Peer::of_known_capacity().expect("a peer");
    for engine in [Engine::Epoll, Engine::Uring] {
        within_attempts(5, || at_capacity(peer.address(), engine));
    }
}

fn at_capacity(target: std::net::SocketAddr, engine: Engine) -> Result<(), String> {
    let job = load::Job {
        engine,
        connections: 32,
        window_ns: 1_000 * MS,
        warm_up_ns: 200 * MS,
        ..job(target, vec![stream("read", 1.0, request("GET", text(&["/1"])), json_equals(200, "$.id", text(&["1"])))])
    };
    let facts = run(&job).map_err(|error| error.to_string())?;
    let stream = only(&facts);
    let rate = stream.census.ok as f64;
    if !(1_960.0..=2_040.0).contains(&rate) {
        return Err(format!("measured {rate}/s where 2,000/s is the truth"));
    }
    // Little's law: what is in flight on average = rate × time in flight.
    let in_flight = rate * stream.service.mean_ns().unwrap_or_default() / 1e9;
    if !(31.36..=32.64).contains(&in_flight) {
        return Err(format!("rate × mean service = {in_flight}, with 32 connections"));
    }
    assert_eq!(facts.connections_used, 32);
    assert!(
        facts.generator.cpu_ns.is_some_and(|cpu| cpu < 900 * MS),
        "a waiting generator sleeps: {:?}",
        facts.generator
    );
    Ok(())
}

#[test]
fn an_open_loop_above_capacity_shows_the_queue() {
    let peer = Peer::of_known_capacity().expect("a peer");
    let facts = run(&load::Job {
        connections: 8,
        rate: Some(4_000.0),
        warm_up_ns: 0,
        window_ns: 500 * MS,
        grace_ns: 200 * MS,
        ..job(peer.address(), plain())
    })
    .expect("a run");
    let stream = only(&facts);
    // 2,000 due; at most 2,000/s × 0.7 s = 1,400 can be answered; the rest is unsent, and says how old it is.
    assert_eq!(stream.census.due, 2_000);
    assert!(stream.census.unsent >= 580, "{:?}", stream.census);
    assert!(facts.generator.max_backlog >= 900, "{}", facts.generator.max_backlog);
    let corrected = stream.corrected.as_ref().expect("an open loop corrects");
    assert!(corrected.quantile_ns(0.99).is_some_and(|p99| p99 > 300 * MS));
    assert!(stream.service.quantile_ns(0.5).is_some_and(|p50| p50 < 60 * MS), "service time does not queue here");
    // The sends are late because connections were taken, and the generator's own part of it is small.
    let (lag, own) = (stream.send_lag.as_ref().expect("a lag"), stream.own_lag.as_ref().expect("a lag"));
    assert!(lag.quantile_ns(0.5).is_some_and(|p50| p50 > 50 * MS));
    assert!(own.quantile_ns(0.5).is_some_and(|p50| p50 < 5 * MS), "{:?}", own.quantile_ns(0.5));
}
