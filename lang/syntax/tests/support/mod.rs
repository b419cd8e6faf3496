//! What the tests of this crate share: the official KDL suite, texts that look like studies, the canonical form of a tree,
//! and a generator of numbers that gives the same ones on every machine.
#![expect(clippy::disallowed_methods, reason = "the official suite is read from the published `kdl` package")]
#![expect(clippy::disallowed_types, reason = "cargo is asked where that package is")]
// Each test file uses a part of it.
#![expect(dead_code, reason = "shared by test files that each use a part")]

use std::path::PathBuf;
use std::process::Command;
use syntax::{Entry, Node, Tree, Value};

/// The texts that are kept beside the tests, by name: those that once were read wrong, and a study with every mistake.
pub fn corpus() -> Vec<(String, String)> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus"));
    let files = std::fs::read_dir(folder).expect("the corpus");
    let mut texts: Vec<(String, String)> = files
        .map(|file| {
            let path = file.expect("a directory entry").path();
            let text = String::from_utf8(std::fs::read(&path).expect("a readable file")).expect("UTF-8");
            (path.file_name().expect("a file name").to_string_lossy().into_owned(), text)
        })
        .collect();
    texts.sort();
    texts
}

/// One case of the official suite.
pub struct Case {
    pub name: String,
    pub input: String,
    /// The canonical form, where the suite has one.
    pub expected: Option<String>,
}

impl Case {
    pub fn must_be_refused(&self) -> bool {
        self.name.ends_with("_fail")
    }
}

/// The official suite, as the published `kdl` package carries it, by name.
pub fn suite() -> Vec<Case> {
    let folder = kdl_package().join("tests/test_cases");
    let read = |path: PathBuf| String::from_utf8(std::fs::read(path).expect("a readable file")).expect("UTF-8");
    let mut cases: Vec<Case> = std::fs::read_dir(folder.join("input"))
        .expect("the suite's inputs")
        .map(|file| {
            let path = file.expect("a directory entry").path();
            let expected = folder.join("expected_kdl").join(path.file_name().expect("a file name"));
            Case {
                name: path.file_stem().expect("a file name").to_string_lossy().into_owned(),
                input: read(path),
                expected: expected.exists().then(|| read(expected)),
            }
        })
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(cases.len() >= 320, "the suite has {} cases, and had 320", cases.len());
    cases
}

