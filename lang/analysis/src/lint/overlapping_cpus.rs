//! `overlapping-cpus`: roles that take each other's CPU time.

use plan::{CpuSet, Role};
use syntax::Severity;

use super::{Findings, Lint, Look, info};

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0709",
        "overlapping-cpus",
        Severity::Error,
        "Two roles share a CPU, the two threads of a core, or sit on different NUMA nodes.",
    ),
    page: include_str!("../../../../docs/lints/overlapping-cpus.md"),
    check,
};

const ROLES: [(Role, &str); 3] = [(Role::Candidate, "candidate"), (Role::Database, "database"), (Role::Load, "load")];

fn check(look: &Look<'_>, findings: &mut Findings) {
    let machine = &look.plan.machine;
    let Some(item) = look.study.find("machine", &machine.name).filter(|item| !item.broken) else { return };
    // Sharing that the study accepts is a limit of the report, which the plan already has.
    if machine.sharing_accepted {
        return;
    }
    let at = item.child("cpus").map_or(&item.name_at, |cpus| &cpus.name_at);
    let pairs = (0..ROLES.len()).flat_map(|one| (one + 1..ROLES.len()).map(move |other| (ROLES[one], ROLES[other])));
    let mut shared = Vec::new();
    for ((one, one_name), (other, other_name)) in pairs {
        let (left, right) = (machine.cpus(one), machine.cpus(other));
        let shared_cpus = left.shared_with(right);
        if !shared_cpus.is_empty() {
            shared.push(format!("{one_name} and {other_name} share CPU {shared_cpus}"));
            continue;
        }
        let Some(host) = look.host else { continue };
        if let Some(core) = host.siblings.iter().find(|core| touches(core, left) && touches(core, right)) {
            findings
                .add(
                    at,
                    &[item],
                    format!("CPUs {core} are the threads of one core, and the roles {one_name} and {other_name} each have one of them"),
                )
                .severity(Severity::Warning)
                .help("split roles between cores, not between the threads of one");
        }
        let node = |set: &CpuSet| host.nodes.iter().position(|node| touches(node, set));
        if host.nodes.len() > 1 && !left.is_empty() && !right.is_empty() && node(left) != node(right) {
            findings
                .add(at, &[item], format!("the roles {one_name} and {other_name} sit on different NUMA nodes"))
                .severity(Severity::Warning)
                .help("keep all roles on one node, or say why not with `allow`");
        }
    }
    if !shared.is_empty() {
        findings
            .add(at, &[item], format!("on machine `{}` {}", machine.name, shared.join(", ")))
            .help("give each role its own CPUs, or write `sharing=accepted`: the report then trusts its figures less");
    }
}

fn touches(one: &CpuSet, other: &CpuSet) -> bool {
    !one.shared_with(other).is_empty()
}
