//! `exp check`: every problem of a study.

use std::path::Path;

use crate::args::{Check, DiagnosticFormat};
use crate::diagnostics::{self, Texts};
use crate::exit::Exit;
use crate::study::Study;
use crate::terminal::{self, Colours};

/// Checks each file, prints its problems on standard output, and a last line on standard error.
pub fn run(check: &Check, colours: Colours) -> Exit {
    let mut json = Vec::new();
    let (mut errors, mut warnings) = (0usize, 0usize);
    for file in &check.files {
        let study = match Study::open(file, &check.selection, false, colours) {
            Ok(study) => study,
            Err(exit) => return exit,
        };
        let found = &study.analysed.diagnostics;
        errors += found.iter().filter(|diagnostic| diagnostic.severity == syntax::Severity::Error).count();
        warnings += found.iter().filter(|diagnostic| diagnostic.severity == syntax::Severity::Warning).count();
        let mut texts = Texts::new(&study.sources);
        match check.format {
            DiagnosticFormat::Human => {
                terminal::out(&diagnostics::human(found, &mut texts, colours.out, terminal::width()));
            }
            DiagnosticFormat::Concise => terminal::out(&diagnostics::concise(found, &mut texts)),
            DiagnosticFormat::Json => {
                if let serde_json::Value::Array(array) = diagnostics::json(found, &mut texts) {
                    json.extend(array);
                }
            }
        }
    }
    if check.format == DiagnosticFormat::Json {
        terminal::out(&format!("{:#}\n", serde_json::Value::Array(json)));
    } else {
        let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
        let files = count(check.files.len(), "file");
        terminal::note(&match (errors, warnings) {
            (0, 0) => format!("{files} checked: no problems"),
            _ => format!("{files} checked: {}, {}", count(errors, "error"), count(warnings, "warning")),
        });
    }
    if errors > 0 { Exit::Invalid } else { Exit::Ok }
}

/// Study files in the directory of `file`, or in `experiments`, for somebody who mistyped a name.
pub fn studies_near(file: &Path) -> Vec<String> {
    let near = file.parent().filter(|parent| !parent.as_os_str().is_empty() && parent.is_dir());
    let mut found = Vec::new();
    for directory in [near, Some(Path::new("experiments"))].into_iter().flatten() {
        let Ok(entries) = std::fs::read_dir(directory) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "kdl") {
                found.push(path.display().to_string());
            }
        }
    }
    found.sort();
    found.dedup();
    found.truncate(8);
    found
}
