//! Exit codes: one per class of ending. `docs/commands.md` prints this table; a test compares.

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done; for `run`: published, or published with limits.
    Ok,
    /// The command line is wrong, or names something that does not exist.
    Usage,
    /// The study has errors; or `--require-all` and a candidate can't be measured here.
    Invalid,
    /// The machine lacks something that everything needs: an engine, a database, CPUs, a port, disk.
    Environment,
    /// A step failed that everything needs, or every candidate failed its contract.
    Failed,
    /// `exp load`: the target could not be reached.
    Unreachable,
    /// `exp load`: more requests failed than were allowed.
    FailedRequests,
    /// `exp load`: the generator was the bottleneck, so that the figures are not the target's.
    Bottleneck,
    /// The run ended well and publishes nothing: the report says why.
    Void,
    /// The journal could not be written: what was not recorded was not shown.
    JournalLost,
    /// Ctrl-C or SIGTERM; the run can be continued.
    Interrupted,
    /// A defect of `exp` itself.
    Defect,
}

impl Exit {
    /// Every ending, in the order of the table.
    pub const ALL: [Self; 12] = [
        Self::Ok,
        Self::Usage,
        Self::Invalid,
        Self::Environment,
        Self::Failed,
        Self::Unreachable,
        Self::Void,
        Self::FailedRequests,
        Self::Bottleneck,
        Self::JournalLost,
        Self::Interrupted,
        Self::Defect,
    ];

    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Usage => 2,
            Self::Invalid => 10,
            Self::Environment => 20,
            Self::Failed => 30,
            Self::Unreachable => 31,
            Self::Void => 40,
            Self::FailedRequests => 41,
            Self::Bottleneck => 42,
            Self::JournalLost => 50,
            Self::Interrupted => 130,
            Self::Defect => 70,
        }
    }

    /// What it means.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "done; for `exp run`: published, or published with limits",
            Self::Usage => "the command line is wrong, or names something that does not exist",
            Self::Invalid => {
                "the study has errors, or a candidate can't be measured here and `--require-all` was given"
            }
            Self::Environment => {
                "the machine lacks something that everything needs: an engine, a database, CPUs, a port, disk, a variable of the environment"
            }
            Self::Failed => "a step failed that everything needs, or every candidate failed its contract",
            Self::Unreachable => "`exp load`: the target could not be reached",
            Self::FailedRequests => "`exp load`: more requests failed than `--allow-failures` allows",
            Self::Bottleneck => {
                "`exp load`: the generator was the bottleneck, so the figures are not the target's; `--allow-bottleneck` accepts that"
            }
            Self::Void => "the run ended well and publishes nothing; the report says why",
            Self::JournalLost => "the journal could not be written; the run ended at once",
            Self::Interrupted => {
                "Ctrl-C or SIGTERM; the same command continues the run; `exp load` sums up what it measured until then"
            }
            Self::Defect => "a defect of `exp` itself",
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl From<engine::error::Class> for Exit {
    fn from(class: engine::error::Class) -> Self {
        match class {
            engine::error::Class::Environment => Self::Environment,
            engine::error::Class::Step => Self::Failed,
            engine::error::Class::Journal => Self::JournalLost,
            engine::error::Class::Interrupted => Self::Interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn the_documentation_has_every_code() {
        let page = include_str!("../../../docs/commands.md");
        for exit in Exit::ALL {
            let row = format!("| {} | {} |", exit.code(), exit.meaning());
            assert!(page.contains(&row), "docs/commands.md lacks the row: {row}");
        }
    }
}
