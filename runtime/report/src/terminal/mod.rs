//! What a terminal shows of a run: lines that scroll up, a region that is redrawn under them, and the end.
//!
//! Both are folds of the journal's events. A pipe gets the same lines without region, colour and line breaks.

mod line;
mod progress;
mod summary;

use std::collections::{BTreeMap, BTreeSet};

use journal::{Event, Record, RepetitionId, Stage, StepEnd};
use judge::Judgement;
use plan::{Metric, Phase, Plan, Procedure, StepId, StepKind};

use self::line::{Line, Style, flow, parts};
use self::progress::Pacing;
use crate::fold::Fold;
use crate::history::{Attempt, Outcome};
use crate::model::Report;
use crate::number::{about, count, counted, duration, with_unit};
use crate::outlook::Outlook;
use crate::render::markdown::{agreement_cell, choice_words, worst};
use crate::render::plan::{headline, procedure, step_name};
use crate::render::words;
use crate::width;

/// The narrowest terminal that is laid out; a narrower one gets lines of this width.
pub const NARROWEST: usize = 40;

/// Frames of the spinner.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Where the view is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    /// Columns of the terminal; a pipe has none.
    pub width: usize,
    /// Whether escape sequences for colour are wanted.
    pub colour: bool,
    /// Whether it is a terminal. A pipe gets one line an event and no region.
    pub tty: bool,
    /// The run's directory, as it is to be shown.
    pub run_dir: String,
}

impl Layout {
    fn columns(&self) -> usize {
        if self.tty { self.width.max(NARROWEST) } else { usize::MAX }
    }

    fn paint(&self, lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.paint(self.colour)).collect()
    }
}

/// The plan for people before a run, in lines of at most the layout's width.
pub fn plan(plan: &Plan, layout: &Layout) -> String {
    crate::render::plan::text(plan, if layout.tty { layout.width.max(NARROWEST) } else { 120 })
}

/// The end of a run: verdict with reasons and limits, tables, where the run lies, the next command.
pub fn summary(report: &Report, layout: &Layout) -> Vec<String> {
    layout.paint(&summary::summary(report, &layout.run_dir, layout.columns()))
}

/// A step that runs.
#[derive(Debug, Clone)]
struct Running {
    since_ns: u64,
    what: String,
    done: u64,
    of: u64,
}

/// The live view: a fold of the run's events.
#[derive(Debug, Clone)]
pub struct View {
    plan: Plan,
    layout: Layout,
    outlook: Outlook,
    fold: Fold,
    judgement: Judgement,
    pacing: Pacing,
    running: BTreeMap<StepId, Running>,
    phase: Option<String>,
    phases_begun: BTreeSet<String>,
    phase_began_ns: u64,
    announced: BTreeMap<RepetitionId, bool>,
    images_said: bool,
    contract_said: bool,
    skips_said: BTreeSet<(String, String)>,
}

impl View {
    /// A view of a run of this plan that has not begun.
    ///
    /// To continue a run, give it the journal's records first and leave their lines out: a journal's past is shown as it
    /// was, and time left is learnt from it.
    pub fn new(plan: &Plan, layout: Layout) -> Self {
        let fold = Fold::default();
        let judgement = fold.judgement(plan);
        Self {
            outlook: Outlook::of(plan),
            pacing: Pacing::default(),
            plan: plan.clone(),
            layout,
            fold,
            judgement,
            running: BTreeMap::new(),
            phase: None,
            phases_begun: BTreeSet::new(),
            phase_began_ns: 0,
            announced: BTreeMap::new(),
            images_said: false,
            contract_said: false,
            skips_said: BTreeSet::new(),
        }
    }

