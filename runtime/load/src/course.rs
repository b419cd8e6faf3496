//! What can be asked of a job while it runs: to stop, to end its window early, and to tell what came so far.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use journal::facts::StreamFacts;

use crate::program::Program;
use crate::sys;
use crate::tally::Tally;
use crate::wire::Interval;

/// How a running job is steered from outside. Threads look at it once per turn of their loop.
#[derive(Debug, Clone, Copy)]
pub struct Signals<'a> {
    /// Ends the job at once; it then has no account.
    pub stop: &'a AtomicBool,
    /// The instant of CLOCK_MONOTONIC at which the window ends early, at least [`CUT_NOTICE_NS`] ahead when it is set;
    /// [`NO_CUT`]: it does not.
    pub cut_at: &'a AtomicU64,
}

/// No early end.
pub const NO_CUT: u64 = u64::MAX;
/// Notice that every thread of a job gets of its window's early end: more than the longest sleep of any.
pub const CUT_NOTICE_NS: u64 = 100_000_000;

impl Signals<'_> {
    /// Whether the job is to end at once.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// When the window is to end early.
    #[inline]
    pub fn cut_at(&self) -> u64 {
        self.cut_at.load(Ordering::Relaxed)
    }
}

/// Where a thread lays down its books at the end of an interval and takes empty ones. It never waits: where the
/// collector has not fetched the last ones yet, the thread goes on with those it has and the interval is longer.
pub struct Shelf(Mutex<Shelved>);

enum Shelved {
    /// Empty books for the thread.
    Spare(Vec<Tally>),
    /// Books for the collector.
    Full(Vec<Tally>),
    /// The collector has them.
    Fetched,
    /// The thread has ended; what it still had is in its account.
    Closed,
}

impl Shelf {
    /// A shelf with empty books.
    pub fn new(program: &Program) -> Self {
        Self(Mutex::new(Shelved::Spare(books(program))))
    }

    /// Lays down the books and takes empty ones; `false` where that would mean to wait.
    pub fn lay_down(&self, tallies: &mut Vec<Tally>) -> bool {
        let Ok(mut shelved) = self.0.try_lock() else { return false };
        match std::mem::replace(&mut *shelved, Shelved::Fetched) {
            Shelved::Spare(spare) => {
                *shelved = Shelved::Full(std::mem::replace(tallies, spare));
                true
            }
            other => {
                *shelved = other;
                false
            }
        }
    }

    /// The thread has ended.
    pub fn close(&self) {
        let mut shelved = self.lock();
        if !matches!(*shelved, Shelved::Full(_)) {
            *shelved = Shelved::Closed;
        }
    }

    /// The books that were laid down; an ended thread has none.
    fn fetch(&self) -> Fetched {
        let mut shelved = self.lock();
        match std::mem::replace(&mut *shelved, Shelved::Fetched) {
            Shelved::Full(books) => Fetched::Books(books),
            Shelved::Closed => {
                *shelved = Shelved::Closed;
                Fetched::Nothing
            }
            other => {
                *shelved = other;
                Fetched::NotYet
            }
        }
    }

    fn restock(&self, spare: Vec<Tally>) {
        let mut shelved = self.lock();
        if matches!(*shelved, Shelved::Fetched) {
            *shelved = Shelved::Spare(spare);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shelved> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

enum Fetched {
    Books(Vec<Tally>),
    Nothing,
    NotYet,
}

/// Empty books for every stream.
pub fn books(program: &Program) -> Vec<Tally> {
    program.lanes.iter().map(|_| Tally::new(program.window)).collect()
}

/// Who hears the intervals of a job.
pub type Hear<'a> = &'a (dyn Fn(Interval) + Sync);

/// Gathers the intervals of a job from its threads' shelves and keeps their sum.
pub struct Collector<'a> {
    program: &'a Program,
    shelves: &'a [Shelf],
    every_ns: u64,
    hear: Hear<'a>,
    /// Everything that was told.
    total: Vec<Tally>,
    /// The interval that is being gathered, the instant at which it began, and what has come of it.
    number: u64,
    from_ns: u64,
    gathered: Vec<Tally>,
    missing: Vec<usize>,
}

impl<'a> Collector<'a> {
    /// A collector for a window that begins at `from_ns`.
    pub fn new(program: &'a Program, shelves: &'a [Shelf], from_ns: u64, every_ns: u64, hear: Hear<'a>) -> Self {
        Self {
            program,
            shelves,
            every_ns,
            hear,
            total: books(program),
            number: 0,
            from_ns,
            gathered: books(program),
            missing: (0..shelves.len()).collect(),
        }
    }

    /// Gathers and tells until `ended` is set. Meant for a thread of its own, which gives way to every other.
    pub fn run(&mut self, ended: &AtomicBool) {
        sys::give_way();
        let pause = Duration::from_nanos((self.every_ns / 20).clamp(1_000_000, 20_000_000));
        while !ended.load(Ordering::Acquire) {
            let (program, shelves) = (self.program, self.shelves);
            let gathered = &mut self.gathered;
            self.missing.retain(|index| match shelves[*index].fetch() {
                Fetched::Books(books) => {
                    merge(gathered, books);
                    shelves[*index].restock(crate::course::books(program));
                    false
                }
                Fetched::Nothing => false,
                Fetched::NotYet => true,
            });
            if self.missing.is_empty() && sys::now_ns() >= self.from_ns.saturating_add(self.every_ns) {
                self.tell(self.from_ns + self.every_ns);
            } else {
                std::thread::sleep(pause);
            }
        }
    }

    /// The end: tells the last interval, with what the threads still had, and gives the sum of all.
    pub fn finish(mut self, rest: impl IntoIterator<Item = Vec<Tally>>) -> Vec<Tally> {
        for shelf in self.shelves {
            if let Fetched::Books(books) = shelf.fetch() {
                merge(&mut self.gathered, books);
            }
        }
        for books in rest {
            merge(&mut self.gathered, books);
        }
        self.tell(sys::now_ns().max(self.from_ns));
        self.total
    }

    fn tell(&mut self, to_ns: u64) {
        let gathered = std::mem::replace(&mut self.gathered, books(self.program));
        let streams =
            facts(self.program, &gathered).into_iter().map(|stream| StreamFacts { progress: Vec::new(), ..stream });
        (self.hear)(Interval { number: self.number, from_ns: self.from_ns, to_ns, streams: streams.collect() });
        merge(&mut self.total, gathered);
        self.number += 1;
        self.from_ns = to_ns;
        self.missing = (0..self.shelves.len()).collect();
    }
}

/// Adds books stream by stream.
pub fn merge(mine: &mut [Tally], theirs: Vec<Tally>) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        mine.merge(theirs);
    }
}

/// The streams' accounts.
pub fn facts(program: &Program, tallies: &[Tally]) -> Vec<StreamFacts> {
    program
        .lanes
        .iter()
        .zip(tallies)
        .map(|(lane, tally)| tally.to_facts(&lane.name, &lane.checks, program.rate.is_some()))
        .collect()
}
