//! `summed-rss`: memory of several processes, with every shared page counted once for each.

use syntax::{Applicability, Severity};

use super::{Findings, Lint, Look, info, mend};

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0719",
        "summed-rss",
        Severity::Error,
        "Memory is taken as a sum of resident set sizes, which counts a shared page once for every process.",
    ),
    page: include_str!("../../../../docs/lints/summed-rss.md"),
    check,
};

fn check(look: &Look<'_>, findings: &mut Findings) {
    for item in look.study.each("phase").filter(|item| !item.broken) {
        for estimate in item.each("estimate") {
            let Some(valued) = estimate.setting("counting").filter(|valued| valued.text() == Some("rss")) else {
                continue;
            };
            findings
                .add(
                    &valued.at,
                    &[item, estimate],
                    format!("phase `{}` counts memory as the sum of its processes' resident sets: what workers share with each other counts once for each of them", item.key),
                )
                .help("write `counting=pss`, which divides a shared page among those who share it")
                .never_allowed("resident sets are not summed")
                .fix(mend::set(estimate, "counting", "pss", Applicability::Safe));
        }
    }
}
