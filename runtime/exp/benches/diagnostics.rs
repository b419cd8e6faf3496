//! How long 100 diagnostics of a 10,000-line study take to print, in every format, with plain miette beside it in the same run:
//! miette's own sources look for their lines from the start of the text, for every label. `cargo bench -p exp --bench
//! diagnostics`; the bar is 5 ms.

#[path = "../src/diagnostics/mod.rs"]
mod diagnostics;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use diagnostics::{Sarif, Texts};
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report};
use syntax::{Diagnostic, MemorySources, Severity, SourceId};

const LINES: usize = 10_000;
const DIAGNOSTICS: usize = 100;
const WIDTH: usize = 100;
const RUNS: usize = 100;

/// A study of 10,000 lines, of which every hundredth has a quantity without quotes.
fn study() -> String {
    (0..LINES)
        .map(|line| match line % (LINES / DIAGNOSTICS) {
            50 => format!("    case{line} for=30s {{ GET \"/items/{line}\" }}\n"),
            _ => format!("    case{line} for=\"30s\" {{ GET \"/items/{line}\" }}\n"),
        })
        .collect()
}

fn plain(diagnostics: &[Diagnostic], source: &Arc<String>) -> String {
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(WIDTH);
    let mut text = String::new();
    for diagnostic in diagnostics {
        let span = diagnostic.primary.at.span;
        let label = LabeledSpan::new(Some(diagnostic.primary.text.clone()), span.start as usize, span.len() as usize);
        let mut told = MietteDiagnostic::new(diagnostic.message.clone()).with_code(diagnostic.code.0).with_label(label);
        told.help.clone_from(&diagnostic.help);
        let report = Report::new(told).with_source_code(NamedSource::new("study.kdl", Arc::clone(source)));
        if handler.render_report(&mut text, report.as_ref()).is_err() {
            text.push_str("not drawn\n");
        }
    }
    text
}

fn row(what: &str, mut print: impl FnMut() -> String) {
    let mut took: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            black_box(print());
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    took.sort_by(f64::total_cmp);
    println!("{what:<14} {:>8.3} {:>11.3} {:>10}", took[0], took[RUNS / 2], print().len());
}

fn main() {
    let text = study();
    let id = SourceId::new("study.kdl");
    let sources = MemorySources::new().with("study.kdl", text.as_str());
    let found: Vec<Diagnostic> =
        syntax::parse(Arc::from(text.as_str())).problems.iter().map(|problem| problem.in_source(&id)).collect();
    let errors = diagnostics::count(&found, Severity::Error);
    if errors != DIAGNOSTICS || !diagnostics::has_errors(&found) {
        println!("{errors} diagnostics, not {DIAGNOSTICS}: nothing was measured");
        std::process::exit(1);
    }
    println!("{DIAGNOSTICS} diagnostics of {LINES} lines, the lines' index made anew each time; bar 5 ms");
    println!("format           min ms   median ms      bytes");
    row("human", || diagnostics::human(&found, &mut Texts::new(&sources), false, WIDTH));
    row("human, colour", || diagnostics::human(&found, &mut Texts::new(&sources), true, WIDTH));
    row("concise", || diagnostics::concise(&found, &mut Texts::new(&sources)));
    row("github", || diagnostics::github(&found, &mut Texts::new(&sources)));
    row("json", || format!("{:#}", serde_json::Value::Array(diagnostics::json(&found, &mut Texts::new(&sources)))));
    row("sarif", || {
        let mut sarif = Sarif::default();
        sarif.add(&found, &mut Texts::new(&sources));
        format!("{:#}", sarif.log())
    });
    let source = Arc::new(text);
    row("plain miette", || plain(&found, &source));
}
