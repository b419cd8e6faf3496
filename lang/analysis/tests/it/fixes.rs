//! Every fix of every example removes the diagnostic that offers it, and a safe one brings no error with it.

use std::collections::BTreeSet;

use crate::common::{around, host, line, memory};
use analysis::codes::CODES;
use analysis::fix::{self, Which};
use analysis::lint::LINTS;
use analysis::{Options, analyse};
use syntax::{Applicability, Severity, SourceId, Sources, apply_edits};

/// Parts of studies that have something wrong: the registry's examples, the reader's, the pages', and slips that have fixes.
fn parts() -> Vec<String> {
    let mut parts: Vec<String> = CODES.iter().map(|info| info.bad.to_owned()).collect();
    for lint in LINTS {
        let blocks = lint.page.split("```kdl\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0.to_owned()));
        parts.extend(blocks);
    }
    parts.extend(syntax::PROBLEMS.iter().filter(|row| row.bad.times == 1).map(|row| row.bad.text.to_owned()));
    for slip in [
        "candidate app { image \"app:1\"; listen 8080; memory 1GiB; ready GET=/ within=10s }",
        "phase ceiling like=saturation { over candidate, cores; gate generator-probe of=sweep.throughput; repaet 6 }",
        "workload mixed { stream read { get \"/\"; expect 200 { body \"ok\" } } }",
        "study demo { title 5; question \"q\" }",
        "machine bench { cpus candidat=\"0\" database=\"1\" load=\"2\" }",
    ] {
        parts.push(slip.to_owned());
    }
    parts
}

#[test]
fn a_fix_removes_what_offers_it() {
    let id = SourceId::new("study.kdl");
    let options = Options { host: Some(host()), ..Options::default() };
    let mut wrong = Vec::new();
    let (mut safe, mut guesses) = (BTreeSet::new(), BTreeSet::new());
    for part in parts() {
        let study = around(&part);
        let sources = memory(&study);
        let analysed = analyse(&sources, &id, &options);
        let errors = |found: &[syntax::Diagnostic]| found.iter().filter(|one| one.severity == Severity::Error).count();
        for diagnostic in &analysed.diagnostics {
            for fix in &diagnostic.fixes {
                assert!(!fix.title.is_empty() && !fix.edits.is_empty(), "{}", line(diagnostic, &sources));
                let mut mended = memory(&study);
                for edit in &fix.edits {
                    let name = edit.at.source.as_str();
                    let text = sources.text(&edit.at.source).expect("a source");
                    mended.set(name, apply_edits(&text, &edit.at.source, &fix.edits));
                }
                let after = analyse(&mended, &id, &options).diagnostics;
                let same = |one: &&syntax::Diagnostic| one.code == diagnostic.code && one.message == diagnostic.message;
                let count = |found: &[syntax::Diagnostic]| found.iter().filter(same).count();
                if count(&after) >= count(&analysed.diagnostics) {
                    wrong.push(format!("still there after “{}”: {}", fix.title, line(diagnostic, &sources)));
                }
                match fix.applicability {
                    Applicability::Safe => {
                        safe.insert(diagnostic.code);
                        if errors(&after) > errors(&analysed.diagnostics) {
                            wrong.push(format!("“{}” brings an error: {}", fix.title, line(diagnostic, &sources)));
                        }
                    }
                    Applicability::Unsafe => drop(guesses.insert(diagnostic.code)),
                }
            }
        }
        let fixed = fix::fix(&sources, &id, &options, Which::Safe);
        let left = fixed.analysed.diagnostics.iter().flat_map(|one| &one.fixes);
        let left = left.filter(|fix| fix.applicability == Applicability::Safe).count();
        assert!(fixed.settled && left == 0, "{left} safe fixes are left of\n{part}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        safe.len() >= 15 && guesses.len() >= 8,
        "{} codes with safe fixes, {} with guesses",
        safe.len(),
        guesses.len()
    );
}
