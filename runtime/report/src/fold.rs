//! The fold of a journal to a [`Report`].

mod figures;
mod items;
mod repetitions;

use std::collections::BTreeMap;

use journal::{Failure, Record, RunEnd, StepEnd};
use judge::{Evidence, Judgement};
use plan::{Plan, StepKind};

use crate::history::{History, Outcome};
use crate::model::{
    ContractOutcome, Durations, Ending, FailureNote, NotMeasured, PhaseGates, REPORT_VERSION, Report, Reproduce,
    Stretch, Study, Superseded,
};
use crate::number::span;
use crate::render::plan::{cell_name, gate, procedure, step_name};
use crate::render::words;

/// Steps that are named where several were not tried for the same reason; the rest is counted.
const NAMED_STEPS: usize = 5;

/// A journal taken record by record; a report can be made of it at any time.
#[derive(Debug, Clone, Default)]
pub struct Fold {
    /// What happened.
    pub history: History,
    /// What the judge makes its judgement of.
    pub evidence: Evidence,
}

/// The report of a run. `records` are its journal's, in order; a journal that stops anywhere gives a report too.
pub fn report(plan: &Plan, records: impl Iterator<Item = Record>) -> Report {
    let mut fold = Fold::default();
    for record in records {
        fold.take(&record);
    }
    fold.report(plan)
}

impl Fold {
    /// Takes the next record.
    pub fn take(&mut self, record: &Record) {
        self.history.take(record);
        self.evidence.take(record);
    }

    /// The judgement as of the last record.
    pub fn judgement(&self, plan: &Plan) -> Judgement {
        judge::judge(plan, &self.evidence)
    }

    /// The report as of the last record.
    pub fn report(&self, plan: &Plan) -> Report {
        let judgement = self.judgement(plan);
        let figures = figures::figures(&judgement);
        let repetitions = repetitions::repetitions(&self.history, &judgement);
        let items = items::items(plan, &self.history, &judgement, &figures, &repetitions);
        let mut verdict = judgement.verdict.clone();
        verdict.reasons = without_repeats(verdict.reasons);
        Report {
            version: REPORT_VERSION.to_owned(),
            study: study(plan),
            run: self.history.run.as_ref().map(ToString::to_string),
            verdict,
            confidence: judgement.confidence.clone(),
            ending: ending(&self.history),
            limits: without_repeats(judgement.limits.iter().cloned().chain(over_budget(plan, &self.history)).collect()),
            items,
            not_measured: self.not_measured(plan),
            contract: self.contract(plan),
            figures,
            choices: judgement.choices.clone(),
            agreements: judgement.agreements.clone(),
            repetitions,
            quiet: judgement.quiet.clone(),
            failures: failures(plan, &self.history, &self.evidence),
            superseded: superseded(&self.history, &judgement),
            environment: stretches(&self.history),
            gates: plan
                .phases
                .iter()
                .map(|phase| PhaseGates {
                    phase: phase.name.clone(),
                    procedure: procedure(&phase.procedure),
                    wanted: phase.repeat.valid,
                    at_most: phase.repeat.at_most,
                    gates: phase.gates.iter().map(gate).collect(),
                })
                .collect(),
            durations: durations(plan, &self.history),
            reproduce: Reproduce {
                command: plan.report.reproduce.clone(),
                seed: plan.seed,
                plan: plan.hash().to_string(),
                journal: self.history.journal.clone(),
            },
        }
    }

    fn not_measured(&self, plan: &Plan) -> Vec<NotMeasured> {
        self.history
            .not_measured
            .iter()
            .map(|note| NotMeasured {
                candidate: note.candidate.clone(),
                label: label(plan, &note.candidate),
                why: note.why.clone(),
                mend: note.mend.clone(),
            })
            .collect()
    }

    fn contract(&self, plan: &Plan) -> Vec<ContractOutcome> {
        self.history
            .contracts
            .iter()
            .map(|contract| ContractOutcome {
                candidate: contract.candidate.clone(),
                passed: contract.cases.iter().filter(|case| case.problem.is_none()).count() as u64,
                tried: contract.cases.len() as u64,
                of: plan.contract.len() as u64,
                failed: contract
                    .cases
                    .iter()
                    .filter_map(|case| Some((case.case.clone(), case.problem.clone()?)))
                    .collect(),
            })
            .collect()
    }
}

