//! The outside world as the language sees it: texts and directories by name. The binary reads a disk behind this trait,
//! tests keep everything in memory.

use crate::SourceId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where texts come from.
pub trait Sources {
    /// The text as the user sees it now: an editor's unsaved text wins over the disk.
    ///
    /// # Errors
    /// `Missing` says why there is none.
    fn text(&self, id: &SourceId) -> Result<Arc<str>, Missing>;

    /// The bytes of a file that need not be text, such as a body that is sent. Sources that stand before others ask those.
    ///
    /// # Errors
    /// `Missing` says why there are none.
    fn bytes(&self, id: &SourceId) -> Result<Arc<[u8]>, Missing> {
        self.text(id).map(|text| Arc::from(text.as_bytes()))
    }

    /// The source that `target`, as written in a `use`, `sql`, `script`… of `from`, names. It lies inside the study's root or
    /// in the standard library.
    ///
    /// # Errors
    /// `Missing` says why it can't be used: it does not exist, leaves the root, is reached through a symbolic link…
    fn resolve(&self, from: &SourceId, target: &str) -> Result<SourceId, Missing>;

    /// The directory that `target`, as written in `from`, names (the build context of an image).
    ///
    /// # Errors
    /// `Missing` says why it can't be used.
    fn directory(&self, from: &SourceId, target: &str) -> Result<Directory, Missing>;
}

/// Why a text or directory can't be had, as the end of a sentence: "`x.kdl` …".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The reason.
    pub why: String,
}

impl Missing {
    /// Can't be had because `why`.
    pub fn because(why: impl Into<String>) -> Self {
        Self { why: why.into() }
    }
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Missing {}

/// A directory and what is in it, reduced to a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// Its path relative to the study's root, with `/`.
    pub path: String,
    /// The digest of its files' names and contents.
    pub digest: String,
    /// How many files it holds.
    pub files: u32,
}

/// Texts and directories in memory. Paths resolve as on a disk whose root is the study's root: relative to the file that
/// names them, `std/…` in the standard library, never above the root.
#[derive(Debug, Clone, Default)]
pub struct MemorySources {
    texts: BTreeMap<SourceId, Arc<str>>,
    contents: BTreeMap<SourceId, Arc<[u8]>>,
    directories: BTreeMap<String, Directory>,
}

impl MemorySources {
    /// Nothing at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With the text `name`.
    #[must_use]
    pub fn with(mut self, name: &str, text: impl Into<Arc<str>>) -> Self {
        self.set(name, text);
        self
    }

    /// With the directory `path`, its digest and number of files.
    #[must_use]
    pub fn with_directory(mut self, path: &str, digest: &str, files: u32) -> Self {
        let directory = Directory { path: path.to_owned(), digest: digest.to_owned(), files };
        self.directories.insert(path.to_owned(), directory);
        self
    }

    /// With the file `name`, whose bytes are no text.
    #[must_use]
    pub fn with_bytes(mut self, name: &str, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.contents.insert(SourceId::new(name), bytes.into());
        self
    }

    /// Add the text `name`, or replace it.
    pub fn set(&mut self, name: &str, text: impl Into<Arc<str>>) {
        self.texts.insert(SourceId::new(name), text.into());
    }
}

impl Sources for MemorySources {
    fn text(&self, id: &SourceId) -> Result<Arc<str>, Missing> {
        match self.texts.get(id) {
            Some(text) => Ok(Arc::clone(text)),
            None if self.contents.contains_key(id) => Err(Missing::because("is not UTF-8 text")),
            None => Err(Missing::because("does not exist")),
        }
    }

    fn bytes(&self, id: &SourceId) -> Result<Arc<[u8]>, Missing> {
        match self.contents.get(id) {
            Some(bytes) => Ok(Arc::clone(bytes)),
            None => self.text(id).map(|text| Arc::from(text.as_bytes())),
        }
    }

    fn resolve(&self, from: &SourceId, target: &str) -> Result<SourceId, Missing> {
        let id = SourceId::new(join(from, target)?);
        match self.texts.contains_key(&id) || self.contents.contains_key(&id) {
            true => Ok(id),
            false => Err(Missing::because("does not exist")),
        }
    }