    /// Takes the next record; the lines that it adds are final.
    pub fn take(&mut self, record: &Record) -> Vec<String> {
        self.fold.take(record);
        let mut lines = Vec::new();
        match &record.event {
            Event::RunStarted { .. } => lines.extend(self.header()),
            Event::RunResumed { kept, superseded, .. } => {
                self.running.clear();
                self.phase = None;
                self.phases_begun.clear();
                self.images_said = false;
                self.contract_said = false;
                self.skips_said.clear();
                self.judge();
                lines.extend(self.header());
                let anew = if *superseded == 0 {
                    String::new()
                } else {
                    format!(", {} measured anew because what made them changed", count(*superseded))
                };
                lines.extend(self.entry(
                    ("↻", Style::Active),
                    "resumed",
                    &format!("{} kept{anew}", counted(*kept, "repetition", "repetitions")),
                    None,
                ));
            }
            Event::NotMeasured { candidate, why, mend } => {
                self.judge();
                let right = (!mend.is_empty()).then(|| Line::new().with(Style::Active, mend));
                let first = self.entry_head(("–", Style::Warning), candidate);
                let text = format!("not measured: {why}");
                let columns = self.layout.columns();
                let shown = flow(first, Style::Plain, &text, right.clone(), columns);
                let mend_shown =
                    shown.iter().any(|line| right.as_ref().is_some_and(|right| line.0.ends_with(&right.0)));
                lines.extend(shown);
                if let Some(mend) = right.filter(|_| !mend_shown) {
                    let text: String = mend.0.iter().map(|span| span.text.as_str()).collect();
                    lines.extend(flow(Line::new().plain("    mend it: "), Style::Active, &text, None, columns));
                }
            }
            Event::StepStarted { step } => {
                self.running.insert(*step, Running { since_ns: record.at_ns, what: String::new(), done: 0, of: 0 });
            }
            Event::StepProgress { step, what, done, of } => {
                let running = self.running.entry(*step).or_insert_with(|| Running {
                    since_ns: record.at_ns,
                    what: String::new(),
                    done: 0,
                    of: 0,
                });
                running.what.clone_from(what);
                (running.done, running.of) = (*done, *of);
            }
            Event::StepFinished { step, end, took_ns } => {
                self.running.remove(step);
                lines.extend(self.step_finished(*step, end, *took_ns, record.at_ns));
            }
            Event::ContractChecked { .. } => self.judge(),
            Event::RepetitionStarted { repetition, .. } => {
                lines.extend(self.prepared());
                lines.extend(self.phase_begins(&repetition.phase, record.at_ns));
            }
            Event::RepetitionStage { .. } => {}
            Event::RepetitionMeasured { repetition, .. } | Event::RepetitionFailed { repetition, .. } => {
                self.judge();
                lines.extend(self.phase_begins(&repetition.phase, record.at_ns));
                if let Some(attempt) = self.fold.history.attempts.iter().rev().find(|attempt| attempt.id == *repetition)
                    && let Some(took) = attempt.took_ns()
                {
                    self.pacing.learn(&self.outlook, &repetition.phase, took);
                }
                lines.extend(self.repetition(repetition));
                lines.extend(self.changed_verdicts());
            }
            Event::RunEnded { .. } => {
                lines.extend(self.prepared());
                self.running.clear();
                self.phase = None;
                let report = self.fold.report(&self.plan);
                lines.push(Line::new());
                lines.extend(summary::summary(&report, &self.layout.run_dir, self.layout.columns()));
            }
        }
        self.layout.paint(&lines)
    }

    /// The region under the final lines, as of `now_ns` (Unix ns); `frame` turns the spinner. Empty for a pipe, before
    /// the run begins and after it ended.
    pub fn live(&self, now_ns: u64, frame: usize) -> Vec<String> {
        if !self.layout.tty || self.fold.history.sessions.is_empty() || self.fold.history.end.is_some() {
            return Vec::new();
        }
        self.layout.paint(&self.region(now_ns, frame))
    }

    /// The report as of the last record.
    pub fn report(&self) -> Report {
        self.fold.report(&self.plan)
    }

    fn judge(&mut self) {
        self.judgement = self.fold.judgement(&self.plan);
    }

