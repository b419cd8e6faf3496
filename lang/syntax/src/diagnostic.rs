//! The one type for everything that is wrong with a study, whoever found it: codes, labels in any file, fixes, the chain
//! of `use` and `like` that it came through.

use crate::{Location, SourceId, Span};
use std::fmt;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The study can't be run.
    Error,
    /// It can be run, and something in it is probably not what was meant.
    Warning,
    /// Worth knowing.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

/// A code such as `E0101`. Codes are never used again for something else. `E01xx` is reading, this crate's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub &'static str);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A place and what is to be said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub at: Location,
    /// What; may be empty.
    pub text: String,
}

/// The bytes at `at` become `text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced; an empty span is an insertion.
    pub at: Location,
    /// The new text.
    pub text: String,
}

/// Whether a fix may be applied without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Applicability {
    /// It says what the author plainly meant.
    Safe,
    /// It is a guess.
    Unsafe,
}

/// A change that removes a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// What it does, as an order: "quote it".
    pub title: String,
    /// The edits, none overlapping another.
    pub edits: Vec<Edit>,
    /// Whether it may be applied without asking.
    pub applicability: Applicability,
}

/// One problem, with all that any output needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its code.
    pub code: Code,
    /// Its name in kebab case, as `allow` takes it.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence that stands alone.
    pub message: String,
    /// Where it is.
    pub primary: Label,
    /// Other places that explain it.
    pub secondary: Vec<Label>,
    /// What to do.
    pub help: Option<String>,
    /// Changes that would remove it.
    pub fixes: Vec<Fix>,
    /// How the primary place came to be part of the study (`use`, `like`), the author's own line first.
    pub chain: Vec<Label>,
}

impl Diagnostic {
    /// A problem at `at`, with nothing beside it yet.
    pub fn new(code: Code, name: &'static str, severity: Severity, at: Location, message: impl Into<String>) -> Self {
        Self {
            code,
            name,
            severity,
            message: message.into(),
            primary: Label { at, text: String::new() },
            secondary: Vec::new(),
            help: None,
            fixes: Vec::new(),
            chain: Vec::new(),
        }
    }

    /// An error at `at`.
    pub fn error(code: Code, name: &'static str, at: Location, message: impl Into<String>) -> Self {
        Self::new(code, name, Severity::Error, at, message)
    }

    /// A warning at `at`.
    pub fn warning(code: Code, name: &'static str, at: Location, message: impl Into<String>) -> Self {
        Self::new(code, name, Severity::Warning, at, message)
    }

    /// A note at `at`.
    pub fn note(code: Code, name: &'static str, at: Location, message: impl Into<String>) -> Self {
        Self::new(code, name, Severity::Note, at, message)
    }

    /// What the primary place says.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.primary.text = text.into();
        self
    }

    /// Another place that explains it.
    #[must_use]
    pub fn also(mut self, at: Location, text: impl Into<String>) -> Self {
        self.secondary.push(Label { at, text: text.into() });
        self
    }

    /// What to do.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// A change that removes it.
    #[must_use]
    pub fn fix(mut self, fix: Fix) -> Self {
        self.fixes.push(fix);
        self
    }

    /// A further step of the chain it came through; the author's own line is added first.
    #[must_use]
    pub fn through(mut self, at: Location, text: impl Into<String>) -> Self {
        self.chain.push(Label { at, text: text.into() });
        self
    }
}

impl Fix {
    /// A fix of one edit: the bytes at `at` become `text`.
    pub fn replace(
        title: impl Into<String>,
        at: Location,
        text: impl Into<String>,
        applicability: Applicability,
    ) -> Self {
        Self { title: title.into(), edits: vec![Edit { at, text: text.into() }], applicability }
    }
}

/// Apply the edits that concern `source` to its `text`. An edit that overlaps an earlier one is left out whole, so that
/// the fixes of several problems can be applied in one pass and the rest in the next.
#[must_use]
pub fn apply_edits<'a>(text: &str, source: &SourceId, edits: impl IntoIterator<Item = &'a Edit>) -> String {
    let mut edits: Vec<(Span, &str)> =
        edits.into_iter().filter(|e| e.at.source == *source).map(|e| (e.at.span, e.text.as_str())).collect();
    edits.sort_by_key(|(span, _)| *span);
    splice(text, &edits)
}

/// `edits` in ascending order.
pub(crate) fn splice(text: &str, edits: &[(Span, &str)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (span, replacement) in edits {
        let range = span.range();
        if range.start < done || text.get(range.clone()).is_none() {
            continue;
        }
        out.push_str(text.get(done..range.start).unwrap_or(""));
        out.push_str(replacement);
        done = range.end;
    }
    out.push_str(text.get(done..).unwrap_or(""));
    out
}
