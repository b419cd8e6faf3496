//! What is told while a load runs: intervals of all generators, gathered for the live view and the HDR log.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use console::Term;
use journal::facts::{Histogram, StreamFacts};
use load::alone::grouped;
use load::sys;
use load::wire::{Interval, Job};

use super::hdr::FileLog;

/// Pause between two pictures of the live view.
pub const PICTURE: Duration = Duration::from_millis(250);
/// Widest line of the live view.
const WIDEST: usize = 100;

/// Puts the intervals of several generators together.
pub struct Gathered {
    generators: usize,
    /// When each generator's window began, on its own clock.
    began_ns: Vec<Option<u64>>,
    /// Intervals that some generators have not told yet.
    open: BTreeMap<u64, Together>,
    log: Option<(FileLog, u64)>,
    /// The log's interval that is being filled.
    filling: Option<Together>,
    failed: Option<io::Error>,
    picture: Picture,
}

/// One interval of all generators; times are since the window's beginning.
#[derive(Debug, Clone, Default)]
struct Together {
    told: usize,
    from_ns: u64,
    to_ns: u64,
    stream: StreamFacts,
}

impl Gathered {
    /// Gathers for a load by this many generators; the log's interval is in ns.
    pub fn new(generators: usize, job: &Job, at_ns: u64, log: Option<(FileLog, u64)>) -> Self {
        Self {
            generators,
            began_ns: vec![None; generators],
            open: BTreeMap::new(),
            log,
            filling: None,
            failed: None,
            picture: Picture::new(job, at_ns),
        }
    }

    /// Takes an interval of a generator.
    pub fn take(&mut self, generator: usize, interval: Interval) {
        let Some(began) = self.began_ns.get_mut(generator) else { return };
        let began = *began.get_or_insert(interval.from_ns);
        let number = interval.number;
        let entry = self.open.entry(number).or_default();
        entry.from_ns = interval.from_ns.saturating_sub(began);
        entry.to_ns = entry.to_ns.max(interval.to_ns.saturating_sub(began));
        entry.told += 1;
        for stream in interval.streams {
            load::add_stream(&mut entry.stream, stream);
        }
        if entry.told == self.generators
            && let Some(whole) = self.open.remove(&number)
        {
            self.picture.take(&whole);
            self.fill(whole);
        }
    }

    fn fill(&mut self, part: Together) {
        let Some((_, every_ns)) = &self.log else { return };
        let every_ns = *every_ns;
        let filling = self.filling.get_or_insert_with(|| Together { from_ns: part.from_ns, ..Together::default() });
        filling.to_ns = part.to_ns;
        load::add_stream(&mut filling.stream, part.stream);
        // Half a picture early is on time: intervals of the view rarely end to the nanosecond.
        if filling.to_ns - filling.from_ns + 1_000_000 >= every_ns {
            self.write();
        }
    }

    fn write(&mut self) {
        if let (Some((log, _)), Some(filled)) = (&mut self.log, self.filling.take())
            && let Err(error) = log.add(filled.from_ns, filled.to_ns, &filled.stream)
        {
            self.failed.get_or_insert(error);
        }
    }

    /// Writes what is left, also of generators that ended at different intervals.
    ///
    /// # Errors
    /// When the log could not be written.
    pub fn end(mut self) -> io::Result<()> {
        for (_, rest) in std::mem::take(&mut self.open) {
            self.fill(rest);
        }
        self.write();
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.log.map_or(Ok(()), |(log, _)| log.end())
    }
}

/// What the live view shows.
struct Picture {
    at_ns: u64,
    warm_up_ns: u64,
    window_ns: u64,
    requests: Option<u64>,
    all: StreamFacts,
    seconds: f64,
    now_per_second: f64,
}

impl Picture {
    fn new(job: &Job, at_ns: u64) -> Self {
        Self {
            at_ns,
            warm_up_ns: job.warm_up_ns,
            window_ns: job.window_ns,
            requests: job.requests,
            all: StreamFacts::default(),
            seconds: 0.0,
            now_per_second: 0.0,
        }
    }

    fn take(&mut self, interval: &Together) {
        let seconds = interval.to_ns.saturating_sub(interval.from_ns) as f64 / 1e9;
        if seconds > 0.01 {
            self.now_per_second = interval.stream.census.ok as f64 / seconds;
        }
        self.seconds = interval.to_ns as f64 / 1e9;
        load::add_stream(&mut self.all, interval.stream.clone());
    }

