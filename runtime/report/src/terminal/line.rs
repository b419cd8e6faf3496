//! Lines of spans: laid out by columns first, coloured last and in one place.

use crate::width;

/// How a span looks on a terminal that has colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Strong,
    Faint,
    Good,
    Bad,
    Warning,
    Active,
}

/// A piece of a line in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub text: String,
    pub style: Style,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Line(pub Vec<Span>);

impl Line {
    pub fn new() -> Self {
        Self::default()
    }

    /// The line with a piece more. Control characters of foreign text become spaces.
    pub fn with(mut self, style: Style, text: impl AsRef<str>) -> Self {
        self.0.push(Span { text: width::harmless(text.as_ref()), style });
        self
    }

    pub fn plain(self, text: impl AsRef<str>) -> Self {
        self.with(Style::Plain, text)
    }

    pub fn columns(&self) -> usize {
        self.0.iter().map(|span| width::of(&span.text)).sum()
    }

    /// The line with spaces up to this column.
    pub fn pad_to(self, column: usize) -> Self {
        let missing = column.saturating_sub(self.columns());
        self.plain(" ".repeat(missing))
    }

    /// As text; the only place that knows escape sequences.
    pub fn paint(&self, colour: bool) -> String {
        let mut out = String::new();
        let mut rest: &[Span] = &self.0;
        // Spaces at the end are nobody's.
        while let Some((last, before)) = rest.split_last() {
            if last.text.trim_end().is_empty() {
                rest = before;
            } else {
                break;
            }
        }
        for (index, span) in rest.iter().enumerate() {
            let text = if index + 1 == rest.len() { span.text.trim_end() } else { &span.text };
            let code = match span.style {
                Style::Plain => "",
                Style::Strong => "1",
                Style::Faint => "2",
                Style::Good => "32",
                Style::Bad => "31",
                Style::Warning => "33",
                Style::Active => "36",
            };
            if colour && !code.is_empty() && !text.trim().is_empty() {
                out.push_str(&format!("\u{1b}[{code}m{text}\u{1b}[0m"));
            } else {
                out.push_str(text);
            }
        }
        out
    }
}

/// A line and what does not fit on it: `first` is kept whole, `text` follows it and is continued under it between
/// words, `right` stands at the right edge of the first line where there is room and is left out otherwise.
pub(super) fn flow(first: Line, style: Style, text: &str, right: Option<Line>, columns: usize) -> Vec<Line> {
    if columns == usize::MAX {
        // No terminal: one line an event, however long.
        let mut line = first.with(style, text);
        if let Some(right) = right {
            line = line.plain("  ");
            line.0.extend(right.0);
        }
        return vec![line];
    }
    let indent = if first.columns() <= columns * 3 / 10 { first.columns() } else { 4 };
    let room = columns.saturating_sub(first.columns());
    let beside = right.as_ref().map_or(0, |right| right.columns() + 2);
    let text = width::harmless(text);
    let fits = width::of(&text) + beside <= room;
    if text.is_empty() || width::of(&text) <= room {
        let mut line = first.with(style, &text);
        if let Some(right) = right.filter(|_| fits) {
            line = line.pad_to(columns - right.columns());
            line.0.extend(right.0);
        }
        return vec![line];
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines = Vec::new();
    // What was put before the text stands alone where no word fits beside it.
    let words = width::wrap(&text, columns.saturating_sub(indent).max(1));
    let first_words = width::wrap(&text, room.max(1));
    if room >= 8 && first_words.first().is_some_and(|line| width::of(line) <= room) && !first_words[0].is_empty() {
        let head = first_words[0].clone();
        lines.push(first.with(style, &head));
        let rest = text.strip_prefix(&head).unwrap_or_default();
        for words in width::wrap(rest, columns.saturating_sub(indent).max(1)) {
            lines.push(Line::new().plain(" ".repeat(indent)).with(style, words));
        }
    } else {
        lines.push(first);
        lines.extend(words.into_iter().map(|words| Line::new().plain(" ".repeat(indent)).with(style, words)));
    }
    lines
}

/// A line with a text beside it where that fits, else under it.
pub(super) fn flow_under(first: Line, text: &str, columns: usize) -> Vec<Line> {
    const INDENT: usize = 10;
    let text = width::harmless(text);
    if columns == usize::MAX || first.columns() + width::of(&text) <= columns {
        return vec![first.plain(text)];
    }
    let under = width::wrap(&text, columns.saturating_sub(INDENT).max(1));
    let mut lines = vec![first];
    lines.extend(under.into_iter().map(|line| Line::new().plain(" ".repeat(INDENT)).plain(line)));
    lines
}

/// Parts joined by ` · `, broken between parts where the line would be too long.
pub(super) fn parts(parts: &[(Style, String)], columns: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = Line::new();
    for (style, part) in parts.iter().filter(|(_, part)| !part.is_empty()) {
        let part = width::harmless(part);
        let gap = if line.0.is_empty() { 0 } else { 3 };
        if columns == usize::MAX || line.columns() + gap + width::of(&part) <= columns {
            if gap > 0 {
                line = line.with(Style::Faint, " · ");
            }
            line = line.with(*style, part);
            continue;
        }
        if !line.0.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        let mut wrapped = width::wrap(&part, columns).into_iter();
        if let Some(head) = wrapped.next() {
            line = line.with(*style, head);
        }
        for rest in wrapped {
            lines.push(std::mem::replace(&mut line, Line::new().with(*style, rest)));
        }
    }
    if !line.0.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.paint(false)).collect()
    }

    #[test]
    fn flows_text_under_what_stands_first() {
        let first = || Line::new().with(Style::Good, "  ✓ ").plain("images   ");
        let right = || Some(Line::new().plain("11 s"));
        assert_eq!(texts(&flow(first(), Style::Plain, "4 built", right(), 30)), ["  ✓ images   4 built      11 s"]);
        assert_eq!(
            texts(&flow(first(), Style::Plain, "4 built, 1 reused, 2 pulled, 3 not tried", right(), 45)),
            ["  ✓ images   4 built, 1 reused, 2 pulled, 3", "             not tried"]
        );
        assert_eq!(
            texts(&flow(first(), Style::Plain, "4 built, 1 reused, 2 pulled", right(), 30)),
            ["  ✓ images   4 built, 1", "    reused, 2 pulled"]
        );
        let lines = flow(first(), Style::Plain, "an-unbreakable-name-of-40-columns-wide!!", right(), 20);
        assert!(lines.iter().all(|line| line.columns() <= 20), "{:?}", texts(&lines));
        assert_eq!(texts(&flow(first(), Style::Plain, "4 built", right(), usize::MAX)), ["  ✓ images   4 built  11 s"]);
    }

    #[test]
    fn joins_parts_and_breaks_between_them() {
        let all: Vec<(Style, String)> =
            ["capacity", "machine two-cores", "profile smoke"].map(|part| (Style::Plain, part.to_owned())).to_vec();
        assert_eq!(texts(&parts(&all, 80)), ["capacity · machine two-cores · profile smoke"]);
        assert_eq!(texts(&parts(&all, 30)), ["capacity · machine two-cores", "profile smoke"]);
    }

    #[test]
    fn paints_only_when_asked() {
        let line = Line::new().with(Style::Bad, "void").plain("  ").plain("why  ");
        assert_eq!(line.paint(false), "void  why");
        assert_eq!(line.paint(true), "\u{1b}[31mvoid\u{1b}[0m  why");
        assert_eq!(Line::new().plain("a").with(Style::Bad, "  ").paint(true), "a");
    }
}
