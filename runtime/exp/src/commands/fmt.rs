//! `exp fmt`: lays studies out.

use std::sync::Arc;

use syntax::Sources;

use crate::args::Fmt;
use crate::diagnostics::{self, Texts};
use crate::exit::Exit;
use crate::rewrite;
use crate::study::Study;
use crate::terminal::{self, Colours};

/// Formats each file in place, or says which would change and how.
pub fn run(fmt: &Fmt, colours: Colours) -> Exit {
    let mut exit = Exit::Ok;
    for file in &fmt.files {
        let (sources, id) = match Study::read(file, colours) {
            Ok(opened) => opened,
            Err(exit) => return exit,
        };
        let text = sources.text(&id).unwrap_or_else(|_| Arc::from(""));
        let formatted = match syntax::format(&text) {
            Ok(formatted) => formatted,
            Err(problems) => {
                let found: Vec<_> = problems.into_iter().map(|problem| problem.in_source(&id)).collect();
                terminal::err(&diagnostics::human(&found, &mut Texts::new(&sources), colours.err, terminal::width()));
                terminal::note(&format!("{id}: not formatted, because it can't be read whole"));
                exit = Exit::Invalid;
                continue;
            }
        };
        if *formatted == *text {
            continue;
        }
        if fmt.diff {
            terminal::out(&rewrite::diff(id.as_str(), &text, &formatted, colours.out));
        }
        if fmt.check {
            // Beside a diff, which is data, it is only a remark.
            let line = format!("{id} would change\n");
            if fmt.diff { terminal::err(&line) } else { terminal::out(&line) }
        }
        if fmt.diff || fmt.check {
            exit = Exit::Invalid;
        } else if let Err(why) = rewrite::replace(file, &text, &formatted) {
            terminal::error(&why, "", "check its permissions, and try again", colours);
            return Exit::Environment;
        }
    }
    exit
}
