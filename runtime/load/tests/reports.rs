//! Reports about other generators that measured wrongly, one test each: what they got wrong must come out right here. Times are bounded
//! loosely, by what the fault would have shown; counts are exact.

mod common;

use std::sync::atomic::AtomicBool;

use common::{MS, job, only, plain, run, run_seeing, within_attempts};
use journal::facts::LoadFacts;
use load::alone::{self, Options, Summary};
use load::peer::{Peer, Reply, Then};
use load::sys;

const BODY: &str = r#"{"id":1}"#;

fn good() -> Reply {
    Reply::json(200, BODY)
}

/// What `exp load` says of a peer.
fn summary(peer: &Peer, change: impl Fn(&mut Options)) -> Summary {
    let mut options = Options {
        url: format!("http://{}/", peer.address()),
        connections: 16,
        warm_up_ns: 50 * MS,
        window_ns: 300 * MS,
        timeout_ns: 1_000 * MS,
        ..Options::default()
    };
    change(&mut options);
    alone::run(&options, &AtomicBool::new(false)).expect("a summary")
}

/// Runs a job that starts in 100 ms, and gives its start.
fn run_from(job: &load::Job, prepare: impl FnOnce(u64)) -> (LoadFacts, u64) {
    let prepared = load::prepare(job).expect("connected");
    let start = sys::now_ns() + 100 * MS;
    prepare(start);
    let facts = prepared.run(start, &AtomicBool::new(false)).expect("facts");
    common::balanced(job, &facts);
    (facts, start)
}

/// The longest time that the generator was away itself, ns.
fn away(facts: &LoadFacts) -> u64 {
    facts.generator.stalls.iter().map(|stall| stall.for_ns).max().unwrap_or(0)
}

/// wg/wrk#99: the target stood still for half of the time, and p50 = p75 = that whole time.
#[test]
fn quantiles_over_a_freeze_are_those_of_the_requests() {
    within_attempts(8, || {
        let freeze = 400 * MS;
        let measure = |rate| {
            let peer = Peer::start(0, |_| good()).expect("a peer");
            let job = load::Job {
                rate,
                connections: 64,
                warm_up_ns: 100 * MS,
                window_ns: 800 * MS,
                ..job(peer.address(), plain())
            };
            run_from(&job, |start| peer.freeze(start + 300 * MS, freeze)).0
        };
        // Closed loop: as many requests as there are connections met the freeze, thousands did not.
        let closed = measure(None);
        let service = &only(&closed).service;
        let quantile = |q| service.quantile_ns(q).unwrap_or(u64::MAX);
        if quantile(0.5) > 50 * MS || quantile(0.75) > 50 * MS || service.max_ns < freeze - 5 * MS {
            return Err(format!(
                "p50 {} p75 {} max {} ns, away {}",
                quantile(0.5),
                quantile(0.75),
                service.max_ns,
                away(&closed)
            ));
        }
        // Open loop: half of the slots were due in it, and waited 0 to 400 ms each: p75 is 200 ms.
        let open = measure(Some(2_000.0));
        let p75 = only(&open).corrected.as_ref().and_then(|corrected| corrected.quantile_ns(0.75)).unwrap_or(0);
        let slack = 30 * MS + away(&open);
        if p75.abs_diff(200 * MS) > slack {
            return Err(format!("corrected p75 is {p75} ns, by arithmetic 200 ms, away {}", away(&open)));
        }
        Ok(())
    });
}

/// wg/wrk#438, #485: one connection, 5,043 requests per second, and a mean of 6 ms: a "correction" of a closed loop invents samples.
#[test]
fn a_closed_loop_invents_no_samples() {
    let peer = Peer::start(0, |_| good().after(MS)).expect("a peer");
    let job = load::Job { connections: 2, window_ns: 500 * MS, ..job(peer.address(), plain()) };
    let (facts, _) = run_from(&job, |start| peer.freeze(start + 200 * MS, 100 * MS));
    let stream = only(&facts);
    assert!(stream.corrected.is_none(), "there is no schedule to correct by");
    assert_eq!(stream.service.count, stream.census.ok, "one value for each answer");
    // Two connections can't have waited longer than there was time: the window, and what of the first answers lay before it.
    let most = 2 * u128::from(job.window_ns + job.warm_up_ns);
    assert!(stream.service.sum_ns <= most, "{} ns of {most}", stream.service.sum_ns);
    assert!(
        stream.service.max_ns >= 95 * MS,
        "the freeze is one long answer on each connection: {:?}",
        stream.service.max_ns
    );
}