    fn header(&self) -> Vec<Line> {
        let columns = self.layout.columns();
        let mut lines = Vec::new();
        let mut words =
            headline(&self.plan).split(" · ").map(|part| (Style::Plain, part.to_owned())).collect::<Vec<_>>();
        if let Some(first) = words.first_mut() {
            first.0 = Style::Strong;
        }
        lines.extend(parts(&words, columns));
        if let Some(environment) = self.fold.history.environment() {
            let engine = match &environment.docker {
                Some(version) => format!("{} {version}", environment.backend),
                None => environment.backend.clone(),
            };
            let cpus = environment.cpus.parse::<plan::CpuSet>().map(|set| set.len() as u64);
            let cpus = cpus.map_or_else(|_| format!("CPUs {}", environment.cpus), |cpus| counted(cpus, "CPU", "CPUs"));
            let cpus = if environment.virtual_machine { format!("{cpus}, virtual") } else { cpus };
            let postgres =
                environment.postgres.as_ref().map(|version| format!("PostgreSQL {version}")).unwrap_or_default();
            lines.extend(parts(&[(Style::Plain, engine), (Style::Plain, cpus), (Style::Plain, postgres)], columns));
        }
        lines.extend(parts(
            &[
                (Style::Plain, self.extent()),
                (Style::Plain, counted(self.outlook.repetitions(), "repetition", "repetitions")),
                (Style::Plain, about(self.outlook.planned_ns())),
                (Style::Faint, self.layout.run_dir.clone()),
            ],
            columns,
        ));
        lines.push(Line::new());
        lines
    }

    /// `3 candidates × 1 core count × 2 pools`, over the factors of all phases.
    fn extent(&self) -> String {
        let mut factors: Vec<(&str, usize)> = Vec::new();
        for axis in self.plan.phases.iter().flat_map(|phase| &phase.axes) {
            match factors.iter_mut().find(|(name, _)| *name == axis.factor) {
                Some((_, levels)) => *levels = (*levels).max(axis.levels.len()),
                None => factors.push((&axis.factor, axis.levels.len())),
            }
        }
        if factors.is_empty() {
            return counted(self.plan.phases.len() as u64, "phase", "phases");
        }
        factors
            .iter()
            .map(|(factor, levels)| {
                let (one, many) = match *factor {
                    "candidate" => ("candidate".to_owned(), "candidates".to_owned()),
                    "cores" => ("core count".to_owned(), "core counts".to_owned()),
                    other => (other.to_owned(), format!("{other}s")),
                };
                counted(*levels as u64, &one, &many)
            })
            .collect::<Vec<_>>()
            .join(" × ")
    }

    fn entry_head(&self, (mark, style): (&str, Style), name: &str) -> Line {
        let label = if self.layout.columns() < 60 { 11 } else { 16 };
        Line::new().plain("  ").with(style, mark).plain(" ").plain(width::pad(&format!("{name} "), label))
    }

    fn entry(&self, mark: (&str, Style), name: &str, text: &str, took_ns: Option<u64>) -> Vec<Line> {
        let took = took_ns.map(|took| Line::new().with(Style::Faint, duration(took)));
        flow(self.entry_head(mark, name), Style::Plain, text, took, self.layout.columns())
    }

    fn failure(&self, name: &str, what: &str, why: &str, next: &str) -> Vec<Line> {
        let columns = self.layout.columns();
        let mut lines = self.entry(("✗", Style::Bad), name, what, None);
        for (head, text) in [("why", why), ("next", next)] {
            if !text.is_empty() {
                lines.extend(flow(Line::new().plain(format!("    {head}: ")), Style::Plain, text, None, columns));
            }
        }
        lines
    }

