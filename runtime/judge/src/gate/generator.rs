//! Gates on the bench: the generator had headroom, kept its schedule, and every connection is accounted for.

use plan::phase::Comparison;
use plan::{CpuSet, Metric};

use super::{Context, Draft};
use crate::judgement::GateKind;
use crate::words::{ms, number, percent, ratio};

/// A probe counts as delivered from this share of what was asked for.
const PROBE_TOLERANCE: f64 = 0.99;

/// From this share of its time on, a CPU or a generator's thread counts as busy.
const BUSY: f64 = 0.90;

/// Below this share of its CPUs the candidate is not at their limit.
const SATURATED: f64 = 0.95;

/// From this share on, the connections were all taken (Little's law: mean service time × rate ÷ connections).
const CONNECTIONS_TAKEN: f64 = 0.90;

/// A no-op server on the candidate's CPUs delivered `at` × the rate that this repetition finally measured.
pub(crate) fn probe(context: &Context<'_>, at: f64) -> Draft {
    let mut draft = Draft::new(GateKind::BenchLimited);
    let measured = context.value(Metric::Throughput);
    draft.note("rate finally measured", measured.as_ref().ok().copied(), "1/s");
    let probe = context.facts.probe.as_ref();
    draft.note("probe asked for", probe.map(|probe| probe.target), "1/s");
    draft.note("probe achieved", probe.map(|probe| probe.achieved), "1/s");
    draft.note("probe errors", probe.map(|probe| probe.errors as f64), "count");
    let (measured, probe) = match (measured, probe) {
        (Ok(measured), Some(probe)) => (measured, probe),
        (_, None) => {
            draft.fail(format!("there was no generator probe{}", context.noted("generator probe")));
            return draft;
        }
        (Err(why), _) => {
            draft.fail(format!("the probe vouches for a rate that is not known: {why}"));
            return draft;
        }
    };
    let needed = at * measured;
    draft.note("needed", Some(needed), "1/s");
    if probe.errors > 0 {
        draft.fail(format!("the probe had {} errors", number(probe.errors as f64)));
    }
    let reached = probe.achieved >= needed * PROBE_TOLERANCE;
    if !reached && probe.target < needed * PROBE_TOLERANCE {
        draft.fail(format!(
            "the probe was driven at {}/s, which can't vouch for the {}/s finally measured: {} × that is {}/s",
            number(probe.target),
            number(measured),
            ratio(at),
            number(needed)
        ));
    } else if !reached {
        draft.fail(format!(
            "the generator had no headroom: against a server without application code it reached {}/s, where {} × the \
             {}/s measured is {}/s",
            number(probe.achieved),
            ratio(at),
            number(measured),
            number(needed)
        ));
    }
    draft.pass_with(|| {
        format!("the generator reached {}/s against a server without application code", number(probe.achieved))
    });
    draft
}

/// Open loop: sends were on schedule and none was left unsent.
///
/// Sends that are late because the candidate held every connection too long are the candidate's doing: the corrected latency carries
/// them, and the gate passes and says so.
pub(crate) fn send_lag(context: &Context<'_>, p99_ns: u64) -> Draft {
    let mut draft = Draft::new(GateKind::BenchLimited);
    draft.note("largest accepted p99", Some(p99_ns as f64 / 1e6), "ms");
    let Some(load) = &context.facts.load else {
        draft.fail("the generator left no account of its sends");
        return draft;
    };
    let unsent: f64 = load.streams.iter().map(|stream| stream.census.unsent as f64).sum();
    draft.note("never sent", Some(unsent), "count");
    let overloaded = overloaded_by_its_own_slowness(context);
    if unsent > 0.0 && overloaded.is_none() {
        draft.fail(format!("{} requests that were due were never sent", number(unsent)));
    }
    let p99 = context.latency.send_lag.and_then(|lag| lag.any_p99_ns());
    draft.note("p99 of sent − due", p99.map(|ns| ns as f64 / 1e6), "ms");
    let Some(p99) = p99 else {
        draft.fail("nobody recorded how late requests were sent");
        return draft;
    };
    if p99 > p99_ns {
        match overloaded {
            Some(why) => {
                draft.pass_with(|| format!("sends were up to {} late (p99): {why}", ms(p99 as f64)));
            }
            None => draft.fail(format!(
                "sends were late: p99 of (sent − due) is {}, more than {}",
                ms(p99 as f64),
                ms(p99_ns as f64)
            )),
        }
    }
    draft.pass_with_if_unsaid(|| format!("sends were on schedule: p99 of (sent − due) is {}", ms(p99 as f64)));
    draft
}

/// Why an open loop fell behind, where the candidate and nothing else was the reason: it held nearly every connection, its mean
/// service time alone was beyond the tightest latency that the rate has to keep, and the generator had time to spare.
///
/// More connections would not have helped: with every connection taken the mean is connections ÷ rate (Little's law), and where
/// that is above the limit the rate is not carried, however many wait.
pub(crate) fn overloaded_by_its_own_slowness(context: &Context<'_>) -> Option<String> {
    if !context.is_open() || busy_generator(context).is_none_or(|busy| busy >= BUSY) {
        return None;
    }
    let limit_ms = context
        .phase
        .carried
        .iter()
        .filter(|condition| {
            matches!(condition.metric, Metric::CorrectedP50 | Metric::CorrectedP99 | Metric::CorrectedP999)
                && matches!(condition.comparison, Comparison::Less | Comparison::LessOrEqual)
        })
        .map(|condition| condition.value)
        .reduce(f64::min)?;
    let load = context.facts.load.as_ref()?;
    let mean_ns = context.latency.service?.mean_ns?;
    let rate = *context.values.get(&Metric::Throughput)?;
    let taken = 1.0 + stats::law::littles_deviation(rate, mean_ns / 1e9, f64::from(load.places()))?;
    (taken >= CONNECTIONS_TAKEN && mean_ns / 1e6 >= limit_ms).then(|| {
        format!(
            "the candidate held {} of the {} connections, {} each on average, where {} ms is the limit",
            percent(taken.min(1.0)),
            load.connections,
            ms(mean_ns),
            number(limit_ms)
        )
    })
}

