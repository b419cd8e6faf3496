//! A candidate's start, and its memory over the window.

use journal::{CaseOutcome, Event, MemoryFacts, RepetitionFacts};
use judge::{Outcome, RepetitionVerdict};
use plan::{Estimate, Estimator, Metric};

use crate::bench::{Run, WINDOW_NS, close, closed, figure, one_cell, started, starts, why};

#[test]
fn a_start_is_the_median_of_its_repetitions() {
    let mut run = Run::new(starts());
    for took_ms in [40, 44, 43, 41, 42, 48, 47, 46, 45, 400] {
        run.measure("cold", 0, started(took_ms * 1_000_000, 9_000_000 + took_ms * 1_000));
    }
    let judgement = run.judge();
    let start = figure(&judgement, "cold", Metric::StartTime);
    close(start, 44.5);
    assert!(
        matches!(start.outcome, Outcome::Determined { interval: Some((low, high)), .. } if low < 44.5 && high > 44.5)
    );
    assert_eq!((start.unit.as_str(), start.valid, start.void), ("ms", 10, 0));
    close(figure(&judgement, "cold", Metric::StartCpu), 9.044_5);
    close(figure(&judgement, "cold", Metric::Memory), f64::from(30 << 20));
}

/// What spoils a start, and the sentence it is void or withheld with.
struct Fault {
    name: &'static str,
    spoil: fn(&mut RepetitionFacts),
    says: &'static str,
}

#[test]
fn what_is_not_known_of_a_start_voids_it_or_withholds_the_figure() {
    let voids = [
        Fault {
            name: "no end reading",
            spoil: |facts| facts.candidate.as_mut().expect("counters").end = None,
            says: "the candidate's CPU counter could not be read at the window's end",
        },
        Fault {
            name: "a counter that never moved",
            spoil: |facts| {
                let counters = facts.candidate.as_mut().expect("counters");
                counters.end = counters.start;
            },
            says: "the candidate's CPU counter did not move in the window",
        },
        Fault {
            name: "suspended meanwhile",
            spoil: |facts| facts.window.boot_end_ns += 3_000_000_000,
            says: "the machine was suspended",
        },
    ];
    for fault in voids {
        let mut run = Run::new(starts());
        let mut facts = started(40_000_000, 9_000_000);
        (fault.spoil)(&mut facts);
        run.measure("cold", 0, facts);
        let judgement = run.judge();
        let judged = &judgement.repetitions[0];
        assert_eq!(judged.verdict, RepetitionVerdict::Void, "{}", fault.name);
        assert!(judged.failed_gates().any(|gate| gate.sentence.contains(fault.says)), "{}: {judged:?}", fault.name);
    }
    let withheld = [
        Fault { name: "nothing recorded", spoil: |facts| facts.start = None, says: "the start was not recorded" },
        Fault {
            name: "answered before it was asked for",
            spoil: |facts| {
                let start = facts.start.as_mut().expect("a start");
                start.ready_ns = start.asked_ns - 1;
            },
            says: "before the start was asked for",
        },
    ];
    for fault in withheld {
        let mut run = Run::new(starts());
        for _ in 0..10 {
            let mut facts = started(40_000_000, 9_000_000);
            (fault.spoil)(&mut facts);
            run.measure("cold", 0, facts);
        }
        let judgement = run.judge();
        let text = why(figure(&judgement, "cold", Metric::StartTime));
        assert!(text.contains(fault.says), "{}: {text}", fault.name);
    }
}

#[test]
fn a_candidate_that_failed_its_contract_has_no_start() {
    let mut run = Run::new(starts());
    let failed = CaseOutcome { case: "no token".to_owned(), problem: Some("expected 401, got 200".to_owned()) };
    run.push(Event::ContractChecked { candidate: "go".to_owned(), cases: vec![failed] });
    for _ in 0..10 {
        run.measure("cold", 0, started(40_000_000, 9_000_000));
    }
    let judgement = run.judge();
    assert!(judgement.repetitions.iter().all(|judged| !judged.is_valid()));
    assert!(why(figure(&judgement, "cold", Metric::StartTime)).contains("contract"));
}

/// A closed loop whose candidate's memory was this at the given slices of its window.
fn remembered(bytes_at: &[(u64, u64)]) -> RepetitionFacts {
    let mut facts = closed(19_000.0, 50.0);
    let mut memory = MemoryFacts::over(WINDOW_NS);
    for &(slice, bytes) in bytes_at {
        memory.see(slice * memory.slice_ns, bytes);
    }
    facts.candidate.as_mut().expect("counters").memory = Some(memory);
    facts
}

#[test]
fn memory_growth_is_the_slope_over_the_window() {
    let growth = |facts: RepetitionFacts| {
        let mut plan = one_cell(1, 2);
        plan.phases[0].estimates = vec![Estimate { metric: Metric::MemoryGrowth, by: Estimator::Median }];
        let mut run = Run::new(plan);
        run.measure("ceiling", 0, facts);
        figure(&run.judge(), "ceiling", Metric::MemoryGrowth).clone()
    };
    // 20 s in 60 slices of a third of a second: 1,000 bytes more in each are 3,000 bytes per second.
    let climbing: Vec<(u64, u64)> = (0..60).map(|slice| (slice, 10_000_000 + slice * 1_000)).collect();
    let slope = growth(remembered(&climbing)).value().expect("a slope");
    assert!((slope - 3_000.0).abs() < 0.01, "{slope}");
    let level: Vec<(u64, u64)> = (0..60).map(|slice| (slice, 10_000_000)).collect();
    assert!(growth(remembered(&level)).value().expect("a slope").abs() < 1e-6);
    let few = growth(remembered(&climbing[..5]));
    assert!(why(&few).contains("a slope needs 6 looks at memory"), "{few:?}");
    assert!(why(&growth(closed(19_000.0, 50.0))).contains("memory over the window was not recorded"));
}
