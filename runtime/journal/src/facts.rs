//! What one repetition recorded. Raw facts only; every figure is derived from them elsewhere, by pure functions.
//!
//! A fact that could not be read is `None`, never 0: the gates then void the repetition.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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

/// The generator's account of one repetition.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LoadFacts {
    /// Connections asked for.
    pub connections: u32,
    /// Connections that got at least one answer.
    pub connections_used: u32,
    /// Connections that had to be opened again within the window.
    pub reconnects: u64,
    /// Times within the window that bytes came on a connection with no request in flight: the target answers what nobody asked.
    #[serde(default)]
    pub unsolicited: u64,
    /// Rate asked for (open loop), per second.
    pub rate: Option<f64>,
    /// Length of a slice of the window, ns, by which the streams' `progress` counts.
    #[serde(default)]
    pub slice_ns: u64,
    /// How long the window was, ns, where it ended otherwise than by its time: by a number of requests, or cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ns: Option<u64>,
    /// Where several generators sent the load together: each one's own account, which the other fields hold the sum of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<PartFacts>,
    /// One account per stream, in the workload's order.
    pub streams: Vec<StreamFacts>,
    /// Times of more than 10 ms within the window in which requests were in flight, the generator was there and nothing came: the
    /// target's own stillness. What the generator was away of them is taken out.
    #[serde(default)]
    pub silences: Vec<Stall>,
    /// The generator's own state across the window.
    pub generator: GeneratorFacts,
    /// How the requests travelled; `None` in accounts that are older than the choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportFacts>,
    /// The tool that sent the load, where it was not our own generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolFacts>,
}

impl LoadFacts {
    /// Requests that could be in flight at one time: what Little's law calls N.
    pub fn places(&self) -> u32 {
        self.connections.saturating_mul(self.transport.as_ref().map_or(1, |transport| transport.in_flight.max(1)))
    }
}

/// How requests travelled, as it was agreed with the target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TransportFacts {
    /// The engine that sent them: `epoll`, `io_uring` where it was asked for, or `hyper` for TLS, HTTP/2 and proxies.
    pub engine: String,
    /// `HTTP/1.1` or `HTTP/2`.
    pub protocol: String,
    /// Requests in flight at one time on each connection.
    pub in_flight: u32,
    /// Version of TLS and cipher suite.
    pub tls: Option<String>,
    /// The certificate was taken whoever it belongs to.
    #[serde(default)]
    pub certificate_unchecked: bool,
    /// The proxy that connections went through.
    pub proxy: Option<String>,
    /// Requests that a connection ended without having processed them, and that were sent again on another.
    #[serde(default)]
    pub sent_again: u64,
}

/// Another tool than our own generator, and what it told beside counts and histograms.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToolFacts {
    /// Its name.
    pub name: String,
    /// Its version, as it says.
    pub version: String,
    /// How long it measured, by its own account, ns. Its rate is what it counted ÷ this.
    pub measured_ns: u64,
    /// Latencies of which it tells no distribution: `service`, `ttfb`, `corrected`.
    pub percentiles: BTreeMap<String, ToldLatency>,
    /// What it can't account for, in words.
    pub lacks: Vec<String>,
    /// What a reader should know of its figures.
    pub remarks: Vec<String>,
}

/// A latency as a tool tells it: no distribution, so it can't be merged with another.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToldLatency {
    /// Answers that it covers.
    pub count: u64,
    /// Mean, ns, where it is told.
    pub mean_ns: Option<f64>,
    /// 50th percentile, ns.
    pub p50_ns: Option<u64>,
    /// 99th percentile, ns.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile, ns.
    pub p999_ns: Option<u64>,
}

