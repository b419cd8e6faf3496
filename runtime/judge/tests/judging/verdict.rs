//! Agreements, verdict and confidence.

use journal::{CaseOutcome, Event, Failure, RunEnd, StepEnd};
use judge::{AgreementCheck, ConfidenceLevel, VerdictKind, wanted};
use plan::{ContentHash, Level, Limit, Metric, Step, StepId, StepKind};

use crate::bench::{Run, capacity, closed, figure, one_cell, swept, whole, why};

#[test]
fn two_phases_that_disagree_void_both_figures() {
    let mut run = whole([5, 5, 4, 0], None);
    run.plan.agreements[0].within = 1e-9;
    assert_eq!(run.judge().agreements[0].cells[0].check, AgreementCheck::Agrees);
    let mut run = swept([closed(15_000.0, 50.0), closed(16_000.0, 50.0), closed(15_500.0, 50.0)]);
    for _ in 0..6 {
        run.measure("ceiling", 0, closed(19_000.0, 50.0));
    }
    let judgement = run.judge();
    let check = &judgement.agreements[0].cells[0];
    assert!(check.difference.is_some_and(|difference| (difference - 3.0 / 16.0).abs() < 1e-6), "{check:?}");
    assert!(matches!(check.check, AgreementCheck::Disagrees { .. }));
    assert!(why(figure(&judgement, "ceiling", Metric::Throughput)).contains("differ by 19 %, more than 5 %"));
    let chosen_pool = judgement.figures.iter().find(|figure| {
        figure.phase == "sweep"
            && figure.metric == Metric::Throughput
            && figure.cell.iter().any(|level| level.1 == "16")
    });
    assert!(why(chosen_pool.expect("the sweep's figure")).starts_with("withheld"));
    let other_pool = judgement.figures.iter().find(|figure| {
        figure.phase == "sweep" && figure.metric == Metric::Throughput && figure.cell.iter().any(|level| level.1 == "8")
    });
    assert!(other_pool.is_some_and(|figure| figure.value().is_some()), "other cells are not touched");
    assert_eq!(judgement.verdict.kind, VerdictKind::Void);
}

#[test]
fn an_agreement_that_a_profile_left_out_is_reported_as_not_checked() {
    let mut plan = capacity();
    plan.phases.truncate(2);
    plan.agreements[1].not_checked = Some("the phase `rates` is left out by the profile `smoke`".to_owned());
    let mut run = Run::new(plan);
    for (cell, rate) in [(0, 15_000.0), (1, 19_000.0), (2, 17_000.0)] {
        run.measure("sweep", cell, closed(rate, 50.0));
    }
    for _ in 0..6 {
        run.measure("ceiling", 0, closed(19_000.0, 50.0));
    }
    run.end();
    let judgement = run.judge();
    assert_eq!(judgement.verdict.kind, VerdictKind::PublishedWithLimits);
    assert_eq!(
        judgement.verdict.reasons,
        ["two-loops: not checked: the phase `rates` is left out by the profile `smoke`"]
    );
    assert!(judgement.confidence.reasons.iter().any(|reason| reason.starts_with("a single kind of loop")));
}

#[test]
fn a_candidate_that_fails_its_contract_has_no_figure() {
    let failed = vec![CaseOutcome { case: "no token".to_owned(), problem: Some("expected 401, came 200".to_owned()) }];
    let mut run = Run::new(one_cell(1, 2));
    run.push(Event::ContractChecked { candidate: "go".to_owned(), cases: failed });
    assert_eq!(wanted(&run.plan, "ceiling", &run.judge(), &run.evidence()), [] as [u32; 0]);
    run.measure("ceiling", 0, closed(19_000.0, 50.0));
    let judgement = run.judge();
    let contract = &judgement.repetitions[0].gates[0];
    assert!(!contract.passed && contract.gate == "contract", "{contract:?}");
    assert_eq!(
        why(figure(&judgement, "ceiling", Metric::Throughput)),
        "go failed its contract in 1 of 1 cases, `no token`: expected 401, came 200"
    );
    // Not checked at all is no better.
    let mut run = Run::new(one_cell(1, 2));
    run.records.truncate(1);
    run.measure("ceiling", 0, closed(19_000.0, 50.0));
    let judgement = run.judge();
    assert!(why(figure(&judgement, "ceiling", Metric::Throughput)).contains("contract 1"));
    assert!(judgement.repetitions[0].gates[0].sentence.contains("never checked against go"));
}