    /// The picture at an instant, in lines that fit a terminal of this width.
    fn lines(&self, now_ns: u64, width: usize) -> Vec<String> {
        let width = width.min(WIDEST);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let start = self.at_ns + self.warm_up_ns;
        let mut lines = Vec::new();
        if now_ns < start {
            lines.push(format!("  warming up, {:.1} s left", seconds(start - now_ns)));
            return lines;
        }
        let gone = (now_ns - start).min(self.window_ns);
        let census = &self.all.census;
        let (share, words) = match self.requests {
            Some(requests) => (
                census.sent as f64 / requests as f64,
                format!("{} of {} requests", grouped(census.sent as f64), grouped(requests as f64)),
            ),
            None if gone == self.window_ns => (1.0, "waiting for the last answers".to_owned()),
            None => (
                gone as f64 / self.window_ns as f64,
                format!(
                    "{:.1} of {:.1} s, {:.1} s left",
                    seconds(gone),
                    seconds(self.window_ns),
                    seconds(self.window_ns - gone)
                ),
            ),
        };
        let room = width.saturating_sub(words.chars().count() + 4).min(30);
        let full = (share.clamp(0.0, 1.0) * room as f64).round() as usize;
        lines.push(format!("  {}{} {words}", "█".repeat(full), "░".repeat(room - full)));
        let so_far = if self.seconds > 0.0 { census.ok as f64 / self.seconds } else { 0.0 };
        let lost = census.failed + census.timed_out + census.unanswered;
        lines.push(format!(
            "  {}/s now, {}/s so far, {} failed",
            grouped(self.now_per_second),
            grouped(so_far),
            grouped(lost as f64)
        ));
        let kinds = [
            ("service", Some(&self.all.service)),
            ("ttfb", Some(&self.all.ttfb)),
            ("corrected", self.all.corrected.as_ref()),
        ];
        for (name, histogram) in kinds {
            let Some(histogram) = histogram else { continue };
            lines.push(format!("  {name:<10} p50 {:>9}  p99 {:>9} ms", at(histogram, 0.5), at(histogram, 0.99)));
        }
        if let Some((reason, count)) = self.all.failures.iter().max_by_key(|(_, count)| **count) {
            lines.push(format!("  {} × {reason}", grouped(*count as f64)));
        }
        for line in &mut lines {
            *line = console::truncate_str(line, width.saturating_sub(1), "…").into_owned();
        }
        lines
    }
}

fn at(histogram: &Histogram, q: f64) -> String {
    histogram.quantile_ns(q).map_or("–".to_owned(), |ns| format!("{:.3}", ns as f64 / 1e6))
}

/// Takes intervals until nobody tells any more; on a terminal it draws a picture a few times a second, and wipes it at the end.
pub fn follow(mut gathered: Gathered, told: &Receiver<(usize, Interval)>, terminal: Option<&Term>) -> Gathered {
    let mut drawn = 0;
    let mut last = 0;
    let wipe = |drawn: usize| {
        if let Some(terminal) = terminal
            && drawn > 0
        {
            // A terminal that can't be written to shows nothing, which harms nothing else.
            let _ = terminal.clear_last_lines(drawn);
        }
    };
    loop {
        match told.recv_timeout(PICTURE) {
            Ok((generator, interval)) => gathered.take(generator, interval),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let now = sys::now_ns();
        if let Some(terminal) = terminal
            && now - last >= PICTURE.as_nanos() as u64 - 10_000_000
        {
            last = now;
            let width = usize::from(terminal.size().1);
            let lines = gathered.picture.lines(now, width);
            wipe(drawn);
            drawn = lines.len();
            let _ = terminal.write_str(&(lines.join("\n") + "\n"));
        }
    }
    wipe(drawn);
    gathered
}

#[cfg(test)]
mod tests {
    use journal::facts::Census;

    use super::*;

    fn job(requests: Option<u64>) -> Job {
        let options =
            load::alone::Options { url: "http://127.0.0.1/".into(), requests, warm_up_ns: 0, ..Default::default() };
        Job { warm_up_ns: 2_000_000_000, ..load::alone::job(&options).expect("a job") }
    }

    fn interval(number: u64, began: u64, ok: u64) -> Interval {
        Interval {
            number,
            from_ns: began + number * 250_000_000,
            to_ns: began + (number + 1) * 250_000_000,
            streams: vec![StreamFacts {
                census: Census { sent: ok, ok, failed: 1, ..Census::default() },
                failures: [(
                    "status 503, and the reason is a very long one that no narrow terminal has room for".to_owned(),
                    1,
                )]
                .into(),
                service: Histogram::of((0..ok).map(|n| n * 1_000)),
                ..StreamFacts::default()
            }],
        }
    }

    #[test]
    fn intervals_of_two_generators_with_clocks_of_their_own_make_one_picture() {
        let mut gathered = Gathered::new(2, &job(None), 0, None);
        for number in 0..4 {
            gathered.take(0, interval(number, 1_000, 1_000));
            gathered.take(1, interval(number, 777_000_000_000, 500));
        }
        for width in [30, 50, 80, 200] {
            let lines = gathered.picture.lines(3_000_000_000, width);
            assert!(lines.iter().all(|line| line.chars().count() < width), "{width}: {lines:#?}");
            assert!(width < 50 || lines[1].contains("6,000/s now, 6,000/s so far, 8 failed"), "{lines:#?}");
            assert!(lines.iter().any(|line| line.starts_with("  8 × status 503")), "{lines:#?}");
        }
        assert!(gathered.picture.lines(3_000_000_000, 80)[0].ends_with("1.0 of 10.0 s, 9.0 s left"));
        assert_eq!(gathered.picture.lines(500_000_000, 80), ["  warming up, 1.5 s left"]);
        assert!(gathered.picture.lines(99_000_000_000, 80)[0].ends_with("waiting for the last answers"));
    }

    #[test]
    fn a_number_of_requests_is_its_own_progress() {
        let mut gathered = Gathered::new(1, &job(Some(4_000)), 0, None);
        gathered.take(0, interval(0, 5, 1_000));
        assert!(gathered.picture.lines(3_000_000_000, 80)[0].ends_with("1,000 of 4,000 requests"));
    }
}
