//! `exp plan`: what would be done.

use crate::args::{PlanArguments, PlanFormat};
use crate::exit::Exit;
use crate::study::{Against, Study};
use crate::terminal::{self, Colours};

/// Prints the plan on standard output.
pub fn run(arguments: &PlanArguments, colours: Colours) -> Exit {
    let opened = Against::on(&arguments.on, colours)
        .and_then(|against| Study::open(&arguments.file, &arguments.selection, &against, colours));
    let study = match opened {
        Ok(study) => study,
        Err(exit) => return exit,
    };
    let (_, plan) = match study.into_plan(colours) {
        Ok(made) => made,
        Err(exit) => return exit,
    };
    terminal::out(&match arguments.format {
        PlanFormat::Text => report::render::plan::text(&plan, terminal::width()),
        PlanFormat::Json => match report::render::plan::json(&plan) {
            Ok(value) => format!("{value:#}\n"),
            Err(error) => {
                terminal::error(&format!("the plan can't be written as JSON: {error}"), "", "report this", colours);
                return Exit::Defect;
            }
        },
        PlanFormat::Dot => report::render::plan::dot(&plan),
        PlanFormat::Mermaid => report::render::plan::mermaid(&plan),
    });
    Exit::Ok
}
