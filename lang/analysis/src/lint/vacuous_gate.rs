//! `vacuous-gate`: a gate that can't fail, or passes below what it vouches for.

use plan::Gate;
use syntax::{Applicability, Fix, Location, Severity};

use super::{Findings, Lint, Look, info, mend};
use crate::resolve::Item;
use crate::value::units::as_percent;

/// The lint.
pub const LINT: Lint = Lint {
    info: info("W0703", "vacuous-gate", Severity::Error, "A gate's pass level lies not above what it guards."),
    page: include_str!("../../../../docs/lints/vacuous-gate.md"),
    check,
};

fn check(look: &Look<'_>, findings: &mut Findings) {
    for (phase, item) in look.phases() {
        for gate in &phase.gates {
            let Some(node) = item.keyed("gate", gate.name()) else { continue };
            let (setting, why) = match gate {
                Gate::GeneratorProbe { at, .. } if *at <= 1.0 => {
                    ("at", format!("the probe passes at {} of the rate that it is to vouch for", as_percent(*at)))
                }
                Gate::GeneratorBottleneck { busy, receive_queue } if *busy >= 1.0 && *receive_queue >= 1.0 => {
                    ("busy", "the generator may be busy all the time, and be all that is measured".to_owned())
                }
                Gate::ServiceDemand { rise } if *rise >= 1.0 => {
                    ("rise", format!("CPU per request may rise by {}", as_percent(*rise)))
                }
                Gate::Saturation { drop } if *drop >= 1.0 => {
                    ("drop", format!("cores used may fall by {}", as_percent(*drop)))
                }
                Gate::Pace { quiet_share } if *quiet_share <= 0.0 => {
                    ("quiet-share", "no part of the window has to be quiet".to_owned())
                }
                Gate::Steal { max } if *max >= 1.0 => ("max", "all of the window may be stolen".to_owned()),
                Gate::Stalls { budget, .. } if *budget >= 1.0 => {
                    ("budget", format!("stalls may take {} of the tail that is judged", as_percent(*budget)))
                }
                Gate::LittlesLaw { tolerance } if *tolerance >= 1.0 => {
                    ("tolerance", format!("the law may be missed by {}", as_percent(*tolerance)))
                }
                Gate::Mix { tolerance } if *tolerance >= 0.5 => {
                    ("tolerance", format!("the mix may be {} points off", as_percent(*tolerance)))
                }
                Gate::UtilisationLaw { tolerance } if *tolerance >= 1.0 => {
                    ("tolerance", format!("the law may be missed by {}", as_percent(*tolerance)))
                }
                _ => continue,
            };
            findings
                .add(
                    &at(node, setting),
                    &[item, node],
                    format!("gate `{}` of phase `{}` can't fail: {why}", gate.name(), phase.name),
                )
                .help("set the level where a bad repetition would miss it")
                .fix(usual(node, setting));
        }
    }
}

/// The level that the gate has where a study says nothing.
fn usual(node: &Item, setting: &str) -> Option<Fix> {
    let default = node.spec.setting(setting, node.variant)?.default?;
    mend::set(node, setting, &format!("\"{default}\""), Applicability::Unsafe)
}

fn at(node: &Item, setting: &str) -> Location {
    node.setting(setting).map_or(node.name_at.clone(), |valued| valued.at.clone())
}
