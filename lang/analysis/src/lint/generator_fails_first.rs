//! `generator-fails-first`: a load that the host's generator can't hold.

use plan::phase::Comparison;
use plan::{Level, LoadProcedure, Phase, Procedure, Rate};
use syntax::{Applicability, Severity};

use super::{Findings, Lint, Look, info, mend};
use crate::host::Host;
use crate::resolve::Item;

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0713",
        "generator-fails-first",
        Severity::Error,
        "Connections or rate exceed what the load role can hold: open files, ephemeral ports, or connections for its own rate.",
    ),
    page: include_str!("../../../../docs/lints/generator-fails-first.md"),
    check,
};

/// Descriptors that the generator needs beside its connections.
const OTHER_FILES: u64 = 64;

/// Seconds for which the kernel keeps the port of a connection that it closed (TIME_WAIT). On loopback it may give it out
/// again after one second (`net.ipv4.tcp_tw_reuse`).
const TIME_WAIT_S: f64 = 60.0;

fn check(look: &Look<'_>, findings: &mut Findings) {
    for (phase, item) in look.phases() {
        let Procedure::Load(load) = &phase.procedure else { continue };
        slips(phase, item, load, findings);
        let Some(host) = look.host else { continue };
        new_connections(phase, item, load, host, findings);
        let connections = u64::from(load.connections);
        let at =
            item.child("load").and_then(|load| load.setting("connections")).map_or(&item.name_at, |valued| &valued.at);
        if let Some(files) = host.open_files
            && connections + OTHER_FILES > files
        {
            findings
                .add(
                    at,
                    &[item],
                    format!(
                        "{connections} connections need {} open files ({connections} + {OTHER_FILES}), and {} allows a process {files}",
                        connections + OTHER_FILES,
                        host.called()
                    ),
                )
                .help(format!("raise the limit (`ulimit -n {}`), or lower `connections`", connections + OTHER_FILES));
        }
        if let Some((ports, first, last)) = host.ports()
            && connections > ports
        {
            let message = format!(
                "{connections} connections need as many local ports, and {} has {ports} ({first}–{last})",
                host.called()
            );
            findings.add(at, &[item], message).help("widen net.ipv4.ip_local_port_range, or lower `connections`");
        }
    }
}

/// The highest rate of the phase, where it is known before the run.
fn highest_rate(phase: &Phase, load: &LoadProcedure) -> Option<f64> {
    match load.rate.as_ref()? {
        Rate::PerSecond(rate) => Some(*rate),
        Rate::Factor(factor) => phase
            .axes
            .iter()
            .filter(|axis| axis.factor == *factor)
            .flat_map(|axis| &axis.levels)
            .filter_map(|level| match level {
                Level::PerSecond(rate) => Some(*rate),
                Level::Integer(rate) => Some(*rate as f64),
                _ => None,
            })
            .max_by(f64::total_cmp),
    }
}

/// Little's law: a rate needs as many connections as it is times the time of an answer. Where answers within the limit that
/// is judged already need more, the schedule slips for want of a connection, and the service is blamed.
fn slips(phase: &Phase, item: &Item, load: &LoadProcedure, findings: &mut Findings) {
    let Some(rate) = highest_rate(phase, load).filter(|rate| *rate > 0.0) else { return };
    let below = |comparison| matches!(comparison, Comparison::Less | Comparison::LessOrEqual);
    let limit = phase
        .carried
        .iter()
        .filter(|condition| condition.metric.unit() == "ms" && below(condition.comparison))
        .max_by(|left, right| left.value.total_cmp(&right.value));
    let Some(limit) = limit else { return };
    let places = f64::from(load.connections) * f64::from(load.travel.in_flight.max(1));
    let bears_ms = places / rate * 1e3;
    if bears_ms >= limit.value {
        return;
    }
    let node = item.child("load");
    let at = node.and_then(|load| load.setting("connections")).map_or(&item.name_at, |valued| &valued.at);
    let needed = (rate * limit.value / 1e3).ceil();
    findings
        .add(
            at,
            &[item],
            format!(
                "at {rate}/s {places} requests at a time bear answers of {bears_ms:.1} ms, and phase `{}` accepts `{}`: the schedule slips first",
                phase.name, limit.written
            ),
        )
        .severity(Severity::Warning)
        .help(format!("give it at least {needed} connections ({rate}/s × {} ms)", limit.value))
        .fix(node.and_then(|load| mend::set(load, "connections", &format!("{needed:.0}"), Applicability::Unsafe)));
}

/// One connection per request uses a local port up each time.
fn new_connections(phase: &Phase, item: &Item, load: &LoadProcedure, host: &Host, findings: &mut Findings) {
    if load.keep_alive {
        return;
    }
    let (Some(rate), Some((ports, first, last))) = (highest_rate(phase, load), host.ports()) else { return };
    let used = rate * TIME_WAIT_S;
    if used <= ports as f64 {
        return;
    }
    let node = item.child("load");
    let at = node.and_then(|load| load.setting("keep-alive")).map_or(&item.name_at, |valued| &valued.at);
    let message = format!(
        "{rate}/s with a connection for each request use {used:.0} local ports within the {TIME_WAIT_S:.0}s that the kernel keeps them, and {} has {ports} ({first}–{last})",
        host.called()
    );
    let found = findings.add(at, &[item], message).help(
        "keep connections alive, lower the rate, or widen net.ipv4.ip_local_port_range; with net.ipv4.tcp_tw_reuse the kernel gives ports out again after a second",
    );
    // With reuse after a second there may be enough; without as many ports as requests a second there never are.
    if rate <= ports as f64 {
        found.severity(Severity::Warning);
    }
}
