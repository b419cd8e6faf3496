//! Checks of the resolved study that need no plan: what is missing, what is referred to, which machine fits.

pub mod feasible;
pub mod machine;
pub mod references;
pub mod required;
pub mod transport;
