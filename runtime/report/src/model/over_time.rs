//! Charts of a metric over the window.

use serde::{Deserialize, Serialize};

use super::Cell;

/// A metric over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LineChart {
    /// Heading.
    pub title: String,
    /// The figure's name.
    pub of: String,
    /// What the metric is, in words.
    pub about: String,
    /// Unit of the values.
    pub unit: String,
    /// The lines, in order.
    pub lines: Vec<Line>,
}

/// One line: a cell's metric over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Line {
    /// What people read.
    pub label: String,
    /// The figure of the whole window.
    pub cell: Cell,
    /// Seconds after the window's start and the median of the valid repetitions there; empty where the figure is not
    /// determined.
    pub points: Vec<(f64, f64)>,
    /// Every repetition's own course, void ones too.
    pub repetitions: Vec<Trace>,
}

/// One repetition in a chart over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Trace {
    /// The repetition.
    pub repetition: String,
    /// Whether it is valid.
    pub valid: bool,
    /// Seconds after the window's start and the value there.
    pub points: Vec<(f64, f64)>,
}
