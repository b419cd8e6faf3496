//! Histograms of nanoseconds, kept whole and merged as histograms.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
}
