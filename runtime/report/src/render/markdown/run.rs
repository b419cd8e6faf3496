//! How the run went, as Markdown: contract, agreements, repetitions, failures, gates, environment, how to reproduce.

use std::fmt::Write as _;

use judge::AgreementCheck;
use plan::Metric;

use super::text::{block, code, escape, list, sentence, table};
use super::{Form, anchor};
use crate::model::{Repetition, Report};
use crate::number::{self, bytes, count, counted, duration, percent, value, with_unit};
use crate::render::words;

/// Repetitions of a phase that are listed here; `tables/repetitions.csv` has all.
const LISTED: usize = 200;

/// Metrics that stand beside a repetition, in this order, where some repetition of the phase has them.
const METRICS: [Metric; 9] = [
    Metric::Tps,
    Metric::TransactionLatency,
    Metric::Throughput,
    Metric::Achieved,
    Metric::CpuPerRequest,
    Metric::CoresUsed,
    Metric::DatabaseCpuPerRequest,
    Metric::CorrectedP99,
    Metric::ServiceP99,
];

pub(super) fn contract(out: &mut String, report: &Report) {
    if report.contract.is_empty() {
        return;
    }
    let _ = writeln!(out, "## Contract\n");
    let lines = report.contract.iter().map(|outcome| {
        let untried = if outcome.tried < outcome.of {
            format!(", {} not tried", count(outcome.of - outcome.tried))
        } else {
            String::new()
        };
        let mut line = format!(
            "{}: {} of {} passed{untried}",
            escape(&outcome.candidate),
            count(outcome.passed),
            count(outcome.of)
        );
        for (case, problem) in &outcome.failed {
            let _ = write!(line, "\n  - {}: {}", escape(case), sentence(problem));
        }
        line
    });
    let _ = writeln!(out, "{}", list(lines));
}

pub(super) fn agreements(out: &mut String, report: &Report) {
    if report.agreements.is_empty() {
        return;
    }
    let _ = writeln!(out, "## Agreements\n");
    for agreement in &report.agreements {
        let _ = writeln!(
            out,
            "**{}**: {} against {}, within {}.\n",
            escape(&agreement.name),
            code(&agreement.left.to_string()),
            code(&agreement.right.to_string()),
            percent(agreement.within)
        );
        let mut lines = Vec::new();
        if let Some(why) = &agreement.not_checked {
            lines.push(format!("not checked: {}", sentence(why)));
        }
        for cell in &agreement.cells {
            let name = words::pairs(&cell.cell);
            let place = if name.is_empty() { String::new() } else { format!("{}: ", escape(&name)) };
            lines.push(format!("{place}{}", escape(&agreement_cell(agreement, cell))));
        }
        if lines.is_empty() {
            lines.push("not checked: no pair of cells was measured.".to_owned());
        }
        let _ = writeln!(out, "{}", list(lines));
    }
}

/// What came of an agreement at one pair of cells.
pub(crate) fn agreement_cell(agreement: &judge::AgreementOutcome, cell: &judge::AgreementCell) -> String {
    let values = match (cell.left, cell.right) {
        (Some(left), Some(right)) => {
            format!("{} against {}", with_unit(agreement.left.metric, left), with_unit(agreement.right.metric, right))
        }
        _ => String::new(),
    };
    match &cell.check {
        AgreementCheck::Agrees => {
            let difference =
                cell.difference.map_or_else(String::new, |difference| format!(", {} apart", percent(difference.abs())));
            format!("agrees: {values}{difference}")
        }
        AgreementCheck::Disagrees { why } => {
            format!("fails: {}", why.strip_prefix(&format!("{}: ", agreement.name)).unwrap_or(why))
        }
        AgreementCheck::NotChecked { why } => format!("not checked: {why}"),
    }
}

pub(super) fn repetitions(out: &mut String, report: &Report, form: Form) {
    let _ = writeln!(out, "## Repetitions\n");
    if report.repetitions.is_empty() {
        let _ = writeln!(out, "No repetition was measured.\n");
        return;
    }
    for phase in &report.gates {
        let of_phase: Vec<&Repetition> =
            report.repetitions.iter().filter(|repetition| repetition.phase == phase.phase).collect();
        if of_phase.is_empty() {
            continue;
        }
        let valid = of_phase.iter().filter(|repetition| repetition.valid).count();
        let _ = writeln!(
            out,
            "### {}\n\n{}. {}, {} valid; wanted: {} valid of each cell, at most {} measured.\n",
            escape(&phase.phase),
            escape(&phase.procedure),
            counted(of_phase.len() as u64, "repetition", "repetitions"),
            count(valid as u64),
            phase.wanted,
            phase.at_most
        );
        repetition_table(out, &of_phase, form);
        if of_phase.len() > LISTED {
            let _ = writeln!(
                out,
                "{} more are in `tables/repetitions.csv`; every void one with its values is in `excluded.md`.\n",
                count((of_phase.len() - LISTED) as u64)
            );
        }
    }
    if report.repetitions.iter().any(|repetition| !repetition.valid) {
        let _ = writeln!(out, "Every void repetition with the values that decided it is in `excluded.md`.\n");
    }
}

