//! Carried rates: the relevant lower bound, inversions, and grids that show nothing.

use judge::{AgreementCheck, ConfidenceLevel, Outcome, VerdictKind};
use plan::Metric;

use crate::bench::{figure, open, whole, why};

#[test]
fn the_relevant_lower_bound_is_below_the_first_rate_that_was_not_carried() {
    let judgement = whole([5, 5, 4, 0], None).judge();
    let carried = figure(&judgement, "rates", Metric::Carried);
    assert!(
        matches!(carried.outcome, Outcome::Determined { value, interval: Some((low, high)), .. }
        if (value - 17_100.0).abs() < 1.0 && low == value && (high - 19_950.0).abs() < 1.0),
        "{carried:?}"
    );
    assert_eq!(carried.cell, [("candidate".to_owned(), "go".to_owned()), ("cores".to_owned(), "1".to_owned())]);
    assert_eq!((carried.valid, carried.void, &carried.bound), (20, 0, &None));
    assert_eq!(carried.notes[0], "carried at 5,700/s: 5 of 5, 11,400/s: 5 of 5, 17,100/s: 4 of 5, 19,950/s: 0 of 5");
    assert_eq!(carried.notes[1], "first not carried: 19,950/s: 0 of 5");
    assert_eq!(judgement.verdict.kind, VerdictKind::Published, "{:?}", judgement.verdict);
    assert_eq!(judgement.agreements[1].cells[0].check, AgreementCheck::Agrees);
    assert_eq!(judgement.confidence.level, ConfidenceLevel::High, "{:?}", judgement.confidence);
}

#[test]
fn a_fluke_above_a_failed_rate_is_listed_and_not_the_bound() {
    let judgement = whole([5, 1, 4, 0], None).judge();
    let carried = figure(&judgement, "rates", Metric::Carried);
    // 5,700 against a ceiling of 19,000: the second loop does not agree, and both are withheld.
    assert!(
        why(carried)
            .starts_with("withheld: two-loops: ceiling.throughput 19,000/s and rates.carried 5,700/s differ by 233 %"),
        "{}",
        why(carried)
    );
    assert!(
        carried
            .notes
            .iter()
            .any(|note| note == "inverted: 11,400/s was carried in 20 % of its repetitions and 17,100/s in 80 %")
    );
    assert!(why(figure(&judgement, "ceiling", Metric::Throughput)).starts_with("withheld: two-loops"));
    assert_eq!((judgement.verdict.kind, judgement.confidence.level), (VerdictKind::Void, ConfidenceLevel::Low));
}

#[test]
fn a_grid_that_carries_nothing_or_everything_says_so() {
    let judgement = whole([2, 0, 0, 0], None).judge();
    let carried = figure(&judgement, "rates", Metric::Carried);
    assert_eq!(why(carried), "no rate of the grid was carried: already the lowest, 5,700/s: 2 of 5");
    let two_loops = &judgement.agreements[1].cells[0].check;
    assert!(
        matches!(two_loops, AgreementCheck::NotChecked { why } if why.contains("no rate of the grid")),
        "{two_loops:?}"
    );
    assert_eq!(judgement.verdict.kind, VerdictKind::PublishedWithLimits);

    let judgement = whole([5, 5, 5, 5], None).judge();
    let carried = figure(&judgement, "rates", Metric::Carried);
    assert!((carried.value().expect("a floor") - 19_950.0).abs() < 1.0);
    assert_eq!(carried.bound.as_deref(), Some("a floor: every rate of the grid was carried"));

    let judgement = whole([5, 5, 5, 0], Some(1)).judge();
    let carried = figure(&judgement, "rates", Metric::Carried);
    assert!(carried.notes[0].contains("17,100/s: 5 of 5"), "{:?}", carried.notes);
    assert!(why(carried).contains("withheld"), "a floor of 5,700/s is far below the ceiling: {}", why(carried));
    assert!(
        carried
            .bound
            .as_ref()
            .is_some_and(|bound| bound.starts_with("a floor: the next rate, 11,400/s, is not determined (0 of 5"))
    );
}

#[test]
fn a_rate_that_overloads_the_candidate_is_not_carried_rather_than_void() {
    let mut run = whole([5, 5, 4, 0], None);
    run.plan.phases[2].repeat.at_most = 20;
    for _ in 0..5 {
        let mut facts = open(19_950.0, 3_000_000);
        for stream in &mut facts.load.as_mut().expect("a load").streams {
            stream.service.sum_ns = u128::from(stream.service.count) * 12_500_000;
            stream.census.ok -= 100;
            stream.census.unsent = 100;
        }
        run.measure("rates", 3, facts);
    }
    let judgement = run.judge();
    let last = judgement.repetitions.last().expect("measured");
    // Its conditions hold for the answers that came; what never came was not carried.
    assert!(last.is_valid() && last.conditions.iter().all(|condition| condition.held), "{last:?}");
    assert_eq!(last.carried, Some(false));
    let carried = figure(&judgement, "rates", Metric::Carried);
    assert!(carried.notes[0].ends_with("19,950/s: 0 of 10"), "{:?}", carried.notes);
}

#[test]
fn a_response_that_is_not_monotone_beyond_chance_has_no_boundary() {
    let judgement = whole([5, 0, 5, 0], None).judge();
    let carried = figure(&judgement, "rates", Metric::Carried);
    assert!(
        why(carried).starts_with("the response to the rate is not monotone: 11,400/s was carried in 0 %"),
        "{}",
        why(carried)
    );
    let within = whole([4, 5, 5, 0], None).judge();
    assert!(figure(&within, "rates", Metric::Carried).value().is_some());
}

#[test]
fn a_latency_cliff_is_named() {
    let judgement = whole([5, 5, 4, 0], None).judge();
    let of = |carried| {
        let repetition = judgement.repetitions.iter().find(|repetition| repetition.carried == Some(carried));
        repetition.expect("one of each").remarks.clone()
    };
    assert_eq!(
        of(false),
        [
            "the rate was delivered, yet corrected p99 is 40 ms beside a service p99 of 1 ms: a backlog after a stall, not slow answers"
        ]
    );
    assert_eq!(of(true), [] as [String; 0]);
}
