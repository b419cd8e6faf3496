//! What levels of lints mean for the plan: what is accepted, and what is only warned of, is printed in the report's limits.

use crate::common::{around, host, memory};
use analysis::{Level, Options, analyse};
use syntax::SourceId;

/// The plan's limits of these lints: name and sentence.
fn limits(part: &str, levels: &[(&str, Level)]) -> Vec<String> {
    let levels = levels.iter().map(|(name, level)| ((*name).to_owned(), *level)).collect();
    let options = Options { host: Some(host()), levels, ..Options::default() };
    let analysed = analyse(&memory(&around(part)), &SourceId::new("study.kdl"), &options);
    let plan = analysed.plan.unwrap_or_else(|| panic!("{part}: {:?}", analysed.diagnostics));
    assert!(plan.limits.iter().all(|limit| limit.lowers_confidence), "{:?}", plan.limits);
    plan.limits.into_iter().map(|limit| format!("{}: {}", limit.name, limit.text)).collect()
}

/// A ceiling of one repetition, and a gate that can't fail: a lint that warns, and one that denies.
fn weak(more: &str) -> String {
    format!(
        "phase ceiling like=saturation {{\n    over candidate cores\n    gate generator-probe of=sweep.throughput\n    gate saturation drop=\"100%\"\n    repeat 1\n    {more}\n}}"
    )
}

const SINGLE: &str = "phase `ceiling` is published from one repetition per cell, which shows no spread";
const VACUOUS: &str = "gate `saturation` of phase `ceiling` can't fail: cores used may fall by 100 %";

#[test]
fn what_a_study_allows_is_a_limit_with_its_reason() {
    let allowed =
        weak("allow vacuous-gate reason=\"it is watched elsewhere\"; allow single-repetition reason=\"a smoke run\"");
    assert_eq!(
        limits(&allowed, &[]),
        [
            format!("vacuous-gate: Accepted, because it is watched elsewhere: {VACUOUS}."),
            format!("single-repetition: Accepted, because a smoke run: {SINGLE}."),
        ]
    );
}

#[test]
fn what_is_only_warned_of_is_a_limit_too() {
    assert_eq!(
        limits(&weak("warn vacuous-gate"), &[]),
        [
            format!("vacuous-gate: Warned and not accepted: {VACUOUS}."),
            format!("single-repetition: Warned and not accepted: {SINGLE}."),
        ]
    );
}

#[test]
fn what_the_command_line_allows_is_a_limit_that_says_so() {
    let both = [("vacuous-gate", Level::Allow), ("all", Level::Warn)];
    assert_eq!(
        limits(&weak(""), &both),
        [
            format!("vacuous-gate: Accepted, on the command line: {VACUOUS}."),
            format!("single-repetition: Warned and not accepted: {SINGLE}."),
        ]
    );
}
