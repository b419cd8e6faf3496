//! What is measured next, at which levels, with which probe; rows of a former run.

use journal::{Environment, Event};
use judge::{levels, probe_target, wanted};
use plan::{ContentHash, Level, Metric, Step, StepId, StepKind};

use crate::bench::{Run, capacity, close, closed, figure, one_cell, open, slow, swept, why};

#[test]
fn a_cell_is_wanted_until_enough_are_valid_or_the_budget_ends() {
    let mut run = Run::new(one_cell(2, 4));
    let wanted_now = |run: &Run| wanted(&run.plan, "ceiling", &run.judge(), &run.evidence());
    let void = || {
        let mut facts = closed(19_000.0, 50.0);
        facts.candidate = None;
        facts
    };
    assert_eq!(wanted_now(&run), [0]);
    run.measure("ceiling", 0, void());
    run.fail("ceiling", 0, "the candidate was never ready");
    assert_eq!(wanted_now(&run), [0]);
    run.measure("ceiling", 0, closed(19_000.0, 50.0));
    assert_eq!(wanted_now(&run), [0]);
    run.measure("ceiling", 0, void());
    assert_eq!(wanted_now(&run), [] as [u32; 0], "the budget of four has ended");
    let judgement = run.judge();
    let throughput = figure(&judgement, "ceiling", Metric::Throughput);
    assert!(why(throughput).contains("1 of 2 valid") && why(throughput).contains("not measurable 1"));

    let mut enough = Run::new(one_cell(2, 4));
    enough.measure("ceiling", 0, closed(19_000.0, 50.0));
    enough.measure("ceiling", 0, closed(19_000.0, 50.0));
    assert_eq!(wanted_now(&enough), [] as [u32; 0]);
    // A later, cheaper repetition shows that the earlier ones were disturbed.
    let mut later = Run::new(one_cell(2, 4));
    later.measure("ceiling", 0, closed(17_000.0, 56.0));
    later.measure("ceiling", 0, closed(19_000.0, 50.0));
    assert_eq!(wanted_now(&later), [0]);
    assert_eq!(wanted(&later.plan, "no such phase", &later.judge(), &later.evidence()), [] as [u32; 0]);
}

#[test]
fn rows_of_another_hash_are_superseded_but_stay() {
    let mut run = Run::new(one_cell(2, 4));
    let old = run.start_as("ceiling", 0, &[], ContentHash::of_bytes(b"before"));
    run.push(Event::RepetitionMeasured { repetition: old, facts: Box::new(closed(30_000.0, 30.0)) });
    run.push(Event::RunResumed {
        plan: run.plan.hash(),
        environment: Environment { cpu: "one".to_owned(), ..Environment::default() },
        kept: 0,
        superseded: 1,
    });
    run.measure("ceiling", 0, closed(19_000.0, 50.0));
    // Killed within a repetition: it ends nowhere, and its number is not given again.
    let open = run.start("ceiling", 0, &[]);
    assert_eq!((open.number, run.evidence().next_number("ceiling", 0)), (3, 4));
    run.measure("ceiling", 0, closed(19_000.0, 50.0));
    let judgement = run.judge();
    assert_eq!(
        judgement.repetitions.iter().map(|repetition| repetition.superseded).collect::<Vec<_>>(),
        [true, false, false]
    );
    let throughput = figure(&judgement, "ceiling", Metric::Throughput);
    close(throughput, 19_000.0);
    assert_eq!((throughput.valid, throughput.void, throughput.seen.map(|seen| seen.n)), (2, 0, Some(2)));
    assert_eq!(wanted(&run.plan, "ceiling", &judgement, &run.evidence()), [] as [u32; 0]);
}

#[test]
fn the_step_that_measures_a_cell_gives_the_hash() {
    let mut plan = one_cell(1, 2);
    plan.steps = vec![Step {
        id: StepId(0),
        kind: StepKind::MeasureCell { phase: "ceiling".to_owned(), cell: 0 },
        needs: Vec::new(),
        hash: ContentHash::of_bytes(b"step"),
    }];
    assert_eq!(judge::cell_hash(&plan, "ceiling", 0), Some(&ContentHash::of_bytes(b"step")));
    assert_eq!(judge::cell_hash(&one_cell(1, 2), "ceiling", 0), Some(&one_cell(1, 2).phases[0].cells[0].hash));
    assert_eq!(judge::cell_hash(&plan, "ceiling", 9), None);
    let mut run = Run::new(plan);
    run.measure("ceiling", 0, closed(19_000.0, 50.0));
    assert!(run.judge().repetitions[0].is_valid());
}

