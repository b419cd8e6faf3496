//! From evidence to judgement: which repetitions are valid, what the figures are, what was chosen, whether the study may publish.
//!
//! [`Evidence`] is the fold of a journal's events, [`judge`] the pure function from plan and evidence to a [`Judgement`].
//! The engine asks it between repetitions ([`wanted`], [`levels`], [`probe_target`]), the report at the end: the same
//! function on the same events, so what a run shows live and what a replay shows are the same.
//!
//! Gates fail closed: missing data voids a repetition, and the sentence names what is missing.
//!
//! Invariant: no clock, no disk, no printing, and no panic whatever the facts are.

mod derive;
pub mod evidence;
pub mod judgement;
mod mapping;
pub mod next;
mod repetition;
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
    Judgement {
        repetitions,
        figures: Vec::new(),
        choices: Vec::new(),
        agreements: Vec::new(),
        verdict: Verdict { kind: VerdictKind::Void, reasons: vec!["no figure is determined".to_owned()] },
        confidence: Confidence { level: ConfidenceLevel::Low, reasons: vec!["no figure is determined".to_owned()] },
        quiet,
        limits: plan.limits.iter().map(|limit| limit.text.clone()).collect(),
    }
}