#[test]
fn a_candidate_that_is_not_measured_says_why_and_what_mends_it() {
    let mut plan = one_cell(1, 2);
    plan.phases[0].axes[0].levels.push(Level::Word("php".to_owned()));
    plan.phases[0].cells = crate::bench::cells("ceiling", &plan.phases[0].axes);
    let mut run = Run::new(plan);
    run.push(Event::NotMeasured {
        candidate: "php".to_owned(),
        why: "the image can't be pulled".to_owned(),
        mend: "exp doctor".to_owned(),
    });
    run.measure("ceiling", 0, closed(19_000.0, 50.0));
    run.end();
    assert_eq!(wanted(&run.plan, "ceiling", &run.judge(), &run.evidence()), [] as [u32; 0]);
    let judgement = run.judge();
    let php = judgement.figures.iter().find(|figure| figure.cell[0].1 == "php" && figure.metric == Metric::Throughput);
    assert_eq!(why(php.expect("a figure for it too")), "php is not measured: the image can't be pulled; exp doctor");
    assert_eq!(judgement.verdict.kind, VerdictKind::PublishedWithLimits);
    // All of them: void.
    run.push(Event::NotMeasured { candidate: "go".to_owned(), why: "no port".to_owned(), mend: String::new() });
    let judgement = run.judge();
    assert_eq!(judgement.verdict.kind, VerdictKind::Void);
    assert!(judgement.verdict.reasons.contains(&"no candidate could be judged".to_owned()));
    // A step that failed excludes as well, until it succeeds.
    let mut plan = one_cell(1, 2);
    plan.steps = vec![Step {
        id: StepId(0),
        kind: StepKind::PrepareCandidate { candidate: "go".to_owned() },
        needs: Vec::new(),
        hash: ContentHash::of_bytes(b"image"),
    }];
    let mut run = Run::new(plan);
    let failure = Failure { what: "the build failed".to_owned(), ..Failure::default() };
    run.push(Event::StepFinished { step: StepId(0), end: StepEnd::Failed(failure), took_ns: 1 });
    assert_eq!(run.evidence().excluded(&run.plan, "go").as_deref(), Some("go is not measured: the build failed"));
    run.push(Event::StepFinished { step: StepId(0), end: StepEnd::Done { detail: String::new() }, took_ns: 1 });
    assert_eq!(run.evidence().excluded(&run.plan, "go"), None);
}

#[test]
fn the_verdict_knows_how_the_run_ended() {
    for (end, says) in [
        (None, Some("the run has not ended")),
        (Some(RunEnd::Interrupted), Some("the run was interrupted")),
        (
            Some(RunEnd::Failed(Failure { what: "disk full".to_owned(), ..Failure::default() })),
            Some("the run failed: disk full"),
        ),
        (Some(RunEnd::Completed), None),
    ] {
        let mut run = Run::new(one_cell(1, 2));
        run.measure("ceiling", 0, closed(19_000.0, 50.0));
        if let Some(end) = end {
            run.push(Event::RunEnded { end });
        }
        let verdict = run.judge().verdict;
        match says {
            None => assert_eq!(verdict.kind, VerdictKind::Published, "{verdict:?}"),
            Some(says) => {
                assert_eq!(verdict.kind, VerdictKind::PublishedWithLimits);
                assert!(verdict.reasons[0].starts_with(says), "{verdict:?}");
            }
        }
    }
}

#[test]
fn confidence_is_derived_with_its_reasons() {
    let reasons = |spoil: fn(&mut Run)| {
        let mut run = whole([5, 5, 4, 0], None);
        spoil(&mut run);
        run.judge().confidence
    };
    let base = reasons(|_| {});
    assert_eq!((base.level, &base.reasons), (ConfidenceLevel::High, &Vec::new()));
    type Spoil = fn(&mut Run);
    let cases: [(Spoil, &str); 4] = [
        (
            |run| {
                run.plan.limits.push(Limit {
                    name: "cpus-shared".to_owned(),
                    text: "database and load share CPU 1".to_owned(),
                    lowers_confidence: true,
                });
            },
            "database and load share CPU 1",
        ),
        (|run| run.plan.machine.load = "2".parse().expect("a set"), "roles share CPU 2"),
        (
            |run| {
                let Event::RunStarted { environment, .. } = &mut run.records[0].event else {
                    panic!("the first event")
                };
                environment.virtual_machine = true;
            },
            "a hypervisor is beneath",
        ),
        (|run| run.records[0].event = Event::RunEnded { end: RunEnd::Completed }, "nobody recorded where it ran"),
    ];
    for (spoil, says) in cases {
        let lowered = reasons(spoil);
        assert!(!base.reasons.iter().any(|reason| reason.starts_with(says)), "{base:?}");
        assert!(lowered.reasons.iter().any(|reason| reason.starts_with(says)), "{lowered:?}");
        assert_eq!(lowered.level, ConfidenceLevel::Medium, "{lowered:?}");
    }
}

