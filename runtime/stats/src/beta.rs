//! The regularised incomplete beta function and what follows from it.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::beta::checked_beta_reg;

/// I_x(a, b). `None` outside its domain (a, b > 0; 0 ≤ x ≤ 1).
pub fn regularised(x: f64, a: f64, b: f64) -> Option<f64> {
    checked_beta_reg(a, b, x).ok().filter(|value| value.is_finite())
}

/// P(X ≤ k) for X ~ binomial(n, p): I_{1−p}(n − k, k + 1).
pub fn binomial_at_most(k: u64, n: u64, p: f64) -> Option<f64> {
    if k >= n {
        return (0.0..=1.0).contains(&p).then_some(1.0);
    }
    regularised(1.0 - p, (n - k) as f64, k as f64 + 1.0)
}

/// The two-sided quantile of Student's t: P(|T| ≤ t) = `coverage` for `degrees` degrees of freedom.
pub fn t_quantile(coverage: f64, degrees: usize) -> Option<f64> {
    if degrees == 0 || !(0.0..1.0).contains(&coverage) {
        return None;
    }
    let t = StudentsT::new(0.0, 1.0, degrees as f64).ok()?;
    Some(t.inverse_cdf(f64::midpoint(1.0, coverage))).filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let close = |value: Option<f64>, expected: f64| {
            let value = value.expect("inside the domain");
            assert!((value - expected).abs() < 1e-6 * expected.abs().max(1.0), "{value} is not {expected}");
        };
        close(regularised(0.5, 2.0, 2.0), 0.5);
        close(binomial_at_most(0, 5, 0.5), 0.031_25);
        close(binomial_at_most(2, 5, 0.5), 0.5);
        close(binomial_at_most(5, 5, 0.5), 1.0);
        close(t_quantile(0.95, 4), 2.776_445);
        close(t_quantile(0.95, 29), 2.045_230);
        assert_eq!([regularised(1.5, 1.0, 1.0), t_quantile(0.95, 0), t_quantile(1.0, 3)], [None, None, None]);
        assert_eq!(regularised(f64::NAN, 1.0, 1.0), None);
    }
}
