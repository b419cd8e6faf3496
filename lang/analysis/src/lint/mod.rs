//! Method lints: what makes a study measure something else than it says. One lint is one file here and one page in
//! `docs/lints/`, whose examples are run as tests. Adding one: the file, the page, a line in [`LINTS`].
//!
//! `allow NAME reason="…"` in the study, or in the node that a lint speaks of, accepts it; the reason becomes a limit of
//! the report. A warning that nobody accepts becomes a limit too: whoever reads the report learns what the study's
//! author was told.

mod dirty_database;
mod fixed_order;
mod generator_fails_first;
mod inadmissible_estimator;
mod no_generator_probe;
mod open_loop_alone;
mod overlapping_cpus;
mod pool_exceeds_connections;
mod single_repetition;
mod too_few_samples;
mod unbracketed_optimum;
mod unreported_phase;
mod unused_allow;
mod unvalidated_response;
mod vacuous_gate;
mod warm_up_too_short;

use plan::{Limit, MetricRef, Phase, Plan, Procedure, ReportItem};
use syntax::{Code, Label, Location, Severity};

use crate::check::references::inside;
use crate::codes::CodeInfo;
use crate::host::Host;
use crate::problems::{Problems, problem};
use crate::resolve::{Item, Study};

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
];

/// What lints look at.
pub struct Look<'a> {
    /// The resolved study: for places.
    pub study: &'a Study,
    /// The plan: for meaning.
    pub plan: &'a Plan,
    /// The host, where it is known.
    pub host: Option<&'a Host>,
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
    /// Kind and key of the nodes around it, outermost first: where `allow` may stand.
    scope: Vec<(String, String)>,
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

/// An `allow` of the study.
struct Allowed<'a> {
    lint: &'a str,
    reason: &'a str,
    at: &'a Location,
    scope: Vec<(&'static str, &'a str)>,
    from_library: bool,
    used: bool,
}

fn allowed<'a>(items: &'a [Item], scope: &mut Vec<(&'static str, &'a str)>, found: &mut Vec<Allowed<'a>>) {
    for item in items {
        if item.kind() == "allow" {
            let (Some(lint), Some(reason)) =
                (item.args.first().and_then(crate::value::Valued::text), item.text("reason"))
            else {
                continue;
            };
            found.push(Allowed {
                lint,
                reason,
                at: &item.args[0].at,
                scope: scope.clone(),
                from_library: item.at.source.is_std(),
                used: false,
            });
            continue;
        }
        scope.push((item.kind(), &item.key));
        allowed(&item.children, scope, found);
        scope.pop();
    }
}

/// Runs every lint; what is not allowed becomes a diagnostic, and all of it a limit.
pub fn run(look: &Look<'_>, problems: &mut Problems) -> Vec<Limit> {
    let mut allows = Vec::new();
    allowed(&look.study.nodes, &mut Vec::new(), &mut allows);
    let mut limits: Vec<Limit> = Vec::new();
    for lint in LINTS {
        let mut findings = Findings::default();
        (lint.check)(look, &mut findings);
        for finding in findings.found {
            let covers = |allow: &Allowed<'_>| {
                allow.lint == lint.info.name
                    && allow.scope.len() <= finding.scope.len()
                    && allow.scope.iter().zip(&finding.scope).all(|((kind, key), (k, name))| kind == k && key == name)
            };
            match allows.iter_mut().find(|allow| covers(allow)) {
                Some(allow) => {
                    allow.used = true;
                    let text = format!("Accepted, because {}: {}.", allow.reason, finding.message);
                    limit(&mut limits, lint.info.name, text);
                }
                None => {
                    let severity = finding.severity.unwrap_or(lint.info.severity);
                    let mut diagnostic = problem(lint_info(lint), &finding.at, finding.message.clone());
                    diagnostic.severity = severity;
                    diagnostic.secondary = finding.also;
                    diagnostic.help = finding.help;
                    problems.push(diagnostic);
                    if severity == Severity::Warning {
                        limit(&mut limits, lint.info.name, format!("Warned and not accepted: {}.", finding.message));
                    }
                }
            }
        }
    }
    // What is absent in a study with errors may only be hidden by them.
    if !look.has_errors {
        for allow in allows.iter().filter(|allow| !allow.used && !allow.from_library) {
            if LINTS.iter().any(|lint| lint.info.name == allow.lint) {
                let message = format!("nothing here needs `allow {}`: the lint does not fire", allow.lint);
                problems.push(problem(&unused_allow::LINT_INFO, allow.at, message).help("remove it"));
            }
        }
    }
    limits
}

fn lint_info(lint: &'static Lint) -> &'static CodeInfo {
    &lint.info
}

fn limit(limits: &mut Vec<Limit>, name: &str, text: String) {
    if !limits.iter().any(|limit| limit.name == name && limit.text == text) {
        limits.push(Limit { name: name.to_owned(), text, lowers_confidence: true });
    }
}
