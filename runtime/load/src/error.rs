//! What can keep a job from running, in words for the person who wrote the study.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;

/// Why a job could not be prepared, or did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The job contradicts itself or can't be sent.
    #[error("{what}; {next}")]
    Job {
        /// What is wrong, with the value.
        what: String,
        /// What to do next.
        next: String,
    },
    /// A connection could not be opened.
    #[error("connection {number} of {of} to {target} can't be opened: {why}; {next}")]
    Connect {
        /// The target.
        target: SocketAddr,
        /// Which connection, from 1.
        number: u32,
        /// Connections asked for.
        of: u32,
        /// Why, in plain words.
        why: String,
        /// What to do next.
        next: &'static str,
    },
    /// The target's name leads nowhere.
    #[error("{what}; {next}")]
    NoAddress {
        /// Which name, and what the system says.
        what: String,
        /// What to do next.
        next: &'static str,
    },
    /// The operating system refused something that the generator needs.
    #[error("the generator can't {what}: {source}; {next}")]
    System {
        /// What it wanted.
        what: Cow<'static, str>,
        /// The system's answer.
        source: io::Error,
        /// What to do next.
        next: &'static str,
    },
    /// The start was given too late.
    #[error("the start lies {late_ns} ns in the past: the warm-up would be cut short; give the start with more notice")]
    Late {
        /// How far.
        late_ns: u64,
    },
    /// The job was stopped before its end; what it saw is not a measurement.
    #[error("stopped before the end, as ordered; nothing of it counts; run it again")]
    Stopped,
    /// The early end of the window lay in the past when a thread saw it.
    #[error(
        "the window was to end early, and a thread of the generator saw that {late_ns} ns too late; nothing of it counts; run it again on a quieter machine"
    )]
    CutLate {
        /// How far.
        late_ns: u64,
    },
    /// The generator's own books don't balance. A fault of this program.
    #[error(
        "the generator lost count: {issued} requests sent, {ended} ended, {in_flight} in flight; this is a fault in exp, please report it with the study"
    )]
    LostCount {
        /// Requests sent, by the count at sending.
        issued: u64,
        /// Requests that ended, by the count at their ends.
        ended: u64,
        /// Requests in flight, by the connections' states.
        in_flight: u64,
    },
    /// A thread panicked. A fault of this program.
    #[error("a thread of the generator ended in a panic: {0}; this is a fault in exp, please report it with the study")]
    Panicked(String),
}

/// An error in the three parts that are told of every error: what happened, why, and what to do next. A part may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// What happened, with the values involved.
    pub what: String,
    /// Why.
    pub why: String,
    /// What to do next.
    pub next: String,
}

impl LoadError {
    /// What happened, why, and what to do next.
    pub fn told(&self) -> Told {
        let (what, why, next) = match self {
            Self::Job { what, next } => (what.clone(), String::new(), next.clone()),
            Self::NoAddress { what, next } => (what.clone(), String::new(), (*next).to_owned()),
            Self::Connect { target, number, of, why, next } => {
                let which = if *of == 1 { "a connection".to_owned() } else { format!("connection {number} of {of}") };
                (format!("{which} to {target} can't be opened"), why.clone(), (*next).to_owned())
            }
            Self::System { what, source, next } => {
                (format!("the generator can't {what}"), source.to_string(), (*next).to_owned())
            }
            Self::Late { .. } | Self::CutLate { .. } | Self::Stopped => (
                self.to_string(),
                "what such a load records is no measurement".to_owned(),
                "run it again on a quieter machine".to_owned(),
            ),
            Self::LostCount { .. } | Self::Panicked(_) => {
                (self.to_string(), String::new(), "report this with the command line".to_owned())
            }
        };
        Told { what, why, next }
    }

    /// Whether what was asked for can't be sent, whatever the target does.
    pub fn is_of_the_job(&self) -> bool {
        matches!(self, Self::Job { .. })
    }

    /// Whether the target could not be reached at all.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::NoAddress { .. } | Self::Connect { .. })
    }

    /// A job that can't be sent.
    pub(crate) fn job(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::Job { what: what.into(), next: next.into() }
    }

    /// Something the operating system refused. Called before it is known to have refused: a literal costs nothing then.
    pub(crate) fn system(what: impl Into<Cow<'static, str>>, next: &'static str) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source, next }
    }

    /// A connection that could not be opened.
    pub(crate) fn connect(target: SocketAddr, number: u32, of: u32, error: &io::Error) -> Self {
        Self::Connect { target, number, of, why: connect_words(error), next: connect_next(error) }
    }
}

/// Why a connection attempt failed, in plain words.
pub(crate) fn connect_words(error: &io::Error) -> String {
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::ConnectionRefused, _) => "connection refused: nobody listens there".into(),
        (io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock, _) => {
            "no answer to the connection attempt: the listener accepts nothing".into()
        }
        (_, Some(libc::EMFILE | libc::ENFILE)) => "no file descriptor is left".into(),
        (io::ErrorKind::AddrNotAvailable, _) => {
            "no local port is left for this target; a closed connection keeps its port for a minute".into()
        }
        _ => error.to_string(),
    }
}

pub(crate) fn connect_next(error: &io::Error) -> &'static str {
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::ConnectionRefused, _) => "check that the target runs and that its port is right",
        (io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock, _) => {
            "check that the target accepts this many connections, or ask for fewer"
        }
        (_, Some(libc::EMFILE | libc::ENFILE)) => "ask for fewer connections, or raise the limit (`ulimit -n`)",
        (io::ErrorKind::AddrNotAvailable, _) => {
            "ask for fewer connections, keep them alive, widen net.ipv4.ip_local_port_range, or wait a minute"
        }
        _ => "check the target's address and that it runs",
    }
}
