//! `open-loop-alone`: a capacity that only one kind of loop has seen.

use plan::Metric;
use syntax::Severity;

use super::{Findings, Lint, Look, info, is_closed, is_open};

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0706",
        "open-loop-alone",
        Severity::Warning,
        "A capacity comes from an open loop only, and no agreement checks it against a closed one.",
    ),
    page: include_str!("../../../../docs/lints/open-loop-alone.md"),
    check,
};

fn check(look: &Look<'_>, findings: &mut Findings) {
    let capacity = |metric: Metric| matches!(metric, Metric::Carried | Metric::Throughput);
    for (phase, item) in look.phases().filter(|(phase, _)| is_open(phase)) {
        if !look.reports(&phase.name, capacity) {
            continue;
        }
        let checked =
            look.plan.agreements.iter().filter(|agreement| agreement.not_checked.is_none()).any(|agreement| {
                let other = if agreement.left.phase == phase.name {
                    &agreement.right.phase
                } else if agreement.right.phase == phase.name {
                    &agreement.left.phase
                } else {
                    return false;
                };
                look.plan.phase(other).is_some_and(is_closed)
            });
        if !checked {
            findings
                .add(
                    &item.name_at,
                    &[item],
                    format!(
                        "the capacity of phase `{}` comes from an open loop alone, and no closed loop checks it",
                        phase.name
                    ),
                )
                .help("write an `agreement` between it and the throughput of a closed loop");
        }
    }
}
