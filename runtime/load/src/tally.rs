//! One thread's books: every request enters once when it is sent and once when it ends.

use std::collections::BTreeMap;

use journal::facts::{Census, Stall, StreamFacts};

use crate::check::{Checks, Mismatch};
use crate::histogram::Recorder;
use crate::http::Violation;
use crate::layered::Fault;

/// Wrong answers kept as evidence, per stream.
pub const EVIDENCE: usize = 5;
/// Stalls kept by name; a window with more is beyond saving anyway.
pub const STALLS: usize = 10_000;

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// A complete answer that is not as expected.
    Mismatch(Mismatch),
    /// Bytes that are no answer.
    Violation(Violation),
    /// The connection ended before the first byte of an answer.
    Closed,
    /// The connection ended in the middle of an answer.
    Truncated,
    /// The connection broke with this system error.
    Broken(i32),
    /// A connection could not be opened, with this system error.
    Connect(i32),
    /// A connection attempt got no answer within the time-out.
    ConnectTimeout,
    /// A connection could not be secured.
    Tls(Fault),
    /// The proxy answered CONNECT with this status; 0: with what is no answer.
    Tunnel(u16),
    /// HTTP/2 ended the request or its connection with this error code.
    Http2(u32),
    /// The target does not speak HTTP/2.
    NoHttp2,
}

impl Failure {
    /// In words, without values of one answer.
    pub fn words(self, checks: &Checks) -> String {
        match self {
            Self::Mismatch(mismatch) => checks.reason(mismatch),
            Self::Violation(violation) => format!("protocol: {}", violation.words()),
            Self::Closed => "connection closed before an answer".into(),
            Self::Truncated => "connection closed in the middle of an answer".into(),
            Self::Broken(libc::ECONNRESET) => "connection reset".into(),
            Self::Broken(libc::EPIPE) => "connection closed before the request was sent".into(),
            Self::Broken(code) => format!("connection broke: {}", std::io::Error::from_raw_os_error(code)),
            Self::Connect(libc::ECONNREFUSED) => "connection refused".into(),
            Self::Connect(code) => {
                format!(
                    "connection not opened: {}",
                    crate::error::connect_words(&std::io::Error::from_raw_os_error(code))
                )
            }
            Self::ConnectTimeout => "connection not opened: no answer to the attempt".into(),
            Self::Tls(fault) => format!("connection not secured: {}", fault.words()),
            Self::Tunnel(0) => "the proxy answered CONNECT with what is no HTTP answer".into(),
            Self::Tunnel(status) => format!("the proxy answered CONNECT with status {status}"),
            Self::Http2(code) => format!("HTTP/2: ended with {:?}", h2::Reason::from(code)),
            Self::NoHttp2 => "the target does not speak HTTP/2".into(),
        }
    }

    /// Whether the request may have taken effect though no answer says so.
    fn leaves_unknown(self) -> bool {
        match self {
            Self::Mismatch(_)
            | Self::Connect(_)
            | Self::ConnectTimeout
            | Self::Tls(_)
            | Self::Tunnel(_)
            | Self::NoHttp2 => false,
            // A refused stream was not processed (RFC 9113 §8.7).
            Self::Http2(code) => h2::Reason::from(code) != h2::Reason::REFUSED_STREAM,
            Self::Violation(_) | Self::Closed | Self::Truncated | Self::Broken(_) => true,
        }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// As expected.
    Ok,
    /// Not as expected.
    Failed(Failure),
    /// Not within the time-out.
    TimedOut,
    /// Not before the job ended.
    Unanswered,
}

/// The stamps of a request, CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stamps {
    /// When its slot was due; 0 in a closed loop.
    pub due: u64,
    /// Just before it was sent.
    pub sent: u64,
    /// Just after the first read that brought something of its answer.
    pub first: u64,
    /// Just after the read that completed its answer.
    pub done: u64,
}

/// When the window is, and by which rule requests belong to it.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// First instant.
    pub start: u64,
    /// First instant after it.
    pub end: u64,
    /// Open loop: requests belong by their slot; closed loop: answers by the instant they end.
    pub open: bool,
    /// An answer that took longer has timed out.
    pub timeout: u64,
    /// Length of a slice: of the window that was asked for, wherever it ends.
    pub slice: u64,
}

impl Window {
    /// Whether a request that has been answered belongs to the window.
    pub fn counts(&self, stamps: &Stamps) -> bool {
        if self.open { stamps.due >= self.start } else { (self.start..self.end).contains(&stamps.done) }
    }

    /// Length of a slice of the window: 100 ms for windows of up to a minute, and never more than 600 slices.
    pub const fn slice(window: u64) -> u64 {
        100_000_000 * window.div_ceil(60_000_000_000)
    }
}