#[test]
fn the_probe_is_driven_above_the_figure_or_what_was_shown_already() {
    let mut run = swept([closed(15_000.0, 50.0), closed(19_000.0, 50.0), closed(17_000.0, 50.0)]);
    let target = |run: &Run| probe_target(&run.plan, "ceiling", 0, &run.judge());
    // The sweep has one valid repetition of one: its best pool's rate is what the ceiling's probe is set from.
    assert!(target(&run).is_ok_and(|rate| (rate / (1.15 * 1.1 * 19_000.0) - 1.0).abs() < 1e-6));
    run.measure("ceiling", 0, closed(19_600.0, 50.0));
    assert!(target(&run).is_ok_and(|rate| (rate / (1.15 * 1.1 * 19_600.0) - 1.0).abs() < 1e-6));
    let empty = Run::new(capacity());
    assert!(target(&empty).is_err_and(|why| why.contains("could choose no `pool`")), "{:?}", target(&empty));
    assert!(
        probe_target(&run.plan, "sweep", 0, &run.judge()).is_err_and(|why| why.contains("no `generator-probe` gate"))
    );
}

#[test]
fn a_share_of_an_undetermined_figure_takes_the_best_that_was_only_disturbed() {
    let mut run = swept([closed(15_000.0, 50.0), closed(19_000.0, 50.0), closed(17_000.0, 50.0)]);
    let error = levels(&run.plan, "rates", 0, &run.judge()).expect_err("no ceiling yet");
    assert!(error.contains("ceiling.throughput") && error.contains("nothing usable was seen"), "{error}");
    for rate in [18_000.0, 18_500.0] {
        let mut facts = closed(rate, 50.0);
        slow(&mut facts, 0.85);
        run.measure("ceiling", 0, facts);
    }
    let judgement = run.judge();
    let expected = judgement.repetitions.last().map(|last| 0.3 * last.values[&Metric::Throughput]).expect("measured");
    let found = levels(&run.plan, "rates", 0, &judgement).expect("the best that was disturbed");
    assert_eq!(found["rate"], format!("{}", (expected * 100.0).round() / 100.0));
    assert_eq!((found["candidate"].as_str(), found["cores"].as_str(), found["pool"].as_str()), ("go", "1", "16"));
    // Once something read it, the limits say so.
    run.measure("rates", 0, open(5_000.0, 2_000_000));
    let judgement = run.judge();
    assert!(
        judgement
            .limits
            .iter()
            .any(|limit| limit.starts_with("ceiling.throughput for candidate go, cores 1 is not determined")),
        "{:?}",
        judgement.limits
    );
    assert!(levels(&run.plan, "rates", 99, &judgement).is_err());
    assert!(levels(&run.plan, "nowhere", 0, &judgement).is_err());
}

#[test]
fn rates_are_written_without_a_unit() {
    let mut plan = one_cell(1, 1);
    plan.phases[0].axes[1].levels = vec![Level::PerSecond(500.0)];
    plan.phases[0].axes[1].factor = "rate".to_owned();
    plan.phases[0].cells = crate::bench::cells("ceiling", &plan.phases[0].axes);
    let judgement = Run::new(plan.clone()).judge();
    assert_eq!(levels(&plan, "ceiling", 0, &judgement).map(|levels| levels["rate"].clone()), Ok("500".to_owned()));
}

#[test]
fn levels_are_decided_once() {
    let mut run = swept([closed(15_000.0, 50.0), closed(19_000.0, 50.0), closed(17_000.0, 50.0)]);
    run.measure("ceiling", 0, closed(19_000.0, 50.0));
    let decided = [("candidate", "go"), ("cores", "1"), ("rate", "5700"), ("pool", "16"), ("port", "8080")];
    let repetition = run.start("rates", 0, &decided);
    run.push(Event::RepetitionMeasured { repetition, facts: Box::new(open(5_700.0, 2_000_000)) });
    // The ceiling turns out to be higher; this cell keeps its rate, another one follows.
    run.measure("ceiling", 0, closed(20_000.0, 48.0));
    let judgement = run.judge();
    let of = |cell| levels(&run.plan, "rates", cell, &judgement).expect("levels");
    assert_eq!(
        of(0).into_iter().collect::<Vec<_>>(),
        [
            ("candidate".to_owned(), "go".to_owned()),
            ("cores".to_owned(), "1".to_owned()),
            ("pool".to_owned(), "16".to_owned()),
            ("rate".to_owned(), "5700".to_owned()),
        ]
    );
    assert_eq!(of(1)["rate"], "12000");
}
