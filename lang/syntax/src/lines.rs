//! Bytes ↔ lines and columns, converted once at the edge: people count from 1, editors from 0 and often in UTF-16.

use crate::Span;

/// A place as line and columns, all counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column in bytes of UTF-8.
    pub utf8: u32,
    /// The column in UTF-16 code units.
    pub utf16: u32,
}

/// Where the lines of one text start. Built once per text; a lookup is a binary search plus a walk over that one line.
///
/// A line ends at LF, CR or CRLF, as the Language Server Protocol (3.17, `TextDocument`) has it. KDL also ends a node at
/// NEL, VT, FF, LS and PS, but no editor shows those as line ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    /// Index `text`. Later lookups need the same text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = Vec::with_capacity(1 + bytes.len() / 24);
        starts.push(0);
        for (i, &byte) in bytes.iter().enumerate() {
            let ends = byte == b'\n' || (byte == b'\r' && bytes.get(i + 1) != Some(&b'\n'));
            if ends {
                starts.push(u32::try_from(i + 1).unwrap_or(u32::MAX));
            }
        }
        Self { starts }
    }

    /// The number of lines; a text that ends in a line end has an empty last line.
    #[must_use]
    pub fn lines(&self) -> u32 {
        u32::try_from(self.starts.len()).unwrap_or(u32::MAX)
    }

    /// The first byte of line `line` (from 0), or `None` past the last line.
    #[must_use]
    pub fn start(&self, line: u32) -> Option<u32> {
        self.starts.get(line as usize).copied()
    }

    /// The bytes of line `line` (from 0) without its line end, or `None` past the last line.
    #[must_use]
    pub fn line(&self, text: &str, line: u32) -> Option<Span> {
        let start = *self.starts.get(line as usize)?;
        let end = match self.starts.get(line as usize + 1) {
            Some(&next) => next as usize,
            None => text.len(),
        };
        let whole = text.get(start as usize..end)?;
        let kept = whole.trim_end_matches(['\n', '\r']).len();
        Some(Span::from(start as usize..start as usize + kept))
    }

    /// The line and columns of byte `offset`. An offset past the end is the end; one inside a character is its start.
    #[must_use]
    pub fn position(&self, text: &str, offset: u32) -> Position {
        let mut offset = (offset as usize).min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|&start| start as usize <= offset).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or(0) as usize;
        let before = text.get(start..offset).unwrap_or("");
        Position {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            utf8: u32::try_from(before.len()).unwrap_or(u32::MAX),
            utf16: before.chars().map(|c| c.len_utf16() as u32).sum(),
        }
    }

    /// The byte at `column` UTF-8 bytes into `line`; past the line's end it is that end, inside a character its start.
    #[must_use]
    pub fn offset_utf8(&self, text: &str, line: u32, column: u32) -> u32 {
        self.offset(text, line, column, char::len_utf8)
    }

    /// The byte at `column` UTF-16 code units into `line`; past the line's end it is that end, inside a character its start.
    #[must_use]
    pub fn offset_utf16(&self, text: &str, line: u32, column: u32) -> u32 {
        self.offset(text, line, column, char::len_utf16)
    }

    fn offset(&self, text: &str, line: u32, column: u32, width: impl Fn(char) -> usize) -> u32 {
        let Some(span) = self.line(text, line) else {
            return u32::try_from(text.len()).unwrap_or(u32::MAX);
        };
        let mut left = column as usize;
        let mut offset = span.start;
        for c in span.of(text).chars() {
            if left < width(c) {
                break;
            }
            left -= width(c);
            offset += c.len_utf8() as u32;
        }
        offset
    }
}

/// Line and column of one offset, for a caller that asks once; many lookups want a kept `LineIndex`.
#[must_use]
pub fn line_column(text: &str, offset: u32) -> Position {
    LineIndex::new(text).position(text, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_in_bytes_and_in_utf16() {
        let text = "aé𝄞b\r\n\rx\n";
        let index = LineIndex::new(text);
        assert_eq!(index.lines(), 4);
        let at = |offset| {
            let p = index.position(text, offset);
            (p.line, p.utf8, p.utf16)
        };
        assert_eq!(at(0), (0, 0, 0));
        assert_eq!(at(1), (0, 1, 1));
        assert_eq!(at(2), (0, 1, 1), "inside é is é's start");
        assert_eq!(at(3), (0, 3, 2));
        assert_eq!(at(7), (0, 7, 4), "𝄞 is four bytes and two UTF-16 units");
        assert_eq!(at(10), (1, 0, 0));
        assert_eq!(at(11), (2, 0, 0), "a lone CR ends a line");
        assert_eq!(at(999), (3, 0, 0));
    }

    #[test]
    fn every_offset_survives_the_way_out_and_back() {
        let text = "é𝄞\nlast é line\r\n𝄞𝄞\n";
        let index = LineIndex::new(text);
        for (offset, c) in text.char_indices() {
            if c == '\n' && text[..offset].ends_with('\r') {
                continue;
            }
            let offset = u32::try_from(offset).expect("a short text");
            let p = index.position(text, offset);
            assert_eq!(index.offset_utf8(text, p.line, p.utf8), offset);
            assert_eq!(index.offset_utf16(text, p.line, p.utf16), offset);
        }
        assert_eq!(index.offset_utf16(text, 0, 999), 6, "past the end of the line is its end");
        assert_eq!(index.offset_utf16(text, 0, 2), 2, "inside 𝄞 is 𝄞's start");
        assert_eq!(index.offset_utf16(text, 99, 0), text.len() as u32);
    }
}
