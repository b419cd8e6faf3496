//! `exp explain`: the page of a diagnostic or a lint.

use crate::args::Explain;
use crate::exit::Exit;
use crate::terminal;

/// Prints the page, or the nearest code; or all codes.
pub fn run(explain: &Explain) -> Exit {
    let Some(code) = &explain.code else {
        let lines: String = analysis::codes::explainable().map(|(code, name)| format!("{code}  {name}\n")).collect();
        terminal::out(&lines);
        return Exit::Ok;
    };
    match analysis::explain(code) {
        Some(page) => {
            terminal::out(&page);
            Exit::Ok
        }
        None => {
            let names: Vec<&str> = analysis::codes::explainable().flat_map(|(code, name)| [code, name]).collect();
            let near = analysis::names::nearest(code, names)
                .map(|name| format!("; did you mean `{name}`?"))
                .unwrap_or_default();
            terminal::note(&format!(
                "no diagnostic or lint is called `{code}`{near}\n`exp explain --list` prints them all"
            ));
            Exit::Usage
        }
    }
}
