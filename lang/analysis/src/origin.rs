//! Where values come from: `phase.ceiling.repeat` is 6, written here; `std/http` gave 5.

use plan::Plan;
use syntax::{Label, Location};

use crate::check::references::inside;
use crate::names;
use crate::resolve::{Item, Study};
use crate::value::{Value, Valued};

/// A place that gave a value, and who that is.
#[derive(Debug, Clone, PartialEq)]
pub struct Giver {
    /// Who: "here", "profile `smoke`", "the definition `slow`", "std/http".
    pub who: String,
    /// Where.
    pub at: Location,
    /// The value, as it is written there.
    pub written: String,
}

/// A value and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// Its path, such as `phase.ceiling.load.for`.
    pub path: String,
    /// The value, as a study writes it.
    pub value: String,
    /// Its type, for people.
    pub ty: String,
    /// What it means.
    pub doc: &'static str,
    /// Who gave it; `None` for the language's own default.
    pub giver: Option<Giver>,
    /// Who gave a value before that, the newest first: it was replaced.
    pub replaced: Vec<Giver>,
    /// What holds where nobody gives one.
    pub default: Option<&'static str>,
    /// The `like` lines that it came through, the author's own first.
    pub through: Vec<Label>,
    /// What the machine makes of it.
    pub note: Option<String>,
}

/// Nothing has that path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound {
    /// The path that was most likely meant.
    pub near: Option<String>,
    /// What stands where the path still leads somewhere: paths one step further.
    pub known: Vec<String>,
}

/// The value at a path, or every value below it.
///
/// # Errors
/// The nearest path, and what stands where it ends.
pub fn explain(study: &Study, plan: Option<&Plan>, path: &str) -> Result<Vec<Explained>, NotFound> {
    let mut all = Vec::new();
    let mut steps = Vec::new();
    for item in &study.nodes {
        Walk { study, top: item, all: &mut all, steps: &mut steps }.item(item, "");
    }
    let below = format!("{path}.");
    let is_item = steps.iter().any(|step| step == path);
    // The value of a node's arguments has the node's own path; with settings beside it, all of them are told.
    let mut found: Vec<Explained> =
        all.iter().filter(|value| value.path == path || is_item && value.path.starts_with(&below)).cloned().collect();
    for value in &mut found {
        value.note = plan.and_then(|plan| left_by_machine(study, plan, &value.path));
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let paths = || all.iter().map(|value| &value.path).chain(&steps);
    let near = nearest(path, paths()).cloned();
    let mut parent = path;
    let known = loop {
        parent = parent.rfind('.').map_or("", |dot| &parent[..dot]);
        let prefix = if parent.is_empty() { String::new() } else { format!("{parent}.") };
        let mut next: Vec<String> = paths()
            .filter_map(|known| known.strip_prefix(&prefix).map(|rest| (known, rest)))
            .map(|(known, rest)| known[..prefix.len() + rest.find('.').unwrap_or(rest.len())].to_owned())
            .collect();
        next.sort();
        next.dedup();
        if !next.is_empty() || parent.is_empty() {
            break next;
        }
    };
    Err(NotFound { near, known })
}

/// The nearest path: compared step by step from the longest beginning that exists, so that long paths stay comparable.
fn nearest<'a>(wanted: &str, paths: impl Iterator<Item = &'a String> + Clone) -> Option<&'a String> {
    let steps = |path: &str| path.matches('.').count();
    let same_length = paths.clone().filter(|path| steps(path) == steps(wanted)).map(String::as_str);
    let near =
        names::nearest(wanted, same_length).or_else(|| names::nearest(wanted, paths.clone().map(String::as_str)));
    paths.clone().find(|path| Some(path.as_str()) == near)
}

struct Walk<'a> {
    study: &'a Study,
    top: &'a Item,
    all: &'a mut Vec<Explained>,
    steps: &'a mut Vec<String>,
}

