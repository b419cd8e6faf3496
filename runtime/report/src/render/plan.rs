//! The plan before anything runs: phases, cells, repetitions, order and expected time as text or JSON; the DAG as dot or
//! Mermaid.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use plan::phase::Comparison;
use plan::{Arrivals, Cell, Gate, Leg, Order, Phase, Plan, Procedure, Protocol, Rate, Step, StepKind, Travel};
use serde_json::{Value, json};

use super::words;
use crate::number::{about, bytes, count, counted, percent, significant, span};
use crate::outlook::{Outlook, PhaseOutlook};
use crate::width;

/// Cells that are named one by one; beyond it they are counted.
const NAMED_CELLS: usize = 24;
/// Blocks of the order that are printed.
const PRINTED_BLOCKS: usize = 6;
/// Steps up to which the graph shows each cell; beyond it the cells of a phase are one node.
const DRAWN_STEPS: usize = 150;

/// The plan for people, in lines of at most `columns` columns.
pub fn text(plan: &Plan, columns: usize) -> String {
    let outlook = Outlook::of(plan);
    let mut out = Page { columns, lines: Vec::new() };
    out.line(0, &headline(plan));
    out.line(0, &plan.title);
    if !plan.question.is_empty() && plan.question != plan.title {
        out.line(0, &plan.question);
    }
    out.line(0, &roles(plan));
    out.blank();

    out.line(0, "Candidates");
    for candidate in &plan.candidates {
        out.line(2, &format!("{}: {}", candidate.name, candidate.label));
    }
    if let Some(database) = &plan.database {
        let rows: Vec<String> =
            database.holds.iter().map(|table| format!("{} {} rows", table.table, count(table.rows))).collect();
        let memory = database.memory_bytes.map_or(String::new(), |limit| format!(", memory {}", bytes(limit)));
        out.line(2, &format!("database {}: {}{memory}", database.name, rows.join(", ")));
    }
    if !plan.contract.is_empty() {
        out.line(
            2,
            &format!("contract: {} before anything is measured", counted(plan.contract.len() as u64, "case", "cases")),
        );
    }

    if !plan.inputs.is_empty() || !plan.secrets.is_empty() {
        out.blank();
        out.line(0, "Environment");
        for input in &plan.inputs {
            let value = match (&input.value, input.is_default) {
                (None, _) => "not set; it must be where the study is run".to_owned(),
                (Some(value), true) => format!("{value} (the study's default)"),
                (Some(value), false) => value.clone(),
            };
            out.line(2, &format!("{}: {value}", input.name));
        }
        for secret in &plan.secrets {
            out.line(2, &format!("{secret}: a secret, read where the study is run and never written"));
        }
    }

    for (phase, expected) in plan.phases.iter().zip(&outlook.phases) {
        out.blank();
        describe_phase(&mut out, plan, phase, expected);
    }

    if !plan.agreements.is_empty() {
        out.blank();
        out.line(0, "Agreements");
        for agreement in &plan.agreements {
            let unchecked = agreement.not_checked.as_ref().map_or(String::new(), |why| format!("; not checked: {why}"));
            out.line(
                2,
                &format!(
                    "{}: {} against {} within {}{unchecked}",
                    agreement.name,
                    agreement.left,
                    agreement.right,
                    percent(agreement.within)
                ),
            );
        }
    }
    if !plan.limits.is_empty() {
        out.blank();
        out.line(0, "Limits known before the run");
        for limit in &plan.limits {
            let weight = if limit.lowers_confidence { " (lowers the confidence of every figure)" } else { "" };
            out.line(2, &format!("{}: {}{weight}", limit.name, limit.text));
        }
    }
    out.blank();
    out.line(0, &total(&outlook));
    out.finish()
}