/// The label of a candidate, or its name where it has none.
pub(crate) fn label(plan: &Plan, candidate: &str) -> String {
    plan.candidate(candidate)
        .map(|found| found.label.as_str())
        .filter(|label| !label.is_empty())
        .unwrap_or(candidate)
        .to_owned()
}

fn without_repeats(sentences: Vec<String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for sentence in sentences {
        if !seen.contains(&sentence) {
            seen.push(sentence);
        }
    }
    seen
}

fn study(plan: &Plan) -> Study {
    let machine = &plan.machine;
    Study {
        name: plan.study.clone(),
        title: plan.title.clone(),
        question: plan.question.clone(),
        machine: machine.name.clone(),
        machine_chosen: machine.chosen.clone(),
        cpus: BTreeMap::from([
            ("candidate".to_owned(), machine.candidate.to_string()),
            ("database".to_owned(), machine.database.to_string()),
            ("load".to_owned(), machine.load.to_string()),
        ]),
        generators: words::generators(&machine.generators),
        profile: plan.profile.clone(),
        candidates: plan
            .candidates
            .iter()
            .map(|candidate| (candidate.name.clone(), label(plan, &candidate.name)))
            .collect(),
    }
}

fn ending(history: &History) -> Ending {
    match &history.end {
        None => Ending::Open,
        Some(RunEnd::Completed) => Ending::Completed,
        Some(RunEnd::Interrupted) => Ending::Interrupted,
        Some(RunEnd::Failed(failure)) => {
            Ending::Failed { what: failure.what.clone(), why: failure.why.clone(), next: failure.next.clone() }
        }
    }
}

/// The name of a repetition for people: `ceiling, go, 1 core, #2`.
pub(crate) fn repetition_name(plan: &Plan, id: &journal::RepetitionId) -> String {
    match plan.phase(&id.phase) {
        Some(phase) if !phase.axes.is_empty() => format!("{}, {}, #{}", id.phase, cell_name(phase, id.cell), id.number),
        _ => format!("{}, #{}", id.phase, id.number),
    }
}

/// The candidate that a step is about.
fn candidate_of(plan: &Plan, kind: &StepKind) -> Option<String> {
    match kind {
        StepKind::PrepareCandidate { candidate } | StepKind::VerifyContract { candidate } => Some(candidate.clone()),
        StepKind::MeasureCell { phase, cell } => {
            let phase = plan.phase(phase)?;
            let axis = phase.axes.iter().position(|axis| axis.factor == "candidate")?;
            Some(phase.cells.get(*cell as usize)?.levels.get(axis)?.to_string())
        }
        _ => None,
    }
}

