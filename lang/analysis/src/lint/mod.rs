//! Method lints: what makes a study measure something else than it says. One lint is one file here and one page in
//! `docs/lints/`, whose examples are run as tests. Adding one: the file, the page, a line in [`LINTS`].
//!
//! `allow NAME reason="…"` in the study, or in the node that a lint speaks of, accepts it; the reason becomes a limit of
//! the report. A warning that nobody accepts becomes a limit too: whoever reads the report learns what the study's
//! author was told. `warn NAME` and `deny NAME` say how much a lint weighs; the command line has the last word.

mod dirty_database;
mod fixed_order;
mod floating_mix;
mod generator_fails_first;
mod inadmissible_estimator;
mod level;
mod mend;
mod no_generator_probe;
mod non_monotone_search;
mod open_loop_alone;
mod overlapping_cpus;
mod pool_exceeds_connections;
mod single_repetition;
mod summed_rss;
mod too_few_samples;
mod unbracketed_optimum;
mod unmeasured_report;
mod unreachable_budget;
mod unreported_phase;
mod unused_allow;
mod unvalidated_response;
mod vacuous_gate;
mod warm_up_too_short;
mod window_too_short;

use plan::{Limit, MetricRef, Phase, Plan, Procedure, ReportItem};
use syntax::{Applicability, Code, Diagnostic, Fix, Label, Location, Severity, Sources};

use crate::check::references::inside;
use crate::codes::CodeInfo;
use crate::host::Host;
use crate::problems::{Problems, problem};
use crate::resolve::{Item, Study};

pub use level::{ALL, Level, Levels, denies_all};

/// A lint.
#[derive(Debug)]
pub struct Lint {
    /// Code, name, severity; its examples stand on the page.
    pub info: CodeInfo,
    /// The page of `docs/lints/`.
    pub page: &'static str,
    /// Looks for it.
    pub check: fn(&Look<'_>, &mut Findings),
}

const fn info(code: &'static str, name: &'static str, severity: Severity, explanation: &'static str) -> CodeInfo {
    CodeInfo { code: Code(code), name, severity, explanation, bad: "", good: "" }
}

/// Every lint, in the order of the codes.
pub static LINTS: &[Lint] = &[
    unvalidated_response::LINT,
    no_generator_probe::LINT,
    vacuous_gate::LINT,
    single_repetition::LINT,
    inadmissible_estimator::LINT,
    open_loop_alone::LINT,
    unbracketed_optimum::LINT,
    dirty_database::LINT,
    overlapping_cpus::LINT,
    pool_exceeds_connections::LINT,
    too_few_samples::LINT,
    fixed_order::LINT,
    generator_fails_first::LINT,
    warm_up_too_short::LINT,
    unreported_phase::LINT,
    unused_allow::LINT,
    non_monotone_search::LINT,
    floating_mix::LINT,
    summed_rss::LINT,
    unreachable_budget::LINT,
    window_too_short::LINT,
    unmeasured_report::LINT,
];

/// What lints look at.
pub struct Look<'a> {
    /// The resolved study: for places.
    pub study: &'a Study,
    /// The plan: for meaning.
    pub plan: &'a Plan,
    /// The host, where it is known.
    pub host: Option<&'a Host>,
    /// The study's texts: what a change removes or adds depends on what stands around it.
    pub sources: &'a dyn Sources,
    /// Whether the study or its profile has errors: then what is absent may only be misspelt.
    pub has_errors: bool,
}

impl<'a> Look<'a> {
    /// The phases that have no errors, with their items.
    pub fn phases(&self) -> impl Iterator<Item = (&'a Phase, &'a Item)> {
        let study = self.study;
        self.plan.phases.iter().filter_map(move |phase| {
            let item = study.find("phase", &phase.name)?;
            (!item.broken).then_some((phase, item))
        })
    }