/// One stream's account.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StreamFacts {
    /// The stream.
    pub name: String,
    /// Requests of the window.
    pub census: Census,
    /// Answers as expected from the first request of the repetition to the last, warm-up and drain included.
    pub acknowledged: u64,
    /// Requests of the whole repetition whose outcome is unknown (timed out, connection lost, unanswered at the end): they may have taken effect.
    pub unknown: u64,
    /// Answers of the warm-up that were not as expected.
    pub warm_up_failed: u64,
    /// Failures of the window by reason: `status 502`, `body: $.id is 7, expected 9` (values left out), `connection reset` …
    pub failures: BTreeMap<String, u64>,
    /// The first few wrong answers, as evidence: status line and the start of the body.
    pub evidence: Vec<String>,
    /// Request sent → last byte, expected answers only, ns.
    pub service: Histogram,
    /// Request sent → first byte, expected answers only, ns.
    pub ttfb: Histogram,
    /// Due → last byte, open loop only, ns: expected answers, and with their age (a floor) what timed out, was left
    /// unanswered or was never sent. Its count is `ok + timed-out + unanswered + unsent`.
    pub corrected: Option<Histogram>,
    /// Due → sent, open loop only, ns.
    pub send_lag: Option<Histogram>,
    /// The later of due and a connection being free → sent, open loop only, ns: the part of the send lag that is the
    /// generator's own. The rest is waiting for the target to give a connection back.
    #[serde(default)]
    pub own_lag: Option<Histogram>,
    /// Connection begun → its request's first bytes written, ns, where each request has a connection of its own: the part of
    /// `service` and `ttfb` that is connecting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<Histogram>,
    /// Expected answers by the slice of the window in which they ended, whenever their request was due or sent. In a closed
    /// loop they add up to `ok`.
    #[serde(default)]
    pub progress: Vec<u64>,
    /// Request sent → last byte of answers that were not as expected, ns.
    pub failed: Histogram,
}

/// Where every request of the window went.
///
/// Open loop: `due = ok + failed + timed_out + unanswered + unsent`, requests counted by the window their slot is in.
/// Closed loop: `carried_in + sent = ok + failed + timed_out + unanswered + carried_out`, answers counted by the window they end in;
/// `carried_in`/`carried_out` were in flight at the window's start and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Census {
    /// Open loop: slots of the window. Closed loop: 0.
    pub due: u64,
    /// Requests sent.
    pub sent: u64,
    /// Closed loop: in flight when the window began.
    pub carried_in: u64,
    /// Answers as expected.
    pub ok: u64,
    /// Answers that were not as expected, and connection failures.
    pub failed: u64,
    /// No answer within the time-out.
    pub timed_out: u64,
    /// No answer when the grace time ended.
    pub unanswered: u64,
    /// Closed loop: in flight when the window ended, and answered or not afterwards.
    pub carried_out: u64,
    /// Open loop: slots that were never sent.
    pub unsent: u64,
}

impl Census {
    /// Whether every request is accounted for.
    pub fn is_conserved(&self, open_loop: bool) -> bool {
        if open_loop {
            self.due == self.ok + self.failed + self.timed_out + self.unanswered + self.unsent
        } else {
            self.carried_in + self.sent == self.ok + self.failed + self.timed_out + self.unanswered + self.carried_out
        }
    }
}

/// A histogram of nanoseconds, kept whole: exact count, sum, smallest and largest, and log-linear buckets.
///
/// Bucket `i` holds values whose [`Histogram::index`] is `i`: exact below 128, then 128 sub-buckets per power of two
/// (relative error below 1/128).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Histogram {
    /// Values recorded.
    pub count: u64,
    /// Their sum, ns.
    pub sum_ns: u128,
    /// Smallest, ns; 0 when empty.
    pub min_ns: u64,
    /// Largest, ns; 0 when empty.
    pub max_ns: u64,
    /// Pairs of bucket index and count, ascending, no zero counts.
    pub buckets: Vec<(u32, u64)>,
}

impl Histogram {
    /// Bits of a sub-bucket's resolution.
    pub const SUB_BUCKET_BITS: u32 = 7;

