//! `exp check`: every problem of a study, and the fixes of those that have one.

use std::path::Path;

use analysis::fix::{self, Which};
use syntax::{Severity, Sources};

use crate::args::{Check, DiagnosticFormat};
use crate::diagnostics::{self, Sarif, Texts};
use crate::exit::Exit;
use crate::rewrite;
use crate::study::Study;
use crate::terminal::{self, Colours};

/// What is printed after the last file.
#[derive(Default)]
struct Total {
    errors: usize,
    warnings: usize,
    fixed: usize,
    json: Vec<serde_json::Value>,
    sarif: Sarif,
}

/// Checks each file, prints its problems on standard output, and a last line on standard error.
pub fn run(check: &Check, colours: Colours) -> Exit {
    let mut total = Total::default();
    let fixing = check.fix || check.unsafe_fixes || check.diff;
    for file in &check.files {
        let study = match if fixing { mended(file, check, &mut total, colours) } else { opened(file, check, colours) } {
            Ok(study) => study,
            Err(exit) => return exit,
        };
        let found = &study.analysed.diagnostics;
        total.errors += diagnostics::count(found, Severity::Error);
        total.warnings += diagnostics::count(found, Severity::Warning);
        if check.diff {
            continue;
        }
        let mut texts = Texts::new(&study.sources);
        match check.format {
            DiagnosticFormat::Human => {
                terminal::out(&diagnostics::human(found, &mut texts, colours.out, terminal::width()));
            }
            DiagnosticFormat::Concise => terminal::out(&diagnostics::concise(found, &mut texts)),
            DiagnosticFormat::Github => terminal::out(&diagnostics::github(found, &mut texts)),
            DiagnosticFormat::Json => total.json.extend(diagnostics::json(found, &mut texts)),
            DiagnosticFormat::Sarif => total.sarif.add(found, &mut texts),
        }
    }
    let exit = if total.errors > 0 { Exit::Invalid } else { Exit::Ok };
    let last = last_line(check, &total);
    match check.format {
        _ if check.diff => terminal::note(&last),
        DiagnosticFormat::Json => {
            let object = serde_json::json!({
                "version": 1,
                "errors": total.errors,
                "warnings": total.warnings,
                "fixed": total.fixed,
                "diagnostics": total.json,
            });
            terminal::out(&format!("{object:#}\n"));
        }
        DiagnosticFormat::Sarif => terminal::out(&format!("{:#}\n", total.sarif.log())),
        DiagnosticFormat::Human | DiagnosticFormat::Concise | DiagnosticFormat::Github => terminal::note(&last),
    }
    exit
}

fn opened(file: &Path, check: &Check, colours: Colours) -> Result<Study, Exit> {
    Study::open(file, &check.selection, false, colours)
}

/// The study after its fixes, which are written, or printed as a diff. Of a diff the study itself is as it stands.
fn mended(file: &Path, check: &Check, total: &mut Total, colours: Colours) -> Result<Study, Exit> {
    let (sources, id) = Study::read(file, colours)?;
    let options = Study::options(&check.selection, false);
    let which = if check.unsafe_fixes { Which::All } else { Which::Safe };
    let fixed = fix::fix(&sources, &id, &options, which);
    total.fixed += fixed.applied;
    if check.diff {
        for (source, text) in &fixed.texts {
            let before = sources.text(source).unwrap_or_else(|_| "".into());
            terminal::out(&rewrite::diff(source.as_str(), &before, text, colours.out));
        }
        let analysed = analysis::analyse(&sources, &id, &options);
        return Ok(Study { sources, id, analysed });
    }
    for (source, text) in &fixed.texts {
        if let Err(why) = sources.write(source, text) {
            terminal::error(&why, "", "mend that, and check again", colours);
            return Err(Exit::Environment);
        }
    }
    if !fixed.settled {
        terminal::note(&format!("{id}: fixes brought new ones for {} rounds; the rest is left", fix::MAX_ROUNDS));
    }
    Ok(Study { sources, id, analysed: fixed.analysed })
}

fn last_line(check: &Check, total: &Total) -> String {
    let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let files = count(check.files.len(), "file");
    let found = match (total.errors, total.warnings) {
        (0, 0) => "no problems".to_owned(),
        _ => format!("{}, {}", count(total.errors, "error"), count(total.warnings, "warning")),
    };
    let fixes = if total.fixed == 1 { "1 fix".to_owned() } else { format!("{} fixes", total.fixed) };
    match (check.diff, check.fix || check.unsafe_fixes) {
        (true, _) => format!("{files} checked: {found}; {fixes} would be applied, nothing was changed"),
        (false, true) => format!("{files} checked: {fixes} applied; left: {found}"),
        (false, false) => format!("{files} checked: {found}"),
    }
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
