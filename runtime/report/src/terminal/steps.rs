//! Lines of what is not a repetition: images, template, contract, beginnings and ends of phases, agreements.

use journal::{Failure, StepEnd};
use judge::{AgreementCheck, Chosen};
use plan::{StepId, StepKind};

use super::View;
use super::line::{Line, Style, flow};
use crate::number::{count, counted, duration};
use crate::render::markdown::{agreement_cell, choice_words, worst};
use crate::render::plan::{procedure, step_name};
use crate::render::words;
use crate::width;

/// Lines of a failure's log that are shown; the report has all that the journal kept.
const LOG_LINES: usize = 8;

impl View {
    pub(super) fn entry_head(&self, (mark, style): (&str, Style), name: &str) -> Line {
        Line::new().plain("  ").with(style, mark).plain(" ").plain(width::pad(&format!("{name} "), self.names))
    }

    pub(super) fn entry(&self, mark: (&str, Style), name: &str, text: &str, took_ns: Option<u64>) -> Vec<Line> {
        let took = took_ns.map(|took| Line::new().with(Style::Faint, duration(took)));
        flow(self.entry_head(mark, name), Style::Plain, text, took, self.layout.columns())
    }

    /// A failure: what happened, why, what to do next, the last lines of its log.
    fn failure(&self, name: &str, failure: &Failure) -> Vec<Line> {
        let columns = self.layout.columns();
        let mut lines = self.entry(("✗", Style::Bad), name, &failure.what, None);
        for (head, text) in [("why", &failure.why), ("next", &failure.next)] {
            if !text.is_empty() {
                lines.extend(flow(Line::new().plain(format!("    {head}: ")), Style::Plain, text, None, columns));
            }
        }
        for line in failure.log.iter().rev().take(LOG_LINES).rev() {
            lines.extend(flow(Line::new().with(Style::Faint, "    │ "), Style::Faint, line, None, columns));
        }
        lines
    }

    pub(super) fn step_finished(&mut self, id: StepId, end: &StepEnd, took_ns: u64, at_ns: u64) -> Vec<Line> {
        let Some(step) = self.plan.steps.get(id.0 as usize) else { return Vec::new() };
        let kind = step.kind.clone();
        let name = step_name(&self.plan, &kind);
        match (&kind, end) {
            (StepKind::PrepareDatabase | StepKind::PrepareProbe, StepEnd::Failed(failure)) => {
                let mut lines = self.failure(&name, failure);
                lines.extend(self.images());
                lines
            }
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
            // An agreement that was not checked, or a report that was not written, is among the verdict's reasons.
            (StepKind::Agree { .. } | StepKind::Report, StepEnd::Skipped { .. }) => Vec::new(),
            (StepKind::MeasureCell { phase, .. } | StepKind::Estimate { phase }, StepEnd::Skipped { why }) => {
                let excluded = match &kind {
                    StepKind::MeasureCell { cell, .. } => {
                        self.candidate_of(phase, *cell).is_some_and(|candidate| self.is_excluded(&candidate))
                    }
                    _ => false,
                };
                if excluded || !self.skips_said.insert((phase.clone(), why.clone())) {
                    return Vec::new();
                }
                self.entry(("–", Style::Warning), phase, &format!("not tried: {why}"), None)
            }
            (_, StepEnd::Skipped { why }) => {
                self.entry(("–", Style::Warning), &name, &format!("not tried: {why}"), None)
            }
            (_, StepEnd::Failed(failure)) => self.failure(&name, failure),
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

    /// Whether a cell is of a candidate that can't be measured or failed its contract: that was said already.
    fn is_about_excluded(&self, levels: &[(String, String)]) -> bool {
        levels.iter().any(|(factor, level)| factor == "candidate" && self.is_excluded(level))
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
                lines.extend(self.failure(&step_name(&self.plan, kind), failure));
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
    pub(super) fn prepared(&mut self) -> Vec<Line> {
        let mut lines = self.images();
        lines.extend(self.contract());
        lines
    }

    pub(super) fn phase_begins(&mut self, name: &str, at_ns: u64) -> Vec<Line> {
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
            if matches!(choice.outcome, Chosen::None { .. }) && self.is_about_excluded(&choice.for_each) {
                continue;
            }
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
            .filter(|cell| {
                !matches!(cell.check, AgreementCheck::NotChecked { .. }) || !self.is_about_excluded(&cell.cell)
            })
            .flat_map(|cell| {
                let mark = match cell.check {
                    AgreementCheck::Agrees => ("✓", Style::Good),
                    AgreementCheck::Disagrees { .. } => ("✗", Style::Bad),
                    AgreementCheck::NotChecked { .. } => ("–", Style::Warning),
                };
                let place = words::pairs(&cell.cell);
                let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
                self.entry(mark, name, &format!("{place}{}", agreement_cell(agreement, cell)), None)
            })
            .collect()
    }
}
