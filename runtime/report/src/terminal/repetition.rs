//! Lines of repetitions: one for each that ended, and the region's line for the one that runs.

use journal::{RepetitionId, Stage};
use plan::{Metric, Phase, Procedure};

use super::View;
use super::line::{Line, Style, flow, flow_under};
use crate::history::{Attempt, Outcome};
use crate::number::{counted, duration, short, span};
use crate::render::words;
use crate::width;

impl View {
    pub(super) fn repetition(&mut self, id: &RepetitionId) -> Vec<Line> {
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
                        .map_or_else(|| "unknown".to_owned(), |&value| format!("{}{per}", short(*metric, value)));
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
        if judged.is_some_and(|judged| judged.superseded) {
            let line = line.with(Style::Warning, "superseded").plain("  ");
            return flow_under(line, "measured under settings that have changed since", columns);
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
        flow_under(line.with(Style::Bad, "void").plain("  "), &format!("{reason}{again}"), columns)
    }

    /// Repetitions whose verdict a later one changed: the relative gates compare with the cell's best.
    pub(super) fn changed_verdicts(&mut self) -> Vec<Line> {
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
            lines.extend(flow_under(head.plain("  ").with(style, word).plain("  "), &text, self.layout.columns()));
        }
        lines
    }

    /// A cell's levels where they vary: `go, pool 8`.
    pub(super) fn label(&self, phase: &Phase, cell: u32) -> String {
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

    pub(super) fn label_width(&self, phase: &Phase) -> usize {
        // Cells of one phase differ only in their levels, so a few hundred of them tell the widest label well enough.
        let widest = (0..phase.cells.len().min(512) as u32).map(|cell| width::of(&self.label(phase, cell))).max();
        let most = if self.layout.columns() == usize::MAX { 60 } else { self.layout.columns() * 2 / 5 };
        widest.unwrap_or(0).clamp(1, most.max(1))
    }
}

/// The values that stand in a repetition's line: metric, what follows its unit, width.
fn value_columns(phase: &Phase) -> Vec<(Metric, &'static str, usize)> {
    match &phase.procedure {
        Procedure::Pgbench(_) => vec![(Metric::Tps, "", 10), (Metric::TransactionLatency, "", 9)],
        Procedure::Start(_) => vec![(Metric::StartTime, "", 10), (Metric::StartCpu, " of CPU", 16)],
        Procedure::Load(load) if load.rate.is_some() => {
            vec![
                (Metric::Throughput, "", 10),
                (Metric::CorrectedP99, " p99", 11),
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
pub(super) fn stage_words(attempt: &Attempt, now_ns: u64) -> String {
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
    let of = if expected_ns > 0 { format!(" of {}", span(expected_ns)) } else { String::new() };
    format!("{what}  {}{of}", duration(passed))
}
