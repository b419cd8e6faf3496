//! What the tests share: sources on the repository's disk, a small clean study, printing of diagnostics.
#![expect(clippy::disallowed_methods, reason = "tests read the repository's own files")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use analysis::stdlib;
use syntax::{Diagnostic, Directory, LineIndex, MemorySources, Missing, SourceId, Sources, join};

/// The repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the repository.
pub fn file(path: &str) -> String {
    let path = repository().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Sources of the repository itself, with the standard library.
pub struct Disk;

impl Sources for Disk {
    fn text(&self, id: &SourceId) -> Result<Arc<str>, Missing> {
        if let Some(text) = stdlib::text(id.as_str()) {
            return Ok(Arc::from(text));
        }
        match std::fs::read_to_string(repository().join(id.as_str())) {
            Ok(text) => Ok(Arc::from(text)),
            Err(error) => Err(Missing::because(format!("can't be read: {error}"))),
        }
    }

    fn resolve(&self, from: &SourceId, target: &str) -> Result<SourceId, Missing> {
        let id = SourceId::new(join(from, target)?);
        let known = stdlib::text(id.as_str()).is_some() || repository().join(id.as_str()).is_file();
        if known { Ok(id) } else { Err(Missing::because("does not exist")) }
    }

    fn directory(&self, from: &SourceId, target: &str) -> Result<Directory, Missing> {
        let path = join(from, target)?;
        if repository().join(&path).is_dir() {
            // What the directories hold doesn't matter to these tests; that they are there does.
            Ok(Directory { digest: format!("digest of {path}"), path, files: 1 })
        } else {
            Err(Missing::because("is not a directory"))
        }
    }
}

/// Memory with the standard library and what the examples use.
pub fn memory(study: &str) -> MemorySources {
    let mut sources = MemorySources::new()
        .with("study.kdl", study)
        .with("library.kdl", "define phase quick like=saturation { load { for \"5s\" } }\nuse \"std/http\"\n")
        .with("other-study.kdl", "study other { title \"t\"; question \"q\" }\n")
        .with("sql/schema.sql", "CREATE TABLE events (id bigint);")
        .with("sql/insert.sql", "INSERT INTO events VALUES (1);")
        .with_directory("candidates/app", "digest of app", 3)
        .with_directory("candidates/probe", "digest of probe", 3);
    for (name, text) in stdlib::FILES {
        sources.set(name, *text);
    }
    sources
}

/// A diagnostic in one line: `3:14 E0301 unknown-node: …`.
pub fn line(diagnostic: &Diagnostic, sources: &dyn Sources) -> String {
    let at = &diagnostic.primary.at;
    let place = match sources.text(&at.source) {
        Ok(text) => {
            let position = LineIndex::new(&text).position(&text, at.span.start);
            format!("{}:{}:{}", at.source, position.line + 1, position.utf8 + 1)
        }
        Err(_) => at.source.to_string(),
    };
    format!("{place} {} {}: {}", diagnostic.code, diagnostic.name, diagnostic.message)
}
