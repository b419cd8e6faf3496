//! The engine: executes a plan's DAG against Docker or processes of this machine, PostgreSQL and the generator, and
//! writes what happens as events.
//!
//! Invariants: only `docker` imports bollard, only `postgres` imports tokio-postgres; nothing of ours runs beside a
//! measurement except the sampler; everything we make carries the run's id and is removed on every ending; events are
//! journaled before anybody sees them.

pub mod availability;
pub mod backend;
pub mod credentials;
pub mod docker;
pub mod error;
pub mod generator;
pub mod host;
pub mod pgbench;
pub mod port;
pub mod postgres;
pub mod process;
pub mod run;
pub mod sample;
pub mod secret;
mod step;
pub mod stop;
pub mod stream;
pub mod tool;
