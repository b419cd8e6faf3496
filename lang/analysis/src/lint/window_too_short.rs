//! `window-too-short`: a window that is over before what it is to show has happened.

use plan::{Gate, Procedure};
use syntax::{Applicability, Severity};

use super::{Findings, Lint, Look, info, mend};
use crate::outlook::server_seconds;
use crate::resolve::Item;
use crate::value::units::as_duration;

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0721",
        "window-too-short",
        Severity::Warning,
        "The window is shorter than what it has to hold: a second, the stalls that its own gate allows, or the database's checkpoints.",
    ),
    page: include_str!("../../../../docs/lints/window-too-short.md"),
    check,
};

/// Below a second a garbage collection or a timer tick is a share of the window, not an event in it.
const LEAST_NS: u64 = 1_000_000_000;
/// PostgreSQL's own default of `checkpoint_timeout`, seconds.
const DEFAULT_CHECKPOINT_S: f64 = 300.0;
/// With as many checkpoints in a window, one more or less moves it by a fifth of their cost.
const CHECKPOINTS: f64 = 5.0;

fn shown(ns: u64) -> String {
    as_duration(i64::try_from(ns).unwrap_or(i64::MAX))
}

fn check(look: &Look<'_>, findings: &mut Findings) {
    for (phase, item) in look.phases() {
        let (node, window_ns, before_ns) = match &phase.procedure {
            Procedure::Load(load) => (item.child("load"), load.window_ns, load.warm_up_ns),
            Procedure::Pgbench(pgbench) => (item.child("pgbench"), pgbench.window_ns, 0),
            _ => continue,
        };
        let Some(node) = node else { continue };
        // A window of no time has its own diagnostic.
        if window_ns == 0 {
            continue;
        }
        let at = node.setting("for").map_or(&node.name_at, |valued| &valued.at);
        if window_ns < LEAST_NS {
            findings
                .add(
                    at,
                    &[item],
                    format!(
                        "phase `{}` looks for {}: a pause of the runtime is a share of it, not an event in it",
                        phase.name,
                        shown(window_ns)
                    ),
                )
                .help("look for at least 1s; the standard library's phases take 20s and more")
                .fix(mend::set(node, "for", "\"1s\"", Applicability::Unsafe).filter(|_| node.setting("for").is_some()));
        }
        for gate in &phase.gates {
            let Gate::Stalls { over_ns, budget, quantile } = gate else { continue };
            let tail = budget * (1.0 - quantile);
            // One stall of twice the free length must not spend everything.
            let needed = *over_ns as f64 / tail;
            if tail > 0.0 && (window_ns as f64) < needed {
                let needed_ns = needed.ceil() as u64;
                let allowed_ns = (tail * window_ns as f64) as u64;
                findings
                    .add(
                        at,
                        &[item],
                        format!(
                            "in {} the stalls gate of phase `{}` allows {} of stalls beyond {}, which a single one of {} exceeds",
                            shown(window_ns),
                            phase.name,
                            shown(allowed_ns),
                            shown(*over_ns),
                            shown(over_ns.saturating_mul(2))
                        ),
                    )
                    .help(format!("look for at least {}s, or judge a lower percentile", needed_ns.div_ceil(1_000_000_000)));
            }
        }
        checkpoints(look, phase, item, at, (window_ns, before_ns), findings);
    }
}

/// A checkpoint by the clock that falls into some windows and not into others.
fn checkpoints(
    look: &Look<'_>,
    phase: &plan::Phase,
    item: &Item,
    at: &syntax::Location,
    (window_ns, before_ns): (u64, u64),
    findings: &mut Findings,
) {
    let Some(database) = look.plan.database.as_ref().filter(|database| database.each_cell.checkpoint) else { return };
    if !super::writes(look, phase) {
        return;
    }
    let written = database.settings.iter().find(|(name, _)| name == "checkpoint_timeout");
    let interval = written.map_or(Some(DEFAULT_CHECKPOINT_S), |(_, value)| server_seconds(value));
    let Some(interval) = interval.filter(|interval| *interval > 0.0) else { return };
    let (window, both) = (window_ns as f64 / 1e9, (window_ns.saturating_add(before_ns)) as f64 / 1e9);
    if both <= interval || window >= CHECKPOINTS * interval {
        return;
    }
    findings
        .add(
            at,
            &[item],
            format!(
                "warm-up and window of phase `{}` take {}, and the database makes a checkpoint every {interval}s: windows differ by how much of one they hold",
                phase.name,
                shown(window_ns.saturating_add(before_ns))
            ),
        )
        .help(format!(
            "raise `checkpoint_timeout` beyond {both}s, so that none falls into a window, or look for at least {}s, so that each holds several",
            (CHECKPOINTS * interval).ceil()
        ));
}
