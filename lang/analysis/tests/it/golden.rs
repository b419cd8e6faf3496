//! Golden plans: a small study above, the plan that it lowers to below, in one file. `UPDATE=1` writes it anew.
#![expect(clippy::disallowed_methods, reason = "the golden files lie on the disk")]

use std::fmt::Write as _;

use crate::common::{host, memory, repository};
use analysis::{Options, analyse};
use plan::{Plan, Procedure};
use syntax::SourceId;

const RULE: &str = "\n──────── plan ────────\n";

fn printed(plan: &Plan) -> String {
    let mut out = String::new();
    let machine = &plan.machine;
    let _ = writeln!(
        out,
        "{} on {} ({}): candidate {} database {} load {}, seed {}",
        plan.study, machine.name, machine.chosen, machine.candidate, machine.database, machine.load, plan.seed
    );
    for candidate in &plan.candidates {
        let env: Vec<String> = candidate.env.iter().map(|(name, text)| format!("{name}={text}")).collect();
        let _ = writeln!(out, "candidate {} :{} {}", candidate.name, candidate.port, env.join(" "));
    }
    for case in &plan.contract {
        let _ =
            writeln!(out, "case {}: {} {} {:?}", case.name, case.request.method, case.request.path, case.expect.status);
    }
    for workload in &plan.workloads {
        for stream in &workload.streams {
            let _ = writeln!(
                out,
                "stream {}.{} {}: {} {} {:?}",
                workload.name, stream.name, stream.share, stream.request.method, stream.request.path, stream.expect
            );
        }
    }
    for phase in &plan.phases {
        let what = match &phase.procedure {
            Procedure::Load(load) => format!("{load:?}"),
            Procedure::Pgbench(pgbench) => format!("pgbench {} × {}", pgbench.clients, pgbench.window_ns),
            Procedure::Start(start) => format!("{start:?}"),
        };
        let _ = writeln!(out, "phase {} reads {:?}: {what}", phase.name, phase.reads);
        let _ = writeln!(out, "  {:?}", phase.repeat);
        for gate in &phase.gates {
            let _ = writeln!(out, "  gate {gate:?}");
        }
        for estimate in &phase.estimates {
            let _ = writeln!(out, "  estimate {} by {}", estimate.metric.name(), estimate.by.name());
        }
        for (index, cell) in phase.cells.iter().enumerate() {
            let levels: Vec<String> = cell.levels.iter().map(ToString::to_string).collect();
            let _ = writeln!(out, "  cell {index}: {} {}", levels.join(" "), cell.hash.short());
        }
        let slots: Vec<String> = phase.slots.iter().map(|slot| format!("{}:{}", slot.block, slot.cell)).collect();
        let _ = writeln!(out, "  slots {}", slots.join(" "));
    }
    for agreement in &plan.agreements {
        let _ = writeln!(
            out,
            "agreement {}: {} {} ± {}",
            agreement.name, agreement.left, agreement.right, agreement.within
        );
    }
    for item in &plan.report.items {
        let _ = writeln!(out, "report {item:?}");
    }
    let _ = writeln!(out, "reproduce: {}", plan.report.reproduce);
    for limit in &plan.limits {
        let _ = writeln!(out, "limit {} ({}): {}", limit.name, limit.lowers_confidence, limit.text);
    }
    for step in &plan.steps {
        let needs: Vec<String> = step.needs.iter().map(|need| need.0.to_string()).collect();
        let _ = writeln!(out, "step {} {:?} needs [{}] {}", step.id.0, step.kind, needs.join(" "), step.hash.short());
    }
    out
}

#[test]
fn golden_plans() {
    let folder = repository().join("lang/analysis/tests/plans");
    let mut paths: Vec<_> =
        std::fs::read_dir(&folder).expect("the folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "golden plans are there");
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a golden plan");
        let study = text.split(RULE).next().unwrap_or_default();
        let options = Options { host: Some(host()), ..Options::default() };
        let analysed = analyse(&memory(study), &SourceId::new("study.kdl"), &options);
        let Some(plan) = analysed.plan else { panic!("{}: {:#?}", path.display(), analysed.diagnostics) };
        let fresh = format!("{study}{RULE}{}", printed(&plan));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &fresh).expect("the golden plan can be written");
        } else {
            assert!(fresh == text, "{} differs (UPDATE=1 writes it anew):\n{fresh}", path.display());
        }
    }
}
