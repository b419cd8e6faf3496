//! Looking into JSON bodies without allocating: one pass that checks the whole text and finds one value.

use plan::JsonType;

use crate::error::LoadError;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// `.name`
    Member(Box<[u8]>),
    /// `[index]`
    Element(usize),
}

/// Reads a path: `$`, then `.name` or `[index]`.
///
/// # Errors
/// When it is none.
pub fn path(text: &str) -> Result<Box<[Step]>, LoadError> {
    let wrong = |what: &str| {
        LoadError::job(
            format!("`{text}` is not a path into a JSON body: {what}"),
            "write `$`, then `.name` or `[index]`, such as `$.items[0].id`",
        )
    };
    let mut rest = text.strip_prefix('$').ok_or_else(|| wrong("it does not start with `$`"))?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 {
                return Err(wrong("a name is empty"));
            }
            steps.push(Step::Member(after.as_bytes()[..end].into()));
            rest = &after[end..];
        } else if let Some(after) = rest.strip_prefix('[') {
            let (index, after) = after.split_once(']').ok_or_else(|| wrong("a `]` is missing"))?;
            let index = index.parse().map_err(|_| wrong("an index is not a number"))?;
            steps.push(Step::Element(index));
            rest = after;
        } else {
            return Err(wrong("a name follows no `.`"));
        }
    }
    Ok(steps.into_boxed_slice())
}

/// The text is not one JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotJson;

/// Deepest nesting that is followed.
const DEPTH: u32 = 128;

/// The text of the value at a path. The whole text must be one JSON value (RFC 8259); where a name occurs twice in an object, the
/// first counts.
///
/// # Errors
/// When the text is not JSON or nested too deep.
pub fn find<'a>(text: &'a [u8], path: &[Step]) -> Result<Option<&'a [u8]>, NotJson> {
    if std::str::from_utf8(text).is_err() {
        return Err(NotJson);
    }
    let mut walker = Walker { text, at: 0, found: None };
    walker.space();
    walker.value(Some(path), DEPTH)?;
    walker.space();
    if walker.at == text.len() { Ok(walker.found) } else { Err(NotJson) }
}

struct Walker<'a> {
    text: &'a [u8],
    at: usize,
    found: Option<&'a [u8]>,
}

impl<'a> Walker<'a> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline]
    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, text: &[u8]) -> Result<(), NotJson> {
        if self.text[self.at..].starts_with(text) {
            self.at += text.len();
            Ok(())
        } else {
            Err(NotJson)
        }
    }

    /// Passes over a value; `path` is what is still to go within it, `None` where nothing is looked for.
    fn value(&mut self, path: Option<&[Step]>, depth: u32) -> Result<(), NotJson> {
        let start = self.at;
        match self.peek().ok_or(NotJson)? {
            b'{' => self.object(path, depth.checked_sub(1).ok_or(NotJson)?)?,
            b'[' => self.array(path, depth.checked_sub(1).ok_or(NotJson)?)?,
            b'"' => self.string().map(drop)?,
            b't' => self.expect(b"true")?,
            b'f' => self.expect(b"false")?,
            b'n' => self.expect(b"null")?,
            _ => self.number()?,
        }
        if self.found.is_none() && path.is_some_and(<[Step]>::is_empty) {
            self.found = Some(&self.text[start..self.at]);
        }
        Ok(())
    }

    fn object(&mut self, path: Option<&[Step]>, depth: u32) -> Result<(), NotJson> {
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        let (wanted, rest) = match path.and_then(<[Step]>::split_first) {
            Some((Step::Member(name), rest)) => (Some(&**name), rest),
            _ => (None, &[][..]),
        };
        let mut seen = false;
        loop {
            let name = self.string()?;
            self.space();
            self.expect(b":")?;
            self.space();
            let inside = !seen && wanted.is_some_and(|wanted| string_equals(name, wanted));
            seen |= inside;
            self.value(inside.then_some(rest), depth)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(NotJson),
            }
            self.space();
        }
    }

    fn array(&mut self, path: Option<&[Step]>, depth: u32) -> Result<(), NotJson> {
        self.at += 1;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        let (wanted, rest) = match path.and_then(<[Step]>::split_first) {
            Some((Step::Element(index), rest)) => (Some(*index), rest),
            _ => (None, &[][..]),
        };
        let mut index = 0;
        loop {
            self.value((wanted == Some(index)).then_some(rest), depth)?;
            index += 1;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(NotJson),
            }
            self.space();
        }
    }

    /// Passes over a string and returns what is between its quotes, escapes and all.
    fn string(&mut self) -> Result<&'a [u8], NotJson> {
        self.expect(b"\"")?;
        let start = self.at;
        loop {
            match self.peek().ok_or(NotJson)? {
                b'"' => {
                    self.at += 1;
                    return Ok(&self.text[start..self.at - 1]);
                }
                b'\\' => match self.text.get(self.at + 1).ok_or(NotJson)? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
                    b'u' => {
                        let digits = self.text.get(self.at + 2..self.at + 6).ok_or(NotJson)?;
                        if !digits.iter().all(u8::is_ascii_hexdigit) {
                            return Err(NotJson);
                        }
                        self.at += 6;
                    }
                    _ => return Err(NotJson),
                },
                0..0x20 => return Err(NotJson),
                _ => self.at += 1,
            }
        }
    }

    fn digits(&mut self) -> Result<(), NotJson> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(NotJson) }
    }

    fn number(&mut self) -> Result<(), NotJson> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }
}

