//! References: every name that is used exists, every variable has a value where it is read, and what is defined is used.

use std::collections::BTreeSet;

use plan::input::ENVIRONMENT;
use syntax::{Applicability, Fix, Location};

use crate::codes;
use crate::lint::LINTS;
use crate::names;
use crate::problems::{Problems, problem};
use crate::resolve::inputs::environment_text;
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
    declared_twice(study, problems);
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
            Value::Text(plain) => self.environment(plain, valued),
            _ => {}
        }
    }

    /// What a plain text reads of the environment: an input's value is filled in, a secret's would be written down.
    fn environment(&mut self, plain: &str, valued: &Valued) {
        let Some(read) = environment_text(plain) else { return };
        for variable in read.variables() {
            let Some(name) = variable.strip_prefix(ENVIRONMENT) else { continue };
            let at = part_of(valued, variable);
            if self.study.find("secret", name).is_some() {
                self.used.insert((Kind::Secret, name.to_owned()));
                let message = format!("the secret `{name}` would be written down here");
                self.problems.push(
                    problem(&codes::SECRET_EXPOSED, &at, message)
                        .help("secrets are filled in at use: in a server's `env`, and in requests"),
                );
            } else {
                self.environment_variable(name, &at);
            }
        }
    }

    /// `${env:NAME}`, which an `input` or a `secret` must declare.
    fn environment_variable(&mut self, name: &str, at: &Location) {
        self.used.insert((Kind::Input, name.to_owned()));
        self.used.insert((Kind::Secret, name.to_owned()));
        let study = self.study;
        let declared = study.find("input", name).is_some() || study.find("secret", name).is_some();
        if declared || study.wounded || study.was_removed("input", name) || study.was_removed("secret", name) {
            return;
        }
        self.misspelt = true;
        let known: Vec<&str> = study.names("input").chain(study.names("secret")).collect();
        let near = names::nearest(name, known.iter().copied());
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        let mut diagnostic = problem(
            &codes::UNKNOWN_VARIABLE,
            at,
            format!("the study does not declare the environment variable `{name}`{hint}"),
        )
        .help(format!("write `input {name}`, or `secret {name}` where its value must not be recorded"));
        if let Some(near) = near {
            let replacement = plan::input::variable(near);
            let fix = Fix::replace(format!("write `{replacement}`"), at.clone(), replacement, Applicability::Unsafe);
            diagnostic = diagnostic.fix(fix);
        }
        if let Some(header) = study.only("study") {
            let end = header.at.span.end;
            let place = Location::new(&header.at.source, syntax::Span::new(end, end));
            let text = format!("\ninput {name}");
            diagnostic =
                diagnostic.fix(Fix::replace(format!("declare `input {name}`"), place, text, Applicability::Unsafe));
        }
        self.problems.push(diagnostic);
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
            Kind::Input | Kind::Secret | Kind::Definition | Kind::Profile | Kind::Metric => return,
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
        if let Some(near) = near.filter(|_| valued.written.contains(name)) {
            let place = part_of(valued, name);
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
            if let Some(name) = name.strip_prefix(ENVIRONMENT) {
                self.environment_variable(name, at);
                continue;
            }
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

/// Where a part of a value stands, if it is written there as it reads; otherwise all of the value.
fn part_of(valued: &Valued, part: &str) -> Location {
    let found = valued.written.find(part).and_then(|offset| u32::try_from(offset).ok());
    found.map_or_else(
        || valued.at.clone(),
        |offset| {
            let start = valued.at.span.start.saturating_add(offset);
            let end = start.saturating_add(u32::try_from(part.len()).unwrap_or(0));
            Location::new(&valued.at.source, syntax::Span::new(start, end))
        },
    )
}

/// Whether a place lies inside another.
pub fn inside(outer: &Location, at: &Location) -> bool {
    outer.source == at.source && outer.span.contains(at.span)
}

/// A variable can't be recorded and kept secret.
fn declared_twice(study: &Study, problems: &mut Problems) {
    for secret in study.each("secret").filter(|secret| !secret.broken) {
        if let Some(input) = study.find("input", &secret.key) {
            let at = secret.args.first().map_or(&secret.name_at, |valued| &valued.at);
            let message = format!("`{}` is declared as an input and as a secret", secret.key);
            problems.push(
                problem(&codes::DEFINED_TWICE, at, message)
                    .also(input.name_at.clone(), "recorded here")
                    .help("keep `secret` where its value must not be recorded, otherwise `input`"),
            );
        }
    }
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
    for (kind, noun) in [("input", Kind::Input), ("secret", Kind::Secret)] {
        for declared in study.each(kind).filter(|declared| !declared.broken && !declared.key.is_empty()) {
            if !used.contains(&(noun, declared.key.clone())) {
                warn(declared, kind, &format!("read it in a text: `${{env:{}}}`, or remove it", declared.key));
            }
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