    fn step_finished(&mut self, id: StepId, end: &StepEnd, took_ns: u64, at_ns: u64) -> Vec<Line> {
        let Some(step) = self.plan.steps.get(id.0 as usize) else { return Vec::new() };
        let kind = step.kind.clone();
        let name = step_name(&self.plan, &kind);
        match (&kind, end) {
            (StepKind::PrepareCandidate { .. } | StepKind::PrepareDatabase | StepKind::PrepareProbe, _) => {
                self.images()
            }
            (StepKind::VerifyContract { .. }, _) => self.contract(),
            (StepKind::StartDatabase, StepEnd::Done { detail } | StepEnd::Reused { detail }) => {
                self.entry(("✓", Style::Good), "database", detail, Some(took_ns))
            }
            (StepKind::MakeTemplate, StepEnd::Done { detail } | StepEnd::Reused { detail }) => {
                self.entry(("✓", Style::Good), "template", detail, Some(took_ns))
            }
            (StepKind::Estimate { phase }, StepEnd::Done { .. } | StepEnd::Reused { .. }) => {
                self.phase_ends(phase, at_ns)
            }
            (StepKind::Agree { agreement }, StepEnd::Done { .. } | StepEnd::Reused { .. }) => self.agreement(agreement),
            (StepKind::MeasureCell { .. } | StepKind::Report, StepEnd::Done { .. } | StepEnd::Reused { .. }) => {
                Vec::new()
            }
            (StepKind::MeasureCell { phase, cell }, StepEnd::Skipped { why }) => {
                let excluded = self.candidate_of(phase, *cell).is_some_and(|candidate| self.is_excluded(&candidate));
                if excluded || !self.skips_said.insert((phase.clone(), why.clone())) {
                    return Vec::new();
                }
                self.entry(("–", Style::Warning), phase, &format!("not tried: {why}"), None)
            }
            (_, StepEnd::Skipped { why }) => {
                self.entry(("–", Style::Warning), &name, &format!("not tried: {why}"), None)
            }
            (_, StepEnd::Failed(failure)) => self.failure(&name, &failure.what, &failure.why, &failure.next),
        }
    }

    fn candidate_of(&self, phase: &str, cell: u32) -> Option<String> {
        let phase = self.plan.phase(phase)?;
        let axis = phase.axes.iter().position(|axis| axis.factor == "candidate")?;
        Some(phase.cells.get(cell as usize)?.levels.get(axis)?.to_string())
    }

    fn is_excluded(&self, candidate: &str) -> bool {
        self.fold.evidence.excluded(&self.plan, candidate).is_some()
    }

    /// Ends of all steps of one kind, or `None` while some run.
    fn ends(&self, of: impl Fn(&StepKind) -> bool) -> Option<Vec<(&StepKind, &StepEnd, u64)>> {
        self.plan
            .steps
            .iter()
            .filter(|step| of(&step.kind))
            .map(|step| {
                self.fold.history.steps.get(&step.id).map(|finished| (&step.kind, &finished.end, finished.took_ns))
            })
            .collect()
    }

    /// One line for all images, once the last is there.
    fn images(&mut self) -> Vec<Line> {
        let is_image = |kind: &StepKind| {
            matches!(kind, StepKind::PrepareCandidate { .. } | StepKind::PrepareDatabase | StepKind::PrepareProbe)
        };
        let Some(ends) = self.ends(is_image).filter(|ends| !ends.is_empty() && !self.images_said) else {
            return Vec::new();
        };
        let number = |is: fn(&StepEnd) -> bool| ends.iter().filter(|(_, end, _)| is(end)).count() as u64;
        let counts = [
            (number(|end| matches!(end, StepEnd::Done { .. })), "made"),
            (number(|end| matches!(end, StepEnd::Reused { .. })), "reused"),
            (number(|end| matches!(end, StepEnd::Failed(_))), "failed"),
            (number(|end| matches!(end, StepEnd::Skipped { .. })), "not tried"),
        ];
        let text: Vec<String> = counts
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{} {what}", count(*number)))
            .collect();
        let mark = if counts[2].0 + counts[3].0 == 0 { ("✓", Style::Good) } else { ("–", Style::Warning) };
        let took = ends.iter().map(|(_, _, took)| *took).sum();
        let mut lines = self.entry(mark, "images", &text.join(", "), Some(took));
        for (kind, end, _) in ends {
            // A candidate that can't be measured has its own line, with the command that mends it.
            let noted = matches!(kind, StepKind::PrepareCandidate { candidate }
                if self.fold.history.not_measured.iter().any(|note| note.candidate == *candidate));
            if let StepEnd::Failed(failure) = end
                && !noted
            {
                lines.extend(self.failure(&step_name(&self.plan, kind), &failure.what, &failure.why, &failure.next));
            }
        }
        self.images_said = true;
        lines
    }

