//! `unreachable-budget`: a plan that takes longer than the study may.

use syntax::Severity;

use super::{Findings, Lint, Look, info};
use crate::outlook::outlook;
use crate::value::units::as_duration;

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0720",
        "unreachable-budget",
        Severity::Error,
        "The plan's estimated duration exceeds the study's declared budget.",
    ),
    page: include_str!("../../../../docs/lints/unreachable-budget.md"),
    check,
};

fn check(look: &Look<'_>, findings: &mut Findings) {
    let (Some(item), Some(budget)) = (look.study.only("study"), look.plan.budget_ns) else { return };
    let Some(valued) = item.setting("budget").filter(|_| !look.has_errors) else { return };
    let outlook = outlook(look.plan);
    if outlook.seconds <= budget as f64 / 1e9 {
        return;
    }
    let shown = |seconds: f64| as_duration((seconds.ceil() as i64).saturating_mul(1_000_000_000));
    let longest = outlook.phases.iter().max_by(|left, right| left.seconds.total_cmp(&right.seconds));
    let longest = longest.map_or_else(String::new, |phase| {
        format!("; most of it is phase `{}`: {} repetitions, {}", phase.phase, phase.repetitions, shown(phase.seconds))
    });
    findings
        .add(
            &valued.at,
            &[item],
            format!(
                "the study takes about {} ({} repetitions; {} where all may be measured again), and its budget is {}{longest}",
                shown(outlook.seconds),
                outlook.repetitions,
                shown(outlook.seconds_at_most),
                as_duration(i64::try_from(budget).unwrap_or(i64::MAX))
            ),
        )
        .help("vary fewer levels, repeat less, shorten windows, or raise the budget");
}
