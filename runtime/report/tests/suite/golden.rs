//! Golden journals: what each render makes of them stands beside them.

use std::fmt::Write as _;

use crate::support::scenarios::{Scenario, all};
use crate::support::{check, conclude, directory};
use report::terminal::{Layout, View};
use report::{Report, render};

const RUN_DIR: &str = "results/capacity/2026-11-30-1412-k7";

fn layout(width: usize, tty: bool) -> Layout {
    Layout { width, colour: false, tty, run_dir: RUN_DIR.to_owned() }
}

/// Every line that a terminal of this width gets, and the region as it stands a second after each repetition's stage.
fn shown(scenario: &Scenario, layout: &Layout) -> String {
    let mut view = View::new(&scenario.plan, layout.clone());
    let mut out = String::new();
    let mut regions = 0;
    for record in &scenario.records {
        for line in view.take(record) {
            let _ = writeln!(out, "{line}");
        }
        // A few of the regions are enough to see how they look.
        let wanted = matches!(
            record.event,
            journal::Event::RepetitionStage { stage: journal::Stage::Measuring, .. }
                | journal::Event::StepProgress { .. }
        );
        if wanted && regions < 4 {
            regions += 1;
            for line in view.live(record.at_ns + 1_200_000_000, regions) {
                let _ = writeln!(out, "┊{line}");
            }
        }
    }
    out
}

fn report(scenario: &Scenario) -> Report {
    report::report(&scenario.plan, scenario.records.iter().cloned())
}

#[test]
fn journals_render_as_stored() {
    let mut problems = Vec::new();
    for scenario in all() {
        let directory = directory(scenario.name);
        let mut journal = String::new();
        for record in &scenario.records {
            let _ = writeln!(journal, "{}", serde_json::to_string(record).expect("a record is JSON"));
        }
        let report = report(&scenario);
        let mut tables = String::new();
        for (name, text) in render::csv(&report) {
            let _ = writeln!(tables, "== {name}\n{}", text.replace("\r\n", "\n"));
        }
        let pretty = |value: &serde_json::Value| serde_json::to_string_pretty(value).expect("JSON") + "\n";
        for (file, text) in [
            ("journal.jsonl", journal),
            ("plan.json", serde_json::to_string(&scenario.plan).expect("a plan is JSON") + "\n"),
            ("report.md", render::markdown(&report)),
            ("excluded.md", render::excluded(&report)),
            ("summary.json", pretty(&render::summary_json(&report, RUN_DIR))),
            ("tables.txt", tables),
            ("terminal-100.txt", shown(&scenario, &layout(100, true))),
            ("terminal-40.txt", shown(&scenario, &layout(40, true))),
            ("pipe.txt", shown(&scenario, &layout(0, false))),
        ] {
            check(&directory.join(file), &text, &mut problems);
        }
        // One HTML report with valid and void repetitions; the others differ from their Markdown in the same way.
        if scenario.name == "probe-failing" {
            check(&directory.join("report.html"), &render::html(&report), &mut problems);
        }
        // One whole report.json shows the format; the other scenarios' would only be long.
        if scenario.name == "contract-failure" {
            check(&directory.join("report.json"), &pretty(&render::json(&report)), &mut problems);
        }
    }
    conclude(&problems);
}

#[test]
fn plans_render_as_stored() {
    let mut problems = Vec::new();
    for scenario in all().into_iter().filter(|scenario| ["noisy", "agreement-failing"].contains(&scenario.name)) {
        let directory = directory(scenario.name);
        for (file, text) in [
            ("plan.txt", render::plan::text(&scenario.plan, 100)),
            ("plan.dot", render::plan::dot(&scenario.plan)),
            ("plan.mermaid", render::plan::mermaid(&scenario.plan)),
        ] {
            check(&directory.join(file), &text, &mut problems);
        }
    }
    conclude(&problems);
}
