//! Study sources on the disk, and the stdlib inside the binary.
//!
//! Nothing outside the study's root is ever read: `..`, absolute paths and symlinks that lead out are refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use analysis::stdlib;
use plan::ContentHash;
use syntax::{Directory, Missing, SourceId, Sources};

/// Reads a study and what it uses from the directory that holds it.
pub struct DiskSources {
    /// The study's directory as it was named, `.` where the file was named alone.
    root: PathBuf,
    /// The same, with symlinks resolved.
    real_root: PathBuf,
    read: Mutex<BTreeMap<SourceId, Arc<str>>>,
}

impl DiskSources {
    /// Sources of the study at `file`, and its own id.
    ///
    /// # Errors
    /// A sentence that says why the file can't be read.
    pub fn open(file: &Path) -> Result<(Self, SourceId), String> {
        let shown = file.display();
        let metadata = fs::metadata(file).map_err(|error| format!("{shown} can't be read: {error}"))?;
        if metadata.is_dir() {
            return Err(format!("{shown} is a directory; name a study, a .kdl file"));
        }
        let root = match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let real_root =
            fs::canonicalize(&root).map_err(|error| format!("{} can't be read: {error}", root.display()))?;
        let sources = Self { root, real_root, read: Mutex::new(BTreeMap::new()) };
        let id = SourceId::new(file.to_string_lossy().into_owned());
        sources.text(&id).map_err(|missing| missing.why)?;
        Ok((sources, id))
    }

    /// The study's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// From now on `id` has this text, whatever the disk holds.
    pub fn set(&self, id: &SourceId, text: Arc<str>) {
        self.read.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(id.clone(), text);
    }

    /// Writes the text of a source that was read before, if it lies inside the study's root and nobody changed it since.
    ///
    /// # Errors
    /// A sentence that says why it was left as it is.
    pub fn write(&self, id: &SourceId, text: &str) -> Result<(), String> {
        let path = Path::new(id.as_str());
        let inside = fs::canonicalize(path).is_ok_and(|real| real.starts_with(&self.real_root));
        if stdlib::text(id.as_str()).is_some() || !inside {
            return Err(format!("{id} lies outside of {}, where nothing is changed", self.root.display()));
        }
        let before = self.text(id).map_err(|missing| missing.why)?;
        crate::rewrite::replace(path, &before, text)?;
        self.set(id, Arc::from(text));
        Ok(())
    }

    /// The path that `target`, as `from` writes it, names; inside the root.
    fn locate(&self, from: &SourceId, target: &str) -> Result<PathBuf, Missing> {
        let missing = |why: String| Missing { why };
        let written = Path::new(target);
        if target.is_empty() {
            return Err(missing("the path is empty".to_owned()));
        }
        if written.is_absolute() {
            return Err(missing(format!(
                "`{target}` is absolute; a study reads only what lies beside it, so write a relative path"
            )));
        }
        // Below the root, by names alone; what symlinks make of it is seen afterwards.
        let base = Path::new(from.as_str()).parent().unwrap_or(Path::new(""));
        let mut below = base.strip_prefix(&self.root).unwrap_or(Path::new("")).to_owned();
        for component in written.components() {
            match component {
                Component::ParentDir => {
                    if !below.pop() {
                        return Err(missing(format!(
                            "`{target}` leaves {}; a study reads only what lies beside it",
                            self.root.display()
                        )));
                    }
                }
                Component::CurDir => {}
                other => below.push(other),
            }
        }
        let path = self.root.join(below);
        let real =
            fs::canonicalize(&path).map_err(|error| missing(format!("{} can't be read: {error}", path.display())))?;
        if !real.starts_with(&self.real_root) {
            return Err(missing(format!("`{target}` leads through a symlink out of {}", self.root.display())));
        }
        Ok(path)
    }
}

impl Sources for DiskSources {
    fn text(&self, id: &SourceId) -> Result<Arc<str>, Missing> {
        if let Some(text) = stdlib::text(id.as_str()) {
            return Ok(Arc::from(text));
        }
        let mut read = self.read.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(text) = read.get(id) {
            return Ok(Arc::clone(text));
        }
        let unread = |error: std::io::Error| Missing { why: format!("{id} can't be read: {error}") };
        // A pipe would be waited for without end.
        if !fs::metadata(id.as_str()).map_err(unread)?.is_file() {
            return Err(Missing { why: format!("{id} is no file that can be read as text") });
        }
        let bytes = fs::read(id.as_str()).map_err(unread)?;
        let text: Arc<str> = match String::from_utf8(bytes) {
            Ok(text) => Arc::from(text),
            Err(error) => {
                return Err(Missing {
                    why: format!("{id} is not UTF-8 text: byte {} is not", error.utf8_error().valid_up_to()),
                });
            }
        };
        read.insert(id.clone(), Arc::clone(&text));
        Ok(text)
    }

    fn bytes(&self, id: &SourceId) -> Result<Arc<[u8]>, Missing> {
        let read = fs::read(id.as_str()).map_err(|error| Missing { why: format!("{id} can't be read: {error}") })?;
        Ok(Arc::from(read))
    }

    fn resolve(&self, from: &SourceId, target: &str) -> Result<SourceId, Missing> {
        if target.starts_with("std/") {
            return match stdlib::text(target) {
                Some(_) => Ok(SourceId::new(target)),
                None => {
                    Err(Missing { why: format!("the stdlib has no `{target}`; it has {}", stdlib::NAMES.join(", ")) })
                }
            };
        }
        let path = self.locate(from, target)?;
        Ok(SourceId::new(path.to_string_lossy().into_owned()))
    }

    fn directory(&self, from: &SourceId, target: &str) -> Result<Directory, Missing> {
        let path = self.locate(from, target)?;
        if !path.is_dir() {
            return Err(Missing { why: format!("{} is not a directory", path.display()) });
        }
        let mut files = Vec::new();
        collect(&path, &path, &mut files).map_err(|error| Missing { why: format!("{}: {error}", path.display()) })?;
        files.sort();
        let digest = ContentHash::of(&files);
        let relative = path.to_string_lossy().into_owned();
        Ok(Directory {
            path: relative,
            digest: digest.to_string(),
            files: u32::try_from(files.len()).unwrap_or(u32::MAX),
        })
    }
}

/// Names of directories that builds leave behind; they are no part of what an image is made from.
const BUILD_OUTPUT: [&str; 3] = ["target", "node_modules", "vendor"];

/// Every file below `directory`: its path relative to `root`, whether it may be executed, and its digest.
fn collect(root: &Path, directory: &Path, files: &mut Vec<(String, bool, String)>) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !BUILD_OUTPUT.contains(&name.as_str()) && name != ".git" {
                collect(root, &path, files)?;
            }
            continue;
        }
        let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        let (executable, digest) = if kind.is_symlink() {
            (false, ContentHash::of_bytes(fs::read_link(&path)?.to_string_lossy().as_bytes()))
        } else {
            let executable = entry.metadata()?.permissions().mode() & 0o111 != 0;
            (executable, ContentHash::of_bytes(&fs::read(&path)?))
        };
        files.push((relative, executable, digest.to_string()));
    }
    Ok(())
}
