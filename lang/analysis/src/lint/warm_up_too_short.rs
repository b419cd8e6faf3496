//! `warm-up-too-short`: a window that begins before the service is warm.

use plan::Procedure;
use syntax::{Applicability, Severity};

use super::{Findings, Lint, Look, info, mend};
use crate::value::units::as_duration;

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0714",
        "warm-up-too-short",
        Severity::Warning,
        "The window begins before pools are open, caches filled and code compiled.",
    ),
    page: include_str!("../../../../docs/lints/warm-up-too-short.md"),
    check,
};

/// Below this no pool of connections is surely open and no slow start over.
const LEAST_NS: u64 = 1_000_000_000;

fn check(look: &Look<'_>, findings: &mut Findings) {
    for (phase, item) in look.phases() {
        let Procedure::Load(load) = &phase.procedure else { continue };
        if load.warm_up_ns >= LEAST_NS {
            continue;
        }
        let Some(node) = item.child("load") else { continue };
        let at = node.setting("warm-up").map_or(&node.name_at, |valued| &valued.at);
        let warm_up = as_duration(i64::try_from(load.warm_up_ns).unwrap_or(i64::MAX));
        findings
            .add(
                at,
                &[item],
                format!("phase `{}` warms up for {warm_up}, so its window measures the start as well", phase.name),
            )
            .help("warm up for at least 1s, or as long as the service takes to reach its steady state")
            .fix(mend::set(node, "warm-up", "\"10s\"", Applicability::Unsafe));
    }
}
