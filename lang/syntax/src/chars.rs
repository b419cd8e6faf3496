//! The character classes of KDL v2 (spec 2.0, "Whitespace", "Newline", "Disallowed Literal Code Points", "Identifier
//! String"), by bytes: the lexer asks per byte and meets the rare many-byte members only behind their lead bytes.

/// What a byte may start.
pub(crate) mod class {
    /// Part of a bare word.
    pub(crate) const WORD: u8 = 1;
    /// Starts a character of several bytes that may be a space, a line end or banned: `0xC2 0xE1 0xE2 0xE3 0xEF`.
    pub(crate) const SPECIAL: u8 = 2;
    /// Everything that ends a bare word.
    pub(crate) const OTHER: u8 = 0;
}

/// The class of each byte.
pub(crate) static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [class::WORD; 256];
    let mut b = 0;
    while b < 0x21 {
        table[b] = class::OTHER;
        b += 1;
    }
    table[0x7F] = class::OTHER;
    let other = b"(){}[]/\\\"#;=";
    let mut i = 0;
    while i < other.len() {
        table[other[i] as usize] = class::OTHER;
        i += 1;
    }
    let special = [0xC2, 0xE1, 0xE2, 0xE3, 0xEF];
    let mut i = 0;
    while i < special.len() {
        table[special[i]] = class::SPECIAL;
        i += 1;
    }
    table
}

/// The bytes of the white space at `at`, 0 where there is none. Line ends are not white space.
pub(crate) fn space_len(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(b' ' | b'\t') => 1,
        Some(0xC2) if bytes.get(at + 1) == Some(&0xA0) => 2,
        Some(0xE1..=0xE3) => match bytes.get(at..at + 3) {
            Some([0xE1, 0x9A, 0x80] | [0xE2, 0x80, 0x80..=0x8A | 0xAF] | [0xE2, 0x81, 0x9F] | [0xE3, 0x80, 0x80]) => 3,
            _ => 0,
        },
        _ => 0,
    }
}

/// The bytes of the line end at `at`, 0 where there is none. CRLF is one.
pub(crate) fn newline_len(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(b'\r') if bytes.get(at + 1) == Some(&b'\n') => 2,
        Some(b'\n' | b'\r' | 0x0B | 0x0C) => 1,
        Some(0xC2) if bytes.get(at + 1) == Some(&0x85) => 2,
        Some(0xE2) => match bytes.get(at..at + 3) {
            Some([0xE2, 0x80, 0xA8 | 0xA9]) => 3,
            _ => 0,
        },
        _ => 0,
    }
}

/// The bytes of the banned character at `at`, 0 where there is none. A byte order mark is banned but at byte 0.
pub(crate) fn banned_len(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(0x00..=0x08 | 0x0E..=0x1F | 0x7F) => 1,
        Some(0xE2) => match bytes.get(at..at + 3) {
            Some([0xE2, 0x80, 0x8E | 0x8F | 0xAA..=0xAE] | [0xE2, 0x81, 0xA6..=0xA9]) => 3,
            _ => 0,
        },
        Some(0xEF) if at > 0 && bytes.get(at..at + 3) == Some(&[0xEF, 0xBB, 0xBF]) => 3,
        _ => 0,
    }
}

/// The bytes of the character at `at` if it can be part of a bare word, else 0.
pub(crate) fn word_len(bytes: &[u8], at: usize) -> usize {
    let Some(&b) = bytes.get(at) else { return 0 };
    match CLASS[b as usize] {
        class::WORD => 1,
        class::SPECIAL => {
            let ends = space_len(bytes, at) + newline_len(bytes, at) + banned_len(bytes, at) > 0;
            let mark = b == 0xEF && bytes.get(at..at + 3) == Some(&[0xEF, 0xBB, 0xBF]);
            match (ends || mark, b) {
                (true, _) => 0,
                (false, 0xC2) => 2,
                (false, _) => 3,
            }
        }
        _ => 0,
    }
}

/// The white space from `at` on, with line ends if `lines`: where it ends.
pub(crate) fn skip_space(bytes: &[u8], mut at: usize, lines: bool) -> usize {
    loop {
        let mut len = space_len(bytes, at);
        if len == 0 && lines {
            len = newline_len(bytes, at);
        }
        if len == 0 {
            return at;
        }
        at += len;
    }
}

/// Where the line of `at` ends: at its line end or the end of the text.
pub(crate) fn line_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && newline_len(bytes, at) == 0 {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_the_specification() {
        let spaces = "\t \u{A0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200A}\u{202F}\u{205F}\u{3000}";
        let newlines = "\n\r\u{85}\u{B}\u{C}\u{2028}\u{2029}";
        let never = "(){}[]/\\\"#;=";
        let is_banned = |c: char| matches!(c as u32, 0..=8 | 0xE..=0x1F | 0x7F | 0x200E..=0x200F | 0x202A..=0x202E | 0x2066..=0x2069 | 0xFEFF);
        for c in (0..=0x1_0FFFF).filter_map(char::from_u32) {
            // One byte before, so that the byte order mark does not stand at byte 0.
            let text = format!("x{c}");
            let bytes = text.as_bytes();
            let width = |is: bool| if is { c.len_utf8() } else { 0 };
            assert_eq!(space_len(bytes, 1), width(spaces.contains(c)), "{c:?} as a space");
            assert_eq!(newline_len(bytes, 1), width(newlines.contains(c)), "{c:?} as a line end");
            assert_eq!(banned_len(bytes, 1), width(is_banned(c)), "{c:?} as banned");
            let word = !spaces.contains(c) && !newlines.contains(c) && !never.contains(c) && !is_banned(c);
            // The rest of a many-byte character counts byte by byte where its lead byte is nothing special.
            assert_eq!(word_len(bytes, 1) > 0, word, "{c:?} in a word");
        }
        assert_eq!(newline_len(b"\r\n", 0), 2);
        assert_eq!(banned_len("\u{FEFF}".as_bytes(), 0), 0);
    }
}
