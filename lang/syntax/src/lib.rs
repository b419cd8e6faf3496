//! Text ↔ tree: reads KDL v2 as it is typed, with a tree from any text, and all problems of it at once; formats it without
//! losing a comment. Here too are the words that everything about texts shares: `Span`, `Location`, `Diagnostic`, `Sources`.
//!
//! Invariants: `parse` and `format` never fail and never panic, whatever the text; every byte of the text is covered by a
//! token; nothing here reads a disk, a clock or the environment.

mod chars;
mod diagnostic;
mod format;
mod lines;
mod parser;
mod problem;
mod recovery;
mod sources;
mod span;
mod strings;
mod token;
mod tree;
mod value;

pub use diagnostic::{Applicability, Code, Diagnostic, Edit, Fix, Label, Severity, apply_edits};
pub use format::format;
pub use lines::{LineIndex, Position, line_column};
pub use parser::{MAX_DEPTH, MAX_PROBLEMS, MAX_TEXT, Parsed, parse};
pub use problem::{Example, PROBLEMS, Problem, ProblemFix, ProblemKind};
pub use sources::{Directory, MemorySources, Missing, Sources, join};
pub use span::{Location, SourceId, Span};
pub use strings::{is_bare, quote};
pub use token::{Token, TokenKind, tokens};
pub use tree::{Entry, Node, NodeId, Siblings, Tree};
pub use value::{StringStyle, Value};
