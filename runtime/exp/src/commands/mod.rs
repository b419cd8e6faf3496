//! One file per verb. Each takes its arguments and gives back how the process ends.

pub mod check;
pub mod clean;
pub mod doctor;
pub mod explain;
pub mod explain_value;
pub mod fmt;
pub mod load;
pub mod new;
pub mod plan;
pub mod probe;
pub mod report;
pub mod run;
