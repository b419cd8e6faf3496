//! No input ends the program, and nothing that is given is a NaN.

use proptest::collection::vec;
use proptest::prelude::*;
use stats::grid::non_increasing;
use stats::{Grid, GridRate, Interval, Regression, Witness, bootstrap, interval, law, pace, round, sample, slo};

fn float() -> BoxedStrategy<f64> {
    prop_oneof![
        Just(0.0),
        Just(-0.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::MIN_POSITIVE),
        Just(f64::MAX),
        -1e3..1e6f64,
        any::<f64>()
    ]
    .boxed()
}

fn finite(value: Option<f64>) -> bool {
    value.is_none_or(f64::is_finite)
}

fn finite_interval(interval: Option<Interval>) -> bool {
    interval.is_none_or(|i| i.low.is_finite() && i.high.is_finite() && i.low <= i.high && i.coverage.is_finite())
}

proptest! {
    #[test]
    fn samples(values in vec(float(), 0..12), q in float(), coverage in float()) {
        prop_assert!(finite(sample::mean(&values)) && finite(sample::median(&values)));
        prop_assert!(finite(sample::quantile(&values, q)) && finite(sample::spread(&values)));
        prop_assert!(finite(sample::standard_deviation(&values)) && finite(sample::coefficient_of_variation(&values)));
        if let Some(best) = sample::best(&values) {
            prop_assert!(best.value.is_finite() && best.median.is_finite() && finite(best.gap) && finite(best.spread));
            prop_assert!(values.iter().all(|value| *value <= best.value));
        }
        prop_assert!(finite_interval(interval::median_interval(&values, coverage)));
        prop_assert!(finite_interval(interval::mean_interval(&values, coverage)));
    }

    #[test]
    fn regressions(rows in vec((float(), float(), float()), 0..12), at in float()) {
        let column = |of: fn(&(f64, f64, f64)) -> f64| rows.iter().map(of).collect::<Vec<_>>();
        let (y, x, z) = (column(|row| row.0), column(|row| row.1), column(|row| row.2));
        if let Some(fit) = Regression::fit(&y, &[&x, &z]) {
            prop_assert!(fit.r_squared.is_finite() && fit.residual_variation.is_finite() && finite(fit.at(&[at, at])));
        }
    }

    #[test]
    fn ratios(blocks in vec((float(), float()), 0..6), seed in any::<u64>()) {
        if let Some((ratio, interval)) = bootstrap::ratio_interval(&blocks, 0.9, seed) {
            prop_assert!(ratio.is_finite() && finite_interval(Some(interval)));
        }
    }

    #[test]
    fn witnesses(samples in vec((float(), any::<u64>()), 0..20), quiet in float(), steal in float()) {
        let witness = Witness::new(samples);
        prop_assert!(finite(witness.quantile(quiet)));
        if let Ok(quiet) = witness.quiet_time() {
            prop_assert!(quiet.is_finite() && quiet > 0.0);
        }
        if let Some(pace) = witness.pace(quiet) {
            prop_assert!(pace.pace.is_finite() && pace.capped_mean.is_finite() && pace.slowed_to.is_finite());
            prop_assert!((0.0..=1.0).contains(&pace.quiet_share));
        }
        prop_assert!(finite(pace::paced_demand(quiet, steal, steal)) && finite(pace::paced_rate(quiet, steal, steal)));
    }

    #[test]
    fn grids(rates in vec((float(), 0..9usize, 0..9usize), 0..9)) {
        let rates: Vec<GridRate> =
            rates.into_iter().map(|(rate, carried, of)| GridRate { rate, carried, of }).collect();
        let grid = Grid::new(&rates);
        prop_assert!(finite(grid.x50) && finite(grid.relevant_lower_bound));
        prop_assert!(grid.worst_inversion.is_none_or(|inversion| (0.0..=1.0).contains(&inversion.chance)));
        prop_assert!(grid.relevant_lower_bound <= grid.highest_carried);
        let _ = grid.objections();
    }

    #[test]
    fn isotonic_fits_do_not_rise_and_keep_the_mean(values in vec(0.0..1.0f64, 0..9)) {
        let weights = vec![1.0; values.len()];
        let fitted = non_increasing(&values, &weights);
        prop_assert_eq!(fitted.len(), values.len());
        prop_assert!(fitted.windows(2).all(|pair| pair[0] >= pair[1] - 1e-12));
        prop_assert!((fitted.iter().sum::<f64>() - values.iter().sum::<f64>()).abs() < 1e-9);
    }

    #[test]
    fn laws_and_tests(a in float(), b in float(), c in float(), d in float(), n in any::<u64>(), t in any::<u64>(), decimals in -20..20i32) {
        prop_assert!(finite(law::littles_deviation(a, b, c)) && finite(law::implied_mean_response(a, b)));
        prop_assert!(finite(law::utilisation_deviation(a, b, c)) && finite(law::scaling_efficiency(a, b, c, d)));
        prop_assert!(finite(law::cores_for(a, b, c, d)) && finite(law::tail_share(a, b, c)));
        prop_assert!(law::stalled_beyond([a, b], c).is_finite());
        let _ = (law::instances_for(a, b), slo::keeps(n, t, a, b), slo::least_answers(t, a, b));
        for rule in [round::truncated, round::half_up, round::half_even] {
            let rounded = rule(a, decimals);
            prop_assert!(!a.is_finite() || rounded.is_finite());
        }
        prop_assert!(!a.is_finite() || round::significant(a, 4).is_finite());
    }
}
