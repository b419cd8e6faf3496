//! The content of strings in all their spellings: quotes, escapes, raw strings, the lines of `"""`. One walk over the
//! pieces of a string serves decoding, checking and finding the place in the text of a byte of the content.

use crate::chars::{newline_len, skip_space};
use std::borrow::Cow;

/// What is wrong inside a string, with offsets from the start of its spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadString {
    /// `\` and something that is no escape.
    Escape { at: usize, len: usize },
    /// `\u{…}` that names no character.
    Unicode { at: usize, len: usize },
    /// Text on the line of the opening `"""`.
    FirstLine { at: usize },
    /// Text before the closing `"""` on its line.
    LastLine { at: usize },
    /// A line that does not begin with the white space before the closing `"""`.
    Indent { at: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The body is the content.
    Plain,
    /// One line with escapes.
    Escaped,
    /// Several lines with escapes.
    Lines,
    /// Several lines, raw.
    RawLines,
}

/// How `spelling` is to be read, and where its body starts and ends in it. A missing closing quote counts as there.
fn form(spelling: &str) -> (Form, usize, usize) {
    let bytes = spelling.as_bytes();
    let len = bytes.len();
    let closed = |open: usize, quote: &str, form: Form| {
        let body = spelling.get(open..).unwrap_or("");
        let end = if body.ends_with(quote) { len - quote.len() } else { len };
        (form, open, end)
    };
    match bytes {
        [b'"', b'"', b'"', ..] => closed(3, "\"\"\"", Form::Lines),
        [b'"', ..] => closed(1, "\"", Form::Escaped),
        [b'\'', .., b'\''] => (Form::Plain, 1, len - 1),
        [b'#' | b'r', rest @ ..] => {
            let old = bytes[0] == b'r';
            let hashes = rest.iter().take_while(|&&b| b == b'#').count() + usize::from(!old);
            let open = hashes + usize::from(old);
            let quoted = bytes.get(open) == Some(&b'"');
            if !quoted {
                return (Form::Plain, 0, len);
            }
            let ends = |quotes: usize| {
                let tail = spelling.get(open + quotes..).unwrap_or("").trim_end_matches('#');
                spelling.ends_with(&spelling[open - hashes..open]) && tail.ends_with(&"\"\"\""[..quotes])
            };
            let (form, quotes) = match !old && spelling[open..].starts_with("\"\"\"") {
                true => (Form::RawLines, 3),
                false => (Form::Plain, 1),
            };
            let end = if ends(quotes) { len - hashes - quotes } else { len };
            (form, open + quotes, end)
        }
        _ => (Form::Plain, 0, len),
    }
}

/// The content of the string spelled `spelling`; of a broken one what can be had.
pub(crate) fn decode(spelling: &str) -> Cow<'_, str> {
    // Bare words first: they are the most.
    if !matches!(spelling.as_bytes().first(), Some(b'"' | b'#' | b'\'' | b'r')) {
        return Cow::Borrowed(spelling);
    }
    let (form, start, end) = form(spelling);
    let body = spelling.get(start..end).unwrap_or("");
    if form == Form::Plain || (form == Form::Escaped && !body.contains('\\')) {
        return Cow::Borrowed(body);
    }
    let mut out = String::with_capacity(body.len());
    match pieces(spelling, &mut |text, _, _| out.push_str(text)) {
        Ok(()) => Cow::Owned(out),
        Err(_) => Cow::Borrowed(body),
    }
}

/// What is wrong inside the string spelled `spelling`, first thing first.
pub(crate) fn check(spelling: &str) -> Result<(), BadString> {
    pieces(spelling, &mut |_, _, _| {})
}

/// Where byte `index` of the content is spelled, from the start of `spelling`.
pub(crate) fn offset_of(spelling: &str, index: usize) -> usize {
    let (form, start, end) = form(spelling);
    let body = spelling.get(start..end).unwrap_or("");
    if form == Form::Plain || (form == Form::Escaped && !body.contains('\\')) {
        return start + index.min(body.len());
    }
    let (mut done, mut found, mut last) = (0, None, start);
    let walked = pieces(spelling, &mut |text, at, len| {
        if found.is_none() && index < done + text.len() {
            found = Some(at + if text.len() == len { index - done } else { 0 });
        }
        done += text.len();
        last = at + len;
    });
    match walked {
        Ok(()) => found.unwrap_or(last),
        Err(_) => start,
    }
}