    /// The bucket of a value.
    pub const fn index(value_ns: u64) -> u32 {
        let sub = 1u64 << Self::SUB_BUCKET_BITS;
        if value_ns < sub {
            return value_ns as u32;
        }
        let exponent = 63 - value_ns.leading_zeros();
        let shift = exponent - Self::SUB_BUCKET_BITS;
        ((shift + 1) << Self::SUB_BUCKET_BITS) + ((value_ns >> shift) as u32 & (sub as u32 - 1))
    }

    /// Smallest and largest value of a bucket, both included.
    pub const fn bounds(index: u32) -> (u64, u64) {
        let sub = 1u32 << Self::SUB_BUCKET_BITS;
        if index < sub {
            return (index as u64, index as u64);
        }
        let shift = (index >> Self::SUB_BUCKET_BITS) - 1;
        let low = ((sub + (index & (sub - 1))) as u64) << shift;
        (low, low + ((1u64 << shift) - 1))
    }

    /// The histogram of these values.
    pub fn of(values_ns: impl IntoIterator<Item = u64>) -> Self {
        Self::counted(values_ns.into_iter().map(|value| (value, 1)))
    }

    /// The histogram of these values, each with the number of times it occurred.
    pub fn counted(values_ns: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut counts = BTreeMap::<u32, u64>::new();
        let mut histogram = Self::default();
        for (value, times) in values_ns.into_iter().filter(|(_, times)| *times > 0) {
            histogram.min_ns = if histogram.count == 0 { value } else { histogram.min_ns.min(value) };
            histogram.max_ns = histogram.max_ns.max(value);
            histogram.count += times;
            histogram.sum_ns += u128::from(value) * u128::from(times);
            *counts.entry(Self::index(value)).or_default() += times;
        }
        histogram.buckets = counts.into_iter().collect();
        histogram
    }

    /// Adds another histogram's values. This, and not averaging percentiles, is how several streams or hosts are joined.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        let mut counts: BTreeMap<u32, u64> = self.buckets.iter().copied().collect();
        for &(index, count) in &other.buckets {
            *counts.entry(index).or_default() += count;
        }
        self.buckets = counts.into_iter().collect();
    }

    /// The value below or at which a share `q` (0–1) of the values lies: the upper bound of the bucket of the
    /// ⌈q·n⌉-th smallest value, never above the largest. `None` when empty.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        for &(index, count) in &self.buckets {
            seen += count;
            if seen >= rank {
                return Some(Self::bounds(index).1.min(self.max_ns));
            }
        }
        Some(self.max_ns)
    }

    /// The exact mean, ns. `None` when empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }
}

/// One of several generators that sent a load together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PartFacts {
    /// Where it ran: `process`, `container`, or the Docker Engine's address.
    pub place: String,
    /// Its host's name, as it says.
    pub host: String,
    /// CPUs that it could use, as it says.
    pub cpus: String,
    /// Its connections.
    pub connections: u32,
    /// Its expected answers.
    pub ok: u64,
    /// Its CPU time in the window, ns.
    pub cpu_ns: Option<u64>,
    /// Its threads.
    pub threads: u32,
    /// Its CLOCK_MONOTONIC less the controller's, ns; 0 where they are one clock.
    pub clock_offset_ns: i64,
    /// By how much that may be wrong either way, ns; 0 where they are one clock.
    pub clock_uncertainty_ns: u64,
}

/// The generator's own state across the window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GeneratorFacts {
    /// Its CPU time in the window, ns; `None` where it could not be read.
    pub cpu_ns: Option<u64>,
    /// Part of it in user space, ns.
    pub user_ns: Option<u64>,
    /// Threads that generate.
    pub threads: u32,
    /// Times that its loop was away for more than 1 ms without waiting.
    pub stalls: Vec<Stall>,
    /// Involuntary context switches in the window.
    pub involuntary_switches: Option<u64>,
    /// Most slots that were due and not yet sent at one time.
    pub max_backlog: u64,
    /// Each thread by itself.
    #[serde(default)]
    pub by_thread: Vec<ThreadFacts>,
    /// How long answers waited to be read; `None` where no answer was timed.
    #[serde(default)]
    pub receive: Option<ReceiveFacts>,
    /// Time that the hypervisor took from the generator's CPUs (all CPUs where it is not pinned), ns; `None` where the host doesn't tell.
    #[serde(default)]
    pub steal_ns: Option<u64>,
}

