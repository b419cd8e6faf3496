//! Values: what the arguments and properties of a study's nodes mean once their types are known.

pub mod condition;
pub mod text;
pub mod units;

use std::sync::Arc;

use plan::{Condition, CpuSet, Metric, Text};
use syntax::{Directory, Location, SourceId};

use crate::schema::Kind;

/// A value of the study, typed. [`Value::Unknown`] stands for a value that already has its diagnostic: it fits everything
/// and never causes a second one.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Already reported.
    Unknown,
    /// A word, name, path or plain text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// Nanoseconds.
    Duration(i64),
    /// Per second.
    Rate(f64),
    /// Bytes.
    Bytes(u64),
    /// A ratio; `30%` is 0.3.
    Ratio(f64),
    /// A set of CPUs.
    Cpus(CpuSet),
    /// A text with variables.
    Template(Template),
    /// A comparison with a metric.
    Condition(Condition),
    /// A metric of a phase.
    Figure {
        /// The phase.
        phase: String,
        /// What of it.
        metric: Metric,
    },
    /// The name of something that is defined elsewhere.
    Reference {
        /// What kind of thing.
        kind: Kind,
        /// Its name.
        name: String,
    },
    /// Several of them.
    List(Vec<Valued>),
    /// A number that may have a fraction.
    Number(f64),
    /// A file of the study, with its text.
    File {
        /// Its name among the sources.
        id: SourceId,
        /// Its text.
        text: Arc<str>,
    },
    /// A file of the study, with its bytes.
    Content {
        /// Its name among the sources.
        id: SourceId,
        /// Its bytes.
        bytes: Arc<[u8]>,
    },
    /// A directory of the study.
    Directory(Directory),
}

/// A text with variables, and where each of them stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// The pieces.
    pub text: Text,
    /// The variables' places.
    pub variables: Vec<(String, Location)>,
}

/// A value, where it was written, and the places that it replaced.
#[derive(Debug, Clone, PartialEq)]
pub struct Valued {
    /// The value.
    pub value: Value,
    /// Where it stands.
    pub at: Location,
    /// As it is written.
    pub written: String,
    /// Values that an amendment replaced, the newest first: where, and as written.
    pub replaced: Vec<(Location, String)>,
}

impl Valued {
    /// Its text, where it is a word, name, path, text or reference.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Reference { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Whether it already has a diagnostic.
    pub fn is_unknown(&self) -> bool {
        self.value == Value::Unknown
    }
}
