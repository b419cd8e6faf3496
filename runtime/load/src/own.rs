//! What the generator says about itself, and what it can tell of the target's stillness: how long answers lay in the kernel, times in
//! which nothing came, what the hypervisor took.

use journal::facts::{ReceiveFacts, Stall};
use plan::CpuSet;

use crate::histogram::Recorder;
use crate::tally::{STALLS, Window};

/// Of so many connections one has its answers timed by the kernel; the first of each thread always.
pub const SAMPLE: u32 = 16;

/// A time without any byte from the target that is shorter than this is not kept.
pub const SILENCE_NS: u64 = 10_000_000;

/// How long answers lay in the kernel until they were read, beside their service time.
pub struct Receiving {
    queue: Recorder,
    service: Recorder,
}

impl Receiving {
    /// Nothing so far.
    pub fn new() -> Self {
        Self { queue: Recorder::new(), service: Recorder::new() }
    }

    /// Enters an expected answer whose last piece lay in the kernel for so long.
    pub fn record(&mut self, queue_ns: u64, service_ns: u64) {
        self.queue.record(queue_ns.min(service_ns));
        self.service.record(service_ns);
    }

    /// Adds another thread's.
    pub fn merge(&mut self, other: &Self) {
        self.queue.merge(&other.queue);
        self.service.merge(&other.service);
    }

    /// In the form that is kept; `None` where no answer was timed.
    pub fn to_facts(&self, connections: u32) -> Option<ReceiveFacts> {
        let (queue, service) = (self.queue.to_histogram(), self.service.to_histogram());
        (queue.count > 0).then_some(ReceiveFacts { connections, queue, service })
    }
}

/// Times in which requests of a thread were in flight and nothing came.
pub struct Silences {
    kept: Vec<(u64, u64)>,
}

impl Silences {
    /// None so far. The room is made now, so that recording allocates nothing.
    pub fn new() -> Self {
        Self { kept: Vec::with_capacity(256) }
    }

    /// Something came: if nothing had for long enough, that is kept.
    #[inline]
    pub fn between(&mut self, window: &Window, from: u64, to: u64) {
        if to.saturating_sub(from) > SILENCE_NS {
            self.record(window, from, to);
        }
    }

    #[cold]
    fn record(&mut self, window: &Window, from: u64, to: u64) {
        if to > window.start && from < window.end && self.kept.len() < STALLS {
            self.kept.push((from, to));
        }
    }

    /// The silences as intervals [from, to), in order, without what the thread's own absences cover: while it was away, something may well
    /// have come.
    pub fn without(self, stalls: &[Stall]) -> Vec<(u64, u64)> {
        self.kept.iter().flat_map(|silence| outside(*silence, stalls)).collect()
    }
}

/// The parts of an interval that no stall covers. Stalls are in order of time.
fn outside((mut from, to): (u64, u64), stalls: &[Stall]) -> Vec<(u64, u64)> {
    let mut parts = Vec::new();
    for stall in stalls {
        let end = stall.at_ns + stall.for_ns;
        if end <= from || stall.at_ns >= to {
            continue;
        }
        if stall.at_ns > from {
            parts.push((from, stall.at_ns));
        }
        from = from.max(end);
    }
    if from < to {
        parts.push((from, to));
    }
    parts
}

/// The silences of the target: times in which no thread heard of it, where every thread waited for it.
pub fn of_all(threads: &[Vec<(u64, u64)>]) -> Vec<Stall> {
    let Some((first, others)) = threads.split_first() else { return Vec::new() };
    let common = others.iter().fold(first.clone(), |common, thread| {
        let both = |one: &(u64, u64)| {
            let overlap = |other: &(u64, u64)| (one.0.max(other.0), one.1.min(other.1));
            thread.iter().map(overlap).filter(|(from, to)| from < to).collect::<Vec<_>>()
        };
        common.iter().flat_map(both).collect()
    });
    common
        .into_iter()
        .filter(|(from, to)| to - from > SILENCE_NS)
        .map(|(from, to)| Stall { at_ns: from, for_ns: to - from })
        .collect()
}

