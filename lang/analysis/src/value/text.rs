//! Texts with `${variables}`: split into pieces, with the place of every variable. `$${` stands for `${` itself.

use plan::{Piece, Text};

/// A text and the byte range, inside the decoded string, of each variable's name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Split {
    /// The pieces.
    pub text: Text,
    /// Name, first byte and last byte + 1 of every variable, in order.
    pub variables: Vec<(String, usize, usize)>,
}

/// What is wrong with a text, and the byte range of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextProblem {
    /// The sentence.
    pub message: String,
    /// First byte inside the decoded string.
    pub from: usize,
    /// Last byte + 1.
    pub to: usize,
}

/// Splits a text at its variables.
///
/// # Errors
/// A `${` without `}`, or a name that can't be one.
pub fn split(text: &str) -> Result<Split, TextProblem> {
    let mut split = Split::default();
    let mut literal = String::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("${") {
        let dollar = at + found;
        // `$${` is the escape: one of the two `$` goes, and `{` starts nothing.
        if dollar > at && text.as_bytes()[dollar - 1] == b'$' {
            literal.push_str(&text[at..dollar]);
            literal.push('{');
            at = dollar + 2;
            continue;
        }
        literal.push_str(&text[at..dollar]);
        let start = dollar + 2;
        let Some(length) = text[start..].find('}') else {
            return Err(TextProblem {
                message: "`${` has no `}`; write `$${` for the characters themselves".to_owned(),
                from: dollar,
                to: text.len(),
            });
        };
        let name = &text[start..start + length];
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':')) {
            return Err(TextProblem {
                message: format!("`${{{name}}}` is not a variable; a name has letters, digits, `-`, `_` and `.`"),
                from: dollar,
                to: start + length + 1,
            });
        }
        if !literal.is_empty() {
            split.text.0.push(Piece::Literal(std::mem::take(&mut literal)));
        }
        split.text.0.push(Piece::Variable(name.to_owned()));
        split.variables.push((name.to_owned(), start, start + length));
        at = start + length + 1;
    }
    literal.push_str(&text[at..]);
    if !literal.is_empty() {
        split.text.0.push(Piece::Literal(literal));
    }
    Ok(split)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> String {
        match split(text) {
            Ok(split) => split
                .text
                .0
                .iter()
                .map(|piece| match piece {
                    Piece::Literal(text) => format!("[{text}]"),
                    Piece::Variable(name) => format!("<{name}>"),
                })
                .collect(),
            Err(problem) => format!("error {}-{}", problem.from, problem.to),
        }
    }

    #[test]
    fn splits_at_variables() {
        for (text, expected) in [
            ("", ""),
            ("plain $ text", "[plain $ text]"),
            ("/events/${id}", "[/events/]<id>"),
            ("${a}${b.c}", "<a><b.c>"),
            ("$${a}", "[${a}]"),
            ("x$${a} ${b}", "[x${a} ]<b>"),
            ("${a}$${b}", "<a>[${b}]"),
            ("é${id}𝄞", "[é]<id>[𝄞]"),
            ("${", "error 0-2"),
            ("a${b", "error 1-4"),
            ("${}", "error 0-3"),
            ("${a b}", "error 0-6"),
        ] {
            assert_eq!(pieces(text), expected, "{text}");
        }
    }

    #[test]
    fn prints_back_what_it_read() {
        for text in ["/events/${id}", "$${a}${b}", "plain"] {
            let split = split(text).expect("a text");
            assert_eq!(split.text.to_string(), text);
        }
    }
}