/// Whether the inside of a JSON string, escapes and all, stands for this text.
pub fn string_equals(raw: &[u8], text: &[u8]) -> bool {
    if memchr::memchr(b'\\', raw).is_none() {
        return raw == text;
    }
    let mut rest = text;
    let mut at = 0;
    let mut buffer = [0u8; 4];
    while at < raw.len() {
        let piece: &[u8] = if raw[at] == b'\\' {
            let (decoded, used) = unescape(&raw[at..]);
            at += used;
            decoded.encode_utf8(&mut buffer).as_bytes()
        } else {
            at += 1;
            &raw[at - 1..at]
        };
        match rest.strip_prefix(piece) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

/// Decodes the escape at the start of a string's inside, which has been checked; a lone surrogate becomes U+FFFD.
fn unescape(raw: &[u8]) -> (char, usize) {
    let unit = |at: usize| -> Option<u32> {
        let digits = raw.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    match raw.get(1) {
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{C}', 2),
        Some(b'n') => ('\n', 2),
        Some(b'r') => ('\r', 2),
        Some(b't') => ('\t', 2),
        Some(b'u') => match (unit(0), unit(6)) {
            (Some(high @ 0xD800..0xDC00), Some(low @ 0xDC00..0xE000)) => {
                let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
            }
            (Some(code), _) => (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
            (None, _) => (char::REPLACEMENT_CHARACTER, raw.len()),
        },
        Some(other) => (char::from(*other), 2),
        None => (char::REPLACEMENT_CHARACTER, 1),
    }
}

/// Whether the text of a JSON value equals a text: as JSON where that text is JSON, else as a string.
pub fn equals(value: &[u8], text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let inside =
        |raw: &'_ [u8]| -> Option<Range> { raw.first().filter(|first| **first == b'"').map(|_| 1..raw.len() - 1) };
    match (kind_of(text), inside(value)) {
        (Some(JsonType::Number | JsonType::Integer), None) => numbers_equal(value, text),
        (Some(JsonType::Boolean | JsonType::Null), None) => value == text,
        (Some(JsonType::String), Some(range)) => {
            let theirs = &text[1..text.len() - 1];
            if memchr::memchr(b'\\', theirs).is_none() {
                string_equals(&value[range], theirs)
            } else {
                // Escapes on both sides: decoding the study's text allocates, and a study can write it plainly.
                serde_json::from_slice::<String>(text)
                    .is_ok_and(|theirs| string_equals(&value[range], theirs.as_bytes()))
            }
        }
        (Some(JsonType::Object | JsonType::Array), None) => {
            value == text
                || matches!(
                    (serde_json::from_slice::<serde_json::Value>(value), serde_json::from_slice::<serde_json::Value>(text)),
                    (Ok(ours), Ok(theirs)) if ours == theirs
                )
        }
        (None, Some(range)) => string_equals(&value[range], text),
        _ => false,
    }
}

type Range = std::ops::Range<usize>;

/// The type of a text that is one JSON value, `None` where it is not JSON.
fn kind_of(text: &[u8]) -> Option<JsonType> {
    find(text, &[]).ok().flatten().map(type_of)
}

/// The type of a JSON value's text.
pub fn type_of(value: &[u8]) -> JsonType {
    match value.first() {
        Some(b'{') => JsonType::Object,
        Some(b'[') => JsonType::Array,
        Some(b'"') => JsonType::String,
        Some(b't' | b'f') => JsonType::Boolean,
        Some(b'n') => JsonType::Null,
        _ if value.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) => JsonType::Number,
        _ => JsonType::Integer,
    }
}

/// Whether a JSON value's text is of a type; an integer is a number too.
pub fn is_of_type(value: &[u8], wanted: JsonType) -> bool {
    let found = type_of(value);
    found == wanted || (found == JsonType::Integer && wanted == JsonType::Number)
}

/// Whether two numbers are equal: by digits, as integers where both are, else as doubles.
fn numbers_equal(a: &[u8], b: &[u8]) -> bool {
    if a == b {
        return true;
    }
    let (Ok(a), Ok(b)) = (std::str::from_utf8(a), std::str::from_utf8(b)) else { return false };
    match (a.parse::<i128>(), b.parse::<i128>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(text: &'a str, place: &str) -> Result<Option<&'a str>, NotJson> {
        let steps = path(place).expect("a path");
        find(text.as_bytes(), &steps).map(|found| found.map(|found| std::str::from_utf8(found).expect("text")))
    }

    #[test]
    fn finds_values_at_paths() {
        let text = r#" {"id": 7, "a": {"b": [ [], {"c\u0064": "x\"y"}, -1.5e3 ]}, "id": 8, "ü": null} "#;
        for (place, found) in [
            ("$.id", Some("7")),
            ("$.a.b[0]", Some("[]")),
            ("$.a.b[1].cd", Some(r#""x\"y""#)),
            ("$.a.b[2]", Some("-1.5e3")),
            ("$.a.b[3]", None),
            ("$.a.c", None),
            ("$[0]", None),
            ("$.id.x", None),
            ("$.ü", Some("null")),
        ] {
            assert_eq!(at(text, place), Ok(found), "{place}");
        }
        assert_eq!(at("7", "$"), Ok(Some("7")));
    }

    #[test]
    fn what_is_not_json_is_told_from_a_missing_value_even_behind_the_value() {
        for text in [
            "",
            " ",
            "{",
            r#"{"id":1"#,
            r#"{"id":1,}"#,
            r#"{"id":1} x"#,
            "[1,]",
            "01",
            "1.",
            "-",
            "1e",
            "tru",
            "nul",
            "\"a",
            "\"\\x\"",
            "\"\\u12\"",
            "\"a\nb\"",
            "{1:2}",
            r#"{"id" 1}"#,
            "[1 2]",
            "'a'",
            "NaN",
            r#"{"id":1}{"id":1}"#,
        ] {
            assert_eq!(at(text, "$.id"), Err(NotJson), "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_err(), "serde_json agrees on {text}");
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(at(&deep, "$"), Err(NotJson), "too deep is an error, not a crash");
        assert_eq!(find(b"\"\xFF\"", &[]), Err(NotJson));
    }

    #[test]
    fn compares_as_json_or_as_a_string() {
        for (value, text, equal) in [
            ("1", "1", true),
            ("1", "2", false),
            ("1.0", "1", true),
            ("1e1", "10", true),
            ("9007199254740993", "9007199254740992", false),
            ("\"1\"", "1", false),
            ("1", "\"1\"", false),
            ("\"abc\"", "abc", true),
            ("\"abc\"", "\"abc\"", true),
            ("\"a\\u0062c\"", "abc", true),
            (r#""\ud834\udd1e""#, "𝄞", true),
            (r#""\ud834""#, "𝄞", false),
            (r#""a\"b\n""#, r#""a\"b\n""#, true),
            ("\"abc\"", "abcd", false),
            ("\"abcd\"", "abc", false),
            ("true", "true", true),
            ("true", "false", false),
            ("null", "null", true),
            ("\"true\"", "true", false),
            (r#"{"a":1,"b":[2]}"#, r#"{"b": [2], "a": 1}"#, true),
            (r#"{"a":1}"#, r#"{"a":2}"#, false),
            ("[1,2]", "[2,1]", false),
            ("\"\"", "", true),
        ] {
            assert_eq!(equals(value.as_bytes(), text.as_bytes()), equal, "{value} against {text}");
        }
        for (value, wanted, is) in [
            ("1", JsonType::Integer, true),
            ("1", JsonType::Number, true),
            ("1.5", JsonType::Integer, false),
            ("\"1\"", JsonType::Integer, false),
            ("{}", JsonType::Object, true),
            ("[]", JsonType::Object, false),
            ("null", JsonType::Null, true),
            ("false", JsonType::Boolean, true),
        ] {
            assert_eq!(is_of_type(value.as_bytes(), wanted), is, "{value} {wanted:?}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["", "id", "$id", "$.", "$..a", "$[", "$[a]", "$[0", "$.a[-1]"] {
            assert!(path(text).is_err(), "{text}");
        }
    }
}
