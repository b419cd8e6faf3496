//! Whether the host can give what the study needs: memory, ports, open files, disk. CPUs are `machine`'s matter; which of
//! them disturb each other, and what the load needs, are the lints'.

use plan::{Plan, Procedure};
use syntax::Severity;

use crate::codes;
use crate::host::Host;
use crate::outlook;
use crate::problems::{Problems, problem};
use crate::resolve::{Item, Study};
use crate::value::units::as_bytes;

/// Files that a server needs beside its connections: libraries, logs, its listening socket, its database.
pub const OTHER_FILES: u64 = 64;

/// What the study needs, whatever the host: a candidate may open as many files as it gets connections.
pub fn check_study(study: &Study, plan: &Plan, problems: &mut Problems) {
    for candidate in &plan.candidates {
        let Some(item) = study.find("candidate", &candidate.name).filter(|item| !item.broken) else { continue };
        let Some((connections, phase)) = most_connections(plan, &candidate.name) else { continue };
        if connections > candidate.open_files {
            let at = item.setting("open-files").map_or(&item.name_at, |valued| &valued.at);
            let message = format!(
                "candidate `{}` may open {} files, and phase `{phase}` holds {connections} connections to it",
                candidate.name, candidate.open_files
            );
            problems.push(
                problem(&codes::FILES_EXCEEDED, at, message)
                    .help(format!("write `open-files={}`, or lower `connections`", connections + OTHER_FILES)),
            );
        }
    }
}

/// The most connections that a phase holds to a candidate, and the phase.
fn most_connections<'a>(plan: &'a Plan, candidate: &str) -> Option<(u64, &'a str)> {
    plan.phases
        .iter()
        .filter(|phase| {
            phase.axes.iter().any(|axis| {
                axis.factor == "candidate" && axis.levels.iter().any(|level| level.to_string() == candidate)
            })
        })
        .filter_map(|phase| match &phase.procedure {
            Procedure::Load(load) => Some((u64::from(load.connections), phase.name.as_str())),
            _ => None,
        })
        .max_by_key(|(connections, _)| *connections)
}

/// The host against what the study needs.
pub fn check_host(study: &Study, plan: &Plan, host: &Host, problems: &mut Problems) {
    memory(study, host, problems);
    ports(study, host, problems);
    disk(study, plan, host, problems);
}

/// Candidates run one at a time, beside the database.
fn memory(study: &Study, host: &Host, problems: &mut Problems) {
    let Some(has) = host.memory_bytes else { return };
    let database = study.only("database");
    let database_memory = database.and_then(|item| item.bytes("memory")).unwrap_or(0);
    let mut told = false;
    for candidate in study.each("candidate").filter(|candidate| !candidate.broken) {
        let Some(memory) = candidate.bytes("memory") else { continue };
        let total = memory.saturating_add(database_memory);
        let Some(valued) = candidate.setting("memory").filter(|_| total > has) else { continue };
        told = true;
        let parts = match database {
            Some(database) if database_memory > 0 => format!(
                "{} (candidate `{}`) + {} (database `{}`) = {}",
                as_bytes(memory),
                candidate.key,
                as_bytes(database_memory),
                database.key,
                as_bytes(total)
            ),
            _ => format!("{} (candidate `{}`)", as_bytes(memory), candidate.key),
        };
        let message = format!("memory limits add up to {parts}, and {} has {}", host.called(), as_bytes(has));
        problems.push(
            problem(&codes::MEMORY_EXCEEDED, &valued.at, message)
                .help("lower the limits, or run the study on a host with more memory"),
        );
    }
    if let (Some(database), false, true) = (database, told, database_memory > has)
        && let Some(valued) = database.setting("memory")
    {
        let message = format!(
            "the memory limit of database `{}` is {}, and {} has {}",
            database.key,
            as_bytes(database_memory),
            host.called(),
            as_bytes(has)
        );
        problems.push(problem(&codes::MEMORY_EXCEEDED, &valued.at, message).help("lower it"));
    }
}

fn ports(study: &Study, host: &Host, problems: &mut Problems) {
    for item in study.each("candidate").chain(study.each("probe")) {
        let (Some(port), Some(valued)) = (item.integer("listen"), item.setting("listen")) else { continue };
        if let Some(holder) = host.listening.iter().find(|listening| i64::from(listening.port) == port) {
            let message =
                format!("port {port} of {} is in use on {}, by {}", item.described(), host.called(), holder.holder);
            problems.push(
                problem(&codes::PORT_IN_USE, &valued.at, message)
                    .help("end that program, or give the study another port with `listen`"),
            );
        } else if let Some((_, first, last)) = host.ports()
            && (i64::from(first)..=i64::from(last)).contains(&port)
        {
            let message = format!(
                "port {port} of {} lies among the ephemeral ports of {} ({first}–{last}): an outgoing connection may hold it when the server starts",
                item.described(),
                host.called()
            );
            problems.push(
                problem(&codes::PORT_IS_EPHEMERAL, &valued.at, message).help(format!("listen on a port below {first}")),
            );
        }
    }
}

/// Template, one clone, and the WAL of what is written to it.
fn disk(study: &Study, plan: &Plan, host: &Host, problems: &mut Problems) {
    let Some(item) = study.only("database").filter(|item| !item.broken) else { return };
    let Some(need) = outlook::disk(plan) else { return };
    let Some(most) = host.disks.iter().map(|disk| disk.free_bytes).max() else { return };
    let free: Vec<String> =
        host.disks.iter().map(|disk| format!("{} at {}", as_bytes(disk.free_bytes), disk.path)).collect();
    let rows = format!(
        "template and clone of {} rows at about {} bytes: 2 × {}MiB",
        need.rows,
        outlook::ROW_BYTES,
        need.template_bytes.div_ceil(1 << 20)
    );
    let (message, severity) = if 2 * need.template_bytes > most {
        (format!("database `{}` does not fit on {} ({rows})", item.key, host.called()), Severity::Error)
    } else if 2 * need.template_bytes + need.wal_bytes > most {
        let message = format!(
            "database `{}` may fill the disk of {} ({rows}, and up to {} of WAL)",
            item.key,
            host.called(),
            as_bytes(need.wal_bytes)
        );
        (message, Severity::Warning)
    } else {
        return;
    };
    let mut diagnostic = problem(&codes::DISK_EXCEEDED, place(item), format!("{message}; free: {}", free.join(", ")))
        .help("make room, lower `max_wal_size`, or fill the template with fewer rows");
    diagnostic.severity = severity;
    problems.push(diagnostic);
}

/// Where the template says how many rows it holds.
fn place(database: &Item) -> &syntax::Location {
    let holds = database.child("template").and_then(|template| template.child("holds"));
    holds.and_then(|holds| holds.setting("rows")).map_or(&database.name_at, |valued| &valued.at)
}
