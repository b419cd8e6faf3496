//! How numbers are printed for people. Exact values are in the JSON; here they are rounded, and the rule is stated once.

use plan::Metric;

/// The rounding rule of everything printed by this module, as the report states it.
pub const ROUNDING: &str = "Printed figures are rounded to 4 significant digits, to nearest, ties to even; report.json holds the exact values.";

/// Significant digits of a printed figure.
const DIGITS: usize = 4;

/// What is printed where a number is not finite; a figure never is, but a gate's raw value may be.
const NOT_A_NUMBER: &str = "not a number";

/// A number with at most four significant digits and a comma after every third digit: `57,320`, `0.9742`, `12.4`.
///
/// Digits after the point that are 0 are left out, so that `3` stays `3`. Rounds to nearest, ties to even.
pub fn significant(value: f64) -> String {
    significant_digits(value, DIGITS)
}

/// [`significant`] with another number of digits.
pub fn significant_digits(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return NOT_A_NUMBER.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    // Scientific notation rounds correctly at the wanted digit; its exponent then says how many decimals remain.
    let scientific = format!("{value:.*e}", digits.saturating_sub(1));
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    if !(-9..=18).contains(&exponent) {
        return scientific;
    }
    let negative = mantissa.starts_with('-');
    let figures: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let (whole, fraction) = if exponent < 0 {
        ("0".to_owned(), format!("{}{figures}", "0".repeat((-exponent - 1) as usize)))
    } else {
        let cut = exponent as usize + 1;
        if cut >= figures.len() {
            (format!("{figures}{}", "0".repeat(cut - figures.len())), String::new())
        } else {
            (figures[..cut].to_owned(), figures[cut..].to_owned())
        }
    };
    let fraction = fraction.trim_end_matches('0');
    let sign = if negative { "−" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{fraction}", grouped(&whole))
}

/// A whole number with a comma after every third digit: `1,000,000`.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A ratio as a percentage, to three digits, below 1 % to two: `0.0312` is `3.12 %`, `0.00844` is `0.84 %`.
pub fn percent(ratio: f64) -> String {
    let percents = ratio * 100.0;
    format!("{} %", significant_digits(percents, if percents.abs() < 1.0 { 2 } else { 3 }))
}

/// A value of a metric without its unit, scaled as [`unit`] says: bytes become MiB, ratios percent.
pub fn value(metric: Metric, value: f64) -> String {
    scaled(metric.unit(), value).0
}

/// The unit that is printed after [`value`]: `/s`, ` µs`, ` cores`, ` MiB`, ` %`, or nothing for counts.
pub fn unit(metric: Metric) -> &'static str {
    scaled(metric.unit(), 0.0).1
}

/// A value of a metric with its unit: `4,120/s`, `221.3 µs`, `13.2 MiB`, `99.1 %`.
pub fn with_unit(metric: Metric, value: f64) -> String {
    quantity(value, metric.unit())
}

/// [`with_unit`] with three digits, for lines that are read in passing.
pub fn short(metric: Metric, value: f64) -> String {
    let digits = if matches!(metric, Metric::CpuPerRequest | Metric::CoresUsed | Metric::CorrectedP99) { 3 } else { 4 };
    let (number, unit) = scaled(metric.unit(), value);
    match metric.unit() {
        "count" | "bytes" | "bytes/s" | "ratio" | "" => format!("{number}{unit}"),
        _ => format!("{}{unit}", significant_digits(value, digits)),
    }
}

/// A value in a stored unit (`1/s`, `µs`, `ms`, `ns`, `cores`, `bytes`, `ratio`, `count`, or any other text) with the
/// unit that people read.
pub fn quantity(value: f64, stored_unit: &str) -> String {
    let (number, unit) = scaled(stored_unit, value);
    if unit.is_empty() && !matches!(stored_unit, "count" | "") {
        return format!("{number} {stored_unit}");
    }
    format!("{number}{unit}")
}

fn scaled(stored_unit: &str, value: f64) -> (String, &'static str) {
    match stored_unit {
        "1/s" => (significant(value), "/s"),
        "µs" => (significant(value), " µs"),
        "ms" => (significant(value), " ms"),
        "s" => (significant(value), " s"),
        "cores" => (significant(value), " cores"),
        "ratio" => (significant(value * 100.0), " %"),
        "bytes" => (significant(value / f64::from(1 << 20)), " MiB"),
        "bytes/s" => (significant(value * 60.0 / f64::from(1 << 20)), " MiB/min"),
        "count" if value.fract() == 0.0 && value.abs() < 1e15 => {
            let sign = if value < 0.0 { "−" } else { "" };
            (format!("{sign}{}", count(value.abs() as u64)), "")
        }
        _ => (significant(value), ""),
    }
}

/// Two values of a metric as a range with one unit: `3,900–4,420/s`.
pub fn range(metric: Metric, low: f64, high: f64) -> String {
    let (low, high) = (value(metric, low), value(metric, high));
    if low == high { format!("{low}{}", unit(metric)) } else { format!("{low}–{high}{}", unit(metric)) }
}

