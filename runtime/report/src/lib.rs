//! From events to what people read: a pure fold of the journal, and its renders.
//!
//! Invariant: no clock, no socket, no file, no printing. The same plan and the same journal give the same bytes, live
//! and replayed.

pub mod fold;
pub mod history;
pub mod model;
pub mod number;
pub mod outlook;
pub mod render;
pub mod terminal;
pub mod width;

pub use fold::{Fold, report};
pub use model::Report;
