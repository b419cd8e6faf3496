//! Parameters of definitions: declared with a type where the definition stands, given and checked where it is amended. A
//! definition with parameters is read anew for each caller, so that what it is given has a type twice: the parameter's
//! own, and that of the place which reads it. What is wrong points at what was given first, at the definition second.

use syntax::{Entry, Location, Node, SourceId, Sources};

use super::LIKE;
use super::import::SourceTree;
use super::item::Item;
use super::read::{Reader, Refused};
use crate::codes;
use crate::names;
use crate::problems::{Problems, problem};
use crate::schema::{NodeSpec, PARAMETER, Type, parameter_type};
use crate::value::{Value, Valued};

/// What a parameter stands for.
#[derive(Debug, Clone)]
pub struct Binding<'t> {
    /// The parameter's name.
    pub name: String,
    /// What was given, and where; `None` where that has its diagnostic, or nothing can be known.
    pub given: Option<(SourceId, Entry<'t>)>,
    /// Whether the body reads it.
    pub used: bool,
}

impl<'a> Reader<'a> {
    /// The parameters of a definition. Its body is then read with their defaults.
    pub(super) fn parameters(&mut self, node: Node<'a>, kind: &'static NodeSpec) -> Vec<Item> {
        self.bindings.clear();
        let misspelt = |child: Node<'_>| {
            let name = child.name();
            kind.child(&name).is_none() && names::nearest(&name, [PARAMETER.name]).is_some()
        };
        self.hides_parameters = node.children().any(misspelt);
        let mut parameters: Vec<Item> = Vec::new();
        for child in node.children().filter(|child| child.name() == PARAMETER.name) {
            let item = self.item(child, &PARAMETER, 0);
            let at = item.args.first().map_or(&item.name_at, |valued| &valued.at).clone();
            if let Some(first) = parameters.iter().find(|known| known.key == item.key) {
                let message = format!("{} is declared twice", item.described());
                self.problems
                    .push(problem(&codes::DEFINED_TWICE, &at, message).also(first.name_at.clone(), "first here"));
                continue;
            }
            if kind.child(&item.key).is_some() || kind.setting(&item.key, None).is_some() {
                let message = format!("`{}` can't be a parameter: a {} has its own `{0}`", item.key, kind.name);
                self.problems
                    .push(problem(&codes::DEFINED_TWICE, &at, message).help("give the parameter another name"));
            }
            for (missing, is_missing) in
                [("name", item.args.is_empty()), ("type", item.setting("type").is_none() && !item.broken)]
            {
                if is_missing {
                    let message = format!("{} has no {missing}", item.described());
                    self.problems.push(
                        problem(&codes::MISSING, &item.name_at, message)
                            .help(format!("write it like `{}`", PARAMETER.example)),
                    );
                }
            }
            let default = entry_of(child, "default");
            let sound = default.filter(|entry| self.fits(&item, child, *entry, None));
            let given = sound.map(|entry| (self.source.clone(), entry));
            parameters.push(item);
            let name = parameters.last().map_or_else(String::new, |item| item.key.clone());
            self.bindings.push(Binding { name, given, used: false });
        }
        parameters
    }

    /// Parameters that the body of a definition, read just now, does not read.
    pub(super) fn unused_parameters(&mut self, definition: &Item, parameters: &[Item]) {
        // A body with an error may have misspelt what it reads.
        if definition.broken || definition.lost_child {
            return;
        }
        let used = |name: &str| self.bindings.iter().any(|binding| binding.name == name && binding.used);
        for parameter in parameters.iter().filter(|parameter| !parameter.key.is_empty() && !used(&parameter.key)) {
            let at = parameter.args.first().map_or(&parameter.name_at, |valued| &valued.at);
            let message =
                format!("nothing in the definition reads the parameter `{0}`: there is no `${{{0}}}`", parameter.key);
            self.problems
                .push(problem(&codes::UNUSED_DEFINITION, at, message).help("read it in the definition, or remove it"));
        }
    }

    /// Marks the parameters that a value reads.
    pub(super) fn read_parameters(&mut self, entry: Entry<'_>) {
        let value = entry.value();
        let Some(text) = value.as_str() else { return };
        for binding in &mut self.bindings {
            binding.used |= text.contains(&hole(&binding.name));
        }
    }

    /// A value that reads parameters, with what they stand for; `None` where it reads none.
    pub(super) fn read_parameter(
        &mut self,
        entry: Entry<'_>,
        ty: Type,
        what: &dyn std::fmt::Display,
    ) -> Option<Valued> {
        if self.bindings.is_empty() {
            return None;
        }
        let value = entry.value();
        let text = value.as_str()?;
        self.read_parameters(entry);
        let read: Vec<&Binding<'a>> =
            self.bindings.iter().filter(|binding| text.contains(&hole(&binding.name))).collect();
        let place = self.at(entry.value_span());
        let first = read.first()?;
        let unknown =
            || Valued { value: Value::Unknown, at: place.clone(), written: String::new(), replaced: Vec::new() };
        if read.iter().any(|binding| binding.given.is_none()) {
            return Some(unknown());
        }
        if text == hole(&first.name) {
            // All of the value: what was given is read as what is due here, where it was given.
            let name = first.name.clone();
            let (source, given) = first.given.clone()?;
            let bindings = std::mem::take(&mut self.bindings);
            let own = std::mem::replace(&mut self.source, source);
            let at = self.at(given.value_span());
            let read = self.try_read(given, ty, what);
            self.source = own;
            self.bindings = bindings;
            let value = match read {
                Ok(value) => value,
                Err(diagnostic) => {
                    self.problems.push(diagnostic.also(place, format!("the definition reads `{name}` here")));
                    Value::Unknown
                }
            };
            return Some(Valued { value, at, written: given.value_text().to_owned(), replaced: Vec::new() });
        }
        let mut filled = text.to_owned();
        for binding in read {
            if let Some((_, given)) = &binding.given {
                filled = filled.replace(&hole(&binding.name), &plain(*given));
            }
        }
        let written = syntax::quote(&filled);
        self.filled = Some(filled);
        let value = match self.try_read(entry, ty, what) {
            Ok(value) => value,
            Err(diagnostic) => {
                self.problems.push(*diagnostic);
                Value::Unknown
            }
        };
        self.filled = None;
        Some(Valued { value, at: place, written, replaced: Vec::new() })
    }

    /// Whether what is given fits the parameter; otherwise that is told, where it is given. `declared` is where the
    /// parameter stands, for a caller.
    fn fits(&mut self, parameter: &Item, node: Node<'_>, given: Entry<'_>, declared: Option<&Location>) -> bool {
        let Some(ty) = parameter.text("type").and_then(parameter_type) else { return false };
        let what = format!("`{}`", parameter.key);
        let at = self.at(given.value_span());
        let value = match self.try_read(given, ty, &what) {
            Ok(Value::Unknown) => return false,
            Ok(value) => value,
            Err(refused) => {
                self.tell(refused, declared);
                return false;
            }
        };
        let own = declared.map_or_else(|| self.source.clone(), |declared| declared.source.clone());
        for (name, word, ordering) in
            [("min", "at least", std::cmp::Ordering::Less), ("max", "at most", std::cmp::Ordering::Greater)]
        {
            let Some(bound) = entry_of(node, name) else { continue };
            let here = std::mem::replace(&mut self.source, own.clone());
            let read = self.try_read(bound, ty, &format!("`{name}`"));
            self.source = here;
            let limit = match read {
                Ok(limit) => limit,
                // Told once, where the definition stands.
                Err(refused) if declared.is_none() => {
                    self.tell(refused, None);
                    return false;
                }
                Err(_) => return false,
            };
            let (Some(number), Some(most)) = (number(&value), number(&limit)) else { continue };
            if number.partial_cmp(&most) == Some(ordering) {
                let message = format!("{what} is {}, and must be {word} {}", plain(given), plain(bound));
                self.tell(Box::new(problem(&codes::OUT_OF_RANGE, &at, message)), declared);
                return false;
            }
        }
        if let Some(words) = parameter.text("one-of") {
            let text = plain(given);
            if !words.split_whitespace().any(|word| word == text) {
                let hint = names::hint(&text, words.split_whitespace());
                let message = format!("{what} can't be `{text}`{hint}");
                let refused = problem(&codes::UNKNOWN_WORD, &at, message)
                    .help(format!("it can be {}", names::listed(words.split_whitespace())));
                self.tell(Box::new(refused), declared);
                return false;
            }
        }
        true
    }

    fn tell(&mut self, refused: Refused, declared: Option<&Location>) {
        let refused = match declared {
            Some(declared) => refused.also(declared.clone(), "the parameter"),
            None => *refused,
        };
        self.problems.push(refused);
    }
}