/// A length of time for people: `412 ms`, `2.1 s`, `11 s`, `1m 12s`, `2h 05m`.
pub fn duration(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    if seconds < 0.9995 {
        return format!("{} ms", ns / 1_000_000);
    }
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3_600 => format!("{}m {:02}s", whole / 60, whole % 60),
        _ => {
            let minutes = (whole + 30) / 60;
            format!("{}h {:02}m", minutes / 60, minutes % 60)
        }
    }
}

/// A length of time that was declared, exact: `3 s`, `1.5 s`, `250 ms`, `2m 30s`.
pub fn span(ns: u64) -> String {
    match ns {
        0 => "0 s".to_owned(),
        1..1_000_000_000 => format!("{} ms", significant(ns as f64 / 1e6)),
        _ if ns < 60_000_000_000 || !ns.is_multiple_of(1_000_000_000) => format!("{} s", significant(ns as f64 / 1e9)),
        _ => duration(ns),
    }
}

/// A length of time that is only estimated: `under a minute`, `about 5 min`, `about 2 h 10 min`.
pub fn about(ns: u64) -> String {
    let minutes = (ns as f64 / 6e10).round() as u64;
    match minutes {
        0 => "under a minute".to_owned(),
        1..90 => format!("about {minutes} min"),
        _ => {
            let ten = (minutes + 5) / 10 * 10;
            match (ten / 60, ten % 60) {
                (hours, 0) => format!("about {hours} h"),
                (hours, rest) => format!("about {hours} h {rest} min"),
            }
        }
    }
}

/// Bytes with a binary unit: `2 GiB`, `13.2 MiB`.
pub fn bytes(bytes: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", significant_digits(value, 3), units[unit])
}

/// `1 repetition`, `2 repetitions`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_to_four_digits_ties_to_even() {
        for (value, printed) in [
            (57_321.5, "57,320"),
            (57_315.0, "57,320"),
            (57_325.0, "57,320"),
            (4_120.0, "4,120"),
            (4_120.5, "4,120"),
            (4_121.5, "4,122"),
            (812.34, "812.3"),
            (0.974_21, "0.9742"),
            (0.000_123_456, "0.0001235"),
            (3.0, "3"),
            (9_999.96, "10,000"),
            (1_000_000.0, "1,000,000"),
            (0.0, "0"),
            (-1.25, "−1.25"),
            (1e-12, "1.000e-12"),
            (f64::NAN, "not a number"),
            (f64::INFINITY, "not a number"),
        ] {
            assert_eq!(significant(value), printed, "{value}");
        }
    }

    #[test]
    fn gives_each_metric_its_unit() {
        for (metric, value, printed) in [
            (Metric::Throughput, 4_120.0, "4,120/s"),
            (Metric::CpuPerRequest, 221.04, "221 µs"),
            (Metric::CoresUsed, 0.97, "0.97 cores"),
            (Metric::Memory, 13.25 * 1_048_576.0, "13.25 MiB"),
            (Metric::ServiceP99, 12.345_6, "12.35 ms"),
            (Metric::Achieved, 0.991, "99.1 %"),
            (Metric::Errors, 2_400_000.0, "2,400,000"),
        ] {
            assert_eq!(with_unit(metric, value), printed);
        }
        assert_eq!(range(Metric::Throughput, 3_900.0, 4_420.0), "3,900–4,420/s");
        assert_eq!(range(Metric::Achieved, 0.5, 0.5), "50 %");
        assert_eq!(quantity(3.0, "points"), "3 points");
    }

    #[test]
    fn prints_time_for_people() {
        for (ns, printed) in [
            (0, "0 ms"),
            (412_000_000, "412 ms"),
            (999_900_000, "1.0 s"),
            (2_100_000_000, "2.1 s"),
            (9_960_000_000, "10 s"),
            (59_600_000_000, "1m 00s"),
            (72_000_000_000, "1m 12s"),
            (7_500_000_000_000, "2h 05m"),
        ] {
            assert_eq!(duration(ns), printed);
        }
        for (ns, printed) in
            [(1, "under a minute"), (300_000_000_000, "about 5 min"), (7_800_000_000_000, "about 2 h 10 min")]
        {
            assert_eq!(about(ns), printed);
        }
        for (ns, printed) in [
            (0, "0 s"),
            (250_000_000, "250 ms"),
            (3_000_000_000, "3 s"),
            (1_500_000_000, "1.5 s"),
            (150_000_000_000, "2m 30s"),
        ] {
            assert_eq!(span(ns), printed);
        }
        assert_eq!(short(Metric::CpuPerRequest, 221.04), "221 µs");
        assert_eq!(short(Metric::Throughput, 4_121.4), "4,121/s");
        assert_eq!((percent(0.031_24), percent(0.008_44)), ("3.12 %".to_owned(), "0.84 %".to_owned()));
        assert_eq!(bytes(2 << 30), "2 GiB");
        assert_eq!(counted(1, "run", "runs"), "1 run");
    }
}
