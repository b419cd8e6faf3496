//! Opens a study for a command: its sources, its analysis, its diagnostics.

use std::path::Path;
use std::sync::Arc;

use analysis::{Analysed, Options};
use plan::Plan;
use syntax::{SourceId, Sources};

use crate::args::Selection;
use crate::diagnostics::{self, Texts};
use crate::exit::Exit;
use crate::sources::DiskSources;
use crate::terminal::{self, Colours};

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
    /// Reads and analyses the study at `file`, for this host. `to_run`: ports in use are looked up too.
    ///
    /// # Errors
    /// The exit, after the reason was printed, when the file can't be read.
    pub fn open(file: &Path, selection: &Selection, to_run: bool, colours: Colours) -> Result<Self, Exit> {
        let (sources, id) = Self::read(file, colours)?;
        let analysed = analysis::analyse(&sources, &id, &Self::options(selection, to_run));
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

    /// What the command line chose, and this host. `to_run`: ports in use are looked up too.
    pub fn options(selection: &Selection, to_run: bool) -> Options {
        Options {
            machine: selection.machine.clone(),
            profile: selection.profile.clone(),
            host: Some(crate::host::read(to_run)),
            environment: crate::variables::environment(),
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
