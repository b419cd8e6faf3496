//! Every study of the repository is checked and planned, on each of its machines, whole and in each of its profiles: no error, and no
//! warning that the study does not accept with a reason.
#![expect(clippy::disallowed_methods, reason = "the studies lie on the disk")]

use std::path::Path;

use crate::common::{Disk, file, line, repository};
use analysis::{Host, Options, analyse};
use syntax::SourceId;

/// The studies under a directory: files that hold a `study` and not only definitions.
fn studies(directory: &str) -> Vec<String> {
    let mut found = Vec::new();
    let entries =
        std::fs::read_dir(repository().join(directory)).unwrap_or_else(|error| panic!("{directory}: {error}"));
    for entry in entries {
        let entry = entry.expect("an entry");
        let path = format!("{directory}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().expect("a type").is_dir() {
            found.extend(studies(&path));
        } else if Path::new(&path).extension().is_some_and(|extension| extension == "kdl")
            && file(&path).lines().any(|line| line.starts_with("study "))
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The names of the study's nodes of a kind, as its own lines begin.
fn names(text: &str, kind: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix(kind)?.strip_prefix(' '))
        .filter_map(|rest| rest.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_study_of_the_repository_checks_clean_and_has_a_plan() {
    let all = studies("experiments");
    assert!(all.len() >= 10, "{all:?}");
    let mut told = Vec::new();
    for path in &all {
        let text = file(path);
        let machines = names(&text, "machine");
        assert!(!machines.is_empty(), "{path} has no machine");
        for machine in machines {
            for profile in std::iter::once(None).chain(names(&text, "profile").into_iter().map(Some)) {
                let options = Options {
                    machine: Some(machine.clone()),
                    profile: profile.clone(),
                    host: Some(Host { cpus: "0-127".parse().expect("a CPU set"), ..Host::default() }),
                    ..Options::default()
                };
                let analysed = analyse(&Disk, &SourceId::new(path.as_str()), &options);
                let place = format!("{path} on {machine}, {}", profile.as_deref().unwrap_or("whole"));
                told.extend(
                    analysed.diagnostics.iter().map(|diagnostic| format!("{place}: {}", line(diagnostic, &Disk))),
                );
                match analysed.plan {
                    None => told.push(format!("{place}: no plan")),
                    Some(plan) => {
                        let measured =
                            plan.phases.iter().all(|phase| !phase.cells.is_empty() && !phase.slots.is_empty());
                        if !measured || plan.steps.is_empty() || plan.report.items.is_empty() {
                            told.push(format!("{place}: its plan measures or reports nothing"));
                        }
                    }
                }
            }
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}

#[test]
fn a_study_with_a_mistake_would_be_told() {
    let broken = file("experiments/cpu-bound.kdl")
        .replace("estimate memory-growth by=median", "estimate memory-growht by=median");
    let sources = crate::common::memory(&broken);
    let analysed = analyse(&sources, &SourceId::new("study.kdl"), &Options::default());
    assert!(analysed.diagnostics.iter().any(|diagnostic| line(diagnostic, &sources).contains("memory-growht")));
}