impl Walk<'_> {
    fn item(&mut self, item: &Item, parent: &str) {
        let mut path = if parent.is_empty() { item.kind().to_owned() } else { format!("{parent}.{}", item.kind()) };
        if !item.key.is_empty() {
            path = format!("{path}.{}", item.key);
        }
        self.steps.push(path.clone());
        self.arguments(item, &path);
        for setting in item.spec.all_settings(item.variant) {
            let path = format!("{path}.{}", setting.name);
            match (item.setting(setting.name), setting.default) {
                (Some(valued), default) => {
                    self.written(path, valued, setting.ty.noun(), setting.doc, default);
                }
                (None, Some(default)) => self.all.push(Explained {
                    path,
                    value: default.to_owned(),
                    ty: setting.ty.noun(),
                    doc: setting.doc,
                    giver: None,
                    replaced: Vec::new(),
                    default: Some(default),
                    through: Vec::new(),
                    note: None,
                }),
                (None, None) => {}
            }
        }
        if let Some(free) = item.spec.free {
            for (name, valued) in &item.free {
                self.written(format!("{path}.{name}"), valued, free.ty.noun(), free.doc, None);
            }
        }
        for child in &item.children {
            self.item(child, &path);
        }
    }

    /// What stands beside a node's name, as one value: `6` of `repeat 6`, all levels of a factor.
    fn arguments(&mut self, item: &Item, path: &str) {
        let spec = item.spec;
        let args = item.args.get(spec.key..).unwrap_or_default();
        let (Some(first), Some(argument)) =
            (args.first(), spec.arguments.get(spec.key).or(spec.rest.as_ref()).or(spec.arguments.last()))
        else {
            return;
        };
        let written: Vec<&str> = args.iter().map(|valued| valued.written.as_str()).collect();
        let whole = Valued { written: written.join(" "), replaced: item.replaced_args.clone(), ..first.clone() };
        self.written(path.to_owned(), &whole, argument.ty.noun(), argument.doc, None);
    }

    fn written(&mut self, path: String, valued: &Valued, ty: String, doc: &'static str, default: Option<&'static str>) {
        let replaced = valued.replaced.iter().map(|(at, written)| self.giver(at, written)).collect();
        let through = if inside(&self.top.at, &valued.at) { Vec::new() } else { self.top.via.clone() };
        // Texts that read the environment hold its value by now.
        let value = match &valued.value {
            Value::Template(template) => syntax::quote(&template.text.to_string()),
            Value::Text(text) if valued.written.contains("${") => syntax::quote(text),
            _ => valued.written.clone(),
        };
        let giver = Some(self.giver(&valued.at, &valued.written));
        self.all.push(Explained { path, value, ty, doc, giver, replaced, default, through, note: None });
    }

    fn giver(&self, at: &Location, written: &str) -> Giver {
        let study = self.study;
        let own = study.source.as_ref() == Some(&at.source);
        let profile = study.profiles.iter().find(|profile| inside(&profile.at, at));
        let definition = study.definitions.iter().find(|definition| inside(&definition.at, at));
        let who = match (profile, definition) {
            (Some(profile), _) => format!("profile `{}`", profile.key),
            (None, Some(definition)) if own => format!("the definition `{}`", definition.key),
            (None, None) if own => "here".to_owned(),
            _ => at.source.to_string(),
        };
        Giver { who, at: at.clone(), written: written.to_owned() }
    }
}

/// The levels that the chosen machine leaves of a factor.
fn left_by_machine(study: &Study, plan: &Plan, path: &str) -> Option<String> {
    let factor = path.strip_prefix("factor.")?;
    let only = study.find("machine", &plan.machine.name)?.keyed("only", factor)?;
    let kept: Vec<&str> = only.args.iter().skip(1).map(|valued| valued.written.as_str()).collect();
    Some(format!("machine `{}` measures {} only", plan.machine.name, kept.join(" ")))
}
