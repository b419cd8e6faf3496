//! Figures: estimators, intervals, floors, paced estimates, and what is withheld.

use std::collections::BTreeMap;

use judge::{Outcome, VerdictKind};
use plan::{Estimate, Estimator, Gate, Metric};

use crate::bench::{Run, close, closed, figure, one_cell, pgbench, pgbench_facts, run_of, slow, whole, why};

#[test]
fn the_best_of_valid_stands_with_gap_median_and_spread() {
    let judgement = run_of(one_cell(5, 9), &[19_000.0, 18_900.0, 18_800.0, 18_950.0, 18_700.0]).judge();
    let best = figure(&judgement, "ceiling", Metric::Throughput);
    close(best, 19_000.0);
    assert_eq!((best.valid, best.void, best.rows.len(), best.not_reproduced), (5, 0, 5, false));
    assert_eq!(best.estimator, "best-of-valid");
    assert!(best.notes[0].starts_with("the maximum was reproduced"), "{:?}", best.notes);
    assert!(best.spread.is_some_and(|spread| (spread - 300.0 / 18_900.0).abs() < 1e-6));
    assert_eq!(best.bound, None);
    assert!(best.published && best.name == "ceiling.throughput");
    let demand = figure(&judgement, "ceiling", Metric::CpuPerRequest);
    assert!(!demand.published && demand.estimator == "median" && demand.notes[0].contains("six do"));
    close(demand, 50.0);
    close(figure(&judgement, "ceiling", Metric::CoresUsed), 0.945);
    close(figure(&judgement, "ceiling", Metric::DatabaseCpuPerRequest), 12.5);
    close(figure(&judgement, "ceiling", Metric::Memory), f64::from(30 << 20));
    close(figure(&judgement, "ceiling", Metric::ServiceP99), 64.0 / 18.9);
    assert_eq!(figure(&judgement, "ceiling", Metric::Errors).value(), Some(0.0));
}

#[test]
fn a_maximum_that_nobody_reproduced_is_noted_and_lowers_the_confidence() {
    let lucky = run_of(one_cell(3, 9), &[19_000.0, 18_400.0, 18_300.0]).judge();
    let figure_of = figure(&lucky, "ceiling", Metric::Throughput);
    assert!(figure_of.not_reproduced && figure_of.notes[0].contains("not reproduced"), "{figure_of:?}");
    assert!(lucky.confidence.reasons.iter().any(|reason| reason.contains("not reproduced")));
    let steady = run_of(one_cell(3, 9), &[19_000.0, 18_950.0, 18_900.0]).judge();
    assert!(!steady.confidence.reasons.iter().any(|reason| reason.contains("not reproduced")));
}

#[test]
fn a_median_has_its_interval_from_six_repetitions_on() {
    let mut plan = one_cell(6, 9);
    plan.phases[0].estimates = vec![Estimate { metric: Metric::Throughput, by: Estimator::Median }];
    let judgement = run_of(plan.clone(), &[19_000.0, 18_900.0, 18_800.0, 18_950.0, 18_700.0, 18_600.0]).judge();
    let Outcome::Determined { value, interval, coverage } = figure(&judgement, "ceiling", Metric::Throughput).outcome
    else {
        panic!("not determined");
    };
    assert_eq!((value, interval), (18_850.0, Some((18_600.0, 19_000.0))));
    assert!(coverage.is_some_and(|coverage| (coverage - 0.968_75).abs() < 1e-9));
    plan.phases[0].estimates[0].by = Estimator::Mean;
    let judgement = run_of(plan, &[19_000.0, 18_900.0, 18_800.0, 18_950.0, 18_700.0, 18_600.0]).judge();
    let mean = figure(&judgement, "ceiling", Metric::Throughput);
    close(mean, 18_825.0);
    assert!(matches!(mean.outcome, Outcome::Determined { coverage: Some(0.95), .. }));
}

