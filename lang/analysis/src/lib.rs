//! The language's meaning: from the text of a study to a plan that a runtime can execute.
//!
//! `text → items → resolved study → plan`, each stage with a value *and* problems. [`analyse`] never fails and never
//! panics: whatever the sources hold, it says everything that is wrong with them at once.
//!
//! - `schema`: the language as data, the one list of its names.
//! - `value`: typed values, units, texts with variables.
//! - `resolve`: imports, definitions, amendments, profiles; every value keeps its origin.
//! - `check`: what is missing, what is referred to, which machine fits.
//! - `lower`: the plan, with its cells, order and hashes.
//! - `lint`: what makes a study measure something else than it says.
//! - `fix`: the texts after their fixes.
//!
//! Invariants: no I/O (sources come through `syntax::Sources`, the host as plain data); the same sources, machine and
//! profile give the same bytes of plan; an error whose cause already has a diagnostic is not told a second time.

pub mod check;
pub mod codes;
pub mod fix;
pub mod host;
pub mod lint;
pub mod lower;
pub mod names;
pub mod origin;
pub mod outlook;
pub mod problems;
pub mod resolve;
pub mod schema;
pub mod stdlib;
pub mod value;

use std::collections::BTreeMap;

use plan::{Limit, Plan};
use syntax::{Diagnostic, Severity, SourceId, Sources};

pub use codes::explain;
pub use host::{CoreKind, FileSystem, Host, Listening};
pub use lint::Level;
pub use resolve::{Item, Study};

use problems::Problems;

/// What the command line chose, and the host that the study is to run on.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `--machine`; otherwise the only one that fits.
    pub machine: Option<String>,
    /// `--profile`.
    pub profile: Option<String>,
    /// The host, where the study is to be checked against one.
    pub host: Option<Host>,
    /// The environment, of which only what the study declares with `input` is looked at.
    pub environment: BTreeMap<String, String>,
    /// Levels of lints that the command line gives: a lint's name (or `all`) and the level.
    pub levels: Vec<(String, Level)>,
}

/// Everything that is known of a study.
#[derive(Debug)]
pub struct Analysed {
    /// All problems, in the order of the sources.
    pub diagnostics: Vec<Diagnostic>,
    /// The study after imports, definitions and profile; every value knows its origin.
    pub study: Study,
    /// The plan; `None` when there are errors.
    pub plan: Option<Plan>,
    /// Every source that was read: the study first, then what it uses, then files that it names.
    pub sources: Vec<SourceId>,
}

impl Analysed {
    /// The study as one text, after imports, definitions, amendments and profile. It gives the same plan.
    pub fn expanded(&self) -> String {
        resolve::expanded::expanded(&self.study)
    }

    /// The value at a path such as `phase.ceiling.repeat`, or every value below it, with its origin.
    ///
    /// # Errors
    /// The nearest path, where nothing has that one.
    pub fn explain_value(&self, path: &str) -> Result<Vec<origin::Explained>, origin::NotFound> {
        origin::explain(&self.study, self.plan.as_ref(), path)
    }

    /// Whether the study has errors.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// Analyses the study `id`.
pub fn analyse(sources: &dyn Sources, id: &SourceId, options: &Options) -> Analysed {
    let mut problems = Problems::default();
    let (mut study, imported) = resolve::resolve(sources, id, options.profile.as_deref(), &mut problems);
    check::required::check(&study, &mut problems);
    check::references::check(&study, &mut problems);
    let inputs = resolve::inputs::fill(&mut study, &options.environment);
    let host = options.host.as_ref();
    let chosen = check::machine::choose(&study, options.machine.as_deref(), host, &mut problems);
    if let Some(chosen) = &chosen {
        check::machine::check_database(&study, chosen, &mut problems);
        check::machine::check_generators(chosen, &mut problems);
    }
    let mut lowered = lower::lower(&study, chosen.as_ref(), &mut problems);
    lower::environment(&mut lowered.plan, inputs);
    check::feasible::check_study(&study, &lowered.plan, &mut problems);
    if let Some(host) = host {
        check::feasible::check_host(&study, &lowered.plan, host, &mut problems);
    }
    lowered.plan.limits.extend(sharing(&lowered.plan));
    lowered.plan.limits.extend(unchecked(&lowered.plan));
    check::transport::check(&study, &lowered.plan, &mut problems);
    let look = lint::Look { study: &study, plan: &lowered.plan, host, sources, has_errors: problems.has_errors() };
    let limits = lint::run(&look, &options.levels, &mut problems);
    if lint::denies_all(&options.levels) {
        problems.deny_warnings(|diagnostic| !lint::is_lint(diagnostic.name));
    }
    let mut plan = lowered.plan;
    plan.limits.extend(limits);
    // Without a machine there is nothing to run on, whether or not that has a diagnostic of its own.
    let plan = (!problems.has_errors() && chosen.is_some()).then(|| {
        lower::finish(&mut plan);
        plan
    });
    let mut sources_read = imported.sources.clone();
    sources_read.extend(imported.files.iter().cloned());
    let mut diagnostics = problems.sorted(&sources_read);
    for diagnostic in &mut diagnostics {
        let mut chain = resolve::chain(&imported, &diagnostic.primary.at);
        chain.append(&mut diagnostic.chain);
        diagnostic.chain = chain;
    }
    Analysed { diagnostics, study, plan, sources: sources_read }
}

/// What certificates that nobody checks mean for the report.
fn unchecked(plan: &Plan) -> Option<Limit> {
    let servers = plan.candidates.iter().map(|candidate| (candidate.name.as_str(), &candidate.tls));
    let names: Vec<&str> = servers
        .chain(plan.probe.iter().map(|probe| (probe.name.as_str(), &probe.tls)))
        .filter(|(_, tls)| tls.as_ref().is_some_and(|tls| tls.unchecked))
        .map(|(name, _)| name)
        .collect();
    (!names.is_empty()).then(|| Limit {
        name: "certificate-unchecked".to_owned(),
        text: format!(
            "The certificate of {} was not checked: who answered is not proven, and a client that checks it does more work.",
            names.join(", ")
        ),
        lowers_confidence: false,
    })
}

/// What shared CPUs mean for the report.
fn sharing(plan: &Plan) -> Option<Limit> {
    let machine = &plan.machine;
    let pairs = [
        ("candidate", &machine.candidate, "database", &machine.database),
        ("candidate", &machine.candidate, "load", &machine.load),
        ("database", &machine.database, "load", &machine.load),
    ];
    let shared: Vec<String> = pairs
        .iter()
        .filter_map(|(one, left, other, right)| {
            let shared = left.shared_with(right);
            (!shared.is_empty()).then(|| format!("{one} and {other} share CPU {shared}"))
        })
        .collect();
    if shared.is_empty() || !machine.sharing_accepted {
        return None;
    }
    Some(Limit {
        name: "cpus-shared".to_owned(),
        text: format!(
            "On machine `{}` {}: each slows the other down, so figures are lower bounds.",
            machine.name,
            shared.join(", ")
        ),
        lowers_confidence: true,
    })
}
