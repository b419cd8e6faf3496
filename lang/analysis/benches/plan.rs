//! How long a plan of more than 100,000 cells takes, and what memory it needs. Prints figures beside their bars; run it with
//! `cargo bench -p analysis --bench plan`.
#![expect(clippy::disallowed_types, reason = "a benchmark has a clock")]
#![expect(clippy::disallowed_macros, reason = "a benchmark prints")]
#![expect(clippy::disallowed_methods, reason = "a benchmark says by its exit code that it measured nothing")]

mod support;

use analysis::analyse;
use support::{memory, options, sources, times, wide};
use syntax::SourceId;

fn main() {
    let id = SourceId::new("study.kdl");
    let text = sources(&wide(22));
    let options = options();
    let (analysed, _, peak) = memory(|| analyse(&text, &id, &options));
    let Some(plan) = analysed.plan else {
        println!("the study has errors: {:#?}", analysed.diagnostics);
        std::process::exit(1);
    };
    let cells: usize = plan.phases.iter().map(|phase| phase.cells.len()).sum();
    let took = times(5, || analyse(&text, &id, &options));
    println!(
        "plan of {cells} cells, {} steps: {:.0} ms at least (bar 1,000 ms for 100,000), {:.0} MB at the peak (bar 200 MB)",
        plan.steps.len(),
        took[0],
        peak as f64 / 1e6
    );
    let bytes = serde_json::to_vec(&plan).map_or(0, |bytes| bytes.len());
    let took = times(3, || serde_json::to_vec(&plan));
    println!("as JSON: {:.0} MB in {:.0} ms at least", bytes as f64 / 1e6, took[0]);
}
