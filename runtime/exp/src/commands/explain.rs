//! `exp explain`: the page of a diagnostic or a lint.

use crate::args::Explain;
use crate::exit::Exit;
use crate::terminal;

/// Prints the page, or the nearest code.
pub fn run(explain: &Explain) -> Exit {
    match analysis::explain(&explain.code) {
        Some(page) => {
            terminal::out(&page);
            Exit::Ok
        }
        None => {
            let names: Vec<&str> = analysis::codes::explainable().flat_map(|(code, name)| [code, name]).collect();
            let near = analysis::names::nearest(&explain.code, names)
                .map(|name| format!("; did you mean `{name}`?"))
                .unwrap_or_default();
            terminal::note(&format!("no diagnostic or lint is called `{}`{near}", explain.code));
            Exit::Usage
        }
    }
}
