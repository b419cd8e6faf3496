//! `no-generator-probe`: a published ceiling that nobody checked to be the candidate's own.

use plan::{Gate, Metric};
use syntax::Severity;

use super::{Findings, Lint, Look, info, is_closed};

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0702",
        "no-generator-probe",
        Severity::Warning,
        "A saturation phase has no gate that would notice the generator being the limit.",
    ),
    page: include_str!("../../../../docs/lints/no-generator-probe.md"),
    check,
};

fn check(look: &Look<'_>, findings: &mut Findings) {
    for (phase, item) in look.phases().filter(|(phase, _)| is_closed(phase)) {
        let published = look.reports(&phase.name, |metric| matches!(metric, Metric::Throughput));
        let probed = phase
            .gates
            .iter()
            .any(|gate| matches!(gate, Gate::GeneratorProbe { .. } | Gate::GeneratorBottleneck { .. }));
        if published && !probed {
            findings
                .add(
                    &item.name_at,
                    &[item],
                    format!(
                        "phase `{}` publishes a ceiling and would not notice the generator being the limit",
                        phase.name
                    ),
                )
                .help(
                    "write `gate generator-probe of=PHASE.throughput`, with an earlier phase's throughput, or `gate generator-bottleneck`",
                );
        }
    }
}
