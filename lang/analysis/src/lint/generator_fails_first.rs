//! `generator-fails-first`: a load that this host's generator can't hold.

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
                        "{connections} connections need {} open files, and this host allows {files}",
                        connections + OTHER_FILES
                    ),
                )
                .help(format!("raise the limit (`ulimit -n {}`), or lower `connections`", connections + OTHER_FILES));
        }
        if let Some((first, last)) = host.ephemeral_ports {
            let ports = u64::from(last.saturating_sub(first)) + 1;
            if connections > ports {
                findings
                    .add(at, &[item], format!("{connections} connections need as many local ports, and this host has {ports} ({first}–{last})"))
                    .help("widen net.ipv4.ip_local_port_range, or lower `connections`");
            }
        }
    }
}
