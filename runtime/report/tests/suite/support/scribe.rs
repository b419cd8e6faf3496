//! Writes a journal as an engine would: records numbered and dated, steps and repetitions around the facts.

use std::collections::BTreeMap;

use journal::{
    CaseOutcome, Environment, Event, Failure, JOURNAL_VERSION, Record, RepetitionFacts, RepetitionId, RunEnd, RunId,
    Stage, StepEnd,
};
use judge::{Evidence, cell_hash};
use plan::{ContentHash, Plan, StepId, StepKind};

const SECOND: u64 = 1_000_000_000;

/// A journal that is being written.
pub struct Scribe<'a> {
    pub plan: &'a Plan,
    pub records: Vec<Record>,
    pub now_ns: u64,
    evidence: Evidence,
    /// Hash that a cell's repetitions get instead of the plan's: what was measured before something changed.
    pub old_hash: BTreeMap<(String, u32), ContentHash>,
}

/// Where the tests' runs ran.
pub fn environment(virtual_machine: bool, cpus: &str) -> Environment {
    Environment {
        exp: "0.1.0".to_owned(),
        backend: "docker".to_owned(),
        docker: Some("20.10.24".to_owned()),
        kernel: "6.1.0".to_owned(),
        cpu: "Example CPU @ 2.80GHz".to_owned(),
        cpus: cpus.to_owned(),
        virtual_machine,
        memory_bytes: 8 << 30,
        postgres: Some("17.2".to_owned()),
        cgroup: 1,
        notes: Vec::new(),
    }
}

