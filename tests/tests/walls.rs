//! The walls of the house: who may depend on whom, over `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// Direct dependencies of every workspace member, by name; development ones apart.
struct House {
    normal: BTreeMap<String, BTreeSet<String>>,
    place: BTreeMap<String, String>,
}

fn house() -> House {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut house = House { normal: BTreeMap::new(), place: BTreeMap::new() };
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name").to_owned();
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        let place =
            manifest.parent().and_then(|path| path.strip_prefix(root()).ok()).expect("inside").display().to_string();
        let normal = package["dependencies"]
            .as_array()
            .expect("dependencies")
            .iter()
            .filter(|dependency| dependency["kind"].is_null())
            .map(|dependency| dependency["name"].as_str().expect("a name").to_owned())
            .collect();
        house.place.insert(name.clone(), place);
        house.normal.insert(name, normal);
    }
    house
}

#[test]
fn the_house_has_the_rooms_that_the_map_names() {
    let map = std::fs::read_to_string(root().join("docs/architecture.md")).expect("the map");
    for place in house().place.values() {
        assert!(map.contains(&format!("| `{place}` |")), "docs/architecture.md has no row for {place}");
    }
    // And nothing that it names is missing: every path in backticks, from the root or from docs/.
    let mut named = 0;
    for path in map.split('`').skip(1).step_by(2).filter(|name| name.contains('/') && !name.contains(' ')) {
        let there = root().join(path).exists() || root().join("docs").join(path).exists();
        assert!(there, "docs/architecture.md names {path}, which does not exist");
        named += 1;
    }
    assert!(named > 15, "the test looked at nothing");
}

#[test]
fn language_crates_depend_on_language_crates_and_pure_libraries() {
    let house = house();
    let pure = ["base64", "blake3", "csv", "petgraph", "serde", "serde_json", "kdl", "unicode-width"];
    let mut checked = 0;
    for (name, place) in house.place.iter().filter(|(_, place)| place.starts_with("lang/")) {
        for dependency in &house.normal[name] {
            let ours = house.place.get(dependency).is_some_and(|place| place.starts_with("lang/"));
            assert!(ours || pure.contains(&dependency.as_str()), "{place} depends on {dependency}");
            checked += 1;
        }
    }
    assert!(checked > 4, "the test looked at nothing");
    assert!(
        house.normal["plan"].iter().all(|dependency| !house.place.contains_key(dependency)),
        "plan depends on none of ours"
    );
}

#[test]
fn runtime_crates_reach_nothing_of_the_language_but_the_plan() {
    let house = house();
    for (name, place) in house.place.iter().filter(|(_, place)| place.starts_with("runtime/")) {
        if name == "exp" {
            continue;
        }
        for dependency in &house.normal[name] {
            let language = house.place.get(dependency).is_some_and(|place| place.starts_with("lang/"));
            assert!(!language || dependency == "plan", "{place} depends on {dependency}");
        }
    }
    for pure in ["stats", "judge", "report"] {
        for banned in ["tokio", "bollard", "tokio-postgres", "libc", "load", "engine"] {
            assert!(!house.normal[pure].contains(banned), "runtime/{pure} is pure and depends on {banned}");
        }
    }
}

#[test]
fn some_libraries_have_one_importing_crate() {
    let house = house();
    for (library, only) in
        [("kdl", "syntax"), ("bollard", "engine"), ("tokio-postgres", "engine"), ("clap", "exp"), ("miette", "exp")]
    {
        for (name, dependencies) in &house.normal {
            assert!(name == only || !dependencies.contains(library), "{name} depends on {library}; only {only} may");
        }
    }
    // Within the engine, one module each.
    for (library, module) in [("bollard", "docker"), ("tokio_postgres", "postgres")] {
        let source = root().join("runtime/engine/src");
        for file in rust_files(&source) {
            let inside = file.strip_prefix(&source).expect("inside").display().to_string();
            let text = std::fs::read_to_string(&file).expect("a source file");
            let uses =
                text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(&format!("{library}::")));
            assert!(!uses || inside.starts_with(module), "{inside} uses {library}; only {module} may");
        }
    }
}

/// Clippy's word on a crate, with the bans of `lang/clippy.toml`.
fn clippy(directory: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO"))
        .arg("clippy")
        .args(arguments)
        .args(["--offline", "--", "-D", "warnings"])
        .current_dir(directory)
        .env("CLIPPY_CONF_DIR", root().join("lang"))
        .output()
        .expect("cargo clippy runs");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn the_language_does_no_io() {
    let (clean, complaints) = clippy(&root(), &["-p", "plan", "-p", "syntax", "-p", "analysis", "--lib"]);
    assert!(clean, "{complaints}");
    // Nobody switched the bans off outside of tests.
    for place in ["lang/plan/src", "lang/syntax/src", "lang/analysis/src"] {
        for file in rust_files(&root().join(place)) {
            let text = std::fs::read_to_string(&file).expect("a source file");
            assert!(!text.contains("disallowed_"), "{} switches a ban off", file.display());
        }
    }
}

#[test]
fn a_crate_that_tries_io_is_refused() {
    let place = tests::Place::new("io");
    place.write("Cargo.toml", "[package]\nname = \"tries\"\nedition = \"2024\"\n[workspace]\n");
    let attempts = [
        (
            "std::fs::read_to_string",
            "pub fn f() -> String { std::fs::read_to_string(\"/etc/hostname\").unwrap_or_default() }",
        ),
        ("std::fs::File", "pub fn f() -> bool { std::fs::File::open(\"/etc/hostname\").is_ok() }"),
        ("std::net::TcpStream", "pub fn f() -> bool { std::net::TcpStream::connect(\"127.0.0.1:1\").is_ok() }"),
        ("std::process::Command", "pub fn f() -> std::process::Command { std::process::Command::new(\"true\") }"),
        ("std::env::var", "pub fn f() -> bool { std::env::var(\"HOME\").is_ok() }"),
        ("std::time::Instant", "pub fn f() -> std::time::Instant { std::time::Instant::now() }"),
        ("std::println", "pub fn f() { println!(\"x\") }"),
    ];
    for (banned, code) in attempts {
        place.write("src/lib.rs", &format!("//! Tries.\n{code}\n"));
        let (clean, complaints) = clippy(place.path(), &["--lib"]);
        assert!(!clean && complaints.contains(banned), "{banned} is not refused:\n{complaints}");
    }
    place.write("src/lib.rs", "//! Honest.\npub fn f() -> u32 { 7 }\n");
    let (clean, complaints) = clippy(place.path(), &["--lib"]);
    assert!(clean, "{complaints}");
}

#[test]
fn source_files_stay_readable() {
    let mut files = 0;
    for place in ["lang", "runtime", "tests"] {
        for file in rust_files(&root().join(place)) {
            files += 1;
            let text = std::fs::read_to_string(&file).expect("a source file");
            assert!(text.starts_with("//!"), "{} does not begin by saying what it is", file.display());
        }
    }
    assert!(files > 50, "the test looked at nothing");
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != "target") {
                    left.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}
