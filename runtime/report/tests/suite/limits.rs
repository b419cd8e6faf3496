//! What a study accepts of its lints, and a budget that was exceeded, is printed whichever way the report is read.

use crate::support::scenarios::all;
use plan::Limit;
use report::render;
use report::terminal::{Layout, View};

#[test]
fn accepted_lints_and_an_exceeded_budget_stand_in_every_rendering() {
    let mut scenario = all().into_iter().find(|scenario| scenario.name == "clean").expect("a clean run");
    let accepted = "Accepted, because the table is watched elsewhere: gate `saturation` can't fail.";
    scenario.plan.limits.push(Limit {
        name: "vacuous-gate".to_owned(),
        text: accepted.to_owned(),
        lowers_confidence: true,
    });
    scenario.plan.budget_ns = Some(1_000_000_000);
    let report = report::report(&scenario.plan, scenario.records.iter().cloned());
    let budget = "longer than the study's budget of 1 s.";
    assert!(
        report.limits.iter().any(|limit| limit.starts_with("The run took ") && limit.ends_with(budget)),
        "{:?}",
        report.limits
    );
    let mut view = View::new(
        &scenario.plan,
        Layout { width: 400, colour: false, tty: false, run_dir: "results/capacity/run".to_owned() },
    );
    let terminal: Vec<String> = scenario.records.iter().flat_map(|record| view.take(record)).collect();
    let html = render::html(&report)
        .replace("&#39;", "'")
        .replace("&#x27;", "'")
        .replace("<code>", "`")
        .replace("</code>", "`");
    for (name, text) in [
        ("markdown", render::markdown(&report)),
        ("html", html),
        ("json", render::json(&report).to_string()),
        ("terminal", terminal.join("\n")),
    ] {
        for wanted in ["the table is watched elsewhere: gate `saturation` can't fail.", budget] {
            // Typography may differ; what is said may not.
            assert!(text.replace('’', "'").contains(wanted), "{name} has no `{wanted}`:\n{text}");
        }
    }
    // A run within its budget says nothing of it.
    scenario.plan.budget_ns = Some(u64::MAX);
    let report = report::report(&scenario.plan, scenario.records.iter().cloned());
    assert!(!report.limits.iter().any(|limit| limit.contains("budget")), "{:?}", report.limits);
}
