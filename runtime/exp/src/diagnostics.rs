//! Diagnostics for people and machines: with their lines (miette), one line each, or JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceSpan, SpanContents,
};
use syntax::{Diagnostic, Label, LineIndex, Severity, SourceId, Sources};

/// How many diagnostics are printed with their lines; the rest is counted.
const SHOWN: usize = 50;

/// Texts and line starts of the sources that diagnostics point into.
pub struct Texts<'a> {
    sources: &'a dyn Sources,
    indexed: BTreeMap<SourceId, Arc<Indexed>>,
}

/// A text with its lines found once: miette's own sources look for them from the start for every label.
struct Indexed {
    name: String,
    text: Arc<str>,
    starts: Vec<usize>,
}

impl<'a> Texts<'a> {
    /// Texts that are asked of `sources` when they are needed.
    pub fn new(sources: &'a dyn Sources) -> Self {
        Self { sources, indexed: BTreeMap::new() }
    }

    fn of(&mut self, id: &SourceId) -> Arc<Indexed> {
        if let Some(indexed) = self.indexed.get(id) {
            return Arc::clone(indexed);
        }
        let text = self.sources.text(id).unwrap_or_else(|_| Arc::from(""));
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let indexed = Arc::new(Indexed { name: id.to_string(), text, starts });
        self.indexed.insert(id.clone(), Arc::clone(&indexed));
        indexed
    }
}

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
        let line_of = |offset: usize| self.starts.partition_point(|&line| line <= offset).saturating_sub(1);
        let first = line_of(start).saturating_sub(before);
        let last = line_of(end.saturating_sub(usize::from(!span.is_empty()))) + after;
        let from = self.starts[first];
        let to = self.starts.get(last + 1).copied().unwrap_or(self.text.len());
        let lines = self.starts.len().min(last + 1) - first;
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
    code: Option<String>,
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
    fn code<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        self.code.as_ref().map(|code| Box::new(code) as Box<dyn std::fmt::Display>)
    }

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

/// Every diagnostic with its lines; at most 50, then their number.
pub fn human(diagnostics: &[Diagnostic], texts: &mut Texts<'_>, colour: bool, width: usize) -> String {
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_links(false).with_width(width);
    let mut text = String::new();
    for diagnostic in diagnostics.iter().take(SHOWN) {
        let shown = show(diagnostic, texts);
        if handler.render_report(&mut text, &shown).is_err() {
            // A label that no longer fits its text must not hide the message.
            text.push_str(&concise_line(diagnostic, texts));
        }
        text.push('\n');
    }
    if diagnostics.len() > SHOWN {
        text.push_str(&format!("… and {} more\n", diagnostics.len() - SHOWN));
    }
    text
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
                code: None,
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
        code: Some(format!("{} {}", diagnostic.code.0, diagnostic.name)),
        severity: match diagnostic.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Note => miette::Severity::Advice,
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

/// One line per diagnostic: `file:line:column: error[E0310]: message`.
pub fn concise(diagnostics: &[Diagnostic], texts: &mut Texts<'_>) -> String {
    diagnostics.iter().map(|diagnostic| concise_line(diagnostic, texts)).collect()
}

fn concise_line(diagnostic: &Diagnostic, texts: &mut Texts<'_>) -> String {
    let at = &diagnostic.primary.at;
    let text = Arc::clone(&texts.of(&at.source).text);
    let position = LineIndex::new(&text).position(&text, at.span.start);
    format!(
        "{}:{}:{}: {}[{}]: {}\n",
        at.source,
        position.line + 1,
        position.utf8 + 1,
        severity(diagnostic.severity),
        diagnostic.code.0,
        diagnostic.message
    )
}

/// A JSON array, one object per diagnostic, with byte offsets and lines.
pub fn json(diagnostics: &[Diagnostic], texts: &mut Texts<'_>) -> serde_json::Value {
    let mut array = Vec::new();
    for diagnostic in diagnostics {
        let mut place = |label: &Label| {
            let text = Arc::clone(&texts.of(&label.at.source).text);
            let index = LineIndex::new(&text);
            let (start, end) = (index.position(&text, label.at.span.start), index.position(&text, label.at.span.end));
            serde_json::json!({
                "file": label.at.source.as_str(),
                "text": label.text,
                "bytes": [label.at.span.start, label.at.span.end],
                "start": { "line": start.line + 1, "column": start.utf8 + 1 },
                "end": { "line": end.line + 1, "column": end.utf8 + 1 },
            })
        };
        let primary = place(&diagnostic.primary);
        let secondary: Vec<_> = diagnostic.secondary.iter().map(&mut place).collect();
        let chain: Vec<_> = diagnostic.chain.iter().map(&mut place).collect();
        array.push(serde_json::json!({
            "code": diagnostic.code.0,
            "name": diagnostic.name,
            "severity": severity(diagnostic.severity),
            "message": diagnostic.message,
            "primary": primary,
            "secondary": secondary,
            "chain": chain,
            "help": diagnostic.help,
            "fixes": diagnostic.fixes.iter().map(|fix| fix.title.clone()).collect::<Vec<_>>(),
        }));
    }
    serde_json::Value::Array(array)
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// Whether any of them is an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}