/// What reading a definition anew needs.
pub struct Callers<'a> {
    /// Where files come from.
    pub sources: &'a dyn Sources,
    /// The trees of all sources.
    pub trees: &'a [SourceTree],
    /// Files that values name.
    pub files: &'a mut Vec<SourceId>,
}

impl<'a> Callers<'a> {
    fn tree(&self, id: &SourceId) -> Option<&'a SourceTree> {
        self.trees.iter().find(|tree| tree.id == *id)
    }

    fn reader<'r>(&'r mut self, source: &'r SourceTree, problems: &'r mut Problems) -> Reader<'r> {
        Reader {
            sources: self.sources,
            source: source.id.clone(),
            problems,
            files: self.files,
            wounds: &source.wounds,
            bindings: Vec::new(),
            filled: None,
            hides_parameters: false,
        }
    }

    /// What the parameters of `definition` stand for where `item` amends it; `scope` are the parameters that `item` may
    /// itself read. `None`, after it was told, where that can't be.
    pub fn bind(
        &mut self,
        item: &Item,
        definition: &Item,
        scope: &[Binding<'a>],
        problems: &mut Problems,
    ) -> Option<Vec<Binding<'a>>> {
        let mut sound = true;
        for given in &item.given {
            if !definition.parameters.iter().any(|parameter| parameter.key == given.name) {
                sound = false;
                // A line of the definition that was misread may declare it.
                if definition.lost_child {
                    continue;
                }
                let known: Vec<&str> = definition.parameters.iter().map(|parameter| parameter.key.as_str()).collect();
                let near = names::nearest(&given.name, known.iter().copied());
                match (&given.unknown, near) {
                    (unknown, None) if known.is_empty() => unknown.iter().cloned().for_each(|told| problems.push(told)),
                    _ => {
                        let hint = names::hint(&given.name, known.iter().copied());
                        let message = format!("`{}` has no parameter `{}`{hint}", definition.key, given.name);
                        problems.push(
                            problem(&codes::UNKNOWN_PROPERTY, &given.name_at, message)
                                .also(definition.name_at.clone(), "the definition")
                                .help(format!("its parameters are {}", names::listed(known))),
                        );
                    }
                }
            }
        }
        let mut bindings = Vec::new();
        let (caller, home) = (self.tree(&item.at.source), self.tree(&definition.at.source));
        for parameter in &definition.parameters {
            let declared = parameter.args.first().map_or(&parameter.name_at, |valued| &valued.at).clone();
            let node = home.and_then(|home| home.tree.node(parameter.node));
            let mut each = item.given.iter().filter(|given| given.name == parameter.key);
            let mut bound = None;
            if let (Some(given), Some(caller), Some(node)) = (each.next(), caller, node) {
                if let Some(twice) = each.next() {
                    let message = format!("`{}` is given twice", given.name);
                    problems.push(
                        problem(&codes::PROPERTY_TWICE, &twice.name_at, message)
                            .also(given.name_at.clone(), "first here")
                            .help("keep one of them"),
                    );
                }
                let entry = caller.tree.node(item.node).and_then(|node| node.entries().nth(given.entry));
                let passed = entry.and_then(|entry| {
                    let value = entry.value();
                    let text = value.as_str()?;
                    scope.iter().find(|outer| text == hole(&outer.name))
                });
                // A parameter that is passed on is what it was given as.
                let handed = match passed {
                    Some(outer) => outer.given.clone(),
                    None => entry.map(|entry| (caller.id.clone(), entry)),
                };
                if let Some((source, entry)) = handed
                    && let Some(tree) = self.tree(&source)
                {
                    let fits = self.reader(tree, problems).fits(parameter, node, entry, Some(&declared));
                    sound &= fits;
                    bound = fits.then_some((source, entry));
                }
            } else if let (Some(node), Some(home)) = (node, home) {
                match entry_of(node, "default") {
                    Some(entry) => bound = Some((home.id.clone(), entry)),
                    None if parameter.broken => {}
                    None => {
                        sound = false;
                        let like = item.setting(LIKE).map_or(&item.name_at, |valued| &valued.at);
                        let message = format!("`{}` needs `{}`, which is not given", definition.key, parameter.key);
                        problems.push(
                            problem(&codes::MISSING, like, message)
                                .also(declared.clone(), "the parameter")
                                .help(format!("write `like={} {}=…`", definition.key, parameter.key)),
                        );
                    }
                }
            }
            bindings.push(Binding { name: parameter.key.clone(), given: bound, used: false });
        }
        sound.then_some(bindings)
    }

    /// The definition as these parameters make it.
    pub fn instantiate(&mut self, definition: &Item, bindings: &[Binding<'a>], problems: &mut Problems) -> Item {
        let Some(home) = self.tree(&definition.at.source).filter(|_| !bindings.is_empty()) else {
            return definition.clone();
        };
        let Some(node) = home.tree.node(definition.node) else { return definition.clone() };
        let mut reader = self.reader(home, problems);
        reader.bindings = bindings.to_vec();
        reader.item(node, definition.spec, 1)
    }
}

/// What a text reads that is nothing but one variable: `${name}`.
pub(super) fn only_variable(text: &str) -> Option<&str> {
    text.strip_prefix("${")?.strip_suffix('}').filter(|name| super::read::is_name(name))
}

/// `${name}`, as a body reads a parameter.
fn hole(name: &str) -> String {
    format!("${{{name}}}")
}

/// A setting's entry, written as property or child.
fn entry_of<'t>(node: Node<'t>, name: &str) -> Option<Entry<'t>> {
    node.property(name).or_else(|| node.children().find(|child| child.name() == name)?.argument(0))
}

/// What is given, as a part of a text.
fn plain(given: Entry<'_>) -> String {
    given.value().as_str().map_or_else(|| given.value_text().to_owned(), str::to_owned)
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Duration(ns) => Some(*ns as f64),
        Value::Rate(number) | Value::Ratio(number) => Some(*number),
        Value::Bytes(bytes) => Some(*bytes as f64),
        _ => None,
    }
}
