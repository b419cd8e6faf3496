//! What one repetition recorded. Raw facts only; every figure is derived from them elsewhere, by pure functions.
//!
//! A fact that could not be read is `None`, never 0: the gates then void the repetition.

mod histogram;
mod load;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::histogram::Histogram;
pub use self::load::{
    Census, GeneratorFacts, LoadFacts, PartFacts, ReceiveFacts, StreamFacts, ThreadFacts, ToldLatency, ToolFacts,
    TransportFacts,
};

/// Everything recorded of one repetition.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RepetitionFacts {
    /// The window.
    pub window: WindowFacts,
    /// The levels of the cell as they really were, chosen and computed ones included: `candidate`, `cores`, `pool`, `rate` …
    pub levels: BTreeMap<String, String>,
    /// The generator's account; `None` for pgbench or where the generator left none.
    pub load: Option<LoadFacts>,
    /// pgbench's account.
    pub pgbench: Option<PgbenchFacts>,
    /// Counters of the candidate across the window.
    pub candidate: Option<Counters>,
    /// Counters of the database across the window.
    pub database: Option<Counters>,
    /// The host across the window, per CPU.
    pub host: HostFacts,
    /// The pace witness of each measured CPU across the window, by CPU number.
    pub pace: BTreeMap<u32, PaceFacts>,
    /// Rows before and after.
    pub rows: Option<RowFacts>,
    /// What PostgreSQL did across the window.
    pub postgres: Option<DatabaseFacts>,
    /// The generator probe before the repetition.
    pub probe: Option<ProbeFacts>,
    /// How the candidate started, where that is what is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<StartFacts>,
    /// Problems met while the facts were gathered: a counter that could not be read and why, a sampler that died.
    pub findings: Vec<Finding>,
}

/// The window of a repetition. All instants are CLOCK_MONOTONIC nanoseconds of one host.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WindowFacts {
    /// Start on the monotonic clock.
    pub start_ns: u64,
    /// End on the monotonic clock.
    pub end_ns: u64,
    /// Start on the wall clock, Unix nanoseconds.
    pub wall_start_ns: u64,
    /// End on the wall clock.
    pub wall_end_ns: u64,
    /// Start on CLOCK_BOOTTIME, which goes on while the machine is suspended.
    pub boot_start_ns: u64,
    /// End on CLOCK_BOOTTIME.
    pub boot_end_ns: u64,
    /// What was declared.
    pub declared_ns: u64,
}

impl WindowFacts {
    /// Length on the monotonic clock, in seconds.
    pub fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9
    }
}

/// A problem met while facts were gathered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// What it concerns: `candidate cpu`, `host cpu 0`, `generator` …
    pub what: String,
    /// What happened.
    pub why: String,
}

/// A time in which something did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Stall {
    /// Start on the monotonic clock.
    pub at_ns: u64,
    /// Length.
    pub for_ns: u64,
}

/// pgbench's account.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PgbenchFacts {
    /// Transactions that were processed.
    pub transactions: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Transactions per second, as pgbench says (without the time to connect).
    pub tps: f64,
    /// Mean latency, ms.
    pub latency_ms: f64,
    /// Standard deviation of the latency, ms, where pgbench says it.
    pub latency_stddev_ms: Option<f64>,
    /// With a rate and a latency limit: transactions of the schedule that were skipped, being late already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
    /// With a rate and a latency limit: transactions that were processed and took longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// With a rate: mean and largest lateness of a transaction's start, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_ms: Option<(f64, f64)>,
}

/// CPU and memory counters of a role at the window's start and end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counters {
    /// Where they were read: `cgroup v1`, `cgroup v2`, `proc`.
    pub source: String,
    /// At the window's start.
    pub start: Option<CounterReading>,
    /// At the window's end.
    pub end: Option<CounterReading>,
    /// Largest memory seen within the window, bytes.
    pub memory_peak_bytes: Option<u64>,
    /// Memory over the window; `None` where a look failed, as for the peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryFacts>,
    /// CPUs that the role was given.
    pub cpus: u32,
}

/// Memory over the window, by slices of equal length.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MemoryFacts {
    /// Length of a slice, ns.
    pub slice_ns: u64,
    /// Largest memory seen in each slice, bytes; `null` where nobody looked in it.
    pub largest: Vec<Option<u64>>,
}

impl MemoryFacts {
    /// Slices of a window at the most.
    pub const MOST: u64 = 60;
    /// Shortest slice, ns.
    pub const SHORTEST_NS: u64 = 100_000_000;

    /// No look yet at a window of this length.
    pub fn over(window_ns: u64) -> Self {
        let slice_ns = window_ns.div_ceil(Self::MOST).max(Self::SHORTEST_NS);
        let slices = usize::try_from(window_ns.div_ceil(slice_ns)).unwrap_or(0);
        Self { slice_ns, largest: vec![None; slices] }
    }

    /// Enters what was seen this long after the window's start. What lies beyond its end counts to its last slice.
    pub fn see(&mut self, after_ns: u64, bytes: u64) {
        let Some(last) = self.largest.len().checked_sub(1) else { return };
        let slice = usize::try_from(after_ns / self.slice_ns).unwrap_or(last).min(last);
        self.largest[slice] = self.largest[slice].max(Some(bytes));
    }

