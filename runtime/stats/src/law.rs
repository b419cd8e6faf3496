//! Laws that hold without any assumption on distributions, and what planning makes of them.

use crate::sample::finite;

/// Little's law of a closed loop without think time: X · mean(R) ÷ N − 1. `rate` in 1/s, `mean_response` in s.
pub fn littles_deviation(rate: f64, mean_response: f64, connections: f64) -> Option<f64> {
    if connections <= 0.0 {
        return None;
    }
    finite(rate * mean_response / connections - 1.0)
}

/// The mean response (s) that N connections at a rate X imply: N ÷ X. A printed percentile below it contradicts itself.
pub fn implied_mean_response(rate: f64, connections: f64) -> Option<f64> {
    if rate <= 0.0 {
        return None;
    }
    finite(connections / rate)
}

/// Utilisation law: X · D − U, in cores. `demand` in s.
pub fn utilisation_deviation(rate: f64, demand: f64, cores_used: f64) -> Option<f64> {
    finite(rate * demand - cores_used)
}

/// Scaling efficiency X(n) ÷ (n · X(1)), the base being one of `base_cores` cores. Above 1 the base was not CPU-bound.
pub fn scaling_efficiency(rate: f64, cores: f64, base_rate: f64, base_cores: f64) -> Option<f64> {
    finite((rate / cores) / (base_rate / base_cores))
}

/// Cores for a target rate by attained utilisation: rate · D ÷ (cores used ÷ cores given). `demand` in s.
pub fn cores_for(target: f64, demand: f64, cores_used: f64, cores_given: f64) -> Option<f64> {
    finite(target * demand / (cores_used / cores_given))
}

/// Instances for a target rate: ⌈target ÷ ceiling⌉.
pub fn instances_for(target: f64, ceiling: f64) -> Option<u64> {
    if !(target >= 0.0 && ceiling > 0.0) {
        return None;
    }
    finite((target / ceiling).ceil()).filter(|instances| *instances < 1e15).map(|instances| instances as u64)
}

/// Time lost to stalls beyond what a latency limit leaves: Σ max(0, Dᵢ − L), same unit as given.
pub fn stalled_beyond(stalls: impl IntoIterator<Item = f64>, limit: f64) -> f64 {
    stalls.into_iter().map(|stall| (stall - limit).max(0.0)).filter(|lost| lost.is_finite()).sum::<f64>().min(f64::MAX)
}

/// The share of the tail's mass that lost time is: lost ÷ ((1 − q) · window). At 1 every rate fails the percentile `q`.
pub fn tail_share(lost: f64, q: f64, window: f64) -> Option<f64> {
    let tail = (1.0 - q) * window;
    if tail > 0.0 { finite(lost / tail) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_on_published_rows() {
        // 4,000 constant clients at 42,800/s need a mean of 93.5 ms; a p99 of 14 ms beside it is impossible.
        assert_eq!(implied_mean_response(42_800.0, 4_000.0).map(|s| (s * 1e4).round()), Some(935.0));
        assert_eq!(littles_deviation(1_000.0, 0.064, 64.0).map(|d| d.abs() < 1e-12), Some(true));
        assert_eq!(littles_deviation(1_000.0, 0.059_5, 64.0).map(|d| (d * 1e3).round()), Some(-70.0));
        assert_eq!(cores_for(30_000.0, 66.77e-6, 3.83, 4.0).map(|c| (c * 100.0).round()), Some(209.0));
        assert_eq!(scaling_efficiency(57_321.0, 4.0, 16_883.0, 1.0).map(|e| (e * 1e3).round()), Some(849.0));
        assert_eq!(instances_for(100_000.0, 57_321.0), Some(2));
        assert_eq!(utilisation_deviation(57_321.0, 66.77e-6, 3.827).map(|d| d.abs() < 0.001), Some(true));
        // Four stalls of 50 ms with a limit of 10 ms eat 80 % of what p99 leaves of 20 s.
        let lost = stalled_beyond([0.05; 4], 0.01);
        assert_eq!(tail_share(lost, 0.99, 20.0).map(|share| (share * 100.0).round()), Some(80.0));
    }

    #[test]
    fn nothing_to_divide_by_is_none() {
        assert_eq!(littles_deviation(1.0, 1.0, 0.0), None);
        assert_eq!(implied_mean_response(0.0, 1.0), None);
        assert_eq!(scaling_efficiency(1.0, 1.0, 0.0, 1.0), None);
        assert_eq!(cores_for(1.0, 1.0, 0.0, 0.0), None);
        assert_eq!(
            [instances_for(1.0, 0.0), instances_for(f64::NAN, 1.0), instances_for(1e300, 1e-300)],
            [None, None, None]
        );
        assert_eq!([tail_share(1.0, 1.0, 5.0), tail_share(1.0, 0.99, 0.0)], [None, None]);
        assert_eq!(stalled_beyond([f64::NAN, 1.0], 2.0), 0.0);
    }
}
