//! Pace: how fast a CPU ran, witnessed by a fixed piece of work that is timed again and again inside the window.
//!
//! Quiet time: the 10th percentile of a run's samples. Samples are bimodal (the core's other hardware thread rests, or
//! works for somebody else), so the percentile stays within 2 % as long as a tenth of the moments are quiet. Pace of a window:
//! quiet time ÷ mean of its samples, each capped at 3 × the quiet time, since a preempted sample must not count double.
//! Quiet share: share of the samples within 15 % of the quiet time.

use crate::sample::finite;

/// Which quantile of a run's samples is the quiet time.
pub const QUIET_QUANTILE: f64 = 0.10;
/// A sample counts at most this many quiet times.
pub const CAP: f64 = 3.0;
/// A sample up to this many quiet times is a quiet one.
pub const QUIET_WITHIN: f64 = 1.15;
/// Fewer samples say nothing of a run.
pub const LEAST_SAMPLES_OF_A_RUN: u64 = 100;
/// Fewer samples say nothing of a window.
pub const LEAST_SAMPLES_OF_A_WINDOW: u64 = 30;

/// Samples of the witness as pairs of value (ns; the midpoint of a histogram's bucket) and count, ascending by value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Witness {
    samples: Vec<(f64, u64)>,
    count: u64,
}

/// How fast a CPU ran in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Quiet time ÷ capped mean. Slightly above 1 where the window was quieter than the run's 10th percentile.
    pub pace: f64,
    /// Share of the samples ≤ 1.15 × the quiet time, 0–1.
    pub quiet_share: f64,
    /// Mean of the capped samples, ns.
    pub capped_mean: f64,
    /// Quiet time ÷ capped mean of the samples that were not quiet: the speed to which the CPU was slowed in these moments.
    /// 1 where every sample was quiet.
    pub slowed_to: f64,
    /// Samples in the window.
    pub samples: u64,
}

/// Why a run gives no quiet time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoQuietTime {
    /// Fewer samples than [`LEAST_SAMPLES_OF_A_RUN`].
    TooFewSamples {
        /// How many there are.
        samples: u64,
    },
    /// The 10th percentile lies more than 15 % above the 1st: fewer than a tenth of the moments were quiet.
    NoQuietMoments {
        /// The 10th percentile, ns.
        tenth: f64,
        /// The 1st percentile, ns.
        first: f64,
    },
}

impl Witness {
    /// The witness of these samples; pairs that are no positive finite time or have no count are left out.
    pub fn new(samples: impl IntoIterator<Item = (f64, u64)>) -> Self {
        let mut samples: Vec<(f64, u64)> =
            samples.into_iter().filter(|&(value, count)| value.is_finite() && value > 0.0 && count > 0).collect();
        samples.sort_by(|left, right| left.0.total_cmp(&right.0));
        let count = samples.iter().fold(0u64, |sum, &(_, count)| sum.saturating_add(count));
        Self { samples, count }
    }

    /// How many samples there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The value of the ⌈q·n⌉-th smallest sample.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if !(0.0..=1.0).contains(&q) {
            return None;
        }
        let rank = ((q * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0u64;
        self.samples.iter().find_map(|&(value, count)| {
            seen = seen.saturating_add(count);
            (seen >= rank).then_some(value)
        })
    }

    /// The quiet time of a run whose samples these are, ns.
    ///
    /// # Errors
    /// When there are too few samples, or when so few moments were quiet that the 10th percentile is not one of them.
    pub fn quiet_time(&self) -> Result<f64, NoQuietTime> {
        let (Some(tenth), Some(first)) = (self.quantile(QUIET_QUANTILE), self.quantile(0.01)) else {
            return Err(NoQuietTime::TooFewSamples { samples: self.count });
        };
        if self.count < LEAST_SAMPLES_OF_A_RUN {
            return Err(NoQuietTime::TooFewSamples { samples: self.count });
        }
        if tenth > QUIET_WITHIN * first {
            return Err(NoQuietTime::NoQuietMoments { tenth, first });
        }
        Ok(tenth)
    }

    /// The pace of a window whose samples these are. `None` for fewer than [`LEAST_SAMPLES_OF_A_WINDOW`] samples.
    pub fn pace(&self, quiet: f64) -> Option<Pace> {
        if self.count < LEAST_SAMPLES_OF_A_WINDOW || !quiet.is_finite() || quiet <= 0.0 {
            return None;
        }
        let (mut sum, mut slowed, mut quiet_ones) = (0.0, 0.0, 0u64);
        for &(value, count) in &self.samples {
            let time = value.min(CAP * quiet) * count as f64;
            sum += time;
            if value <= QUIET_WITHIN * quiet {
                quiet_ones = quiet_ones.saturating_add(count);
            } else {
                slowed += time;
            }
        }
        let slowed_ones = self.count.saturating_sub(quiet_ones) as f64;
        let capped_mean = finite(sum / self.count as f64)?;
        Some(Pace {
            pace: finite(quiet / capped_mean)?,
            quiet_share: quiet_ones as f64 / self.count as f64,
            capped_mean,
            slowed_to: if slowed > 0.0 { finite(quiet * slowed_ones / slowed)? } else { 1.0 },
            samples: self.count,
        })
    }
}

