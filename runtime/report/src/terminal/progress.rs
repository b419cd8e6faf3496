//! Time left: what the plan expects, corrected by how long repetitions really took.

use std::collections::BTreeMap;

use judge::{Evidence, Judgement};
use plan::{Phase, Plan};

use crate::fold::Fold;
use crate::number::duration;
use crate::outlook::{Outlook, PhaseOutlook};

/// How long repetitions took, by phase.
#[derive(Debug, Clone, Default)]
pub(super) struct Pacing {
    /// Repetitions and ns, by phase.
    took: BTreeMap<String, (u64, u64)>,
    /// What the plan expected of all repetitions that took it, ns.
    expected_ns: u64,
}

/// How far a phase is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PhaseState {
    /// Repetitions that ended.
    pub done: u64,
    /// Repetitions that are needed if none of them is void.
    pub needed: u64,
    /// Repetitions that the budgets still allow.
    pub budget: u64,
    /// Valid ones among those done.
    pub valid: u64,
}

impl Pacing {
    /// Learns from a repetition that ended.
    pub fn learn(&mut self, outlook: &Outlook, phase: &str, took_ns: u64) {
        let entry = self.took.entry(phase.to_owned()).or_default();
        entry.0 += 1;
        entry.1 = entry.1.saturating_add(took_ns);
        let expected = outlook.phases.iter().find(|known| known.phase == phase).map_or(0, |known| known.repetition_ns);
        self.expected_ns = self.expected_ns.saturating_add(expected);
    }

    /// How long one repetition of a phase takes, ns: its own mean, else the plan's expectation scaled as others were off.
    fn repetition_ns(&self, expected: &PhaseOutlook) -> u64 {
        if let Some(&(number, took)) = self.took.get(&expected.phase)
            && number > 0
        {
            return took / number;
        }
        let took: u64 = self.took.values().fold(0, |sum, (_, took)| sum.saturating_add(*took));
        if self.expected_ns == 0 || took == 0 {
            return expected.repetition_ns;
        }
        let factor = (took as f64 / self.expected_ns as f64).clamp(0.25, 4.0);
        (expected.repetition_ns as f64 * factor) as u64
    }

    /// How far a phase is; cells of candidates that can't be measured don't count.
    pub fn phase(&self, plan: &Plan, phase: &Phase, judgement: &Judgement, evidence: &Evidence) -> PhaseState {
        let mut of_cell: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for judged in judgement.repetitions.iter().filter(|judged| !judged.superseded && judged.id.phase == phase.name)
        {
            let entry = of_cell.entry(judged.id.cell).or_default();
            entry.0 += 1;
            entry.1 += u64::from(judged.is_valid());
        }
        let axis = phase.axes.iter().position(|axis| axis.factor == "candidate");
        let excluded: Vec<String> = plan
            .candidates
            .iter()
            .filter(|candidate| evidence.excluded(plan, &candidate.name).is_some())
            .map(|candidate| candidate.name.clone())
            .collect();
        let mut state = PhaseState { done: 0, needed: 0, budget: 0, valid: 0 };
        for (index, cell) in phase.cells.iter().enumerate() {
            let (done, valid) = of_cell.get(&(index as u32)).copied().unwrap_or_default();
            state.done += done;
            state.valid += valid;
            let candidate = axis.and_then(|axis| cell.levels.get(axis)).map(ToString::to_string);
            if candidate.is_some_and(|candidate| excluded.contains(&candidate)) {
                continue;
            }
            let budget = u64::from(phase.repeat.at_most).saturating_sub(done);
            state.budget += budget;
            state.needed += u64::from(phase.repeat.valid).saturating_sub(valid).min(budget);
        }
        state
    }

    /// Time left of the whole run as of `now_ns`, ns.
    pub fn left_ns(
        &self,
        plan: &Plan,
        outlook: &Outlook,
        current: &Phase,
        judgement: &Judgement,
        fold: &Fold,
        now_ns: u64,
    ) -> u64 {
        let mut left: u64 = 0;
        let mut reached = false;
        for (phase, expected) in plan.phases.iter().zip(&outlook.phases) {
            reached |= phase.name == current.name;
            if !reached {
                continue;
            }
            let state = self.phase(plan, phase, judgement, &fold.evidence);
            // Void repetitions are measured again: as many as the phase's own share of void ones foretells.
            let share = if state.done == 0 { 1.0 } else { (state.valid as f64 / state.done as f64).max(0.2) };
            let repetitions = ((state.needed as f64 / share).ceil() as u64).min(state.budget);
            left = left.saturating_add(repetitions.saturating_mul(self.repetition_ns(expected)));
        }
        let running = fold.history.current().map_or(0, |attempt| {
            let expected = outlook.phases.iter().find(|known| known.phase == attempt.id.phase);
            let whole = expected.map_or(0, |expected| self.repetition_ns(expected));
            now_ns.saturating_sub(attempt.started_ns).min(whole)
        });
        left.saturating_sub(running)
    }
}

/// Time left for people: to 5 s below a minute, else to 10 s, then to minutes, so that it does not flicker.
pub(super) fn rough(ns: u64) -> String {
    let second = 1_000_000_000;
    let seconds = ns / second;
    match seconds {
        0..5 => "seconds".to_owned(),
        5..60 => duration(seconds.div_ceil(5) * 5 * second),
        60..600 => duration(seconds.div_ceil(10) * 10 * second),
        600..5_400 => format!("{} min", seconds.div_ceil(60)),
        _ => duration(seconds.div_ceil(60) * 60 * second),
    }
}
