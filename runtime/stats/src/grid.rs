//! Fixed rates, each offered several times: what was carried, where the boundary lies, and whether that may be published.

/// One rate of the grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GridRate {
    /// The rate, per second.
    pub rate: f64,
    /// Windows that carried it.
    pub carried: usize,
    /// Windows that were judged.
    pub of: usize,
}

/// A rate that was carried less often than a higher one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inversion {
    /// The lower rate and its share of windows that carried it.
    pub lower: (f64, f64),
    /// The higher rate and its share.
    pub higher: (f64, f64),
    /// Probability of such a difference or a larger one if both rates were carried equally often (Fisher's exact test, one-sided).
    pub chance: f64,
}

/// An inversion that is less likely than this is not chance.
pub const INVERSION_CHANCE: f64 = 0.05;

/// What a grid of rates shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// The rates, ascending.
    pub rates: Vec<GridRate>,
    /// The highest rate with a majority below the lowest rate without one: what RFC 9971 calls the relevant lower bound.
    pub relevant_lower_bound: Option<f64>,
    /// The lowest rate without a majority; `None` where every rate was carried.
    pub first_not_carried: Option<f64>,
    /// The highest rate with a majority, whatever lies below. Where it is above the relevant lower bound it is a fluke.
    pub highest_carried: Option<f64>,
    /// Rates that were carried less often than the next higher one.
    pub inversions: Vec<Inversion>,
    /// Of all pairs of rates, neighbours or not, the inversion that is least likely chance.
    pub worst_inversion: Option<Inversion>,
    /// Where the isotonic (non-increasing) fit of the shares crosses one half, interpolated; `None` where it never does.
    pub x50: Option<f64>,
}

/// Fewest windows of a rate from which a boundary may be published.
pub const LEAST_WINDOWS: usize = 5;

impl Grid {
    /// What these rates show; rates that are not finite or have no window are left out.
    pub fn new(rates: &[GridRate]) -> Self {
        let mut rates: Vec<GridRate> = rates
            .iter()
            .copied()
            .filter(|rate| rate.rate.is_finite() && rate.of > 0 && rate.carried <= rate.of)
            .collect();
        rates.sort_by(|left, right| left.rate.total_cmp(&right.rate));
        let carried = |rate: &GridRate| rate.carried * 2 > rate.of;
        let first_not = rates.iter().position(|rate| !carried(rate));
        let shares: Vec<f64> = rates.iter().map(share).collect();
        Self {
            relevant_lower_bound: rates[..first_not.unwrap_or(rates.len())].last().map(|rate| rate.rate),
            first_not_carried: first_not.map(|index| rates[index].rate),
            highest_carried: rates.iter().rev().find(|rate| carried(rate)).map(|rate| rate.rate),
            inversions: rates.windows(2).filter_map(|pair| inversion(&pair[0], &pair[1])).collect(),
            worst_inversion: rates
                .iter()
                .enumerate()
                .flat_map(|(index, lower)| rates[index + 1..].iter().filter_map(|higher| inversion(lower, higher)))
                .min_by(|left, right| left.chance.total_cmp(&right.chance)),
            x50: crossing(
                &rates,
                &non_increasing(&shares, &rates.iter().map(|rate| rate.of as f64).collect::<Vec<_>>()),
            ),
            rates,
        }
    }

    /// Why no boundary may be published from this grid; empty where it may.
    pub fn objections(&self) -> Vec<Objection> {
        let mut objections = Vec::new();
        if self.relevant_lower_bound.is_none() {
            objections.push(Objection::NothingCarried);
        }
        if self.first_not_carried.is_none() && !self.rates.is_empty() {
            objections.push(Objection::NotBracketed);
        }
        objections.extend(self.inversions.iter().map(|inversion| Objection::Inverted(*inversion)));
        if let Some(few) = self.rates.iter().filter(|rate| rate.of < LEAST_WINDOWS).map(|rate| rate.of).min() {
            objections.push(Objection::TooFewWindows { windows: few });
        }
        objections
    }
}

/// Why no boundary may be published from a grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Objection {
    /// The lowest rate was not carried, so nothing lies below the boundary.
    NothingCarried,
    /// Every rate was carried: the grid ends below the boundary.
    NotBracketed,
    /// A rate was carried less often than a higher one.
    Inverted(Inversion),
    /// Fewer than [`LEAST_WINDOWS`] windows at some rate.
    TooFewWindows {
        /// The fewest.
        windows: usize,
    },
}

fn inversion(lower: &GridRate, higher: &GridRate) -> Option<Inversion> {
    (share(lower) < share(higher)).then(|| Inversion {
        lower: (lower.rate, share(lower)),
        higher: (higher.rate, share(higher)),
        chance: chance(lower, higher),
    })
}

