//! A job on its way: intervals that add up, an early end, a number of requests, and several generators with one schedule.

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{MS, balanced, job, only, plain, ways};
use journal::facts::{LoadFacts, StreamFacts};
use load::peer::{Peer, Reply};
use load::wire::{Interval, Part};
use load::{CUT_NOTICE_NS, Course, Engine, Job, LoadError, NO_CUT, Signals, sys};

fn peer() -> Peer {
    Peer::start(0, |asked| Reply::json(if asked.number % 10 == 0 { 503 } else { 200 }, "{}")).expect("a peer")
}

/// Runs a job with intervals, cut short after `cut_after_ns` of its run where that is given.
fn watched(job: &Job, every_ns: u64, cut_after_ns: Option<u64>) -> (Result<LoadFacts, LoadError>, Vec<Interval>) {
    let prepared = load::prepare(job).expect("connections");
    let (stop, cut_at, heard) = (AtomicBool::new(false), AtomicU64::new(NO_CUT), Mutex::new(Vec::new()));
    let hear = |interval| heard.lock().expect("no panic").push(interval);
    let at_ns = sys::now_ns() + 100 * MS;
    let facts = std::thread::scope(|scope| {
        if let Some(after_ns) = cut_after_ns {
            let cut_at = &cut_at;
            scope.spawn(move || {
                sys::sleep_until(at_ns + after_ns);
                cut_at.store(sys::now_ns() + CUT_NOTICE_NS, Ordering::Relaxed);
            });
        }
        prepared.run_course(Course {
            at_ns,
            signals: Signals { stop: &stop, cut_at: &cut_at },
            intervals: Some((every_ns, &hear)),
        })
    });
    (facts, heard.into_inner().expect("no panic"))
}

/// Asserts that intervals follow each other without a gap and add up to the account.
fn add_up(facts: &LoadFacts, intervals: &[Interval]) {
    assert!(intervals.windows(2).all(|two| two[0].to_ns == two[1].from_ns && two[0].number + 1 == two[1].number));
    for (index, whole) in facts.streams.iter().enumerate() {
        let parts = || intervals.iter().map(|interval| &interval.streams[index]);
        let sum = |of: fn(&StreamFacts) -> u64| parts().map(of).sum::<u64>();
        for (of, what) in [
            ((|s| s.census.ok) as fn(&StreamFacts) -> u64, "ok"),
            (|s| s.census.sent, "sent"),
            (|s| s.census.due, "due"),
            (|s| s.census.failed, "failed"),
            (|s| s.census.unsent, "unsent"),
            (|s| s.census.carried_in, "carried in"),
            (|s| s.census.carried_out, "carried out"),
            (|s| s.acknowledged, "acknowledged"),
            (|s| s.failures.values().sum(), "failures"),
        ] {
            assert_eq!(sum(of), of(whole), "{what}");
        }
        let mut service = parts().next().expect("an interval").service.clone();
        parts().skip(1).for_each(|part| service.merge(&part.service));
        assert_eq!(service, whole.service, "merged as histograms");
    }
}

#[test]
fn intervals_add_up_to_the_account_in_both_loops() {
    let peer = peer();
    for (rate, engine) in ways(2_000.0) {
        for threads in [1, 2] {
            let job = Job { rate, engine, threads, window_ns: 500 * MS, ..job(peer.address(), plain()) };
            let (facts, intervals) = watched(&job, 100 * MS, None);
            let facts = facts.expect("facts");
            balanced(&job, &facts);
            assert!(intervals.len() >= 3, "{} intervals of 100 ms in 500 ms", intervals.len());
            add_up(&facts, &intervals);
            assert!(
                intervals[0].streams[0].census.ok > 0 && intervals[0].streams[0].census.ok < only(&facts).census.ok
            );
        }
    }
}

#[test]
fn a_window_that_is_cut_short_has_an_account_of_its_part() {
    let peer = peer();
    for (rate, engine) in ways(1_000.0) {
        let job = Job { rate, engine, threads: 2, window_ns: 60_000 * MS, ..job(peer.address(), plain()) };
        let (facts, intervals) = watched(&job, 100 * MS, Some(300 * MS));
        let facts = facts.expect("facts");
        let census = only(&facts).census;
        assert!(census.is_conserved(rate.is_some()), "{census:?}");
        add_up(&facts, &intervals);
        let took = facts.took_ns.expect("it did not end by its time");
        assert!((300 * MS..5_000 * MS).contains(&took), "{took}");
        if let Some(rate) = rate {
            let slots = took as f64 / 1e9 * rate;
            assert!((census.due as f64 - slots).abs() <= 1.0, "{} due, {slots} slots in {took} ns", census.due);
        }
    }
    // Before the window there is nothing to account for.
    let early = Job { warm_up_ns: 60_000 * MS, ..job(peer.address(), plain()) };
    let (facts, _) = watched(&early, 100 * MS, Some(50 * MS));
    assert!(matches!(facts, Err(LoadError::Stopped)), "{facts:?}");
}

#[test]
fn a_number_of_requests_is_sent_exactly() {
    let peer = peer();
    let cases = [(1, 2), (7, 3), (1_000, 1), (1_001, 2)].into_iter();
    for ((requests, threads), engine) in
        cases.flat_map(|case| [Engine::Epoll, Engine::Uring].map(|engine| (case, engine)))
    {
        let job = Job {
            engine,
            requests: Some(requests),
            threads,
            warm_up_ns: 0,
            window_ns: 30_000 * MS,
            ..job(peer.address(), plain())
        };
        let (facts, _) = watched(&job, 100 * MS, None);
        let facts = facts.expect("facts");
        let census = only(&facts).census;
        assert_eq!((census.sent, census.ok + census.failed), (requests, requests), "{census:?}");
        assert!(facts.took_ns.is_some_and(|took| took < 30_000 * MS), "{:?}", facts.took_ns);
    }
}

#[test]
fn parts_of_a_job_send_one_schedule_together() {
    let peer = Peer::start(0, |_| Reply::json(200, "{}")).expect("a peer");
    let whole = Job { rate: Some(1_001.0), connections: 5, window_ns: 300 * MS, ..job(peer.address(), plain()) };
    let part = |first, threads| Job { threads, part: Some(Part { first, of: 3 }), ..whole.clone() };
    let parts = [part(0, 1), part(1, 2)];
    let accounts: Vec<LoadFacts> = std::thread::scope(|scope| {
        let at_ns = sys::now_ns() + 300 * MS;
        let running: Vec<_> = parts
            .iter()
            .map(|part| scope.spawn(move || load::run(part, at_ns, &AtomicBool::new(false)).expect("a run")))
            .collect();
        running.into_iter().map(|run| run.join().expect("no panic")).collect()
    });
    assert_eq!(accounts.iter().map(|facts| facts.connections).collect::<Vec<_>>(), [2, 3]);
    let due: u64 = accounts.iter().map(|facts| only(facts).census.due).sum();
    // As one generator would have them: the rate times the window, rounded down.
    let slots = u128::from(whole.window_ns) * 1_001 / 1_000_000_000;
    assert_eq!(u128::from(due), slots, "{accounts:?}");
}