    /// One line for the contract of all candidates, once the last was checked.
    fn contract(&mut self) -> Vec<Line> {
        let is_contract = |kind: &StepKind| matches!(kind, StepKind::VerifyContract { .. });
        let Some(ends) = self.ends(is_contract).filter(|ends| !ends.is_empty() && !self.contract_said) else {
            return Vec::new();
        };
        let took = ends.iter().map(|(_, _, took)| *took).sum();
        let mut failed: Vec<(String, String)> = Vec::new();
        let mut words: Vec<String> = Vec::new();
        for (kind, end, _) in &ends {
            let StepKind::VerifyContract { candidate } = kind else { continue };
            match self.fold.history.contracts.iter().find(|contract| contract.candidate == *candidate) {
                Some(contract) => {
                    let passed = contract.cases.iter().filter(|case| case.problem.is_none()).count();
                    words.push(format!("{candidate} {passed}/{}", contract.cases.len()));
                    failed.extend(contract.cases.iter().filter_map(|case| {
                        Some((candidate.clone(), format!("{}: {}", case.case, case.problem.as_ref()?)))
                    }));
                }
                None => match end {
                    StepEnd::Failed(failure) => failed.push((candidate.clone(), failure.what.clone())),
                    StepEnd::Reused { detail } | StepEnd::Done { detail } => {
                        words.push(format!("{candidate} {detail}").trim_end().to_owned());
                    }
                    StepEnd::Skipped { .. } => {}
                },
            }
        }
        let mark = if failed.is_empty() { ("✓", Style::Good) } else { ("✗", Style::Bad) };
        let mut lines = if words.is_empty() && failed.is_empty() {
            Vec::new()
        } else {
            self.entry(mark, "contract", &words.join(" · "), Some(took))
        };
        for (candidate, problem) in failed {
            let head = Line::new().plain("      ").with(Style::Bad, candidate).plain("  ");
            lines.extend(flow(head, Style::Plain, &problem, None, self.layout.columns()));
        }
        self.contract_said = true;
        lines
    }

    /// What is still to be said of the preparation when the first repetition begins.
    fn prepared(&mut self) -> Vec<Line> {
        let mut lines = self.images();
        lines.extend(self.contract());
        lines
    }

    fn phase_begins(&mut self, name: &str, at_ns: u64) -> Vec<Line> {
        if self.phase.as_deref() == Some(name) {
            return Vec::new();
        }
        self.phase = Some(name.to_owned());
        if !self.phases_begun.insert(name.to_owned()) {
            return Vec::new();
        }
        self.phase_began_ns = at_ns;
        let text = self.plan.phase(name).map_or_else(String::new, |phase| procedure(&phase.procedure));
        self.entry(("▸", Style::Active), name, &text, None)
    }

