//! Plain figures of a sample: mean, median, quantile, spread, variation, the best with what stands beside it.

/// The values in ascending order, or `None` when there is none or one is not finite.
pub(crate) fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

/// What is finite, or nothing.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Arithmetic mean. `None` when empty or not finite.
pub fn mean(values: &[f64]) -> Option<f64> {
    sorted(values)?;
    finite(values.iter().sum::<f64>() / values.len() as f64)
}

/// The middle value; the mean of the two middle ones for an even number.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values)?;
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { Some(sorted[middle]) } else { finite(f64::midpoint(sorted[middle - 1], sorted[middle])) }
}

/// The `q`-quantile (0–1) with linear interpolation between order statistics: position q·(n − 1), as R's type 7 and NumPy.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let sorted = sorted(values)?;
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    let position = q * (sorted.len() - 1) as f64;
    let low = position.floor() as usize;
    let high = (low + 1).min(sorted.len() - 1);
    finite(sorted[low] + (sorted[high] - sorted[low]) * (position - low as f64))
}

/// Sample standard deviation, n − 1 in the denominator. `None` for fewer than two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    finite((squares / (values.len() - 1) as f64).sqrt())
}

/// Standard deviation ÷ mean, as a ratio; n in the denominator, as in [`crate::Regression::residual_variation`], so that the two compare.
pub fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    finite(standard_deviation(values)? * ((n - 1.0) / n).sqrt() / mean(values)?)
}

/// (largest − smallest) ÷ median, as a ratio.
pub fn spread(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values)?;
    finite((sorted[sorted.len() - 1] - sorted[0]) / median(values)?)
}

/// The best of a sample, with what has to stand beside it: the largest alone says nothing of its own uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Best {
    /// The largest value.
    pub value: f64,
    /// Its place among the given values; the first of equals.
    pub index: usize,
    /// (best − second) ÷ best, as a ratio; `None` for a single value. Above 0.02 the maximum was not reproduced.
    pub gap: Option<f64>,
    /// The median of all.
    pub median: f64,
    /// (largest − smallest) ÷ median, as a ratio.
    pub spread: Option<f64>,
}

/// The largest of the values.
pub fn best(values: &[f64]) -> Option<Best> {
    let sorted = sorted(values)?;
    let value = sorted[sorted.len() - 1];
    Some(Best {
        value,
        index: values.iter().position(|candidate| *candidate == value)?,
        gap: sorted.len().checked_sub(2).and_then(|second| finite((value - sorted[second]) / value)),
        median: median(values)?,
        spread: spread(values),
    })
}

/// Whether more than half of the votes are yes. `None` without votes.
pub fn majority(yes: usize, of: usize) -> Option<bool> {
    (of > 0 && yes <= of).then_some(yes * 2 > of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_small_samples() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.1), Some(1.4));
        assert_eq!(quantile(&[7.0], 0.9), Some(7.0));
        assert_eq!(
            standard_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).map(|s| (s * 1e6).round()),
            Some(2_138_090.0)
        );
        assert_eq!(spread(&[90.0, 100.0, 110.0]), Some(0.2));
        let best = best(&[98.0, 100.0, 99.0]).expect("three values");
        assert_eq!((best.value, best.index, best.gap, best.median), (100.0, 1, Some(0.01), 99.0));
    }

    #[test]
    fn what_has_no_value_is_none() {
        for values in [&[][..], &[f64::NAN, 1.0], &[f64::INFINITY]] {
            assert_eq!(mean(values), None);
            assert_eq!(median(values), None);
            assert_eq!(quantile(values, 0.5), None);
            assert_eq!(best(values), None);
            assert_eq!(spread(values), None);
        }
        assert_eq!(quantile(&[1.0], 1.5), None);
        assert_eq!(standard_deviation(&[1.0]), None);
        assert_eq!(coefficient_of_variation(&[0.0, 0.0]), None);
        assert_eq!(best(&[1.0]).and_then(|best| best.gap), None);
    }

    #[test]
    fn a_majority_is_more_than_half() {
        assert_eq!(
            [majority(3, 5), majority(2, 4), majority(0, 0), majority(2, 1)],
            [Some(true), Some(false), None, None]
        );
    }
}
