//! References: every name that is used exists, every variable has a value where it is read, and what is defined is used.

use std::collections::BTreeSet;

use syntax::{Applicability, Fix, Location};

use crate::codes;
use crate::lint::LINTS;
use crate::names;
use crate::problems::{Problems, problem};
use crate::resolve::{Item, Study};
use crate::schema::Kind;
use crate::value::{Template, Value, Valued};

/// Variables of the database.
pub const DATABASE_VARIABLES: &[&str] = &["url", "host", "port", "name", "user", "password"];

/// Variables of credentials.
pub const CREDENTIALS_VARIABLES: &[&str] = &["public-key", "issuer", "audience"];

/// Checks every reference of the study.
pub fn check(study: &Study, problems: &mut Problems) {
    let mut walk = Walk { study, problems, used: BTreeSet::new(), misspelt: false, path: Vec::new() };
    for item in &study.nodes {
        walk.item(item);
    }
    let used = std::mem::take(&mut walk.used);
    let misspelt = walk.misspelt;
    factors(study, problems);
    // What only a removed phase used falls away with it; what a misread file or a misspelt name means can't be known.
    if study.profile.is_none() && !study.wounded && !misspelt {
        unused(study, &used, problems);
    }
}

struct Walk<'a> {
    study: &'a Study,
    problems: &'a mut Problems,
    used: BTreeSet<(Kind, String)>,
    misspelt: bool,
    path: Vec<&'a Item>,
}

impl<'a> Walk<'a> {
    fn item(&mut self, item: &'a Item) {
        self.path.push(item);
        let mut variables = Vec::new();
        let values = item
            .args
            .iter()
            .chain(item.settings.iter().map(|(_, valued)| valued))
            .chain(item.free.iter().map(|(_, valued)| valued));
        for valued in values {
            self.value(valued, &mut variables);
        }
        for template in variables {
            self.variables(template);
        }
        if item.kind() == "load" && item.setting("workload").is_none() {
            let mut workloads = self.study.names("workload");
            if let (Some(only), None) = (workloads.next(), workloads.next()) {
                self.used.insert((Kind::Workload, only.to_owned()));
            }
        }
        for child in &item.children {
            self.item(child);
        }
        if item.kind() == "stream" {
            self.parameters(item);
        }
        self.path.pop();
    }

    fn value(&mut self, valued: &'a Valued, variables: &mut Vec<&'a Template>) {
        match &valued.value {
            Value::Reference { kind, name } => self.reference(*kind, name, valued),
            Value::Figure { phase, .. } => self.reference(Kind::Phase, phase, valued),
            Value::List(list) => list.iter().for_each(|valued| self.value(valued, variables)),
            Value::Template(template) => variables.push(template),
            _ => {}
        }
    }

