//! What one repetition's facts amount to: a value per metric, or why there is none.

use std::collections::BTreeMap;

use journal::{Counters, RepetitionFacts};
use plan::tool::needed_by_metric;
use plan::{CpuSet, Level, Metric, Phase, Plan, Procedure};

use crate::judgement::{CpuPace, QuietTime};
use crate::latency::{Latency, Summary, witness};
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

/// The metrics that a phase of this kind yields, in the order of the figures.
pub(crate) fn metrics_of(phase: &Phase) -> Vec<Metric> {
    match &phase.procedure {
        Procedure::Pgbench(_) => vec![Metric::Tps, Metric::TransactionLatency, Metric::DatabaseCoresUsed],
        Procedure::Start(_) => vec![Metric::StartTime, Metric::StartCpu, Metric::Memory],
        Procedure::Load(load) => {
            let mut metrics = vec![
                Metric::Throughput,
                Metric::CpuPerRequest,
                Metric::PacedCpuPerRequest,
                Metric::CoresUsed,
                Metric::DatabaseCpuPerRequest,
                Metric::DatabaseCoresUsed,
                Metric::Memory,
                Metric::MemoryGrowth,
                Metric::ServiceP50,
                Metric::ServiceP99,
                Metric::TtfbP99,
            ];
            if load.rate.is_some() {
                metrics.extend([Metric::CorrectedP50, Metric::CorrectedP99, Metric::CorrectedP999, Metric::Achieved]);
            }
            metrics.push(Metric::Errors);
            let open = load.rate.is_some();
            metrics.retain(|metric| needed_by_metric(*metric).is_none_or(|account| load.with.gives(account, open)));
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

/// Every value that the facts give.
pub(crate) fn derive(
    phase: &Phase,
    facts: &RepetitionFacts,
    latency: &Latency,
    paces: &BTreeMap<u32, CpuPace>,
    cpus: &CpuSet,
) -> Derived {
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
        Procedure::Start(_) => {
            derive_start(&mut derived, facts);
            return derived;
        }
        Procedure::Load(load) => derive_load(&mut derived, facts, latency, seconds, load.rate.is_some(), paces, cpus),
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

/// Slices with a look at memory that a slope needs at least.
const SLICES: usize = 6;

fn derive_start(derived: &mut Derived, facts: &RepetitionFacts) {
    let Some(start) = &facts.start else {
        for metric in [Metric::StartTime, Metric::StartCpu] {
            derived.missing.insert(metric, "the start was not recorded".to_owned());
        }
        return;
    };
    let took = start.ready_ns.checked_sub(start.asked_ns).filter(|&ns| ns > 0);
    derived.put(
        Metric::StartTime,
        took.map(|ns| ns as f64 / 1e6)
            .ok_or_else(|| "the first ready answer came before the start was asked for".to_owned()),
    );
    derived.put(
        Metric::StartCpu,
        start
            .cpu_ns
            .map(|ns| ns as f64 / 1e6)
            .ok_or_else(|| "the candidate's CPU counter could not be read after its first ready answer".to_owned()),
    );
    derived.put(Metric::Memory, memory_peak(facts));
}

fn memory_peak(facts: &RepetitionFacts) -> Result<f64, String> {
    let memory = facts.candidate.as_ref().and_then(|counters| counters.memory_peak_bytes);
    memory.map(|bytes| bytes as f64).ok_or_else(|| "the candidate's memory could not be read".to_owned())
}

/// The slope of memory over the window, bytes per second, by least squares over the slices that were looked at.
fn memory_growth(facts: &RepetitionFacts) -> Result<f64, String> {
    let memory = facts
        .candidate
        .as_ref()
        .and_then(|counters| counters.memory.as_ref())
        .ok_or_else(|| "the candidate's memory over the window was not recorded".to_owned())?;
    let (seconds, bytes): (Vec<f64>, Vec<f64>) = memory.points().unzip();
    if seconds.len() < SLICES {
        return Err(format!(
            "a slope needs {SLICES} looks at memory in different parts of the window, and there were {}",
            seconds.len()
        ));
    }
    if bytes.iter().all(|&other| other == bytes[0]) {
        return Ok(0.0);
    }
    stats::regression::Regression::fit(&bytes, &[&seconds])
        .map(|line| line.coefficients[1])
        .ok_or_else(|| "no line can be laid through what was seen of memory".to_owned())
}

fn derive_load(
    derived: &mut Derived,
    facts: &RepetitionFacts,
    latency: &Latency,
    seconds: f64,
    open: bool,
    paces: &BTreeMap<u32, CpuPace>,
    cpus: &CpuSet,
) {
    let Some(load) = &facts.load else {
        for metric in Metric::ALL {
            if !matches!(
                metric,
                Metric::Database
                    | Metric::Choice
                    | Metric::Tps
                    | Metric::TransactionLatency
                    | Metric::StartTime
                    | Metric::StartCpu
            ) {
                derived.missing.insert(metric, "the generator left no account".to_owned());
            }
        }
        return;
    };
    // A tool measures over a time of its own: what it counted is brought to the counters' window.
    let stretch = load.tool.as_ref().map_or(1.0, |tool| seconds * 1e9 / tool.measured_ns as f64);
    let ok = answers(facts).unwrap_or(0) as f64 * stretch;
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
    derived.put(Metric::Memory, memory_peak(facts));
    derived.put(Metric::MemoryGrowth, memory_growth(facts));
    let told = |summary: Option<&Summary>, of: fn(Option<&Summary>) -> Result<f64, String>| match (&load.tool, summary)
    {
        (Some(tool), None) => Err(format!("{} does not tell it", tool.name)),
        _ => of(summary),
    };
    derived.put(Metric::ServiceP50, told(latency.service.as_ref(), Summary::p50_ms));
    derived.put(Metric::ServiceP99, told(latency.service.as_ref(), Summary::p99_ms));
    derived.put(Metric::TtfbP99, told(latency.ttfb.as_ref(), Summary::p99_ms));
    if open {
        derived.put(Metric::CorrectedP50, told(latency.corrected.as_ref(), Summary::p50_ms));
        derived.put(Metric::CorrectedP99, told(latency.corrected.as_ref(), Summary::p99_ms));
        derived.put(Metric::CorrectedP999, told(latency.corrected.as_ref(), Summary::p999_ms));
        let due = load.streams.iter().fold(0u64, |sum, stream| sum.saturating_add(stream.census.due));
        derived.put(
            Metric::Achieved,
            if due > 0 { Ok(ok / stretch / due as f64) } else { Err("no request was due in the window".to_owned()) },
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
