//! `overlapping-cpus`: roles that take each other's CPU time.

use plan::{CpuSet, Role};
use syntax::Severity;

use super::{Findings, Lint, Look, info};
use crate::host::Host;

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0709",
        "overlapping-cpus",
        Severity::Error,
        "Two roles share a CPU or the threads of a core, or roles lie on mixed kinds of cores or on several NUMA nodes.",
    ),
    page: include_str!("../../../../docs/lints/overlapping-cpus.md"),
    check,
};

const ROLES: [(Role, &str); 3] = [(Role::Candidate, "candidate"), (Role::Database, "database"), (Role::Load, "load")];

fn check(look: &Look<'_>, findings: &mut Findings) {
    let machine = &look.plan.machine;
    let Some(item) = look.study.find("machine", &machine.name).filter(|item| !item.broken) else { return };
    let at = item.child("cpus").map_or(&item.name_at, |cpus| &cpus.name_at);
    // Sharing that the study accepts is a limit of the report, which the plan already has.
    if !machine.sharing_accepted {
        let shared: Vec<String> = pairs(look)
            .into_iter()
            .filter_map(|((one, left), (other, right))| {
                let shared = left.shared_with(right);
                (!shared.is_empty()).then(|| format!("{one} and {other} share CPU {shared}"))
            })
            .collect();
        if !shared.is_empty() {
            findings.add(at, &[item], format!("on machine `{}` {}", machine.name, shared.join(", "))).help(
                "give each role its own CPUs, or write `sharing=accepted`: the report then trusts its figures less",
            );
        }
    }
    let Some(host) = look.host else { return };
    let mut warn = |message: String, help: &str| {
        findings.add(at, &[item], message).severity(Severity::Warning).help(help);
    };
    if !machine.sharing_accepted {
        for ((one, left), (other, right)) in pairs(look) {
            if let Some(message) = threads(host, (one, left), (other, right)) {
                warn(message, "split roles between cores, not between the threads of one");
            }
        }
    }
    let candidate = machine.cpus(Role::Candidate);
    let whole = host.whole_cores(candidate);
    if !whole.is_empty() {
        let message = format!(
            "the candidate's CPUs {candidate} are hardware threads of fewer cores on {}: {} are {}, so `cores` counts threads",
            host.called(),
            listed(&whole),
            if whole.len() == 1 { "one core" } else { "one core each" }
        );
        warn(message, "give the candidate one thread of each core, and leave the other one idle");
    }
    for (role, name) in ROLES {
        let kinds = host.kinds_of(machine.cpus(role));
        if kinds.len() > 1 {
            let kinds: Vec<String> = kinds.iter().map(|(kind, cpus)| format!("{kind} {cpus}")).collect();
            let message = format!(
                "the role {name} has cores of different kinds on {}: {}; they don't run at the same speed",
                host.called(),
                kinds.join(", ")
            );
            warn(message, "give a role cores of one kind");
        }
    }
    nodes(look, host, &mut warn);
}

type Owner<'a> = (&'static str, &'a CpuSet);

/// Every two roles that own CPUs.
fn pairs<'a>(look: &Look<'a>) -> Vec<(Owner<'a>, Owner<'a>)> {
    let machine = &look.plan.machine;
    let owners: Vec<Owner<'a>> =
        ROLES.iter().map(|(role, name)| (*name, machine.cpus(*role))).filter(|(_, cpus)| !cpus.is_empty()).collect();
    (0..owners.len())
        .flat_map(|one| (one + 1..owners.len()).map(move |other| (one, other)))
        .map(|(one, other)| (owners[one], owners[other]))
        .collect()
}

/// Two roles on the threads of the same cores.
fn threads(host: &Host, (one, left): Owner<'_>, (other, right): Owner<'_>) -> Option<String> {
    let both: Vec<CpuSet> = host
        .siblings
        .iter()
        .filter(|core| touches(core, left) && touches(core, right) && left.shared_with(right).is_empty())
        .cloned()
        .collect();
    if both.is_empty() {
        return None;
    }
    let are = if both.len() == 1 { "are the threads of one core" } else { "are the threads of one core each" };
    Some(format!(
        "CPUs {} {are} on {}, and the roles {one} and {other} each have one of them",
        listed(&both),
        host.called()
    ))
}

/// Roles that reach over NUMA nodes, alone or together.
fn nodes(look: &Look<'_>, host: &Host, warn: &mut impl FnMut(String, &str)) {
    if host.nodes.len() < 2 {
        return;
    }
    let machine = &look.plan.machine;
    let places: Vec<(String, Vec<usize>)> = ROLES
        .iter()
        .map(|(role, name)| (format!("{name} {}", machine.cpus(*role)), host.nodes_of(machine.cpus(*role))))
        .filter(|(_, nodes)| !nodes.is_empty())
        .collect();
    let Some((_, first)) = places.first() else { return };
    if places.iter().any(|(_, nodes)| nodes.len() > 1 || nodes != first) {
        let told: Vec<String> = places
            .iter()
            .map(|(owner, nodes)| {
                let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
                format!("{owner} on {}", nodes.join(" and "))
            })
            .collect();
        let message = format!("the roles lie on different NUMA nodes of {}: {}", host.called(), told.join(", "));
        warn(message, "keep all roles on one node, or say why not with `allow`");
    }
}

fn listed(sets: &[CpuSet]) -> String {
    sets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

fn touches(one: &CpuSet, other: &CpuSet) -> bool {
    !one.shared_with(other).is_empty()
}