#[test]
fn too_few_valid_repetitions_withhold_the_value_and_show_what_was_seen() {
    let mut run = Run::new(one_cell(6, 9));
    for index in 0..9 {
        let mut facts = closed(19_000.0, 50.0);
        if index >= 2 {
            slow(&mut facts, 0.4);
        }
        run.measure("ceiling", 0, facts);
    }
    run.end();
    let judgement = run.judge();
    let throughput = figure(&judgement, "ceiling", Metric::Throughput);
    assert!(
        why(throughput).starts_with("2 of 6 valid repetitions; of 9 that ended, 7 are void: "),
        "{}",
        why(throughput)
    );
    assert!(why(throughput).contains("pace 7") && why(throughput).contains("service-demand 7"), "{}", why(throughput));
    let seen = throughput.seen.expect("it was seen");
    assert!(seen.n == 9 && (seen.max - 19_000.0).abs() < 1.0 && seen.min < 14_000.0, "{seen:?}");
    assert_eq!((throughput.valid, throughput.void), (2, 7));
    // The paced estimate stands beside, with its own count and interval, and is right where the raw values are 40 % off.
    let paced = figure(&judgement, "ceiling", Metric::PacedCpuPerRequest);
    assert_eq!((paced.valid, paced.void), (9, 0));
    assert!((paced.value().expect("an estimate") / 50.0 - 1.0).abs() < 0.03, "{paced:?}");
    assert!(paced.notes[0].starts_with("at quiet pace: an estimate from 9 repetitions, 7 of them void"), "{paced:?}");
    assert!(matches!(paced.outcome, Outcome::Determined { interval: Some(_), .. }));
    assert_eq!(judgement.verdict.kind, VerdictKind::Void);
    assert_eq!(judgement.verdict.reasons[0], "no figure is determined; 1 estimate at quiet pace stands beside");
}

#[test]
fn a_paced_estimate_takes_nothing_that_failed_for_another_reason() {
    let mut run = Run::new(one_cell(2, 9));
    let mut slowed = closed(19_000.0, 50.0);
    slow(&mut slowed, 0.4);
    run.measure("ceiling", 0, closed(19_000.0, 50.0));
    run.measure("ceiling", 0, slowed.clone());
    let mut wrong = slowed;
    wrong.load.as_mut().expect("a load").streams[0].census.failed = 1;
    run.measure("ceiling", 0, wrong);
    // Dearer without a slower CPU: not the pace's doing.
    run.measure("ceiling", 0, closed(17_600.0, 54.0));
    let judgement = run.judge();
    let paced = figure(&judgement, "ceiling", Metric::PacedCpuPerRequest);
    assert_eq!((paced.valid, paced.void), (2, 2), "{paced:?}");
}

#[test]
fn two_ways_to_the_quiet_pace_that_differ_withhold_the_estimate() {
    let mut plan = one_cell(8, 20);
    plan.phases[0].gates.retain(|gate| !matches!(gate, Gate::Saturation { .. }));
    let mut run = Run::new(plan);
    for index in 0..10 {
        // Demand follows the slowdown twice as steeply as pace does: a regression foretells another value.
        let quiet_share = 0.95 - 0.06 * f64::from(index);
        let mut facts = closed(19_000.0, 50.0);
        slow(&mut facts, quiet_share);
        let candidate = facts.candidate.as_mut().expect("counters");
        let slowdown = quiet_share + (1.0 - quiet_share) * 28.0 / 17.0;
        let end = candidate.end.as_mut().expect("a reading");
        end.cpu_ns = (end.cpu_ns as f64 * (1.0 + 1.5 * (slowdown - 1.0))) as u64;
        candidate.cpus = 2;
        run.measure("ceiling", 0, facts);
    }
    let judgement = run.judge();
    let paced = figure(&judgement, "ceiling", Metric::PacedCpuPerRequest);
    assert!(why(paced).starts_with("two ways to the CPU per request at quiet pace differ by"), "{}", why(paced));
}

