//! Markdown as text: escaping, tables and lists.

use std::fmt::Write as _;

/// A sentence so that Markdown shows it as it is; what stands between backticks becomes code.
pub fn escape(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len() < 3 || parts.len().is_multiple_of(2) || parts.iter().skip(1).step_by(2).any(|part| part.is_empty()) {
        return literal(text);
    }
    parts.iter().enumerate().map(|(index, part)| if index % 2 == 0 { literal(part) } else { code(part) }).collect()
}

/// Text whose every character stands for itself.
fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, character) in text.chars().enumerate() {
        match character {
            '\n' | '\r' | '\t' => out.push(' '),
            // A number sign makes a heading only where a line begins with it.
            '#' if index > 0 => out.push('#'),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' => {
                out.push('\\');
                out.push(character);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            other if other.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

/// A sentence that starts with a capital and ends with a full stop, escaped. A sentence that starts with a name in
/// lower case, such as a candidate's, keeps it.
pub fn sentence(text: &str) -> String {
    let text = escape(text.trim());
    if text.ends_with(['.', '!', '?', ':']) || text.is_empty() { text } else { format!("{text}.") }
}

/// Text as code, whatever backticks it holds.
pub fn code(text: &str) -> String {
    let text: String = text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    let mut longest = 0;
    let mut run = 0;
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    // A table's column would end at a bar even inside code.
    format!("{fence}{space}{}{space}{fence}", text.replace('|', "\\|"))
}

/// A table whose cells are Markdown already. Columns after the first are aligned right where `numbers` says so.
pub fn table(head: &[String], rows: &[Vec<String>], numbers: bool) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "| {} |", head.join(" | "));
    let rules: Vec<&str> =
        head.iter().enumerate().map(|(index, _)| if numbers && index > 0 { "---:" } else { "---" }).collect();
    let _ = writeln!(out, "| {} |", rules.join(" | "));
    for row in rows {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    out
}

/// A bullet list of Markdown.
pub fn list(items: impl IntoIterator<Item = String>) -> String {
    items.into_iter().fold(String::new(), |mut out, item| {
        let _ = writeln!(out, "- {item}");
        out
    })
}

/// A block of text as it stands.
pub fn block(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}text\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_foreign_text_as_it_is() {
        assert_eq!(escape("a|b *c* <d>\nf"), "a\\|b \\*c\\* &lt;d&gt; f");
        assert_eq!(escape("the stream `re*ad` #1"), "the stream `re*ad` #1");
        assert_eq!(escape("one ` alone *"), "one \\` alone \\*");
        assert_eq!(escape("# no heading"), "\\# no heading");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(sentence("done"), "done.");
        assert_eq!(sentence("done."), "done.");
        assert_eq!(block("```"), "````text\n```\n````\n");
        assert_eq!(
            table(&["a".into(), "b".into()], &[vec!["1".into(), "2".into()]], true),
            "| a | b |\n| --- | ---: |\n| 1 | 2 |\n"
        );
    }
}
