//! The command line. The only module that knows clap.

mod load;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use self::load::{ArrivalsChoice, EngineChoice, Load};

/// Runs performance studies that are written down as KDL files. A number that it publishes is right, or it says why it
/// can't publish one.
#[derive(Debug, Parser)]
#[command(name = "exp", version, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    /// When to use colour.
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto)]
    pub color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Writes a study to begin with, with a small service that it can measure at once.
    New(New),
    /// Checks studies and prints every problem of each.
    Check(Check),
    /// Prints a study as `exp fmt` lays it out, or rewrites it.
    Fmt(Fmt),
    /// Explains a diagnostic, such as E0310, or a lint, such as single-repetition.
    Explain(Explain),
    /// Says where a value of a study comes from, such as phase.ceiling.repeat.
    ExplainValue(ExplainValue),
    /// Prints what would be done: phases, cells, repetitions, order, estimated time.
    Plan(PlanArguments),
    /// Runs a study, or continues it where it stopped.
    Run(Run),
    /// Writes the report of a run again, from its journal.
    Report(Report),
    /// Says what this machine can do, what is missing, and the command that mends it.
    Doctor(Doctor),
    /// Removes what interrupted runs left behind.
    Clean(Clean),
    /// Sends load to a URL, or is driven over standard input with `--control`.
    Load(Box<Load>),
    /// A server without application code, for generator probes.
    #[command(hide = true)]
    Probe(Probe),
}

#[derive(Debug, Args)]
pub struct Selection {
    /// The machine of the study to run on; without it, the only one that fits.
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,
    /// The profile to apply, such as `smoke`.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
}

/// What lints weigh. A lint's own name counts more than `all`; of several levels for one lint the strictest counts.
#[derive(Debug, Args, Default)]
pub struct LevelArguments {
    /// Makes what this lint says an error; `all`: every warning. May be repeated.
    #[arg(long, value_name = "LINT")]
    pub deny: Vec<String>,
    /// Makes what this lint says a warning; `all`: what every lint says. May be repeated.
    #[arg(long, value_name = "LINT")]
    pub warn: Vec<String>,
    /// Says nothing of what this lint finds; `all`: of what any lint finds. May be repeated.
    #[arg(long, value_name = "LINT")]
    pub allow: Vec<String>,
}

#[derive(Debug, Args)]
pub struct New {
    /// The directory to make; its last part is the study's name. `first-study` where left out.
    #[arg(value_name = "NAME")]
    pub directory: Option<PathBuf>,
    /// What to begin with.
    #[arg(long, value_enum, default_value_t = Template::Http)]
    pub template: Template,
    /// The templates, one a line.
    #[arg(long, conflicts_with = "directory")]
    pub list: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Template {
    /// An HTTP service.
    Http,
    /// An HTTP service in front of PostgreSQL.
    HttpDatabase,
}

#[derive(Debug, Args)]
pub struct Check {
    /// Study files.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub selection: Selection,
    /// The host that the study is to run on: `here`, or a file that `exp doctor --describe` wrote there. Without it every
    /// machine of the study is checked, and no host.
    #[arg(long, value_name = "HOST")]
    pub on: Option<String>,
    #[command(flatten)]
    pub levels: LevelArguments,
    /// How problems are printed.
    #[arg(long, value_enum, default_value_t = DiagnosticFormat::Human)]
    pub format: DiagnosticFormat,
    /// Applies the fixes that say what was plainly meant, then prints what is left.
    #[arg(long)]
    pub fix: bool,
    /// Applies guesses too, such as the nearest name.
    #[arg(long)]
    pub unsafe_fixes: bool,
    /// Changes nothing, and prints what the fixes would change.
    #[arg(long)]
    pub diff: bool,
    /// Prints the study as one text, after imports, definitions, amendments and profile; problems go to standard error.
    #[arg(long, conflicts_with_all = ["fix", "unsafe_fixes", "diff", "format"])]
    pub expanded: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiagnosticFormat {
    /// With the lines they are about.
    Human,
    /// One line each.
    Concise,
    /// One JSON object.
    Json,
    /// SARIF 2.1.0, for code hosts and editors.
    Sarif,
    /// GitHub's annotations.
    Github,
}

#[derive(Debug, Args)]
pub struct Fmt {
    /// Study files; they are rewritten in place.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Changes nothing, and ends with an error if a file would change.
    #[arg(long)]
    pub check: bool,
    /// Changes nothing, prints what would change, and ends with an error if a file would.
    #[arg(long)]
    pub diff: bool,
}

#[derive(Debug, Args)]
pub struct Explain {
    /// A code such as E0108, or a name such as single-repetition.
    #[arg(required_unless_present = "list")]
    pub code: Option<String>,
    /// Every code with its name, one a line.
    #[arg(long, conflicts_with = "code")]
    pub list: bool,
}

#[derive(Debug, Args)]
pub struct ExplainValue {
    /// The value: kind, name and setting, such as phase.ceiling.repeat; of a node, all of its values.
    pub path: String,
    /// The study; without it, the only one in this directory.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub selection: Selection,
    /// What is printed.
    #[arg(long, value_enum, default_value_t = OutputFormat::Human)]
    pub format: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    Human,
    /// One JSON array.
    Json,
}

#[derive(Debug, Args)]
pub struct PlanArguments {
    /// The study.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub selection: Selection,
    /// The host that the study is to run on: `here`, or a file that `exp doctor --describe` wrote there.
    #[arg(long, value_name = "HOST", default_value = "here")]
    pub on: String,
    /// How the plan is printed.
    #[arg(long, value_enum, default_value_t = PlanFormat::Text)]
    pub format: PlanFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    Text,
    Json,
    Dot,
    Mermaid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackendChoice {
    /// Docker where an engine answers, else processes.
    Auto,
    /// A Docker Engine.
    Docker,
    /// Processes of this machine.
    Process,
}

#[derive(Debug, Args)]
pub struct Run {
    /// The study.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub selection: Selection,
    /// Where the roles run.
    #[arg(long, value_enum, default_value_t = BackendChoice::Auto)]
    pub backend: BackendChoice,
    /// Ends with an error before anything is measured if a candidate can't be measured here.
    #[arg(long)]
    pub require_all: bool,
    /// Measures only this candidate; may be repeated. The others are listed as not measured.
    #[arg(long, value_name = "NAME")]
    pub candidate: Vec<String>,
    /// Begins a new run even where an unfinished one could be continued.
    #[arg(long)]
    pub new: bool,
    /// Directory of results.
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub results: PathBuf,
    /// What is printed on standard output.
    #[arg(long, value_enum, default_value_t = RunFormat::Human)]
    pub format: RunFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunFormat {
    /// Progress and tables.
    Human,
    /// One summary object at the end; progress goes to standard error.
    Json,
}

#[derive(Debug, Args)]
pub struct Report {
    /// A run's directory.
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// What is printed; the files of the run are written again either way.
    #[arg(long, value_enum, default_value_t = RunFormat::Human)]
    pub format: RunFormat,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// A study, to say which of its candidates can be measured here.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Prints what this host has as JSON, for `exp check --on` on another one.
    #[arg(long, conflicts_with = "file")]
    pub describe: bool,
}

#[derive(Debug, Args)]
pub struct Clean {
    /// Also removes the images that were built for studies.
    #[arg(long)]
    pub images: bool,
}

#[derive(Debug, Args)]
pub struct Probe {
    /// Port on 127.0.0.1; without it, the environment's PORT.
    #[arg(long)]
    pub port: Option<u16>,
    /// Threads; without it, the environment's CORES.
    #[arg(long)]
    pub threads: Option<u32>,
}
