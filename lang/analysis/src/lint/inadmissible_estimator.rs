//! `inadmissible-estimator`: a value made in a way that its metric does not allow.

use plan::{Estimator, Gate, Metric};
use syntax::{Applicability, Severity};

use super::{Findings, Lint, Look, info, mend};

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0705",
        "inadmissible-estimator",
        Severity::Error,
        "An estimator does not fit its metric: best of a latency, best without a validity gate, a majority of an even number of votes.",
    ),
    page: include_str!("../../../../docs/lints/inadmissible-estimator.md"),
    check,
};

fn check(look: &Look<'_>, findings: &mut Findings) {
    for (phase, item) in look.phases() {
        for estimate in &phase.estimates {
            let name = estimate.metric.name();
            let Some(node) = item.keyed("estimate", name) else { continue };
            let at = node.setting("by").map_or(&node.name_at, |valued| &valued.at);
            let best = matches!(estimate.by, Estimator::Best | Estimator::BestOfValid);
            let more_is_better = matches!(estimate.metric, Metric::Throughput | Metric::Tps | Metric::CoresUsed);
            if best && !more_is_better {
                findings
                    .add(
                        at,
                        &[item, node],
                        format!("the best `{name}` of several says what luck can do, not what the service does"),
                    )
                    .help("estimate it `by=median`")
                    .fix(mend::set(node, "by", "median", Applicability::Unsafe));
                continue;
            }
            let guarded = phase.gates.iter().any(|gate| {
                matches!(gate, Gate::ServiceDemand { .. } | Gate::Saturation { .. } | Gate::Pace { .. } | Gate::Census)
            });
            if estimate.by == Estimator::BestOfValid && !guarded {
                findings
                    .add(
                        at,
                        &[item, node],
                        format!(
                            "phase `{}` takes the best valid `{name}`, and no gate could call a repetition invalid",
                            phase.name
                        ),
                    )
                    .help("add `gate census` and `gate service-demand`, or estimate it `by=median`")
                    .fix(mend::set(node, "by", "median", Applicability::Unsafe));
                continue;
            }
            if estimate.by == Estimator::Majority && !is_voted_on(estimate.metric) {
                findings
                    .add(at, &[item, node], format!("`{name}` is a quantity and can't be voted on"))
                    .help("estimate it `by=median`; `majority` is for `carried`")
                    .fix(mend::set(node, "by", "median", Applicability::Unsafe));
                continue;
            }
            if is_voted_on(estimate.metric) && estimate.by != Estimator::Majority {
                findings
                    .add(
                        at,
                        &[item, node],
                        format!("`{name}` is a yes or no per repetition, and has no {}", estimate.by.name()),
                    )
                    .help("estimate it `by=majority`")
                    .fix(mend::set(node, "by", "majority", Applicability::Safe));
                continue;
            }
            if estimate.by == Estimator::Majority && phase.repeat.valid.is_multiple_of(2) {
                let place = item.child("repeat").map_or(at, |repeat| &repeat.name_at);
                findings
                    .add(at, &[item, node], format!("a majority of {} votes can be a tie", phase.repeat.valid))
                    .also(place, "an even number of repetitions")
                    .help(format!("write `repeat {}`", phase.repeat.valid + 1))
                    .fix(item.child("repeat").and_then(|repeat| {
                        mend::argument(repeat, &(phase.repeat.valid + 1).to_string(), Applicability::Unsafe)
                    }));
            }
        }
    }
}

/// Whether the metric is made of votes.
fn is_voted_on(metric: Metric) -> bool {
    matches!(metric, Metric::Carried | Metric::Demand)
}