/// Repetitions and expected time of a whole plan, as one sentence or two.
pub fn total(outlook: &Outlook) -> String {
    let mut text =
        format!("{}, {}", counted(outlook.repetitions(), "repetition", "repetitions"), about(outlook.planned_ns()));
    if outlook.at_most() > outlook.repetitions() {
        let _ = write!(
            text,
            "; if repetitions are void and measured again, at most {} and {}",
            count(outlook.at_most()),
            about(outlook.at_most_ns())
        );
    }
    text.push_str(". Images that have to be built come on top.");
    text
}

/// Study, machine and profile on one line.
pub fn headline(plan: &Plan) -> String {
    let mut parts = vec![plan.study.clone()];
    let chosen =
        if plan.machine.chosen.is_empty() { String::new() } else { format!(" (chosen: {})", plan.machine.chosen) };
    parts.push(format!("machine {}{chosen}", plan.machine.name));
    if let Some(profile) = &plan.profile {
        parts.push(format!("profile {profile}"));
    }
    parts.join(" · ")
}

fn roles(plan: &Plan) -> String {
    let machine = &plan.machine;
    let mut text =
        format!("CPUs: candidate {}, database {}, load {}", machine.candidate, machine.database, machine.load);
    let shared: BTreeSet<u32> = [
        machine.candidate.shared_with(&machine.database),
        machine.candidate.shared_with(&machine.load),
        machine.database.shared_with(&machine.load),
    ]
    .iter()
    .flat_map(|set| set.cpus().to_vec())
    .collect();
    if !shared.is_empty() {
        let _ = write!(text, " (shared: {})", plan::CpuSet::new(shared));
    }
    match words::generators(&machine.generators).as_slice() {
        [] => {}
        [one] => {
            let _ = write!(text, "; the generator: {one}");
        }
        several => {
            let _ = write!(text, "; {} generators send each load together: {}", several.len(), several.join("; "));
        }
    }
    text
}

fn describe_phase(out: &mut Page, plan: &Plan, phase: &Phase, expected: &PhaseOutlook) {
    let budget = if expected.at_most > expected.repetitions {
        format!(", at most {}", count(expected.at_most))
    } else {
        String::new()
    };
    out.line(
        0,
        &format!(
            "{}: {}, {}{budget}, {}",
            phase.name,
            counted(expected.cells, "cell", "cells"),
            counted(expected.repetitions, "repetition", "repetitions"),
            about(expected.planned_ns())
        ),
    );
    out.line(2, &procedure(&phase.procedure));
    for axis in &phase.axes {
        let levels: Vec<String> = axis.levels.iter().map(ToString::to_string).collect();
        let of = axis.levels.iter().find_map(|level| match level {
            plan::Level::ShareOf { of, .. } => Some(format!(" of {of}")),
            _ => None,
        });
        out.line(2, &format!("over {}: {}{}", axis.factor, levels.join(" "), of.unwrap_or_default()));
    }
    for with in &phase.with {
        out.line(2, &format!("with {} chosen by {}", with.factor, with.from));
    }
    let gates: Vec<String> = phase.gates.iter().map(gate).collect();
    if !gates.is_empty() {
        out.line(2, &format!("a repetition is void unless: {}", gates.join("; ")));
    }
    if !phase.carried.is_empty() {
        let conditions: Vec<&str> = phase.carried.iter().map(|condition| condition.written.as_str()).collect();
        out.line(2, &format!("a rate is carried when: {}", conditions.join(", ")));
    }
    let estimates: Vec<String> = phase
        .estimates
        .iter()
        .map(|estimate| format!("{} by {}", estimate.metric.name(), estimate.by.name()))
        .collect();
    if !estimates.is_empty() {
        out.line(2, &format!("estimates {}", estimates.join(", ")));
    }
    if let Some(choice) = &phase.choose {
        let each = if choice.for_each.is_empty() {
            String::new()
        } else {
            format!(" for each {}", choice.for_each.join(" and "))
        };
        out.line(2, &format!("chooses {} by the highest {}{each}", choice.factor, choice.maximising.name()));
    }
    order(out, plan, phase);
}