/// The generator's CPU time ÷ (threads × window).
fn busy_generator(context: &Context<'_>) -> Option<f64> {
    let generator = &context.facts.load.as_ref()?.generator;
    let allowed = f64::from(generator.threads) * context.facts.window.seconds() * 1e9;
    let busy = generator.cpu_ns? as f64 / allowed;
    busy.is_finite().then_some(busy)
}

/// Closed loop without think time: |X · mean(R) ÷ N − 1| ≤ tolerance.
pub(crate) fn littles_law(context: &Context<'_>, tolerance: f64) -> Draft {
    let mut draft = Draft::new(GateKind::Wrong);
    draft.note("tolerance", Some(tolerance), "ratio");
    if context.is_open() {
        draft.fail("Little's law in this form holds for a closed loop, and this one is open");
        return draft;
    }
    let (Some(load), Ok(rate)) = (&context.facts.load, context.value(Metric::Throughput)) else {
        draft.fail("the generator left no account to hold against Little's law");
        return draft;
    };
    let mean = context.latency.service.and_then(|service| service.mean_ns);
    let off = mean.and_then(|mean| stats::law::littles_deviation(rate, mean / 1e9, f64::from(load.places())));
    draft.note("rate", Some(rate), "1/s");
    draft.note("mean service time", mean.map(|ns| ns / 1e6), "ms");
    draft.note("connections", Some(f64::from(load.places())), "count");
    draft.note("connections that were used", Some(f64::from(load.connections_used)), "count");
    draft.note("deviation", off, "ratio");
    let Some(off) = off else {
        draft.fail("there is no mean service time, or there were no connections, to hold against Little's law");
        return draft;
    };
    let taken = |off: f64| percent(1.0 + off);
    if off > tolerance {
        draft.fail(format!(
            "rate × mean service time is {} of the {} connections, which can't be: a latency or a count is wrong",
            taken(off),
            load.connections
        ));
    } else if off < -tolerance {
        let unused = load.connections.saturating_sub(load.connections_used);
        let why = if load.tool.is_some() {
            "the rest of the time they waited for the tool".to_owned()
        } else if unused > 0 {
            format!("{unused} of them never got an answer")
        } else {
            "the rest of the time they waited for the generator".to_owned()
        };
        draft.fail_as(
            GateKind::BenchLimited,
            format!(
                "only {} of the {} connections were waiting for the candidate: {why}",
                taken(off),
                load.connections
            ),
        );
    }
    draft.pass_with(|| format!("rate × mean service time is {} of the {} connections", taken(off), load.connections));
    draft
}

/// Closed loop: the sentence of a floor, where the candidate left some of its CPUs idle while a CPU of database or load, or the
/// generator itself, was busy. A floor is a rate that the candidate carried and perhaps could have exceeded.
pub(crate) fn limited_by(context: &Context<'_>) -> Option<String> {
    if context.is_open() || context.facts.load.is_none() || context.cpus.is_empty() {
        return None;
    }
    let used = *context.values.get(&Metric::CoresUsed)?;
    let given = context.cpus.len() as f64;
    if used >= SATURATED * given {
        return None;
    }
    let machine = &context.plan.machine;
    let busiest = machine
        .database
        .union(&machine.load)
        .missing_from(context.cpus)
        .cpus()
        .iter()
        .filter_map(|cpu| {
            let times = context.facts.host.cpus.get(cpu)?;
            let taken = times.busy as f64 + times.steal as f64;
            let share = taken / (taken + times.idle as f64);
            share.is_finite().then_some((share, *cpu))
        })
        .max_by(|left, right| left.0.total_cmp(&right.0).then(right.1.cmp(&left.1)));
    let used_of = if context.cpus.len() == 1 {
        format!("the candidate used {} of its core", ratio(used))
    } else {
        format!("the candidate used {} of its {} cores", ratio(used), context.cpus.len())
    };
    if let Some((share, cpu)) = busiest.filter(|(share, _)| *share >= BUSY) {
        let roles = roles_on(&machine.database, &machine.load, cpu);
        return Some(format!("a floor: CPU {cpu} ({roles}) was {} busy while {used_of}", percent(share)));
    }
    let busy = busy_generator(context).filter(|busy| *busy >= BUSY)?;
    Some(format!("a floor: the generator was {} busy while {used_of}", percent(busy.min(1.0))))
}

fn roles_on(database: &CpuSet, load: &CpuSet, cpu: u32) -> &'static str {
    match (database.cpus().contains(&cpu), load.cpus().contains(&cpu)) {
        (true, true) => "database and load",
        (true, false) => "database",
        _ => "load",
    }
}