    /// The figures of the report, with the item's title.
    pub fn reported(&self) -> impl Iterator<Item = MetricRef> + use<'a> {
        self.plan.report.items.iter().map(|item| match item {
            ReportItem::Table { of, .. } | ReportItem::BarChart { of, .. } | ReportItem::LineChart { of, .. } => {
                of.clone()
            }
            ReportItem::CapacityPlan { of, .. } => MetricRef { phase: of.clone(), metric: plan::Metric::Throughput },
        })
    }

    /// Whether a figure of the phase is reported that `which` accepts.
    pub fn reports(&self, phase: &str, which: impl Fn(plan::Metric) -> bool) -> bool {
        self.reported().any(|of| of.phase == phase && which(of.metric))
    }
}

/// Whether the phase has a closed loop.
pub fn is_closed(phase: &Phase) -> bool {
    matches!(&phase.procedure, Procedure::Load(load) if load.rate.is_none())
}

/// Whether the phase writes to the database: by pgbench, or by a stream that creates rows or may change something.
pub fn writes(look: &Look<'_>, phase: &Phase) -> bool {
    writer(look, phase).is_some()
}

/// What writes to the database in the phase.
pub fn writer(look: &Look<'_>, phase: &Phase) -> Option<String> {
    match &phase.procedure {
        Procedure::Pgbench(_) => Some("pgbench".to_owned()),
        Procedure::Load(load) => {
            let stream = look.plan.workload(&load.workload)?.streams.iter().find(|stream| {
                stream.creates_row_in.is_some() || !matches!(stream.request.method.as_str(), "GET" | "HEAD" | "OPTIONS")
            })?;
            Some(format!("stream `{}`", stream.name))
        }
        Procedure::Start(_) => None,
    }
}

/// Whether the phase has an open loop.
pub fn is_open(phase: &Phase) -> bool {
    matches!(&phase.procedure, Procedure::Load(load) if load.rate.is_some())
}

/// What lints found.
#[derive(Default)]
pub struct Findings {
    found: Vec<Finding>,
}

struct Finding {
    at: Location,
    message: String,
    help: Option<String>,
    also: Vec<Label>,
    severity: Option<Severity>,
    /// Why no level can accept it, where none can.
    never_allowed: Option<String>,
    fixes: Vec<Fix>,
    /// Kind and key of the nodes around it, outermost first: where `allow` may stand.
    scope: Vec<(String, String)>,
}

impl Finding {
    /// As a diagnostic at `level`, where the study or the command line wanted `wanted`.
    fn diagnostic(self, lint: &'static Lint, level: Level, wanted: Level) -> Diagnostic {
        let mut diagnostic = problem(&lint.info, &self.at, self.message);
        diagnostic.severity = level.severity();
        diagnostic.secondary = self.also;
        diagnostic.help = match self.never_allowed {
            Some(why) if wanted < level => {
                let refused = format!("`{} {}` does not help: {why}", wanted.name(), lint.info.name);
                Some(self.help.map_or_else(|| refused.clone(), |help| format!("{help}; {refused}")))
            }
            _ => self.help,
        };
        diagnostic.fixes = self.fixes;
        diagnostic
    }
}

impl Findings {
    /// Something in `scope` (nodes, outermost first).
    pub fn add(&mut self, at: &Location, scope: &[&Item], message: impl Into<String>) -> Found<'_> {
        // What a definition brought is the business of the node that amends it.
        let foreign = scope.first().filter(|top| !inside(&top.at, at));
        let also = foreign.map(|_| Label { at: at.clone(), text: "from here".to_owned() });
        self.found.push(Finding {
            at: foreign.map_or_else(|| at.clone(), |top| top.name_at.clone()),
            message: message.into(),
            help: None,
            also: also.into_iter().collect(),
            severity: None,
            never_allowed: None,
            fixes: Vec::new(),
            scope: scope.iter().map(|item| (item.kind().to_owned(), item.key.clone())).collect(),
        });
        Found(self.found.last_mut())
    }
}

/// The finding that was just added.
pub struct Found<'a>(Option<&'a mut Finding>);

