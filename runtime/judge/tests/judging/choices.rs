//! Choices: the best level, the worst one's cost, disturbed levels, nothing usable.

use judge::{ChoiceOutcome, Chosen, Judgement, levels};

use crate::bench::{capacity, closed, slow, swept};

fn choice(judgement: &Judgement) -> &ChoiceOutcome {
    &judgement.choices[0]
}

#[test]
fn a_choice_takes_the_best_level_and_names_what_the_worst_costs() {
    let judgement = swept([closed(15_000.0, 50.0), closed(19_000.0, 50.0), closed(17_000.0, 50.0)]).judge();
    let choice = choice(&judgement);
    assert_eq!(choice.outcome, Chosen::Level("16".to_owned()));
    assert_eq!((&choice.provisional, &choice.not_bracketed), (&None, &None));
    let worst = choice.worst.as_ref().expect("three levels");
    assert_eq!((worst.level.as_str(), worst.base.as_str()), ("8", "of the best, pool 16"));
    assert!((worst.cost_of_best - 4.0 / 19.0).abs() < 1e-6);
    assert_eq!(judgement.limits, Vec::<String>::new());
}

#[test]
fn a_winner_at_the_edge_is_not_bracketed() {
    let judgement = swept([closed(15_000.0, 50.0), closed(17_000.0, 50.0), closed(19_000.0, 50.0)]).judge();
    let choice = choice(&judgement);
    assert_eq!(
        choice.not_bracketed.as_deref(),
        Some("optimum not bracketed: pool 32 is the last level that was tried")
    );
    assert!(judgement.limits[0].contains("not bracketed"), "{:?}", judgement.limits);
}

#[test]
fn disturbed_levels_are_compared_at_quiet_pace_and_the_choice_is_provisional() {
    // Raw, 8 looks best; its CPU was quiet, the others' were not.
    let mut middle = closed(19_000.0, 50.0);
    slow(&mut middle, 0.2);
    let mut last = closed(17_000.0, 50.0);
    slow(&mut last, 0.3);
    let judgement = swept([closed(15_000.0, 50.0), middle, last]).judge();
    let choice = choice(&judgement);
    assert_eq!(choice.outcome, Chosen::Level("16".to_owned()), "{choice:?}");
    assert_eq!(choice.basis, "throughput ÷ pace ÷ (1 − steal)");
    assert!(choice.provisional.as_ref().is_some_and(|why| why.starts_with("no valid repetition at 16, 32")));
    assert!(judgement.limits.iter().any(|limit| limit.contains("chosen provisionally")));
    assert_eq!(levels(&capacity(), "ceiling", 0, &judgement).map(|levels| levels["pool"].clone()), Ok("16".to_owned()));
}

#[test]
fn a_choice_without_anything_usable_is_an_error_that_says_why() {
    let wrong = || {
        let mut facts = closed(19_000.0, 50.0);
        facts.load.as_mut().expect("a load").streams[0].census.failed = 1;
        facts
    };
    let run = swept([wrong(), wrong(), wrong()]);
    let judgement = run.judge();
    let error = levels(&run.plan, "ceiling", 0, &judgement).expect_err("nothing to choose from");
    assert!(error.contains("`sweep` could choose no `pool`") && error.contains("census 3"), "{error}");
    assert!(matches!(choice(&judgement).outcome, Chosen::None { .. }));
    assert!(
        judgement.verdict.reasons.iter().any(|reason| reason.starts_with("sweep: no pool for candidate go, cores 1"))
    );
    // One usable level is chosen, provisionally.
    let judgement = swept([wrong(), closed(19_000.0, 50.0), wrong()]).judge();
    assert_eq!(choice(&judgement).outcome, Chosen::Level("16".to_owned()));
    assert!(choice(&judgement).provisional.as_ref().is_some_and(|why| why.contains("nothing usable at 8, 32")));
}

#[test]
fn a_level_at_which_the_bench_was_the_limit_is_the_last_resort() {
    let limited = |rate| {
        let mut facts = closed(rate, 50.0);
        for stream in &mut facts.load.as_mut().expect("a load").streams {
            stream.service.sum_ns = stream.service.sum_ns * 9 / 10;
        }
        facts
    };
    let judgement = swept([limited(15_000.0), limited(19_000.0), limited(17_000.0)]).judge();
    assert_eq!(choice(&judgement).outcome, Chosen::Level("16".to_owned()));
    let why = choice(&judgement).provisional.as_deref().expect("provisional");
    assert!(why.ends_with("the bench was the limit at 8, 16, 32"), "{why}");
}
