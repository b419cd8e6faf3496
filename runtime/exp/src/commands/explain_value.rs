//! `exp explain-value`: a value of a study, who gave it, and who gave one before.

use std::path::{Path, PathBuf};

use analysis::origin::{Explained, Giver};
use serde_json::{Value, json};
use syntax::{LineIndex, Location, Severity, Sources};

use crate::args::{ExplainValue, OutputFormat};
use crate::diagnostics;
use crate::exit::Exit;
use crate::study::{Against, Study};
use crate::terminal::{self, Colours};

/// Prints the value at the path, or every value below it.
pub fn run(arguments: &ExplainValue, colours: Colours) -> Exit {
    let file = match arguments.file.clone().map_or_else(only_study, Ok) {
        Ok(file) => file,
        Err(why) => {
            terminal::error(&why, "", &format!("exp explain-value {} FILE", arguments.path), colours);
            return Exit::Usage;
        }
    };
    let study = match Study::open(&file, &arguments.selection, &Against::default(), colours) {
        Ok(study) => study,
        Err(exit) => return exit,
    };
    let errors = diagnostics::count(&study.analysed.diagnostics, Severity::Error);
    if errors > 0 {
        let plural = if errors == 1 { "" } else { "s" };
        terminal::note(&format!(
            "{}: {errors} error{plural}; `exp check` shows them, and values may be wrong",
            study.id
        ));
    }
    match study.analysed.explain_value(&arguments.path) {
        Ok(found) => {
            let places = Places { study: &study };
            terminal::out(&match arguments.format {
                OutputFormat::Human => found.iter().map(|value| places.human(value)).collect(),
                OutputFormat::Json => {
                    let all: Vec<Value> = found.iter().map(|value| places.json(value)).collect();
                    format!("{:#}\n", Value::Array(all))
                }
            });
            Exit::Ok
        }
        Err(missing) => {
            let hint = missing.near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let why =
                if missing.known.is_empty() { String::new() } else { format!("there is {}", missing.known.join(", ")) };
            terminal::error(
                &format!("{} has no value `{}`{hint}", study.id, arguments.path),
                &why,
                "write a path as kind.name.setting, such as phase.ceiling.repeat or phase.ceiling.load.for",
                colours,
            );
            Exit::Usage
        }
    }
}

/// The only study in this directory.
fn only_study() -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(".").map_err(|error| format!("this directory can't be read: {error}"))?;
    let mut studies: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "kdl") && is_study(path))
        .map(|path| path.strip_prefix(".").map(Path::to_owned).unwrap_or(path))
        .collect();
    studies.sort();
    match studies.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err("there is no study in this directory".to_owned()),
        several => {
            let names: Vec<String> = several.iter().map(|path| path.display().to_string()).collect();
            Err(format!("there are several studies in this directory: {}", names.join(", ")))
        }
    }
}

fn is_study(path: &Path) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| {
        syntax::parse(text.into()).tree.nodes().any(|node| node.name() == analysis::schema::STUDY.name)
    })
}

struct Places<'a> {
    study: &'a Study,
}

impl Places<'_> {
    /// Line and column, from 1.
    fn place(&self, at: &Location) -> (u32, u32) {
        self.study.sources.text(&at.source).map_or((1, 1), |text| {
            let position = LineIndex::new(&text).position(&text, at.span.start);
            (position.line + 1, position.utf8 + 1)
        })
    }

    fn shown(&self, at: &Location) -> String {
        let name = if at.source.is_std() { format!("{}.kdl", at.source) } else { at.source.to_string() };
        format!("{name}:{}", self.place(at).0)
    }

    /// `phase.ceiling.repeat: 6, here (study.kdl:12); std/http gave 5 (std/http.kdl:36)`, then what it is.
    fn human(&self, value: &Explained) -> String {
        let giver = value.giver.as_ref().map_or_else(
            || "the default of the language".to_owned(),
            |giver| format!("{} ({})", giver.who, self.shown(&giver.at)),
        );
        let mut line = format!("{}: {}, {giver}", value.path, value.value);
        for giver in &value.replaced {
            let who = if giver.who == "here" { "the study" } else { &giver.who };
            line.push_str(&format!("; {who} gave {} ({})", giver.written, self.shown(&giver.at)));
        }
        if let (Some(default), Some(_)) = (value.default, &value.giver) {
            line.push_str(&format!("; default {default}"));
        }
        line.push('\n');
        if let Some(note) = &value.note {
            line.push_str(&format!("    {note}\n"));
        }
        for label in &value.through {
            line.push_str(&format!("    {} ({})\n", label.text, self.shown(&label.at)));
        }
        line.push_str(&format!("    {} It is {}.\n", value.doc, value.ty));
        line
    }

    fn json(&self, value: &Explained) -> Value {
        let giver = |giver: &Giver| {
            let (line, column) = self.place(&giver.at);
            json!({
                "who": giver.who,
                "source": giver.at.source.to_string(),
                "line": line,
                "column": column,
                "value": giver.written,
            })
        };
        json!({
            "path": value.path,
            "value": value.value,
            "type": value.ty,
            "doc": value.doc,
            "given-by": value.giver.as_ref().map(giver),
            "replaced": value.replaced.iter().map(giver).collect::<Vec<_>>(),
            "default": value.default,
            "through": value.through.iter().map(|label| {
                let (line, column) = self.place(&label.at);
                json!({ "source": label.at.source.to_string(), "line": line, "column": column, "text": label.text })
            }).collect::<Vec<_>>(),
            "machine": value.note,
        })
    }
}
