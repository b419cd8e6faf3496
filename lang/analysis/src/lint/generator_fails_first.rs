//! `generator-fails-first`: a load that the host's generator can't hold.

use plan::Procedure;
use syntax::Severity;

use super::{Findings, Lint, Look, info};

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0713",
        "generator-fails-first",
        Severity::Error,
        "Connections exceed what the load role's limits of open files or ephemeral ports can hold.",
    ),
    page: include_str!("../../../../docs/lints/generator-fails-first.md"),
    check,
};

/// Descriptors that the generator needs beside its connections.
const OTHER_FILES: u64 = 64;

fn check(look: &Look<'_>, findings: &mut Findings) {
    let Some(host) = look.host else { return };
    for (phase, item) in look.phases() {
        let Procedure::Load(load) = &phase.procedure else { continue };
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
