//! `exp fmt`: lays studies out.

use crate::args::Fmt;
use crate::diagnostics::{self, Texts};
use crate::exit::Exit;
use crate::sources::DiskSources;
use crate::terminal::{self, Colours};
use syntax::Sources;

/// Formats each file in place, or says which would change.
pub fn run(fmt: &Fmt, colours: Colours) -> Exit {
    let mut exit = Exit::Ok;
    for file in &fmt.files {
        let (sources, id) = match DiskSources::open(file) {
            Ok(opened) => opened,
            Err(why) => {
                terminal::error(&why, "", "name a study, a .kdl file", colours);
                return Exit::Usage;
            }
        };
        let text = sources.text(&id).unwrap_or_else(|_| std::sync::Arc::from(""));
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
        if fmt.check {
            terminal::out(&format!("{id} would change\n"));
            exit = Exit::Invalid;
        } else if let Err(error) = std::fs::write(file, formatted) {
            terminal::error(&format!("{id} can't be written: {error}"), "", "check its permissions", colours);
            return Exit::Environment;
        }
    }
    exit
}
