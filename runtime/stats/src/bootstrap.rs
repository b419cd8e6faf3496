//! Ratio of two cells with an interval by resampling whole blocks.

use crate::interval::Interval;
use crate::random::Random;
use crate::sample::{mean, quantile};

/// Resamples that are drawn.
pub const RESAMPLES: usize = 2_000;

/// Percentile interval of mean(left) ÷ mean(right), resampling blocks: a block holds both cells measured one after the
/// other, so what drifts between blocks hits both. `blocks` are pairs (left, right).
///
/// `None` for fewer than three blocks, a value that is not finite, or a right mean of 0.
pub fn ratio_interval(blocks: &[(f64, f64)], coverage: f64, seed: u64) -> Option<(f64, Interval)> {
    if blocks.len() < 3 || !(0.0..1.0).contains(&coverage) {
        return None;
    }
    let ratio = |pairs: &[(f64, f64)]| -> Option<f64> {
        let left: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
        let right: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
        crate::sample::finite(mean(&left)? / mean(&right)?)
    };
    let value = ratio(blocks)?;
    let mut random = Random::new(seed);
    let mut ratios = Vec::with_capacity(RESAMPLES);
    let mut drawn = blocks.to_vec();
    for _ in 0..RESAMPLES {
        for pair in &mut drawn {
            *pair = blocks[random.below(blocks.len())];
        }
        ratios.push(ratio(&drawn)?);
    }
    let tail = (1.0 - coverage) / 2.0;
    Some((value, Interval { low: quantile(&ratios, tail)?, high: quantile(&ratios, 1.0 - tail)?, coverage }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_that_hits_both_cancels() {
        let blocks: Vec<(f64, f64)> = (0..8).map(|i| (100.0 + f64::from(i), 50.0 + f64::from(i) / 2.0)).collect();
        let (value, interval) = ratio_interval(&blocks, 0.95, 1).expect("eight blocks");
        assert_eq!((value, interval.low, interval.high), (2.0, 2.0, 2.0));
    }

    #[test]
    fn the_same_seed_gives_the_same_interval_and_covers_the_truth() {
        let mut random = Random::new(3);
        let mut covered = 0;
        for round in 0..200 {
            let blocks: Vec<(f64, f64)> =
                (0..12).map(|_| (1.0 + 0.1 * random.unit(), 1.0 + 0.1 * random.unit())).collect();
            let first = ratio_interval(&blocks, 0.9, round);
            let (_, interval) = first.expect("twelve blocks");
            covered += u32::from(interval.low <= 1.0 && 1.0 <= interval.high);
            if round == 0 {
                assert_eq!(first, ratio_interval(&blocks, 0.9, round));
            }
        }
        assert!((160..=196).contains(&covered), "{covered} of 200");
    }

    #[test]
    fn too_little_is_none() {
        assert_eq!(ratio_interval(&[(1.0, 1.0), (1.0, 1.0)], 0.95, 1), None);
        assert_eq!(ratio_interval(&[(1.0, 0.0); 4], 0.95, 1), None);
        assert_eq!(ratio_interval(&[(f64::NAN, 1.0); 4], 0.95, 1), None);
    }
}
