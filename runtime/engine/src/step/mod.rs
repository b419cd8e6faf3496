//! The steps of a plan, one file each. The enum of steps is closed (`plan::StepKind`).

pub(crate) mod contract;
pub(crate) mod database;
pub(crate) mod estimate;
pub(crate) mod prepare;
pub(crate) mod probe;
pub(crate) mod repetition;
pub(crate) mod serve;
pub(crate) mod start;
pub(crate) mod template;
