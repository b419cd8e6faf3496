//! From the tree to items: names are looked up in the schema, values are typed, and what the schema doesn't know is an
//! error where it is written. What is missing is asked later, once amendments are done.

use std::collections::BTreeMap;

use syntax::{Applicability, Diagnostic, Entry, Fix, Location, Node};

use super::item::{Given, Item, Mode, Without};
use super::read::{Reader, node_kinds};
use crate::codes;
use crate::names;
use crate::problems::problem;
use crate::schema::{
    self, Argument, Count, FILE, LEVELS, NodeSpec, PARAMETER, PROFILE, Setting, Type, Variant, WITHOUT,
};
use crate::value::{Value, Valued};

/// Places of siblings by kind and key. Fewer than [`FEW`] are looked through one by one.
type Seen = BTreeMap<(&'static str, String), usize>;
const FEW: usize = 12;

/// What a top-level node turned out to be.
pub enum Top {
    /// `use "…"`.
    Use(Item),
    /// `define KIND NAME`.
    Define(Item),
    /// `profile NAME`.
    Profile(Item),
    /// Anything else that the schema knows.
    Node(Item),
}

impl<'a> Reader<'a> {
    /// Converts a top-level node; `None` where the schema doesn't know it (which is reported).
    pub fn top(&mut self, node: Node<'a>) -> Option<Top> {
        let name = node.name();
        match &*name {
            "define" => self.define(node).map(Top::Define),
            "profile" => Some(Top::Profile(self.profile(node))),
            _ => {
                let spec = self.child_spec(&FILE, node, &name)?;
                let item = self.item(node, spec, 0);
                Some(if spec.name == "use" { Top::Use(item) } else { Top::Node(item) })
            }
        }
    }

    /// The spec of a child, or a diagnostic.
    fn child_spec(&mut self, parent: &'static NodeSpec, node: Node<'_>, name: &str) -> Option<&'static NodeSpec> {
        let is_file = std::ptr::eq(parent, &FILE);
        let spec = parent.child(name).or_else(|| match name {
            "without" if parent.is_scope() && !is_file => Some(&WITHOUT),
            _ => schema::level(name).filter(|_| parent.is_scope()),
        });
        if spec.is_none() && !node.broken() {
            let place = if is_file { "the top level".to_owned() } else { format!("`{}`", parent.name) };
            let known = parent
                .children
                .iter()
                .map(|child| child.name)
                .chain(parent.settings.iter().map(|setting| setting.name))
                .chain(LEVELS.into_iter().map(|level| level.name).filter(|_| parent.is_scope() && !is_file));
            let at = self.at(node.name_span());
            let near = names::nearest(name, known.clone());
            let homes = schema::homes(name);
            let mut diagnostic = problem(&codes::UNKNOWN_NODE, &at, unknown("node", name, &place, near));
            diagnostic = match (near, homes.is_empty()) {
                (None, false) => diagnostic.help(format!(
                    "`{name}` exists inside {}",
                    names::listed(homes.into_iter().map(|home| if home == "file" { "the top level" } else { home }))
                )),
                _ => diagnostic.help(format!("{place} can hold {}", names::listed(known))),
            };
            if let Some(near) = near {
                diagnostic = diagnostic.fix(Fix::replace(format!("write `{near}`"), at, near, Applicability::Unsafe));
            }
            self.problems.push(diagnostic);
        }
        spec
    }

    /// `define KIND NAME …`: the node of that kind, shifted by one argument.
    fn define(&mut self, node: Node<'a>) -> Option<Item> {
        let at = self.at(node.name_span());
        let Some(kind) = node.argument(0) else {
            self.problems.push(
                problem(&codes::MISSING, &at, "`define` names no kind and no name")
                    .help("write it like `define phase saturation { … }`"),
            );
            return None;
        };
        let word = kind.value().as_str().map(str::to_owned)?;
        let definable = |spec: &&&'static NodeSpec| spec.setting("like", None).is_some();
        let Some(spec) = FILE.child(&word).filter(|spec| definable(&spec)) else {
            let kinds = FILE.children.iter().filter(definable).map(|spec| spec.name);
            let diagnostic = self.unknown_word(kind, &"`define`", &word, kinds);
            self.problems.push(diagnostic);
            return None;
        };
        if node.argument(1).is_none() {
            let help = format!("write it like `define {word} NAME {{ … }}`");
            self.problems.push(problem(&codes::MISSING, &at, "`define` has no name").help(help));
            return None;
        }
        let parameters = self.parameters(node, spec);
        let mut item = self.item(node, spec, 1);
        self.unused_parameters(&item, &parameters);
        self.bindings.clear();
        self.hides_parameters = false;
        item.parameters = parameters;
        Some(item)
    }

    /// `profile NAME { … }`: its children are top-level nodes that amend.
    fn profile(&mut self, node: Node<'_>) -> Item {
        let mut item = self.head(node, &PROFILE, 0);
        let mut seen = BTreeMap::new();
        for child in node.children() {
            let name = child.name();
            if name == "without" {
                self.without(child, &mut item);
                continue;
            }
            if matches!(&*name, "use" | "define" | "profile") {
                let at = self.at(child.name_span());
                let message = format!("`{name}` can't stand inside a profile");
                self.problems
                    .push(problem(&codes::UNKNOWN_NODE, &at, message).help("write it at the top level of the study"));
                item.broken = true;
                continue;
            }
            match self.child_spec(&FILE, child, &name) {
                Some(spec) => {
                    let child = self.item(child, spec, 0);
                    self.add(&mut item, child, &mut seen);
                }
                None => item.broken = true,
            }
        }
        item
    }

    /// Converts a node whose spec is known. `skip` leading arguments belong to `define`.
    pub fn item(&mut self, node: Node<'_>, spec: &'static NodeSpec, skip: usize) -> Item {
        let mut item = self.head(node, spec, skip);
        let mut seen = BTreeMap::new();
        for child in node.children() {
            let name = child.name();
            if skip > 0 && name == PARAMETER.name {
                continue;
            }
            if name == "without" && spec.is_scope() {
                self.without(child, &mut item);
            } else if let Some(setting) = spec.setting(&name, item.variant) {
                self.setting_child(child, setting, &mut item);
            } else if let Some(free) = spec.free {
                let what = format!("`{name}`");
                match child.argument(0) {
                    Some(entry) => {
                        let valued = self.read(entry, free.ty, &what);
                        self.add_free(&mut item, name.to_string(), valued, child.name_span());
                    }
                    None => self.missing_value(child, &what, &mut item),
                }
            } else if self.is_foreign_setting(spec, &item, &name) {
                self.foreign(&name, self.at(child.name_span()), spec, &mut item);
            } else {
                match self.child_spec(spec, child, &name) {
                    Some(child_spec) => {
                        let child = self.item(child, child_spec, 0);
                        self.add(&mut item, child, &mut seen);
                    }
                    None => {
                        item.broken = true;
                        item.lost_child = true;
                    }
                }
            }
        }
        // Anything else was known when the arguments were.
        if spec.key_setting.is_some() {
            item.key = key(&item);
        }
        item
    }

    /// Everything of a node but its children.
    fn head(&mut self, node: Node<'_>, spec: &'static NodeSpec, skip: usize) -> Item {
        let span = node.span();
        let wounded = self.is_wounded(span);
        let name_span =
            if skip > 0 { node.argument(skip).map_or(node.name_span(), Entry::value_span) } else { node.name_span() };
        let mut item = Item {
            spec,
            variant: None,
            args: Vec::new(),
            replaced_args: Vec::new(),
            settings: Vec::new(),
            free: Vec::new(),
            children: Vec::new(),
            key: String::new(),
            name_at: self.at(name_span),
            at: self.at(span),
            broken: wounded || node.broken(),
            lost_child: false,
            mode: Mode::Amend,
            without: Vec::new(),
            via: Vec::new(),
            node: node.id(),
            parameters: Vec::new(),
            given: Vec::new(),
            doc: node.doc(),
        };
        if let Some((annotation, at)) = node.annotation() {
            item.mode = match &*annotation {
                "replace" => Mode::Replace,
                "remove" => Mode::Remove,
                _ => {
                    let at = self.at(at);
                    let message = format!("`({annotation})` means nothing before a node");
                    self.problems.push(
                        problem(&codes::UNKNOWN_ANNOTATION, &at, message)
                            .help("`(replace)` takes the place of the node that it amends, `(remove)` removes it"),
                    );
                    Mode::Amend
                }
            };
        }
        self.arguments(node, skip, &mut item);
        let like = super::LIKE;
        let gives = spec.setting(like, None).is_some()
            && (node.properties().filter_map(Entry::key).any(|(key, _)| key == like || is_nearly(&key, like))
                || node.children().any(|child| child.name() == like));
        for (index, entry) in node.entries().enumerate().filter(|(_, entry)| entry.is_property()) {
            self.property(entry, gives.then_some(index), &mut item);
        }
        item.key = key(&item);
        item
    }

    fn arguments(&mut self, node: Node<'_>, skip: usize, item: &mut Item) {
        let spec = item.spec;
        for (index, entry) in node.arguments().skip(skip).enumerate() {
            if spec.variant == Some(index) {
                let word = entry.value().as_str().map(str::to_owned);
                item.variant = word.as_deref().and_then(|word| spec.variant(word));
                let mut valued = self.read(entry, crate::schema::Type::Text, &format_args!("`{}`", spec.name));
                if item.variant.is_none() && !valued.is_unknown() {
                    let words = spec.variants.iter().map(|variant| variant.name);
                    let what = format!("`{}`", spec.name);
                    let diagnostic = self.unknown_word(entry, &what, word.as_deref().unwrap_or(""), words);
                    self.problems.push(diagnostic);
                    valued.value = Value::Unknown;
                }
                item.broken |= valued.is_unknown();
                item.args.push(valued);
                continue;
            }
            let rest = spec.rest.or(item.variant.and_then(|variant| variant.rest));
            match spec.arguments.get(index).copied().or(rest) {
                Some(Argument { name, ty, .. }) => {
                    let valued = match ty {
                        Type::Word(_) => self.read(entry, ty, &format_args!("`{}`", spec.name)),
                        _ => self.read(entry, ty, &format_args!("`{}`'s {name}", spec.name)),
                    };
                    item.broken |= valued.is_unknown();
                    item.args.push(valued);
                }
                // An unknown variant's arguments can't be judged.
                None if spec.variant.is_some_and(|at| at < index) && item.variant.is_none() => {}
                None => {
                    let at = self.at(entry.value_span());
                    let takes = match spec.arguments.len() {
                        0 => "takes no argument".to_owned(),
                        1 => "takes one argument".to_owned(),
                        many => format!("takes {many} arguments"),
                    };
                    let message = format!("`{}` {takes}, and `{}` is one more", spec.name, entry.value_text());
                    self.problems.push(problem(&codes::TOO_MANY, &at, message));
                    item.broken = true;
                    return;
                }
            }
        }
    }

    fn property(&mut self, entry: Entry<'_>, gives: Option<usize>, item: &mut Item) {
        let Some((key, key_span)) = entry.key() else { return };
        let spec = item.spec;
        if let Some(setting) = spec.setting(&key, item.variant) {
            let valued = self.read(entry, setting.ty, &format_args!("`{key}`"));
            self.add_setting(item, setting, valued, key_span);
        } else if let Some(free) = spec.free {
            let valued = self.read(entry, free.ty, &format_args!("`{key}`"));
            self.add_free(item, key.to_string(), valued, key_span);
        } else if self.is_foreign_setting(spec, item, &key) {
            self.foreign(&key, self.at(key_span), spec, item);
        } else if let Some(index) = gives.filter(|_| !is_nearly(&key, super::LIKE)) {
            self.read_parameters(entry);
            let unknown = self.unknown_property(&key, key_span, item);
            let name_at = self.at(key_span);
            item.given.push(Given { name: key.into_owned(), name_at, entry: index, unknown });
        } else {
            item.broken = true;
            let unknown = self.unknown_property(&key, key_span, item);
            unknown.into_iter().for_each(|unknown| self.problems.push(unknown));
        }
    }

    fn unknown_property(&self, key: &str, key_span: syntax::Span, item: &Item) -> Option<Diagnostic> {
        let spec = item.spec;
        // What an unknown variant would take can't be known.
        if spec.variant.is_some() && item.variant.is_none() {
            return None;
        }
        let at = self.at(key_span);
        let place = match item.variant {
            Some(variant) => format!("`{} {}`", spec.name, variant.name),
            None => format!("`{}`", spec.name),
        };
        if let Some(child) = spec.child(key) {
            let message = format!("`{key}` is no property of {place} but a node inside it");
            return Some(
                problem(&codes::UNKNOWN_PROPERTY, &at, message)
                    .help(format!("write it in the block: `{}`", child.example)),
            );
        }
        let known = spec.all_settings(item.variant).map(|setting| setting.name);
        let known: Vec<&str> = known.collect();
        let near = names::nearest(key, known.iter().copied());
        let homes = schema::homes(key);
        let mut diagnostic = problem(&codes::UNKNOWN_PROPERTY, &at, unknown("property", key, &place, near));
        diagnostic = match (near, homes.is_empty(), known.is_empty()) {
            (None, false, _) => diagnostic.help(format!("`{key}` exists inside {}", names::listed(homes))),
            (_, _, true) => diagnostic.help(format!("{place} takes no properties")),
            _ => diagnostic.help(format!("{place} takes {}", names::listed(known.iter().copied()))),
        };
        if let Some(near) = near {
            diagnostic = diagnostic.fix(Fix::replace(format!("write `{near}`"), at, near, Applicability::Unsafe));
        }
        Some(diagnostic)
    }

    /// Whether another variant of the node has this setting.
    fn is_foreign_setting(&self, spec: &'static NodeSpec, item: &Item, name: &str) -> bool {
        item.variant.is_some() && spec.variants.iter().any(|variant| has(variant, name))
    }

    fn foreign(&mut self, name: &str, at: Location, spec: &'static NodeSpec, item: &mut Item) {
        item.broken = true;
        let this = item.variant.map_or("", |variant| variant.name);
        let others = spec.variants.iter().filter(|variant| has(variant, name)).map(|variant| variant.name);
        let message =
            format!("`{name}` is no setting of `{} {this}`; it belongs to {}", spec.name, names::listed(others));
        self.problems.push(problem(&codes::UNKNOWN_PROPERTY, &at, message));
    }

    /// A setting written as a child.
    fn setting_child(&mut self, node: Node<'_>, setting: &'static Setting, item: &mut Item) {
        let what = format!("`{}`", setting.name);
        let mut entries = node.arguments();
        let valued = if setting.ty.is_list() {
            self.read_list(node.arguments(), setting.ty, &what)
        } else {
            entries.next().map(|entry| self.read(entry, setting.ty, &what))
        };
        let Some(valued) = valued else {
            self.missing_value(node, &what, item);
            return;
        };
        let extra = if setting.ty.is_list() { None } else { entries.next() };
        if let Some(extra) = extra.or_else(|| node.properties().next()) {
            let at = self.at(extra.span());
            let message = format!("{what} takes one value, and `{}` is one more", extra.text());
            self.problems.push(problem(&codes::TOO_MANY, &at, message));
            item.broken = true;
        } else if let Some(child) = node.children().next() {
            let at = self.at(child.name_span());
            let message = format!("{what} takes one value and no block, and `{}` stands in one", child.name());
            self.problems.push(problem(&codes::TOO_MANY, &at, message));
            item.broken = true;
        }
        self.add_setting(item, setting, valued, node.name_span());
    }

    fn missing_value(&mut self, node: Node<'_>, what: &str, item: &mut Item) {
        if !node.broken() && !self.is_wounded(node.span()) {
            let at = self.at(node.name_span());
            self.problems.push(problem(&codes::MISSING, &at, format!("{what} has no value")));
        }
        item.broken = true;
    }

    fn add_setting(&mut self, item: &mut Item, setting: &'static Setting, valued: Valued, key: syntax::Span) {
        item.broken |= valued.is_unknown();
        match item.settings.iter().find(|(name, _)| *name == setting.name) {
            Some((_, first)) => {
                let diagnostic =
                    problem(&codes::PROPERTY_TWICE, &self.at(key), format!("`{}` is given twice", setting.name))
                        .also(first.at.clone(), "first here")
                        .help("keep one of them");
                self.problems.push(diagnostic);
            }
            None => item.settings.push((setting.name, valued)),
        }
    }

    fn add_free(&mut self, item: &mut Item, name: String, valued: Valued, key: syntax::Span) {
        item.broken |= valued.is_unknown();
        match item.free.iter().find(|(known, _)| *known == name) {
            Some((_, first)) => {
                let diagnostic = problem(&codes::PROPERTY_TWICE, &self.at(key), format!("`{name}` is given twice"))
                    .also(first.at.clone(), "first here")
                    .help("keep one of them");
                self.problems.push(diagnostic);
            }
            None => item.free.push((name, valued)),
        }
    }

    /// Adds a child, unless a sibling has its place. `seen` is filled once there are many.
    fn add(&mut self, parent: &mut Item, child: Item, seen: &mut Seen) {
        parent.broken |= child.broken;
        let first = match parent.children.len() {
            0..FEW => parent.children.iter().find(|known| known.kind() == child.kind() && known.key == child.key),
            _ => {
                for (place, known) in parent.children.iter().enumerate().skip(seen.len()) {
                    seen.insert((known.kind(), known.key.clone()), place);
                }
                seen.get(&(child.kind(), child.key.clone())).and_then(|place| parent.children.get(*place))
            }
        };
        if let Some(first) = first {
            let message = match child.spec.count {
                Count::One | Count::Optional => format!("`{}` stands twice in this block", child.kind()),
                _ => format!("{} is defined twice", child.described()),
            };
            let diagnostic =
                problem(&codes::DEFINED_TWICE, &child.name_at, message).also(first.name_at.clone(), "first here");
            self.problems.push(diagnostic);
            return;
        }
        parent.children.push(child);
    }

    fn without(&mut self, node: Node<'_>, item: &mut Item) {
        let at = self.at(node.span());
        let words: Vec<String> =
            node.arguments().filter_map(|entry| entry.value().as_str().map(str::to_owned)).collect();
        let Some((kind, keys)) = words.split_first() else {
            self.problems.push(
                problem(&codes::MISSING, &self.at(node.name_span()), "`without` names nothing")
                    .help("write it like `without phase fixed-rates`"),
            );
            return;
        };
        let top = item.kind() == "profile";
        let known = |name: &str| {
            if top {
                FILE.child(name).is_some()
            } else {
                item.spec.child(name).is_some()
                    || item.spec.setting(name, item.variant).is_some()
                    || schema::level(name).is_some()
            }
        };
        if !known(kind) {
            let candidates: Vec<&str> = if top {
                node_kinds().collect()
            } else {
                let settings = item.spec.all_settings(item.variant).map(|setting| setting.name);
                item.spec.children.iter().map(|child| child.name).chain(settings).collect()
            };
            let place = if top { "a profile".to_owned() } else { format!("`{}`", item.kind()) };
            let span = node.argument(0).map_or(node.name_span(), Entry::value_span);
            let message =
                format!("`without` in {place} knows no `{kind}`{}", names::hint(kind, candidates.iter().copied()));
            self.problems.push(
                problem(&codes::UNKNOWN_NODE, &self.at(span), message)
                    .help(format!("it can be {}", names::listed(candidates))),
            );
            item.broken = true;
            return;
        }
        item.without.push(Without { kind: kind.clone(), key: keys.join(" "), at });
    }
}

/// Whether a name is most likely this one, misspelt.
fn is_nearly(name: &str, wanted: &str) -> bool {
    names::nearest(name, [wanted]).is_some()
}

fn has(variant: &Variant, name: &str) -> bool {
    variant.settings.iter().any(|setting| setting.name == name)
}

fn unknown(noun: &str, name: &str, place: &str, near: Option<&str>) -> String {
    match near {
        Some(near) => format!("{place} has no {noun} `{name}`; did you mean `{near}`?"),
        None => format!("{place} has no {noun} `{name}`"),
    }
}

/// What tells an item from its siblings: its leading arguments, or a setting.
fn key(item: &Item) -> String {
    if let Some(setting) = item.spec.key_setting {
        return item.text(setting).unwrap_or("").to_owned();
    }
    let mut key = String::new();
    for (index, valued) in item.args.iter().take(item.spec.key).enumerate() {
        if index > 0 {
            key.push(' ');
        }
        match &valued.value {
            Value::File { id, .. } => key.push_str(id.as_str()),
            // A broken name still tells siblings apart, so that one slip isn't also "defined twice".
            Value::Unknown => key.push_str(&valued.written),
            _ => key.push_str(valued.text().unwrap_or(&valued.written)),
        }
    }
    key
}
