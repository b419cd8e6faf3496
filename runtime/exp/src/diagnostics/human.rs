//! For people: every diagnostic with its lines, drawn by miette.

use std::sync::Arc;

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceSpan, SpanContents,
};
use syntax::{Diagnostic, Label, Severity};

use super::{Indexed, Texts, lines, severity};

/// How many diagnostics are printed with their lines; the rest is counted.
const SHOWN: usize = 100;

impl miette::SourceCode for Indexed {
    fn read_span<'b>(
        &'b self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'b> + 'b>, MietteError> {
        let (start, end) = (span.offset(), span.offset() + span.len());
        if end > self.text.len() {
            return Err(MietteError::OutOfBounds);
        }
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let line_of = |at: usize| self.position(offset(at)).line as usize;
        let first = line_of(start).saturating_sub(before);
        let last = line_of(end.saturating_sub(usize::from(!span.is_empty()))) + after;
        let start_of = |line: usize| self.lines.start(offset(line)).map(|at| at as usize);
        let from = start_of(first).unwrap_or(0);
        let to = start_of(last + 1).unwrap_or(self.text.len());
        let lines = (self.lines.lines() as usize).min(last + 1) - first;
        // Asked for nothing around it, miette wants the place of the span itself, for the header.
        let column = if before == 0 && after == 0 { start - from } else { 0 };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            &self.text.as_bytes()[from..to],
            (from, to - from).into(),
            first,
            column,
            lines,
        )))
    }
}

/// One diagnostic, or the part of one that lies in another file.
#[derive(Debug)]
struct Shown {
    message: String,
    severity: miette::Severity,
    help: Option<String>,
    labels: Vec<LabeledSpan>,
    source: IndexedSource,
    related: Vec<Shown>,
}

#[derive(Clone)]
struct IndexedSource(Arc<Indexed>);

impl std::fmt::Debug for IndexedSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.name)
    }
}

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Shown {}

impl miette::Diagnostic for Shown {
    fn severity(&self) -> Option<miette::Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn std::fmt::Display>)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(self.source.0.as_ref())
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
        if self.related.is_empty() {
            return None;
        }
        Some(Box::new(self.related.iter().map(|related| related as &dyn miette::Diagnostic)))
    }
}

/// The first 100 diagnostics with their lines, then how many more there are.
pub fn human(diagnostics: &[Diagnostic], texts: &mut Texts<'_>, colour: bool, width: usize) -> String {
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let mut text = String::new();
    for diagnostic in diagnostics.iter().take(SHOWN) {
        let shown = show(diagnostic, texts);
        let before = text.len();
        match handler(&theme, diagnostic, width).render_report(&mut text, &shown) {
            // The first line, which says what is wrong, stands at the margin.
            Ok(()) if text[before..].starts_with("  ") => text.replace_range(before..before + 2, ""),
            Ok(()) => {}
            // A label that no longer fits its text must not hide the message.
            Err(_) => text.push_str(&lines::concise_line(diagnostic, texts)),
        }
        text.push('\n');
    }
    if diagnostics.len() > SHOWN {
        text.push_str(&format!("… and {} more; `exp check --format concise` prints all\n", diagnostics.len() - SHOWN));
    }
    text
}

/// A handler that begins with `error[E0310 shares]: …` where miette's own has a code, an empty line and a cross.
fn handler(theme: &GraphicalTheme, diagnostic: &Diagnostic, width: usize) -> GraphicalReportHandler {
    let mut theme = theme.clone();
    let head = format!("{}[{} {}]:", severity(diagnostic.severity), diagnostic.code.0, diagnostic.name);
    theme.characters.error.clone_from(&head);
    theme.characters.warning = head;
    theme.characters.advice = "note:".to_owned();
    GraphicalReportHandler::new_themed(theme).with_links(false).with_width(width)
}

fn show(diagnostic: &Diagnostic, texts: &mut Texts<'_>) -> Shown {
    let home = &diagnostic.primary.at.source;
    let mut labels = vec![label(&diagnostic.primary, true)];
    let mut related = Vec::new();
    for other in diagnostic.secondary.iter().chain(&diagnostic.chain) {
        if other.at.source == *home {
            labels.push(label(other, false));
        } else {
            related.push(Shown {
                message: if other.text.is_empty() { "from here".to_owned() } else { other.text.clone() },
                severity: miette::Severity::Advice,
                help: None,
                labels: vec![label(other, true)],
                source: IndexedSource(texts.of(&other.at.source)),
                related: Vec::new(),
            });
        }
    }
    let fixes = diagnostic.fixes.iter().map(|fix| format!("fix: {}", fix.title));
    let help: Vec<String> = diagnostic.help.iter().cloned().chain(fixes).collect();
    Shown {
        message: diagnostic.message.clone(),
        severity: match diagnostic.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            // A note's own head says what it is; its icon is the one for related places.
            Severity::Note => miette::Severity::Warning,
        },
        help: (!help.is_empty()).then(|| help.join("\n")),
        labels,
        source: IndexedSource(texts.of(home)),
        related,
    }
}

fn label(label: &Label, primary: bool) -> LabeledSpan {
    let text = (!label.text.is_empty()).then(|| label.text.clone());
    let (start, end) = (label.at.span.start as usize, label.at.span.end as usize);
    let span: SourceSpan = (start, end.saturating_sub(start)).into();
    if primary { LabeledSpan::new_primary_with_span(text, span) } else { LabeledSpan::new_with_span(text, span) }
}
