//! The build context: the files of a directory that `.dockerignore` leaves, as an archive whose bytes depend on nothing
//! but their names, contents and executable bits.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The archive of a context, and the names of its entries.
pub fn archive(directory: &Path, dockerfile: &str) -> io::Result<Vec<u8>> {
    let ignored = match std::fs::read_to_string(directory.join(".dockerignore")) {
        Ok(text) => Ignored::parse(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ignored::default(),
        Err(error) => return Err(error),
    };
    let mut paths = Vec::new();
    walk(directory, "", &mut |path| {
        // The engine needs both files whatever they say of themselves.
        if path == dockerfile || path == ".dockerignore" || !ignored.matches(path) {
            paths.push(path.to_owned());
        }
    })?;
    paths.sort_unstable();
    let mut archive = tar::Builder::new(Vec::new());
    for path in paths {
        append(&mut archive, directory, &path)?;
    }
    archive.into_inner()
}

fn append(archive: &mut tar::Builder<Vec<u8>>, directory: &Path, path: &str) -> io::Result<()> {
    let file = directory.join(path);
    let metadata = file.symlink_metadata()?;
    let mut header = tar::Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    if metadata.is_symlink() {
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_mode(0o777);
        header.set_size(0);
        return archive.append_link(&mut header, path, std::fs::read_link(file)?);
    }
    let content = std::fs::read(file)?;
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(if metadata.permissions().mode() & 0o111 == 0 { 0o644 } else { 0o755 });
    header.set_size(content.len() as u64);
    archive.append_data(&mut header, path, content.as_slice())
}

/// Every file and link under a directory, by its path from there. Directories come into being by what is in them;
/// sockets and devices can't be sent.
fn walk(directory: &Path, prefix: &str, found: &mut impl FnMut(&str)) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            return Err(io::Error::other(format!("{} has a name that is not UTF-8", entry.path().display())));
        };
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), &path, found)?;
        } else if kind.is_file() || kind.is_symlink() {
            found(&path);
        }
    }
    Ok(())
}

/// The rules of a `.dockerignore`, in order; the last that matches decides. A rule for a directory covers what is in
/// it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ignored(Vec<Rule>);

#[derive(Debug, PartialEq, Eq)]
struct Rule {
    parts: Vec<String>,
    kept: bool,
}

impl Ignored {
    fn parse(text: &str) -> Self {
        let rules =
            text.trim_start_matches('\u{feff}').lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
                let line = line.trim();
                let (kept, pattern) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest.trim()));
                let parts: Vec<String> =
                    pattern.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect();
                (!parts.is_empty()).then_some(Rule { parts, kept })
            });
        Self(rules.collect())
    }

    fn matches(&self, path: &str) -> bool {
        let parts: Vec<&str> = path.split('/').collect();
        let decides = |rule: &&Rule| (1..=parts.len()).any(|length| path_matches(&rule.parts, &parts[..length]));
        self.0.iter().rev().find(decides).is_some_and(|rule| !rule.kept)
    }
}

/// `**` stands for any number of directories.
fn path_matches(pattern: &[String], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "**" => (0..=path.len()).any(|skip| path_matches(rest, &path[skip..])),
        (Some((first, rest)), Some((name, names))) => {
            let (first, name): (Vec<char>, Vec<char>) = (first.chars().collect(), name.chars().collect());
            name_matches(&first, &name) && path_matches(rest, names)
        }
        _ => false,
    }
}

/// `*` stands for any characters of a name, `?` for one, `[a-c]` for one of some, `\` takes the next as it is. Names
/// are short, so plain backtracking does.
fn name_matches(pattern: &[char], name: &[char]) -> bool {
    let Some((first, rest)) = pattern.split_first() else { return name.is_empty() };
    match first {
        '*' => (0..=name.len()).any(|skip| name_matches(rest, &name[skip..])),
        '?' => name.split_first().is_some_and(|(_, left)| name_matches(rest, left)),
        '[' if rest.contains(&']') => {
            let Some((one, left)) = name.split_first() else { return false };
            let Some(end) = rest.iter().position(|c| *c == ']') else { return false };
            class_holds(&rest[..end], *one) && name_matches(&rest[end + 1..], left)
        }
        '\\' if !rest.is_empty() => name.first() == rest.first() && name_matches(&rest[1..], &name[1..]),
        plain => name.first() == Some(plain) && name_matches(rest, &name[1..]),
    }
}

