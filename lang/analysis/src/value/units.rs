//! Quantities with units: durations, rates, bytes, percents. Numbers are read exactly where they are whole.

use std::fmt;

/// Units of durations, with their nanoseconds.
pub const DURATION_UNITS: &[(&str, f64)] =
    &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3_600e9), ("d", 86_400e9)];

/// Units of rates, with the seconds that they stand for.
pub const RATE_UNITS: &[(&str, f64)] = &[("/s", 1.0), ("/m", 60.0), ("/h", 3_600.0)];

/// Units of memory and sizes, with their bytes.
pub const BYTE_UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];

/// Units of shares.
pub const PERCENT_UNITS: &[(&str, f64)] = &[("%", 0.01)];

/// Why a text is not the quantity that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitProblem {
    /// It doesn't start with a number.
    NoNumber,
    /// A number without a unit.
    NoUnit,
    /// A unit that doesn't fit, as written.
    WrongUnit(String),
    /// Too large, or below zero where that has no meaning.
    OutOfRange(String),
}

impl fmt::Display for UnitProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber => f.write_str("it does not start with a number"),
            Self::NoUnit => f.write_str("it has no unit"),
            Self::WrongUnit(unit) => write!(f, "`{unit}` is not a unit that fits here"),
            Self::OutOfRange(why) => f.write_str(why),
        }
    }
}

/// The units of a table as people read them: `ns, us, ms, s, m, h, d`.
pub fn names(units: &[(&str, f64)]) -> String {
    units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Splits a leading unsigned decimal number off; `_` between digits is skipped.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let digits: String = text[..end].chars().filter(|c| *c != '_').collect();
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    digits.parse::<f64>().ok().map(|value| (value, &text[end..]))
}

fn one(text: &str, units: &[(&str, f64)]) -> Result<(f64, f64), UnitProblem> {
    let text = text.trim();
    let (value, rest) = number(text).ok_or(UnitProblem::NoNumber)?;
    let unit = rest.trim();
    if unit.is_empty() {
        return Err(UnitProblem::NoUnit);
    }
    match units.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => Ok((value, *factor)),
        None => Err(UnitProblem::WrongUnit(unit.to_owned())),
    }
}

/// A duration in nanoseconds: `10s`, `250ms`, `1m30s`, `-1h`.
///
/// # Errors
/// What is wrong with the text.
pub fn duration(text: &str) -> Result<i64, UnitProblem> {
    let text = text.trim();
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut total = 0.0;
    if rest.is_empty() {
        return Err(UnitProblem::NoNumber);
    }
    while !rest.is_empty() {
        let (value, after) = number(rest).ok_or(UnitProblem::NoNumber)?;
        let after = after.trim_start();
        let end = after.find(|c: char| c.is_ascii_digit() || c.is_whitespace()).unwrap_or(after.len());
        let unit = &after[..end];
        if unit.is_empty() {
            return Err(UnitProblem::NoUnit);
        }
        let Some((_, factor)) = DURATION_UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(UnitProblem::WrongUnit(unit.to_owned()));
        };
        total += value * factor;
        rest = after[end..].trim_start();
    }
    // 292 years of nanoseconds fit; beyond 100 years it is a slip of the finger.
    if total > 3.2e18 {
        return Err(UnitProblem::OutOfRange("it is longer than a century".to_owned()));
    }
    let ns = total.round() as i64;
    Ok(if negative { -ns } else { ns })
}

/// A rate per second: `500/s`, `30/m`.
///
/// # Errors
/// What is wrong with the text.
pub fn rate(text: &str) -> Result<f64, UnitProblem> {
    let (value, seconds) = one(text, RATE_UNITS)?;
    let rate = value / seconds;
    if rate <= 0.0 || rate > 1e9 {
        return Err(UnitProblem::OutOfRange("a rate must be above zero and at most 1,000,000,000/s".to_owned()));
    }
    Ok(rate)
}

