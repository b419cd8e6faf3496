//! What one repetition's facts amount to: a value per metric, or why there is none.

use std::collections::BTreeMap;

use journal::{Counters, Histogram, RepetitionFacts};
use plan::{CpuSet, Level, Metric, Phase, Plan, Procedure};

use crate::judgement::{CpuPace, QuietTime};
use crate::words;

/// Values and, for the metrics that this kind of phase yields, why one is missing.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Derived {
    pub values: BTreeMap<Metric, f64>,
    pub missing: BTreeMap<Metric, String>,
}

impl Derived {
    fn put(&mut self, metric: Metric, value: Result<f64, String>) {
        match value {
            Ok(value) if value.is_finite() => {
                self.values.insert(metric, value);
            }
            Ok(_) => {
                self.missing.insert(metric, format!("{} can't be computed from what was recorded", metric.name()));
            }
            Err(why) => {
                self.missing.insert(metric, why);
            }
        }
    }
}

/// The confidence at which a percentile has to be supported by its number of answers.
pub(crate) const PERCENTILE_CONFIDENCE: f64 = 0.99;

/// The metrics that a phase of this kind yields, in the order of the figures.
pub(crate) fn metrics_of(phase: &Phase) -> Vec<Metric> {
    match &phase.procedure {
        Procedure::Pgbench(_) => vec![Metric::Tps, Metric::TransactionLatency, Metric::DatabaseCoresUsed],
        Procedure::Load(load) => {
            let mut metrics = vec![
                Metric::Throughput,
                Metric::CpuPerRequest,
                Metric::PacedCpuPerRequest,
                Metric::CoresUsed,
                Metric::DatabaseCpuPerRequest,
                Metric::DatabaseCoresUsed,
                Metric::Memory,
                Metric::ServiceP50,
                Metric::ServiceP99,
                Metric::TtfbP99,
            ];
            if load.rate.is_some() {
                metrics.extend([Metric::CorrectedP50, Metric::CorrectedP99, Metric::CorrectedP999, Metric::Achieved]);
            }
            metrics.push(Metric::Errors);
            metrics
        }
    }
}

/// The level of a factor in a cell, as text.
pub(crate) fn level_of(phase: &Phase, cell: u32, factor: &str) -> Option<Level> {
    let position = phase.axes.iter().position(|axis| axis.factor == factor)?;
    phase.cells.get(cell as usize)?.levels.get(position).cloned()
}

/// The candidate of a cell: its level of `candidate`, or the only candidate of the study.
pub(crate) fn candidate_of<'a>(plan: &'a Plan, phase: &Phase, cell: u32) -> Option<&'a str> {
    match level_of(phase, cell, "candidate") {
        Some(level) => plan.candidate(&level.to_string()).map(|candidate| candidate.name.as_str()),
        None => match &plan.candidates[..] {
            [only] => Some(&only.name),
            _ => None,
        },
    }
}

/// The CPUs that are measured in a cell: the candidate's (the first `cores` of the machine's set, or all of it); the database's where
/// it is measured alone.
pub(crate) fn measured_cpus(plan: &Plan, phase: &Phase, cell: u32) -> CpuSet {
    if matches!(phase.procedure, Procedure::Pgbench(_)) {
        return plan.machine.database.clone();
    }
    let cores = match level_of(phase, cell, "cores") {
        Some(Level::Integer(cores)) => usize::try_from(cores).ok(),
        _ => None,
    };
    let all = &plan.machine.candidate;
    cores.and_then(|cores| all.first(cores)).unwrap_or_else(|| all.clone())
}

/// The pace of the given CPUs in a window; a CPU without samples or without a quiet time is left out.
pub(crate) fn paces(
    facts: &RepetitionFacts,
    cpus: &CpuSet,
    quiet: &BTreeMap<u32, QuietTime>,
) -> BTreeMap<u32, CpuPace> {
    cpus.cpus()
        .iter()
        .filter_map(|&cpu| {
            let time = quiet.get(&cpu).filter(|time| time.problem.is_none())?;
            let pace = witness(&facts.pace.get(&cpu)?.samples).pace(time.quiet_ns)?;
            let pace = CpuPace {
                pace: pace.pace,
                quiet_share: pace.quiet_share,
                capped_mean_ns: pace.capped_mean,
                slowed_to: pace.slowed_to,
                samples: pace.samples,
            };
            Some((cpu, pace))
        })
        .collect()
}

/// The witness's samples, each at the middle of its bucket.
pub(crate) fn witness(samples: &Histogram) -> stats::Witness {
    stats::Witness::new(samples.buckets.iter().filter(|(index, _)| *index < MAX_BUCKET).map(|&(index, count)| {
        let (low, high) = Histogram::bounds(index);
        (f64::midpoint(low as f64, high as f64), count)
    }))
}

