//! Every repetition that counts, with its verdict and what decided it.

use judge::{JudgedRepetition, Judgement};

use crate::history::{Attempt, History, Outcome, Window};
use crate::model::Repetition;

/// The judged repetitions with what the journal says beside them. Both list the repetitions that ended, in the
/// journal's order; the id decides should they ever differ.
pub(super) fn paired<'a>(
    history: &'a History,
    judgement: &'a Judgement,
) -> impl Iterator<Item = (Option<&'a Attempt>, &'a JudgedRepetition)> {
    let ended: Vec<&Attempt> =
        history.attempts.iter().filter(|attempt| attempt.outcome != Outcome::Unfinished).collect();
    judgement.repetitions.iter().enumerate().map(move |(index, judged)| {
        let attempt = match ended.get(index) {
            Some(attempt) if attempt.id == judged.id => Some(*attempt),
            _ => ended.iter().rev().find(|attempt| attempt.id == judged.id).copied(),
        };
        (attempt, judged)
    })
}

/// Every repetition that counts, in the journal's order.
pub(super) fn repetitions(history: &History, judgement: &Judgement) -> Vec<Repetition> {
    paired(history, judgement)
        .filter(|(_, judged)| !judged.superseded)
        .map(|(attempt, judged)| {
            let (window, failed) = match attempt.map(|attempt| &attempt.outcome) {
                Some(Outcome::Measured { window, .. }) => (window.clone(), None),
                Some(Outcome::Failed { failure, .. }) => (Window::default(), Some(failure.what.clone())),
                Some(Outcome::Unfinished) | None => (Window::default(), None),
            };
            let mut reasons: Vec<String> = judged.failed_gates().map(|gate| gate.sentence.clone()).collect();
            if reasons.is_empty() && !judged.is_valid() {
                reasons.push(failed.unwrap_or_else(|| "it could not be measured".to_owned()));
            }
            Repetition {
                id: judged.id.to_string(),
                phase: judged.id.phase.clone(),
                cell: judged.id.cell,
                number: judged.id.number,
                levels: judged.levels.clone(),
                valid: judged.is_valid(),
                reasons,
                gates: judged.gates.clone(),
                values: judged.values.iter().map(|(metric, &value)| (metric.name().to_owned(), value)).collect(),
                missing: judged.missing.iter().map(|(metric, why)| (metric.name().to_owned(), why.clone())).collect(),
                pace: judged.pace.clone(),
                conditions: judged.conditions.clone(),
                carried: judged.carried,
                ok: window.ok,
                failures: window.failures,
                evidence: window.evidence,
                sent: window.sent,
                course: window.course.into_iter().map(|(metric, points)| (metric.name().to_owned(), points)).collect(),
                findings: window.findings,
                window_ns: window.length_ns,
                took_ns: attempt.and_then(Attempt::took_ns).unwrap_or_default(),
            }
        })
        .collect()
}
