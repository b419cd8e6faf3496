//! What can go wrong while a plan is executed, in classes that the exit code follows.

use journal::Failure;

/// A failure and the class of ending that it leads to where everything depends on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", failure.what)]
pub struct StepError {
    /// The class.
    pub class: Class,
    /// What happened, why, what to do next.
    pub failure: Failure,
}

/// Classes of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The machine lacks something: an engine, an image, a program, a CPU, a port, disk.
    Environment,
    /// A step of the study failed: a build, the contract, a repetition.
    Step,
    /// The journal can't be written.
    Journal,
    /// Ctrl-C or SIGTERM.
    Interrupted,
}

impl StepError {
    /// An environment failure.
    pub fn environment(what: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Class::Environment, what, why, next)
    }

    /// A failure of the study's own step.
    pub fn step(what: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Class::Step, what, why, next)
    }

    /// A failure of any class.
    pub fn new(class: Class, what: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self { class, failure: Failure { what: what.into(), why: why.into(), next: next.into(), log: Vec::new() } }
    }

    /// The same failure with the last lines of a log.
    #[must_use]
    pub fn with_log(mut self, log: Vec<String>) -> Self {
        self.failure.log = log;
        self
    }
}
