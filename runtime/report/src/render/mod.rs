//! Renders of a report: Markdown, HTML, JSON, CSV, the excluded repetitions; and of a plan.

pub mod csv;
mod drawing;
pub mod excluded;
pub mod html;
pub mod json;
pub mod markdown;
pub mod plan;
pub mod reasons;
pub mod words;

pub use csv::csv;
pub use excluded::excluded;
pub use html::html;
pub use json::{json, summary_json};
pub use markdown::markdown;