/// wg/wrk#114: rate × mean latency is not the number of connections.
#[test]
fn rate_times_mean_latency_is_the_number_of_connections() {
    for connections in [1, 4] {
        let peer = Peer::start(0, |_| good().after(2 * MS)).expect("a peer");
        within_attempts(8, || {
            let job =
                load::Job { connections, warm_up_ns: 100 * MS, window_ns: 500 * MS, ..job(peer.address(), plain()) };
            let facts = run(&job).map_err(|error| error.to_string())?;
            let service = &only(&facts).service;
            let in_flight = service.sum_ns as f64 / job.window_ns as f64;
            // What was carried in and out, and the time between an answer and the next request.
            let (low, high) = (0.9 * f64::from(connections), 1.1 * f64::from(connections));
            if (low..=high).contains(&in_flight) { Ok(()) } else { Err(format!("{in_flight} of {connections}")) }
        });
    }
}

/// wg/wrk#327: 128 time-outs, and "35951 requests in 307445734491.24m".
#[test]
fn nothing_but_timeouts_is_told_in_sane_figures() {
    let peer = Peer::start(0, |_| Reply::never()).expect("a peer");
    for rate in [None, Some(200.0)] {
        let summary = summary(&peer, |options| {
            options.rate = rate;
            options.timeout_ns = 40 * MS;
        });
        assert_eq!((summary.census.ok, summary.per_second), (0, 0.0));
        assert!(summary.census.timed_out > 0, "{:?}", summary.census);
        assert!((0.299..0.301).contains(&summary.seconds), "{}", summary.seconds);
        let service = summary.latencies["service"];
        assert_eq!((service.count, service.mean_ms, service.p50_ms, service.max_ms), (0, None, None, None));
        if let Some(corrected) = summary.latencies.get("corrected") {
            // What timed out is at least as old as the time-out, and no older than the run.
            assert!(corrected.max_ms.is_some_and(|max| (40.0..3_000.0).contains(&max)), "{corrected:?}");
        }
        let text = summary.to_string();
        assert!(text.contains("0 answers as expected, 0/s") && text.contains("timed out"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}

/// wg/wrk#509, #357: of 1,000 connections few were ever served, and nothing says so.
#[test]
fn connections_that_were_never_served_are_counted() {
    // The first 16 requests come on 16 connections; half of them are never answered.
    let peer = Peer::start(0, |asked| if asked.number < 8 { Reply::never() } else { good() }).expect("a peer");
    let job = load::Job { timeout_ns: 5_000 * MS, grace_ns: 50 * MS, ..job(peer.address(), plain()) };
    let facts = run(&job).expect("a run");
    assert_eq!((facts.connections, facts.connections_used), (16, 8));
    let carried_out = only(&facts).census.carried_out;
    assert!((8..=16).contains(&carried_out), "the eight still wait when the window ends: {carried_out}");
    // Time-outs on half of the connections, so that the summary ends as the run does.
    let peer = Peer::start(0, |asked| if asked.number % 2 == 0 { Reply::never() } else { good() }).expect("a peer");
    let summary = summary(&peer, |options| {
        options.connections = 1;
        options.timeout_ns = 400 * MS;
    });
    assert!(
        summary.limits.iter().any(|limit| limit == "1 of 1 connections never got an answer."),
        "{:?}",
        summary.limits
    );
}

/// giltene/wrk2#78: timers of a millisecond send up to a millisecond late, and call it the target's latency.
#[test]
fn sends_wait_for_no_timers_tick() {
    let peer = Peer::start(0, |_| good()).expect("a peer");
    within_attempts(10, || {
        let facts = run(&load::Job { rate: Some(1_700.0), window_ns: 600 * MS, ..job(peer.address(), plain()) })
            .map_err(|error| error.to_string())?;
        let p50 = only(&facts).own_lag.as_ref().and_then(|lag| lag.quantile_ns(0.5)).unwrap_or(u64::MAX);
        // Slots that lie evenly within a millisecond would wait 500 µs for its end.
        if p50 <= 100_000 { Ok(()) } else { Err(format!("half of the sends were later than {p50} ns")) }
    });
}

/// giltene/wrk2#138, #117, #90: 663 million requests per second, or NaN, for runs that are short.
#[test]
fn a_short_run_has_the_figures_of_its_length() {
    let peer = Peer::start(0, |_| good()).expect("a peer");
    for (window_ms, due) in [(1, 1), (20, 20), (150, 150)] {
        let summary = summary(&peer, |options| {
            options.rate = Some(1_000.0);
            options.warm_up_ns = 0;
            options.window_ns = window_ms * MS;
        });
        assert_eq!((summary.census.due, summary.census.ok), (due, due));
        assert_eq!(summary.per_second, 1_000.0);
        let text = summary.to_string();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        for spread in summary.latencies.values() {
            for value in
                [spread.mean_ms, spread.p50_ms, spread.p90_ms, spread.p99_ms, spread.max_ms].into_iter().flatten()
            {
                assert!(value.is_finite() && value < 10_000.0, "{spread:?}");
            }
        }
    }
}

/// giltene/wrk2#89, #53: every connection fires at the start, at whatever rate; more connections are larger bursts.
#[test]
fn the_start_is_no_burst_and_no_request_comes_before_its_slot() {
    let peer = Peer::start(0, |_| good()).expect("a peer");
    let (connections, rate) = (400, 400.0);
    let job =
        load::Job { connections, rate: Some(rate), warm_up_ns: 0, window_ns: 500 * MS, ..job(peer.address(), plain()) };
    let (facts, start) = run_from(&job, |_| ());
    let arrivals = peer.arrivals();
    assert_eq!((only(&facts).census.ok, arrivals.len()), (200, 200));
    for (slot, at) in (0u64..).zip(&arrivals) {
        let due = start + slot * 2_500_000;
        assert!(*at >= due, "request {slot} came {} ns before its slot", due - at);
    }
    // The earliest that the tenth request may come is 22.5 ms after the start: at the start there is one.
    assert!(arrivals.iter().filter(|at| **at < start + 2 * MS).count() <= 1);
}

/// hatoo/oha#387, #577, #645: what hangs at the deadline vanishes, slots that were not sent are dropped, failures count as requests.
#[test]
fn what_hangs_what_fails_and_what_was_never_sent_is_in_the_account() {
    // Of ten requests one hangs and one fails at once.
    let peer = Peer::start(0, |asked| match asked.number % 10 {
        3 => Reply::never(),
        7 => Reply::json(500, "no").then(Then::Keep),
        _ => good().after(MS),
    })
    .expect("a peer");
    let job = load::Job {
        rate: Some(500.0),
        connections: 40,
        warm_up_ns: 0,
        window_ns: 400 * MS,
        timeout_ns: 5_000 * MS,
        grace_ns: 300 * MS,
        ..job(peer.address(), plain())
    };
    let (facts, _) = run_from(&job, |_| ());
    let census = only(&facts).census;
    assert_eq!((census.due, census.sent, census.unsent), (200, 200, 0));
    assert_eq!((census.failed, census.unanswered, census.ok), (20, 20, 160));
    let (service, corrected) = (&only(&facts).service, only(&facts).corrected.as_ref().expect("an open loop corrects"));
    assert_eq!(service.count, 160);
    assert!(service.min_ns >= MS, "what failed at once is not the fastest: {}", service.min_ns);
    // The oldest that hangs was due at the start of the window.
    assert!(corrected.max_ns >= 690 * MS, "{}", corrected.max_ns);
    // With four connections they are soon all taken: the rest is due and never sent.
    let peer = Peer::start(0, |_| Reply::never()).expect("a peer");
    let job = load::Job { target: peer.address(), connections: 4, grace_ns: 50 * MS, ..job };
    let (facts, _) = run_from(&job, |_| ());
    let census = only(&facts).census;
    assert_eq!((census.due, census.sent, census.unsent, census.unanswered), (200, 4, 196, 4));
    assert_eq!(only(&facts).corrected.as_ref().map(|corrected| corrected.count), Some(200));
}

/// tsenart/vegeta#164, #120, #41: latencies that wait for a tick, an attack of 20 s that takes 118 s, a p95 below the mean.
#[test]
fn a_low_rate_waits_for_nothing_and_an_overload_ends_in_time() {
    within_attempts(8, || {
        let peer = Peer::start(0, |_| good()).expect("a peer");
        let facts =
            run(&load::Job { rate: Some(40.0), warm_up_ns: 0, window_ns: 500 * MS, ..job(peer.address(), plain()) })
                .map_err(|error| error.to_string())?;
        let corrected = only(&facts).corrected.as_ref().expect("an open loop corrects");
        assert_eq!(corrected.count, 20);
        let (mean, p95) = (corrected.mean_ns().unwrap_or(0.0), corrected.quantile_ns(0.95).unwrap_or(0) as f64);
        assert!(corrected.min_ns as f64 <= mean && mean <= corrected.max_ns as f64);
        // A tick of the rate is 25 ms.
        if corrected.quantile_ns(0.5).unwrap_or(u64::MAX) > 5 * MS || p95 > 20e6 {
            return Err(format!("mean {mean}, p95 {p95} ns on a target that answers at once, away {}", away(&facts)));
        }
        Ok(())
    });
    // One worker, 50 ms each: 20/s where 1,000/s are asked for.
    let peer = Peer::start(1, |_| good().after(50 * MS)).expect("a peer");
    let job = load::Job {
        rate: Some(1_000.0),
        connections: 8,
        warm_up_ns: 0,
        window_ns: 300 * MS,
        grace_ns: 200 * MS,
        ..job(peer.address(), plain())
    };
    let began = sys::now_ns();
    let (facts, _) = run_from(&job, |_| ());
    let took = sys::now_ns() - began;
    assert_eq!(only(&facts).census.due, 300);
    assert!(only(&facts).census.unsent > 250, "{:?}", only(&facts).census);
    // Notice, window and grace are 600 ms; what would send all of it takes 15 s.
    assert!(took < 5_000 * MS, "{took} ns");
}

/// grafana/k6#1041: "receiving" takes 0.06 ms for a stream of 100 KB.
#[test]
fn first_byte_and_last_byte_are_two_stamps() {
    let piece = "x".repeat(10_000);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 10 * piece.len());
    let mut pieces = vec![head.into_bytes()];
    pieces.extend(std::iter::repeat_n(piece.into_bytes(), 10));
    let peer = Peer::start(0, move |_| Reply { pieces: pieces.clone(), gap_ns: 5 * MS, hold_ns: 0, then: Then::Keep })
        .expect("a peer");
    let facts = run_seeing(4, &load::Job { connections: 4, ..job(peer.address(), plain()) });
    let stream = only(&facts);
    let receiving = (stream.service.sum_ns - stream.ttfb.sum_ns) / u128::from(stream.service.count);
    // Ten gaps of 5 ms lie between the first byte and the last, whatever the machine does.
    assert!(receiving >= u128::from(45 * MS), "{receiving} ns");
}

/// grafana/k6#3052, #652: another count in each run, and what is answered after the last slot is dropped.
#[test]
fn every_run_has_the_same_count_and_late_answers_are_in_it() {
    // Every answer takes 150 ms: the last third of the window's answers come after its end.
    let peer = Peer::start(0, |_| good().after(150 * MS)).expect("a peer");
    for _ in 0..3 {
        let job = load::Job {
            rate: Some(333.3),
            connections: 120,
            warm_up_ns: 30 * MS,
            window_ns: 400 * MS,
            ..job(peer.address(), plain())
        };
        let facts = run(&job).expect("a run");
        let census = only(&facts).census;
        // ⌊333.3 × 0.4⌋ slots in the window, ⌊333.3 × 0.03⌋ in the warm-up.
        assert_eq!((census.due, census.ok, only(&facts).acknowledged), (133, 133, 142), "{:?}", only(&facts));
        assert!(only(&facts).service.min_ns >= 150 * MS);
    }
}
