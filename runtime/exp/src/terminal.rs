//! Standard output and error: the only place that prints.
//!
//! Data goes to standard output, everything about it to standard error. A reader that has gone away (`exp … | head`) ends
//! the output, not the run.

use std::io::{IsTerminal, Write};

use console::Term;

use crate::args;

/// Whether each stream takes colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colours {
    /// Standard output.
    pub out: bool,
    /// Standard error.
    pub err: bool,
}

impl Colours {
    /// As asked for; by default on a terminal, unless `NO_COLOR` is set.
    pub fn of(asked: args::Colour) -> Self {
        match asked {
            args::Colour::Always => Self { out: true, err: true },
            args::Colour::Never => Self { out: false, err: false },
            args::Colour::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                Self {
                    out: !refused && std::io::stdout().is_terminal(),
                    err: !refused && std::io::stderr().is_terminal(),
                }
            }
        }
    }
}

/// Prints to standard output.
pub fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Prints to standard error.
pub fn err(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// One line about something, on standard error.
pub fn note(line: &str) {
    err(&format!("{line}\n"));
}

/// What went wrong, why, and what to do next, on standard error.
pub fn error(what: &str, why: &str, next: &str, colours: Colours) {
    let (red, bold, off) = if colours.err { ("\u{1b}[31;1m", "\u{1b}[1m", "\u{1b}[0m") } else { ("", "", "") };
    let mut text = format!("{red}error{off}{bold}: {what}{off}\n");
    if !why.is_empty() {
        text.push_str(&format!("  why:  {why}\n"));
    }
    if !next.is_empty() {
        text.push_str(&format!("  next: {next}\n"));
    }
    err(&text);
}

/// A failure with its log.
pub fn failure(failure: &journal::Failure, colours: Colours) {
    error(&failure.what, &failure.why, &failure.next, colours);
    if !failure.log.is_empty() {
        err("  log:\n");
        for line in &failure.log {
            err(&format!("    {line}\n"));
        }
    }
}

/// Columns of the terminal behind standard error or output; 100 where there is none.
pub fn width() -> usize {
    let term = if std::io::stdout().is_terminal() { Term::stdout() } else { Term::stderr() };
    term.size_checked().map_or(100, |(_, columns)| usize::from(columns).clamp(40, 160))
}
