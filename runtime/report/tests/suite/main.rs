//! The tests of the report: golden journals, and what holds for every journal.

mod docs;
mod golden;
mod limits;
mod properties;
mod support;
