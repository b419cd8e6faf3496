//! Latencies as an HdrHistogram log, which HdrHistogram's own tools read. The only user of `hdrhistogram`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use journal::facts::{Histogram, StreamFacts};

/// Significant digits of the log's histograms: finer than ours, so that nothing more is lost.
const DIGITS: u8 = 3;
/// Largest value, ns: a day.
const LARGEST: u64 = 86_400_000_000_000;
/// Values are written in ns; the largest of an interval, for people, in ms, as HdrHistogram's tools do.
const NS_PER_MS: f64 = 1e6;

/// A log in a file.
pub type FileLog = Log<BufWriter<File>>;

/// A log that is being written.
pub struct Log<W> {
    out: W,
}

impl Log<BufWriter<File>> {
    /// Begins a log in a file, for a window that began then.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn create(path: &Path, started: SystemTime, what: &str) -> std::io::Result<Self> {
        Log::begin(BufWriter::new(File::create(path)?), started, what)
    }
}

impl<W: Write> Log<W> {
    fn begin(mut out: W, started: SystemTime, what: &str) -> std::io::Result<Self> {
        let since = started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64();
        writeln!(out, "#[Histogram log format version 1.3]")?;
        writeln!(
            out,
            "#[Logged with exp {}: {}, values in ns]",
            env!("CARGO_PKG_VERSION"),
            what.replace(['\n', '\r'], " ")
        )?;
        writeln!(out, "#[StartTime: {since:.3} (seconds since epoch)]")?;
        // Stamps count from there on.
        writeln!(out, "#[BaseTime: {since:.3} (seconds since epoch)]")?;
        writeln!(out, "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"")?;
        Ok(Self { out })
    }

    /// Adds an interval, by its instants since the window's beginning: a line for each kind of latency, tagged by its name.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn add(&mut self, from_ns: u64, to_ns: u64, stream: &StreamFacts) -> std::io::Result<()> {
        let kinds = [
            ("service", Some(&stream.service)),
            ("ttfb", Some(&stream.ttfb)),
            ("corrected", stream.corrected.as_ref()),
            ("send-lag", stream.send_lag.as_ref()),
            ("failed", Some(&stream.failed).filter(|failed| failed.count > 0)),
        ];
        for (tag, histogram) in kinds {
            let Some(histogram) = histogram else { continue };
            let encoded = encode(histogram).map_err(std::io::Error::other)?;
            writeln!(
                self.out,
                "Tag={tag},{:.3},{:.3},{:.6},{encoded}",
                from_ns as f64 / 1e9,
                to_ns.saturating_sub(from_ns) as f64 / 1e9,
                histogram.max_ns as f64 / NS_PER_MS,
            )?;
        }
        Ok(())
    }

    /// Ends the log.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn end(mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// A histogram in the compressed form (V2), in base64.
fn encode(histogram: &Histogram) -> Result<String, String> {
    let mut hdr = Hdr::<u64>::new_with_bounds(1, LARGEST, DIGITS).map_err(|error| error.to_string())?;
    for &(index, count) in &histogram.buckets {
        let value = Histogram::bounds(index).1.min(histogram.max_ns).min(LARGEST);
        hdr.record_n(value, count).map_err(|error| error.to_string())?;
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&hdr, &mut bytes).map_err(|error| error.to_string())?;
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    #[test]
    fn a_log_reads_back_with_its_tags_times_and_percentiles() {
        let service = Histogram::of((1..=100_000u64).map(|n| n * 1_000));
        let stream = StreamFacts {
            service: service.clone(),
            corrected: Some(Histogram::of([5_000_000_000, 7])),
            ..StreamFacts::default()
        };
        let mut bytes = Vec::new();
        let start = SystemTime::UNIX_EPOCH + Duration::from_millis(1_790_000_000_250);
        let mut log = Log::begin(&mut bytes, start, "GET\nhttp://x").expect("a log");
        log.add(0, 1_000_000_000, &stream).expect("an interval");
        log.add(1_000_000_000, 1_500_000_000, &StreamFacts::default()).expect("an interval");
        log.end().expect("an end");
        let entries: Vec<_> = IntervalLogIterator::new(&bytes).collect::<Result<_, _>>().expect("a log");
        let mut intervals = Vec::new();
        for entry in &entries {
            match entry {
                LogEntry::Interval(interval) => intervals.push(interval),
                LogEntry::BaseTime(at) | LogEntry::StartTime(at) => assert_eq!(at.as_millis(), 1_790_000_000_250),
            }
        }
        let tags: Vec<_> =
            intervals.iter().map(|interval| interval.tag().map(|tag| tag.as_str()).unwrap_or_default()).collect();
        assert_eq!(tags, ["service", "ttfb", "corrected", "service", "ttfb"]);
        assert_eq!(intervals[3].start_timestamp(), Duration::from_secs(1));
        assert_eq!(intervals[3].duration(), Duration::from_millis(500));
        let coded = base64::engine::general_purpose::STANDARD.decode(intervals[0].encoded_histogram()).expect("base64");
        let read: Hdr<u64> = Deserializer::new().deserialize(&mut coded.as_slice()).expect("a histogram");
        assert_eq!(read.len(), service.count);
        for q in [0.5, 0.9, 0.99, 0.999] {
            let (ours, theirs) = (service.quantile_ns(q).expect("values") as f64, read.value_at_quantile(q) as f64);
            assert!((theirs / ours - 1.0).abs() < 0.002, "{q}: {ours} {theirs}");
        }
    }
}
