//! What is published.

use serde::{Deserialize, Serialize};

use crate::phase::MetricRef;

/// The report's items, in order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReportPlan {
    /// Tables, charts and plans.
    pub items: Vec<ReportItem>,
    /// How to run the study again: the command line that makes every figure of the report.
    pub reproduce: String,
}

/// One item of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportItem {
    /// A table of one figure.
    Table {
        /// Heading.
        title: String,
        /// The figure.
        of: MetricRef,
        /// Factor whose levels are rows.
        rows: String,
        /// Factor whose levels are columns.
        columns: Option<String>,
    },
    /// A bar chart of one figure.
    BarChart {
        /// Heading.
        title: String,
        /// The figure.
        of: MetricRef,
        /// Factor along the axis.
        by: String,
        /// Factor within a group.
        group: Option<String>,
    },
    /// A chart of one figure's metric over the window, a line for each level of a factor.
    LineChart {
        /// Heading.
        title: String,
        /// The figure.
        of: MetricRef,
        /// Factor whose levels have a line each.
        by: String,
        /// Factor within a group.
        group: Option<String>,
    },
    /// How many cores or instances carry a target.
    CapacityPlan {
        /// The phase whose ceilings are used.
        of: String,
        /// The core count of one instance.
        cores: i64,
        /// Target rates, per second.
        targets: Vec<f64>,
        /// Why it can't be made here, where the machine lacks that many cores.
        not_possible: Option<String>,
    },
}