#[test]
fn a_floor_says_which_cpu_was_busy() {
    let busy = |share: u64| journal::CpuTimes { busy: 20 * share, idle: 2_000 - 20 * share, steal: 0 };
    // Cores used of one core, busy share of CPU 2 (database), the bound.
    for (cores, share, bound) in [
        (0.80, 98, Some("a floor: CPU 2 (database) was 98 % busy while the candidate used 0.80 of its core")),
        (0.80, 60, None),
        (0.97, 98, None),
    ] {
        let mut run = Run::new(one_cell(2, 9));
        for _ in 0..2 {
            let mut facts = closed(16_000.0, cores / 16_000.0 * 1e6);
            facts.host.cpus.insert(2, busy(share));
            run.measure("ceiling", 0, facts);
        }
        run.end();
        let judgement = run.judge();
        let throughput = figure(&judgement, "ceiling", Metric::Throughput);
        assert_eq!(throughput.bound.as_deref(), bound);
        assert_eq!(judgement.verdict.reasons.iter().any(|reason| reason.contains("floor")), bound.is_some());
    }
    let mut run = Run::new(one_cell(1, 9));
    let mut facts = closed(16_000.0, 50.0);
    facts.load.as_mut().expect("a load").generator.cpu_ns = Some(19_400_000_000);
    run.measure("ceiling", 0, facts);
    let judgement = run.judge();
    assert_eq!(
        figure(&judgement, "ceiling", Metric::Throughput).bound.as_deref(),
        Some("a floor: the generator was 97 % busy while the candidate used 0.80 of its core")
    );
}

#[test]
fn pgbench_is_estimated_by_its_best() {
    let mut run = Run::new(pgbench());
    for tps in [68_212.0, 68_000.0, 67_900.0] {
        run.measure("database", 0, pgbench_facts(tps));
    }
    run.end();
    let judgement = run.judge();
    close(figure(&judgement, "database", Metric::Tps), 68_212.0);
    assert_eq!(judgement.verdict.kind, VerdictKind::Published, "{:?}", judgement.verdict);
}

#[test]
fn every_load_phase_yields_the_figures_that_have_data() {
    let judgement = whole([5, 5, 4, 0], None).judge();
    let mut of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for figure in &judgement.figures {
        let names = of.entry(&figure.phase).or_default();
        if !names.contains(&figure.metric.name()) {
            names.push(figure.metric.name());
        }
    }
    let closed_loop = [
        "throughput",
        "cpu-per-request",
        "paced-cpu-per-request",
        "cores-used",
        "database-cpu-per-request",
        "database-cores-used",
        "memory",
        "service.p50",
        "service.p99",
        "ttfb.p99",
    ];
    assert_eq!(of["ceiling"], [&closed_loop[..], &["errors"]].concat());
    let further = ["corrected.p50", "corrected.p99", "corrected.p99.9", "achieved", "errors", "carried"];
    assert_eq!(of["rates"], [&closed_loop[..], &further].concat());
}

#[test]
fn a_percentile_that_the_answers_do_not_support_has_no_value() {
    let mut run = Run::new(one_cell(1, 2));
    run.measure("ceiling", 0, closed(20.0, 50.0));
    let judgement = run.judge();
    let repetition = &judgement.repetitions[0];
    assert_eq!(
        repetition.missing.get(&Metric::ServiceP99).map(String::as_str),
        Some("p99 needs at least 459 answers, there were 400")
    );
    assert!(repetition.values.contains_key(&Metric::ServiceP50));
}

#[test]
fn what_voids_nothing_is_remarked_all_the_same() {
    let mut run = Run::new(one_cell(2, 2));
    run.measure("ceiling", 0, closed(19_000.0, 50.0));
    let mut facts = closed(19_000.0, 50.0);
    facts.postgres = Some(journal::DatabaseFacts { checkpoints_requested: 1, ..journal::DatabaseFacts::default() });
    facts.host.foreign_cpu_ns = Some(8_400_000_000);
    facts.load.as_mut().expect("a load").reconnects = 12;
    facts.load.as_mut().expect("a load").streams[0].warm_up_failed = 3;
    facts.findings.push(journal::Finding { what: "foreign cpu".to_owned(), why: "one process vanished".to_owned() });
    run.measure("ceiling", 0, facts);
    let judgement = run.judge();
    assert_eq!(judgement.repetitions[0].remarks, [] as [String; 0]);
    assert!(judgement.repetitions[1].is_valid());
    assert_eq!(
        judgement.repetitions[1].remarks,
        [
            "a checkpoint ran within the window (0 timed, 1 requested)",
            "processes outside the study used 0.42 cores",
            "12 connections had to be opened again",
            "3 answers of the warm-up were not as expected",
            "foreign cpu: one process vanished",
        ]
    );
    let throughput = figure(&judgement, "ceiling", Metric::Throughput);
    assert!(throughput.notes.iter().any(|note| note == "a checkpoint ran within the window of 1 of the 2 repetitions"));
}

