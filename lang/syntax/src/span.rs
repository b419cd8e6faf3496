//! Places in a text: byte spans, and the text they are bytes of.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A half-open range of bytes of one text. Always bytes; `LineIndex` converts to lines and columns at the edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last one.
    pub end: u32,
}

impl Span {
    /// The bytes from `start` up to, not including, `end`.
    #[must_use]
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The place between two bytes.
    #[must_use]
    pub const fn at(offset: u32) -> Self {
        Self { start: offset, end: offset }
    }

    /// The number of bytes.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.end.saturating_sub(self.start)
    }

    /// Whether it holds no byte.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Whether a cursor at `offset` touches it: both ends count, because a cursor stands between bytes.
    #[must_use]
    pub const fn touches(self, offset: u32) -> bool {
        self.start <= offset && offset <= self.end
    }

    /// Whether `other` lies inside.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The smallest span that holds both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// For indexing into the text.
    #[must_use]
    pub const fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The bytes of `text` it covers, or `""` where it does not fit (another text's span).
    #[must_use]
    pub fn of(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or("")
    }
}

impl From<Range<usize>> for Span {
    /// Offsets beyond 4 GiB stop at the largest one; the reader refuses such texts before.
    fn from(range: Range<usize>) -> Self {
        Self {
            start: u32::try_from(range.start).unwrap_or(u32::MAX),
            end: u32::try_from(range.end).unwrap_or(u32::MAX),
        }
    }
}

/// The name of a text: a path relative to the study's root (`experiments/capacity.kdl`), or of the standard library
/// (`std/http`). It says nothing about where the text is kept; `Sources` knows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(Arc<str>);

impl SourceId {
    /// The source called `name`.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it belongs to the standard library.
    #[must_use]
    pub fn is_std(&self) -> bool {
        self.0.starts_with("std/")
    }
}

impl From<&str> for SourceId {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.0)
    }
}

/// A span of one source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// Which text.
    pub source: SourceId,
    /// Which bytes of it.
    pub span: Span,
}

impl Location {
    /// The bytes `span` of `source`.
    #[must_use]
    pub fn new(source: &SourceId, span: Span) -> Self {
        Self { source: source.clone(), span }
    }
}
