//! Histograms for the hot path: one array, 2–4 ns per value, no allocation. The buckets are [`journal::facts::Histogram`]'s.

use journal::facts::Histogram;

/// Buckets that 64-bit values need.
const BUCKETS: usize = Histogram::index(u64::MAX) as usize + 1;

/// Values by bucket, with exact count, sum, smallest and largest.
pub struct Recorder {
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    /// Zeroed pages that no value has touched cost address space only.
    buckets: Box<[u64]>,
}

impl Recorder {
    /// An empty one.
    pub fn new() -> Self {
        Self { count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0, buckets: vec![0; BUCKETS].into_boxed_slice() }
    }

    /// Adds a value.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.count += 1;
        self.sum_ns += u128::from(value_ns);
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
        self.buckets[Histogram::index(value_ns) as usize] += 1;
    }

    /// Adds another's values.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
    }

    /// The same values in the form that is kept.
    pub fn to_histogram(&self) -> Histogram {
        Histogram {
            count: self.count,
            sum_ns: self.sum_ns,
            min_ns: if self.count == 0 { 0 } else { self.min_ns },
            max_ns: self.max_ns,
            buckets: (0u32..)
                .zip(&self.buckets)
                .filter(|(_, count)| **count > 0)
                .map(|(i, count)| (i, *count))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_what_the_kept_form_would_and_merges_by_adding() {
        let values: Vec<u64> =
            (0..64).flat_map(|bit| [1u64 << bit, (1u64 << bit) - 1, (1u64 << bit) + 1]).chain([u64::MAX]).collect();
        let (mut left, mut right, mut all) = (Recorder::new(), Recorder::new(), Recorder::new());
        for (index, value) in values.iter().enumerate() {
            if index % 3 == 0 {
                left.record(*value)
            } else {
                right.record(*value)
            }
            all.record(*value);
        }
        left.merge(&right);
        assert_eq!(left.to_histogram(), all.to_histogram());
        assert_eq!(all.to_histogram(), Histogram::of(values));
        assert_eq!(Recorder::new().to_histogram(), Histogram::default());
        let mut merged = Recorder::new();
        merged.merge(&Recorder::new());
        assert_eq!(merged.to_histogram(), Histogram::default());
    }
}
