//! `unmeasured-report`: a report of which nothing is left, because what it reads is not measured.

use syntax::Severity;

use super::{Findings, Lint, Look, info};

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0722",
        "unmeasured-report",
        Severity::Warning,
        "The report's items read phases that are not measured, so that none of them is left.",
    ),
    page: include_str!("../../../../docs/lints/unmeasured-report.md"),
    check,
};

fn check(look: &Look<'_>, findings: &mut Findings) {
    let Some(report) = look.study.only("report").filter(|report| !report.broken && !look.has_errors) else { return };
    let items: Vec<_> = report.children.iter().filter(|item| crate::schema::level(item.kind()).is_none()).collect();
    if items.is_empty() || !look.plan.report.items.is_empty() {
        return;
    }
    let profile = look.plan.profile.as_deref().unwrap_or_default();
    let phases: Vec<&str> = look.plan.phases.iter().map(|phase| phase.name.as_str()).collect();
    findings
        .add(
            &report.name_at,
            &[report],
            format!(
                "profile `{profile}` leaves out every phase that the report reads, so {} reported",
                match items.len() {
                    1 => "its one item is not".to_owned(),
                    count => format!("none of its {count} items is"),
                }
            ),
        )
        .help(match phases.is_empty() {
            true => "keep one of the phases in the profile".to_owned(),
            false => format!("add an item to the report that reads {}", crate::names::listed(phases)),
        });
}
