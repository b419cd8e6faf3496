//! `pool-exceeds-connections`: more connections than the database gives.

use plan::{Level, Piece, Procedure};
use syntax::Severity;

use super::{Findings, Lint, Look, info};

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0710",
        "pool-exceeds-connections",
        Severity::Error,
        "A candidate's pool, or pgbench, opens more connections than `max_connections` leaves.",
    ),
    page: include_str!("../../../../docs/lints/pool-exceeds-connections.md"),
    check,
};

/// PostgreSQL's own default.
const DEFAULT_CONNECTIONS: u64 = 100;
/// `superuser_reserved_connections`, which the harness itself uses.
const RESERVED: u64 = 3;

fn check(look: &Look<'_>, findings: &mut Findings) {
    let Some(database) = &look.plan.database else { return };
    let Some(item) = look.study.only("database").filter(|item| !item.broken) else { return };
    let written = database.settings.iter().find(|(name, _)| name == "max_connections");
    let most = match written {
        Some((_, value)) => match value.parse::<u64>() {
            Ok(most) => most,
            Err(_) => return,
        },
        None => DEFAULT_CONNECTIONS,
    };
    let left = most.saturating_sub(RESERVED);
    let set_at = item
        .child("set")
        .and_then(|set| set.free.iter().find(|(name, _)| name == "max_connections"))
        .map_or(&item.name_at, |(_, valued)| &valued.at);
    for candidate in &look.plan.candidates {
        let Some(node) = look.study.find("candidate", &candidate.name).filter(|node| !node.broken) else { continue };
        let uses_database =
            candidate.env.iter().any(|(_, text)| text.variables().any(|name| name.starts_with("database.")));
        if !uses_database {
            continue;
        }
        for (name, text) in &candidate.env {
            let folded = name.to_ascii_uppercase();
            if !(folded.contains("POOL") || folded.contains("CONNECTIONS")) {
                continue;
            }
            let (size, factor) = match text.0.as_slice() {
                [Piece::Literal(text)] => (text.trim().parse::<u64>().ok(), None),
                [Piece::Variable(factor)] => (largest(look, factor), Some(factor.as_str())),
                _ => continue,
            };
            let Some(size) = size.filter(|size| *size > left) else { continue };
            let env = node.child("env").and_then(|env| env.free.iter().find(|(known, _)| known == name));
            let at = env.map_or(&node.name_at, |(_, valued)| &valued.at);
            let what = factor.map_or_else(String::new, |factor| format!(" (the largest level of `{factor}`)"));
            findings
                .add(
                    at,
                    &[node],
                    format!(
                        "candidate `{}` opens {size} connections{what}, and max_connections={most} leaves {left} ({most} − {RESERVED} reserved)",
                        candidate.name
                    ),
                )
                .also(set_at, format!("max_connections is {most} here"))
                .help(format!("set max_connections to at least {}, or lower the pool", size + RESERVED));
        }
    }
    for (phase, node) in look.phases() {
        let Procedure::Pgbench(pgbench) = &phase.procedure else { continue };
        let clients = u64::from(pgbench.clients);
        if clients > left
            && let Some(procedure) = node.child("pgbench")
        {
            let at = procedure.setting("clients").map_or(&procedure.name_at, |valued| &valued.at);
            findings
                .add(
                    at,
                    &[node],
                    format!("pgbench opens {clients} connections, and max_connections={most} leaves {left} ({most} − {RESERVED} reserved)"),
                )
                .also(set_at, format!("max_connections is {most} here"))
                .help(format!("set max_connections to at least {}, or lower `clients`", clients + RESERVED));
        }
    }
}

fn largest(look: &Look<'_>, factor: &str) -> Option<u64> {
    look.plan
        .phases
        .iter()
        .flat_map(|phase| &phase.axes)
        .filter(|axis| axis.factor == factor)
        .flat_map(|axis| &axis.levels)
        .filter_map(|level| match level {
            Level::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        })
        .max()
}
