//! `unreported-phase`: a phase whose measurements nobody reads.

use syntax::Severity;

use super::{Findings, Lint, Look, info};

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0715",
        "unreported-phase",
        Severity::Warning,
        "A phase is measured, and neither the report nor another phase nor an agreement reads it.",
    ),
    page: include_str!("../../../../docs/lints/unreported-phase.md"),
    check,
};

fn check(look: &Look<'_>, findings: &mut Findings) {
    // In a study with errors the line that reads it may be the broken one.
    if look.has_errors {
        return;
    }
    for (phase, item) in look.phases() {
        let name = &phase.name;
        let read = look.reports(name, |_| true)
            || look.plan.phases.iter().any(|other| other.reads.contains(name))
            || look
                .plan
                .agreements
                .iter()
                .any(|agreement| agreement.left.phase == *name || agreement.right.phase == *name);
        if !read {
            let at = item.args.first().map_or(&item.name_at, |valued| &valued.at);
            findings
                .add(at, &[item], format!("phase `{name}` is measured and nothing reads it"))
                .help("put one of its figures into the report, or remove the phase");
        }
    }
}