fn repetition_table(out: &mut String, repetitions: &[&Repetition], form: Form) {
    let mut factors: Vec<&String> = repetitions.iter().flat_map(|repetition| repetition.levels.keys()).collect();
    factors.sort();
    factors.dedup();
    let metrics: Vec<Metric> = METRICS
        .into_iter()
        .filter(|metric| repetitions.iter().any(|repetition| repetition.values.contains_key(metric.name())))
        .collect();
    let paced = repetitions.iter().any(|repetition| !repetition.pace.is_empty());
    let carried = repetitions.iter().any(|repetition| repetition.carried.is_some());
    let mut head = vec!["repetition".to_owned()];
    head.extend(factors.iter().map(|factor| escape(factor)));
    head.extend(metrics.iter().map(|&metric| {
        let unit = crate::number::unit(metric).trim();
        if unit.is_empty() || matches!(metric, Metric::CoresUsed) {
            words::metric(metric).to_owned()
        } else {
            format!("{} ({unit})", words::metric(metric))
        }
    }));
    if paced {
        head.push("pace".to_owned());
    }
    if carried {
        head.push("carried".to_owned());
    }
    head.push("verdict".to_owned());
    let rows: Vec<Vec<String>> = repetitions
        .iter()
        .take(LISTED)
        .map(|repetition| {
            let place = match form {
                Form::File => String::new(),
                Form::Page => format!("<a id=\"{}\"></a>", anchor::repetition(&repetition.id)),
            };
            let mut row = vec![format!("{place}{}", escape(&repetition.id))];
            row.extend(
                factors
                    .iter()
                    .map(|&factor| repetition.levels.get(factor).map_or_else(String::new, |level| escape(level))),
            );
            row.extend(metrics.iter().map(|&metric| {
                repetition
                    .values
                    .get(metric.name())
                    .map_or_else(|| "unknown".to_owned(), |&number| value(metric, number))
            }));
            if paced {
                let range = words::pace_of(repetition.pace.values().map(|cpu| cpu.pace));
                row.push(range.map_or_else(|| "unknown".to_owned(), |(low, _)| format!("{low:.2}")));
            }
            if carried {
                row.push(match repetition.carried {
                    Some(true) => "yes".to_owned(),
                    Some(false) => "no".to_owned(),
                    None => "unknown".to_owned(),
                });
            }
            row.push(if repetition.valid {
                "valid".to_owned()
            } else {
                format!("**void**: {}", escape(&repetition.reasons.join("; ")))
            });
            row
        })
        .collect();
    let _ = writeln!(out, "{}", table(&head, &rows, false));
}

pub(super) fn failures(out: &mut String, report: &Report) {
    if report.failures.is_empty() {
        return;
    }
    let _ = writeln!(out, "## What could not be carried out\n");
    for failure in &report.failures {
        let _ = writeln!(out, "**{}**: {}\n", escape(&failure.of), escape(&words::failure(failure)));
        if !failure.log.is_empty() {
            let _ = writeln!(out, "{}", block(&failure.log.join("\n")));
        }
    }
}

pub(super) fn gates(out: &mut String, report: &Report) {
    // A gate that several phases have is listed once, with their names.
    let mut gates: Vec<(&str, Vec<&str>)> = Vec::new();
    for phase in &report.gates {
        for gate in &phase.gates {
            match gates.iter_mut().find(|(known, _)| known == gate) {
                Some((_, phases)) => phases.push(&phase.phase),
                None => gates.push((gate, vec![&phase.phase])),
            }
        }
    }
    if gates.is_empty() {
        return;
    }
    let _ = writeln!(out, "## Gates\n\nA repetition is void unless all of these hold; missing data fails a gate.\n");
    let lines = gates.iter().map(|(gate, phases)| format!("{} [{}]", escape(gate), escape(&phases.join(", "))));
    let _ = writeln!(out, "{}", list(lines));
}

/// Who sent the loads, where the machine names generators: as declared, and as each said of itself in the last load.
fn generators(out: &mut String, report: &Report) {
    let declared = &report.study.generators;
    if declared.is_empty() {
        return;
    }
    let sent: Vec<_> = report.repetitions.iter().map(|repetition| &repetition.sent.generators).collect();
    let last = sent.iter().rev().find(|parts| !parts.is_empty());
    let lines = declared.iter().enumerate().map(|(index, place)| {
        let Some(part) = last.and_then(|parts| parts.get(index)) else { return escape(place) };
        let uncertain = sent.iter().filter_map(|parts| Some(parts.get(index)?.clock_uncertainty_ns)).max().unwrap_or(0);
        let clock = match uncertain {
            0 => "the controller's own clock".to_owned(),
            ns => format!(
                "a clock {} ms from the controller's, known to {} ms or better",
                number::significant(part.clock_offset_ns as f64 / 1e6),
                number::significant(ns as f64 / 1e6)
            ),
        };
        escape(&format!(
            "{place}: on {}, {}, {}, {clock}",
            part.host,
            counted(part.threads.into(), "thread", "threads"),
            counted(part.connections.into(), "connection", "connections")
        ))
    });
    let together = if declared.len() > 1 { "These generators sent each load together" } else { "The generator" };
    let _ = writeln!(out, "{together}:\n\n{}", list(lines));
}

