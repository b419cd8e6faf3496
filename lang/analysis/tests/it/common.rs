//! What the tests share: sources on the repository's disk, a small clean study, printing of diagnostics.
#![expect(clippy::disallowed_methods, reason = "tests read the repository's own files")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use analysis::{FileSystem, Host, Listening, stdlib};
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

    fn bytes(&self, id: &SourceId) -> Result<Arc<[u8]>, Missing> {
        let read = std::fs::read(repository().join(id.as_str()));
        read.map(Arc::from).map_err(|error| Missing::because(format!("can't be read: {error}")))
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
        .with("data/users.csv", "name,badge\nada,1\n\"Hopper, Grace\",2\n")
        .with("data/ragged.csv", "a,b\n1,2\n3\n")
        .with("data/empty.csv", "a,b\n")
        .with("data/twice.csv", "a,a\n1,2\n")
        .with_bytes("data/upload.bin", [0xFF, 0x00, 0x7F])
        .with_directory("candidates/app", "digest of app", 3)
        .with_directory("candidates/probe", "digest of probe", 3);
    for (name, text) in stdlib::FILES {
        sources.set(name, *text);
    }
    sources
}

/// A small study without a single diagnostic. Examples and suites replace and add nodes.
pub const BASE: &str = r#"study demo {
    title "A demonstration"
    question "How fast is it?"
}
use "std/http"
machine bench { cpus candidate="0" database="1" load="2" }
factor cores 1
probe nginx { process builtin; listen 8090; ready GET="/" within="10s" }
candidate app { image "app:1"; listen 8080; ready GET="/" }
workload mixed { stream read { GET "/"; expect 200 { body "ok" } } }
phase sweep like=saturation { over candidate cores }
phase ceiling like=saturation { over candidate cores; gate generator-probe of=sweep.throughput; repeat 6 }
agreement phases { between ceiling.throughput sweep.throughput within="5%" }
report { table "Ceiling" of=ceiling.throughput rows=candidate columns=cores }
"#;

/// The base study with the nodes of `part` in it: a node of the same kind and name is replaced, others are added. The
/// part comes first, so that its lines keep their numbers.
pub fn around(part: &str) -> String {
    let kinds = ["study", "report", "contract"];
    let identity = |node: &syntax::Node<'_>| {
        let name = node.name().into_owned();
        let key = match kinds.contains(&name.as_str()) {
            true => String::new(),
            false => node.argument(0).map_or(String::new(), |entry| entry.value_text().to_owned()),
        };
        (name, key)
    };
    let own = syntax::parse(Arc::from(part));
    let taken: Vec<(String, String)> = own.tree.nodes().map(|node| identity(&node)).collect();
    let base = syntax::parse(Arc::from(BASE));
    let mut study = format!("{}\n", part.trim_end());
    for node in base.tree.nodes().filter(|node| !taken.contains(&identity(node))) {
        study.push_str(node.span().of(BASE));
        study.push('\n');
    }
    study
}

/// A host of four CPUs with sshd, on which the base study runs.
pub fn host() -> Host {
    Host {
        cpus: "0-3".parse().expect("a CPU set"),
        memory_bytes: Some(8 << 30),
        open_files: Some(1_024),
        ephemeral_ports: Some((32_768, 60_999)),
        disks: vec![FileSystem { path: "/var/lib/docker".to_owned(), free_bytes: 20 << 30 }],
        listening: vec![Listening { port: 22, holder: "sshd (pid 812)".to_owned() }],
        ..Host::default()
    }
}

/// A host of `tests/hosts`, as a file describes it.
pub fn described(name: &str) -> Host {
    serde_json::from_str(&file(&format!("lang/analysis/tests/hosts/{name}.json")))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
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
