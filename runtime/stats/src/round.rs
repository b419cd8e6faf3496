//! Rounding rules, by name. A printed figure states which one it followed.

/// Towards zero, to `decimals` places: 57,321.5 → 57,321.
pub fn truncated(value: f64, decimals: i32) -> f64 {
    scaled(value, decimals, f64::trunc)
}

/// To nearest, ties away from zero, to `decimals` places: 5,151.5 → 5,152.
pub fn half_up(value: f64, decimals: i32) -> f64 {
    scaled(value, decimals, f64::round)
}

/// To nearest, ties to even, to `decimals` places: 2.5 → 2, 3.5 → 4.
pub fn half_even(value: f64, decimals: i32) -> f64 {
    scaled(value, decimals, f64::round_ties_even)
}

/// To nearest, ties to even, to `digits` significant digits: 57,321.5 → 57,320 for four.
pub fn significant(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    half_even(value, digits - 1 - value.abs().log10().floor() as i32)
}

fn scaled(value: f64, decimals: i32, round: fn(f64) -> f64) -> f64 {
    let scale = 10f64.powi(decimals.abs());
    // Scaling down by a division keeps 5,151.5 exact where a multiplication by 0.1 would not.
    let rounded = if decimals >= 0 { round(value * scale) / scale } else { round(value / scale) * scale };
    if rounded.is_finite() { rounded } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_does_what_it_is_called() {
        assert_eq!(
            [truncated(57_321.5, 0), half_up(57_321.5, 0), half_even(57_321.5, 0)],
            [57_321.0, 57_322.0, 57_322.0]
        );
        assert_eq!([truncated(-1.9, 0), half_up(2.5, 0), half_even(2.5, 0)], [-1.0, 3.0, 2.0]);
        assert_eq!(half_up(5_151.5, 0), 5_152.0);
        assert_eq!(half_up(66.774_1, 2), 66.77);
        assert_eq!([significant(57_321.5, 4), significant(0.012_345, 2), significant(0.0, 4)], [57_320.0, 0.012, 0.0]);
        assert_eq!([significant(9_999.6, 4), significant(99.96, 4)], [10_000.0, 99.96]);
        assert!(half_up(f64::NAN, 2).is_nan());
        assert_eq!(half_up(1e300, 20), 1e300);
    }
}