/// Called with each piece of the content, where it is spelled and on how many bytes. What is spelled as itself comes with
/// its own length, an escape with a longer one.
type Emit<'a> = dyn FnMut(&str, usize, usize) + 'a;

fn pieces(spelling: &str, emit: &mut Emit<'_>) -> Result<(), BadString> {
    let (form, start, end) = form(spelling);
    let body = spelling.get(start..end).unwrap_or("");
    match form {
        Form::Plain => emit(body, start, body.len()),
        Form::Escaped => escaped(body, &Map::plain(start), 0, emit)?,
        Form::Lines => lines(body, start, false, emit)?,
        Form::RawLines => lines(body, start, true, emit)?,
    }
    Ok(())
}

/// Where a text that had pieces taken out was spelled: its start, and after each piece taken out the pair (offset in the
/// text, offset in the spelling), ascending. Most texts have no such piece, and then nothing is allocated.
struct Map {
    start: usize,
    jumps: Vec<(usize, usize)>,
}

impl Map {
    fn plain(start: usize) -> Self {
        Self { start, jumps: Vec::new() }
    }

    fn at(&self, offset: usize) -> usize {
        match self.jumps.partition_point(|&(from, _)| from <= offset).checked_sub(1).and_then(|i| self.jumps.get(i)) {
            Some(&(from, to)) => to + (offset - from),
            None => self.start + offset,
        }
    }

    /// `text`, which starts at `offset`, piece by piece.
    fn emit(&self, text: &str, offset: usize, emit: &mut Emit<'_>) {
        let mut done = 0;
        while done < text.len() {
            let from = offset + done;
            let next = self.jumps.partition_point(|&(start, _)| start <= from);
            let upto = self.jumps.get(next).map_or(text.len(), |&(start, _)| (start - offset).min(text.len()));
            let piece = text.get(done..upto).unwrap_or("");
            emit(piece, self.at(from), piece.len());
            done = upto.max(done + 1);
        }
    }
}

/// `text`, which starts at `offset` of what `map` maps, with its escapes replaced.
fn escaped(text: &str, map: &Map, offset: usize, emit: &mut Emit<'_>) -> Result<(), BadString> {
    let bytes = text.as_bytes();
    let mut done = 0;
    while let Some(found) = text.get(done..).and_then(|rest| rest.find('\\')) {
        let at = done + found;
        map.emit(text.get(done..at).unwrap_or(""), offset + done, emit);
        let start = map.at(offset + at);
        let simple = match bytes.get(at + 1) {
            Some(b'n') => Some("\n"),
            Some(b'r') => Some("\r"),
            Some(b't') => Some("\t"),
            Some(b'\\') => Some("\\"),
            Some(b'"') => Some("\""),
            Some(b'b') => Some("\u{8}"),
            Some(b'f') => Some("\u{C}"),
            Some(b's') => Some(" "),
            _ => None,
        };
        if let Some(simple) = simple {
            emit(simple, start, 2);
            done = at + 2;
            continue;
        }
        let white = skip_space(bytes, at + 1, true);
        if white > at + 1 {
            done = white;
            continue;
        }
        if bytes.get(at + 1) == Some(&b'u') {
            let rest = text.get(at + 2..).unwrap_or("");
            let inside = rest.strip_prefix('{').and_then(|r| r.split_once('}')).map(|(hex, _)| hex);
            let valid = inside.filter(|hex| (1..=6).contains(&hex.len()) && hex.bytes().all(|b| b.is_ascii_hexdigit()));
            let Some(hex) = valid else {
                let len = 2 + inside.filter(|hex| hex.len() < 16).map_or(0, |hex| hex.len() + 2);
                return Err(BadString::Unicode { at: start, len });
            };
            let len = hex.len() + 4;
            let Some(c) = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32) else {
                return Err(BadString::Unicode { at: start, len });
            };
            emit(c.encode_utf8(&mut [0; 4]), start, len);
            done = at + len;
            continue;
        }
        let next = text.get(at + 1..).and_then(|rest| rest.chars().next());
        return Err(BadString::Escape { at: start, len: 1 + next.map_or(0, char::len_utf8) });
    }
    map.emit(text.get(done..).unwrap_or(""), offset + done, emit);
    Ok(())
}

