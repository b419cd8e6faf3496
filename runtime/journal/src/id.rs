//! Names of runs and repetitions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A run's name: `2026-11-30-1412-k7`. Also the value of the label and the environment variable that everything we
/// make carries.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub String);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One repetition of one cell of one phase.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RepetitionId {
    /// The phase's name.
    pub phase: String,
    /// Index into the phase's cells.
    pub cell: u32,
    /// From 1, counting every attempt of the cell, void ones included.
    pub number: u32,
}

impl fmt::Display for RepetitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}", self.phase, self.cell, self.number)
    }
}
