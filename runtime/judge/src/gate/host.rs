//! Gates on the host: the CPUs ran at their own speed, were not taken away, and the platform did not stand still.

use super::{Context, Draft};
use crate::judgement::GateKind;
use crate::words::{ms, number, percent, ratio};

/// Every CPU of the measured role was at its quiet pace for this share of the window.
pub(crate) fn pace(context: &Context<'_>, least: f64) -> Draft {
    let mut draft = Draft::new(GateKind::Disturbed);
    draft.note("least quiet share", Some(least), "ratio");
    if context.cpus.is_empty() {
        draft.fail("there is no measured CPU whose pace could be known");
    }
    for cpu in context.cpus.cpus() {
        let Some(pace) = context.pace.get(cpu) else {
            draft.note(format!("quiet share of CPU {cpu}"), None, "ratio");
            let samples = context.facts.pace.get(cpu).map(|pace| pace.samples.count);
            let problem = context.quiet.get(cpu).and_then(|quiet| quiet.problem.clone());
            draft.fail(match (samples, problem) {
                (None | Some(0), _) => {
                    format!("the pace of CPU {cpu} was not sampled{}", context.noted(&format!("pace cpu {cpu}")))
                }
                (Some(_), Some(problem)) => problem,
                (Some(samples), None) => format!(
                    "the pace of CPU {cpu} was sampled {samples} times in the window, {} are needed",
                    stats::pace::LEAST_SAMPLES_OF_A_WINDOW
                ),
            });
            continue;
        };
        draft.note(format!("quiet share of CPU {cpu}"), Some(pace.quiet_share), "ratio");
        draft.note(format!("pace of CPU {cpu}"), Some(pace.pace), "ratio");
        if pace.quiet_share.is_nan() || pace.quiet_share < least {
            draft.fail(format!(
                "CPU {cpu} was slowed to {} of its quiet speed for {} of the window: {}",
                ratio(pace.slowed_to),
                percent(1.0 - pace.quiet_share),
                cause(context, *cpu)
            ));
        }
    }
    draft.pass_with(|| format!("CPU {} ran at its quiet pace", context.cpus));
    draft
}

fn cause(context: &Context<'_>, cpu: u32) -> String {
    match context.facts.host.frequency_mhz.get(&cpu) {
        Some(&(start, end)) if (end as f64) < 0.95 * start as f64 || (start as f64) < 0.95 * end as f64 => {
            format!("its frequency went from {start} to {end} MHz")
        }
        Some(&(start, _)) => format!("a neighbour on its core (its frequency stayed at {start} MHz)"),
        None => "a neighbour on its core, or frequency".to_owned(),
    }
}

/// Steal of the measured CPUs, as a share of the window; and no throttling.
pub(crate) fn steal(context: &Context<'_>, max: f64) -> Draft {
    let mut draft = Draft::new(GateKind::Disturbed);
    draft.note("largest accepted steal", Some(max), "ratio");
    for cpu in context.cpus.cpus() {
        let share = context.facts.host.cpus.get(cpu).and_then(|times| {
            let all = times.busy as f64 + times.idle as f64 + times.steal as f64;
            (all > 0.0).then_some(times.steal as f64 / all)
        });
        draft.note(format!("steal of CPU {cpu}"), share, "ratio");
        match share {
            None => {
                draft.fail(format!("the steal of CPU {cpu} is not known{}", context.noted(&format!("host cpu {cpu}"))))
            }
            Some(share) if share > max => draft.fail(format!(
                "{} of CPU {cpu}'s time was given to somebody else by the hypervisor, more than {}",
                percent(share),
                percent(max)
            )),
            Some(_) => {}
        }
    }
    if let Some((start, end)) = context.facts.candidate.as_ref().and_then(|counters| counters.start.zip(counters.end)) {
        let throttled =
            start.throttled_periods.zip(end.throttled_periods).map(|(start, end)| end as f64 - start as f64);
        if let Some(throttled) = throttled {
            draft.note("throttled periods", Some(throttled), "count");
            if throttled != 0.0 {
                draft.fail(format!("the candidate was throttled in {} periods", number(throttled)));
            }
        }
    }
    draft.pass_with(|| format!("the hypervisor took no more than {} of any CPU", percent(max)));
    draft
}

/// Σ max(0, Dᵢ − over) ≤ budget · (1 − q) · window, for each CPU of the candidate and for the generator.
pub(crate) fn stalls(context: &Context<'_>, over_ns: u64, budget: f64, q: f64) -> Draft {
    let mut draft = Draft::new(GateKind::Disturbed);
    let window = context.facts.window.seconds() * 1e9;
    draft.note("budget", Some(budget), "ratio");
    let judge = |draft: &mut Draft, who: &str, stalls: &[journal::Stall], kind: GateKind| {
        let lost = stats::law::stalled_beyond(stalls.iter().map(|stall| stall.for_ns as f64), over_ns as f64);
        let share = stats::law::tail_share(lost, q, window);
        draft.note(format!("tail of {who} lost to stalls"), share, "ratio");
        let within = share.is_some_and(|share| share <= budget);
        if within {
            return;
        }
        let longest = stalls.iter().map(|stall| stall.for_ns).max().unwrap_or(0);
        let why = match share {
            None => "the window has no length, so no stall can be weighed".to_owned(),
            Some(share) => format!(
                "{who} stood still for {} beyond {} each (the longest {}): {} of what p{} leaves of the window, more than {}",
                ms(lost),
                ms(over_ns as f64),
                ms(longest as f64),
                percent(share),
                number(q * 100.0),
                percent(budget)
            ),
        };
        draft.fail_as(kind, why);
    };
    match &context.facts.load {
        Some(load) => judge(&mut draft, "the generator", &load.generator.stalls, GateKind::BenchLimited),
        None => draft.fail("the generator left no account of its stalls"),
    }
    for cpu in context.cpus.cpus() {
        match context.facts.pace.get(cpu) {
            Some(pace) if pace.samples.count > 0 => {
                judge(&mut draft, &format!("CPU {cpu}"), &pace.stalls, GateKind::Disturbed)
            }
            _ => {
                draft.fail(format!("stalls of CPU {cpu} were not watched{}", context.noted(&format!("pace cpu {cpu}"))))
            }
        }
    }
    draft.pass_with(|| format!("stalls took less than {} of what p{} leaves", percent(budget), number(q * 100.0)));
    draft
}