fn order(out: &mut Page, plan: &Plan, phase: &Phase) {
    if phase.cells.len() < 2 {
        return;
    }
    match phase.repeat.order {
        Order::Listed => out.line(2, "order: as listed, all repetitions of a cell in a row"),
        Order::Blocks => {
            let mut blocks: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for slot in &phase.slots {
                blocks.entry(slot.block).or_default().push(slot.cell);
            }
            out.line(2, &format!("order: blocks, each in a random order of seed {}", plan.seed));
            let all = blocks.len();
            for (block, cells) in blocks.into_iter().take(PRINTED_BLOCKS) {
                let mut names: Vec<String> =
                    cells.iter().take(NAMED_CELLS).map(|&cell| cell_name(phase, cell)).collect();
                if cells.len() > NAMED_CELLS {
                    names.push(format!("… {} more", count((cells.len() - NAMED_CELLS) as u64)));
                }
                out.line(4, &format!("{}: {}", block + 1, names.join("; ")));
            }
            if all > PRINTED_BLOCKS {
                out.line(4, &format!("… {} more", counted((all - PRINTED_BLOCKS) as u64, "block", "blocks")));
            }
        }
    }
}

/// A cell's levels as people say them: `go, 1 core, pool 8`. A cell without axes is the phase itself.
pub fn cell_name(phase: &Phase, index: u32) -> String {
    match phase.cells.get(index as usize) {
        Some(cell) if !cell.levels.is_empty() => levels_of(phase, cell),
        Some(_) => phase.name.clone(),
        None => format!("cell {index}"),
    }
}

