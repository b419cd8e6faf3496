//! `unbracketed-optimum`: a choice among levels that can't show that it is the best.

use syntax::Severity;

use super::{Findings, Lint, Look, info};

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0707",
        "unbracketed-optimum",
        Severity::Warning,
        "A sweep's levels leave room for the optimum to lie outside.",
    ),
    page: include_str!("../../../../docs/lints/unbracketed-optimum.md"),
    check,
};

fn check(look: &Look<'_>, findings: &mut Findings) {
    for (phase, item) in look.phases() {
        let Some(choice) = &phase.choose else { continue };
        let Some(axis) = phase.axes.iter().find(|axis| axis.factor == choice.factor) else { continue };
        if axis.levels.len() >= 3 {
            continue;
        }
        let at = item.child("choose").map_or(&item.name_at, |choose| &choose.name_at);
        let levels: Vec<String> = axis.levels.iter().map(ToString::to_string).collect();
        findings
            .add(
                at,
                &[item],
                format!(
                    "phase `{}` chooses `{}` among {}: whichever wins lies at an edge, and a better one may lie beyond",
                    phase.name,
                    choice.factor,
                    levels.join(" and ")
                ),
            )
            .help("give the factor at least three levels, so that the winner can have neighbours on both sides");
    }
}
