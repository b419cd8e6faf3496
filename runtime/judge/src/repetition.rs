//! One repetition after the other: values, pace, gates, conditions.

use std::collections::BTreeMap;

use plan::{Plan, Procedure};

use crate::derive::{candidate_cpus, derive, paces, witness};
use crate::evidence::{Attempt, AttemptEnd, Evidence, cell_hash};
use crate::judgement::{GateKind, GateOutcome, JudgedRepetition, QuietTime, RepetitionVerdict};
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

/// Every repetition that ended, judged.
pub(crate) fn judged(plan: &Plan, evidence: &Evidence, quiet: &BTreeMap<u32, QuietTime>) -> Vec<JudgedRepetition> {
    evidence.attempts().map(|attempt| judged_alone(plan, attempt, quiet)).collect()
}

fn judged_alone(plan: &Plan, attempt: &Attempt, quiet: &BTreeMap<u32, QuietTime>) -> JudgedRepetition {
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
        levels: attempt.levels.clone(),
    };
    let current = cell_hash(plan, &attempt.id.phase, attempt.id.cell);
    judged.superseded = current.is_none() || attempt.hash.as_ref() != current;
    let (Some(phase), AttemptEnd::Measured(facts)) = (plan.phase(&attempt.id.phase), &attempt.end) else {
        if let AttemptEnd::Failed(failure) = &attempt.end {
            judged.gates.push(GateOutcome {
                gate: "measured".to_owned(),
                passed: false,
                values: Vec::new(),
                sentence: format!("it could not be measured: {}", failure.what),
                kind: GateKind::Wrong,
            });
        }
        return judged;
    };
    let cpus = candidate_cpus(plan, phase, attempt.id.cell);
    judged.pace = paces(facts, &cpus, quiet);
    let derived = derive(phase, facts, &judged.pace, &cpus);
    judged.values = derived.values;
    judged.missing = derived.missing;
    if let Procedure::Load(load) = &phase.procedure {
        judged.rate = load.rate.as_ref().and(facts.load.as_ref()).and_then(|load| load.rate);
    }
    judged
}
