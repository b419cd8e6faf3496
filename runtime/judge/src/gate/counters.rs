//! Gates on the bookkeeping: counters were read, clocks agree, CPU time fits the window.

use journal::WindowFacts;
use plan::{Metric, Procedure};

use super::{Context, Draft};
use crate::derive::cpu_ns;
use crate::judgement::GateKind;
use crate::words::{ms, number, percent};

/// Clocks may differ by this much over a window, ns, plus [`SLEW`] of its length.
const CLOCK_SLACK_NS: f64 = 5e6;

/// The fastest rate at which the kernel slews the wall clock: 500 parts per million.
const SLEW: f64 = 500e-6;

/// A window may differ from the declared one by this ratio.
const WINDOW_TOLERANCE: f64 = 0.05;

/// Every counter was read at the window's start and its end, and moved.
pub(crate) fn counters(context: &Context<'_>) -> Draft {
    let mut draft = Draft::new(GateKind::Wrong);
    let under_load = matches!(context.phase.procedure, Procedure::Load(_));
    let alone = matches!(context.phase.procedure, Procedure::Pgbench(_));
    let mut roles = Vec::new();
    if !alone {
        roles.push(("candidate", context.facts.candidate.as_ref()));
    }
    if context.plan.database.is_some() || alone {
        roles.push(("database", context.facts.database.as_ref()));
    }
    for (role, counters) in roles {
        let cpu = cpu_ns(counters, role);
        draft.note(format!("CPU time of the {role}"), cpu.as_ref().ok().map(|ns| ns / 1e6), "ms");
        match cpu {
            Err(why) => draft.fail(format!("{why}{}", context.noted(role))),
            // A database may rest while a candidate answers by itself; whoever answered can't have.
            Ok(ns) if ns == 0.0 && (role == "candidate" || alone) => {
                draft.fail(format!("the {role}'s CPU counter did not move in the window"));
            }
            Ok(_) => {}
        }
    }
    if under_load {
        let generator = context.facts.load.as_ref().and_then(|load| load.generator.cpu_ns);
        draft.note("CPU time of the generator", generator.map(|ns| ns as f64 / 1e6), "ms");
        if generator.is_none() {
            draft.fail(format!("the generator's CPU time could not be read{}", context.noted("generator")));
        }
    }
    for cpu in context.cpus.cpus() {
        if !context.facts.host.cpus.contains_key(cpu) {
            draft.fail(format!(
                "the host's times of CPU {cpu} could not be read{}",
                context.noted(&format!("host cpu {cpu}"))
            ));
        }
    }
    draft.pass_with(|| "every counter was read at the window's start and end".to_owned());
    draft
}

/// Wall clock, monotonic clock and boot clock advanced alike, and the window is as long as declared.
pub(crate) fn clock(context: &Context<'_>) -> Draft {
    let mut draft = Draft::new(GateKind::Wrong);
    let WindowFacts { start_ns, end_ns, wall_start_ns, wall_end_ns, boot_start_ns, boot_end_ns, declared_ns } =
        context.facts.window;
    let span = |start: u64, end: u64| end as f64 - start as f64;
    let monotonic = span(start_ns, end_ns);
    draft.note("monotonic clock", Some(monotonic / 1e9), "s");
    draft.note("wall clock", Some(span(wall_start_ns, wall_end_ns) / 1e9), "s");
    draft.note("boot clock", Some(span(boot_start_ns, boot_end_ns) / 1e9), "s");
    draft.note("declared", Some(declared_ns as f64 / 1e9), "s");
    if monotonic <= 0.0 {
        draft.fail("the window's start and end were not recorded");
        return draft;
    }
    let slack = CLOCK_SLACK_NS + SLEW * monotonic;
    let suspended = span(boot_start_ns, boot_end_ns) - monotonic;
    if suspended.abs() > slack {
        draft.fail(format!("the machine was suspended for {} within the window", ms(suspended)));
    }
    let jumped = span(wall_start_ns, wall_end_ns) - monotonic;
    if jumped.abs() > slack && (jumped - suspended).abs() > slack {
        draft.fail(format!("the wall clock jumped by {} within the window", ms(jumped)));
    }
    let off = monotonic / declared_ns as f64 - 1.0;
    if !off.is_finite() || off.abs() > WINDOW_TOLERANCE {
        draft.fail(format!(
            "the window lasted {} s instead of {} s",
            number(monotonic / 1e9),
            number(declared_ns as f64 / 1e9)
        ));
    }
    draft.pass_with(|| "all clocks advanced alike".to_owned());
    draft
}

/// Cores used never exceed what was given, and the counter spans the window.
pub(crate) fn utilisation_law(context: &Context<'_>, tolerance: f64) -> Draft {
    let mut draft = Draft::new(GateKind::Wrong);
    let (role, counters, metric) = match context.phase.procedure {
        Procedure::Load(_) | Procedure::Start(_) => ("candidate", context.facts.candidate.as_ref(), Metric::CoresUsed),
        Procedure::Pgbench(_) => ("database", context.facts.database.as_ref(), Metric::DatabaseCoresUsed),
    };
    let (cores, counters) = match (context.value(metric), counters) {
        (Ok(cores), Some(counters)) => (cores, counters),
        (Err(why), _) => {
            draft.fail(format!("the {role}'s use of its cores is not known: {why}"));
            return draft;
        }
        (Ok(_), None) => {
            draft.fail(format!("the {role}'s counters are missing"));
            return draft;
        }
    };
    let given = f64::from(counters.cpus);
    draft.note("cores used", Some(cores), "cores");
    draft.note("cores given", Some(given), "cores");
    draft.note("tolerance", Some(tolerance), "ratio");
    if counters.cpus == 0 {
        draft.fail(format!("it is not known how many CPUs the {role} was given"));
    } else if cores > given * (1.0 + tolerance) {
        draft.fail(format!(
            "the {role} used {} cores where it was given {}: counter and window don't fit",
            number(cores),
            number(given)
        ));
    }
    if let (Some(start), Some(end)) = (counters.start, counters.end) {
        let span = end.at_ns as f64 - start.at_ns as f64;
        let window = context.facts.window.seconds() * 1e9;
        let off = span / window - 1.0;
        draft.note("time between the readings", Some(span / 1e9), "s");
        if !off.is_finite() || off.abs() > tolerance {
            draft.fail(format!(
                "the {role}'s counter was read over {}, the window lasted {}: {} apart",
                ms(span),
                ms(window),
                percent(off.abs())
            ));
        }
    }
    draft.pass_with(|| format!("{} of {} cores used", number(cores), number(given)));
    draft
}
