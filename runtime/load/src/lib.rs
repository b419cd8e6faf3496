//! The generator: sends a workload to a target and records what came back.

pub mod wire;
