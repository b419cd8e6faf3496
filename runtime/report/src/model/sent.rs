//! How a repetition's load was sent, and the distributions that no figure shows.

use std::collections::BTreeMap;

use journal::{Histogram, LoadFacts};
use serde::{Deserialize, Serialize};

/// What stands in the report of a load beside its figures.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sent {
    /// The generators, where several sent it together or one was elsewhere: who, and how its clock stands to the controller's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<journal::facts::PartFacts>,
    /// Distributions over all streams by name: `failed` (answers that were not as expected), `connect` (opening a connection, where each
    /// request has its own). Those without a value are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spreads: BTreeMap<String, Spread>,
}

impl Sent {
    /// What a load says of itself.
    pub fn of(load: &LoadFacts) -> Self {
        let mut all: BTreeMap<&str, Histogram> = BTreeMap::new();
        for stream in &load.streams {
            for (name, part) in [("failed", Some(&stream.failed)), ("connect", stream.connect.as_ref())] {
                if let Some(part) = part.filter(|part| part.count > 0) {
                    all.entry(name).or_default().merge(part);
                }
            }
        }
        let spreads = all.into_iter().map(|(name, histogram)| (name.to_owned(), Spread::of(&histogram))).collect();
        Self { generators: load.generators.clone(), spreads }
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A distribution of times, ms. A percentile that fewer than ten values lie beyond is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Spread {
    /// Values.
    pub count: u64,
    /// Mean.
    pub mean_ms: Option<f64>,
    /// Median.
    pub p50_ms: Option<f64>,
    /// 99 %.
    pub p99_ms: Option<f64>,
    /// Largest.
    pub max_ms: Option<f64>,
}

impl Spread {
    fn of(histogram: &Histogram) -> Self {
        let ms = |ns: u64| ns as f64 / 1e6;
        let quantile = |q: f64| {
            let beyond = histogram.count as f64 * (1.0 - q);
            (beyond >= 9.999).then(|| histogram.quantile_ns(q).map(ms)).flatten()
        };
        Self {
            count: histogram.count,
            mean_ms: histogram.mean_ns().map(|ns| ns / 1e6),
            p50_ms: quantile(0.5),
            p99_ms: quantile(0.99),
            max_ms: (histogram.count > 0).then_some(ms(histogram.max_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use journal::StreamFacts;

    use super::*;

    #[test]
    fn distributions_are_those_of_all_streams() {
        let stream = |failed: Vec<u64>, connect: Option<u64>| StreamFacts {
            failed: Histogram::of(failed),
            connect: connect.map(|ns| Histogram::of([ns; 10])),
            ..StreamFacts::default()
        };
        let load = LoadFacts {
            streams: vec![stream(vec![2_000_000; 19], None), stream(vec![8_000_000], Some(40_000))],
            ..LoadFacts::default()
        };
        let sent = Sent::of(&load);
        let (failed, connect) = (sent.spreads["failed"], sent.spreads["connect"]);
        assert_eq!((failed.count, failed.max_ms, failed.p99_ms), (20, Some(8.0), None));
        assert!(failed.p50_ms.is_some_and(|ms| (ms - 2.0).abs() < 0.02), "{failed:?}");
        assert_eq!((connect.count, connect.p50_ms), (10, None));
        assert!(Sent::of(&LoadFacts::default()).is_empty());
    }
}
