//! The expanded study: it has no diagnostic that the study has not, and gives the same plan. And the origin of values.
#![expect(clippy::disallowed_methods, reason = "tests read the repository's own files")]

use std::sync::Arc;

use crate::common::{Disk, repository};
use analysis::{Analysed, Options, analyse};
use syntax::{Diagnostic, Directory, LineIndex, Missing, SourceId, Sources};

/// Sources in which one text is another.
pub struct With<'a> {
    sources: &'a dyn Sources,
    id: &'a SourceId,
    text: Arc<str>,
}

impl Sources for With<'_> {
    fn text(&self, id: &SourceId) -> Result<Arc<str>, Missing> {
        if id == self.id { Ok(Arc::clone(&self.text)) } else { self.sources.text(id) }
    }

    fn bytes(&self, id: &SourceId) -> Result<Arc<[u8]>, Missing> {
        if id == self.id { Ok(Arc::from(self.text.as_bytes())) } else { self.sources.bytes(id) }
    }

    fn resolve(&self, from: &SourceId, target: &str) -> Result<SourceId, Missing> {
        self.sources.resolve(from, target)
    }

    fn directory(&self, from: &SourceId, target: &str) -> Result<Directory, Missing> {
        self.sources.directory(from, target)
    }
}

/// Asserts that the expanded study says the same.
pub fn says_the_same(sources: &dyn Sources, id: &SourceId, options: &Options, analysed: &Analysed, name: &str) {
    let text = analysed.expanded();
    let with = With { sources, id, text: Arc::from(text.as_str()) };
    let again = analyse(&with, id, options);
    let told = |diagnostics: &[Diagnostic]| -> Vec<String> {
        let mut told: Vec<String> = diagnostics
            .iter()
            // Another profile, or a definition that nobody uses, is no part of what is expanded.
            .filter(|diagnostic| diagnostic.name != "unused-definition")
            .map(|diagnostic| format!("{} {}", diagnostic.code, diagnostic.message))
            .collect();
        told.sort();
        told.dedup();
        told
    };
    assert_eq!(told(&again.diagnostics), told(&analysed.diagnostics), "{name}\n{text}");
    assert_eq!(again.plan, analysed.plan, "{name}: the plan is another one\n{text}");
    assert_eq!(again.expanded(), text, "{name}: expanding again changes it");
    assert_eq!(syntax::format(&text).as_deref(), Ok(text.as_str()), "{name}: it is not formatted");
}

#[test]
fn every_study_says_the_same_when_it_is_expanded() {
    let mut studies = Vec::new();
    let mut left = vec!["experiments".to_owned(), "tests/studies".to_owned()];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(repository().join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() && !path.contains("candidates") {
                left.push(path);
            } else if path.ends_with(".kdl") {
                studies.push(path);
            }
        }
    }
    studies.sort();
    let mut expanded = 0;
    for path in studies {
        let id = SourceId::new(path.as_str());
        let look = analyse(&Disk, &id, &Options::default());
        let machines: Vec<String> = look.study.names("machine").map(str::to_owned).collect();
        let profiles: Vec<Option<String>> =
            std::iter::once(None).chain(look.study.profiles.iter().map(|profile| Some(profile.key.clone()))).collect();
        if look.study.only("study").is_none() {
            continue;
        }
        for machine in machines {
            for profile in &profiles {
                let options =
                    Options { machine: Some(machine.clone()), profile: profile.clone(), ..Options::default() };
                let analysed = analyse(&Disk, &id, &options);
                // Tests also keep studies that must be refused; some are, on some of their machines.
                if analysed.has_errors() {
                    continue;
                }
                says_the_same(&Disk, &id, &options, &analysed, &format!("{path} on {machine}, {profile:?}"));
                expanded += 1;
            }
        }
    }
    assert!(expanded >= 6, "only {expanded} studies were expanded");
}

const CAPACITY: &str = "experiments/capacity.kdl";

/// One value as `who file:line gave …`.
fn told(profile: Option<&str>, path: &str) -> Vec<String> {
    let id = SourceId::new(CAPACITY);
    let options =
        Options { machine: Some("two-cores".to_owned()), profile: profile.map(str::to_owned), ..Options::default() };
    let analysed = analyse(&Disk, &id, &options);
    let line = |at: &syntax::Location| {
        let text = Disk.text(&at.source).expect("a text");
        let line = LineIndex::new(&text).position(&text, at.span.start).line as usize;
        text.lines().nth(line).unwrap_or("").trim().to_owned()
    };
    let explained = match analysed.explain_value(path) {
        Ok(explained) => explained,
        Err(missing) => return vec![format!("near {:?}", missing.near)],
    };
    explained
        .iter()
        .map(|value| {
            let giver = value.giver.as_ref().map_or("the default".to_owned(), |giver| {
                format!("{} ({}: {})", giver.who, giver.at.source, line(&giver.at))
            });
            let replaced: String = value
                .replaced
                .iter()
                .map(|giver| format!("; {} gave {} ({})", giver.who, giver.written, line(&giver.at)))
                .collect();
            format!("{} = {}, {giver}{replaced}", value.path, value.value)
        })
        .collect()
}

#[test]
fn every_value_says_where_it_comes_from() {
    let mut out = String::new();
    for (profile, path) in [
        (None, "phase.ceiling.repeat"),
        (Some("smoke"), "phase.ceiling.repeat"),
        (None, "phase.ceiling.load"),
        (Some("smoke"), "factor.pool"),
        (None, "phase.ceiling.estimate.service.p99.by"),
        (None, "phase.ceiling.gate.steal.max"),
        (None, "candidate.go.env.POOL"),
        (None, "phase.ceilling.repeat"),
        (None, "nothing.at.all"),
    ] {
        out.push_str(&format!("# {path} {}\n", profile.unwrap_or("")));
        for line in told(profile, path) {
            out.push_str(&format!("{line}\n"));
        }
    }
    let path = repository().join("lang/analysis/tests/origins.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &out).expect("the file can be written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(out, golden, "UPDATE=1 writes it anew; read what it wrote");
}
