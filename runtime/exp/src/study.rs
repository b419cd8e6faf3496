//! Opens a study for a command: its sources, its analysis, its diagnostics.

use std::path::Path;
use std::sync::Arc;

use analysis::{Analysed, Host, Level, Options};
use plan::Plan;
use syntax::{SourceId, Sources};

use crate::args::Selection;
use crate::diagnostics::{self, Texts};
use crate::exit::Exit;
use crate::sources::DiskSources;
use crate::terminal::{self, Colours};

/// What a study is checked against.
#[derive(Debug, Clone, Default)]
pub struct Against {
    /// The host that it is to run on, if one is known.
    pub host: Option<Host>,
    /// Levels of lints, by the command line.
    pub levels: Vec<(String, Level)>,
}

impl Against {
    /// This host. `to_run`: ports in use are looked up too.
    pub fn here(to_run: bool) -> Self {
        Self { host: Some(crate::host::read(to_run)), levels: Vec::new() }
    }

    /// The host of `--on`: this one, or the one that a file describes.
    ///
    /// # Errors
    /// [`Exit::Usage`], after the reason was printed, when there is no such description.
    pub fn on(host: &str, colours: Colours) -> Result<Self, Exit> {
        if host == HERE {
            return Ok(Self::here(true));
        }
        let host = crate::host::described(Path::new(host)).map_err(|why| {
            let next = "write one on that host with `exp doctor --describe > HOST.json`, or write `--on here`";
            terminal::error(&why, "", next, colours);
            Exit::Usage
        })?;
        Ok(Self { host: Some(host), levels: Vec::new() })
    }
}

/// `--on here`.
const HERE: &str = "here";

/// A study that was read and analysed.
pub struct Study {
    /// Where its texts are.
    pub sources: DiskSources,
    /// The study itself.
    pub id: SourceId,
    /// What the compiler says of it.
    pub analysed: Analysed,
}

impl Study {
    /// Reads and analyses the study at `file`.
    ///
    /// # Errors
    /// The exit, after the reason was printed, when the file can't be read.
    pub fn open(file: &Path, selection: &Selection, against: &Against, colours: Colours) -> Result<Self, Exit> {
        let (sources, id) = Self::read(file, colours)?;
        let analysed = analysis::analyse(&sources, &id, &Self::options(selection, against));
        Ok(Self { sources, id, analysed })
    }

    /// Reads the study at `file`.
    ///
    /// # Errors
    /// The exit, after the reason was printed, when it can't be read.
    pub fn read(file: &Path, colours: Colours) -> Result<(DiskSources, SourceId), Exit> {
        DiskSources::open(file).map_err(|why| {
            let next = match crate::commands::check::studies_near(file) {
                found if found.is_empty() => "name a study, such as experiments/capacity.kdl".to_owned(),
                found => format!("studies near it: {}", found.join(", ")),
            };
            terminal::error(&why, "", &next, colours);
            Exit::Usage
        })
    }

    /// What the command line chose.
    pub fn options(selection: &Selection, against: &Against) -> Options {
        Options {
            machine: selection.machine.clone(),
            profile: selection.profile.clone(),
            host: against.host.clone(),
            levels: against.levels.clone(),
            environment: crate::variables::environment(),
        }
    }

    /// Adds what is wrong on the study's other machines, where neither a host nor a machine was given: then it has to hold
    /// on each of them.
    pub fn on_every_machine(&mut self, selection: &Selection, against: &Against) {
        if selection.machine.is_some() || against.host.is_some() {
            return;
        }
        let machines: Vec<String> = self.analysed.study.names("machine").map(str::to_owned).collect();
        for machine in machines.into_iter().skip(1) {
            let options = Options { machine: Some(machine), ..Self::options(selection, against) };
            let other = analysis::analyse(&self.sources, &self.id, &options);
            for diagnostic in other.diagnostics {
                if !self.analysed.diagnostics.contains(&diagnostic) {
                    self.analysed.diagnostics.push(diagnostic);
                }
            }
        }
    }

    /// The study's text.
    pub fn text(&self) -> Arc<str> {
        self.sources.text(&self.id).unwrap_or_else(|_| Arc::from(""))
    }

    /// Prints every diagnostic on standard error, and gives the plan if there is one.
    ///
    /// # Errors
    /// [`Exit::Invalid`] when the study has errors.
    pub fn into_plan(self, colours: Colours) -> Result<(Self, Plan), Exit> {
        let mut texts = Texts::new(&self.sources);
        let diagnostics = &self.analysed.diagnostics;
        if !diagnostics.is_empty() {
            terminal::err(&diagnostics::human(diagnostics, &mut texts, colours.err, terminal::width()));
        }
        match &self.analysed.plan {
            Some(plan) if !diagnostics::has_errors(diagnostics) => {
                let plan = plan.clone();
                Ok((self, plan))
            }
            _ => {
                let errors = diagnostics.iter().filter(|d| d.severity == syntax::Severity::Error).count();
                let plural = if errors == 1 { "" } else { "s" };
                terminal::note(&format!("{}: {errors} error{plural}; nothing was run", self.id));
                Err(Exit::Invalid)
            }
        }
    }
}