/// One stream's books.
pub struct Tally {
    census: Census,
    acknowledged: u64,
    unknown: u64,
    warm_up_failed: u64,
    failures: BTreeMap<Failure, u64>,
    evidence: Vec<String>,
    service: Recorder,
    ttfb: Recorder,
    corrected: Recorder,
    send_lag: Recorder,
    own_lag: Recorder,
    /// Made when the first value comes: kept connections have none.
    connect: Option<Box<Recorder>>,
    failed: Recorder,
    progress: Box<[u64]>,
}

impl Tally {
    /// Empty books for a window of this length.
    pub fn new(window: u64) -> Self {
        Self {
            progress: vec![0; window.div_ceil(Window::slice(window)) as usize].into_boxed_slice(),
            own_lag: Recorder::new(),
            connect: None,
            census: Census::default(),
            acknowledged: 0,
            unknown: 0,
            warm_up_failed: 0,
            failures: BTreeMap::new(),
            evidence: Vec::new(),
            service: Recorder::new(),
            ttfb: Recorder::new(),
            corrected: Recorder::new(),
            send_lag: Recorder::new(),
            failed: Recorder::new(),
        }
    }

    /// Enters a slot of the open loop.
    pub fn due(&mut self, window: &Window, due: u64) {
        if due >= window.start {
            self.census.due += 1;
        }
    }

    /// Enters a request as sent, on a connection that has been free since this instant.
    #[inline]
    pub fn sent(&mut self, window: &Window, stamps: &Stamps, free_since: u64) {
        if window.open {
            if stamps.due >= window.start {
                self.census.sent += 1;
                self.own_lag.record(stamps.sent.saturating_sub(stamps.due.max(free_since)));
                self.send_lag.record(stamps.sent.saturating_sub(stamps.due));
            }
        } else if stamps.sent >= window.start {
            self.census.sent += 1;
        }
    }

    /// Enters that the connection of a request of its own stands, at an instant.
    #[inline]
    pub fn connected(&mut self, window: &Window, stamps: &Stamps, now: u64) {
        if (if window.open { stamps.due } else { stamps.sent }) >= window.start {
            self.connect.get_or_insert_with(|| Box::new(Recorder::new())).record(now.saturating_sub(stamps.sent));
        }
    }

    /// Enters a slot that was never sent; `now` is when the job ended.
    pub fn unsent(&mut self, window: &Window, due: u64, now: u64) {
        if due >= window.start {
            self.census.unsent += 1;
            self.corrected.record(now.saturating_sub(due));
        }
    }

    /// Enters a request's end.
    #[inline]
    pub fn ended(&mut self, window: &Window, stamps: &Stamps, outcome: Outcome) {
        let took = stamps.done.saturating_sub(stamps.sent);
        // The time-out holds to the nanosecond, however coarse the sweep is that ends those without any answer.
        let outcome = match outcome {
            Outcome::Ok | Outcome::Failed(Failure::Mismatch(_)) if took > window.timeout => Outcome::TimedOut,
            outcome => outcome,
        };
        match outcome {
            Outcome::Ok => {
                self.acknowledged += 1;
                if (window.start..window.end).contains(&stamps.done) {
                    let slice = (stamps.done - window.start) / window.slice;
                    self.progress[slice as usize] += 1;
                }
            }
            Outcome::Failed(failure) if !failure.leaves_unknown() => {}
            Outcome::Failed(_) | Outcome::TimedOut | Outcome::Unanswered => self.unknown += 1,
        }
        if window.open {
            if stamps.due < window.start {
                self.warm_up_failed += u64::from(matches!(outcome, Outcome::Failed(_) | Outcome::TimedOut));
                return;
            }
        } else {
            if stamps.done < window.start {
                self.warm_up_failed += u64::from(matches!(outcome, Outcome::Failed(_) | Outcome::TimedOut));
                return;
            }
            if stamps.sent < window.start {
                self.census.carried_in += 1;
            }
            // Of what was in flight when the window ended it counts only that it was.
            if stamps.done >= window.end || outcome == Outcome::Unanswered {
                self.census.carried_out += 1;
                return;
            }
        }
        let age = stamps.done.saturating_sub(stamps.due);
        match outcome {
            Outcome::Ok => {
                self.census.ok += 1;
                self.service.record(took);
                self.ttfb.record(stamps.first.saturating_sub(stamps.sent));
                if window.open {
                    self.corrected.record(age);
                }
            }
            Outcome::Failed(failure) => {
                self.census.failed += 1;
                *self.failures.entry(failure).or_default() += 1;
                if matches!(failure, Failure::Mismatch(_)) {
                    self.failed.record(took);
                }
            }
            Outcome::TimedOut => {
                self.census.timed_out += 1;
                if window.open {
                    self.corrected.record(age);
                }
            }
            Outcome::Unanswered => {
                self.census.unanswered += 1;
                self.corrected.record(age);
            }
        }
    }