#[test]
fn one_reason_is_said_once() {
    let mut plan = one_cell(2, 2);
    plan.phases[0].axes[0].levels.push(Level::Word("php".to_owned()));
    plan.phases[0].cells = crate::bench::cells("ceiling", &plan.phases[0].axes);
    for metric in [Metric::CpuPerRequest, Metric::CoresUsed] {
        plan.phases[0].estimates.push(plan::Estimate { metric, by: plan::Estimator::Median });
    }
    let mut run = Run::new(plan);
    run.push(Event::NotMeasured { candidate: "php".to_owned(), why: "no image".to_owned(), mend: String::new() });
    run.measure("ceiling", 0, closed(19_000.0, 50.0));
    run.fail("ceiling", 0, "the candidate was never ready");
    run.end();
    assert_eq!(
        run.judge().verdict.reasons,
        [
            "no figure is determined",
            "php is not measured: no image",
            "ceiling.throughput (and cpu-per-request, cores-used) are not determined for candidate go, cores 1: \
             1 of 2 valid repetitions; of 2 that ended, 1 is void: not measurable 1",
        ]
    );
}

#[test]
fn cells_that_lack_the_same_are_named_together() {
    let mut plan = one_cell(2, 2);
    plan.phases[0].axes[1].levels = [1, 2].map(Level::Integer).to_vec();
    plan.phases[0].cells = crate::bench::cells("ceiling", &plan.phases[0].axes);
    let mut sweep = plan.phases[0].clone();
    sweep.name = "sweep".to_owned();
    sweep.estimates.clear();
    plan.phases.push(sweep);
    plan.agreements = vec![plan::Agreement {
        name: "two-phases".to_owned(),
        left: crate::bench::metric("ceiling", Metric::Throughput),
        right: crate::bench::metric("sweep", Metric::Throughput),
        within: 0.05,
        not_checked: None,
    }];
    let mut run = Run::new(plan);
    run.end();
    assert_eq!(
        run.judge().verdict.reasons,
        [
            "no figure is determined",
            "two-phases: not checked for candidate go, cores 1; candidate go, cores 2: ceiling.throughput is not determined",
            "ceiling.throughput is not determined for candidate go, cores 1; candidate go, cores 2: nothing was measured here",
        ]
    );
}

#[test]
fn a_cpu_that_was_never_quiet_is_told_by_another_one() {
    let mut run = Run::new(one_cell(1, 1));
    let mut facts = closed(19_000.0, 50.0);
    facts.pace.get_mut(&0).expect("samples").samples = journal::Histogram::of([crate::bench::SLOWED_NS; 4_000]);
    run.measure("ceiling", 0, facts);
    let judgement = run.judge();
    let says = "the quiet time of CPU 0 is 27.97 µs, that of CPU 1 16.96 µs: CPU 0 is a core of another kind, or was never quiet \
                in this run";
    assert_eq!(judgement.limits, [says]);
    assert!(judgement.confidence.reasons.iter().any(|reason| reason == says));
}

#[test]
fn a_figure_of_the_sweep_alone_does_not_answer_a_question_about_the_ceiling() {
    let mut run = swept([closed(15_000.0, 50.0), closed(19_000.0, 50.0), closed(17_000.0, 50.0)]);
    run.plan.report.items = vec![plan::ReportItem::Table {
        title: "Ceiling".to_owned(),
        of: plan::MetricRef { phase: "ceiling".to_owned(), metric: Metric::Throughput },
        rows: "candidate".to_owned(),
        columns: None,
    }];
    run.end();
    let judgement = run.judge();
    assert!(judgement.figures.iter().any(|figure| figure.phase == "sweep" && figure.value().is_some()));
    assert_eq!(judgement.verdict.kind, VerdictKind::Void);
    assert!(judgement.verdict.reasons[0].starts_with("no figure of a candidate that the report shows is determined"));
    for _ in 0..6 {
        run.measure("ceiling", 0, closed(19_000.0, 50.0));
    }
    run.end();
    assert_ne!(run.judge().verdict.kind, VerdictKind::Void, "{:?}", run.judge().verdict.reasons);
}
