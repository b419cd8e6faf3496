//! What the pace of a CPU explains: eight runs of four services on a shared virtual machine.

use stats::pace::paced_demand;
use stats::{Regression, coefficient_of_variation, mean, median};

use crate::table::{Row, column, read};

const FILES: [(&str, &str); 8] = [
    ("go-jwt", include_str!("../data/pace/go-jwt.csv")),
    ("php-fpm-jwt", include_str!("../data/pace/php-fpm-jwt.csv")),
    ("php-fpm-hello", include_str!("../data/pace/php-fpm-hello.csv")),
    ("nginx", include_str!("../data/pace/nginx.csv")),
    ("nginx-2", include_str!("../data/pace/nginx-2.csv")),
    ("php-fpm-hello-2", include_str!("../data/pace/php-fpm-hello-2.csv")),
    ("php-fpm-jwt-2", include_str!("../data/pace/php-fpm-jwt-2.csv")),
    ("go-jwt-3", include_str!("../data/pace/go-jwt-3.csv")),
];

/// Windows of one file: CPU per request, the witness's mean, steal.
struct Windows {
    rows: Vec<Row>,
    raw: Vec<f64>,
    witness: Vec<f64>,
    steal: Vec<f64>,
}

fn windows(file: &str) -> Windows {
    let text = FILES.iter().find(|(name, _)| *name == file).expect("a file").1;
    let rows = read(text);
    let capped = rows[0].has("multiply_capped_mean_us");
    let witness = column(&rows, if capped { "multiply_capped_mean_us" } else { "multiply_mean_us" });
    Windows { raw: column(&rows, "cpu_us_per_request"), witness, steal: column(&rows, "steal_share"), rows }
}

impl Windows {
    /// CPU per request at quiet pace, without and with steal. The quiet time is 17.2 µs; ratios don't depend on it.
    fn paced(&self, with_steal: bool) -> Vec<f64> {
        self.raw
            .iter()
            .zip(&self.witness)
            .zip(&self.steal)
            .map(|((raw, witness), steal)| {
                let steal = if with_steal { *steal } else { 0.0 };
                paced_demand(*raw, 17.2 / witness, steal).expect("numbers")
            })
            .collect()
    }
}

/// Asserts a value that a table prints in percent with one decimal.
#[track_caller]
fn prints(what: &str, ratio: Option<f64>, percent: f64) {
    let found = ratio.expect("a value") * 100.0;
    assert!((found - percent).abs() <= 0.06, "{what}: {found:.3} instead of {percent}");
}

#[test]
fn variation_falls_when_demand_is_paced() {
    for (file, raw, paced, with_steal) in [
        ("go-jwt", 10.1, 3.5, 3.1),
        ("php-fpm-jwt", 18.0, 6.8, 5.4),
        ("php-fpm-hello", 11.8, 7.3, 5.4),
        ("nginx", 8.8, 6.4, 6.5),
        ("nginx-2", 16.5, 12.0, 8.1),
        ("php-fpm-hello-2", 11.3, 8.5, 5.4),
        ("php-fpm-jwt-2", 12.0, 5.5, 5.0),
        ("go-jwt-3", 10.4, 3.8, 2.4),
    ] {
        let windows = windows(file);
        prints(file, coefficient_of_variation(&windows.raw), raw);
        prints(file, coefficient_of_variation(&windows.paced(false)), paced);
        prints(file, coefficient_of_variation(&windows.paced(true)), with_steal);
    }
}

#[test]
fn regressions_explain_what_steal_alone_does_not() {
    let r_squared = |windows: &Windows, predictors: &[&[f64]]| {
        (Regression::fit(&windows.raw, predictors).expect("a fit").r_squared * 100.0).round() as i32
    };
    for (file, steal, witness, both) in
        [("go-jwt", 60, 87, 92), ("php-fpm-jwt", 76, 87, 97), ("php-fpm-hello", 66, 58, 86), ("nginx", 7, 53, 54)]
    {
        let windows = windows(file);
        let found = [
            r_squared(&windows, &[&windows.steal]),
            r_squared(&windows, &[&windows.witness]),
            r_squared(&windows, &[&windows.steal, &windows.witness]),
        ];
        assert_eq!(found, [steal, witness, both], "{file}");
    }
    for (file, socket, branchy, all, residual) in
        [("nginx-2", 27, 78, 86, 6.1), ("php-fpm-hello-2", 30, 80, 91, 3.3), ("php-fpm-jwt-2", 69, 92, 95, 2.6)]
    {
        let windows = windows(file);
        let (s, b) = (column(&windows.rows, "socket_mean_us"), column(&windows.rows, "branchy_mean_us"));
        assert_eq!([r_squared(&windows, &[&s]), r_squared(&windows, &[&b])], [socket, branchy], "{file}");
        let fit = Regression::fit(&windows.raw, &[&windows.steal, &windows.witness, &s, &b]).expect("a fit");
        assert_eq!((fit.r_squared * 100.0).round() as i32, all, "{file}");
        prints(file, Some(fit.residual_variation), residual);
    }
}

