//! Plans and journals with realistic figures, and a snapshot function that keeps each expectation beside its input.

pub mod facts;
pub mod plans;
pub mod scenarios;
pub mod scribe;

use std::fs;
use std::path::{Path, PathBuf};

/// The directory of one scenario's journal and expectations.
pub fn directory(scenario: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals").join(scenario)
}

/// Compares `actual` with the stored file; with `UPDATE=1` it stores it instead. Says where the first difference is.
pub fn check(path: &Path, actual: &str, problems: &mut Vec<String>) {
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, actual));
        if let Err(error) = written {
            problems.push(format!("{} can't be written: {error}", path.display()));
        }
        return;
    }
    match fs::read_to_string(path) {
        Err(error) => problems.push(format!("{} can't be read: {error}; UPDATE=1 writes it", path.display())),
        Ok(stored) if stored == actual => {}
        Ok(stored) => {
            let line = stored.lines().zip(actual.lines()).take_while(|(stored, actual)| stored == actual).count();
            let at = |text: &str| text.lines().nth(line).unwrap_or("(end)").chars().take(200).collect::<String>();
            problems.push(format!(
                "{} differs in line {}:\n  stored: {}\n  actual: {}\n(UPDATE=1 stores the new text; read the difference first)",
                path.display(),
                line + 1,
                at(&stored),
                at(actual)
            ));
        }
    }
}

/// Fails with all problems at once.
pub fn conclude(problems: &[String]) {
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}
