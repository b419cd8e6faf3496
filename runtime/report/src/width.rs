//! Text within a width: what a terminal shows takes columns, not bytes or characters.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns that a text takes. Control characters take none.
pub fn of(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The text followed by spaces up to `width` columns.
pub fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(of(text))))
}

/// The text preceded by spaces up to `width` columns.
pub fn pad_left(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(of(text))))
}

/// The text, cut to `width` columns with `…` as its last one where it is longer.
pub fn cut(text: &str, width: usize) -> String {
    if of(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for character in text.chars() {
        let columns = character.width().unwrap_or(0);
        if used + columns + 1 > width {
            break;
        }
        used += columns;
        out.push(character);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// The text in lines of at most `width` columns, broken between words. A word that is longer than a line is broken
/// inside, since no line may be longer; nothing is left out.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let gap = usize::from(!line.is_empty());
        if of(&line) + gap + of(word) <= width {
            if gap == 1 {
                line.push(' ');
            }
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for character in word.chars() {
            if of(&line) + character.width().unwrap_or(0) > width {
                lines.push(std::mem::take(&mut line));
            }
            line.push(character);
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// A text that came from outside (an answer, a log, a name) with its control characters replaced, on one line.
pub fn harmless(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_and_wraps_by_columns() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("数据库数据库", 5), "数据…");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a-very-long-word", 6), ["a-very", "-long-", "word"]);
        assert_eq!(wrap("", 6), [""]);
        for width in 1..12 {
            let text = "é数 据库 ordinary words and 𝄞";
            let lines = wrap(text, width.max(2));
            assert!(lines.iter().all(|line| of(line) <= width.max(2)), "{width}: {lines:?}");
            assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        }
        assert_eq!(pad("é", 3), "é  ");
        assert_eq!(pad_left("é", 3), "  é");
        assert_eq!(harmless("a\u{1b}[31m\n"), "a [31m ");
    }
}
