//! The generator: sends a workload to a target, checks every answer, and records what came back.
//!
//! [`run`] does it in process; [`control`] does it as a process of its own, told by lines of JSON ([`wire`]). Both give
//! [`LoadFacts`]: a census of every request of the window, histograms kept whole, and the generator's own state.
//! [`single_shot`] sends one request and [`check`] checks its answer with the validator of the hot path.
//!
//! What it does not do: it decides nothing about a repetition, opens no file but /proc/stat and prints nothing but its answers.
//! `unsafe` is in [`sys`] alone, and the compiler holds it there.

#![deny(unsafe_code, clippy::undocumented_unsafe_blocks)]

pub mod alone;
mod check;
mod connection;
mod control;
mod course;
pub mod error;
mod histogram;
mod http;
mod json;
mod layered;
mod listing;
mod merge;
pub mod noop;
mod own;
mod parameter;
pub mod peer;
mod prepare;
mod program;
mod random;
mod rate;
mod request;
mod schedule;
mod single;
#[expect(
    unsafe_code,
    reason = "what the kernel and tokio ask for; each block says why it is sound, and valgrind runs its tests"
)]
pub mod sys;
mod tally;
pub mod wire;
mod worker;
mod zipf;

pub use control::{control, hello};
pub use course::{CUT_NOTICE_NS, NO_CUT, Signals};
pub use error::{LoadError, Told};
pub use journal::facts::LoadFacts;
pub use listing::{Listed, list};
pub use merge::{add_stream, merge};
pub use prepare::{Course, Prepared, prepare, run};
pub use single::{Response, SingleError, check, single_shot};
pub use wire::{Arrivals, Engine, Job, Transport};