fn failures(plan: &Plan, history: &History, evidence: &Evidence) -> Vec<FailureNote> {
    let note = |of: String, failure: &Failure| FailureNote {
        of,
        what: failure.what.clone(),
        why: failure.why.clone(),
        next: failure.next.clone(),
        log: failure.log.clone(),
    };
    let mut notes: Vec<FailureNote> = Vec::new();
    let excluded: Vec<&str> = plan
        .candidates
        .iter()
        .map(|candidate| candidate.name.as_str())
        .filter(|candidate| evidence.excluded(plan, candidate).is_some())
        .collect();
    let mut skipped: Vec<(String, Vec<String>)> = Vec::new();
    for (id, finished) in &history.steps {
        let name = || match plan.steps.get(id.0 as usize) {
            Some(step) => step_name(plan, &step.kind),
            None => format!("step {}", id.0),
        };
        let candidate = plan.steps.get(id.0 as usize).and_then(|step| candidate_of(plan, &step.kind));
        let is_noted = |candidate: &String| history.not_measured.iter().any(|note| note.candidate == *candidate);
        match &finished.end {
            // A candidate that can't be measured is reported as such, and that its steps were skipped follows from it.
            StepEnd::Failed(_) if candidate.as_ref().is_some_and(is_noted) => {}
            StepEnd::Skipped { .. } if candidate.as_ref().is_some_and(|name| excluded.contains(&name.as_str())) => {}
            StepEnd::Failed(failure) => notes.push(note(name(), failure)),
            StepEnd::Skipped { why } => match skipped.iter_mut().find(|(known, _)| known == why) {
                Some((_, names)) => names.push(name()),
                None => skipped.push((why.clone(), vec![name()])),
            },
            StepEnd::Done { .. } | StepEnd::Reused { .. } => {}
        }
    }
    notes.extend(skipped.into_iter().map(|(why, names)| {
        let more =
            if names.len() > NAMED_STEPS { format!(" and {} more", names.len() - NAMED_STEPS) } else { String::new() };
        FailureNote {
            of: format!("{}{more}", names.iter().take(NAMED_STEPS).cloned().collect::<Vec<_>>().join("; ")),
            what: "not tried".to_owned(),
            why,
            next: String::new(),
            log: Vec::new(),
        }
    }));
    for attempt in &history.attempts {
        if let Outcome::Failed { failure, .. } = &attempt.outcome {
            notes.push(note(repetition_name(plan, &attempt.id), failure));
        }
    }
    if let Some(RunEnd::Failed(failure)) = &history.end
        && !notes.iter().any(|known| known.what == failure.what)
    {
        notes.push(note("the run".to_owned(), failure));
    }
    notes
}

fn superseded(history: &History, judgement: &Judgement) -> Vec<Superseded> {
    repetitions::paired(history, judgement)
        .filter(|(_, judged)| judged.superseded)
        .map(|(attempt, judged)| Superseded {
            id: judged.id.to_string(),
            levels: attempt.map(|attempt| attempt.levels.clone()).unwrap_or_default(),
            why: match attempt.and_then(|attempt| attempt.hash.as_ref()) {
                Some(hash) => format!("measured under settings {} that have changed since", hash.short()),
                None => "the journal has no start of it, so nobody knows what it was measured under".to_owned(),
            },
        })
        .collect()
}

fn stretches(history: &History) -> Vec<Stretch> {
    history
        .stretches
        .iter()
        .map(|stretch| Stretch {
            from: timestamp(stretch.from_ns),
            took_ns: stretch.to_ns.saturating_sub(stretch.from_ns),
            resumed: stretch.resumed,
            environment: stretch.environment.clone(),
        })
        .collect()
}

/// An instant as RFC 3339 in UTC, to the second.
pub(crate) fn timestamp(unix_ns: u64) -> String {
    match jiff::Timestamp::from_second((unix_ns / 1_000_000_000) as i64) {
        Ok(instant) => instant.to_string(),
        Err(_) => format!("{unix_ns} ns after 1970"),
    }
}

/// A run that took longer than the study may.
fn over_budget(plan: &Plan, history: &History) -> Option<String> {
    let (budget, took) = (plan.budget_ns?, history.active_ns());
    (took > budget).then(|| format!("The run took {}, longer than the study's budget of {}.", span(took), span(budget)))
}

fn durations(plan: &Plan, history: &History) -> Durations {
    let mut steps = Vec::new();
    for (id, finished) in &history.steps {
        if let Some(step) = plan.steps.get(id.0 as usize)
            && !matches!(
                step.kind,
                StepKind::MeasureCell { .. } | StepKind::Estimate { .. } | StepKind::Agree { .. } | StepKind::Report
            )
        {
            steps.push((step_name(plan, &step.kind), finished.took_ns));
        }
    }
    let phases = plan
        .phases
        .iter()
        .map(|phase| {
            let took: Vec<u64> = history
                .attempts
                .iter()
                .filter(|attempt| attempt.id.phase == phase.name)
                .filter_map(crate::history::Attempt::took_ns)
                .collect();
            (phase.name.clone(), took.len() as u64, took.iter().fold(0, |sum: u64, &took| sum.saturating_add(took)))
        })
        .collect();
    Durations { total_ns: history.active_ns(), steps, phases }
}