/// Where cargo keeps the `kdl` package, which it has because these tests are built with it. First it is asked about what it
/// has, then with leave to fetch: it answers for the whole workspace only, of which other packages may be missing.
fn kdl_package() -> PathBuf {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let attempts = [vec!["--offline", "--filter-platform", &host], vec!["--offline"], vec![]];
    let mut said = String::new();
    for attempt in attempts {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--manifest-path"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
            .args(attempt)
            .output()
            .expect("cargo runs");
        let metadata = String::from_utf8(output.stdout).expect("cargo writes UTF-8");
        if let Some(folder) = folder_of_kdl(&metadata) {
            return folder;
        }
        said.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    panic!("cargo knows no kdl package:\n{said}");
}

fn folder_of_kdl(metadata: &str) -> Option<PathBuf> {
    let marker = "\"manifest_path\":\"";
    metadata
        .match_indices(marker)
        .filter_map(|(at, _)| metadata[at + marker.len()..].split('"').next())
        .filter_map(|manifest| PathBuf::from(manifest).parent().map(PathBuf::from))
        .find(|folder| {
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.strip_prefix("kdl-").is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
        })
}

/// The tree in the suite's canonical form: no comments, plain strings, decimal numbers, only the last of equal properties,
/// empty blocks left out.
pub fn canonical(tree: &Tree) -> String {
    let mut out = String::new();
    for node in tree.nodes() {
        write_node(&mut out, node, 0);
    }
    if out.is_empty() {
        out.push('\n');
    }
    out
}

fn write_node(out: &mut String, node: Node<'_>, depth: usize) {
    out.push_str(&"    ".repeat(depth));
    write_annotation(out, node.annotation().map(|(name, _)| name));
    out.push_str(&word(&node.name()));
    let entries: Vec<Entry<'_>> = node.entries().collect();
    for (i, entry) in entries.iter().enumerate() {
        let key = entry.key().map(|(key, _)| key);
        let overridden =
            key.is_some() && entries[i + 1..].iter().any(|later| later.key().map(|(other, _)| other) == key);
        if overridden {
            continue;
        }
        out.push(' ');
        if let Some(key) = key {
            out.push_str(&word(&key));
            out.push('=');
        }
        write_annotation(out, entry.annotation().map(|(name, _)| name));
        out.push_str(&value(&entry.value()));
    }
    if node.children().next().is_some() {
        out.push_str(" {\n");
        for child in node.children() {
            write_node(out, child, depth + 1);
        }
        out.push_str(&"    ".repeat(depth));
        out.push('}');
    }
    out.push('\n');
}

fn write_annotation(out: &mut String, annotation: Option<std::borrow::Cow<'_, str>>) {
    if let Some(name) = annotation {
        out.push('(');
        out.push_str(&word(&name));
        out.push(')');
    }
}

fn word(text: &str) -> String {
    if syntax::is_bare(text) { text.to_owned() } else { syntax::quote(text) }
}

pub fn value(value: &Value<'_>) -> String {
    match value {
        Value::String { text, .. } => word(text),
        Value::Integer(i) => i.to_string(),
        Value::Float(f) => float(*f),
        Value::Bool(b) => format!("#{b}"),
        Value::Null => "#null".to_owned(),
        Value::Quantity(text) => format!("<quantity {text}>"),
        Value::Unknown => "<unknown>".to_owned(),
    }
}

pub fn float(f: f64) -> String {
    match f {
        f if f.is_nan() => "#nan".to_owned(),
        f if f == f64::INFINITY => "#inf".to_owned(),
        f if f == f64::NEG_INFINITY => "#-inf".to_owned(),
        f => format!("{f:?}"),
    }
}

/// How much more than usual is tried: `FUZZ=50 cargo test -p syntax --release` tries fifty times as many texts, and other
/// ones than usual.
pub fn effort() -> usize {
    std::env::var("FUZZ").ok().and_then(|effort| effort.parse().ok()).unwrap_or(1)
}

/// The numbers for the test called `seed`; with another effort they are others.
pub fn random(seed: u64) -> Random {
    Random(seed + (effort() as u64 - 1) * 1_000_003)
}

/// SplitMix64 (Steele, Lea and Flood, 2014): small, and the same everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// What texts are mutated with: the tokens of KDL, the habits of other formats, and characters that are easy to get wrong.
pub const PIECES: &[&str] = &[
    "\n",
    "\r\n",
    "\r",
    "\u{85}",
    "\u{2028}",
    "\u{B}",
    " ",
    "\t",
    "\u{A0}",
    "\u{3000}",
    ";",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "=",
    "\\",
    "\\\n",
    "/-",
    "//",
    "/*",
    "*/",
    "/",
    "\"",
    "\"\"",
    "\"\"\"",
    "#\"",
    "\"#",
    "#\"\"\"",
    "\"\"\"#",
    "##\"",
    "#",
    "#true",
    "#null",
    "#inf",
    "#-inf",
    "#nan",
    "true",
    "null",
    "-inf",
    "r\"x\"",
    "r#\"",
    "'",
    "'x y'",
    ",",
    ":",
    "-",
    "- ",
    "+",
    ".",
    "_",
    "0",
    "1",
    "-1",
    "1.5",
    "1e5",
    "1e400",
    "0x1F",
    "0b12",
    ".5",
    "5.",
    "10s",
    "115%",
    "0-3",
    "64/s",
    "1_000",
    "${x}",
    "${",
    "$",
    "a/b",
    "./x",
    "(t)",
    "k=1",
    "k=",
    "=v",
    "\\n",
    "\\u{e9}",
    "\\u{D800}",
    "\\q",
    "é",
    "𝄞",
    "\u{FEFF}",
    "\u{0}",
    "\u{7F}",
    "\u{202E}",
    "node",
    "a",
    "b c",
    "/- kdl-version 2\n",
];

/// `text` with one to eight changes.
pub fn mutate(text: &str, random: &mut Random) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(8) {
        let at = random.below(text.len() + 1);
        match random.below(5) {
            0 | 1 => {
                let piece: Vec<char> = random.pick(PIECES).chars().collect();
                text.splice(at..at, piece);
            }
            2 => {
                let end = (at + 1 + random.below(6)).min(text.len());
                text.drain(at..end);
            }
            3 => {
                let end = (at + 1 + random.below(20)).min(text.len());
                let copy: Vec<char> = text[at..end].to_vec();
                let to = random.below(text.len() + 1);
                text.splice(to..to, copy);
            }
            _ => {
                if at < text.len() {
                    let other = random.below(text.len());
                    text.swap(at, other);
                }
            }
        }
    }
    text.into_iter().collect()
}

/// A text that looks like a study, with a bit of everything that studies have.
pub const STUDY: &str = include_str!("../../corpus/study.kdl");