impl GeneratorFacts {
    /// Utilisation of the busiest thread, 0–1: (CPU time − polling) ÷ window. `None` where a thread's CPU time could not be read,
    /// or nothing is known of any thread.
    pub fn busiest(&self, window_ns: u64) -> Option<f64> {
        if window_ns == 0 {
            return None;
        }
        let of =
            |thread: &ThreadFacts| Some(thread.cpu_ns?.saturating_sub(thread.polling_ns) as f64 / window_ns as f64);
        let threads = self.by_thread.iter().map(of).collect::<Option<Vec<f64>>>()?;
        threads.into_iter().reduce(f64::max)
    }
}

/// One generating thread across the window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ThreadFacts {
    /// The CPU that it was pinned to.
    pub cpu: Option<u32>,
    /// Its CPU time, ns; `None` where it could not be read.
    pub cpu_ns: Option<u64>,
    /// Time in which it polled and found nothing to do, ns. It counts as CPU time and is none that the load needed: an open loop polls
    /// shortly before each slot.
    pub polling_ns: u64,
    /// Times that it was taken off its CPU though it could run.
    pub involuntary_switches: Option<u64>,
}

/// How long answers waited in the kernel until the generator read them, by the kernel's receive timestamps (SO_TIMESTAMPNS): the part
/// of the service time that is the generator's own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReceiveFacts {
    /// Connections whose answers were timed.
    pub connections: u32,
    /// Arrival at the kernel → read, of the last piece of each expected answer on these connections, ns.
    pub queue: Histogram,
    /// Request sent → last byte of the same answers, ns.
    pub service: Histogram,
}

impl ReceiveFacts {
    /// Median of the queue ÷ median of the service time of the same answers; `None` where nothing was timed.
    pub fn share_of_service(&self) -> Option<f64> {
        let service = self.service.quantile_ns(0.5).filter(|ns| *ns > 0)?;
        Some(self.queue.quantile_ns(0.5)? as f64 / service as f64)
    }
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
    fn buckets_cover_every_value_once() {
        let mut expected = 0u64;
        for index in 0..4_000 {
            let (low, high) = Histogram::bounds(index);
            assert_eq!(low, expected, "bucket {index}");
            assert_eq!((Histogram::index(low), Histogram::index(high)), (index, index));
            assert!((high - low) as f64 <= low as f64 / 128.0);
            expected = high + 1;
        }
        assert!(Histogram::index(u64::MAX) < 8_192);
    }

    #[test]
    fn quantiles_are_of_the_merged_values() {
        let mut left = Histogram::of((0..990).map(|_| 1_000));
        let right = Histogram::of((0..10).map(|_| 1_000_000));
        assert_eq!(left.quantile_ns(0.99), Some(1_000));
        left.merge(&right);
        assert_eq!((left.count, left.min_ns, left.max_ns), (1_000, 1_000, 1_000_000));
        assert_eq!(left.quantile_ns(0.5), Some(1_003.min(Histogram::bounds(Histogram::index(1_000)).1)));
        assert_eq!(left.quantile_ns(0.999), Some(1_000_000));
        assert_eq!(left.mean_ns(), Some(10_990.0));
        assert_eq!(Histogram::default().quantile_ns(0.5), None);
    }

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
    fn a_census_notices_a_lost_request() {
        let mut open = Census { due: 10, sent: 9, ok: 8, failed: 1, unsent: 1, ..Census::default() };
        assert!(open.is_conserved(true));
        open.ok = 7;
        assert!(!open.is_conserved(true));
        let mut closed = Census { sent: 9, carried_in: 2, ok: 9, carried_out: 2, ..Census::default() };
        assert!(closed.is_conserved(false));
        closed.sent = 8;
        assert!(!closed.is_conserved(false));
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
