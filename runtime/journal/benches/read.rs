//! Reads a journal of 1,000,000 events: `cargo bench -p journal`. Tells the time, and how much memory grew.
//!
//! The bar: a report in less than 5 s, of which reading is the larger part, and memory that does not grow with the
//! journal.

use std::fs;
use std::time::Instant;

use journal::{
    Environment, Event, Histogram, JOURNAL_VERSION, Journal, LoadFacts, RepetitionFacts, RepetitionId, RunId,
    StreamFacts, read,
};
use plan::{ContentHash, StepId};

const EVENTS: u64 = 1_000_000;
/// One event in so many is a repetition's facts, with histograms as a real one has them.
const MEASURED_EVERY: u64 = 5_000;

fn main() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("journal.jsonl");
    let begin = Instant::now();
    let mut journal = Journal::create(&path).expect("created");
    let plan = ContentHash::of_bytes(b"plan");
    journal
        .append(Event::RunStarted {
            journal: JOURNAL_VERSION.to_owned(),
            run: RunId("bench".into()),
            study: "bench".into(),
            plan,
            environment: Environment::default(),
        })
        .expect("appended");
    let stream = StreamFacts {
        name: "read".into(),
        service: Histogram::of((0..20_000u64).map(|n| 100_000 + n * n % 5_000_000)),
        ..StreamFacts::default()
    };
    let load = LoadFacts { streams: vec![stream; 2], ..LoadFacts::default() };
    let facts = RepetitionFacts { load: Some(load), ..RepetitionFacts::default() };
    for number in 1..EVENTS {
        let event = if number % MEASURED_EVERY == 0 {
            let repetition = RepetitionId { phase: "ceiling".into(), cell: 0, number: number as u32 };
            Event::RepetitionMeasured { repetition, facts: Box::new(facts.clone()) }
        } else {
            Event::StepProgress { step: StepId(3), what: "Step 3/9 : RUN go build".into(), done: number, of: EVENTS }
        };
        journal.append(event).expect("appended");
    }
    journal.sync().expect("synced");
    let bytes = fs::metadata(&path).expect("there").len();
    println!("written  {:>6.2} s  {EVENTS} events, {:.0} MB", begin.elapsed().as_secs_f64(), bytes as f64 / 1e6);

    let (before, begin) = (peak_kib(), Instant::now());
    let (mut records, mut measured) = (0u64, 0u64);
    for record in read(&path).expect("opened") {
        let record = record.expect("as written");
        records += 1;
        measured += u64::from(matches!(record.event, Event::RepetitionMeasured { .. }));
    }
    assert_eq!((records, measured), (EVENTS, (EVENTS - 1) / MEASURED_EVERY));
    let grown = peak_kib().zip(before).map(|(after, before)| after.saturating_sub(before));
    let grown = grown.map_or_else(|| "not known".to_owned(), |kib| format!("{kib} KiB"));
    println!("read     {:>6.2} s  peak memory grew by {grown}", begin.elapsed().as_secs_f64());
}

/// The most memory that this process has had, KiB.
fn peak_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse().ok()
}
