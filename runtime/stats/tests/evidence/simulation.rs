//! Which estimator is right depends on the noise: five repetitions against a true ceiling of 1, many times.
//!
//! Where interference only subtracts, the best is nearly unbiased and median and mean are too low; where noise is symmetric, the best
//! is too high. That is why the best is taken of valid repetitions only, and why its gap, median and spread stand beside it.

use stats::random::Random;
use stats::{best, mean, median};

const RUNS: usize = 20_000;

fn normal(random: &mut Random) -> f64 {
    let (u, v) = (1.0 - random.unit(), random.unit());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

fn exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * (1.0 - random.unit()).ln()
}

/// Quiet: every repetition loses a little.
fn quiet(random: &mut Random) -> f64 {
    (1.0 - exponential(random, 0.012)) * (1.0 + 0.003 * normal(random))
}

/// A shared machine: one repetition in five also loses 5 to 30 %.
fn shared(random: &mut Random) -> f64 {
    let lost = if random.unit() < 0.2 { 0.05 + 0.25 * random.unit() } else { 0.0 };
    quiet(random) * (1.0 - lost)
}

/// Nothing subtracts: noise of 2 % to both sides.
fn symmetric(random: &mut Random) -> f64 {
    1.0 + 0.02 * normal(random)
}

type Noise = fn(&mut Random) -> f64;
type Estimator = fn(&[f64]) -> Option<f64>;
/// Bias, and the share of runs within 2 % of the truth, both in percent.
type Expected = (f64, f64);

#[test]
fn the_best_is_right_only_where_interference_subtracts() {
    let estimators: [Estimator; 3] = [|values| best(values).map(|best| best.value), median, mean];
    // Of best, median and mean.
    let regimes: [(&str, Noise, [Expected; 3]); 3] = [
        ("quiet", quiet, [(-0.14, 100.0), (-0.97, 94.6), (-1.20, 91.2)]),
        ("shared", shared, [(-0.25, 99.4), (-2.06, 75.5), (-4.70, 30.8)]),
        ("symmetric", symmetric, [(2.33, 42.3), (0.0, 93.8), (0.0, 97.5)]),
    ];
    for (name, noise, expected) in regimes {
        let mut random = Random::new(20_260_917);
        let mut found = [(0.0, 0.0); 3];
        for _ in 0..RUNS {
            let repetitions: [f64; 5] = std::array::from_fn(|_| noise(&mut random));
            for (found, estimator) in found.iter_mut().zip(estimators) {
                let off = estimator(&repetitions).expect("five values") - 1.0;
                found.0 += 100.0 * off / RUNS as f64;
                found.1 += if off.abs() <= 0.02 { 100.0 / RUNS as f64 } else { 0.0 };
            }
        }
        for ((bias, within), (expected_bias, expected_within)) in found.into_iter().zip(expected) {
            assert!((bias - expected_bias).abs() < 0.2, "{name}: bias {bias} instead of {expected_bias}");
            assert!((within - expected_within).abs() < 2.0, "{name}: {within} % instead of {expected_within} %");
        }
    }
}