fn class_holds(class: &[char], one: char) -> bool {
    let (wanted, class) = match class.split_first() {
        Some(('^', rest)) => (false, rest),
        _ => (true, class),
    };
    let mut held = false;
    let mut index = 0;
    while index < class.len() {
        if let (Some('-'), Some(to)) = (class.get(index + 1), class.get(index + 2)) {
            held |= (class[index]..=*to).contains(&one);
            index += 3;
        } else {
            held |= class[index] == one;
            index += 1;
        }
    }
    held == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_ignore_and_keep_as_docker_does() {
        let cases = [
            ("", "a.go", false),
            ("# a.go\n\n", "a.go", false),
            ("a.go", "a.go", true),
            ("/a.go", "a.go", true),
            ("./a.go", "a.go", true),
            ("a.go", "sub/a.go", false),
            ("sub", "sub/deep/a.go", true),
            ("sub/", "sub/a.go", true),
            ("*.go", "a.go", true),
            ("*.go", "sub/a.go", false),
            ("*/*.go", "sub/a.go", true),
            ("**/*.go", "a.go", true),
            ("**/*.go", "sub/deep/a.go", true),
            ("**", "sub/deep/a.go", true),
            ("sub/**", "sub/deep/a.go", true),
            ("sub/**/a.go", "sub/a.go", true),
            ("?.go", "a.go", true),
            ("?.go", "ab.go", false),
            ("[a-c].go", "b.go", true),
            ("[^a-c].go", "b.go", false),
            ("\\*.go", "*.go", true),
            ("\\*.go", "a.go", false),
            ("*\n!*.go", "a.go", false),
            ("*\n!*.go", "a.mod", true),
            ("*\n!sub", "sub/deep/a.go", false),
            ("!a.go\n*", "a.go", true),
            ("*.md\n!README.md", "README.md", false),
            (" target \r\n", "target/x", true),
        ];
        for (rules, path, ignored) in cases {
            assert_eq!(Ignored::parse(rules).matches(path), ignored, "{rules:?} on {path}");
        }
    }

    #[test]
    fn an_archive_depends_on_names_contents_and_executable_bits_only() {
        let make = |name: &str, executable: bool, other: &str| {
            let directory = std::env::temp_dir().join(format!("exp-context-{}-{name}", std::process::id()));
            std::fs::create_dir_all(directory.join("sub")).expect("a directory");
            for (path, content) in [
                ("Dockerfile", "FROM x\n"),
                (".dockerignore", "*\n!run.sh\n!sub"),
                ("run.sh", "#!/bin/sh\n"),
                ("sub/b", "b"),
                ("secret", other),
            ] {
                std::fs::write(directory.join(path), content).expect("a file");
            }
            let mode = std::fs::Permissions::from_mode(if executable { 0o700 } else { 0o600 });
            std::fs::set_permissions(directory.join("run.sh"), mode).expect("our file");
            let bytes = archive(&directory, "Dockerfile").expect("readable");
            std::fs::remove_dir_all(directory).expect("our directory");
            bytes
        };
        let first = make("one", true, "x");
        assert_eq!(first, make("two", true, "yy"), "an ignored file changes nothing");
        assert_ne!(first, make("three", false, "x"));
        let names: Vec<String> = tar::Archive::new(first.as_slice())
            .entries()
            .expect("an archive")
            .map(|entry| entry.expect("an entry").path().expect("a path").display().to_string())
            .collect();
        assert_eq!(names, [".dockerignore", "Dockerfile", "run.sh", "sub/b"]);
    }
}