/// Without a gate on it the generator's limit voids nothing, and is said; with the gate the gate says it.
#[test]
fn a_generator_that_was_the_bottleneck_is_named_where_no_gate_voids_it() {
    let saturated: fn(&mut journal::RepetitionFacts) = |facts| {
        facts.load.as_mut().expect("a load").generator.by_thread[0].cpu_ns = Some(crate::bench::WINDOW_NS / 100 * 91);
    };
    let waited: fn(&mut journal::RepetitionFacts) = |facts| {
        let receive = facts.load.as_mut().expect("a load").generator.receive.as_mut().expect("timed answers");
        receive.queue = journal::Histogram::of([900_000; 100]);
    };
    let spoils = [
        (saturated, "the generator was the bottleneck: a thread of it was busy for 91 % of the window, more than 85 %"),
        (waited, "the generator was the bottleneck of the latencies: answers lay in the kernel for"),
    ];
    for (spoil, says) in spoils {
        let mut plan = one_cell(2, 2);
        plan.phases[0].gates.retain(|gate| !matches!(gate, plan::Gate::GeneratorBottleneck { .. }));
        let mut run = Run::new(plan);
        run.measure("ceiling", 0, closed(19_000.0, 50.0));
        let mut facts = closed(19_000.0, 50.0);
        spoil(&mut facts);
        run.measure("ceiling", 0, facts);
        let judgement = run.judge();
        assert_eq!(judgement.repetitions[0].remarks, [] as [String; 0]);
        assert!(judgement.repetitions[1].is_valid());
        let remarks = &judgement.repetitions[1].remarks;
        assert!(remarks.len() == 1 && remarks[0].starts_with(says), "{remarks:?}");
        let throughput = figure(&judgement, "ceiling", Metric::Throughput);
        let note = "the generator was the bottleneck in 1 of the 2 repetitions";
        assert!(throughput.notes.iter().any(|found| found == note), "{:?}", throughput.notes);
    }
}

/// A wake-up that is a large part of quick answers is said, with the gate and without it, and makes the generator no bottleneck.
#[test]
fn a_wake_up_is_said_and_is_no_bottleneck() {
    for has_gate in [true, false] {
        let mut plan = one_cell(2, 2);
        if !has_gate {
            plan.phases[0].gates.retain(|gate| !matches!(gate, plan::Gate::GeneratorBottleneck { .. }));
        }
        let mut run = Run::new(plan);
        run.measure("ceiling", 0, closed(19_000.0, 50.0));
        let mut facts = closed(19_000.0, 50.0);
        let receive = facts.load.as_mut().expect("a load").generator.receive.as_mut().expect("timed answers");
        receive.queue = journal::Histogram::of([15_000; 100]);
        receive.service = journal::Histogram::of([42_000; 100]);
        run.measure("ceiling", 0, facts);
        let judgement = run.judge();
        assert!(judgement.repetitions.iter().all(|judged| judged.is_valid()));
        let remarks = &judgement.repetitions[1].remarks;
        let says = "until the generator woke up and read them, 36 % of their service time (medians of 100 answers)";
        assert!(remarks.len() == 1 && remarks[0].ends_with(says), "{remarks:?}");
        let throughput = figure(&judgement, "ceiling", Metric::Throughput);
        assert!(throughput.notes.iter().all(|note| !note.contains("bottleneck")), "{:?}", throughput.notes);
    }
}

#[test]
fn a_candidate_that_stood_still_is_named_and_a_slow_one_is_not() {
    let mut run = Run::new(one_cell(2, 2));
    let silence = |for_ns| {
        let mut facts = closed(19_000.0, 50.0);
        let at_ns = facts.window.start_ns + 1_500_000_000;
        facts.load.as_mut().expect("a load").silences = vec![journal::Stall { at_ns, for_ns }];
        facts
    };
    // The median service time is 3.4 ms.
    run.measure("ceiling", 0, silence(12_000_000));
    run.measure("ceiling", 0, silence(200_000_000));
    let judgement = run.judge();
    assert_eq!(judgement.repetitions[0].remarks, [] as [String; 0]);
    assert_eq!(
        judgement.repetitions[1].remarks,
        [
            "the candidate stood still for 200 ms, 1.5 s into the window: requests were in flight, the generator was there, and nothing came"
        ]
    );
}