/// No value of 64 bits falls into this bucket or a later one.
const MAX_BUCKET: u32 = Histogram::index(u64::MAX) + 1;

/// One pace for all of the candidate's CPUs: each weighted by how busy it was, or all alike where that is not known.
pub(crate) fn joint_pace(facts: &RepetitionFacts, paces: &BTreeMap<u32, CpuPace>, cpus: &CpuSet) -> Option<f64> {
    if cpus.is_empty() || cpus.cpus().iter().any(|cpu| !paces.contains_key(cpu)) {
        return None;
    }
    let busy = |cpu: &u32| facts.host.cpus.get(cpu).map_or(0.0, |times| times.busy as f64);
    let total: f64 = paces.keys().map(busy).sum();
    let weight = |cpu: &u32| if total > 0.0 { busy(cpu) / total } else { 1.0 / paces.len() as f64 };
    Some(paces.iter().map(|(cpu, pace)| weight(cpu) * pace.pace).sum())
}

/// Steal of these CPUs together, as a share of the window.
pub(crate) fn steal_share(facts: &RepetitionFacts, cpus: &CpuSet) -> Option<f64> {
    let mut steal = 0.0;
    let mut all = 0.0;
    for cpu in cpus.cpus() {
        let times = facts.host.cpus.get(cpu)?;
        steal += times.steal as f64;
        all += times.busy as f64 + times.idle as f64 + times.steal as f64;
    }
    (all > 0.0).then_some(steal / all)
}

/// Expected answers of the window, all streams together.
pub(crate) fn answers(facts: &RepetitionFacts) -> Option<u64> {
    let load = facts.load.as_ref()?;
    Some(load.streams.iter().fold(0u64, |sum, stream| sum.saturating_add(stream.census.ok)))
}

/// The histograms of all streams, merged. `None` where a stream has none.
pub(crate) fn merged<'a>(histograms: impl Iterator<Item = Option<&'a Histogram>>) -> Option<Histogram> {
    let mut all = Histogram::default();
    for histogram in histograms {
        merge(&mut all, histogram?);
    }
    Some(all)
}

/// As [`Histogram::merge`], but saturating: a journal that was tampered with must not end the program.
pub(crate) fn merge(into: &mut Histogram, other: &Histogram) {
    if into.count.checked_add(other.count).is_none() || into.sum_ns.checked_add(other.sum_ns).is_none() {
        return;
    }
    let fits = |histogram: &Histogram| {
        histogram.buckets.iter().all(|(index, _)| *index < MAX_BUCKET)
            && histogram.buckets.iter().try_fold(0u64, |sum, (_, count)| sum.checked_add(*count)).is_some()
    };
    if fits(into) && fits(other) {
        let total = |histogram: &Histogram| histogram.buckets.iter().map(|(_, count)| count).sum::<u64>();
        if total(into).checked_add(total(other)).is_some() {
            into.merge(other);
        }
    }
}

/// Every value that the facts give.
pub(crate) fn derive(phase: &Phase, facts: &RepetitionFacts, paces: &BTreeMap<u32, CpuPace>, cpus: &CpuSet) -> Derived {
    let mut derived = Derived::default();
    let seconds = facts.window.seconds();
    if seconds <= 0.0 {
        for metric in metrics_of(phase) {
            derived.missing.insert(metric, "the window has no length".to_owned());
        }
        return derived;
    }
    match &phase.procedure {
        Procedure::Pgbench(_) => derive_pgbench(&mut derived, facts),
        Procedure::Load(load) => derive_load(&mut derived, facts, seconds, load.rate.is_some(), paces, cpus),
    }
    let database_cpu = cpu_ns(facts.database.as_ref(), "database");
    derived.put(Metric::DatabaseCoresUsed, database_cpu.map(|ns| ns / 1e9 / seconds));
    derived
}

fn derive_pgbench(derived: &mut Derived, facts: &RepetitionFacts) {
    match &facts.pgbench {
        Some(pgbench) => {
            derived.put(Metric::Tps, Ok(pgbench.tps));
            derived.put(Metric::TransactionLatency, Ok(pgbench.latency_ms));
        }
        None => {
            for metric in [Metric::Tps, Metric::TransactionLatency] {
                derived.put(metric, Err("pgbench left no account".to_owned()));
            }
        }
    }
}

