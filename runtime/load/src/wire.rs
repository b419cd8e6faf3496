//! What controller and generator say to each other: one JSON object per line, orders on the generator's standard input,
//! answers on its standard output.
//!
//! A job goes: [`Order::Job`] → [`Answer::Ready`] (all connections are open) → [`Order::Start`] → [`Answer::Interval`]s where
//! they were asked for → [`Answer::Finished`] or [`Answer::Failed`]. Then the next job may follow. The end of the input, or
//! [`Order::Stop`], ends a job at once; [`Order::Cut`] ends its window early.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use journal::facts::{LoadFacts, StreamFacts};
pub use plan::Arrivals;
use plan::{CpuSet, Leg, Protocol, Tls, Workload};
use serde::{Deserialize, Serialize};

/// Version of orders and answers. It grows when either side could misunderstand the other; a generator refuses any
/// other version than its own.
pub const PROTOCOL: u32 = 1;

/// One repetition's load, complete: the generator asks nobody anything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Job {
    /// Where requests are sent.
    pub target: SocketAddr,
    /// Value of the `Host` header.
    pub host: String,
    /// The traffic.
    pub workload: Workload,
    /// Bearer values by token name.
    pub tokens: BTreeMap<String, String>,
    /// Values of the variables that are constant for this job: factors, credentials …
    pub variables: BTreeMap<String, String>,
    /// Connections, opened before the start and shared out over the threads.
    pub connections: u32,
    /// Whether connections are kept. Otherwise each request has one of its own, at most `connections` at a time, opened when
    /// the request is sent and counted as part of it.
    #[serde(default = "kept")]
    pub keep_alive: bool,
    /// Requests per second of the open loop; `None`: closed loop, each connection sends its next request on an answer. Where
    /// the rate is not constant, its mean over the window; where the streams have rates of their own, the sum of them.
    pub rate: Option<f64>,
    /// How the open loop's rate goes over the window; together as long as it. Empty: it is constant. The warm-up has the rate
    /// that the window begins with.
    #[serde(default)]
    pub course: Vec<Leg>,
    /// How the slots of an open loop are spread in time.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Load before the window, ns.
    pub warm_up_ns: u64,
    /// The window, ns.
    pub window_ns: u64,
    /// An answer that takes longer than this from its request has timed out, ns.
    pub timeout_ns: u64,
    /// Time after the window for what is still waiting or in flight, ns.
    pub grace_ns: u64,
    /// Threads that generate; never more than there are connections.
    pub threads: u32,
    /// CPUs that the threads are pinned to, round robin; empty: not pinned.
    pub cpus: CpuSet,
    /// Whether the kernel notes the arrival of answers on every connection, and not on a sample of them only.
    #[serde(default)]
    pub kernel_time: bool,
    /// Seed of the parameters, of the order of streams and of random arrivals.
    pub seed: u64,
    /// Where this generator is one of several with the same job: its place among them. `None`: it sends all of the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Closed loop: ends when this many requests have ended, all generators together; the window is then the longest that
    /// it may take. Needs a job without warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// How the requests travel.
    #[serde(default, skip_serializing_if = "Transport::is_plain")]
    pub transport: Transport,
    /// What sends plain HTTP/1.1.
    #[serde(default, skip_serializing_if = "Engine::is_default")]
    pub engine: Engine,
}

/// What sends plain HTTP/1.1 straight to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// Each send is a system call of its own, made at its stamp.
    #[default]
    Epoll,
    /// Sends are handed to io_uring in batches: fewer system calls, and a request leaves up to a batch later than its stamp. A closed
    /// loop over kept connections only.
    Uring,
}

impl Engine {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The part of a job that one of several generators sends: some of its threads. Connections, slots and the values of
/// parameters are shared out over all threads of all generators, so that they send one schedule together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Part {
    /// This generator's first thread among all of them; it has [`Job::threads`] of them.
    pub first: u32,
    /// Threads of all generators.
    pub of: u32,
}

/// How requests travel. Plain HTTP/1.1 straight to the target is sent by the engine on epoll; anything else by the layered
/// one, on hyper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Transport {
    /// The protocol on each connection.
    pub protocol: Protocol,
    /// Requests in flight at one time on each connection; 1 for HTTP/1.1.
    pub in_flight: u32,
    /// TLS to the target.
    pub tls: Option<Tls>,
    /// An HTTP proxy: requests in the clear go to it in absolute form, TLS and HTTP/2 through a tunnel (CONNECT).
    pub proxy: Option<SocketAddr>,
}

impl Default for Transport {
    fn default() -> Self {
        Self { protocol: Protocol::Http1, in_flight: 1, tls: None, proxy: None }
    }
}

impl Transport {
    /// Whether the engine on epoll can send it.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

impl Job {
    /// First instant of the window for a job that starts at `at_ns`.
    pub fn window_start_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_add(self.warm_up_ns)
    }

    /// First instant after the window for a job that starts at `at_ns`.
    pub fn window_end_ns(&self, at_ns: u64) -> u64 {
        self.window_start_ns(at_ns).saturating_add(self.window_ns)
    }
}

