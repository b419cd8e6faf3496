//! Diagnostics for people and machines: with their lines (miette), one line each, JSON, SARIF, GitHub's annotations.

mod human;
mod json;
mod lines;
mod sarif;

use std::collections::BTreeMap;
use std::sync::Arc;

use syntax::{Diagnostic, LineIndex, Location, Position, Severity, SourceId, Sources};

pub use human::human;
pub use json::json;
pub use lines::{concise, github};
pub use sarif::Sarif;

/// Texts and line starts of the sources that diagnostics point into.
pub struct Texts<'a> {
    sources: &'a dyn Sources,
    indexed: BTreeMap<SourceId, Arc<Indexed>>,
}

/// A text with its lines found once: miette's own sources look for them from the start for every label.
struct Indexed {
    name: String,
    text: Arc<str>,
    lines: LineIndex,
}

impl Indexed {
    fn position(&self, offset: u32) -> Position {
        self.lines.position(&self.text, offset)
    }
}

impl<'a> Texts<'a> {
    /// Texts that are asked of `sources` when they are needed.
    pub fn new(sources: &'a dyn Sources) -> Self {
        Self { sources, indexed: BTreeMap::new() }
    }

    fn of(&mut self, id: &SourceId) -> Arc<Indexed> {
        if let Some(indexed) = self.indexed.get(id) {
            return Arc::clone(indexed);
        }
        let text = self.sources.text(id).unwrap_or_else(|_| Arc::from(""));
        let indexed = Arc::new(Indexed { name: id.to_string(), lines: LineIndex::new(&text), text });
        self.indexed.insert(id.clone(), Arc::clone(&indexed));
        indexed
    }

    /// Where a place starts and ends.
    fn range(&mut self, at: &Location) -> (Position, Position) {
        let indexed = self.of(&at.source);
        (indexed.position(at.span.start), indexed.position(at.span.end.max(at.span.start)))
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// Whether any of them is an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    count(diagnostics, Severity::Error) > 0
}

/// How many of them are that bad.
pub fn count(diagnostics: &[Diagnostic], severity: Severity) -> usize {
    diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count()
}
