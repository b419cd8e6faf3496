//! The project's own studies: no diagnostics at all, and plans that say what they should.

use crate::common::{Disk, line};
use analysis::outlook::outlook;
use analysis::{Analysed, Host, Options, analyse};
use plan::{Gate, Metric, Plan, Procedure, StepKind};
use syntax::SourceId;

fn host(cpus: &str) -> Host {
    Host { cpus: cpus.parse().expect("a CPU set"), ..Host::default() }
}

fn study(profile: Option<&str>, cpus: &str) -> Analysed {
    let options = Options { profile: profile.map(str::to_owned), host: Some(host(cpus)), ..Options::default() };
    analyse(&Disk, &SourceId::new("experiments/capacity.kdl"), &options)
}

fn plan(profile: Option<&str>, cpus: &str) -> Plan {
    let analysed = study(profile, cpus);
    let told: Vec<String> = analysed.diagnostics.iter().map(|diagnostic| line(diagnostic, &Disk)).collect();
    assert!(told.is_empty(), "{profile:?} on {cpus}:\n{}", told.join("\n"));
    analysed.plan.expect("no errors, so a plan")
}

fn cells(plan: &Plan, phase: &str) -> usize {
    plan.phase(phase).map_or(0, |phase| phase.cells.len())
}

#[test]
fn the_whole_study_on_twelve_cores() {
    let plan = plan(None, "0-11");
    assert_eq!(plan.machine.name, "workstation-12");
    assert!(plan.machine.chosen.contains("only one that fits without sharing"), "{}", plan.machine.chosen);
    let names: Vec<&str> = plan.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["database-ceiling", "pool-sweep", "ceiling", "fixed-rates"]);
    assert_eq!(cells(&plan, "pool-sweep"), 4 * 3 * 4);
    assert_eq!(cells(&plan, "ceiling"), 4 * 3);
    assert_eq!(cells(&plan, "fixed-rates"), 4 * 3 * 7);
    assert_eq!(plan.contract.len(), 19);
    assert_eq!(plan.report.items.len(), 10);
    assert!(plan.limits.is_empty(), "{:?}", plan.limits);
    assert!(plan.agreements.iter().all(|agreement| agreement.not_checked.is_none()));
    let ceiling = plan.phase("ceiling").expect("a phase");
    assert_eq!((ceiling.repeat.valid, ceiling.repeat.at_most), (6, 12));
    assert_eq!(ceiling.slots.len(), 12 * 6);
    assert!(ceiling.gates.iter().any(|gate| matches!(gate, Gate::GeneratorProbe { at, of }
        if *at == 1.15 && of.phase == "pool-sweep" && of.metric == Metric::Throughput)));
    assert_eq!(ceiling.reads, ["pool-sweep"]);
    let Procedure::Load(load) = &ceiling.procedure else { panic!("a load") };
    assert_eq!((load.connections, load.window_ns, load.workload.as_str()), (64, 20_000_000_000, "mixed"));
    let database = plan.database.as_ref().expect("a database");
    assert!(database.each_cell.clone && database.each_cell.settle_writeback);
    assert_eq!(database.each_cell.prewarm, ["events", "events_pkey"]);
    assert_eq!(database.holds[0].rows, 1_000_000);
    assert_eq!(database.template[1].path, "sql/seed.sql");
    assert_eq!(plan.root, "experiments");
}

#[test]
fn the_steps_are_a_graph() {
    let plan = plan(None, "0-11");
    let order = plan::graph::topological_order(&plan.steps).expect("a DAG");
    assert_eq!(order.len(), plan.steps.len());
    let measured = plan.steps.iter().filter(|step| matches!(step.kind, StepKind::MeasureCell { .. })).count();
    assert_eq!(measured, 1 + 48 + 12 + 84);
    assert!(matches!(plan.steps.last().map(|step| &step.kind), Some(StepKind::Report)));
}

#[test]
fn two_cores_take_one_core_only() {
    let plan = plan(None, "0-1");
    assert_eq!(plan.machine.name, "two-cores");
    assert!(plan.machine.chosen.contains("the only one that fits"), "{}", plan.machine.chosen);
    assert_eq!(cells(&plan, "ceiling"), 4);
    let limits: Vec<&str> = plan.limits.iter().map(|limit| limit.name.as_str()).collect();
    assert_eq!(limits, ["levels-left-out", "cpus-shared"]);
    assert!(plan.report.items.iter().any(|item| matches!(item,
        plan::ReportItem::CapacityPlan { not_possible: Some(why), .. } if why.contains("two-cores"))));
}