#[test]
fn what_inside_the_witness_counts() {
    let windows = windows("go-jwt-3");
    let names = ["steal_share", "multiply_median_us", "multiply_mean_us", "quiet_share", "multiply_capped_mean_us"];
    let expected = [(71, 5.6), (53, 7.2), (81, 4.5), (86, 3.9), (88, 3.5)];
    for (name, (r_squared, residual)) in names.into_iter().zip(expected) {
        let fit = Regression::fit(&windows.raw, &[&column(&windows.rows, name)]).expect("a fit");
        assert_eq!((fit.r_squared * 100.0).round() as i32, r_squared, "{name}");
        prints(name, Some(fit.residual_variation), residual);
    }
    let both = Regression::fit(&windows.raw, &[&windows.witness, &windows.steal]).expect("a fit");
    assert_eq!((both.r_squared * 100.0).round() as i32, 95);
    prints("capped mean and steal", Some(both.residual_variation), 2.3);
    // No window is quiet, and all together foretell a quiet core: 90 to 97 µs where the windows read 110 to 167.
    let foretold = both.at(&[16.6, 0.0]).expect("two predictors");
    let by_pace = median(&windows.paced(true)).expect("windows") * 16.6 / 17.2;
    assert!((90.0..97.0).contains(&foretold) && (90.0..97.0).contains(&by_pace), "{foretold} {by_pace}");
    assert!(windows.raw.iter().all(|raw| (110.0..167.0).contains(raw)));
}

#[test]
fn slow_windows_foretell_the_quickest_quarter() {
    for (file, raw, paced, with_steal) in [
        ("go-jwt", 21.2, 2.6, 0.5),
        ("php-fpm-jwt", 35.7, 3.1, 2.5),
        ("php-fpm-hello", 23.3, 6.3, -0.1),
        ("nginx", 16.0, 2.9, 0.7),
        ("nginx-2", 29.8, 15.8, 7.8),
        ("php-fpm-hello-2", 27.2, 19.8, 8.5),
        ("php-fpm-jwt-2", 29.1, 11.0, 9.4),
        ("go-jwt-3", 23.6, 4.6, 0.8),
    ] {
        let windows = windows(file);
        let mut order: Vec<usize> = (0..windows.raw.len()).collect();
        order.sort_by(|&left, &right| windows.raw[left].total_cmp(&windows.raw[right]));
        let error = |values: &[f64]| {
            let take = |places: &[usize]| median(&places.iter().map(|&place| values[place]).collect::<Vec<_>>());
            let quick = order.len().div_ceil(4);
            Some(take(&order[order.len() / 2..])? / take(&order[..quick])? - 1.0)
        };
        prints(file, error(&windows.raw), raw);
        prints(file, error(&windows.paced(false)), paced);
        prints(file, error(&windows.paced(true)), with_steal);
    }
}

#[test]
fn a_service_differs_from_itself_until_it_is_paced() {
    for (file, halves, paced_halves, odd, paced_odd, blocks, paced_blocks) in [
        ("go-jwt", -4.5, 1.9, -2.3, 0.9, 11.9, 7.0),
        ("php-fpm-jwt", 29.7, 7.2, 4.9, -0.2, 31.5, 12.9),
        ("php-fpm-hello", 14.1, 3.0, 1.1, 0.5, 44.1, 19.2),
        ("nginx", -2.7, 1.0, -1.9, -2.0, 30.3, 10.6),
    ] {
        let windows = windows(file);
        for (values, halves, odd, blocks) in
            [(windows.raw.clone(), halves, odd, blocks), (windows.paced(false), paced_halves, paced_odd, paced_blocks)]
        {
            let (first, second) = values.split_at(values.len() / 2);
            prints(file, Some(mean(first).expect("windows") / mean(second).expect("windows") - 1.0), halves);
            let every = |start: usize| mean(&values.iter().copied().skip(start).step_by(2).collect::<Vec<_>>());
            prints(file, Some(every(0).expect("windows") / every(1).expect("windows") - 1.0), odd);
            let best: Vec<f64> =
                values.chunks_exact(6).map(|block| block.iter().copied().fold(f64::INFINITY, f64::min)).collect();
            let worst_pair =
                best.iter().copied().fold(0.0, f64::max) / best.iter().copied().fold(f64::INFINITY, f64::min);
            prints(file, Some(worst_pair - 1.0), blocks);
        }
    }
}