fn levels_of(phase: &Phase, cell: &Cell) -> String {
    phase
        .axes
        .iter()
        .zip(&cell.levels)
        .map(|(axis, level)| words::level(&axis.factor, &level.to_string()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// How a repetition of the phase is measured, in one line.
pub fn procedure(procedure: &Procedure) -> String {
    match procedure {
        Procedure::Pgbench(pgbench) => format!(
            "pgbench {} alone: {}, {}, {} window",
            pgbench.script.path,
            counted(pgbench.clients.into(), "client", "clients"),
            counted(pgbench.jobs.into(), "thread", "threads"),
            span(pgbench.window_ns)
        ),
        Procedure::Start(start) => format!("start of the candidate, {} window", span(start.window_ns)),
        Procedure::Load(load) => {
            let how = match &load.rate {
                None => "closed loop".to_owned(),
                Some(Rate::PerSecond(_)) if !load.course.is_empty() => format!("open loop {}", course(&load.course)),
                Some(Rate::PerSecond(rate)) => format!("open loop at {}/s", significant(*rate)),
                Some(Rate::Factor(factor)) => format!("open loop at the level of {factor}"),
            };
            format!(
                "{how}{}, workload {}: {}{}{}, {} window after {} warm-up",
                match load.arrivals {
                    Arrivals::Constant => "",
                    Arrivals::Poisson => " at random (Poisson)",
                },
                load.workload,
                match &load.connections_of {
                    None => counted(load.connections.into(), "connection", "connections"),
                    Some(factor) => format!("as many connections as {factor} says, at most {}", load.connections),
                },
                if load.keep_alive { "" } else { ", each for one request" },
                travel(&load.travel),
                span(load.window_ns),
                span(load.warm_up_ns)
            )
        }
    }
}

/// How a rate goes, leg by leg.
fn course(legs: &[Leg]) -> String {
    let legs = legs.iter().map(|leg| {
        let (from, to) = (significant(leg.from), significant(leg.to));
        let over = span(leg.for_ns);
        if leg.from == leg.to {
            format!("at {to}/s for {over}")
        } else {
            format!("from {from}/s to {to}/s over {over}")
        }
    });
    legs.collect::<Vec<_>>().join(", then ")
}

/// How requests travel, where it isn't plain HTTP/1.1 straight to the target.
fn travel(travel: &Travel) -> String {
    let mut words = String::new();
    if travel.protocol == Protocol::Http2 {
        words.push_str(&format!(" of HTTP/2, {} in flight on each", travel.in_flight));
    }
    if let Some(proxy) = &travel.proxy {
        words.push_str(&format!(" through the proxy {proxy}"));
    }
    words
}

/// A gate with its thresholds: what a repetition must show to be valid.
pub fn gate(gate: &Gate) -> String {
    let name = gate.name();
    match gate {
        Gate::Census => format!("{name}: every answer as expected, every request accounted for"),
        Gate::Counters => format!("{name}: every counter was read"),
        Gate::Rows => format!("{name}: rows added = writes acknowledged"),
        Gate::GeneratorProbe { at, of } => {
            format!("{name}: a no-op server carries {} of the rate measured (driven by {of})", percent(*at))
        }
        Gate::GeneratorBottleneck { busy, receive_queue } => format!(
            "{name}: its threads at most {} busy, answers wait for it at most {} of the service time, or {} µs (medians)",
            percent(*busy),
            percent(*receive_queue),
            Gate::WAKE_UP_NS / 1_000
        ),
        Gate::ServiceDemand { rise } => {
            format!("{name}: CPU per request at most {} above the cell's lowest", percent(*rise))
        }
        Gate::Saturation { drop } => format!("{name}: cores used at most {} below the cell's highest", percent(*drop)),
        Gate::Pace { quiet_share } => {
            format!("{name}: each candidate CPU at its quiet pace for {} of the window", percent(*quiet_share))
        }
        Gate::Steal { max } => format!("{name}: at most {} of the window stolen", percent(*max)),
        Gate::Stalls { over_ns, budget, quantile } => format!(
            "{name}: time lost beyond {} at most {} of the tail above p{}",
            span(*over_ns),
            percent(*budget),
            significant(quantile * 100.0)
        ),
        Gate::SendLag { p99_ns } => {
            format!("{name}: p99 of the sends' delay at most {} µs", significant(*p99_ns as f64 / 1e3))
        }
        Gate::LittlesLaw { tolerance } => {
            format!("{name}: throughput × mean service time = connections within {}", percent(*tolerance))
        }
        Gate::Mix { tolerance } => {
            format!("{name}: each stream's share within {} of the declared one", percent(*tolerance))
        }
        Gate::Clock => format!("{name}: no suspend, no jump"),
        Gate::UtilisationLaw { tolerance } => {
            format!("{name}: cores used at most {} above the budget", percent(*tolerance))
        }
    }
}

/// The sign of a comparison.
pub fn comparison(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Equal => "==",
        Comparison::GreaterOrEqual => ">=",
        Comparison::Greater => ">",
    }
}

/// The plan and what it is expected to take, as one JSON object.
///
/// # Errors
/// When the plan holds a number that JSON can't (a rate that is not finite).
pub fn json(plan: &Plan) -> Result<Value, serde_json::Error> {
    let outlook = Outlook::of(plan);
    Ok(json!({
        "plan": serde_json::to_value(plan)?,
        "hash": plan.hash(),
        "outlook": {
            "repetitions": outlook.repetitions(),
            "at-most": outlook.at_most(),
            "seconds": seconds(outlook.planned_ns()),
            "at-most-seconds": seconds(outlook.at_most_ns()),
            "phases": outlook.phases.iter().map(|phase| json!({
                "phase": phase.phase,
                "cells": phase.cells,
                "repetitions": phase.repetitions,
                "at-most": phase.at_most,
                "seconds": seconds(phase.planned_ns()),
            })).collect::<Vec<_>>(),
        },
    }))
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The DAG in Graphviz' language.
pub fn dot(plan: &Plan) -> String {
    let graph = Graph::of(plan);
    let mut out = String::from("digraph plan {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for (id, label) in &graph.nodes {
        let _ = writeln!(out, "  {id} [label=\"{}\"];", label.replace('\\', "\\\\").replace('"', "\\\""));
    }
    for (from, to) in &graph.edges {
        let _ = writeln!(out, "  {from} -> {to};");
    }
    out.push_str("}\n");
    out
}

/// The DAG in Mermaid's language.
pub fn mermaid(plan: &Plan) -> String {
    let graph = Graph::of(plan);
    let mut out = String::from("flowchart LR\n");
    for (id, label) in &graph.nodes {
        let _ = writeln!(out, "  {id}[\"{}\"]", label.replace('"', "#quot;"));
    }
    for (from, to) in &graph.edges {
        let _ = writeln!(out, "  {from} --> {to}");
    }
    out
}

/// Nodes and edges as they are drawn, in the steps' order.
struct Graph {
    nodes: Vec<(String, String)>,
    edges: BTreeSet<(String, String)>,
}

impl Graph {
    fn of(plan: &Plan) -> Self {
        let grouped = plan.steps.len() > DRAWN_STEPS;
        let phase_index = |name: &str| plan.phases.iter().position(|phase| phase.name == name).unwrap_or_default();
        let node = |step: &Step| match &step.kind {
            StepKind::MeasureCell { phase, .. } if grouped => format!("phase{}", phase_index(phase)),
            _ => format!("s{}", step.id.0),
        };
        let mut nodes: Vec<(String, String)> = Vec::new();
        let mut known = BTreeSet::new();
        let mut edges = BTreeSet::new();
        for step in &plan.steps {
            let id = node(step);
            if known.insert(id.clone()) {
                let label = match &step.kind {
                    StepKind::MeasureCell { phase, .. } if grouped => {
                        let cells = plan.phase(phase).map_or(0, |phase| phase.cells.len() as u64);
                        format!("measure {phase}: {}", counted(cells, "cell", "cells"))
                    }
                    kind => step_name(plan, kind),
                };
                nodes.push((id.clone(), label));
            }
            for need in &step.needs {
                if let Some(needed) = plan.steps.get(need.0 as usize) {
                    let from = node(needed);
                    if from != id {
                        edges.insert((from, id.clone()));
                    }
                }
            }
        }
        Self { nodes, edges }
    }
}

/// What a step does, in a few words.
pub fn step_name(plan: &Plan, kind: &StepKind) -> String {
    match kind {
        StepKind::PrepareCandidate { candidate } => format!("image of {candidate}"),
        StepKind::PrepareDatabase => "image of the database".to_owned(),
        StepKind::PrepareProbe => "image of the probe".to_owned(),
        StepKind::StartDatabase => "start the database".to_owned(),
        StepKind::MakeTemplate => "make the template".to_owned(),
        StepKind::VerifyContract { candidate } => format!("contract of {candidate}"),
        StepKind::MeasureCell { phase, cell } => match plan.phase(phase) {
            Some(found) if !found.axes.is_empty() => format!("measure {phase}: {}", cell_name(found, *cell)),
            _ => format!("measure {phase}"),
        },
        StepKind::Estimate { phase } => format!("estimate {phase}"),
        StepKind::Agree { agreement } => format!("agreement {agreement}"),
        StepKind::Report => "report".to_owned(),
    }
}

/// Lines within a width, indented.
struct Page {
    columns: usize,
    lines: Vec<String>,
}

impl Page {
    fn line(&mut self, indent: usize, text: &str) {
        let text = width::harmless(text);
        for (index, line) in width::wrap(&text, self.columns.saturating_sub(indent + 2).max(10)).into_iter().enumerate()
        {
            let hanging = if index == 0 { 0 } else { 2 };
            self.lines.push(format!("{}{line}", " ".repeat(indent + hanging)));
        }
    }

    fn blank(&mut self) {
        self.lines.push(String::new());
    }

    fn finish(self) -> String {
        let mut text = self.lines.join("\n");
        text.push('\n');
        text
    }
}
