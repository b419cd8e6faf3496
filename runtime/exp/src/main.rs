//! `exp`: runs performance studies that people write down as KDL files.
//!
//! The rim of the project: arguments, files, terminal, signals, exit codes. What is decided is decided elsewhere.

mod args;
mod commands;
mod diagnostics;
mod exit;
mod host;
mod leftovers;
mod lock;
mod rewrite;
mod rundir;
mod sources;
mod study;
mod terminal;
mod variables;
mod view;

use std::process::ExitCode;

use args::{Arguments, Command};
use clap::Parser;
use exit::Exit;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            // `--help` and `--version` are answers, not errors.
            return if error.use_stderr() { Exit::Usage } else { Exit::Ok }.into();
        }
    };
    let colour = terminal::Colours::of(arguments.color);
    // What a killed run left behind goes first, except on the paths that a running run calls.
    let inner = matches!(&arguments.command, Command::Probe(_))
        || matches!(&arguments.command, Command::Load(load) if load.control);
    if !inner {
        for line in leftovers::sweep() {
            terminal::note(&line);
        }
    }
    let exit = match arguments.command {
        Command::New(new) => commands::new::run(&new, colour),
        Command::Check(check) => commands::check::run(&check, colour),
        Command::Fmt(fmt) => commands::fmt::run(&fmt, colour),
        Command::Explain(explain) => commands::explain::run(&explain),
        Command::ExplainValue(explain) => commands::explain_value::run(&explain, colour),
        Command::Plan(plan) => commands::plan::run(&plan, colour),
        Command::Run(run) => commands::run::run(&run, colour),
        Command::Report(report) => commands::report::run(&report, colour),
        Command::Doctor(doctor) => commands::doctor::run(&doctor, colour),
        Command::Clean(clean) => commands::clean::run(&clean),
        Command::Load(load) => commands::load::run(&load, colour),
        Command::Probe(probe) => commands::probe::run(&probe),
    };
    exit.into()
}
