//! For programs: everything that a diagnostic has, with bytes, lines and columns.

use serde_json::{Value, json};
use syntax::{Applicability, Diagnostic, Label, Location};

use super::{Texts, severity};

/// One object per diagnostic. A place has its file, its bytes `[start, end)`, and both ends as `line`, `column` (bytes of
/// UTF-8) and `utf16` (UTF-16 code units), counted from 1.
pub fn json(diagnostics: &[Diagnostic], texts: &mut Texts<'_>) -> Vec<Value> {
    diagnostics.iter().map(|diagnostic| object(diagnostic, texts)).collect()
}

fn object(diagnostic: &Diagnostic, texts: &mut Texts<'_>) -> Value {
    let mut labels = |labels: &[Label]| labels.iter().map(|label| labelled(label, texts)).collect::<Vec<_>>();
    let (primary, secondary, chain) =
        (labels(std::slice::from_ref(&diagnostic.primary)), labels(&diagnostic.secondary), labels(&diagnostic.chain));
    let fixes: Vec<Value> = diagnostic
        .fixes
        .iter()
        .map(|fix| {
            let edits: Vec<Value> = fix
                .edits
                .iter()
                .map(|edit| {
                    let mut object = place(&edit.at, texts);
                    object["text"] = json!(edit.text);
                    object
                })
                .collect();
            let applicability = match fix.applicability {
                Applicability::Safe => "safe",
                Applicability::Unsafe => "unsafe",
            };
            json!({ "title": fix.title, "applicability": applicability, "edits": edits })
        })
        .collect();
    json!({
        "code": diagnostic.code.0,
        "name": diagnostic.name,
        "severity": severity(diagnostic.severity),
        "message": diagnostic.message,
        "primary": primary.into_iter().next(),
        "secondary": secondary,
        "chain": chain,
        "help": diagnostic.help,
        "fixes": fixes,
    })
}

fn labelled(label: &Label, texts: &mut Texts<'_>) -> Value {
    let mut object = place(&label.at, texts);
    object["text"] = json!(label.text);
    object
}

fn place(at: &Location, texts: &mut Texts<'_>) -> Value {
    let (start, end) = texts.range(at);
    let end_of = |p: syntax::Position| json!({ "line": p.line + 1, "column": p.utf8 + 1, "utf16": p.utf16 + 1 });
    json!({
        "file": at.source.as_str(),
        "bytes": [at.span.start, at.span.end],
        "start": end_of(start),
        "end": end_of(end),
    })
}