    /// Whether another wrong answer would still be kept.
    pub fn wants_evidence(&self) -> bool {
        self.evidence.len() < EVIDENCE
    }

    /// Keeps a wrong answer.
    pub fn keep_evidence(&mut self, text: String) {
        if self.wants_evidence() {
            self.evidence.push(text);
        }
    }

    /// Adds another thread's books of the same stream.
    pub fn merge(&mut self, other: Self) {
        let (mine, theirs) = (&mut self.census, other.census);
        mine.due += theirs.due;
        mine.sent += theirs.sent;
        mine.carried_in += theirs.carried_in;
        mine.ok += theirs.ok;
        mine.failed += theirs.failed;
        mine.timed_out += theirs.timed_out;
        mine.unanswered += theirs.unanswered;
        mine.carried_out += theirs.carried_out;
        mine.unsent += theirs.unsent;
        self.acknowledged += other.acknowledged;
        self.unknown += other.unknown;
        self.warm_up_failed += other.warm_up_failed;
        for (failure, count) in other.failures {
            *self.failures.entry(failure).or_default() += count;
        }
        for text in other.evidence {
            self.keep_evidence(text);
        }
        self.service.merge(&other.service);
        self.ttfb.merge(&other.ttfb);
        self.corrected.merge(&other.corrected);
        self.send_lag.merge(&other.send_lag);
        self.own_lag.merge(&other.own_lag);
        if let Some(theirs) = &other.connect {
            self.connect.get_or_insert_with(|| Box::new(Recorder::new())).merge(theirs);
        }
        for (mine, theirs) in self.progress.iter_mut().zip(&other.progress) {
            *mine += theirs;
        }
        self.failed.merge(&other.failed);
    }

    /// The account in the form that is kept.
    pub fn to_facts(&self, name: &str, checks: &Checks, open: bool) -> StreamFacts {
        let mut failures = BTreeMap::new();
        for (failure, count) in &self.failures {
            *failures.entry(failure.words(checks)).or_default() += count;
        }
        StreamFacts {
            name: name.to_owned(),
            census: self.census,
            acknowledged: self.acknowledged,
            unknown: self.unknown,
            warm_up_failed: self.warm_up_failed,
            failures,
            evidence: self.evidence.clone(),
            service: self.service.to_histogram(),
            ttfb: self.ttfb.to_histogram(),
            corrected: open.then(|| self.corrected.to_histogram()),
            send_lag: open.then(|| self.send_lag.to_histogram()),
            own_lag: open.then(|| self.own_lag.to_histogram()),
            connect: self.connect.as_ref().map(|connect| connect.to_histogram()),
            progress: self.progress.to_vec(),
            failed: self.failed.to_histogram(),
        }
    }
}

/// The loop's absences within the window.
pub struct Stalls {
    kept: Vec<Stall>,
}

/// An absence shorter than this is everyday life.
pub const STALL_NS: u64 = 1_000_000;

impl Stalls {
    /// None so far. The room is made now, so that recording allocates nothing.
    pub fn new() -> Self {
        Self { kept: Vec::with_capacity(256) }
    }

    /// Records an absence if it is long enough and touches the window.
    #[inline]
    pub fn between(&mut self, window: &Window, from: u64, to: u64) {
        if to.saturating_sub(from) > STALL_NS {
            self.record(window, from, to);
        }
    }

    #[cold]
    fn record(&mut self, window: &Window, from: u64, to: u64) {
        if to > window.start && from < window.end && self.kept.len() < STALLS {
            self.kept.push(Stall { at_ns: from, for_ns: to - from });
        }
    }

    /// What was recorded.
    pub fn into_kept(self) -> Vec<Stall> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSED: Window = Window { start: 100, end: 200, open: false, timeout: 60, slice: Window::slice(100) };
    const OPEN: Window = Window { open: true, ..CLOSED };

    fn of(window: &Window, requests: &[(u64, u64, u64, Outcome)]) -> Tally {
        let mut tally = Tally::new(window.end - window.start);
        for &(due, sent, done, outcome) in requests {
            let stamps = Stamps { due, sent, first: done, done };
            if window.open {
                tally.due(window, due);
            }
            tally.sent(window, &stamps, due + 3);
            tally.ended(window, &stamps, outcome);
        }
        tally
    }