/// The lines between `"""` and `"""`. White space escapes go first, then the last line's white space is taken from all
/// lines, then the other escapes are replaced (spec 2.0, "Interaction with Whitespace Escapes").
fn lines(body: &str, start: usize, raw: bool, emit: &mut Emit<'_>) -> Result<(), BadString> {
    let first = newline_len(body.as_bytes(), 0);
    if first == 0 {
        return Err(BadString::FirstLine { at: start });
    }
    let content = body.get(first..).unwrap_or("");
    let (logical, map) = match raw {
        true => (Cow::Borrowed(content), Map::plain(start + first)),
        false => without_white_escapes(content, start + first),
    };
    let bytes = logical.as_bytes();
    let all_white = |from: usize, to: usize| skip_space(bytes, from, false) >= to;

    let mut last = 0;
    for at in 0..bytes.len() {
        let len = newline_len(bytes, at);
        if len > 0 {
            last = at + len;
        }
    }
    if !all_white(last, bytes.len()) {
        return Err(BadString::LastLine { at: map.at(skip_space(bytes, last, false)) });
    }
    let indent = logical.get(last..).unwrap_or("");

    let mut from = 0;
    while from < last {
        let mut to = from;
        while newline_len(bytes, to) == 0 {
            to += 1;
        }
        if !all_white(from, to) {
            let line = logical.get(from..to).unwrap_or("");
            let Some(kept) = line.strip_prefix(indent) else {
                return Err(BadString::Indent { at: map.at(from) });
            };
            match raw {
                true => map.emit(kept, from + indent.len(), emit),
                false => escaped(kept, &map, from + indent.len(), emit)?,
            }
        }
        let ends = newline_len(bytes, to);
        if to + ends < last {
            emit("\n", map.at(to), ends);
        }
        from = to + ends;
    }
    Ok(())
}

fn without_white_escapes(content: &str, start: usize) -> (Cow<'_, str>, Map) {
    let bytes = content.as_bytes();
    let mut map = Map::plain(start);
    let mut out = String::new();
    let (mut done, mut at) = (0, 0);
    while let Some(found) = content.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        let white = skip_space(bytes, at + 1, true);
        if white == at + 1 {
            // Another escape: what follows `\` belongs to it, be it `\` itself.
            at = (at + 2).min(bytes.len());
            while !content.is_char_boundary(at) {
                at += 1;
            }
            continue;
        }
        out.push_str(content.get(done..at).unwrap_or(""));
        map.jumps.push((out.len(), start + white));
        (done, at) = (white, white);
    }
    if done == 0 {
        return (Cow::Borrowed(content), map);
    }
    out.push_str(content.get(done..).unwrap_or(""));
    (Cow::Owned(out), map)
}

/// `text` as a quoted string on one line.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{C}' => out.push_str("\\f"),
            c => {
                let mut buffer = [0; 5];
                // A byte before it, so that a byte order mark does not count as the first of a text.
                buffer[0] = b'x';
                let len = c.encode_utf8(&mut buffer[1..]).len();
                let bytes = &buffer[..=len];
                let plain = crate::chars::banned_len(bytes, 1) == 0 && newline_len(bytes, 1) == 0;
                match plain {
                    true => out.push(c),
                    false => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
                }
            }
        }
    }
    out.push('"');
    out
}

