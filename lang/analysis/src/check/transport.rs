//! That the probe can be driven the way the candidates are: it vouches for the generator's part of the work.

use plan::{Gate, Plan, Procedure, ProcessRun, Protocol};

use crate::codes;
use crate::problems::{Problems, problem};
use crate::resolve::Study;

/// Checks every phase whose gate drives a probe.
pub fn check(study: &Study, plan: &Plan, problems: &mut Problems) {
    let Some(probe) = &plan.probe else { return };
    for phase in &plan.phases {
        let Procedure::Load(load) = &phase.procedure else { continue };
        if !phase.gates.iter().any(|gate| matches!(gate, Gate::GeneratorProbe { .. })) {
            continue;
        }
        let secure = plan.candidates.iter().find(|candidate| candidate.tls.is_some());
        let message = match (secure, &probe.process) {
            (Some(candidate), _) if probe.tls.is_none() => format!(
                "candidate `{}` speaks TLS and the probe `{}` does not: it can't vouch for a generator that encrypts",
                candidate.name, probe.name
            ),
            (_, Some(ProcessRun::BuiltIn)) if load.travel.protocol == Protocol::Http2 => format!(
                "phase `{}` speaks HTTP/2, and the probe inside `exp` does not: it can't vouch for this generator",
                phase.name
            ),
            _ => continue,
        };
        let Some(item) = study.each("phase").find(|item| item.key == phase.name) else { continue };
        problems.push(
            problem(&codes::CONTRADICTION, &item.name_at, message)
                .help("give the probe a server that speaks the same, such as nginx with the same `tls`"),
        );
    }
}
