//! One line per diagnostic: for people in a hurry, editors that read compilers' lines, and GitHub's runners.

use syntax::{Diagnostic, Severity};

use super::{Texts, severity};

/// One line per diagnostic: `file:line:column: error[E0310]: message`. Columns count bytes, from 1.
pub fn concise(diagnostics: &[Diagnostic], texts: &mut Texts<'_>) -> String {
    diagnostics.iter().map(|diagnostic| concise_line(diagnostic, texts)).collect()
}

/// The line of one diagnostic.
pub(super) fn concise_line(diagnostic: &Diagnostic, texts: &mut Texts<'_>) -> String {
    let at = &diagnostic.primary.at;
    let (start, _) = texts.range(at);
    format!(
        "{}:{}:{}: {}[{}]: {}\n",
        at.source,
        start.line + 1,
        start.utf8 + 1,
        severity(diagnostic.severity),
        diagnostic.code.0,
        one_line(&diagnostic.message)
    )
}

/// A message may quote what is written, and that may hold a line end.
fn one_line(message: &str) -> std::borrow::Cow<'_, str> {
    if !message.contains(['\n', '\r']) {
        return message.into();
    }
    message.split(['\n', '\r']).map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ").into()
}

/// One workflow command per diagnostic, which GitHub shows at its line (docs.github.com, "Workflow commands for GitHub
/// Actions"): `::error file=…,line=…,col=…,endLine=…,endColumn=…,title=…::message`.
pub fn github(diagnostics: &[Diagnostic], texts: &mut Texts<'_>) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        let at = &diagnostic.primary.at;
        let (start, end) = texts.range(at);
        let command = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let help = diagnostic.help.as_ref().map_or_else(String::new, |help| format!("\nhelp: {help}"));
        text.push_str(&format!("::{command} file={},line={}", property(at.source.as_str()), start.line + 1));
        // GitHub takes columns only where the place lies on one line.
        if start.line == end.line {
            let (first, last) = (start.utf16 + 1, end.utf16.max(start.utf16 + 1));
            text.push_str(&format!(",col={first},endLine={},endColumn={last}", end.line + 1));
        } else {
            text.push_str(&format!(",endLine={}", end.line + 1));
        }
        let title = format!("{} {}", diagnostic.code.0, diagnostic.name);
        text.push_str(&format!(",title={}::{}\n", property(&title), data(&format!("{}{help}", diagnostic.message))));
    }
    text
}

/// What stands after `::`: no line ends, and `%` only as the start of an escape.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property's value: no `:` and `,` either.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
