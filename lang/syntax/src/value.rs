//! Values: what an argument or property holds, and how numbers are read.

use crate::TokenKind;
use crate::strings;
use std::borrow::Cow;

/// What an argument or property holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'t> {
    /// A string, decoded.
    String {
        /// Its content.
        text: Cow<'t, str>,
        /// How it is written.
        style: StringStyle,
    },
    /// A number without fraction and exponent.
    Integer(i128),
    /// A number with a fraction or an exponent, or `#inf`, `#-inf`, `#nan`.
    Float(f64),
    /// `#true` or `#false`.
    Bool(bool),
    /// `#null`.
    Null,
    /// A quantity written bare (`10s`, `115%`, `0-3`, `64/s`), as written. The reader has complained already; it means the
    /// same as the quoted string.
    Quantity(&'t str),
    /// Something broken that the reader has complained about. It fits everything.
    Unknown,
}

/// How a string is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StringStyle {
    /// `word`
    Bare,
    /// `"text"`
    Quoted,
    /// `#"text"#`
    Raw,
    /// `"""`, lines, `"""`
    MultiLine,
    /// `#"""`, lines, `"""#`
    RawMultiLine,
}

impl StringStyle {
    /// How a token of that kind writes its string. Forms that are not KDL but plainly mean a string count as what they mean.
    pub(crate) fn of(kind: TokenKind) -> Option<Self> {
        match kind {
            TokenKind::Bare | TokenKind::Path | TokenKind::Variable => Some(Self::Bare),
            TokenKind::Quoted | TokenKind::SingleQuoted => Some(Self::Quoted),
            TokenKind::Raw | TokenKind::OldRaw => Some(Self::Raw),
            TokenKind::MultiLine => Some(Self::MultiLine),
            TokenKind::RawMultiLine => Some(Self::RawMultiLine),
            _ => None,
        }
    }

    /// Whether it has no quotes.
    #[must_use]
    pub fn is_bare(self) -> bool {
        self == Self::Bare
    }
}

impl<'t> Value<'t> {
    pub(crate) fn read(text: &'t str, kind: TokenKind) -> Self {
        if let Some(style) = StringStyle::of(kind) {
            return Self::String { text: strings::decode(text), style };
        }
        match kind {
            TokenKind::Number => number(text).unwrap_or(Self::Unknown),
            TokenKind::Keyword | TokenKind::BareKeyword => match text.strip_prefix('#').unwrap_or(text) {
                "true" => Self::Bool(true),
                "false" => Self::Bool(false),
                "null" => Self::Null,
                "inf" => Self::Float(f64::INFINITY),
                "-inf" => Self::Float(f64::NEG_INFINITY),
                "nan" => Self::Float(f64::NAN),
                _ => Self::Unknown,
            },
            TokenKind::Quantity => Self::Quantity(text),
            _ => Self::Unknown,
        }
    }

    /// The content of a string, whatever its style; a bare quantity counts as its quoted form.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String { text, .. } => Some(text),
            Self::Quantity(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is a string without quotes.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        matches!(self, Self::String { style, .. } if style.is_bare())
    }

    /// Whether it is broken and fits everything.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// What it is, as a message says it: "a string".
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::String { .. } => "a string",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number with a fraction",
            Self::Bool(_) => "a boolean",
            Self::Null => "#null",
            Self::Quantity(_) => "a quantity",
            Self::Unknown => "an unknown value",
        }
    }
}

/// Why something that starts like a number is none that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadNumber {
    /// Not spelled like a number.
    Shape,
    /// An integer beyond 128 bits.
    TooLarge,
    /// A float that would become infinite.
    Infinite,
    /// A float other than 0 that would become 0.
    Vanishes,
}

