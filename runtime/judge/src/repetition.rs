//! One repetition after the other: values, pace, gates, conditions.

use std::collections::BTreeMap;

use plan::{Metric, Plan, Procedure};

use crate::derive::{candidate_of, derive, measured_cpus, paces};
use crate::evidence::{Attempt, AttemptEnd, Evidence, cell_hash};
use crate::gate;
use crate::judgement::{GateKind, GateOutcome, JudgedRepetition, NOT_MEASURED, QuietTime, RepetitionVerdict};
use crate::latency::witness;
use crate::remarks::remarks;
use crate::words;

/// The quiet time of every CPU that the witness ran on.
pub(crate) fn quiet_times(evidence: &Evidence) -> BTreeMap<u32, QuietTime> {
    evidence
        .witness
        .iter()
        .map(|(&cpu, samples)| {
            let witness = witness(samples);
            let (quiet_ns, problem) = match witness.quiet_time() {
                Ok(quiet_ns) => (quiet_ns, None),
                Err(stats::pace::NoQuietTime::TooFewSamples { samples }) => (
                    witness.quantile(stats::pace::QUIET_QUANTILE).unwrap_or(0.0),
                    Some(format!(
                        "CPU {cpu} has no quiet time: the run has {samples} samples of its pace, {} are needed",
                        stats::pace::LEAST_SAMPLES_OF_A_RUN
                    )),
                ),
                Err(stats::pace::NoQuietTime::NoQuietMoments { tenth, first }) => (
                    tenth,
                    Some(format!(
                        "CPU {cpu} had too few quiet moments in this run to know its quiet speed: a tenth of its samples took up to \
                         {} µs, a hundredth no more than {} µs",
                        words::number(tenth / 1e3),
                        words::number(first / 1e3)
                    )),
                ),
            };
            (cpu, QuietTime { quiet_ns, samples: witness.count(), problem })
        })
        .collect()
}

/// From this ratio on, two CPUs' quiet times are not of one kind.
const UNEQUAL: f64 = stats::pace::QUIET_WITHIN;

/// The sentence on a CPU whose quiet time is far above another one's: a core of another kind, or one that was never quiet in this run,
/// which its own samples can't tell.
pub(crate) fn unequal_quiet_times(quiet: &BTreeMap<u32, QuietTime>) -> Vec<String> {
    let known = || quiet.iter().filter(|(_, time)| time.problem.is_none());
    let Some((fastest, best)) = known().min_by(|left, right| left.1.quiet_ns.total_cmp(&right.1.quiet_ns)) else {
        return Vec::new();
    };
    known()
        .filter(|(_, time)| time.quiet_ns > UNEQUAL * best.quiet_ns)
        .map(|(cpu, time)| {
            format!(
                "the quiet time of CPU {cpu} is {} µs, that of CPU {fastest} {} µs: CPU {cpu} is a core of another kind, or was never quiet \
                 in this run",
                words::number(time.quiet_ns / 1e3),
                words::number(best.quiet_ns / 1e3)
            )
        })
        .collect()
}

/// Every repetition that ended, judged.
pub(crate) fn judged(plan: &Plan, evidence: &Evidence, quiet: &BTreeMap<u32, QuietTime>) -> Vec<JudgedRepetition> {
    let mut repetitions: Vec<JudgedRepetition> =
        evidence.attempts().map(|attempt| judged_alone(plan, evidence, attempt, quiet)).collect();
    for phase in &plan.phases {
        gate::apply_relative(phase, &mut repetitions);
    }
    for repetition in &mut repetitions {
        let void = repetition.superseded || repetition.failed_gates().next().is_some();
        repetition.verdict = if void { RepetitionVerdict::Void } else { RepetitionVerdict::Valid };
    }
    repetitions
}

/// One repetition by itself: everything but the gates that compare it with others.
fn judged_alone(
    plan: &Plan,
    evidence: &Evidence,
    attempt: &Attempt,
    quiet: &BTreeMap<u32, QuietTime>,
) -> JudgedRepetition {
    let mut judged = JudgedRepetition {
        id: attempt.id.clone(),
        verdict: RepetitionVerdict::Void,
        superseded: false,
        gates: Vec::new(),
        values: BTreeMap::new(),
        missing: BTreeMap::new(),
        pace: BTreeMap::new(),
        conditions: Vec::new(),
        carried: None,
        rate: None,
        limited_by: None,
        remarks: Vec::new(),
        levels: attempt.levels.clone(),
    };
    let current = cell_hash(plan, &attempt.id.phase, attempt.id.cell);
    judged.superseded = current.is_none() || attempt.hash.as_ref() != current;
    let measured = match &attempt.end {
        AttemptEnd::Measured(measured) => measured,
        AttemptEnd::Failed(failure) => return could_not_be_measured(judged, &failure.what),
        AttemptEnd::Open => return could_not_be_measured(judged, "the run was interrupted within it"),
    };
    let Some(phase) = plan.phase(&attempt.id.phase) else {
        return could_not_be_measured(judged, "the plan has no such phase");
    };
    let facts = &measured.facts;
    let cpus = measured_cpus(plan, phase, attempt.id.cell);
    judged.pace = paces(facts, &cpus, quiet);
    let derived = derive(phase, facts, &measured.latency, &judged.pace, &cpus);
    let context = gate::Context {
        plan,
        phase,
        facts,
        latency: &measured.latency,
        cpus: &cpus,
        quiet,
        pace: &judged.pace,
        values: &derived.values,
        missing: &derived.missing,
    };
    let mut gates = Vec::new();
    if let Procedure::Load(load) = &phase.procedure {
        judged.rate = load.rate.as_ref().and(facts.load.as_ref()).and_then(|load| load.rate);
    }
    if !matches!(phase.procedure, Procedure::Pgbench(_)) && !plan.contract.is_empty() {
        gates.push(gate::contract(plan, evidence, candidate_of(plan, phase, attempt.id.cell)));
    }
    gates.extend(phase.gates.iter().filter_map(|gate| gate::absolute(gate, &context)));
    let (conditions, carried, outcome) = gate::conditions(&context);
    gates.extend(outcome);
    let limited_by = gate::limited_by(&context);
    let remarks = remarks(&context);
    judged.remarks = remarks;
    judged.conditions = conditions;
    judged.carried = carried;
    judged.gates = gates;
    judged.limited_by = limited_by;
    judged.values = derived.values;
    judged.missing = derived.missing;
    // A CPU without a quiet time is why there is no paced figure, and says more than that its pace is unknown.
    let problem = cpus.cpus().iter().filter_map(|cpu| quiet.get(cpu)?.problem.as_ref()).next();
    if let (Some(why), Some(problem)) = (judged.missing.get_mut(&Metric::PacedCpuPerRequest), problem) {
        *why = problem.clone();
    }
    judged
}

fn could_not_be_measured(mut judged: JudgedRepetition, why: &str) -> JudgedRepetition {
    judged.gates.push(GateOutcome {
        gate: NOT_MEASURED.to_owned(),
        passed: false,
        values: Vec::new(),
        sentence: format!("it could not be measured: {why}"),
        kind: GateKind::Wrong,
    });
    judged
}
