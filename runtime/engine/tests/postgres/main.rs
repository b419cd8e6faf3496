//! PostgreSQL, on real servers that the tests start themselves.

mod databases;
#[cfg(feature = "embedded")]
mod embedded;
mod local;
mod pgbench;
mod support;