    fn phase_ends(&mut self, name: &str, at_ns: u64) -> Vec<Line> {
        let counted_here: Vec<_> = self
            .judgement
            .repetitions
            .iter()
            .filter(|repetition| !repetition.superseded && repetition.id.phase == name)
            .collect();
        let valid = counted_here.iter().filter(|repetition| repetition.is_valid()).count() as u64;
        let all = counted_here.len() as u64;
        let text = if all == 0 {
            "nothing was measured".to_owned()
        } else {
            let pace =
                words::pace_of(counted_here.iter().flat_map(|repetition| repetition.pace.values().map(|cpu| cpu.pace)));
            let pace = pace.map_or_else(String::new, |(low, high)| format!(" · {}", words::pace(low, high)));
            format!("{}, {} valid{pace}", counted(all, "repetition", "repetitions"), count(valid))
        };
        let mark = if valid == 0 { ("–", Style::Warning) } else { ("✓", Style::Good) };
        let took = self.phases_begun.contains(name).then(|| at_ns.saturating_sub(self.phase_began_ns));
        let mut lines = self.entry(mark, name, &text, took);
        let columns = self.layout.columns();
        for choice in self.judgement.choices.iter().filter(|choice| choice.phase == name) {
            let (chosen, notes) = choice_words(choice);
            let cost = choice.worst.as_ref().map_or_else(String::new, |_| format!(" (worst {})", worst(choice)));
            let head = Line::new().plain("      ").plain(format!("{} → ", words::pairs(&choice.for_each)));
            let notes = if notes.is_empty() { String::new() } else { format!("; {}", notes.join("; ")) };
            lines.extend(flow(head, Style::Plain, &format!("{chosen}{cost}{notes}"), None, columns));
        }
        self.phase = None;
        lines
    }

    fn agreement(&self, name: &str) -> Vec<Line> {
        let Some(agreement) = self.judgement.agreements.iter().find(|agreement| agreement.name == name) else {
            return Vec::new();
        };
        if let Some(why) = &agreement.not_checked {
            return self.entry(("–", Style::Warning), name, &format!("not checked: {why}"), None);
        }
        agreement
            .cells
            .iter()
            .flat_map(|cell| {
                let mark = match cell.check {
                    judge::AgreementCheck::Agrees => ("✓", Style::Good),
                    judge::AgreementCheck::Disagrees { .. } => ("✗", Style::Bad),
                    judge::AgreementCheck::NotChecked { .. } => ("–", Style::Warning),
                };
                let place = words::pairs(&cell.cell);
                let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
                self.entry(mark, name, &format!("{place}{}", agreement_cell(agreement, cell)), None)
            })
            .collect()
    }

    fn repetition(&mut self, id: &RepetitionId) -> Vec<Line> {
        let Some(phase) = self.plan.phase(&id.phase).cloned() else { return Vec::new() };
        let columns = self.layout.columns();
        let judged = self.judgement.repetitions.iter().rev().find(|judged| judged.id == *id);
        let failure =
            self.fold.history.attempts.iter().rev().find(|attempt| attempt.id == *id).and_then(
                |attempt| match &attempt.outcome {
                    Outcome::Failed { failure, .. } => Some(failure.clone()),
                    Outcome::Measured { .. } | Outcome::Unfinished => None,
                },
            );
        let valid = judged.is_some_and(judge::JudgedRepetition::is_valid);
        let values: Vec<String> = match (&failure, judged) {
            (None, Some(judged)) => value_columns(&phase)
                .iter()
                .map(|(metric, per, width_of)| {
                    let text = judged
                        .values
                        .get(metric)
                        .map_or_else(|| "unknown".to_owned(), |&value| format!("{}{per}", with_unit(*metric, value)));
                    width::pad_left(&text, *width_of)
                })
                .collect(),
            _ => Vec::new(),
        };
        let label = self.label(&phase, id.cell);
        let label_width = self.label_width(&phase);
        let head = Line::new()
            .plain("      ")
            .plain(width::pad(&width::cut(&label, label_width), label_width))
            .with(Style::Faint, width::pad(&format!("  #{}", id.number), 6));
        let mut line = head;
        // A narrow terminal loses columns from the right; verdict and reason always stay.
        for value in values {
            if columns == usize::MAX || line.columns() + 2 + width::of(&value) + 2 + 5 <= columns {
                line = line.plain("  ").plain(value);
            }
        }
        line = line.plain("  ");
        self.announced.insert(id.clone(), valid);
        if valid {
            let carried = match judged.and_then(|judged| judged.carried) {
                Some(true) => "  carried",
                Some(false) => "  not carried",
                None => "",
            };
            return flow(line.with(Style::Good, "valid"), Style::Plain, carried, None, columns);
        }
        let reason = match (&failure, judged) {
            (Some(failure), _) => failure.what.clone(),
            (None, Some(judged)) => reasons(judged),
            (None, None) => "the journal has no start of it".to_owned(),
        };
        let again = if judge::wanted(&self.plan, &id.phase, &self.judgement, &self.fold.evidence).contains(&id.cell) {
            "; measured again"
        } else {
            ""
        };
        flow(line.with(Style::Bad, "void").plain("  "), Style::Plain, &format!("{reason}{again}"), None, columns)
    }