/// A number of bytes: `1GiB`, `64KiB`, `1MB`.
///
/// # Errors
/// What is wrong with the text.
pub fn bytes(text: &str) -> Result<u64, UnitProblem> {
    let (value, factor) = one(text, BYTE_UNITS)?;
    let bytes = value * factor;
    if bytes > 9.0e15 {
        return Err(UnitProblem::OutOfRange("it is more than nine petabytes".to_owned()));
    }
    Ok(bytes.round() as u64)
}

/// A share as a ratio: `12.5%` is 0.125.
///
/// # Errors
/// What is wrong with the text.
pub fn percent(text: &str) -> Result<f64, UnitProblem> {
    // Divided, not multiplied: 115/100 is the number nearest to 1.15, 115 × 0.01 is not.
    one(text, PERCENT_UNITS).map(|(value, _)| value / 100.0)
}

/// A ratio as a percentage for people: 0.125 is `12.5 %`.
pub fn as_percent(ratio: f64) -> String {
    format!("{} %", (ratio * 1e6).round() / 1e4)
}

/// Nanoseconds as a study writes them: `20s`, `250ms`, `1m30s`.
pub fn as_duration(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    for (unit, size) in [("h", 3_600_000_000_000_u64), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000)] {
        if ns >= size {
            let (whole, rest) = (ns / size, ns % size);
            let tail = if rest == 0 { String::new() } else { as_duration(i64::try_from(rest).unwrap_or(i64::MAX)) };
            return format!("{sign}{whole}{unit}{tail}");
        }
    }
    if ns.is_multiple_of(1_000) { format!("{sign}{}us", ns / 1_000) } else { format!("{sign}{ns}ns") }
}

/// Bytes with the largest binary unit that leaves no rest: `2GiB`.
pub fn as_bytes(bytes: u64) -> String {
    for (unit, size) in [("TiB", 1_u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes >= size && bytes.is_multiple_of(size) {
            return format!("{}{unit}", bytes / size);
        }
    }
    if bytes >= 1 << 30 { format!("{:.1}GiB", bytes as f64 / (1_u64 << 30) as f64) } else { format!("{bytes}B") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations() {
        for (text, ns) in [
            ("10s", 10_000_000_000),
            ("250ms", 250_000_000),
            ("1m30s", 90_000_000_000),
            ("-1h", -3_600_000_000_000),
            ("1.5s", 1_500_000_000),
            ("10 s", 10_000_000_000),
            ("0s", 0),
            ("7µs", 7_000),
        ] {
            assert_eq!(duration(text), Ok(ns), "{text}");
        }
        assert_eq!(duration("10"), Err(UnitProblem::NoUnit));
        assert_eq!(duration("s"), Err(UnitProblem::NoNumber));
        assert_eq!(duration("10 sec"), Err(UnitProblem::WrongUnit("sec".into())));
        assert_eq!(duration("1GiB"), Err(UnitProblem::WrongUnit("GiB".into())));
        for text in ["", "-", "9999999999999d", "1.2.3s", "é"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn reads_rates_bytes_and_percents() {
        assert_eq!(rate("500/s"), Ok(500.0));
        assert_eq!(rate("30/m"), Ok(0.5));
        assert!(rate("0/s").is_err() && rate("500").is_err() && rate("5%").is_err());
        assert_eq!(bytes("1GiB"), Ok(1 << 30));
        assert_eq!(bytes("64KiB"), Ok(65_536));
        assert_eq!(bytes("1MB"), Ok(1_000_000));
        assert!(bytes("1s").is_err() && bytes("99999999TB").is_err());
        assert_eq!(percent("115%"), Ok(1.15));
        assert_eq!(percent("12.5 %"), Ok(0.125));
        assert!(percent("0.5").is_err());
    }

    #[test]
    fn prints_what_it_reads() {
        for (ns, text) in [(90_000_000_000, "1m30s"), (250_000_000, "250ms"), (-3_600_000_000_000, "-1h"), (0, "0us")] {
            assert_eq!(as_duration(ns), text);
            assert_eq!(duration(text), Ok(ns));
        }
        assert_eq!(as_bytes(2 << 30), "2GiB");
        assert_eq!(as_bytes(1_000), "1000B");
        assert_eq!(as_percent(1.15), "115 %");
        assert_eq!(as_percent(0.125), "12.5 %");
    }
}
