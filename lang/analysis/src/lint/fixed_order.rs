//! `fixed-order`: candidates that are never interleaved, so that drift looks like a difference.

use plan::Order;
use syntax::{Applicability, Severity};

use super::{Findings, Lint, Look, info, mend};

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0712",
        "fixed-order",
        Severity::Warning,
        "Cells of different candidates are measured one after the other: drift of the machine looks like a difference.",
    ),
    page: include_str!("../../../../docs/lints/fixed-order.md"),
    check,
};

fn check(look: &Look<'_>, findings: &mut Findings) {
    for (phase, item) in look.phases() {
        if phase.repeat.order != Order::Listed || phase.cells.len() < 2 {
            continue;
        }
        let at = item
            .child("repeat")
            .map(|repeat| repeat.setting("order").map_or(&repeat.name_at, |valued| &valued.at))
            .unwrap_or(&item.name_at);
        findings
            .add(at, &[item], format!("phase `{}` measures all repetitions of a cell in a row: a slow quarter of an hour becomes a slow cell", phase.name))
            .help("write `order=blocks`: every block measures each cell once, in a random order")
            .fix(item.child("repeat").and_then(|repeat| mend::set(repeat, "order", "blocks", Applicability::Safe)));
    }
}
