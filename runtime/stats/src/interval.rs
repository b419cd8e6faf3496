//! Intervals of a median and of a mean.

use crate::beta::{binomial_at_most, t_quantile};
use crate::sample::{mean, sorted, standard_deviation};

/// An interval with the coverage that it really has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability that it covers, 0–1.
    pub coverage: f64,
}

/// Interval of the median by order statistics, without any assumption on the distribution: the narrowest symmetric pair of
/// ranks (r, n + 1 − r) that covers at least `wanted`, with coverage 1 − 2·P(X ≤ r − 1), X ~ binomial(n, ½).
///
/// `None` where even smallest to largest covers less: five values cover 93.75 %, so 95 % needs six.
pub fn median_interval(values: &[f64], wanted: f64) -> Option<Interval> {
    let sorted = sorted(values)?;
    let n = sorted.len();
    let coverage = |rank: usize| Some(1.0 - 2.0 * binomial_at_most(rank as u64 - 1, n as u64, 0.5)?);
    let rank = (1..=n / 2).take_while(|&rank| coverage(rank).is_some_and(|covers| covers >= wanted)).last()?;
    Some(Interval { low: sorted[rank - 1], high: sorted[n - rank], coverage: coverage(rank)? })
}

/// Interval of the mean by Student's t: mean ± t·s/√n. `None` for fewer than two values.
pub fn mean_interval(values: &[f64], coverage: f64) -> Option<Interval> {
    let half = t_quantile(coverage, values.len().checked_sub(1)?)? * standard_deviation(values)?
        / (values.len() as f64).sqrt();
    let mean = mean(values)?;
    Some(Interval { low: mean - half, high: mean + half, coverage })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up_to(n: u32) -> Vec<f64> {
        (1..=n).map(f64::from).collect()
    }

    #[test]
    fn five_values_never_give_95_percent() {
        assert_eq!(median_interval(&up_to(5), 0.95), None);
        let six = median_interval(&up_to(6), 0.95).expect("six values");
        assert_eq!((six.low, six.high), (1.0, 6.0));
        assert!((six.coverage - 0.968_75).abs() < 1e-9);
        let five = median_interval(&up_to(5), 0.9).expect("90 %");
        assert!((five.coverage - 0.9375).abs() < 1e-9);
    }

    #[test]
    fn ranks_of_the_tables() {
        // Ranks as in Conover, Practical Nonparametric Statistics, table of the binomial with p = ½.
        for (n, low, high) in [(8, 1.0, 8.0), (9, 2.0, 8.0), (12, 3.0, 10.0), (20, 6.0, 15.0), (30, 10.0, 21.0)] {
            let interval = median_interval(&up_to(n), 0.95).expect("enough values");
            assert_eq!((interval.low, interval.high), (low, high), "n = {n}");
            assert!(interval.coverage >= 0.95);
        }
    }

    #[test]
    fn mean_by_t() {
        let interval = mean_interval(&[9.0, 10.0, 11.0, 10.0, 10.0], 0.95).expect("five values");
        assert!((interval.low - (10.0 - 2.776_445 * 0.5f64.sqrt() / 5f64.sqrt())).abs() < 1e-5, "{interval:?}");
        assert_eq!(mean_interval(&[1.0], 0.95), None);
        assert_eq!(mean_interval(&[], 0.95), None);
        assert_eq!(median_interval(&[f64::NAN; 9], 0.95), None);
    }
}