/// Whether `text` is spelled like a KDL number: optional sign, then `0x`, `0o`, `0b` with digits, or decimal digits with an
/// optional fraction and exponent; `_` after the first digit of each group.
pub(crate) fn is_number(text: &str) -> bool {
    let bytes = text.as_bytes();
    let bytes = bytes.strip_prefix(b"-").or_else(|| bytes.strip_prefix(b"+")).unwrap_or(bytes);
    let all = |digits: &[u8], is: fn(u8) -> bool| match digits {
        [first, rest @ ..] => is(*first) && rest.iter().all(|&b| b == b'_' || is(b)),
        [] => false,
    };
    match bytes {
        [b'0', b'x', rest @ ..] => all(rest, |b| b.is_ascii_hexdigit()),
        [b'0', b'o', rest @ ..] => all(rest, |b| matches!(b, b'0'..=b'7')),
        [b'0', b'b', rest @ ..] => all(rest, |b| matches!(b, b'0' | b'1')),
        _ => {
            let decimal = |b: u8| b.is_ascii_digit();
            let (mantissa, exponent) = match bytes.iter().position(|b| matches!(b, b'e' | b'E')) {
                Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
                None => (bytes, None),
            };
            let (whole, fraction) = match mantissa.iter().position(|&b| b == b'.') {
                Some(at) => (&mantissa[..at], Some(&mantissa[at + 1..])),
                None => (mantissa, None),
            };
            let unsigned = |e: &[u8]| matches!(e, [b'+' | b'-', rest @ ..] if all(rest, decimal)) || all(e, decimal);
            all(whole, decimal) && fraction.is_none_or(|f| all(f, decimal)) && exponent.is_none_or(unsigned)
        }
    }
}

/// The value of a number, or why it has none.
pub(crate) fn check_number(text: &str) -> Result<Value<'static>, BadNumber> {
    if !is_number(text) {
        return Err(BadNumber::Shape);
    }
    let clean: Cow<'_, str> = match text.contains('_') {
        true => Cow::Owned(text.replace('_', "")),
        false => Cow::Borrowed(text),
    };
    let unsigned = clean.trim_start_matches(['+', '-']);
    let negative = clean.starts_with('-');
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = unsigned.strip_prefix(prefix) {
            // The sign goes with the digits, so that the smallest integer can be written.
            let signed: Cow<'_, str> = match negative {
                true => Cow::Owned(format!("-{digits}")),
                false => Cow::Borrowed(digits),
            };
            return i128::from_str_radix(&signed, radix).map(Value::Integer).map_err(|_| BadNumber::TooLarge);
        }
    }
    if !unsigned.contains(['.', 'e', 'E']) {
        return clean.parse().map(Value::Integer).map_err(|_| BadNumber::TooLarge);
    }
    let float: f64 = clean.parse().map_err(|_| BadNumber::Shape)?;
    let mantissa = unsigned.split(['e', 'E']).next().unwrap_or("");
    if float.is_infinite() {
        Err(BadNumber::Infinite)
    } else if float == 0.0 && mantissa.bytes().any(|b| matches!(b, b'1'..=b'9')) {
        Err(BadNumber::Vanishes)
    } else {
        Ok(Value::Float(float))
    }
}

fn number(text: &str) -> Option<Value<'static>> {
    check_number(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_value_or_a_reason() {
        let int = |i| Ok(Value::Integer(i));
        let float = |f| Ok(Value::Float(f));
        let cases = [
            ("0", int(0)),
            ("-0", int(0)),
            ("+17", int(17)),
            ("1_000_000", int(1_000_000)),
            ("0xFf_f", int(0xfff)),
            ("-0o17", int(-15)),
            ("0b10_", int(2)),
            ("170141183460469231731687303715884105727", int(i128::MAX)),
            ("-170141183460469231731687303715884105728", int(i128::MIN)),
            ("-0x80000000000000000000000000000000", int(i128::MIN)),
            ("170141183460469231731687303715884105728", Err(BadNumber::TooLarge)),
            ("0x80000000000000000000000000000000", Err(BadNumber::TooLarge)),
            ("17.10", float(17.1)),
            ("1_0.5_0e+1_0", float(10.5e10)),
            ("1e3", float(1000.0)),
            ("0e999", float(0.0)),
            ("1e308", float(1e308)),
            ("1e400", Err(BadNumber::Infinite)),
            ("-1e400", Err(BadNumber::Infinite)),
            ("1e-400", Err(BadNumber::Vanishes)),
            ("1.", Err(BadNumber::Shape)),
            (".5", Err(BadNumber::Shape)),
            ("1._5", Err(BadNumber::Shape)),
            ("1e", Err(BadNumber::Shape)),
            ("1e5.0", Err(BadNumber::Shape)),
            ("0x", Err(BadNumber::Shape)),
            ("0x_1", Err(BadNumber::Shape)),
            ("0xx1", Err(BadNumber::Shape)),
            ("0b12", Err(BadNumber::Shape)),
            ("1.2.3", Err(BadNumber::Shape)),
            ("10s", Err(BadNumber::Shape)),
            ("--1", Err(BadNumber::Shape)),
            ("", Err(BadNumber::Shape)),
        ];
        for (text, want) in cases {
            assert_eq!(check_number(text), want, "{text}");
        }
    }
}