fn derive_load(
    derived: &mut Derived,
    facts: &RepetitionFacts,
    seconds: f64,
    open: bool,
    paces: &BTreeMap<u32, CpuPace>,
    cpus: &CpuSet,
) {
    let Some(load) = &facts.load else {
        for metric in Metric::ALL {
            if !matches!(metric, Metric::Database | Metric::Choice | Metric::Tps | Metric::TransactionLatency) {
                derived.missing.insert(metric, "the generator left no account".to_owned());
            }
        }
        return;
    };
    let ok = answers(facts).unwrap_or(0) as f64;
    let per_answer = |ns: Result<f64, String>| match ns {
        Ok(_) if ok == 0.0 => Err("there was no expected answer".to_owned()),
        Ok(ns) => Ok(ns / 1e3 / ok),
        Err(why) => Err(why),
    };
    derived.put(Metric::Throughput, Ok(ok / seconds));
    let candidate_cpu = cpu_ns(facts.candidate.as_ref(), "candidate");
    let demand = per_answer(candidate_cpu.clone());
    derived.put(Metric::CpuPerRequest, demand.clone());
    derived.put(Metric::CoresUsed, candidate_cpu.map(|ns| ns / 1e9 / seconds));
    derived.put(
        Metric::PacedCpuPerRequest,
        demand.and_then(|demand| {
            let pace = joint_pace(facts, paces, cpus)
                .ok_or_else(|| format!("the pace of CPU {cpus} is not known in this window"))?;
            let steal = steal_share(facts, cpus)
                .ok_or_else(|| format!("the steal of CPU {cpus} is not known in this window"))?;
            stats::pace::paced_demand(demand, pace, steal).ok_or_else(|| "it is no number".to_owned())
        }),
    );
    derived.put(Metric::DatabaseCpuPerRequest, per_answer(cpu_ns(facts.database.as_ref(), "database")));
    let memory = facts.candidate.as_ref().and_then(|counters| counters.memory_peak_bytes);
    derived.put(
        Metric::Memory,
        memory.map(|bytes| bytes as f64).ok_or_else(|| "the candidate's memory could not be read".to_owned()),
    );
    let service = merged(load.streams.iter().map(|stream| Some(&stream.service)));
    derived.put(Metric::ServiceP50, percentile(service.as_ref(), 0.5));
    derived.put(Metric::ServiceP99, percentile(service.as_ref(), 0.99));
    derived
        .put(Metric::TtfbP99, percentile(merged(load.streams.iter().map(|stream| Some(&stream.ttfb))).as_ref(), 0.99));
    if open {
        let corrected = merged(load.streams.iter().map(|stream| stream.corrected.as_ref()));
        for (metric, q) in [(Metric::CorrectedP50, 0.5), (Metric::CorrectedP99, 0.99), (Metric::CorrectedP999, 0.999)] {
            derived.put(metric, percentile(corrected.as_ref(), q));
        }
        let due = load.streams.iter().fold(0u64, |sum, stream| sum.saturating_add(stream.census.due));
        derived.put(
            Metric::Achieved,
            if due > 0 { Ok(ok / due as f64) } else { Err("no request was due in the window".to_owned()) },
        );
    }
    let errors: f64 = load
        .streams
        .iter()
        .map(|stream| &stream.census)
        .map(|c| c.failed as f64 + c.timed_out as f64 + c.unanswered as f64 + c.unsent as f64)
        .sum();
    derived.put(Metric::Errors, Ok(errors));
}

/// CPU time of a role in the window, or which reading is missing.
pub(crate) fn cpu_ns(counters: Option<&Counters>, role: &str) -> Result<f64, String> {
    let Some(counters) = counters else {
        return Err(format!("the {role}'s CPU counter was not read"));
    };
    match (counters.start, counters.end, counters.cpu_ns()) {
        (_, _, Some(ns)) => Ok(ns as f64),
        (None, _, _) => Err(format!("the {role}'s CPU counter could not be read at the window's start")),
        (_, None, _) => Err(format!("the {role}'s CPU counter could not be read at the window's end")),
        (Some(start), Some(end), None) => Err(format!(
            "the {role}'s CPU counter ran backwards, from {} to {} ns",
            words::count(start.cpu_ns),
            words::count(end.cpu_ns)
        )),
    }
}

/// A percentile in ms, where the number of answers supports it: with as few as `least_answers`, a share q in time could
/// still be shown at 99 % confidence.
fn percentile(histogram: Option<&Histogram>, q: f64) -> Result<f64, String> {
    let histogram = histogram.ok_or_else(|| "a stream left no histogram".to_owned())?;
    let name = words::number(q * 100.0);
    let least = stats::slo::least_answers(0, q, PERCENTILE_CONFIDENCE).unwrap_or(u64::MAX);
    if histogram.count < least {
        return Err(format!(
            "p{name} needs at least {} answers, there were {}",
            words::count(least),
            words::count(histogram.count)
        ));
    }
    histogram.quantile_ns(q).map(|ns| ns as f64 / 1e6).ok_or_else(|| format!("p{name} of no answers"))
}
