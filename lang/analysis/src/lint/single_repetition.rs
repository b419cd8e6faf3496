//! `single-repetition`: a published value that was seen once.

use syntax::{Applicability, Severity};

use super::{Findings, Lint, Look, info, mend};

/// The lint.
pub const LINT: Lint = Lint {
    info: info("W0704", "single-repetition", Severity::Warning, "A published cell has one repetition."),
    page: include_str!("../../../../docs/lints/single-repetition.md"),
    check,
};

fn check(look: &Look<'_>, findings: &mut Findings) {
    for (phase, item) in look.phases() {
        if phase.repeat.valid > 1 || !look.reports(&phase.name, |_| true) {
            continue;
        }
        let at = item.child("repeat").map_or(&item.name_at, |repeat| &repeat.name_at);
        findings
            .add(
                at,
                &[item],
                format!("phase `{}` is published from one repetition per cell, which shows no spread", phase.name),
            )
            .help("write `repeat 6`: six give a 95 % interval for a median, fewer don't")
            .fix(item.child("repeat").and_then(|repeat| mend::argument(repeat, "6", Applicability::Unsafe)));
    }
}
