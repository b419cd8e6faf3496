//! `pool-exceeds-connections`: more connections than the database gives.

use plan::{Candidate, Level, Piece, Procedure, Text};
use syntax::{Applicability, Fix, Severity};

use super::{Findings, Lint, Look, info};
use crate::resolve::Item;

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
        let processes = processes(look, candidate);
        for (name, text) in &candidate.env {
            if !names(name, &["POOL", "CONNECTIONS"]) {
                continue;
            }
            let Some((each, factor)) = number(look, text) else { continue };
            let size = each.saturating_mul(processes.as_ref().map_or(1, |(_, count)| *count));
            let Some(size) = Some(size).filter(|size| *size > left) else { continue };
            let env = node.child("env").and_then(|env| env.free.iter().find(|(known, _)| known == name));
            let at = env.map_or(&node.name_at, |(_, valued)| &valued.at);
            let largest = factor.map_or_else(String::new, |factor| format!(", the largest level of `{factor}`"));
            let what = match &processes {
                Some((variable, count)) => format!(" ({each}{largest} × {count} processes of `{variable}`)"),
                None => largest.strip_prefix(", ").map_or_else(String::new, |largest| format!(" ({largest})")),
            };
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
                .help(format!("set max_connections to at least {}, or lower the pool", size + RESERVED))
                .fix(most_connections(item, size + RESERVED));
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
                .help(format!("set max_connections to at least {}, or lower `clients`", clients + RESERVED))
                .fix(most_connections(item, clients + RESERVED));
        }
    }
}

/// `max_connections` of the database raised, where the study sets it.
fn most_connections(database: &Item, most: u64) -> Option<Fix> {
    let (_, valued) = database.child("set")?.free.iter().find(|(name, _)| name == "max_connections")?;
    let title = format!("write `max_connections={most}`");
    Some(Fix::replace(title, valued.at.clone(), most.to_string(), Applicability::Unsafe))
}

/// Whether an environment variable's name says one of these.
fn names(variable: &str, words: &[&str]) -> bool {
    let folded = variable.to_ascii_uppercase();
    words.iter().any(|word| folded.contains(word))
}

/// A text that is a number, or a factor with its largest level.
fn number<'a>(look: &Look<'_>, text: &'a Text) -> Option<(u64, Option<&'a str>)> {
    match text.0.as_slice() {
        [Piece::Literal(text)] => Some((text.trim().parse().ok()?, None)),
        [Piece::Variable(factor)] => Some((largest(look, factor)?, Some(factor))),
        _ => None,
    }
}

/// How many processes have a pool of their own, and the variable that says so.
fn processes(look: &Look<'_>, candidate: &Candidate) -> Option<(String, u64)> {
    let (name, text) = candidate.env.iter().find(|(name, _)| names(name, &["WORKERS", "PROCESSES", "CHILDREN"]))?;
    number(look, text).map(|(count, _)| (name.clone(), count))
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
