//! What a terminal shows of a run: lines that scroll up, a region that is redrawn under them, and the end.
//!
//! Both are folds of the journal's events. A pipe gets the same lines without region, colour and line breaks.

mod line;
mod progress;
mod repetition;
mod steps;
mod summary;

use std::collections::{BTreeMap, BTreeSet};

use journal::{Event, Record, RepetitionId};
use judge::Judgement;
use plan::{Plan, StepId, StepKind};

use self::line::{Line, Style, flow, parts};
use self::progress::Pacing;
use self::repetition::stage_words;
use crate::fold::Fold;
use crate::model::Report;
use crate::number::{about, count, counted, duration};
use crate::outlook::Outlook;
use crate::render::plan::{headline, step_name};
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
    /// Columns of the names at the left.
    names: usize,
    phase: Option<String>,
    phases_begun: BTreeSet<String>,
    phase_began_ns: u64,
    announced: BTreeMap<RepetitionId, bool>,
    images_said: bool,
    contract_said: bool,
    skips_said: BTreeSet<(String, String)>,
}

impl View {
    /// A view of a run of this plan that has not begun. To continue a run, give it the journal's records with
    /// [`View::past`] first.
    pub fn new(plan: &Plan, layout: Layout) -> Self {
        let fold = Fold::default();
        let judgement = fold.judgement(plan);
        Self {
            outlook: Outlook::of(plan),
            pacing: Pacing::default(),
            names: names(plan, layout.columns()),
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

    /// Takes a record of the part of the journal that is continued: nothing is shown of it, time left is learnt from it.
    /// Nothing is judged until the next record that is shown, so that a long past costs little.
    pub fn past(&mut self, record: &Record) {
        self.fold.take(record);
        if let Event::RepetitionMeasured { repetition, .. } | Event::RepetitionFailed { repetition, .. } = &record.event
        {
            self.learn(repetition);
        }
    }

    fn learn(&mut self, repetition: &RepetitionId) {
        let attempt = self.fold.history.attempts.iter().rev().find(|attempt| attempt.id == *repetition);
        if let Some(took) = attempt.and_then(crate::history::Attempt::took_ns) {
            self.pacing.learn(&self.outlook, &repetition.phase, took);
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
                for judged in &self.judgement.repetitions {
                    self.announced.insert(judged.id.clone(), judged.is_valid());
                }
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
                self.learn(repetition);
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
        if !self.layout.tty || self.fold.history.stretches.is_empty() || self.fold.history.end.is_some() {
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

/// Columns for the names of steps, phases and agreements: as many as the longest needs, within reason.
fn names(plan: &Plan, columns: usize) -> usize {
    let phases = plan.phases.iter().map(|phase| phase.name.as_str());
    let agreements = plan.agreements.iter().map(|agreement| agreement.name.as_str());
    let longest = phases.chain(agreements).chain(["contract"]).map(width::of).max().unwrap_or(0) + 2;
    longest.min(if columns < 60 { 11 } else { 24 })
}