/// P(the lower rate is carried as seldom as it was, or less), given how often both together were: hypergeometric.
fn chance(lower: &GridRate, higher: &GridRate) -> f64 {
    let ln_choose = |n: usize, k: usize| statrs::function::factorial::ln_binomial(n as u64, k as u64);
    let carried = lower.carried + higher.carried;
    let all = ln_choose(lower.of + higher.of, carried);
    (carried.saturating_sub(higher.of)..=lower.carried)
        .map(|k| (ln_choose(lower.of, k) + ln_choose(higher.of, carried - k) - all).exp())
        .sum::<f64>()
        .clamp(0.0, 1.0)
}

fn share(rate: &GridRate) -> f64 {
    rate.carried as f64 / rate.of as f64
}

/// The non-increasing sequence nearest to `values` by weighted least squares (pool adjacent violators).
pub fn non_increasing(values: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    for (&value, &weight) in values.iter().zip(weights) {
        pools.push((value, weight, 1));
        while let [.., left, right] = pools[..] {
            if left.0 >= right.0 {
                break;
            }
            pools.truncate(pools.len() - 2);
            let weight = left.1 + right.1;
            pools.push(((left.0 * left.1 + right.0 * right.1) / weight, weight, left.2 + right.2));
        }
    }
    pools.into_iter().flat_map(|(value, _, length)| std::iter::repeat_n(value, length)).collect()
}

fn crossing(rates: &[GridRate], fitted: &[f64]) -> Option<f64> {
    let above = fitted.iter().rposition(|share| *share >= 0.5)?;
    let (high, low) = (fitted[above], *fitted.get(above + 1)?);
    let (from, to) = (rates[above].rate, rates[above + 1].rate);
    crate::sample::finite(from + (to - from) * (high - 0.5) / (high - low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(of: usize, rows: &[(f64, usize)]) -> Grid {
        Grid::new(&rows.iter().map(|&(rate, carried)| GridRate { rate, carried, of }).collect::<Vec<_>>())
    }

    #[test]
    fn a_clean_grid_has_no_objection() {
        let grid = grid(5, &[(300.0, 5), (600.0, 5), (900.0, 3), (1_050.0, 0)]);
        assert_eq!((grid.relevant_lower_bound, grid.first_not_carried), (Some(900.0), Some(1_050.0)));
        assert_eq!(grid.objections(), []);
        assert_eq!(grid.x50.map(f64::round), Some(925.0));
    }

    #[test]
    fn a_fluke_above_a_failed_rate_is_not_the_bound() {
        let grid = grid(5, &[(4_250.0, 5), (9_250.0, 1), (14_500.0, 4), (20_000.0, 0)]);
        assert_eq!(grid.relevant_lower_bound, Some(4_250.0));
        assert_eq!(grid.highest_carried, Some(14_500.0));
        assert_eq!(grid.inversions.len(), 1);
        let inversion = grid.inversions[0];
        assert_eq!((inversion.lower, inversion.higher), ((9_250.0, 0.2), (14_500.0, 0.8)));
        // Fisher: 1 of 5 against 4 of 5 is 26/252.
        assert!((inversion.chance - 26.0 / 252.0).abs() < 1e-9, "{inversion:?}");
        assert_eq!(grid.objections().len(), 1);
    }

    #[test]
    fn an_inversion_beyond_chance_is_told_from_one_within() {
        let beyond = grid(5, &[(1.0, 5), (2.0, 0), (3.0, 3), (4.0, 5)]);
        assert_eq!(beyond.inversions.len(), 2);
        let worst = beyond.worst_inversion.expect("two inversions");
        assert_eq!((worst.lower.0, worst.higher.0), (2.0, 4.0));
        assert!((worst.chance - 1.0 / 252.0).abs() < 1e-9 && worst.chance < INVERSION_CHANCE);
        let within = grid(5, &[(1.0, 4), (2.0, 5), (3.0, 0)]);
        assert!(within.worst_inversion.is_some_and(|inversion| (inversion.chance - 0.5).abs() < 1e-9));
        assert_eq!(grid(5, &[(1.0, 5), (2.0, 3)]).worst_inversion, None);
    }

    #[test]
    fn what_a_grid_can_lack() {
        assert_eq!(grid(5, &[(1.0, 0), (2.0, 0)]).objections(), [Objection::NothingCarried]);
        assert_eq!(grid(5, &[(1.0, 5), (2.0, 5)]).objections(), [Objection::NotBracketed]);
        assert_eq!(grid(3, &[(1.0, 3), (2.0, 0)]).objections(), [Objection::TooFewWindows { windows: 3 }]);
        assert_eq!(grid(5, &[]).objections(), [Objection::NothingCarried]);
        assert_eq!(Grid::new(&[GridRate { rate: f64::NAN, carried: 1, of: 1 }]).rates, []);
        assert_eq!(grid(0, &[(1.0, 0)]).rates, []);
    }

    #[test]
    fn pools_adjacent_violators() {
        assert_eq!(non_increasing(&[1.0, 0.2, 0.6, 0.0], &[1.0; 4]), [1.0, 0.4, 0.4, 0.0]);
        assert_eq!(non_increasing(&[0.0, 1.0], &[3.0, 1.0]), [0.25, 0.25]);
        assert_eq!(non_increasing(&[], &[]), Vec::<f64>::new());
    }
}
