//! PostgreSQL, on real servers that the tests start themselves.

mod databases;
mod local;
mod pgbench;
mod support;
