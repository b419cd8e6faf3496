//! From evidence to judgement: which repetitions are valid, what the figures are, what was chosen, whether the study may publish.
//!
//! [`Evidence`] is the fold of a journal's events, [`judge`] the pure function from plan and evidence to a [`Judgement`].
//! The engine asks it between repetitions ([`wanted`], [`levels`], [`probe_target`]), the report at the end: the same
//! function on the same events, so what a run shows live and what a replay shows are the same.
//!
//! Gates fail closed: missing data voids a repetition, and the sentence names what is missing.
//!
//! Invariant: no clock, no disk, no printing, and no panic whatever the facts are.

mod agreement;
mod carried;
mod choice;
mod demand;
mod derive;
mod estimate;
pub mod evidence;
mod figure;
mod gate;
pub mod judgement;
mod latency;
mod mapping;
pub mod next;
mod paced;
mod remarks;
mod repetition;
mod verdict;
mod words;

use plan::Plan;

pub use evidence::{Evidence, cell_hash};
pub use judgement::{
    AgreementCell, AgreementCheck, AgreementOutcome, ChoiceOutcome, Chosen, ConditionOutcome, Confidence,
    ConfidenceLevel, CpuPace, Figure, GateKind, GateOutcome, GateValue, JudgedRepetition, Judgement, LevelScore,
    Outcome, QuietTime, RepetitionVerdict, Seen, Verdict, VerdictKind, WorstLevel,
};
pub use next::{levels, probe_target, wanted};

/// Judges all that a run has shown so far.
pub fn judge(plan: &Plan, evidence: &Evidence) -> Judgement {
    let quiet = repetition::quiet_times(evidence);
    let repetitions = repetition::judged(plan, evidence, &quiet);
    let choices = choice::choices(plan, evidence, &repetitions);
    let figures = figure::figures(plan, evidence, &repetitions);
    let agreements = agreement::check(plan, &choices, &figures);
    let mut limits: Vec<String> = plan.limits.iter().map(|limit| limit.text.clone()).collect();
    limits.extend(quiet.values().filter_map(|quiet| quiet.problem.clone()));
    limits.extend(repetition::unequal_quiet_times(&quiet));
    limits.extend(choice::limits(&choices));
    let mut judgement = Judgement {
        repetitions,
        figures,
        choices,
        agreements,
        verdict: Verdict { kind: VerdictKind::Void, reasons: Vec::new() },
        confidence: Confidence { level: ConfidenceLevel::Low, reasons: Vec::new() },
        quiet,
        limits,
    };
    // What other phases read is taken before figures that disagree are withheld: the run went by it.
    let provisional = next::provisional_readings(plan, evidence, &judgement);
    judgement.limits.extend(provisional);
    agreement::withhold(plan, &judgement.choices, &judgement.agreements, &mut judgement.figures);
    judgement.verdict = verdict::verdict(plan, evidence, &judgement);
    judgement.confidence = verdict::confidence(plan, evidence, &judgement);
    judgement
}
