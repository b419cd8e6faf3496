//! Time that stands still: the target's is in the latencies, the generator's own is there too and named as its own.

mod common;

use std::sync::atomic::AtomicBool;

use common::{MS, job, only, plain, ways, within_attempts};
use journal::facts::{Histogram, LoadFacts};
use load::peer::{Peer, Reply};
use load::{Engine, sys};

const FREEZE: u64 = 200 * MS;

/// Runs an open loop whose peer freezes in mid-window, and returns the account with what the peer saw.
fn frozen(freeze: bool) -> (LoadFacts, Histogram) {
    let peer = Peer::start(0, |_| Reply::json(200, load::noop::BODY)).expect("a peer");
    let job = load::Job {
        connections: 64,
        rate: Some(5_000.0),
        warm_up_ns: 200 * MS,
        window_ns: 2_000 * MS,
        ..job(peer.address(), plain())
    };
    let start = sys::now_ns() + 50 * MS;
    if freeze {
        peer.freeze(start + 700 * MS, FREEZE);
    }
    let facts = load::prepare(&job).expect("connected").run(start, &AtomicBool::new(false)).expect("facts");
    common::balanced(&job, &facts);
    // The truth at the server: the i-th arrival against the i-th slot.
    let arrivals = peer.arrivals();
    assert_eq!(arrivals.len(), 11_000);
    let late = (0u64..).zip(&arrivals).skip(1_000).map(|(slot, at)| at.saturating_sub(start + slot * 200_000));
    (facts, Histogram::of(late))
}

#[test]
fn a_target_that_freezes_is_seen_as_its_clients_would_see_it() {
    within_attempts(10, || {
        let (facts, truth) = frozen(true);
        let stream = only(&facts);
        // Other programs take the generator off its CPU now and then: it says so, and by so much the two may differ.
        let away = facts.generator.stalls.iter().map(|stall| stall.for_ns).max().unwrap_or(0);
        if away > 20 * MS {
            return Err(format!("this machine kept the generator from its CPU for {away} ns"));
        }
        let corrected = stream.corrected.as_ref().expect("an open loop corrects");
        for q in [0.99, 0.999, 1.0] {
            let (ours, theirs) = (corrected.quantile_ns(q).unwrap_or(0), truth.quantile_ns(q).unwrap_or(0));
            // An answer comes after its arrival: ours is larger by a wake-up or two.
            let slack = (theirs / 100).max(MS) + away;
            if ours.abs_diff(theirs) > slack {
                return Err(format!("quantile {q}: {ours} ns, at the server {theirs} ns"));
            }
        }
        if corrected.max_ns < 199 * MS {
            return Err(format!("a request due when the target froze waited {} ns only", corrected.max_ns));
        }
        // p99 = D − (1 − q) × T, for a target that catches up at once: 200 − 0.01 × 2,000 = 180 ms. One that takes its time
        // to catch up has more late answers, and a higher p99.
        let p99 = corrected.quantile_ns(0.99).unwrap_or(0);
        if !(150 * MS..=182 * MS + away).contains(&p99) {
            return Err(format!("p99 is {p99} ns, by arithmetic 180 ms"));
        }
        // What is not corrected misses it: only as many requests as there are connections were in flight.
        if stream.service.quantile_ns(0.99).unwrap_or(u64::MAX) > 50 * MS {
            return Err("the service time's p99 has the freeze in it".into());
        }
        // Named as the target's, with its instant and length, and not as the generator's.
        let silence = facts.silences.iter().max_by_key(|silence| silence.for_ns);
        let Some(silence) = silence else { return Err("the target's stillness is not named".into()) };
        if silence.for_ns < FREEZE - 10 * MS - away || silence.for_ns > FREEZE + 20 * MS + away {
            return Err(format!("the target is said to have stood still for {} ns", silence.for_ns));
        }
        if facts.generator.max_backlog < 800 {
            return Err(format!("backlog {} though 936 slots waited", facts.generator.max_backlog));
        }
        Ok(())
    });
}

#[test]
fn without_a_freeze_nothing_of_it_is_seen() {
    within_attempts(6, || {
        let (facts, _) = frozen(false);
        if let Some(silence) = facts.silences.iter().find(|silence| silence.for_ns > 100 * MS) {
            return Err(format!("a target that never stood still is said to have, for {} ns", silence.for_ns));
        }
        let p99 = only(&facts).corrected.as_ref().and_then(|corrected| corrected.quantile_ns(0.99)).unwrap_or(u64::MAX);
        if p99 > 50 * MS { Err(format!("p99 is {p99} ns on a quiet target")) } else { Ok(()) }
    });
}

/// The generator as a child, stopped and continued by signals: the same latencies, and a stall of its own.
#[test]
fn a_generator_that_freezes_says_that_it_was_itself() {
    within_attempts(4, || {
        let peer = Peer::start(0, |_| Reply::json(200, load::noop::BODY)).expect("a peer");
        // At 300 slots per second the thread sleeps nearly all the time: it is caught asleep.
        for (rate, engine) in ways(5_000.0).into_iter().chain([(Some(300.0), Engine::Epoll)]) {
            let job = load::Job {
                connections: 16,
                rate,
                engine,
                warm_up_ns: 100 * MS,
                window_ns: 1_000 * MS,
                ..job(peer.address(), plain())
            };
            let mut child = common::child::Generator::start(&job);
            let start = sys::now_ns() + 100 * MS;
            child.order(&load::wire::Order::Start { at_ns: start, every_ns: 0 });
            sys::sleep_until(start + 500 * MS);
            child.signal(libc::SIGSTOP);
            let stopped = sys::now_ns();
            sys::sleep_until(stopped + FREEZE);
            child.signal(libc::SIGCONT);
            // On a busy machine this thread wakes late too: so long it was in truth.
            let frozen = sys::now_ns() - stopped;
            let facts = child.finish();
            common::balanced(&job, &facts);
            let longest = facts.generator.stalls.iter().max_by_key(|stall| stall.for_ns).copied();
            let Some(stall) = longest else { return Err(format!("no stall of its own at {rate:?} on {engine:?}")) };
            // A closed loop that was caught asleep can't tell the last 5 ms of its sleep from the freeze.
            if stall.for_ns < FREEZE - 6 * MS || stall.for_ns > frozen + 60 * MS {
                return Err(format!(
                    "a stall of {} ns at {rate:?} on {engine:?}, {frozen} ns is the truth",
                    stall.for_ns
                ));
            }
            if stall.at_ns.abs_diff(stopped) > 8 * MS {
                return Err(format!(
                    "the stall began {} ns off at {rate:?} on {engine:?}",
                    stall.at_ns.abs_diff(stopped)
                ));
            }
            if let Some(silence) = facts.silences.iter().find(|silence| silence.for_ns > 100 * MS) {
                return Err(format!("its own freeze is laid upon the target: {silence:?} at {rate:?} on {engine:?}"));
            }
            let stream = only(&facts);
            let largest = stream.corrected.as_ref().map_or(u64::MAX, |corrected| corrected.max_ns);
            // The first slot within the freeze may come a gap after it began.
            let gap = rate.map_or(0, |rate| (1e9 / rate) as u64);
            if largest < FREEZE - gap - 2 * MS {
                return Err(format!("the wait is hidden: the largest corrected latency is {largest} ns"));
            }
        }
        Ok(())
    });
}
