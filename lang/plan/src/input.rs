//! What a study takes from the environment of whoever runs it: inputs, which are recorded, and secrets, which never are.

use serde::{Deserialize, Serialize};

/// What stands before the name in `${env:NAME}`.
pub const ENVIRONMENT: &str = "env:";

/// An environment variable that the study declares with `input`. Texts of the plan already hold its value, so it is part
/// of every hash that it can change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Input {
    /// The variable.
    pub name: String,
    /// Its value; `None` where the environment has none and the study gives no default: such a plan is shown, not run.
    pub value: Option<String>,
    /// Whether the value is the study's default.
    pub is_default: bool,
}

/// A secret as a text reads it: the name inside `${…}`.
pub fn variable(name: &str) -> String {
    format!("{ENVIRONMENT}{name}")
}
