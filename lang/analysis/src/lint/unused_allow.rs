//! `unused-allow`: an `allow` for a lint that does not fire. The comparison itself stands in `lint::run`, which knows
//! what was used.

use syntax::Severity;

use super::{Lint, info};

/// The lint.
pub const LINT: Lint = Lint {
    info: info("W0716", "unused-allow", Severity::Warning, "An `allow` accepts a lint that does not fire."),
    page: include_str!("../../../../docs/lints/unused-allow.md"),
    check: |_, _| {},
};
