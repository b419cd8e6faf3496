//! Gates: checks that void one repetition. Every threshold is in the plan, so the report can print it.

use serde::{Deserialize, Serialize};

use crate::phase::MetricRef;

/// A check of one repetition. Missing data always fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// Every answer as expected, every request accounted for, the generator ended well.
    Census,
    /// Every counter was read at the window's start and its end.
    Counters,
    /// Rows added = writes acknowledged.
    Rows,
    /// A no-op server on the candidate's CPUs delivered `at` × the rate finally measured.
    GeneratorProbe {
        /// Ratio, such as 1.15.
        at: f64,
        /// What the probe's rate is set from before the repetition.
        of: MetricRef,
    },
    /// The generator was not the bottleneck: its busiest thread had time to spare, and answers did not wait for it to read them.
    GeneratorBottleneck {
        /// Largest accepted utilisation of a thread, 0–1.
        busy: f64,
        /// Largest accepted median of the receive queue, as a share of the median service time, 0–1; one up to
        /// [`Gate::WAKE_UP_NS`] is accepted whatever its share is.
        receive_queue: f64,
    },
    /// CPU per request ≤ (1 + `rise`) × the cell's lowest.
    ServiceDemand {
        /// Ratio, such as 0.06.
        rise: f64,
    },
    /// Cores used ≥ (1 − `drop`) × the cell's highest.
    Saturation {
        /// Ratio, such as 0.05.
        drop: f64,
    },
    /// Every CPU of the candidate was at its quiet pace for this share of the window.
    Pace {
        /// Smallest accepted quiet share, 0–1.
        quiet_share: f64,
    },
    /// Steal of the measured CPUs, as a share of the window.
    Steal {
        /// Largest accepted share, 0–1.
        max: f64,
    },
    /// Time lost to stalls beyond `over_ns`, as a share of the tail that the percentile leaves: Σ max(0, Dᵢ − over) ≤ budget · (1 − q) · window.
    Stalls {
        /// Stalls up to this length are free, in nanoseconds.
        over_ns: u64,
        /// Share of the tail's mass, 0–1.
        budget: f64,
        /// The percentile that is judged, such as 0.99.
        quantile: f64,
    },
    /// Open loop: sends were on schedule and none was left unsent.
    SendLag {
        /// Largest accepted p99 of (sent − due), in nanoseconds.
        p99_ns: u64,
    },
    /// Closed loop, no think time: |X · mean(R) / N − 1| ≤ tolerance.
    LittlesLaw {
        /// Ratio, such as 0.02.
        tolerance: f64,
    },
    /// Each stream's share of the answers, in points off the declared one.
    Mix {
        /// Difference of shares, 0–1, such as 0.01.
        tolerance: f64,
    },
    /// Wall clock, monotonic clock and boot clock advanced alike: no suspend, no jump.
    Clock,
    /// Cores used never exceed the budget by more than `tolerance`: counters and window fit.
    UtilisationLaw {
        /// Ratio, such as 0.02.
        tolerance: f64,
    },
}

impl Gate {
    /// From this utilisation of a thread on, the generator was the bottleneck, unless a gate says otherwise.
    pub const GENERATOR_BUSY: f64 = 0.85;
    /// From this share of the median service time on that answers waited for the generator to read them (median), it was the
    /// bottleneck, unless a gate says otherwise. A queue that is no longer than a wake-up never makes it one.
    pub const RECEIVE_QUEUE: f64 = 0.10;
    /// A thread that sleeps until an answer comes reads it this much later at the most, ns, as a median: a wake-up of an idle CPU takes
    /// 15 to 60 µs, in a virtual machine too. A longer queue is one of answers.
    pub const WAKE_UP_NS: u64 = 100_000;

    /// The gate's name in the language and the report.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Census => "census",
            Self::Counters => "counters",
            Self::Rows => "rows",
            Self::GeneratorProbe { .. } => "generator-probe",
            Self::GeneratorBottleneck { .. } => "generator-bottleneck",
            Self::ServiceDemand { .. } => "service-demand",
            Self::Saturation { .. } => "saturation",
            Self::Pace { .. } => "pace",
            Self::Steal { .. } => "steal",
            Self::Stalls { .. } => "stalls",
            Self::SendLag { .. } => "send-lag",
            Self::LittlesLaw { .. } => "littles-law",
            Self::Mix { .. } => "mix",
            Self::Clock => "clock",
            Self::UtilisationLaw { .. } => "utilisation-law",
        }
    }
}
