//! The sampler: what host, candidate and database did across a window, read at its very start and end, and the pace
//! of the measured CPUs inside it.
//!
//! It is the one thing of ours that runs beside a measurement, so it costs little: files are opened once, CPU counters
//! are read twice, memory ten times a second, and its thread keeps to the load's CPUs. What can't be read is missing
//! and a finding says why; nothing is ever 0 for want of a reading.

pub mod clock;
pub mod counters;
pub mod locate;
pub mod machine;
pub mod pace;
pub mod pin;
pub mod sampler;
pub mod tree;

pub use pin::{pin_process, pin_self};
pub use sampler::{SampleSpec, Sampled, Sampler};
