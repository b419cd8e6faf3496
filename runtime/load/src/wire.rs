//! What controller and generator say to each other: one JSON object per line, orders on the generator's standard input,
//! answers on its standard output.
//!
//! A job goes: [`Order::Job`] → [`Answer::Ready`] (all connections are open) → [`Order::Start`] → [`Answer::Finished`] or
//! [`Answer::Failed`]. Then the next job may follow. The end of the input, or [`Order::Stop`], ends a job at once.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use journal::facts::LoadFacts;
use plan::{CpuSet, Workload};
use serde::{Deserialize, Serialize};

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
    /// Requests per second of the open loop; `None`: closed loop, each connection sends its next request on an answer.
    pub rate: Option<f64>,
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
    /// Seed of the parameters, of the order of streams and of random arrivals.
    pub seed: u64,
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

/// How the slots of an open loop are spread in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Slot `i` is due at start + i ÷ rate.
    #[default]
    Uniform,
    /// A Poisson process of the same mean rate: exponential gaps, seeded.
    Poisson,
}

/// Controller → generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Prepare this job: check it, open the connections, answer [`Answer::Ready`].
    Job(Box<Job>),
    /// Start the prepared job at this instant of CLOCK_MONOTONIC, ns. The window is
    /// [at + warm-up, at + warm-up + window).
    Start {
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
    /// The job is prepared.
    Ready {
        /// Connections that are open: as many as were asked for.
        connected: u32,
    },
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
            rate: Some(5_000.0),
            arrivals: Arrivals::Uniform,
            warm_up_ns: 1,
            window_ns: 2,
            timeout_ns: 3,
            grace_ns: 4,
            threads: 1,
            cpus: CpuSet::new([1]),
            seed: 7,
        };
        for order in [Order::Job(Box::new(job)), Order::Start { at_ns: u64::MAX }, Order::Stop] {
            let line = serde_json::to_string(&order).expect("JSON");
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Order>(&line).expect("an order"), order);
        }
        for answer in [
            Answer::Ready { connected: 64 },
            Answer::Finished { facts: Box::default() },
            Answer::Failed { why: "refused\nhere".into() },
        ] {
            let line = serde_json::to_string(&answer).expect("JSON");
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Answer>(&line).expect("an answer"), answer);
        }
        assert_eq!(
            serde_json::to_string(&Order::Start { at_ns: 5 }).expect("JSON"),
            r#"{"start":{"at-ns":5}}"#,
            "keys are kebab-case"
        );
    }
}