    /// Repetitions whose verdict a later one changed: the relative gates compare with the cell's best.
    fn changed_verdicts(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        for judged in self.judgement.repetitions.iter().filter(|judged| !judged.superseded) {
            let Some(announced) = self.announced.get_mut(&judged.id) else { continue };
            if *announced == judged.is_valid() {
                continue;
            }
            *announced = judged.is_valid();
            let Some(phase) = self.plan.phase(&judged.id.phase) else { continue };
            let label_width = self.label_width(phase);
            let head = Line::new()
                .plain("      ")
                .plain(width::pad(&width::cut(&self.label(phase, judged.id.cell), label_width), label_width))
                .with(Style::Faint, width::pad(&format!("  #{}", judged.id.number), 6));
            let (style, word, text) = if judged.is_valid() {
                (Style::Good, "now valid", String::new())
            } else {
                (Style::Bad, "now void", reasons(judged))
            };
            lines.extend(flow(
                head.plain("  ").with(style, word).plain("  "),
                Style::Plain,
                &text,
                None,
                self.layout.columns(),
            ));
        }
        lines
    }

    /// A cell's levels where they vary: `go, pool 8`.
    fn label(&self, phase: &Phase, cell: u32) -> String {
        let Some(found) = phase.cells.get(cell as usize) else { return format!("cell {cell}") };
        let words: Vec<String> = phase
            .axes
            .iter()
            .zip(&found.levels)
            .filter(|(axis, _)| axis.levels.len() > 1 || axis.factor == "candidate")
            .map(|(axis, level)| words::level(&axis.factor, &level.to_string()))
            .collect();
        if words.is_empty() { phase.name.clone() } else { words.join(", ") }
    }

    fn label_width(&self, phase: &Phase) -> usize {
        // Cells of one phase differ only in their levels, so a few hundred of them tell the widest label well enough.
        let widest = (0..phase.cells.len().min(512) as u32).map(|cell| width::of(&self.label(phase, cell))).max();
        let most = if self.layout.columns() == usize::MAX { 60 } else { self.layout.columns() * 2 / 5 };
        widest.unwrap_or(0).clamp(1, most.max(1))
    }

