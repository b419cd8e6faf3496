//! Suites: KDL with its diagnostics as marks below the lines that have them. `UPDATE=1` writes the marks anew; read what
//! it wrote. A file holds cases, each begun by `//# case NAME key=value …` with the keys `machine`, `profile`, `cpus`
//! (of the host; none where left out), `host` (one of `tests/hosts`), `allow`, `warn`, `deny` (as on the command line) and
//! `alone` (the case is the whole study; otherwise it amends the base study).
#![expect(clippy::disallowed_methods, reason = "the suite lies on the disk")]

use std::fmt::Write as _;

use crate::common::{around, described, host, memory, repository};
use analysis::lint::LINTS;
use analysis::{Host, Level, Options, analyse};
use syntax::{Diagnostic, LineIndex, Severity, SourceId, Sources};

struct Case {
    head: String,
    text: String,
}

impl Case {
    fn option(&self, key: &str) -> Option<String> {
        self.head.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('=').map(str::to_owned))
    }
}

/// The cases of a file, without marks.
fn cases(file: &str) -> (String, Vec<Case>) {
    let mut preamble = String::new();
    let mut cases: Vec<Case> = Vec::new();
    for line in file.lines() {
        if line.starts_with("//# case ") {
            cases.push(Case { head: line.to_owned(), text: String::new() });
        } else if let Some(case) = cases.last_mut() {
            if !line.trim_start().starts_with("//@ ") {
                case.text.push_str(line);
                case.text.push('\n');
            }
        } else {
            preamble.push_str(line);
            preamble.push('\n');
        }
    }
    (preamble, cases)
}

/// `5-12`, or `3:5-12` with the line.
fn place(text: &str, span: syntax::Span, with_line: bool) -> String {
    let index = LineIndex::new(text);
    let (start, end) = (index.position(text, span.start), index.position(text, span.end));
    let line = if with_line { format!("{}:", start.line + 1) } else { String::new() };
    let end =
        if end.line == start.line { format!("{}", end.utf8 + 1) } else { format!("{}:{}", end.line + 1, end.utf8 + 1) };
    format!("{line}{}-{end}", start.utf8 + 1)
}

fn mark(diagnostic: &Diagnostic, study: &str, sources: &dyn Sources) -> String {
    let id = SourceId::new("study.kdl");
    let described = |at: &syntax::Location| {
        if at.source == id {
            return place(study, at.span, true);
        }
        let text = sources.text(&at.source).unwrap_or_else(|_| "".into());
        format!("{} {}", at.source, place(&text, at.span, true))
    };
    let own = diagnostic.primary.at.source == id;
    let at = if own { place(study, diagnostic.primary.at.span, false) } else { described(&diagnostic.primary.at) };
    // The reader's own words are held by its own tests; here it counts that nothing follows from them.
    if diagnostic.code.0.starts_with("E01") {
        return format!("//@ {at} {}\n", diagnostic.code);
    }
    // How bad it is, where that is not what its code says.
    let usual = match diagnostic.code.0.starts_with('W') {
        true => {
            LINTS.iter().find(|lint| lint.info.code == diagnostic.code).map_or(Severity::Warning, |l| l.info.severity)
        }
        false => Severity::Error,
    };
    let severity = if diagnostic.severity == usual { String::new() } else { format!("({}) ", diagnostic.severity) };
    let mut mark = format!("//@ {at} {} {severity}{}\n", diagnostic.code, diagnostic.message);
    for label in &diagnostic.chain {
        let _ = writeln!(mark, "//@     through {}: {}", described(&label.at), label.text);
    }
    for label in &diagnostic.secondary {
        let _ = writeln!(mark, "//@     also {}: {}", described(&label.at), label.text);
    }
    if let Some(help) = &diagnostic.help {
        let _ = writeln!(mark, "//@     help: {help}");
    }
    for fix in &diagnostic.fixes {
        let edits: Vec<String> = fix
            .edits
            .iter()
            .map(|edit| format!("{} → {}", described(&edit.at), edit.text.replace('\n', "⏎")))
            .collect();
        let _ = writeln!(mark, "//@     fix: {} ({})", fix.title, edits.join(", "));
    }
    mark
}

/// The case with the marks that the analysis gives.
fn marked(case: &Case) -> String {
    let alone = case.head.split_whitespace().any(|word| word == "alone");
    let study = if alone { case.text.clone() } else { around(&case.text) };
    let sources = memory(&study);
    let cpus = case.option("cpus").map(|cpus| Host { cpus: cpus.parse().expect("a CPU set"), ..host() });
    let here = case.option("host").map(|name| described(&name)).or(cpus);
    let level = |level: Level| case.option(level.name()).map(|lint| (lint, level));
    let options = Options {
        machine: case.option("machine"),
        profile: case.option("profile"),
        host: here,
        levels: [Level::Allow, Level::Warn, Level::Deny].into_iter().filter_map(level).collect(),
        ..Options::default()
    };
    let analysed = analyse(&sources, &SourceId::new("study.kdl"), &options);
    if !analysed.has_errors() {
        let id = SourceId::new("study.kdl");
        crate::expanded::says_the_same(&sources, &id, &options, &analysed, &case.head);
    }
    let index = LineIndex::new(&study);
    let lines: Vec<&str> = case.text.lines().collect();
    let mut below: Vec<String> = vec![String::new(); lines.len() + 1];
    for diagnostic in &analysed.diagnostics {
        let at = &diagnostic.primary.at;
        let line = index.position(&study, at.span.start).line as usize;
        let own = at.source.as_str() == "study.kdl" && line < lines.len();
        let mut text = mark(diagnostic, &study, &sources);
        if !own && !alone && at.source.as_str() == "study.kdl" {
            // The base study's line, which the reader doesn't see.
            let shown = study.lines().nth(line).unwrap_or("");
            text.push_str(&format!("//@     in the base study: {shown}\n"));
        }
        below[if own { line } else { lines.len() }].push_str(&text);
    }
    assert_eq!(
        analysed.plan.is_none(),
        analysed.has_errors(),
        "{}: a plan if and only if there is no error",
        case.head
    );
    let mut out = format!("{}\n", case.head);
    for (line, marks) in lines.iter().zip(&below) {
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        let _ = writeln!(out, "{line}");
        for mark in marks.lines() {
            let _ = writeln!(out, "{indent}{mark}");
        }
    }
    out.push_str(&below[lines.len()]);
    out
}

#[test]
fn suites_say_what_is_marked() {
    let folder = repository().join("lang/analysis/tests/suite");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the suite's folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "kdl"))
        .collect();
    files.sort();
    assert!(files.len() >= 5, "the suite is there");
    let update = std::env::var_os("UPDATE").is_some();
    let mut wrong = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a suite");
        let (preamble, cases) = cases(&text);
        assert!(!cases.is_empty(), "{} has cases", path.display());
        let mut fresh = preamble;
        for case in &cases {
            fresh.push_str(&marked(case));
        }
        if fresh != text {
            if update {
                std::fs::write(&path, &fresh).expect("the suite can be written");
            } else {
                let difference = text.lines().zip(fresh.lines()).find(|(old, new)| old != new);
                wrong.push(format!("{}: {difference:#?}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "marks differ (UPDATE=1 writes them anew):\n{}", wrong.join("\n"));
}
