//! The demand of a load: which amount of a resource carries it, and when that can't be said.

use judge::{Figure, Judgement};
use plan::{Axis, Condition, Gate, Level, Metric, Plan, Rate};

use crate::bench::{Run, integers, open, phase, plan_of, why, words};

/// One, two and three cores against 1,000 and 2,000 requests per second; three votes each.
fn plan() -> Plan {
    let rates = Axis { factor: "rate".to_owned(), levels: [1_000.0, 2_000.0].map(Level::PerSecond).to_vec() };
    let axes = vec![words("candidate", &["go"]), integers("cores", &[1, 2, 3]), rates];
    let mut grid = phase("grid", axes, Some(Rate::Factor("rate".to_owned())), 3, 4);
    grid.gates = vec![Gate::Counters];
    grid.demand = Some("cores".to_owned());
    grid.carried = vec![Condition {
        metric: Metric::CorrectedP99,
        comparison: plan::phase::Comparison::Less,
        value: 10.0,
        written: "corrected.p99 < 10ms".to_owned(),
    }];
    plan_of(vec![grid])
}

/// Votes of the cells for 1,000/s on one, two and three cores: how many of three repetitions carry it. 2,000/s is carried by three.
fn judged(votes: [usize; 3], leave_out: usize) -> Judgement {
    let mut run = Run::new(plan());
    for (core, yes) in votes.into_iter().enumerate() {
        for vote in 0..3 {
            let latency_ns = if vote < yes { 2_000_000 } else { 50_000_000 };
            if core < leave_out {
                continue;
            }
            run.measure("grid", core as u32 * 2, open(1_000.0, latency_ns));
            let heavy_ns = if core == 2 { 2_000_000 } else { 50_000_000 };
            run.measure("grid", core as u32 * 2 + 1, open(2_000.0, heavy_ns));
        }
    }
    run.judge()
}

fn demand<'a>(judgement: &'a Judgement, rate: &str) -> &'a Figure {
    let of_rate = |figure: &&Figure| figure.cell.iter().any(|(factor, level)| factor == "rate" && level == rate);
    judgement.figures.iter().filter(|figure| figure.metric == Metric::Demand).find(of_rate).expect("a figure")
}

#[test]
fn the_demand_is_the_smallest_amount_above_which_all_carry() {
    let judgement = judged([1, 2, 3], 0);
    let light = demand(&judgement, "1000/s");
    assert_eq!((light.value(), light.valid, light.unit.as_str()), (Some(2.0), 9, "count"));
    assert_eq!(light.notes, ["carried at cores 1: 1 of 3, 2: 2 of 3, 3: 3 of 3", "first not carried: 1: 1 of 3"]);
    assert_eq!(light.cell, [("candidate".to_owned(), "go".to_owned()), ("rate".to_owned(), "1000/s".to_owned())]);
    assert_eq!(demand(&judgement, "2000/s").value(), Some(3.0));
    assert!(light.published && light.estimator == "majority");
}

#[test]
fn the_smallest_amount_that_was_tried_says_so() {
    let judgement = judged([3, 3, 3], 0);
    let light = demand(&judgement, "1000/s");
    assert_eq!(light.value(), Some(1.0));
    assert!(light.notes.iter().any(|note| note.contains("fewer may do")), "{:?}", light.notes);
}

#[test]
fn an_amount_that_carries_below_one_that_does_not_is_a_fluke() {
    let judgement = judged([3, 1, 3], 0);
    let light = demand(&judgement, "1000/s");
    assert_eq!(light.value(), Some(3.0));
    assert!(light.notes.iter().any(|note| note.starts_with("inverted: cores 1 carried it in 3 of its 3")), "{light:?}");
}

#[test]
fn what_nothing_carries_or_nobody_measured_has_no_demand() {
    let nothing = judged([3, 3, 1], 0);
    let text = why(demand(&nothing, "1000/s")).to_owned();
    assert_eq!(text, "no cores of the grid carries it: already the largest, 3: 1 of 3");
    let unknown = judged([3, 3, 3], 1);
    let text = why(demand(&unknown, "1000/s"));
    assert!(text.starts_with("whether cores 1 carries it is not known: nothing was measured here"), "{text}");
}