    #[test]
    fn a_closed_loop_counts_answers_by_the_instant_they_end() {
        let failed = Outcome::Failed(Failure::Mismatch(Mismatch::Status(502)));
        let tally = of(
            &CLOSED,
            &[
                (0, 10, 50, Outcome::Ok),
                (0, 20, 60, failed),
                (0, 50, 100, Outcome::Ok),
                (0, 90, 140, failed),
                (0, 100, 150, Outcome::Ok),
                (0, 110, 171, Outcome::Ok),
                (0, 150, 199, Outcome::Failed(Failure::Closed)),
                (0, 180, 200, Outcome::Ok),
                (0, 190, 400, Outcome::Unanswered),
                (0, 70, 130, Outcome::TimedOut),
            ],
        );
        assert_eq!(
            tally.census,
            Census { sent: 5, carried_in: 3, ok: 2, failed: 2, timed_out: 2, carried_out: 2, ..Census::default() }
        );
        assert!(tally.census.is_conserved(false));
        assert_eq!((tally.acknowledged, tally.unknown, tally.warm_up_failed), (4, 4, 1));
        assert_eq!(tally.service.to_histogram().count, 2);
        assert_eq!(tally.progress.iter().sum::<u64>(), 2);
        assert_eq!(tally.failed.to_histogram().count, 1);
        assert_eq!(tally.failures.values().sum::<u64>(), tally.census.failed);
    }

    #[test]
    fn an_open_loop_counts_by_slot_and_corrects_from_it() {
        let mut tally = of(
            &OPEN,
            &[
                (99, 99, 110, Outcome::Ok),
                (100, 105, 120, Outcome::Ok),
                (150, 160, 260, Outcome::Ok),
                (160, 250, 300, Outcome::Unanswered),
                (199, 199, 230, Outcome::Failed(Failure::Truncated)),
                (98, 99, 230, Outcome::TimedOut),
            ],
        );
        tally.due(&OPEN, 180);
        tally.unsent(&OPEN, 180, 300);
        tally.due(&OPEN, 20);
        tally.unsent(&OPEN, 20, 300);
        let census = tally.census;
        assert_eq!(
            census,
            Census { due: 5, sent: 4, ok: 1, failed: 1, timed_out: 1, unanswered: 1, unsent: 1, ..Census::default() }
        );
        assert!(census.is_conserved(true));
        let corrected = tally.corrected.to_histogram();
        assert_eq!(corrected.count, census.ok + census.timed_out + census.unanswered + census.unsent);
        assert_eq!((corrected.min_ns, corrected.max_ns), (20, 140));
        assert_eq!(tally.send_lag.to_histogram().max_ns, 90);
        assert_eq!(tally.own_lag.to_histogram().max_ns, 87, "the connection was free 3 ns after each slot");
        assert_eq!(
            tally.progress.to_vec(),
            [2],
            "one of the warm-up's slots, one of the window's, none that ended later"
        );
        assert_eq!((tally.acknowledged, tally.unknown, tally.warm_up_failed), (2, 4, 1));
    }

    #[test]
    fn a_window_has_slices_of_100_ms_but_never_too_many() {
        const S: u64 = 1_000_000_000;
        for (window, slices) in
            [(1, 1), (S / 10, 1), (S / 10 + 1, 2), (S, 10), (60 * S, 600), (61 * S, 305), (86_400 * S, 600)]
        {
            assert_eq!(Tally::new(window).progress.len(), slices, "{window}");
            assert!((window - 1) / Window::slice(window) < slices as u64, "the last instant has its slice");
        }
    }

    #[test]
    fn books_of_two_threads_add_up() {
        let requests = [(0, 90, 140, Outcome::Ok), (0, 150, 160, Outcome::Failed(Failure::Closed))];
        let (mut one, two) = (of(&CLOSED, &requests), of(&CLOSED, &requests));
        one.merge(two);
        assert_eq!((one.census.ok, one.census.failed, one.census.carried_in), (2, 2, 2));
        assert!(one.census.is_conserved(false));
        assert_eq!(one.failures[&Failure::Closed], 2);
    }

    #[test]
    fn only_long_absences_that_touch_the_window_are_stalls() {
        let window = Window { start: 10_000_000, end: 20_000_000, ..CLOSED };
        let mut stalls = Stalls::new();
        for (from, to) in [(0, 5_000_000), (9_000_000, 10_000_001), (12_000_000, 13_000_000), (19_999_999, 30_000_000)]
        {
            stalls.between(&window, from, to);
        }
        stalls.between(&window, 20_000_000, 30_000_000);
        let kept = stalls.into_kept();
        assert_eq!(kept.iter().map(|stall| stall.at_ns).collect::<Vec<_>>(), [9_000_000, 19_999_999]);
    }
}