    fn directory(&self, from: &SourceId, target: &str) -> Result<Directory, Missing> {
        let path = join(from, target)?;
        self.directories.get(&path).cloned().ok_or_else(|| Missing::because("is not a directory"))
    }
}

/// `target` as written in `from`, as a path from the study's root without `.` and `..`. It looks at names only; whoever has
/// a disk must also refuse symbolic links.
///
/// # Errors
/// `Missing` where the path is empty, absolute, not written with `/`, or leaves the root.
pub fn join(from: &SourceId, target: &str) -> Result<String, Missing> {
    if target.is_empty() {
        return Err(Missing::because("is an empty path"));
    }
    if target.starts_with('/') {
        return Err(Missing::because("is an absolute path; write it relative to this file"));
    }
    if target.contains('\\') || target.contains('\0') {
        return Err(Missing::because("holds a character that paths can't have; separate directories with `/`"));
    }
    let std = target.starts_with("std/");
    let base = match from.as_str().rsplit_once('/') {
        Some((directory, _)) if !std => directory,
        _ => "",
    };
    let root: usize = if !std && from.is_std() { 1 } else { 0 };
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.len() > root => {
                parts.pop();
            }
            ".." => return Err(Missing::because("leaves the study's root, and nothing outside it is read")),
            part => parts.push(part),
        }
    }
    if std && parts.first() != Some(&"std") {
        return Err(Missing::because("leaves the standard library"));
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_the_root() {
        let cases = [
            ("experiments/capacity.kdl", "./lib.kdl", Ok("experiments/lib.kdl")),
            ("experiments/capacity.kdl", "sql/seed.sql", Ok("experiments/sql/seed.sql")),
            ("experiments/capacity.kdl", "../shared.kdl", Ok("shared.kdl")),
            ("experiments/capacity.kdl", "../../etc/passwd", Err("leaves")),
            ("capacity.kdl", "../x.kdl", Err("leaves")),
            ("capacity.kdl", "a/../../x.kdl", Err("leaves")),
            ("capacity.kdl", "/etc/passwd", Err("absolute")),
            ("capacity.kdl", "", Err("empty")),
            ("capacity.kdl", "a\\b", Err("character")),
            ("experiments/capacity.kdl", "std/http", Ok("std/http")),
            ("experiments/capacity.kdl", "std/../x", Err("standard library")),
            ("std/http", "./postgres", Ok("std/postgres")),
            ("std/http", "../x", Err("leaves")),
        ];
        for (from, target, want) in cases {
            match (join(&SourceId::new(from), target), want) {
                (Ok(got), Ok(want)) => assert_eq!(got, want, "{target} in {from}"),
                (Err(got), Err(want)) => assert!(got.why.contains(want), "{target} in {from}: {got}"),
                (got, want) => panic!("{target} in {from}: got {got:?}, want {want:?}"),
            }
        }
    }

    #[test]
    fn memory_has_what_was_put_in_and_nothing_else() {
        let sources = MemorySources::new()
            .with("a/x.kdl", "x")
            .with_bytes("a/x.bin", [0xFF, 0x00])
            .with_directory("a/ctx", "d1", 3);
        let from = SourceId::new("a/x.kdl");
        assert_eq!(&*sources.text(&from).expect("was put in"), "x");
        assert_eq!(sources.resolve(&from, "x.kdl").expect("was put in"), from);
        assert_eq!(sources.directory(&from, "ctx").expect("was put in").files, 3);
        assert!(sources.resolve(&from, "y.kdl").is_err());
        assert!(sources.directory(&from, "nowhere").is_err());
        let binary = sources.resolve(&from, "x.bin").expect("was put in");
        assert_eq!(&*sources.bytes(&binary).expect("bytes"), [0xFF, 0x00]);
        assert_eq!(&*sources.bytes(&from).expect("a text has bytes"), b"x");
        assert_eq!(sources.text(&binary), Err(Missing::because("is not UTF-8 text")));
    }
}