    fn reference(&mut self, kind: Kind, name: &str, valued: &Valued) {
        let at = &valued.at;
        self.used.insert((kind, name.to_owned()));
        let study = self.study;
        let mut known: Vec<&str> = match kind {
            Kind::Candidate => study.names("candidate").collect(),
            Kind::Phase => study.names("phase").collect(),
            Kind::Workload => study.names("workload").collect(),
            Kind::Credentials => study.names("credentials").collect(),
            Kind::Machine => study.names("machine").collect(),
            Kind::Database => study.names("database").collect(),
            Kind::Probe => study.names("probe").collect(),
            Kind::Token => {
                study.each("credentials").flat_map(|item| item.each("token")).map(|item| item.key.as_str()).collect()
            }
            Kind::Factor => {
                let local = self.path.iter().flat_map(|item| item.each("factor")).map(|item| item.key.as_str());
                std::iter::once("candidate").chain(study.names("factor")).chain(local).collect()
            }
            Kind::Lint => LINTS.iter().map(|lint| lint.info.name).collect(),
            Kind::Definition | Kind::Profile | Kind::Metric => return,
        };
        // The report lays figures out by factors that only the figure's phase has.
        let in_report = self.path.first().is_some_and(|item| item.kind() == "report");
        if kind == Kind::Factor && in_report {
            known.extend(study.each("phase").flat_map(|item| item.each("factor")).map(|item| item.key.as_str()));
        }
        let word = if kind == Kind::Phase { "phase" } else { kind.noun() };
        if known.contains(&name) || study.was_removed(word, name) || study.wounded {
            return;
        }
        // Where the definition would stand, something is misspelt: perhaps the definition itself.
        let hidden = match kind {
            Kind::Token => study.each("credentials").any(|item| item.lost_child),
            Kind::Factor => self.path.first().is_some_and(|item| item.lost_child),
            _ => false,
        };
        if hidden {
            return;
        }
        // A local factor of a removed phase may still lay out a report item that falls away.
        if kind == Kind::Factor && in_report && !study.removed.is_empty() {
            return;
        }
        self.misspelt = true;
        let near = names::nearest(name, known.iter().copied());
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        let mut diagnostic = problem(&codes::UNKNOWN_NAME, at, format!("no {word} is called `{name}`{hint}"));
        diagnostic = diagnostic.help(match known.is_empty() {
            true => format!("the study has no {word}"),
            false => format!("there is {}", names::listed(known)),
        });
        // The value may be a figure, a rate or a quoted word: only the name in it is replaced.
        if let (Some(near), Some(offset)) = (near, valued.written.find(name)) {
            let offset = u32::try_from(offset).unwrap_or(u32::MAX);
            let start = at.span.start.saturating_add(offset);
            let end = start.saturating_add(u32::try_from(name.len()).unwrap_or(0));
            let place = Location::new(&at.source, syntax::Span::new(start, end));
            diagnostic = diagnostic.fix(Fix::replace(format!("write `{near}`"), place, near, Applicability::Unsafe));
        }
        if let Some(top) = self.path.first()
            && !inside(&top.at, at)
        {
            for label in &top.via {
                diagnostic = diagnostic.through(label.at.clone(), label.text.clone());
            }
        }
        self.problems.push(diagnostic);
    }

    /// The variables that the innermost place may read.
    fn known_variables(&self) -> Vec<String> {
        let study = self.study;
        let mut known = Vec::new();
        let top = self.path.first().map_or("", |item| item.kind());
        let factors = || {
            let local = study.each("phase").flat_map(|item| item.each("factor"));
            study.each("factor").chain(local).map(|item| item.key.clone())
        };
        match top {
            "candidate" | "probe" => {
                known.push("port".to_owned());
                known.extend(factors());
                if !known.iter().any(|name| name == "cores") {
                    known.push("cores".to_owned());
                }
                if top == "candidate" && study.only("database").is_some() {
                    known.extend(DATABASE_VARIABLES.iter().map(|name| format!("database.{name}")));
                }
                for credentials in study.names("credentials") {
                    known.extend(CREDENTIALS_VARIABLES.iter().map(|name| format!("{credentials}.{name}")));
                }
            }
            "workload" => {
                let stream = self.path.iter().find(|item| item.kind() == "stream");
                known.extend(stream.iter().flat_map(|item| item.each("vary")).map(|item| item.key.clone()));
                known.extend(factors());
            }
            _ => {}
        }
        known
    }

    fn variables(&mut self, template: &'a Template) {
        if template.variables.is_empty() {
            return;
        }
        let known = self.known_variables();
        for (name, at) in &template.variables {
            if let Some((credentials, _)) = name.split_once('.') {
                self.used.insert((Kind::Credentials, credentials.to_owned()));
            }
            if known.contains(name) || self.study.wounded {
                continue;
            }
            // A stream with an error may have misspelt the parameter itself.
            if self.path.iter().any(|item| item.kind() == "stream" && item.broken) {
                continue;
            }
            let near = names::nearest(name, known.iter().map(String::as_str));
            let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let mut diagnostic =
                problem(&codes::UNKNOWN_VARIABLE, at, format!("`${{{name}}}` has no value here{hint}"));
            diagnostic = diagnostic.help(match known.is_empty() {
                true => "no variables exist here; `$${` stands for the characters `${` themselves".to_owned(),
                false => format!("variables here: {}", names::listed(known.iter().map(String::as_str))),
            });
            if let Some(near) = near {
                let fix = Fix::replace(format!("write `{near}`"), at.clone(), near, Applicability::Unsafe);
                diagnostic = diagnostic.fix(fix);
            }
            self.problems.push(diagnostic);
        }
    }

