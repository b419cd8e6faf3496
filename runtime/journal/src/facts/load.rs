//! The generator's account of one repetition: where every request went, how long answers took, its own state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Histogram, Stall};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
