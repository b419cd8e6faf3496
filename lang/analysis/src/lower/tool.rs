//! A load that another tool sends: what the tool can't do, and what can't be had from its account, is refused before the run.

use plan::tool::{needed_by_gate, needed_by_metric};
use plan::{Account, Arrivals, Body, Limit, LoadProcedure, Metric, Phase, Plan, Procedure, Stream, Tool};

use super::phase::own;
use crate::codes;
use crate::problems::{Problems, problem};
use crate::resolve::Item;

/// Why the phase's tool leaves this metric without a value, where it does.
pub fn why_missing(phase: &Phase, metric: Metric) -> Option<String> {
    let Procedure::Load(load) = &phase.procedure else { return None };
    let account = needed_by_metric(metric).filter(|_| !accounts_for(load, metric))?;
    Some(format!("{} sends its load and can't give {}", load.with.name(), account.words()))
}

/// Whether the phase's tool accounts for what this metric is derived from.
pub fn accounts_for(load: &LoadProcedure, metric: Metric) -> bool {
    needed_by_metric(metric).is_none_or(|account| load.with.gives(account, load.rate.is_some()))
}

/// What loads that are left to other tools mean for the report, phase by phase.
pub fn limits(plan: &Plan) -> impl Iterator<Item = Limit> {
    plan.phases.iter().filter_map(|phase| {
        let Procedure::Load(load) = &phase.procedure else { return None };
        if load.with.is_own() {
            return None;
        }
        let lacks: Vec<&str> = load.with.lacks(load.rate.is_some()).into_iter().map(Account::words).collect();
        Some(Limit {
            name: "other-tool".to_owned(),
            text: format!(
                "The load of phase `{}` is sent by {}, which can't give {}.",
                phase.name,
                load.with.name(),
                lacks.join("; ")
            ),
            lowers_confidence: true,
        })
    })
}

/// Checks a phase against the tool that sends its load.
pub fn check(item: &Item, phase: &Phase, plan: &Plan, problems: &mut Problems) {
    let Procedure::Load(load) = &phase.procedure else { return };
    let Some(node) = item.child("load").filter(|node| !load.with.is_own() && !node.broken) else { return };
    let at = node.setting("with").map_or(&node.name_at, |valued| &valued.at);
    let (tool, open) = (load.with.name(), load.rate.is_some());
    let other = format!("write `with={}`, or leave `with` out", Tool::Exp.name());
    if !load.with.sends(open) {
        let (has, lacks) = if open { ("a closed", "open") } else { ("an open", "closed") };
        problems.push(
            problem(
                &codes::TOOL_CANNOT,
                at,
                format!("{tool} sends {has} loop only, and the loop of phase `{}` is {lacks}", item.key),
            )
            .help(other),
        );
        return;
    }
    if let Some(workload) = plan.workload(&load.workload) {
        if workload.streams.len() > 1 {
            let message = format!(
                "{tool} sends one stream and tells nothing apart, and `{}` has {} streams",
                workload.name,
                workload.streams.len()
            );
            problems.push(problem(&codes::TOOL_CANNOT, at, message).help(other.clone()));
        }
        for stream in &workload.streams {
            if let (Tool::Wrk, Some(status)) = (load.with, stream.expect.status.iter().find(|status| **status >= 400)) {
                let message = format!(
                    "{tool} counts every status of 400 and above as an error, and stream `{}` expects {status}",
                    stream.name
                );
                problems.push(problem(&codes::TOOL_CANNOT, at, message).help(other.clone()));
            }
            if let Some((what, name)) = varies(stream) {
                let message = format!(
                    "{tool} varies the path alone, and {what} of stream `{}` varies with `${{{name}}}`",
                    stream.name
                );
                problems.push(problem(&codes::TOOL_CANNOT, at, message).help(other.clone()));
            }
        }
    }
    let beyond = [
        (
            !plan.machine.generators.is_empty(),
            "is one process of this machine",
            "is for several generators, or for one elsewhere",
        ),
        (!load.course.is_empty(), "sends one constant rate", "has ramps or steps"),
        (load.arrivals == Arrivals::Poisson, "spreads its requests in its own way", "asks for `arrivals=poisson`"),
        (!load.keep_alive, "is run over kept connections", "asks for `keep-alive=off`"),
    ];
    for (_, does, asks) in beyond.iter().filter(|(asked, ..)| *asked) {
        let message = format!("{tool} {does}, and the load of phase `{}` {asks}", item.key);
        problems.push(problem(&codes::TOOL_CANNOT, at, message).help(other.clone()));
    }
    let mut lacking = |node: &Item, gate: &str, account: Account| {
        let message =
            format!("`gate {gate}` of phase `{}` needs what {tool} can't give: {}", item.key, account.words());
        problems.push(
            problem(&codes::TOOL_CANNOT, own(item, node), message)
                .also(at.clone(), format!("{tool} sends the load"))
                .help(format!(
                    "remove it (`without …` where a definition has it), or leave the load to `{}`",
                    Tool::Exp.name()
                )),
        );
    };
    for gate in &phase.gates {
        if let (Some(account), Some(node)) = (needed_by_gate(gate), item.keyed("gate", gate.name()))
            && !load.with.gives(account, open)
        {
            lacking(node, gate.name(), account);
        }
    }
}

/// A part of the stream's requests other than the path that varies per request, and the parameter.
fn varies(stream: &Stream) -> Option<(&'static str, &str)> {
    let parameter = |name: &&str| stream.parameters.iter().any(|parameter| parameter.name == **name);
    let header = stream.request.headers.iter().flat_map(|(_, value)| value.variables()).find(parameter);
    let body = stream.request.body.iter().filter_map(Body::text).flat_map(|body| body.variables()).find(parameter);
    header.map(|name| ("a header", name)).or(body.map(|name| ("the body", name)))
}