/// Time that the hypervisor has taken from these CPUs since the host started, ns; all CPUs where none are named. `None` where the host
/// doesn't tell, or lacks one of them.
pub fn stolen_ns(cpus: &CpuSet) -> Option<u64> {
    stolen_ticks(&std::fs::read_to_string("/proc/stat").ok()?, cpus).map(|ticks| ticks * NS_PER_TICK)
}

/// The ticks of /proc/stat: USER_HZ is 100 on every platform that this runs on.
const NS_PER_TICK: u64 = 10_000_000;

fn stolen_ticks(stat: &str, cpus: &CpuSet) -> Option<u64> {
    // cpuN user nice system idle iowait irq softirq steal …
    let of = |name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.split_whitespace().nth(7)?.parse::<u64>().ok()
    };
    if cpus.is_empty() { of("cpu") } else { cpus.cpus().iter().map(|cpu| of(&format!("cpu{cpu}"))).sum() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { start: 100_000_000, end: 900_000_000, open: false, timeout: 1, slice: 100_000_000 };

    fn silences(all: &[(u64, u64)]) -> Silences {
        let mut silences = Silences::new();
        for (from, to) in all {
            silences.between(&WINDOW, from * 1_000_000, to * 1_000_000);
        }
        silences
    }

    fn stall(at_ms: u64, for_ms: u64) -> Stall {
        Stall { at_ns: at_ms * 1_000_000, for_ns: for_ms * 1_000_000 }
    }

    #[test]
    fn a_silence_is_the_targets_where_the_generator_was_there() {
        // Too short; before the window; across its start; whole; after it.
        let kept = silences(&[(200, 209), (10, 90), (80, 150), (300, 500), (950, 990)]).without(&[]);
        assert_eq!(of_all(&[kept]), [stall(80, 70), stall(300, 200)]);
        // The generator's own freeze is none of the target's, and one within a silence splits it.
        let kept = silences(&[(300, 500)]).without(&[stall(299, 202)]);
        assert_eq!(of_all(&[kept]), []);
        let kept = silences(&[(300, 500)]).without(&[stall(290, 20), stall(350, 5), stall(498, 30)]);
        assert_eq!(of_all(&[kept]), [stall(310, 40), stall(355, 143)]);
    }

    #[test]
    fn a_silence_of_one_thread_is_none_where_another_had_answers() {
        let one = silences(&[(300, 500), (600, 640)]).without(&[]);
        let other = silences(&[(310, 400), (420, 505), (639, 700)]).without(&[]);
        assert_eq!(of_all(&[one, other]), [stall(310, 90), stall(420, 80)]);
        assert_eq!(of_all(&[]), []);
    }

    #[test]
    fn steal_is_read_for_the_cpus_that_are_named() {
        let stat = "cpu  9 0 9 9 0 0 0 42 0 0\ncpu0 4 0 4 4 0 0 0 40 0 0\ncpu1 5 0 5 5 0 0 0 2 0 0\nintr 5\n";
        assert_eq!(stolen_ticks(stat, &CpuSet::default()), Some(42));
        assert_eq!(stolen_ticks(stat, &CpuSet::new([1])), Some(2));
        assert_eq!(stolen_ticks(stat, &CpuSet::new([0, 1])), Some(42));
        assert_eq!(stolen_ticks(stat, &CpuSet::new([0, 7])), None, "a CPU that is not there");
        assert_eq!(stolen_ticks("cpu0 1 2 3\n", &CpuSet::new([0])), None, "a kernel that doesn't tell");
        assert!(stolen_ns(&CpuSet::new([0])).is_some(), "this host tells");
    }

    #[test]
    fn what_lay_in_the_kernel_is_never_more_than_the_whole() {
        let mut receiving = Receiving::new();
        assert_eq!(receiving.to_facts(4), None, "nothing timed is not zero");
        receiving.record(50, 100);
        receiving.record(5_000, 100);
        let mut all = Receiving::new();
        all.merge(&receiving);
        let facts = all.to_facts(4).expect("facts");
        assert_eq!((facts.connections, facts.queue.count, facts.queue.max_ns, facts.service.count), (4, 2, 100, 2));
        assert_eq!(facts.share_of_service(), Some(0.5));
    }
}
