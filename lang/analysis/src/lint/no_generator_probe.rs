//! `no-generator-probe`: a published ceiling that nobody checked to be the candidate's own.

use plan::{Gate, Metric, MetricRef, Phase};
use syntax::{Applicability, Fix, Severity};

use super::{Findings, Lint, Look, info, is_closed, mend};
use crate::lower::figures::maps;
use crate::resolve::Item;

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
                )
                .fix(probe(look, phase, item));
        }
    }
}

/// The gate: a probe at the throughput of an earlier closed loop whose cells say which value is meant, or else what the
/// generator says of itself.
fn probe(look: &Look<'_>, phase: &Phase, item: &Item) -> Option<Fix> {
    let own: Vec<&str> = phase.axes.iter().map(|axis| axis.factor.as_str()).collect();
    let mut earlier =
        look.plan.phases.iter().take_while(|other| other.name != phase.name).filter(|other| is_closed(other));
    let fitting = earlier.find(|other| {
        let of = MetricRef { phase: other.name.clone(), metric: Metric::Throughput };
        maps(&of, other, phase, &own).is_ok()
    });
    let gate = match (fitting, &look.plan.probe) {
        (Some(other), Some(_)) => format!("gate generator-probe of={}.throughput", other.name),
        _ => "gate generator-bottleneck".to_owned(),
    };
    mend::add_child(look, item, &gate, Applicability::Unsafe)
}