    /// The slices that were looked at: middle in seconds after the window's start, bytes.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.largest.iter().enumerate().filter_map(|(slice, bytes)| {
            let middle = (slice as f64 + 0.5) * self.slice_ns as f64 / 1e9;
            Some((middle, (*bytes)? as f64))
        })
    }
}

impl Counters {
    /// CPU time spent in the window, ns; `None` when a reading is missing or the counter ran backwards.
    pub fn cpu_ns(&self) -> Option<u64> {
        self.end?.cpu_ns.checked_sub(self.start?.cpu_ns)
    }
}

/// One reading of a role's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CounterReading {
    /// When, on the monotonic clock.
    pub at_ns: u64,
    /// CPU time so far, ns.
    pub cpu_ns: u64,
    /// Periods in which the role was throttled so far, where a quota exists.
    pub throttled_periods: Option<u64>,
    /// Memory now, bytes (cgroup usage, or PSS where cgroups are not used).
    pub memory_bytes: Option<u64>,
}

/// How a candidate started. Instants are CLOCK_MONOTONIC nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StartFacts {
    /// When the backend was asked to start it.
    pub asked_ns: u64,
    /// When the last look that found it not ready began; `None` where the first one found it ready.
    pub not_ready_ns: Option<u64>,
    /// When its first ready answer was complete.
    pub ready_ns: u64,
    /// Looks until then, that one included.
    pub looks: u64,
    /// Its CPU time right after that, ns.
    pub cpu_ns: Option<u64>,
}

/// The host across the window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HostFacts {
    /// Times of each CPU in the window, by CPU number; a CPU that could not be read is missing.
    pub cpus: BTreeMap<u32, CpuTimes>,
    /// Frequency of each CPU at start and end, MHz, where the host tells.
    pub frequency_mhz: BTreeMap<u32, (u64, u64)>,
    /// CPU pressure: time in which some task waited for a CPU, µs, where the kernel has PSI.
    pub pressure_some_us: Option<u64>,
    /// CPU time of processes outside the study in the window, ns.
    pub foreign_cpu_ns: Option<u64>,
}

/// Times of one CPU in the window, in clock ticks of 10 ms as /proc/stat counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CpuTimes {
    /// User, nice, system, irq, softirq.
    pub busy: u64,
    /// Idle and iowait.
    pub idle: u64,
    /// Wanted by us, given to somebody else by the hypervisor.
    pub steal: u64,
}

impl CpuTimes {
    /// Steal ÷ all, 0–1; `None` when nothing was counted.
    pub fn steal_share(&self) -> Option<f64> {
        let all = self.busy + self.idle + self.steal;
        (all > 0).then(|| self.steal as f64 / all as f64)
    }
}

/// The pace witness of one CPU across the window: a fixed piece of work, timed again and again by its thread's CPU clock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PaceFacts {
    /// Times of the work, ns, not capped.
    pub samples: Histogram,
    /// Times by which the witness woke up late by more than 1 ms: the platform stood still.
    pub stalls: Vec<Stall>,
}

/// Rows before and after a repetition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RowFacts {
    /// The table.
    pub table: String,
    /// Rows of the fresh clone.
    pub before: u64,
    /// Rows after the candidate was stopped.
    pub after: u64,
}

/// What PostgreSQL did across the window.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DatabaseFacts {
    /// Checkpoints that were timed.
    pub checkpoints_timed: u64,
    /// Checkpoints that were requested (by WAL volume or command).
    pub checkpoints_requested: u64,
    /// WAL written, bytes.
    pub wal_bytes: u64,
    /// Committed transactions.
    pub commits: u64,
    /// Rows inserted.
    pub inserted: u64,
}

/// The generator probe: a no-op server on the candidate's CPUs, driven open-loop before the repetition.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProbeFacts {
    /// Rate that was asked for, per second.
    pub target: f64,
    /// Expected answers per second.
    pub achieved: f64,
    /// Failed, timed out, unanswered and unsent requests.
    pub errors: u64,
    /// The window, ns.
    pub window_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_kept_by_slices_of_the_window() {
        let mut memory = MemoryFacts::over(1_000_000_000);
        assert_eq!((memory.slice_ns, memory.largest.len()), (MemoryFacts::SHORTEST_NS, 10));
        for (after_ns, bytes) in [(0, 5), (99_999_999, 9), (100_000_000, 7), (5_000_000_000, 3)] {
            memory.see(after_ns, bytes);
        }
        assert_eq!(memory.points().collect::<Vec<_>>(), [(0.05, 9.0), (0.15, 7.0), (0.95, 3.0)]);
        let long = MemoryFacts::over(300_000_000_000);
        assert_eq!((long.slice_ns, long.largest.len()), (5_000_000_000, 60));
        MemoryFacts::over(0).see(1, 1);
    }

    #[test]
    fn a_counter_that_runs_backwards_is_missing() {
        let reading = |cpu_ns| Some(CounterReading { cpu_ns, ..CounterReading::default() });
        let mut counters = Counters { start: reading(5), end: reading(9), ..Counters::default() };
        assert_eq!(counters.cpu_ns(), Some(4));
        counters.end = reading(4);
        assert_eq!(counters.cpu_ns(), None);
        counters.end = None;
        assert_eq!(counters.cpu_ns(), None);
    }
}