/// CPU per request at quiet pace: demand × pace × (1 − steal share). No fitted number.
pub fn paced_demand(demand: f64, pace: f64, steal_share: f64) -> Option<f64> {
    finite(demand * pace * (1.0 - steal_share)).filter(|demand| *demand >= 0.0)
}

/// A rate at quiet pace: rate ÷ pace ÷ (1 − steal share).
pub fn paced_rate(rate: f64, pace: f64, steal_share: f64) -> Option<f64> {
    finite(rate / pace / (1.0 - steal_share)).filter(|rate| *rate >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_window_has_pace_one() {
        let quiet = Witness::new([(17_000.0, 950), (28_000.0, 50)]);
        let time = quiet.quiet_time().expect("quiet");
        assert_eq!(time, 17_000.0);
        let pace = quiet.pace(time).expect("a pace");
        assert!(pace.pace > 0.96 && pace.quiet_share == 0.95, "{pace:?}");
    }

    #[test]
    fn a_neighbour_is_seen_and_a_preempted_sample_is_capped() {
        let run = Witness::new([(17_000.0, 400), (28_000.0, 600)]);
        let time = run.quiet_time().expect("quiet");
        let slowed = Witness::new([(17_000.0, 27), (28_000.0, 73)]).pace(time).expect("a pace");
        assert!((slowed.pace - 0.679).abs() < 0.01 && slowed.quiet_share == 0.27, "{slowed:?}");
        assert!((slowed.slowed_to - 17.0 / 28.0).abs() < 1e-9, "{slowed:?}");
        let preempted = Witness::new([(17_000.0, 99), (9e6, 1)]).pace(time).expect("a pace");
        assert!(preempted.pace > 0.97, "{preempted:?}");
    }

    #[test]
    fn a_run_without_quiet_moments_says_so() {
        assert_eq!(
            Witness::new([(17_000.0, 50), (28_000.0, 950)]).quiet_time(),
            Err(NoQuietTime::NoQuietMoments { tenth: 28_000.0, first: 17_000.0 })
        );
        assert_eq!(Witness::new([(1.0, 5)]).quiet_time(), Err(NoQuietTime::TooFewSamples { samples: 5 }));
        assert_eq!(Witness::new([]).quiet_time(), Err(NoQuietTime::TooFewSamples { samples: 0 }));
        assert_eq!(Witness::new([(f64::NAN, 500), (-1.0, 5), (17.0, 29)]).pace(17.0), None);
        assert_eq!(Witness::new([(17.0, 500)]).pace(0.0), None);
    }

    #[test]
    fn paced_figures() {
        assert_eq!(paced_demand(150.0, 0.6, 0.1).map(f64::round), Some(81.0));
        assert_eq!(paced_rate(54.0, 0.6, 0.1).map(f64::round), Some(100.0));
        assert_eq!(paced_rate(1.0, 0.5, 1.0), None);
        assert_eq!(paced_demand(f64::NAN, 0.5, 0.0), None);
    }
}