pub(super) fn environment(out: &mut String, report: &Report) {
    let _ = writeln!(out, "## Environment\n");
    let cpus: Vec<String> = report.study.cpus.iter().map(|(role, cpus)| format!("{role} on CPU {cpus}")).collect();
    let chosen = if report.study.machine_chosen.is_empty() {
        String::new()
    } else {
        format!(" (chosen: {})", escape(&report.study.machine_chosen))
    };
    let _ = writeln!(out, "Machine {}{chosen}: {}.\n", escape(&report.study.machine), escape(&cpus.join(", ")));
    generators(out, report);
    if report.environment.is_empty() {
        let _ = writeln!(out, "The journal ends before it says where the run ran.\n");
    }
    for (index, stretch) in report.environment.iter().enumerate() {
        let environment = &stretch.environment;
        let how = match stretch.resumed {
            None => "Started".to_owned(),
            Some((kept, superseded)) => format!(
                "Resumed ({} kept, {} measured anew)",
                counted(kept, "repetition", "repetitions"),
                count(superseded)
            ),
        };
        let _ = writeln!(out, "{how} {}, ran {}.\n", stretch.from, duration(stretch.took_ns));
        let same = index > 0 && report.environment[index - 1].environment == *environment;
        if same {
            let _ = writeln!(out, "Same environment as before.\n");
            continue;
        }
        let mut lines = vec![
            format!("exp {}", escape(&environment.exp)),
            match &environment.docker {
                Some(version) => format!("{} {}", escape(&environment.backend), escape(version)),
                None => format!("backend {}", escape(&environment.backend)),
            },
            format!("kernel {}", escape(&environment.kernel)),
            format!(
                "CPU {}; online {}{}",
                escape(&environment.cpu),
                escape(&environment.cpus),
                if environment.virtual_machine { "; virtual machine" } else { "" }
            ),
            format!("memory {}", bytes(environment.memory_bytes)),
            if environment.cgroup == 0 {
                "no cgroup could be read".to_owned()
            } else {
                format!("cgroup v{}", environment.cgroup)
            },
        ];
        lines.extend(environment.postgres.iter().map(|version| format!("PostgreSQL {}", escape(version))));
        lines.extend(environment.notes.iter().map(|note| sentence(note)));
        let _ = writeln!(out, "{}", list(lines));
    }
    let quiet: Vec<String> = report
        .quiet
        .iter()
        .map(|(cpu, quiet)| {
            let problem = quiet.problem.as_ref().map_or_else(String::new, |why| format!(" ({})", escape(why)));
            format!(
                "quiet time of the pace witness on CPU {cpu}: {} of {}{problem}",
                with_unit(Metric::CpuPerRequest, quiet.quiet_ns / 1e3),
                counted(quiet.samples, "sample", "samples")
            )
        })
        .collect();
    if !quiet.is_empty() {
        let _ = writeln!(out, "{}", list(quiet));
    }
}

pub(super) fn reproduce(out: &mut String, report: &Report) {
    let _ = writeln!(out, "## How to reproduce\n");
    if report.reproduce.command.is_empty() {
        let _ = writeln!(out, "The plan names no command.\n");
    } else {
        let _ = writeln!(out, "This command measures every figure of this report:\n");
        let _ = writeln!(out, "{}", block(&report.reproduce.command));
    }
    let mut parts = vec![format!("seed {}", report.reproduce.seed), format!("plan {}", code(&report.reproduce.plan))];
    if !report.reproduce.journal.is_empty() {
        parts.push(format!("journal format {}", escape(&report.reproduce.journal)));
    }
    let _ = writeln!(out, "{}.\n", parts.join(", "));
    let durations = &report.durations;
    let mut rows: Vec<Vec<String>> =
        durations.steps.iter().map(|(step, took)| vec![escape(step), String::new(), duration(*took)]).collect();
    rows.extend(durations.phases.iter().filter(|(_, repetitions, _)| *repetitions > 0).map(
        |(phase, repetitions, took)| {
            vec![escape(phase), counted(*repetitions, "repetition", "repetitions"), duration(*took)]
        },
    ));
    if !rows.is_empty() {
        rows.push(vec!["**all**".to_owned(), String::new(), format!("**{}**", duration(durations.total_ns))]);
        let _ = writeln!(out, "{}", table(&["".to_owned(), String::new(), "took".to_owned()], &rows, false));
    }
}