    fn region(&self, now_ns: u64, frame: usize) -> Vec<Line> {
        let columns = self.layout.columns();
        let spinner = SPINNER[frame % SPINNER.len()];
        let mut lines = Vec::new();
        if let Some(name) = &self.phase
            && let Some(phase) = self.plan.phase(name)
        {
            let state = self.pacing.phase(&self.plan, phase, &self.judgement, &self.fold.evidence);
            let all = state.done + state.needed;
            let left = self.pacing.left_ns(&self.plan, &self.outlook, phase, &self.judgement, &self.fold, now_ns);
            let mut head = self.entry_head(("▸", Style::Active), name);
            let bar = match columns {
                0..50 => 0,
                50..80 => 10,
                _ => 20,
            };
            if bar > 0 && all > 0 {
                let full = (state.done as usize * bar / all as usize).min(bar);
                head = head.with(Style::Active, "█".repeat(full)).with(Style::Faint, "░".repeat(bar - full)).plain(" ");
            }
            let text = format!("{} of {}", count(state.done), count(all));
            let right = Line::new().with(Style::Faint, format!("{} left", progress::rough(left)));
            lines.extend(flow(head, Style::Plain, &text, Some(right), columns).into_iter().take(1));
        }
        if let Some(attempt) = self.fold.history.current()
            && let Some(phase) = self.plan.phase(&attempt.id.phase)
        {
            let label_width = self.label_width(phase);
            let head = Line::new()
                .plain("      ")
                .plain(width::pad(&width::cut(&self.label(phase, attempt.id.cell), label_width), label_width))
                .with(Style::Faint, width::pad(&format!("  #{}", attempt.id.number), 6))
                .plain("  ")
                .with(Style::Active, spinner)
                .plain(" ");
            let room = columns.saturating_sub(head.columns());
            lines.push(head.plain(width::cut(&stage_words(attempt, now_ns), room)));
        } else {
            for (id, running) in &self.running {
                let Some(step) = self.plan.steps.get(id.0 as usize) else { continue };
                if matches!(step.kind, StepKind::MeasureCell { .. }) {
                    continue;
                }
                let head = Line::new()
                    .plain("  ")
                    .with(Style::Active, spinner)
                    .plain(format!(" {}  ", step_name(&self.plan, &step.kind)));
                let took = format!("  {}", duration(now_ns.saturating_sub(running.since_ns)));
                let room = columns.saturating_sub(head.columns() + width::of(&took));
                let what = if running.of > 0 && running.what.is_empty() {
                    format!("{} of {}", count(running.done), count(running.of))
                } else {
                    running.what.clone()
                };
                let line = if head.columns() + width::of(&took) <= columns {
                    head.plain(width::cut(&what, room)).with(Style::Faint, took)
                } else {
                    Line::new()
                        .plain(width::cut(&format!("  {spinner} {}", step_name(&self.plan, &step.kind)), columns))
                };
                lines.push(line);
            }
        }
        lines
    }
}

/// The values that stand in a repetition's line: metric, what follows its unit, width.
fn value_columns(phase: &Phase) -> Vec<(Metric, &'static str, usize)> {
    match &phase.procedure {
        Procedure::Pgbench(_) => vec![(Metric::Tps, "", 10), (Metric::TransactionLatency, "", 9)],
        Procedure::Load(load) if load.rate.is_some() => {
            vec![
                (Metric::Throughput, "", 10),
                (Metric::CorrectedP99, " p99", 13),
                (Metric::CpuPerRequest, "/request", 16),
            ]
        }
        Procedure::Load(_) => {
            vec![(Metric::Throughput, "", 10), (Metric::CpuPerRequest, "/request", 16), (Metric::CoresUsed, "", 12)]
        }
    }
}

/// Why a repetition is void: the first gate that failed, and how many more did.
fn reasons(judged: &judge::JudgedRepetition) -> String {
    let failed: Vec<&str> = judged.failed_gates().map(|gate| gate.sentence.as_str()).collect();
    match failed.as_slice() {
        [] => "it could not be measured".to_owned(),
        [one] => (*one).to_owned(),
        [first, rest @ ..] => {
            format!("{first} (and {} failed)", counted(rest.len() as u64, "more gate", "more gates"))
        }
    }
}

/// What a repetition does now, and for how long.
fn stage_words(attempt: &Attempt, now_ns: u64) -> String {
    let Some((stage, since_ns, expected_ns)) = attempt.stage else {
        return format!("beginning  {}", duration(now_ns.saturating_sub(attempt.started_ns)));
    };
    let what = match stage {
        Stage::PreparingDatabase => "preparing the database",
        Stage::Probing => "probing the generator",
        Stage::Starting => "starting",
        Stage::WarmingUp => "warming up",
        Stage::Measuring => "measuring",
        Stage::Checking => "checking",
    };
    let passed = now_ns.saturating_sub(since_ns);
    let of = if expected_ns > 0 { format!(" of {}", duration(expected_ns)) } else { String::new() };
    format!("{what}  {}{of}", duration(passed))
}
