//! How much a lint weighs: its own level, what the study says (`allow`, `warn`, `deny`, the innermost block first), and
//! what the command line says, which counts most.

use syntax::{Location, Severity};

use crate::resolve::Item;
use crate::schema::{ALLOW, DENY, WARN};

/// How much a lint weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Accepted: no diagnostic, and a limit of the report.
    Allow,
    /// A warning, and a limit of the report.
    Warn,
    /// An error.
    Deny,
}

impl Level {
    /// The word in the language and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => ALLOW.name,
            Self::Warn => WARN.name,
            Self::Deny => DENY.name,
        }
    }

    /// The level of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Allow, Self::Warn, Self::Deny].into_iter().find(|level| level.name() == name)
    }

    /// The level of findings of this severity.
    pub fn of(severity: Severity) -> Self {
        if severity == Severity::Error { Self::Deny } else { Self::Warn }
    }

    /// How bad a finding at this level is.
    pub fn severity(self) -> Severity {
        if self == Self::Deny { Severity::Error } else { Severity::Warning }
    }
}

/// Stands for every lint on the command line.
pub const ALL: &str = "all";

/// What the command line says: a lint's name (or [`ALL`]) and its level.
pub type Levels = [(String, Level)];

/// The level that the command line gives to a lint. A name counts more than `all`; of several levels the strictest.
pub fn ordered(levels: &Levels, lint: &str) -> Option<Level> {
    let strictest = |name: &str| levels.iter().filter(|(known, _)| known == name).map(|(_, level)| *level).max();
    strictest(lint).or_else(|| strictest(ALL))
}

/// An `allow`, `warn` or `deny` of the study.
pub(super) struct Stated<'a> {
    /// The lint.
    pub lint: &'a str,
    /// How much it weighs.
    pub level: Level,
    /// Why, where it is allowed.
    pub reason: &'a str,
    /// Where its name stands.
    pub at: &'a Location,
    /// All of it.
    pub whole: &'a Location,
    /// Kind and key of the nodes around it, outermost first.
    pub scope: Vec<(&'static str, &'a str)>,
    /// Whether it came with the standard library, which allows what its users may never meet.
    pub from_library: bool,
    /// Whether a finding asked for it.
    pub used: bool,
}

/// Everything that the study states of lints.
pub(super) fn stated(items: &[Item]) -> Vec<Stated<'_>> {
    let mut found = Vec::new();
    visit(items, &mut Vec::new(), &mut found);
    found
}

fn visit<'a>(items: &'a [Item], scope: &mut Vec<(&'static str, &'a str)>, found: &mut Vec<Stated<'a>>) {
    for item in items {
        if let Some(level) = Level::from_name(item.kind()) {
            let lint = item.args.first().and_then(crate::value::Valued::text);
            let reason = item.text("reason");
            // An `allow` without a reason has its own diagnostic, and accepts nothing.
            let (Some(lint), false) = (lint, level == Level::Allow && reason.is_none()) else { continue };
            found.push(Stated {
                lint,
                level,
                reason: reason.unwrap_or_default(),
                at: &item.args[0].at,
                whole: &item.at,
                scope: scope.clone(),
                from_library: item.at.source.is_std(),
                used: false,
            });
            continue;
        }
        scope.push((item.kind(), &item.key));
        visit(&item.children, scope, found);
        scope.pop();
    }
}

/// The statement that decides about a finding in `scope`: the innermost, and of one block the last.
pub(super) fn deciding(stated: &[Stated<'_>], lint: &str, scope: &[(String, String)]) -> Option<usize> {
    let covers = |stated: &Stated<'_>| {
        stated.lint == lint
            && stated.scope.len() <= scope.len()
            && stated.scope.iter().zip(scope).all(|((kind, key), (k, name))| kind == k && key == name)
    };
    (0..stated.len()).filter(|&index| covers(&stated[index])).max_by_key(|&index| (stated[index].scope.len(), index))
}

/// Each `allow` of the study that no finding asked for.
pub(super) fn unused<'s, 'a>(stated: &'s [Stated<'a>]) -> impl Iterator<Item = &'s Stated<'a>> {
    stated.iter().filter(|stated| stated.level == Level::Allow && !stated.used && !stated.from_library)
}

/// Whether the command line makes an error of every warning, those of no lint included.
pub fn denies_all(levels: &Levels) -> bool {
    levels.iter().any(|(name, level)| name == ALL && *level == Level::Deny)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_more_than_all_and_of_several_levels_the_strictest() {
        let levels: Vec<(String, Level)> =
            [("fixed-order", Level::Allow), ("all", Level::Deny), ("fixed-order", Level::Warn)]
                .map(|(name, level)| (name.to_owned(), level))
                .into();
        assert_eq!(ordered(&levels, "fixed-order"), Some(Level::Warn));
        assert_eq!(ordered(&levels, "dirty-database"), Some(Level::Deny));
        assert_eq!(ordered(&levels[..1], "dirty-database"), None);
    }
}
