//! Items: the nodes of a study once the schema knows them, with typed values, every one of which keeps its origin.

use syntax::{Diagnostic, Label, Location, NodeId};

use crate::schema::{NodeSpec, Variant};
use crate::value::{Value, Valued};

/// How a node behaves in an amendment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// What it writes is changed, the rest stays.
    Amend,
    /// `(replace)`: it takes the place of the whole node.
    Replace,
    /// `(remove)`: the node goes.
    Remove,
}

/// `without KIND NAME`.
#[derive(Debug, Clone, PartialEq)]
pub struct Without {
    /// The kind of node, or a setting.
    pub kind: String,
    /// What tells it from its siblings; empty where nothing does.
    pub key: String,
    /// Where it is written.
    pub at: Location,
}

/// A property beside `like=` that is no setting: the definition may take it as a parameter.
#[derive(Debug, Clone)]
pub struct Given {
    /// The parameter's name.
    pub name: String,
    /// Where the name stands.
    pub name_at: Location,
    /// The entry's place among those of its node.
    pub entry: usize,
    /// What is wrong with it where the definition has no such parameter.
    pub unknown: Option<Diagnostic>,
}

/// A node of the study.
#[derive(Debug, Clone)]
pub struct Item {
    /// What the schema says of it.
    pub spec: &'static NodeSpec,
    /// The variant that one of its arguments selected.
    pub variant: Option<&'static Variant>,
    /// Its arguments.
    pub args: Vec<Valued>,
    /// Arguments beyond its name that an amendment replaced, all of them together, the newest first.
    pub replaced_args: Vec<(Location, String)>,
    /// The settings that were written, as property or child.
    pub settings: Vec<(&'static str, Valued)>,
    /// Settings with names that the study chooses.
    pub free: Vec<(String, Valued)>,
    /// Its other children.
    pub children: Vec<Item>,
    /// What tells it from siblings of the same name.
    pub key: String,
    /// Where its name stands.
    pub name_at: Location,
    /// Where all of it stands.
    pub at: Location,
    /// Whether something in it already has an error, so that what seems to be missing may only be misspelt.
    pub broken: bool,
    /// Whether a node in its block was not understood: what it would have defined is not there.
    pub lost_child: bool,
    /// How it amends.
    pub mode: Mode,
    /// What it removes from the node that it amends.
    pub without: Vec<Without>,
    /// The `like` that it came through, the author's own line first.
    pub via: Vec<Label>,
    /// Its node in the tree of its source.
    pub node: NodeId,
    /// Of a definition: what it is given.
    pub parameters: Vec<Item>,
    /// What it gives the definition that it amends.
    pub given: Vec<Given>,
    /// The comment above it.
    pub doc: Option<String>,
}

impl Item {
    /// The kind of node, such as `phase`.
    pub fn kind(&self) -> &'static str {
        self.spec.name
    }

    /// Its first argument's text: the name of a phase, candidate …
    pub fn name(&self) -> &str {
        self.args.first().and_then(Valued::text).unwrap_or("")
    }

    /// The value of a setting that was written.
    pub fn setting(&self, name: &str) -> Option<&Valued> {
        self.settings.iter().find(|(known, _)| *known == name).map(|(_, valued)| valued)
    }

    /// The text of a setting.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.setting(name).and_then(Valued::text)
    }

    /// A setting's whole number.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.setting(name).map(|valued| &valued.value) {
            Some(Value::Integer(value)) => Some(*value),
            _ => None,
        }
    }

    /// A setting's duration in nanoseconds.
    pub fn duration(&self, name: &str) -> Option<i64> {
        match self.setting(name).map(|valued| &valued.value) {
            Some(Value::Duration(value)) => Some(*value),
            _ => None,
        }
    }

    /// A setting's bytes.
    pub fn bytes(&self, name: &str) -> Option<u64> {
        match self.setting(name).map(|valued| &valued.value) {
            Some(Value::Bytes(value)) => Some(*value),
            _ => None,
        }
    }

    /// A setting's ratio.
    pub fn ratio(&self, name: &str) -> Option<f64> {
        match self.setting(name).map(|valued| &valued.value) {
            Some(Value::Ratio(value)) => Some(*value),
            _ => None,
        }
    }

    /// The first child of that kind.
    pub fn child(&self, kind: &str) -> Option<&Item> {
        self.children.iter().find(|child| child.kind() == kind)
    }

    /// The child of that kind and key.
    pub fn keyed(&self, kind: &str, key: &str) -> Option<&Item> {
        self.children.iter().find(|child| child.kind() == kind && child.key == key)
    }

    /// The children of that kind.
    pub fn each<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Item> {
        self.children.iter().filter(move |child| child.kind() == kind)
    }

    /// What it is for people: "phase `ceiling`".
    pub fn described(&self) -> String {
        if self.key.is_empty() { format!("`{}`", self.kind()) } else { format!("{} `{}`", self.kind(), self.key) }
    }
}
