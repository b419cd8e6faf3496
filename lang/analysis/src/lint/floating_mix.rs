//! `floating-mix`: a mix of streams that nothing holds together.

use plan::{Gate, Procedure};
use syntax::{Applicability, Severity};

use super::{Findings, Lint, Look, info, is_closed, mend};

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0718",
        "floating-mix",
        Severity::Error,
        "Streams have connections of their own, so each runs at its own pace, or nothing checks the mix that was sent.",
    ),
    page: include_str!("../../../../docs/lints/floating-mix.md"),
    check,
};

fn check(look: &Look<'_>, findings: &mut Findings) {
    for workload in look.study.each("workload").filter(|item| !item.broken) {
        for stream in workload.each("stream") {
            let Some(valued) = stream.setting("connections") else { continue };
            let message = format!(
                "stream `{}` has {} connections of its own: in a closed loop each stream then runs as fast as its own answers come, whatever the shares say",
                stream.key, valued.written
            );
            findings
                .add(&valued.at, &[workload, stream], message)
                .help("give the phase's `load` the connections: it draws the stream of every request, so the mix holds")
                .never_allowed("streams share the connections of their load")
                .fix(mend::without_property(look, stream, "connections"));
        }
    }
    for (phase, item) in look.phases().filter(|(phase, _)| is_closed(phase)) {
        let Procedure::Load(load) = &phase.procedure else { continue };
        let streams = look.plan.workload(&load.workload).map_or(0, |workload| workload.streams.len());
        let checked = phase.gates.iter().any(|gate| matches!(gate, Gate::Mix { .. }));
        if streams > 1 && !checked {
            findings
                .add(
                    &item.name_at,
                    &[item],
                    format!("phase `{}` sends {streams} streams, and no gate checks that their mix held", phase.name),
                )
                .severity(Severity::Warning)
                .help("write `gate mix`: where one stream's answers fail or stop, the rest is another workload")
                .fix(mend::add_child(look, item, "gate mix", Applicability::Unsafe));
        }
    }
}
