//! SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"), which code hosts and editors read.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use syntax::{Diagnostic, Fix, Label, Location, Severity, SourceId};

use super::{Texts, severity};

/// The results of one run of `exp check`, kept until all files have been looked at.
#[derive(Debug, Default)]
pub struct Sarif {
    results: Vec<Value>,
    codes: BTreeSet<&'static str>,
}

impl Sarif {
    /// Adds what was found in one study.
    pub fn add(&mut self, diagnostics: &[Diagnostic], texts: &mut Texts<'_>) {
        for diagnostic in diagnostics {
            self.codes.insert(diagnostic.code.0);
            self.results.push(result(diagnostic, texts));
        }
    }

    /// The log: the rules that fired, each with its page, and the results.
    pub fn log(mut self) -> Value {
        let rules: Vec<Value> = self.codes.iter().filter_map(|code| rule(code)).collect();
        for result in &mut self.results {
            let index = self.codes.iter().position(|code| result["ruleId"] == **code);
            result["ruleIndex"] = json!(index);
        }
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "exp",
                    "semanticVersion": env!("CARGO_PKG_VERSION"),
                    "rules": rules,
                } },
                "columnKind": "utf16CodeUnits",
                "originalUriBaseIds": { "SRCROOT": { "description": { "text": "The directory that exp was run in." } } },
                "results": self.results,
            }],
        })
    }
}

fn rule(code: &str) -> Option<Value> {
    let kind = analysis::codes::kinds().find(|kind| kind.code.0 == code)?;
    let page = analysis::explain(code)?;
    Some(json!({
        "id": kind.code.0,
        "name": kind.name,
        "shortDescription": { "text": kind.name.replace('-', " ") },
        "fullDescription": { "text": kind.explanation },
        "help": { "text": page, "markdown": page },
        "defaultConfiguration": { "level": level(kind.severity) },
    }))
}

/// SARIF's levels have our severities' names.
fn level(of: Severity) -> &'static str {
    severity(of)
}

fn result(diagnostic: &Diagnostic, texts: &mut Texts<'_>) -> Value {
    let text = match &diagnostic.help {
        Some(help) => format!("{}\n\nhelp: {help}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let mut result = json!({
        "ruleId": diagnostic.code.0,
        "level": level(diagnostic.severity),
        "message": { "text": text },
        "locations": [location(&diagnostic.primary, None, texts)],
    });
    let related: Vec<Value> = diagnostic
        .chain
        .iter()
        .chain(&diagnostic.secondary)
        .enumerate()
        .map(|(id, label)| location(label, Some(id), texts))
        .collect();
    if !related.is_empty() {
        result["relatedLocations"] = json!(related);
    }
    let fixes: Vec<Value> = diagnostic.fixes.iter().map(|fix| fixed(fix, texts)).collect();
    if !fixes.is_empty() {
        result["fixes"] = json!(fixes);
    }
    result
}

fn location(label: &Label, id: Option<usize>, texts: &mut Texts<'_>) -> Value {
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": artifact(&label.at.source),
            "region": region(&label.at, texts),
        },
    });
    if !label.text.is_empty() {
        location["message"] = json!({ "text": label.text });
    }
    if let Some(id) = id {
        location["id"] = json!(id);
    }
    location
}

fn fixed(fix: &Fix, texts: &mut Texts<'_>) -> Value {
    let mut sources: Vec<&SourceId> = fix.edits.iter().map(|edit| &edit.at.source).collect();
    sources.sort();
    sources.dedup();
    let changes: Vec<Value> = sources
        .into_iter()
        .map(|source| {
            let replacements: Vec<Value> = fix
                .edits
                .iter()
                .filter(|edit| edit.at.source == *source)
                .map(|edit| {
                    json!({ "deletedRegion": region(&edit.at, texts), "insertedContent": { "text": edit.text } })
                })
                .collect();
            json!({ "artifactLocation": artifact(source), "replacements": replacements })
        })
        .collect();
    json!({ "description": { "text": fix.title }, "artifactChanges": changes })
}

/// Lines and columns from 1; the end is the first character that no longer belongs to it (SARIF 2.1.0, 3.30).
fn region(at: &Location, texts: &mut Texts<'_>) -> Value {
    let (start, end) = texts.range(at);
    json!({
        "startLine": start.line + 1,
        "startColumn": start.utf16 + 1,
        "endLine": end.line + 1,
        "endColumn": end.utf16 + 1,
    })
}

fn artifact(source: &SourceId) -> Value {
    let name = source.as_str();
    if let Some(name) = source.is_std().then(|| name.trim_start_matches("std/")) {
        return json!({ "uri": format!("exp-std:{}", escaped(name)) });
    }
    match name.strip_prefix('/') {
        Some(rest) => json!({ "uri": format!("file:///{}", escaped(rest)) }),
        None => json!({ "uri": escaped(name.trim_start_matches("./")), "uriBaseId": "SRCROOT" }),
    }
}

/// A path as part of an address: everything but letters, digits, `-._~` and `/` as `%` and hex (RFC 3986, 2.1).
fn escaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => text.push(char::from(byte)),
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}
