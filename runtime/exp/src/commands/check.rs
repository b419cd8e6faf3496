//! `exp check`: every problem of a study, and the fixes of those that have one.

use std::path::Path;

use analysis::fix::{self, Which};
use analysis::lint::{ALL, LINTS, Level, is_lint};
use analysis::names;
use syntax::{Severity, Sources};

use crate::args::{Check, DiagnosticFormat};
use crate::diagnostics::{self, Sarif, Texts};
use crate::exit::Exit;
use crate::rewrite;
use crate::study::{Against, Study};
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
    let against = match against(check, colours) {
        Ok(against) => against,
        Err(exit) => return exit,
    };
    if check.expanded {
        return expanded(check, &against, colours);
    }
    let mut total = Total::default();
    let fixing = check.fix || check.unsafe_fixes || check.diff;
    for file in &check.files {
        let opened = match fixing {
            true => mended(file, check, &against, &mut total, colours),
            false => Study::open(file, &check.selection, &against, colours),
        };
        let mut study = match opened {
            Ok(study) => study,
            Err(exit) => return exit,
        };
        study.on_every_machine(&check.selection, &against);
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

/// What the studies are checked against.
fn against(check: &Check, colours: Colours) -> Result<Against, Exit> {
    let mut against = match &check.on {
        Some(host) => Against::on(host, colours)?,
        None => Against::default(),
    };
    let levels = &check.levels;
    for (names, level) in [(&levels.deny, Level::Deny), (&levels.warn, Level::Warn), (&levels.allow, Level::Allow)] {
        for name in names {
            if name != ALL && !is_lint(name) {
                let known: Vec<&str> = LINTS.iter().map(|lint| lint.info.name).collect();
                let hint = names::hint(name, known.iter().copied());
                let what = format!("`--{}`: no lint is called `{name}`{hint}", level.name());
                let next = format!("write `{ALL}` or one of {}", names::listed(known));
                terminal::error(&what, "", &next, colours);
                return Err(Exit::Usage);
            }
            against.levels.push((name.clone(), level));
        }
    }
    Ok(against)
}

/// Prints the studies as they are after all of their reuse; those with errors are not.
fn expanded(check: &Check, against: &Against, colours: Colours) -> Exit {
    let mut exit = Exit::Ok;
    for file in &check.files {
        let opened = Study::open(file, &check.selection, against, colours);
        match opened.and_then(|study| study.into_plan(colours)) {
            Ok((study, _)) => terminal::out(&study.analysed.expanded()),
            Err(Exit::Invalid) => exit = Exit::Invalid,
            Err(other) => return other,
        }
    }
    exit
}

/// The study after its fixes, which are written, or printed as a diff. Of a diff the study itself is as it stands.
fn mended(file: &Path, check: &Check, against: &Against, total: &mut Total, colours: Colours) -> Result<Study, Exit> {
    let (sources, id) = Study::read(file, colours)?;
    let options = Study::options(&check.selection, against);
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