/// Whether `text` can be written as a bare word and is read as that string again.
#[must_use]
pub fn is_bare(text: &str) -> bool {
    let mut tokens = crate::tokens(text);
    tokens.len() == 1 && tokens.pop().is_some_and(|token| token.kind == crate::TokenKind::Bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_of_all_spellings() {
        let cases = [
            ("word", "word"),
            ("r", "r"),
            ("rate", "rate"),
            ("\"\"", ""),
            ("\"a b\"", "a b"),
            (r#""\n\r\t\\\"\b\f\s\u{1D11E}\u{0a}""#, "\n\r\t\\\"\u{8}\u{C} 𝄞\n"),
            ("\"a \\  \n  b\"", "a b"),
            ("#\"a\\n\"#", "a\\n"),
            ("##\"a\"#b\"##", "a\"#b"),
            ("#\"\"#", ""),
            ("\"\"\"\n  a\n   b\n\n  \"\"\"", "a\n b\n"),
            ("\"\"\"\r\n\ta\r\n\tb\r\n\t\"\"\"", "a\nb"),
            ("\"\"\"\n    \"\"\"", ""),
            ("\"\"\"\n\n\"\"\"", ""),
            ("\"\"\"\n  foo \\\nbar\n  baz\n  \\   \"\"\"", "foo bar\nbaz"),
            ("\"\"\"\n  foo \\\nbar\n  baz\n\\   \"\"\"", "  foo bar\n  baz"),
            ("\"\"\"\n    a\n   \\\n\"\"\"", " a"),
            ("\"\"\"\n\\\"\"\"\n\"\"\"", "\"\"\""),
            ("#\"\"\"\n  a \"\"\" \\n\n  \"\"\"#", "a \"\"\" \\n"),
            ("'single'", "single"),
            ("r#\"old \" one\"#", "old \" one"),
            ("r\"old\"", "old"),
            ("\"not closed", "not closed"),
            ("##\"not closed\"#", "not closed\"#"),
        ];
        for (spelling, want) in cases {
            assert_eq!(decode(spelling), want, "{spelling}");
        }
    }

    #[test]
    fn what_is_wrong_and_where() {
        let cases = [
            (r#""a\qb""#, BadString::Escape { at: 2, len: 2 }),
            (r#""a\é""#, BadString::Escape { at: 2, len: 3 }),
            (r#""\/""#, BadString::Escape { at: 1, len: 2 }),
            (r#""\u{}""#, BadString::Unicode { at: 1, len: 4 }),
            (r#""\u12""#, BadString::Unicode { at: 1, len: 2 }),
            (r#""\u{D800}""#, BadString::Unicode { at: 1, len: 8 }),
            (r#""\u{110000}""#, BadString::Unicode { at: 1, len: 10 }),
            (r#""\u{0000001}""#, BadString::Unicode { at: 1, len: 11 }),
            ("\"\"\"one\"\"\"", BadString::FirstLine { at: 3 }),
            ("\"\"\"\n  a\"\"\"", BadString::LastLine { at: 6 }),
            ("\"\"\"\na\n  \"\"\"", BadString::Indent { at: 4 }),
            ("\"\"\"\n  a\n  b\\\n  \"\"\"", BadString::LastLine { at: 10 }),
            ("\"\"\"\n  a\n \tb\n  \"\"\"", BadString::Indent { at: 8 }),
        ];
        for (spelling, want) in cases {
            assert_eq!(check(spelling), Err(want), "{spelling}");
        }
    }

    #[test]
    fn a_byte_of_the_content_has_its_place_in_the_text() {
        let cases = [
            ("word", "r", 2),
            ("\"corrected.p99 < 10ms\"", "<", 15),
            ("\"/events/${id}\"", "${", 9),
            (r#""a\tb\u{e9}c""#, "b", 4),
            (r#""a\tb\u{e9}c""#, "é", 5),
            (r#""a\tb\u{e9}c""#, "c", 11),
            ("##\"a $b\"##", "$", 5),
            ("\"\"\"\n    one\n\n      two\n    \"\"\"", "two", 19),
            ("\"\"\"\r\n  a \\\n   b\\n𝄞\r\n  \"\"\"", "b", 14),
            ("\"\"\"\r\n  a \\\n   b\\n𝄞\r\n  \"\"\"", "𝄞", 17),
        ];
        for (spelling, part, want) in cases {
            let content = decode(spelling);
            let index = content.find(part).expect("the part is in the content");
            assert_eq!(offset_of(spelling, index), want, "{part} in {spelling}");
            let end = offset_of(spelling, content.len());
            assert!(end <= spelling.len() && end >= want, "the end of {spelling}");
        }
    }

    #[test]
    fn quoted_text_is_read_again() {
        for text in ["", "a \"b\" \\ \n\r\t\u{8}\u{C}", "é 𝄞 \u{0}\u{7F}\u{FEFF}\u{2028}\u{85}\u{B}\u{202E}"] {
            let quoted = quote(text);
            assert_eq!(check(&quoted), Ok(()));
            assert_eq!(decode(&quoted), text, "{quoted}");
        }
    }
}