impl Found<'_> {
    /// What to do.
    pub fn help(self, help: impl Into<String>) -> Self {
        self.change(|finding| finding.help = Some(help.into()))
    }

    /// Another place.
    pub fn also(self, at: &Location, text: impl Into<String>) -> Self {
        self.change(|finding| finding.also.push(Label { at: at.clone(), text: text.into() }))
    }

    /// A change that removes it. One that would have to change the standard library is none.
    pub fn fix(self, fix: Option<Fix>) -> Self {
        self.change(|finding| {
            finding.fixes.extend(fix.filter(|fix| fix.edits.iter().all(|edit| !edit.at.source.is_std())));
        })
    }

    /// No level accepts it, because of this.
    pub fn never_allowed(self, why: impl Into<String>) -> Self {
        self.change(|finding| finding.never_allowed = Some(why.into()))
    }

    /// Another severity than the lint's usual one.
    pub fn severity(self, severity: Severity) -> Self {
        self.change(|finding| finding.severity = Some(severity))
    }

    fn change(mut self, change: impl FnOnce(&mut Finding)) -> Self {
        if let Some(finding) = self.0.as_deref_mut() {
            change(finding);
        }
        self
    }
}

/// Runs every lint; what is not allowed becomes a diagnostic, and all that is no error a limit.
pub fn run(look: &Look<'_>, levels: &Levels, problems: &mut Problems) -> Vec<Limit> {
    let mut stated = level::stated(&look.study.nodes);
    let mut limits: Vec<Limit> = Vec::new();
    for lint in LINTS {
        let name = lint.info.name;
        let mut findings = Findings::default();
        (lint.check)(look, &mut findings);
        for finding in findings.found {
            let usual = Level::of(finding.severity.unwrap_or(lint.info.severity));
            let decided = level::deciding(&stated, name, &finding.scope);
            if let Some(index) = decided {
                stated[index].used = true;
            }
            let of_study = decided.map(|index| (stated[index].level, stated[index].reason));
            let ordered = level::ordered(levels, name);
            let wanted = ordered.or(of_study.map(|(level, _)| level)).unwrap_or(usual);
            // What can't be measured at all can't be accepted either.
            let level = if finding.never_allowed.is_some() { Level::Deny } else { wanted };
            match level {
                Level::Allow => {
                    let why = match (ordered, of_study) {
                        (None, Some((_, reason))) => format!("because {reason}"),
                        _ => "on the command line".to_owned(),
                    };
                    limit(&mut limits, name, format!("Accepted, {why}: {}.", finding.message));
                }
                Level::Warn => {
                    limit(&mut limits, name, format!("Warned and not accepted: {}.", finding.message));
                    problems.push(finding.diagnostic(lint, level, wanted));
                }
                Level::Deny => problems.push(finding.diagnostic(lint, level, wanted)),
            }
        }
    }
    // What is absent in a study with errors may only be hidden by them.
    if !look.has_errors {
        for unused in level::unused(&stated).filter(|unused| is_lint(unused.lint)) {
            let message = format!("nothing here needs `allow {}`: the lint does not fire", unused.lint);
            let mut diagnostic = problem(&unused_allow::LINT.info, unused.at, message).help("remove it");
            match level::ordered(levels, unused_allow::LINT.info.name) {
                Some(Level::Allow) => continue,
                Some(level) => diagnostic.severity = level.severity(),
                None => {}
            }
            problems.push(match mend::without_node(look, unused.whole, Applicability::Safe) {
                Some(remove) => diagnostic.fix(remove),
                None => diagnostic,
            });
        }
    }
    limits
}

/// Whether a lint has that name.
pub fn is_lint(name: &str) -> bool {
    LINTS.iter().any(|lint| lint.info.name == name)
}

fn limit(limits: &mut Vec<Limit>, name: &str, text: String) {
    if !limits.iter().any(|limit| limit.name == name && limit.text == text) {
        limits.push(Limit { name: name.to_owned(), text, lowers_confidence: true });
    }
}
