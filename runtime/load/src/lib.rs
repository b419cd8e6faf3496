//! The generator: sends a workload to a target and records what came back.

mod check;
pub mod error;
mod histogram;
mod http;
mod json;
mod parameter;
mod random;
mod request;
mod schedule;
pub mod sys;
pub mod wire;