fn kept() -> bool {
    true
}

/// Who a generator is. What it measures in is its CLOCK_MONOTONIC, which all processes of a machine share.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The version of `exp`.
    pub version: String,
    /// The host's name.
    pub host: String,
    /// CPUs that the process may use; empty where they can't be read.
    pub cpus: CpuSet,
    /// The kernel's boot id, which names the clock: equal ids, one clock. Empty where it can't be read.
    pub clock: String,
}

/// Two clocks of a generator, read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Clocks {
    /// CLOCK_MONOTONIC, ns.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME, ns since 1970.
    pub wall_ns: u64,
}

/// What a generator recorded between two instants of its own clock. The intervals of a job add up to its account.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Interval {
    /// From 0.
    pub number: u64,
    /// First instant, on its CLOCK_MONOTONIC.
    pub from_ns: u64,
    /// First instant after it. What its threads entered until they looked at the clock after this instant is included.
    pub to_ns: u64,
    /// What each stream added, in the workload's order. `progress` is left out.
    pub streams: Vec<StreamFacts>,
}

/// Controller → generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Who are you? Answered by [`Answer::Hello`], or refused where the version is another.
    Hello {
        /// The controller's [`PROTOCOL`].
        protocol: u32,
    },
    /// What do your clocks say? Answered at once by [`Answer::Clocks`].
    Clocks,
    /// Prepare this job: check it, open the connections, answer [`Answer::Ready`].
    Job(Box<Job>),
    /// Start the prepared job at this instant of CLOCK_MONOTONIC, ns. The window is
    /// [at + warm-up, at + warm-up + window).
    Start {
        /// The instant, ns.
        #[serde(rename = "at-ns")]
        at_ns: u64,
        /// Answer with an [`Answer::Interval`] each time that this much of the window has passed, ns; 0: never.
        #[serde(rename = "every-ns", default, skip_serializing_if = "is_zero")]
        every_ns: u64,
    },
    /// End the window at this instant of CLOCK_MONOTONIC, which lies at least 100 ms ahead: what is under way is drained for at
    /// most a second, and the job gives its account of the window as far as it went.
    Cut {
        /// The instant, ns.
        #[serde(rename = "at-ns")]
        at_ns: u64,
    },
    /// End the job at once; it then answers [`Answer::Failed`].
    Stop,
}

/// Generator → controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Who it is.
    Hello(Hello),
    /// What its clocks say.
    Clocks(Clocks),
    /// The job is prepared.
    Ready {
        /// Connections that are open: as many as were asked for.
        connected: u32,
    },
    /// An interval of the running job.
    Interval(Box<Interval>),
    /// The job ran to its end.
    Finished {
        /// What was recorded.
        facts: Box<LoadFacts>,
    },
    /// The job could not be prepared or did not run to its end.
    Failed {
        /// What happened and what to do next.
        why: String,
    },
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_answers_are_single_lines_that_read_back() {
        let job = Job {
            target: "127.0.0.1:8080".parse().expect("an address"),
            host: "127.0.0.1:8080".into(),
            workload: Workload { name: "mixed".into(), streams: Vec::new() },
            tokens: BTreeMap::new(),
            variables: BTreeMap::new(),
            connections: 64,
            keep_alive: true,
            rate: Some(5_000.0),
            course: vec![Leg { from: 4_000.0, to: 6_000.0, for_ns: 2 }],
            arrivals: Arrivals::Constant,
            warm_up_ns: 1,
            window_ns: 2,
            timeout_ns: 3,
            grace_ns: 4,
            threads: 1,
            cpus: CpuSet::new([1]),
            kernel_time: false,
            seed: 7,
            part: Some(Part { first: 1, of: 2 }),
            requests: None,
            transport: Transport::default(),
            engine: Engine::default(),
        };
        for order in [
            Order::Hello { protocol: PROTOCOL },
            Order::Clocks,
            Order::Job(Box::new(job)),
            Order::Start { at_ns: u64::MAX, every_ns: 0 },
            Order::Start { at_ns: 1, every_ns: 2 },
            Order::Cut { at_ns: 3 },
            Order::Stop,
        ] {
            let line = serde_json::to_string(&order).expect("JSON");
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Order>(&line).expect("an order"), order);
        }
        for answer in [
            Answer::Hello(Hello::default()),
            Answer::Clocks(Clocks::default()),
            Answer::Ready { connected: 64 },
            Answer::Interval(Box::default()),
            Answer::Finished { facts: Box::default() },
            Answer::Failed { why: "refused\nhere".into() },
        ] {
            let line = serde_json::to_string(&answer).expect("JSON");
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Answer>(&line).expect("an answer"), answer);
        }
        assert_eq!(
            serde_json::to_string(&Order::Start { at_ns: 5, every_ns: 0 }).expect("JSON"),
            r#"{"start":{"at-ns":5}}"#,
            "keys are kebab-case"
        );
    }
}
