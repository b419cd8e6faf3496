//! How long a full check takes in process, from texts to plan and lints, beside the reading alone. Prints figures beside their
//! bars; run it with `cargo bench -p analysis --bench check`.
#![expect(clippy::disallowed_types, reason = "a benchmark has a clock")]
#![expect(clippy::disallowed_macros, reason = "a benchmark prints")]
#![expect(clippy::disallowed_methods, reason = "a benchmark says by its exit code that it measured nothing")]

mod support;

use std::fmt::Write as _;
use std::sync::Arc;

use analysis::analyse;
use support::{memory, options, sources, times, wide};
use syntax::SourceId;

/// A study of about `lines` lines, most of them a contract.
fn long(lines: usize) -> String {
    let mut text = wide(1);
    text.push_str("contract {\n");
    for index in 0..lines / 6 {
        let _ = writeln!(
            text,
            "    case \"case {index}\" {{\n        GET \"/items/{index}\"\n        expect 200 {{\n            json \"$.id\" equals={index}\n        }}\n    }}"
        );
    }
    text.push_str("}\n");
    text
}

fn main() {
    let id = SourceId::new("study.kdl");
    let options = options();
    println!("lines      what     min ms   median ms   p99 ms   µs/line   allocations   bar");
    for (lines, runs) in [(30, 1_000), (1_000, 500), (10_000, 100), (100_000, 10)] {
        let text = long(lines);
        let shared: Arc<str> = Arc::from(text.as_str());
        let written = text.lines().count();
        let sources = sources(&text);
        let row = |what: &str, took: &[f64], calls: usize, bar: &str| {
            println!(
                "{written:<10} {what:<6} {:>8.3} {:>11.3} {:>8.3} {:>9.3} {calls:>13}   {bar}",
                took[0],
                took[took.len() / 2],
                took[(took.len() * 99 / 100).min(took.len() - 1)],
                took[0] * 1e3 / written as f64
            );
        };
        let (_, calls, _) = memory(|| syntax::parse(Arc::clone(&shared)));
        let bar = if lines == 1_000 { "0.3 ms" } else { "" };
        row("read", &times(runs, || syntax::parse(Arc::clone(&shared))), calls, bar);
        let (analysed, calls, _) = memory(|| analyse(&sources, &id, &options));
        if analysed.plan.is_none() {
            println!("the study has errors: {:#?}", analysed.diagnostics);
            std::process::exit(1);
        }
        drop(analysed);
        let bar = match lines {
            1_000 => "1 ms",
            10_000 => "10 ms",
            _ => "",
        };
        row("check", &times(runs, || analyse(&sources, &id, &options)), calls, bar);
    }
}
