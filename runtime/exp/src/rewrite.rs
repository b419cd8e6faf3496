//! Changes a file that a person wrote: whole or not at all, and never one that changed meanwhile; or shows what would change.

use std::fs;
use std::io::Write;
use std::path::Path;

use similar::TextDiff;

/// The file at `path`, which held `before`, holds `after`; at no moment anything else. A symlink stays, and what it leads to
/// is replaced; owner's and group's permissions stay as they are.
///
/// # Errors
/// A sentence that says why nothing was changed.
pub fn replace(path: &Path, before: &str, after: &str) -> Result<(), String> {
    let shown = path.display();
    let wrong = |error: std::io::Error| format!("{shown} can't be written: {error}");
    let real = fs::canonicalize(path).map_err(wrong)?;
    if fs::read(&real).map_err(wrong)? != before.as_bytes() {
        return Err(format!("{shown} changed while it was looked at, so it was left as it is"));
    }
    let permissions = fs::metadata(&real).map_err(wrong)?.permissions();
    if permissions.readonly() {
        return Err(format!("{shown} can't be written: it is marked read-only"));
    }
    let directory = real.parent().unwrap_or_else(|| Path::new("/"));
    let mut fresh = tempfile::Builder::new().prefix(".exp-").tempfile_in(directory).map_err(wrong)?;
    fresh.write_all(after.as_bytes()).map_err(wrong)?;
    fresh.as_file().set_permissions(permissions).map_err(wrong)?;
    fresh.as_file().sync_all().map_err(wrong)?;
    fresh.persist(&real).map_err(|error| wrong(error.error))?;
    Ok(())
}

/// What changes, as a unified diff that `patch -p1` and `git apply` take. Empty where nothing does.
pub fn diff(name: &str, before: &str, after: &str, colour: bool) -> String {
    if before == after {
        return String::new();
    }
    let name = name.trim_start_matches("./").trim_start_matches('/');
    let lines = TextDiff::from_lines(before, after);
    let plain = lines.unified_diff().header(&format!("a/{name}"), &format!("b/{name}")).to_string();
    if !colour {
        return plain;
    }
    let mut text = String::with_capacity(plain.len() * 2);
    for line in plain.split_inclusive('\n') {
        let code = match line.as_bytes() {
            [b'-', b'-', b'-', b' ', ..] | [b'+', b'+', b'+', b' ', ..] => "1",
            [b'-', ..] => "31",
            [b'+', ..] => "32",
            [b'@', b'@', ..] => "36",
            _ => {
                text.push_str(line);
                continue;
            }
        };
        let kept = line.trim_end_matches(['\n', '\r']);
        text.push_str(&format!("\u{1b}[{code}m{kept}\u{1b}[0m{}", &line[kept.len()..]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_with_its_permissions_or_left() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("a.kdl");
        fs::write(&path, "one\n").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("permissions");
        let link = place.path().join("link.kdl");
        std::os::unix::fs::symlink("a.kdl", &link).expect("a link");

        replace(&link, "one\n", "two\n").expect("it can be written");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "two\n");
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());

        // Somebody saved it meanwhile: theirs stays.
        fs::write(&path, "theirs\n").expect("a file");
        let why = replace(&path, "two\n", "three\n").expect_err("it changed");
        assert!(why.contains("changed while"), "{why}");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "theirs\n");
        let names = fs::read_dir(place.path()).expect("a directory").count();
        assert_eq!(names, 2, "nothing else is left beside it");
    }

    #[test]
    fn a_diff_says_what_changes() {
        let text = diff("./a.kdl", "a\nb\nc\n", "a\nB\nc\n", false);
        assert_eq!(text, "--- a/a.kdl\n+++ b/a.kdl\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
        assert_eq!(diff("a.kdl", "a\n", "a\n", true), "");
        assert!(diff("a.kdl", "a\n", "b", false).contains("\\ No newline at end of file"));
    }
}