impl<'a> Scribe<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        Self {
            plan,
            records: Vec::new(),
            now_ns: 1_796_047_920 * SECOND,
            evidence: Evidence::new(),
            old_hash: BTreeMap::new(),
        }
    }

    pub fn write(&mut self, event: Event) {
        let record = Record { seq: self.records.len() as u64, at_ns: self.now_ns, event };
        self.evidence.take(&record);
        self.records.push(record);
    }

    pub fn pass(&mut self, milliseconds: u64) {
        self.now_ns += milliseconds * 1_000_000;
    }

    pub fn begin(&mut self, environment: Environment) {
        self.write(Event::RunStarted {
            journal: JOURNAL_VERSION.to_owned(),
            run: RunId("2026-11-30-1412-k7".to_owned()),
            study: self.plan.study.clone(),
            plan: self.plan.hash(),
            environment,
        });
    }

    pub fn step(&self, is: impl Fn(&StepKind) -> bool) -> StepId {
        self.plan.steps.iter().find(|step| is(&step.kind)).expect("a step of the plan").id
    }

    pub fn finish(&mut self, step: StepId, milliseconds: u64, end: StepEnd) {
        self.write(Event::StepStarted { step });
        self.pass(milliseconds);
        self.write(Event::StepFinished { step, end, took_ns: milliseconds * 1_000_000 });
    }

    /// Images, template and contract; `missing` can't be had, `broken` fails the contract.
    pub fn prepare(&mut self, reused: bool, missing: Option<&str>, broken: Option<&str>) {
        let done = |detail: &str| {
            if reused {
                StepEnd::Reused { detail: detail.to_owned() }
            } else {
                StepEnd::Done { detail: detail.to_owned() }
            }
        };
        for step in &self.plan.steps {
            match &step.kind {
                StepKind::PrepareCandidate { candidate } if Some(candidate.as_str()) == missing => {
                    let why = "image dunglas/frankenphp can't be pulled: no registry answers".to_owned();
                    self.write(Event::NotMeasured {
                        candidate: candidate.clone(),
                        why: why.clone(),
                        mend: "docker pull dunglas/frankenphp".to_owned(),
                    });
                    self.finish(step.id, 900, StepEnd::Failed(Failure { what: why, ..Failure::default() }));
                }
                StepKind::PrepareCandidate { candidate } => {
                    self.write(Event::StepStarted { step: step.id });
                    self.pass(4_000);
                    self.write(Event::StepProgress {
                        step: step.id,
                        what: "Step 3/9 : RUN build the candidate".to_owned(),
                        done: 3,
                        of: 9,
                    });
                    self.pass(9_000);
                    self.write(Event::StepFinished {
                        step: step.id,
                        end: done(&format!("exp/{candidate}")),
                        took_ns: 13 * SECOND,
                    });
                }
                StepKind::PrepareDatabase | StepKind::PrepareProbe => self.finish(step.id, 700, done("exp/image")),
                StepKind::StartDatabase => self.finish(step.id, 1_200, done("PostgreSQL 17.2 on CPU 1")),
                StepKind::MakeTemplate => self.finish(step.id, 11_300, done("events: 1,000,000 rows, locked")),
                StepKind::VerifyContract { candidate } if Some(candidate.as_str()) == missing => self.finish(
                    step.id,
                    0,
                    StepEnd::Skipped { why: format!("the image of {candidate} could not be made") },
                ),
                StepKind::VerifyContract { candidate } => {
                    let is_broken = Some(candidate.as_str()) == broken;
                    self.write(Event::StepStarted { step: step.id });
                    self.pass(1_000);
                    let cases: Vec<CaseOutcome> = self
                        .plan
                        .contract
                        .iter()
                        .enumerate()
                        .map(|(index, case)| CaseOutcome {
                            case: case.name.clone(),
                            problem: (is_broken && (index == 1 || index == 2))
                                .then(|| "expected status 401, got 200 with body {\"id\":1}".to_owned()),
                        })
                        .collect();
                    let passed = cases.iter().filter(|case| case.problem.is_none()).count();
                    let detail = format!("{passed}/{}", cases.len());
                    self.write(Event::ContractChecked { candidate: candidate.clone(), cases });
                    let end = if is_broken {
                        StepEnd::Failed(Failure {
                            what: format!("{candidate} failed 2 of {} contract cases", self.plan.contract.len()),
                            why: "its answers are not what the study expects".to_owned(),
                            next: "mend the candidate, then run again: the other candidates' rows are kept".to_owned(),
                            log: Vec::new(),
                        })
                    } else {
                        done(&detail)
                    };
                    self.write(Event::StepFinished { step: step.id, end, took_ns: SECOND });
                }
                StepKind::MeasureCell { .. }
                | StepKind::Estimate { .. }
                | StepKind::Agree { .. }
                | StepKind::Report => {}
            }
        }
    }

    /// The level of one axis in a cell.
    pub fn level(&self, phase: &str, cell: u32, factor: &str) -> Option<String> {
        let phase = self.plan.phase(phase)?;
        let axis = phase.axes.iter().position(|axis| axis.factor == factor)?;
        Some(phase.cells.get(cell as usize)?.levels.get(axis)?.to_string())
    }

    /// Begins a repetition; its id and levels.
    pub fn start(&mut self, phase: &str, cell: u32) -> Option<(RepetitionId, BTreeMap<String, String>)> {
        let judgement = judge::judge(self.plan, &self.evidence);
        let levels = judge::levels(self.plan, phase, cell, &judgement).ok()?;
        let repetition = RepetitionId { phase: phase.to_owned(), cell, number: self.evidence.next_number(phase, cell) };
        let hash = self
            .old_hash
            .get(&(phase.to_owned(), cell))
            .cloned()
            .or_else(|| cell_hash(self.plan, phase, cell).cloned())?;
        self.write(Event::RepetitionStarted { repetition: repetition.clone(), hash, levels: levels.clone() });
        Some((repetition, levels))
    }

    fn stages(&mut self, repetition: &RepetitionId, window_s: u64, probed: bool, served: bool) {
        let mut stage = |stage, expected_ms: u64, took_ms: u64| {
            self.write(Event::RepetitionStage {
                repetition: repetition.clone(),
                stage,
                expected_ns: expected_ms * 1_000_000,
            });
            self.pass(took_ms);
        };
        stage(Stage::PreparingDatabase, 0, 2_300);
        if probed {
            stage(Stage::Probing, 2_000, 3_100);
        }
        if served {
            stage(Stage::Starting, 0, 600);
            stage(Stage::WarmingUp, 1_000, 1_000);
        }
        stage(Stage::Measuring, window_s * 1_000, window_s * 1_000);
        stage(Stage::Checking, 0, 700);
    }

    /// A whole repetition. `facts` is given its levels and the start of its window.
    pub fn repetition(
        &mut self,
        phase: &str,
        cell: u32,
        facts: impl FnOnce(&Self, BTreeMap<String, String>, u64, u32) -> RepetitionFacts,
    ) -> bool {
        let Some((repetition, levels)) = self.start(phase, cell) else { return false };
        let start = self.now_ns - 1_796_000_000 * SECOND;
        let facts = facts(self, levels, start, repetition.number);
        let window_s = facts.window.declared_ns / SECOND;
        self.stages(&repetition, window_s, facts.probe.is_some(), facts.load.is_some());
        self.write(Event::RepetitionMeasured { repetition, facts: Box::new(facts) });
        true
    }

    /// A repetition that could not be measured.
    pub fn failed_repetition(&mut self, phase: &str, cell: u32, failure: Failure) {
        if let Some((repetition, _)) = self.start(phase, cell) {
            self.write(Event::RepetitionStage {
                repetition: repetition.clone(),
                stage: Stage::Starting,
                expected_ns: 0,
            });
            self.pass(15_000);
            self.write(Event::RepetitionFailed { repetition, failure });
        }
    }

    /// The cells of a phase that the judge wants another repetition of.
    pub fn wanted(&self, phase: &str) -> Vec<u32> {
        judge::wanted(self.plan, phase, &judge::judge(self.plan, &self.evidence), &self.evidence)
    }

    pub fn estimate(&mut self, phase: &str) {
        let step = self.step(|kind| matches!(kind, StepKind::Estimate { phase: of } if of == phase));
        self.finish(step, 1, StepEnd::Done { detail: String::new() });
    }

    pub fn end(&mut self, end: RunEnd) {
        if end == RunEnd::Completed {
            for step in &self.plan.steps {
                if matches!(step.kind, StepKind::Agree { .. } | StepKind::Report) {
                    self.finish(step.id, 1, StepEnd::Done { detail: String::new() });
                }
            }
        }
        self.write(Event::RunEnded { end });
    }
}
