//! From sources to one study: imports, definitions, amendments, profiles. Every value keeps its origin.

pub mod amend;
mod convert;
pub mod expanded;
mod forms;
mod import;
pub mod inputs;
pub mod item;
mod parameter;
pub mod read;

use std::collections::{BTreeMap, BTreeSet};

use syntax::{Location, SourceId, Sources};

pub use import::{Imported, chain};
pub use item::Item;

use crate::codes;
use crate::names;
use crate::problems::{Problems, problem};
use crate::resolve::item::Mode;
use crate::resolve::parameter::{Binding, Callers};
use crate::resolve::read::label;
use crate::schema::level;

/// The setting that names the definition underneath.
const LIKE: &str = "like";

/// A study after imports, definitions and profile: what is measured, with the origin of every value.
#[derive(Debug, Clone, Default)]
pub struct Study {
    /// Top-level nodes.
    pub nodes: Vec<Item>,
    /// Definitions, whether used or not.
    pub definitions: Vec<Item>,
    /// Profiles, as written.
    pub profiles: Vec<Item>,
    /// Names of the definitions that something amends, as "kind name".
    pub used_definitions: Vec<String>,
    /// What the profile removed, as (kind, name, where).
    pub removed: Vec<(String, String, Location)>,
    /// The same, as they stood.
    pub removed_nodes: Vec<Item>,
    /// The profile that was applied.
    pub profile: Option<String>,
    /// Whether syntax errors may hide definitions.
    pub wounded: bool,
    /// The study's own source.
    pub source: Option<SourceId>,
    named: BTreeSet<(&'static str, String)>,
    index: BTreeMap<(&'static str, String), usize>,
}

impl Study {
    /// The top-level node of that kind and name.
    pub fn find(&self, kind: &str, name: &str) -> Option<&Item> {
        // The index is keyed by static names; a lookup with a shorter-lived one goes through the schema's own.
        let kind = crate::schema::FILE.child(kind)?.name;
        self.index.get(&(kind, name.to_owned())).and_then(|place| self.nodes.get(*place))
    }

    /// The only node of that kind.
    pub fn only(&self, kind: &str) -> Option<&Item> {
        self.nodes.iter().find(|item| item.kind() == kind)
    }

    /// The nodes of that kind, in order.
    pub fn each<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Item> {
        self.nodes.iter().filter(move |item| item.kind() == kind)
    }

    /// The names of the nodes of that kind.
    pub fn names<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        self.each(kind).map(|item| item.key.as_str())
    }

    /// Whether the profile removed it.
    pub fn was_removed(&self, kind: &str, name: &str) -> bool {
        self.removed.iter().any(|(k, n, _)| k == kind && n == name)
    }

    fn build_index(&mut self) {
        self.index =
            self.nodes.iter().enumerate().map(|(place, item)| ((item.kind(), item.key.clone()), place)).collect();
    }
}

/// Resolves the study `id` with `profile` applied.
pub fn resolve(
    sources: &dyn Sources,
    id: &SourceId,
    profile: Option<&str>,
    problems: &mut Problems,
) -> (Study, Imported) {
    let mut imported = import::import(sources, id, problems);
    let mut study = Study { wounded: imported.wounded, source: Some(id.clone()), ..Study::default() };
    study.definitions = unique(std::mem::take(&mut imported.definitions), "definition of ", problems);
    study.profiles = unique(std::mem::take(&mut imported.profiles), "", problems);
    let nodes = unique(std::mem::take(&mut imported.nodes), "", problems);
    study.named = nodes.iter().map(|item| (item.kind(), item.key.clone())).collect();
    let mut files = std::mem::take(&mut imported.files);
    let mut callers = Callers { sources, trees: &imported.trees, files: &mut files };
    for item in nodes {
        if item.mode != Mode::Amend {
            let message = format!("{} stands at the top level, where it amends nothing", item.described());
            problems.push(
                problem(&codes::UNKNOWN_ANNOTATION, &item.name_at, message)
                    .help("`(replace)` and `(remove)` belong into a profile, or into a node that amends another"),
            );
        }
        let item = expand(item, &mut study, &mut callers, &[], &mut Vec::new(), problems);
        study.nodes.push(item);
    }
    imported.files = files;
    study.build_index();
    check_profiles(&study, problems);
    if let Some(name) = profile {
        apply(&mut study, name, problems);
        study.build_index();
    }
    (study, imported)
}

/// The items without those whose name another one of the same kind already has, which are reported.
fn unique(items: Vec<Item>, of: &str, problems: &mut Problems) -> Vec<Item> {
    let mut seen: BTreeMap<(&'static str, String), Location> = BTreeMap::new();
    let mut kept: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        let identity = (item.kind(), item.key.clone());
        if let Some(first) = seen.get(&identity) {
            let message = format!("{of}{} stands twice", item.described());
            problems.push(
                problem(&codes::DEFINED_TWICE, &item.name_at, message)
                    .also(first.clone(), "first here")
                    .help("give one of them another name, or amend a definition with `like=`"),
            );
            continue;
        }
        seen.insert(identity, item.name_at.clone());
        kept.push(item);
    }
    kept
}

/// The item with what its `like` names underneath. `scope` are the parameters that it may read.
fn expand<'t>(
    item: Item,
    study: &mut Study,
    callers: &mut Callers<'t>,
    scope: &[Binding<'t>],
    path: &mut Vec<String>,
    problems: &mut Problems,
) -> Item {
    let Some(like) = item.setting(LIKE).cloned() else { return amend::plain(item, problems) };
    let Some(name) = like.text().map(str::to_owned) else { return item };
    let kind = item.kind();
    let identity = format!("{kind} {name}");
    if path.contains(&identity) {
        path.push(identity);
        let names: Vec<String> =
            path.iter().map(|entry| format!("`{}`", entry.split_once(' ').map_or("", |(_, name)| name))).collect();
        problems.push(problem(
            &codes::CYCLE,
            &like.at,
            format!("these definitions amend each other: {}", names.join(" → ")),
        ));
        return Item { broken: true, ..item };
    }
    let found = study.definitions.iter().find(|definition| definition.kind() == kind && definition.key == name);
    let Some(definition) = found.cloned() else {
        unknown_definition(&item, &like.at, &name, study, problems);
        return Item { broken: true, ..item };
    };
    if !study.used_definitions.contains(&identity) {
        study.used_definitions.push(identity.clone());
    }
    let Some(bindings) = callers.bind(&item, &definition, scope, problems) else {
        return Item { broken: true, ..item };
    };
    let definition = callers.instantiate(&definition, &bindings, problems);
    path.push(identity);
    let mut base = expand(definition, study, callers, &bindings, path, problems);
    path.pop();
    base.settings.retain(|(setting, _)| *setting != LIKE);
    base.via.clear();
    let via = label(&like.at, format!("amends the definition `{name}` here"));
    let mut amended = amend::amend(base, item, problems);
    amended.via.insert(0, via);
    amended
}

fn unknown_definition(item: &Item, at: &Location, name: &str, study: &Study, problems: &mut Problems) {
    let kind = item.kind();
    let same: Vec<&str> =
        study.definitions.iter().filter(|known| known.kind() == kind).map(|known| known.key.as_str()).collect();
    let other = study.definitions.iter().find(|known| known.key == name);
    let message = format!("no `define {kind} {name}` exists{}", names::hint(name, same.iter().copied()));
    let mut diagnostic = problem(&codes::UNKNOWN_NAME, at, message);
    if let Some(other) = other {
        diagnostic = diagnostic.also(other.name_at.clone(), format!("this defines a {}", other.kind()));
    }
    let is_node = study.named.contains(&(kind, name.to_owned()));
    diagnostic = diagnostic.help(if is_node {
        format!("`{name}` is a {kind} of the study; only definitions can be amended: write `define {kind} …`")
    } else if same.is_empty() {
        format!("no {kind} is defined; `use` the library that has it, or write `define {kind} {name} {{ … }}`")
    } else {
        format!("definitions of this kind: {}", names::listed(same))
    });
    // What a misread file defines can't be known.
    if !study.wounded {
        problems.push(diagnostic);
    }
}

/// Whether every profile amends what exists: all of them, selected or not.
fn check_profiles(study: &Study, problems: &mut Problems) {
    for profile in &study.profiles {
        for child in &profile.children {
            if level(child.kind()).is_some() || study.find(child.kind(), &child.key).is_some() || child.broken {
                continue;
            }
            let at = child.args.first().map_or(&child.name_at, |argument| &argument.at);
            problems.push(nothing(study, child.kind(), &child.key, at, "amend"));
        }
        for without in &profile.without {
            if study.find(&without.kind, &without.key).is_none() {
                problems.push(nothing(study, &without.kind, &without.key, &without.at, "remove"));
            }
        }
    }
}

fn nothing(study: &Study, kind: &str, key: &str, at: &Location, verb: &str) -> syntax::Diagnostic {
    let known: Vec<&str> = study.names(kind).collect();
    let hint = names::hint(key, known.iter().copied());
    let what = if key.is_empty() { format!("`{kind}`") } else { format!("{kind} `{key}`") };
    problem(&codes::NOTHING_TO_AMEND, at, format!("the study has no {what} to {verb}{hint}"))
        .help("a profile amends or removes what the study has; it adds no top-level nodes")
}

fn apply(study: &mut Study, name: &str, problems: &mut Problems) {
    let Some(profile) = study.profiles.iter().find(|profile| profile.key == name).cloned() else {
        let known: Vec<&str> = study.profiles.iter().map(|profile| profile.key.as_str()).collect();
        let hint = names::hint(name, known.iter().copied());
        let at = study.only("study").map_or_else(
            || Location::new(&study.source.clone().unwrap_or_else(|| SourceId::new("")), syntax::Span::default()),
            |item| item.name_at.clone(),
        );
        let help = if known.is_empty() {
            "the study has no profiles".to_owned()
        } else {
            format!("its profiles are {}", names::listed(known))
        };
        problems
            .push(problem(&codes::UNKNOWN_NAME, &at, format!("the study has no profile `{name}`{hint}")).help(help));
        return;
    };
    study.profile = Some(name.to_owned());
    for without in &profile.without {
        if study.find(&without.kind, &without.key).is_some() {
            study.removed.push((without.kind.clone(), without.key.clone(), without.at.clone()));
        }
    }
    for child in &profile.children {
        if child.mode == Mode::Remove && study.find(child.kind(), &child.key).is_some() {
            study.removed.push((child.kind().to_owned(), child.key.clone(), child.name_at.clone()));
        }
    }
    let removed = std::mem::take(&mut study.removed);
    let mut nodes = Vec::with_capacity(study.nodes.len());
    for item in std::mem::take(&mut study.nodes) {
        if removed.iter().any(|(kind, key, _)| kind == item.kind() && *key == item.key) {
            study.removed_nodes.push(item);
            continue;
        }
        let over = profile.children.iter().find(|child| child.kind() == item.kind() && child.key == item.key);
        match over {
            // A `like` in the amendment would need its base a second time; the amendment itself says what changes.
            Some(over) => nodes.push(amend::amend(item, over.clone(), problems)),
            None => nodes.push(item),
        }
    }
    nodes.extend(profile.children.iter().filter(|child| level(child.kind()).is_some()).cloned());
    study.nodes = nodes;
    study.removed = removed;
}
