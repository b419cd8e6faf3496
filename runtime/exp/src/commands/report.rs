//! `exp report`: a run's report again, from its plan and journal alone.

use std::path::Path;

use plan::Plan;

use crate::args::{Report, RunFormat};
use crate::exit::Exit;
use crate::rundir::RunDirectory;
use crate::terminal::{self, Colours};

/// Writes the report's files again and prints the report.
pub fn run(arguments: &Report, colours: Colours) -> Exit {
    let opened = RunDirectory::open(&arguments.run).and_then(|directory| Ok((directory.read_plan()?, directory)));
    let (plan, directory) = match opened {
        Ok(opened) => opened,
        Err(why) => {
            terminal::error(&why, "", "name a run's directory, such as results/capacity/<run>", colours);
            return Exit::Usage;
        }
    };
    match write(&plan, &directory) {
        Ok(report) => {
            match arguments.format {
                RunFormat::Human => terminal::out(&report::render::markdown(&report)),
                RunFormat::Json => terminal::out(&format!(
                    "{:#}\n",
                    report::render::summary_json(&report, &directory.path.display().to_string())
                )),
            }
            Exit::Ok
        }
        Err(why) => {
            terminal::error(&why, "", "the journal and the plan stay as they are", colours);
            Exit::Environment
        }
    }
}

/// Folds the journal into the report and writes its files into the run's directory.
///
/// # Errors
/// A sentence that names what can't be read or written.
pub fn write(plan: &Plan, directory: &RunDirectory) -> Result<report::Report, String> {
    let journal = directory.journal();
    let records: Vec<journal::Record> = journal::read(&journal)
        .map_err(|error| error.to_string())?
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    let report = report::report(plan, records.into_iter());
    let store = |name: &str, text: &str| -> Result<(), String> {
        let path = directory.path.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| format!("{} can't be made: {error}", parent.display()))?;
        }
        replace(&path, text).map_err(|error| format!("{} can't be written: {error}", path.display()))
    };
    store("report.md", &report::render::markdown(&report))?;
    store("report.html", &report::render::html(&report))?;
    store("report.json", &format!("{:#}\n", report::render::json(&report)))?;
    store("excluded.md", &report::render::excluded(&report))?;
    for (name, text) in report::render::csv(&report) {
        store(&format!("tables/{name}"), &text)?;
    }
    Ok(report)
}

/// Writes a file whole or not at all.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    std::fs::write(&temporary, text)?;
    std::fs::rename(&temporary, path)
}
