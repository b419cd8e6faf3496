//! Collecting diagnostics: every problem of a study is told at once, in the order of its sources.

use std::collections::BTreeSet;

use syntax::{Diagnostic, Location, Severity};

use crate::codes::CodeInfo;

/// The problems found so far.
#[derive(Debug, Default)]
pub struct Problems {
    found: Vec<Diagnostic>,
}

impl Problems {
    /// Adds a problem.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// Whether an error is among them.
    pub fn has_errors(&self) -> bool {
        self.found.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Makes errors of those warnings that `which` accepts.
    pub fn deny_warnings(&mut self, which: impl Fn(&Diagnostic) -> bool) {
        let warnings = self.found.iter_mut().filter(|diagnostic| diagnostic.severity == Severity::Warning);
        for diagnostic in warnings.filter(|diagnostic| which(diagnostic)) {
            diagnostic.severity = Severity::Error;
        }
    }

    /// Each of them, as found.
    pub fn into_each(self) -> impl Iterator<Item = Diagnostic> {
        self.found.into_iter()
    }

    /// How many there are: a part of the analysis compares it before and after, to know whether it told anything.
    pub fn count(&self) -> usize {
        self.found.len()
    }

    /// All of them: sorted by source (in the order of `sources`), place, severity and code, each once.
    pub fn sorted(self, sources: &[syntax::SourceId]) -> Vec<Diagnostic> {
        let mut found = self.found;
        let place = |diagnostic: &Diagnostic| {
            sources.iter().position(|id| *id == diagnostic.primary.at.source).unwrap_or(sources.len())
        };
        found.sort_by_cached_key(|diagnostic| {
            (
                place(diagnostic),
                diagnostic.primary.at.span,
                diagnostic.severity,
                diagnostic.code,
                diagnostic.message.clone(),
            )
        });
        // The body of a definition that two phases amend is checked once for each: one report is enough.
        let mut seen = BTreeSet::new();
        found.retain(|diagnostic| {
            seen.insert((diagnostic.code, diagnostic.primary.at.clone(), diagnostic.message.clone()))
        });
        found
    }
}

/// A diagnostic of this code.
pub fn problem(info: &'static CodeInfo, at: &Location, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(info.code, info.name, info.severity, at.clone(), message)
}
