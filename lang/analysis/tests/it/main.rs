//! The analysis as a whole, from texts to plans and diagnostics: one binary, so that the parts can share helpers.

mod capacity;
mod cascade;
mod common;
mod examples;
mod expanded;
mod fixes;
mod golden;
mod hashes;
mod inputs;
mod levels;
mod schema;
mod studies;
mod suite;