    /// A parameter that no text of its stream reads changes nothing.
    fn parameters(&mut self, stream: &'a Item) {
        let mut read = BTreeSet::new();
        let mut left: Vec<&Item> = stream.children.iter().collect();
        while let Some(item) = left.pop() {
            let values = item.args.iter().chain(item.settings.iter().map(|(_, valued)| valued));
            for valued in values {
                if let Value::Template(template) = &valued.value {
                    read.extend(template.variables.iter().map(|(name, _)| name.as_str()));
                }
            }
            left.extend(&item.children);
        }
        for vary in stream.each("vary").filter(|vary| !read.contains(vary.key.as_str()) && !stream.broken) {
            let at = vary.args.first().map_or(&vary.name_at, |valued| &valued.at);
            let message = format!("the parameter `{0}` varies and no text reads `${{{0}}}`", vary.key);
            self.problems.push(problem(&codes::UNUSED_DEFINITION, at, message));
        }
    }
}

/// Whether a place lies inside another.
pub fn inside(outer: &Location, at: &Location) -> bool {
    outer.source == at.source && outer.span.contains(at.span)
}

/// A factor that no phase varies.
fn factors(study: &Study, problems: &mut Problems) {
    let varied = |name: &str, phases: &[&Item]| {
        phases.iter().any(|phase| {
            phase.broken || phase.each("over").flat_map(|over| &over.args).any(|valued| valued.text() == Some(name))
        })
    };
    if study.wounded {
        return;
    }
    let mut report = |item: &Item, place: &str| {
        let at = item.args.first().map_or(&item.name_at, |valued| &valued.at);
        problems.push(
            problem(&codes::UNUSED_FACTOR, at, format!("{place} varies the factor `{}`", item.key))
                .help(format!("write `over … {}` in a phase, or remove the factor", item.key)),
        );
    };
    for phase in study.each("phase").filter(|phase| !phase.broken) {
        for factor in phase.each("factor") {
            if !varied(&factor.key, &[phase]) {
                report(factor, &format!("nothing in phase `{}`", phase.key));
            }
        }
    }
    if study.profile.is_none() {
        let phases: Vec<&Item> = study.each("phase").collect();
        for factor in study.each("factor").filter(|factor| !factor.broken) {
            if !varied(&factor.key, &phases) {
                report(factor, "no phase");
            }
        }
    }
}

fn unused(study: &Study, used: &BTreeSet<(Kind, String)>, problems: &mut Problems) {
    let mut warn = |item: &Item, noun: &str, help: &str| {
        // A library offers more than one study needs.
        if Some(&item.at.source) != study.source.as_ref() {
            return;
        }
        let at = item.args.first().map_or(&item.name_at, |valued| &valued.at);
        let message = format!("the {noun} `{}` is defined and nothing uses it", item.key);
        problems.push(problem(&codes::UNUSED_DEFINITION, at, message).help(help));
    };
    for definition in &study.definitions {
        if !study.used_definitions.contains(&format!("{} {}", definition.kind(), definition.key)) {
            warn(definition, "definition", "amend it with `like=`, or remove it");
        }
    }
    for workload in study.each("workload") {
        if !used.contains(&(Kind::Workload, workload.key.clone())) {
            warn(workload, "workload", "name it in a phase: `load … workload=NAME`, or remove it");
        }
    }
    for credentials in study.each("credentials") {
        let mut token_used = false;
        for token in credentials.each("token") {
            let is_used = used.contains(&(Kind::Token, token.key.clone()));
            token_used |= is_used;
            if !is_used {
                warn(token, "token", "send it with `bearer`, or remove it");
            }
        }
        if !token_used && !used.contains(&(Kind::Credentials, credentials.key.clone())) && !credentials.broken {
            warn(credentials, "issuer", "read its variables in a candidate's `env`, or remove it");
        }
    }
}
