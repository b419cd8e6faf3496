//! Latencies of one repetition: the histograms of all streams merged, and what figures and gates read from them.
//!
//! They are summed up once, when a record is taken, so that evidence does not grow with the histograms and judging again after
//! every repetition costs no merging. Percentiles come from merged histograms only, never from other percentiles.

use journal::{Histogram, LoadFacts, ToldLatency};
use plan::Metric;

use crate::words;

/// The confidence at which a percentile has to be supported by its number of answers.
pub(crate) const PERCENTILE_CONFIDENCE: f64 = 0.99;

/// The latencies of a repetition, all streams together; `None` where a stream left no histogram.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Latency {
    pub service: Option<Summary>,
    pub ttfb: Option<Summary>,
    pub corrected: Option<Summary>,
    pub send_lag: Option<Summary>,
    /// How long answers waited for the generator to read them, and the service time of the same answers.
    pub receive: Option<(Summary, Summary)>,
}

/// What is read from a merged histogram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    pub count: u64,
    pub mean_ns: Option<f64>,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
}

impl Latency {
    /// Sums up the histograms of a generator's account and empties them.
    pub fn take(load: &mut LoadFacts) -> Self {
        let mut latency = Self {
            service: merged(load.streams.iter().map(|stream| Some(&stream.service))),
            ttfb: merged(load.streams.iter().map(|stream| Some(&stream.ttfb))),
            corrected: merged(load.streams.iter().map(|stream| stream.corrected.as_ref())),
            send_lag: merged(load.streams.iter().map(|stream| stream.send_lag.as_ref())),
            receive: load.generator.receive.as_ref().and_then(|receive| {
                let one = |histogram| merged(std::iter::once(Some(histogram)));
                one(&receive.queue).zip(one(&receive.service))
            }),
        };
        if let Some(receive) = &mut load.generator.receive {
            receive.queue = Histogram::default();
            receive.service = Histogram::default();
        }
        if let Some(tool) = &load.tool {
            // A tool leaves the histograms empty of what it can't give.
            for latency in [&mut latency.service, &mut latency.ttfb] {
                *latency = latency.take().filter(|summary| summary.count > 0);
            }
            latency.corrected = tool.percentiles.get(Metric::CorrectedP50.latency()).map(Summary::told);
            latency.service = latency.service.or(tool.percentiles.get(Metric::ServiceP50.latency()).map(Summary::told));
            latency.ttfb = latency.ttfb.or(tool.percentiles.get(Metric::TtfbP99.latency()).map(Summary::told));
        }
        for stream in &mut load.streams {
            stream.service = Histogram::default();
            stream.ttfb = Histogram::default();
            stream.failed = Histogram::default();
            stream.corrected = None;
            stream.send_lag = None;
            stream.own_lag = None;
        }
        latency
    }
}

impl Summary {
    /// The median in ms.
    ///
    /// # Errors
    /// When there is no histogram, or too few answers for the percentile.
    pub fn p50_ms(summary: Option<&Self>) -> Result<f64, String> {
        percentile(summary, 0.5, |summary| summary.p50_ns)
    }

    /// The 99th percentile in ms; see [`Summary::p50_ms`].
    pub fn p99_ms(summary: Option<&Self>) -> Result<f64, String> {
        percentile(summary, 0.99, |summary| summary.p99_ns)
    }

    /// The 99.9th percentile in ms; see [`Summary::p50_ms`].
    pub fn p999_ms(summary: Option<&Self>) -> Result<f64, String> {
        percentile(summary, 0.999, |summary| summary.p999_ns)
    }

    /// The median in ns, however few values there are; `None` of none.
    pub fn any_p50_ns(&self) -> Option<u64> {
        self.p50_ns
    }

    /// What a tool told, which has no distribution.
    fn told(told: &ToldLatency) -> Self {
        Self {
            count: told.count,
            mean_ns: told.mean_ns,
            p50_ns: told.p50_ns,
            p99_ns: told.p99_ns,
            p999_ns: told.p999_ns,
        }
    }

    /// The 99th percentile in ns, however few values there are; `None` of none.
    pub fn any_p99_ns(&self) -> Option<u64> {
        self.p99_ns
    }
}

/// A percentile in ms, where the number of answers supports it: with as few as `least_answers`, a share q in time could
/// still be shown at 99 % confidence.
fn percentile(summary: Option<&Summary>, q: f64, of: fn(&Summary) -> Option<u64>) -> Result<f64, String> {
    let summary = summary.ok_or_else(|| "a stream left no histogram".to_owned())?;
    let name = words::number(q * 100.0);
    let least = stats::slo::least_answers(0, q, PERCENTILE_CONFIDENCE).unwrap_or(u64::MAX);
    if summary.count < least {
        return Err(format!(
            "p{name} needs at least {} answers, there were {}",
            words::count(least),
            words::count(summary.count)
        ));
    }
    of(summary).map(|ns| ns as f64 / 1e6).ok_or_else(|| format!("p{name} of no answers"))
}

/// The histograms of all streams, merged and summed up. `None` where a stream has none.
fn merged<'a>(histograms: impl Iterator<Item = Option<&'a Histogram>>) -> Option<Summary> {
    let mut all = Histogram::default();
    for histogram in histograms {
        merge(&mut all, histogram?);
    }
    Some(Summary {
        count: all.count,
        mean_ns: all.mean_ns(),
        p50_ns: all.quantile_ns(0.5),
        p99_ns: all.quantile_ns(0.99),
        p999_ns: all.quantile_ns(0.999),
    })
}

/// As [`Histogram::merge`], but saturating: a journal that was tampered with must not end the program.
pub(crate) fn merge(into: &mut Histogram, other: &Histogram) {
    if into.count.checked_add(other.count).is_none() || into.sum_ns.checked_add(other.sum_ns).is_none() {
        return;
    }
    let fits = |histogram: &Histogram| {
        histogram.buckets.iter().all(|(index, _)| *index < MAX_BUCKET)
            && histogram.buckets.iter().try_fold(0u64, |sum, (_, count)| sum.checked_add(*count)).is_some()
    };
    if fits(into) && fits(other) {
        let total = |histogram: &Histogram| histogram.buckets.iter().map(|(_, count)| count).sum::<u64>();
        if total(into).checked_add(total(other)).is_some() {
            into.merge(other);
        }
    }
}

/// The witness's samples, each at the middle of its bucket.
pub(crate) fn witness(samples: &Histogram) -> stats::Witness {
    stats::Witness::new(samples.buckets.iter().filter(|(index, _)| *index < MAX_BUCKET).map(|&(index, count)| {
        let (low, high) = Histogram::bounds(index);
        (f64::midpoint(low as f64, high as f64), count)
    }))
}

/// No value of 64 bits falls into this bucket or a later one.
const MAX_BUCKET: u32 = Histogram::index(u64::MAX) + 1;
