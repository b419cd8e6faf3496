//! The documentation's examples: every bad one yields its code and nothing else, every good one yields nothing.

use crate::common::{around, file, host, line, memory};
use analysis::codes::{CODES, explain, explainable};
use analysis::lint::LINTS;
use analysis::{Options, analyse};
use syntax::{Severity, SourceId, apply_edits};

/// Codes and lines of what the base study with this part yields.
fn told(part: &str, code: &str) -> Vec<(String, String)> {
    let study = around(part);
    let sources = memory(&study);
    // That code speaks of a machine that was named; the others of one that fits.
    let machine = (code == "E0504").then(|| "bench".to_owned());
    // And that one of a profile that was chosen.
    let profile = (code == "W0722").then(|| "smoke".to_owned());
    let options = Options { machine, profile, host: Some(host()), ..Options::default() };
    let analysed = analyse(&sources, &SourceId::new("study.kdl"), &options);
    analysed.diagnostics.iter().map(|diagnostic| (diagnostic.code.to_string(), line(diagnostic, &sources))).collect()
}

fn check(code: &str, bad: &[String], good: &[String]) -> Vec<String> {
    let mut wrong = Vec::new();
    for part in bad {
        let found = told(part, code);
        if found.is_empty() || found.iter().any(|(other, _)| other != code) {
            let lines: Vec<&str> = found.iter().map(|(_, line)| line.as_str()).collect();
            wrong.push(format!("{code}: the bad example yields\n  {}\n{part}", lines.join("\n  ")));
        }
    }
    for part in good {
        let found = told(part, code);
        if !found.is_empty() {
            let lines: Vec<&str> = found.iter().map(|(_, line)| line.as_str()).collect();
            wrong.push(format!("{code}: the good example yields\n  {}\n{part}", lines.join("\n  ")));
        }
    }
    wrong
}

#[test]
fn the_base_study_is_clean() {
    assert_eq!(told("", ""), []);
}

#[test]
fn every_code_has_examples_that_hold() {
    let wrong: Vec<String> =
        CODES.iter().flat_map(|info| check(info.code.0, &[info.bad.to_owned()], &[info.good.to_owned()])).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The `kdl` blocks of a page under one heading.
fn blocks(page: &str, heading: &str) -> Vec<String> {
    let Some(section) = page.split("\n## ").find(|section| section.starts_with(heading)) else { return Vec::new() };
    section.split("```kdl\n").skip(1).filter_map(|block| Some(block.split_once("```")?.0.to_owned())).collect()
}

#[test]
fn every_lint_has_a_page_whose_examples_hold() {
    let mut wrong = Vec::new();
    for lint in LINTS {
        let (code, name) = (lint.info.code.0, lint.info.name);
        let page = file(&format!("docs/lints/{name}.md"));
        assert_eq!(page, lint.page, "the program carries the page of {name}");
        assert!(page.starts_with(&format!("# {code}: {name}\n")), "{name}: the page has its heading");
        let (bad, good) = (blocks(&page, "Wrong"), blocks(&page, "Right"));
        assert!(!bad.is_empty() && !good.is_empty(), "{name}: the page has both kinds of examples");
        wrong.extend(check(code, &bad, &good));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Each change that a page's wrong example is offered removes what it is offered for, and brings no error.
#[test]
fn every_change_of_a_lint_removes_what_the_lint_found() {
    let (mut wrong, mut changed) = (Vec::new(), Vec::new());
    for lint in LINTS {
        for part in blocks(lint.page, "Wrong") {
            let study = around(&part);
            let id = SourceId::new("study.kdl");
            let profile = (lint.info.code.0 == "W0722").then(|| "smoke".to_owned());
            let options = Options { profile, host: Some(host()), ..Options::default() };
            let before = analyse(&memory(&study), &id, &options).diagnostics;
            for diagnostic in before.iter().filter(|diagnostic| diagnostic.name == lint.info.name) {
                for fix in &diagnostic.fixes {
                    changed.push(lint.info.name);
                    let after = apply_edits(&study, &id, &fix.edits);
                    let sources = memory(&after);
                    let left = analyse(&sources, &id, &options).diagnostics;
                    let again =
                        left.iter().any(|other| other.name == diagnostic.name && other.message == diagnostic.message);
                    let brought: Vec<String> = left
                        .iter()
                        .filter(|other| {
                            other.severity == Severity::Error && !before.iter().any(|old| old.name == other.name)
                        })
                        .map(|other| line(other, &sources))
                        .collect();
                    if again || !brought.is_empty() {
                        wrong.push(format!("{} ({}):\n{after}\nbrings {brought:?}", lint.info.name, fix.title));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    changed.dedup();
    assert_eq!(changed, CHANGED, "the lints that offer a change for the examples of their pages");
}

/// Lints of which the right change can be told.
const CHANGED: &[&str] = &[
    "no-generator-probe",
    "vacuous-gate",
    "single-repetition",
    "inadmissible-estimator",
    "unbracketed-optimum",
    "dirty-database",
    "pool-exceeds-connections",
    "too-few-samples",
    "fixed-order",
    "generator-fails-first",
    "warm-up-too-short",
    "unused-allow",
    "non-monotone-search",
    "floating-mix",
    "summed-rss",
    "window-too-short",
];

#[test]
fn codes_and_names_are_unique_and_explained() {
    let all: Vec<(&str, &str)> = explainable().collect();
    for (index, (code, name)) in all.iter().enumerate() {
        assert!(!all[..index].iter().any(|(other, known)| other == code || known == name), "{code} {name} twice");
        let page = explain(code).unwrap_or_else(|| panic!("{code} has no explanation"));
        assert_eq!(explain(name).as_deref(), Some(page.as_str()));
        assert!(page.contains(name) && page.contains(code), "{page}");
    }
    assert_eq!(explain("E9999"), None);
    assert_eq!(explain("e0301"), explain("E0301"));
}
