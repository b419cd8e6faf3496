//! Numbers in sentences: to nearest, ties to even, in as many digits as a reader needs.

/// A rate or count with thousands separators, four significant digits.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "no number".to_owned();
    }
    let rounded = stats::round::significant(value, 4);
    if rounded.abs() >= 1_000.0 {
        return with_separators(rounded);
    }
    let decimals = if rounded == 0.0 { 0 } else { (3 - rounded.abs().log10().floor() as i32).clamp(0, 9) };
    let text = format!("{rounded:.*}", decimals as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A whole number with thousands separators.
pub(crate) fn count(value: impl Into<u128>) -> String {
    group(&value.into().to_string())
}

/// `1 choice is`, `3 choices are`.
pub(crate) fn several(count: usize, thing: &str, one: &str, more: &str) -> String {
    match count {
        1 => format!("1 {thing} {one}"),
        count => format!("{count} {thing}s {more}"),
    }
}

/// A ratio in percent: 0.731 → `73 %`, 0.0042 → `0.42 %`.
pub(crate) fn percent(ratio: f64) -> String {
    if !ratio.is_finite() {
        return "no share".to_owned();
    }
    let percent = ratio * 100.0;
    let text =
        if percent.abs() >= 10.0 { format!("{percent:.0}") } else { number(stats::round::significant(percent, 2)) };
    format!("{text} %")
}

/// A ratio with two decimals: 0.61.
pub(crate) fn ratio(value: f64) -> String {
    if value.is_finite() { format!("{value:.2}") } else { "no number".to_owned() }
}

/// Nanoseconds as milliseconds: `12.5 ms`.
pub(crate) fn ms(ns: f64) -> String {
    format!("{} ms", number(ns / 1e6))
}

/// A value with its unit, as sentences have it.
pub(crate) fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "1/s" => format!("{}/s", number(value)),
        "ratio" => percent(value),
        "" | "count" => number(value),
        unit => format!("{} {unit}", number(value)),
    }
}

fn with_separators(value: f64) -> String {
    if value.abs() >= 1e15 {
        return format!("{value:e}");
    }
    group(&format!("{value:.0}"))
}

fn group(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let mut grouped = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        for (value, text) in [
            (57_321.5, "57,320"),
            (1_250.0, "1,250"),
            (66.774, "66.77"),
            (0.8, "0.8"),
            (0.0, "0"),
            (-4_120.0, "-4,120"),
            (100.0, "100"),
            (999.96, "1,000"),
            (f64::NAN, "no number"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!([percent(0.731), percent(0.004_2), percent(0.0), percent(1.0)], ["73 %", "0.42 %", "0 %", "100 %"]);
        assert_eq!(
            [with_unit(4_120.0, "1/s"), ms(12_500_000.0), count(1_234_567u64)],
            ["4,120/s", "12.5 ms", "1,234,567"]
        );
    }
}