#[test]
fn smoke_lasts_less_than_six_minutes() {
    let plan = plan(Some("smoke"), "0-1");
    assert_eq!(cells(&plan, "pool-sweep"), 8);
    assert_eq!(cells(&plan, "ceiling"), 4);
    assert!(plan.phase("fixed-rates").is_none());
    let two_loops = plan.agreements.iter().find(|agreement| agreement.name == "two-loops").expect("kept");
    assert!(two_loops.not_checked.is_some());
    assert!(plan.limits.iter().any(|limit| limit.name == "agreement-not-checked"));
    assert!(
        plan.limits.iter().any(|limit| limit.name == "not-reported" && limit.text.contains("Highest carried rate"))
    );
    let outlook = outlook(&plan);
    assert!(outlook.seconds_at_most <= 360.0, "{outlook:?}");
}

#[test]
fn short_lasts_less_than_half_an_hour_and_compares_the_loops() {
    let plan = plan(Some("short"), "0-1");
    assert!(plan.agreements.iter().all(|agreement| agreement.not_checked.is_none()));
    assert_eq!(cells(&plan, "fixed-rates"), 20);
    let outlook = outlook(&plan);
    assert!(outlook.seconds_at_most <= 1_800.0, "{outlook:?}");
}

/// Threads of one core and NUMA nodes are the host's: the same study warns on one host and is quiet on another.
#[test]
fn hosts_decide_whether_roles_disturb_each_other() {
    let names = |host: Host| -> Vec<String> {
        let options = Options { machine: Some("workstation-12".to_owned()), host: Some(host), ..Options::default() };
        let analysed = analyse(&Disk, &SourceId::new("experiments/capacity.kdl"), &options);
        analysed.diagnostics.iter().map(|diagnostic| diagnostic.name.to_owned()).collect()
    };
    let set = |text: &str| text.parse().expect("a CPU set");
    let cores = Host { siblings: vec![set("4-5"), set("6-7"), set("8-9")], ..host("0-11") };
    assert!(names(cores).is_empty(), "threads within the database and the load disturb nobody else");
    let threads = Host { siblings: vec![set("0,4"), set("1,5")], ..host("0-11") };
    assert_eq!(names(threads), ["overlapping-cpus"]);
    let one_node = Host { nodes: vec![set("0-11"), set("12-23")], ..host("0-23") };
    assert!(names(one_node).is_empty());
    let two_nodes = Host { nodes: vec![set("0-7"), set("8-11")], ..host("0-11") };
    assert_eq!(names(two_nodes), ["overlapping-cpus"]);
    let whole = Host { siblings: vec![set("0-1"), set("2-3")], ..host("0-11") };
    assert_eq!(names(whole), ["overlapping-cpus"], "the candidate's own threads of one core");
}

/// A warning that nobody accepts is told in the report; one that is accepted is told with its reason.
#[test]
fn lints_become_limits() {
    let plan = plan(Some("smoke"), "0-1");
    let texts: Vec<&str> = plan.limits.iter().map(|limit| limit.text.as_str()).collect();
    assert!(texts.iter().any(|text| text.starts_with("Accepted, because a smoke run shows")), "{texts:#?}");
    let limits: Vec<&str> = plan.limits.iter().map(|limit| limit.name.as_str()).collect();
    for name in ["single-repetition", "unbracketed-optimum", "cpus-shared", "phase-left-out", "not-reported"] {
        assert!(limits.contains(&name), "{name} in {limits:?}");
    }
}

/// Every value knows where it came from: "6, here; std/http gave 5".
#[test]
fn values_keep_their_origin() {
    let analysed = study(None, "0-11");
    let ceiling = analysed.study.find("phase", "ceiling").expect("a phase");
    let repeat = ceiling.child("repeat").expect("a child");
    let valid = &repeat.args[0];
    assert_eq!((valid.written.as_str(), valid.at.source.as_str()), ("6", "experiments/capacity.kdl"));
    let replaced: Vec<(&str, &str)> =
        valid.replaced.iter().map(|(at, written)| (at.source.as_str(), written.as_str())).collect();
    assert_eq!(replaced, [("std/http", "5")]);
    let order = repeat.setting("order").expect("a setting");
    assert_eq!(order.at.source.as_str(), "std/http");
    assert_eq!(ceiling.via.len(), 1);
    let smoke = study(Some("smoke"), "0-1");
    let repeat = smoke.study.find("phase", "ceiling").and_then(|phase| phase.child("repeat")).expect("a child");
    let replaced: Vec<&str> = repeat.args[0].replaced.iter().map(|(_, written)| written.as_str()).collect();
    assert_eq!((repeat.args[0].written.as_str(), replaced), ("2", vec!["6", "5"]));
}

#[test]
fn every_source_that_was_read_is_named() {
    let names: Vec<String> = study(None, "0-11").sources.iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        [
            "experiments/capacity.kdl",
            "std/http",
            "std/postgres",
            "experiments/sql/schema.sql",
            "experiments/sql/seed.sql",
            "experiments/sql/insert.sql"
        ]
    );
}
