//! What is written comes back; what is damaged is refused by name; what a killed run left unfinished is cut off.

use std::fs;
use std::path::{Path, PathBuf};

use journal::{
    Environment, Event, Failure, Histogram, Journal, JournalError, LoadFacts, PgbenchFacts, Record, RepetitionFacts,
    RepetitionId, RunEnd, RunId, StepEnd, StreamFacts, Torn, read,
};
use plan::{ContentHash, StepId};

fn clock() -> u64 {
    1_900_000_000_000_000_000
}

fn started() -> Event {
    Event::RunStarted {
        journal: journal::JOURNAL_VERSION.to_owned(),
        run: RunId("2026-11-30-1412-k7".into()),
        study: "capacity".into(),
        plan: ContentHash::of_bytes(b"plan"),
        environment: Environment { exp: "0.1.0".into(), ..Environment::default() },
    }
}

fn progress(done: u64) -> Event {
    Event::StepProgress { step: StepId(3), what: "Step 3/9 : RUN go build\n\"quoted\"".into(), done, of: 9 }
}

fn measured(throughput: f64) -> Event {
    let stream = StreamFacts { name: "read".into(), service: Histogram::of(1..5_000), ..StreamFacts::default() };
    let load = LoadFacts { rate: Some(throughput), streams: vec![stream], ..LoadFacts::default() };
    Event::RepetitionMeasured {
        repetition: RepetitionId { phase: "ceiling".into(), cell: 2, number: 1 },
        facts: Box::new(RepetitionFacts { load: Some(load), ..RepetitionFacts::default() }),
    }
}

fn events() -> Vec<Event> {
    let failure = Failure { what: "no".into(), ..Failure::default() };
    vec![
        started(),
        Event::StepStarted { step: StepId(3) },
        progress(1),
        progress(2),
        Event::StepFinished { step: StepId(3), end: StepEnd::Failed(failure), took_ns: 7 },
        measured(1_000.25),
        Event::RunEnded { end: RunEnd::Interrupted },
    ]
}

/// A journal of `events()` in a directory of its own.
fn written() -> (tempfile::TempDir, PathBuf, Vec<Record>) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("journal.jsonl");
    let mut journal = Journal::create_with_clock(&path, clock).expect("created");
    let records = events().into_iter().map(|event| journal.append(event).expect("appended")).collect();
    (directory, path, records)
}

fn all(path: &Path) -> Result<Vec<Record>, JournalError> {
    read(path)?.collect()
}

#[test]
fn what_is_written_comes_back() {
    let (_directory, path, records) = written();
    assert_eq!(all(&path).expect("read"), records);
    assert_eq!(records.iter().map(|record| record.event.clone()).collect::<Vec<_>>(), events());
    assert!(records.iter().enumerate().all(|(n, record)| (record.seq, record.at_ns) == (n as u64, clock())));
    let told = Journal::create(&path).expect_err("it exists").to_string();
    assert!(told.contains("never overwritten"), "{told}");
    assert_eq!(all(&path).expect("untouched"), records);
}

#[test]
fn every_event_is_in_the_file_before_append_returns() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("journal.jsonl");
    let mut journal = Journal::create_with_clock(&path, clock).expect("created");
    for (n, event) in events().into_iter().enumerate() {
        let record = journal.append(event).expect("appended");
        let there = all(&path).expect("read");
        assert_eq!((there.len(), there.last()), (n + 1, Some(&record)));
    }
    journal.sync().expect("synced");
}

#[test]
fn a_write_cut_off_anywhere_loses_only_what_nobody_was_shown() {
    let (_directory, path, records) = written();
    let text = fs::read(&path).expect("read");
    let last_line = text[..text.len() - 1].iter().rposition(|&byte| byte == b'\n').expect("several lines") + 1;
    for cut in last_line..text.len() {
        fs::write(&path, &text[..cut]).expect("cut");
        let mut reader = read(&path).expect("opened");
        let kept: Vec<_> = (&mut reader).collect::<Result<_, _>>().expect("whole lines");
        assert_eq!(kept, records[..records.len() - 1], "cut at {cut}");
        let torn = (cut > last_line).then(|| Torn { line: records.len() as u64, bytes: (cut - last_line) as u64 });
        assert_eq!(reader.torn(), torn.as_ref());

        let mut again = Journal::reopen_with_clock(&path, clock).expect("reopened");
        assert_eq!((&again.records, &again.torn), (&kept, &torn));
        let next = again.journal.append(Event::RunEnded { end: RunEnd::Completed }).expect("appended");
        assert_eq!(next.seq, records.len() as u64 - 1);
        assert_eq!(all(&path).expect("whole again").last(), Some(&next));
    }
}

#[test]
fn a_run_killed_before_its_first_event_starts_anew() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("journal.jsonl");
    for left in ["", "{\"seq\":0,\"at"] {
        fs::write(&path, left).expect("written");
        assert!(matches!(all(&path), Err(JournalError::Empty { .. })), "{left}");
        let mut again = Journal::reopen(&path).expect("reopened");
        assert!(again.records.is_empty());
        assert_eq!(again.journal.append(started()).expect("appended").seq, 0);
        drop(again);
        assert_eq!(all(&path).expect("read").len(), 1);
    }
}

/// Each damage is refused by the line's number; the undamaged twin is `what_is_written_comes_back`.
#[test]
fn damage_anywhere_else_is_refused_with_its_line() {
    let (_directory, path, _) = written();
    let text = fs::read_to_string(&path).expect("read");
    let lines: Vec<&str> = text.lines().collect();
    let join = |lines: &[&str]| lines.join("\n") + "\n";
    let without = |n: usize| join(&[&lines[..n], &lines[n + 1..]].concat());
    let replaced = |n: usize, by: &str| join(&[&lines[..n], &[by], &lines[n + 1..]].concat());
    let newer = lines[1].replace("step-started", "step-paused");
    for (name, damaged, line, says) in [
        ("a line is missing", without(2), 3, "has number 3 where 2 is due"),
        ("a line is there twice", replaced(2, lines[1]), 3, "has number 1 where 2 is due"),
        ("the first line is missing", without(0), 1, "has number 1 where 0 is due"),
        ("half a line in the middle", replaced(3, &lines[3][..lines[3].len() / 2]), 4, "not a record"),
        ("the last line is finished, but is no record", replaced(6, "{}"), 7, "not a record"),
        ("an empty line", replaced(1, ""), 2, "not a record"),
        ("zeros", replaced(1, "\0\0\0"), 2, "not a record"),
        ("an event that this version does not know", replaced(1, &newer), 2, "unknown variant `step-paused`"),
        ("another first event", replaced(0, &lines[1].replace("\"seq\":1", "\"seq\":0")), 1, "does not start a run"),
    ] {
        fs::write(&path, &damaged).expect("written");
        let error = all(&path).expect_err(name);
        let told = error.to_string();
        assert!(matches!(&error, JournalError::Damaged { line: at, .. } if *at == line), "{name}: {told}");
        assert!(told.contains(says) && told.contains("journal.jsonl"), "{name}: {told}");
        assert!(Journal::reopen(&path).is_err(), "{name}");
        assert_eq!(fs::read_to_string(&path).expect("read"), damaged, "{name}: reopening changes nothing");
    }
}

#[test]
fn another_major_version_is_refused_and_another_minor_one_is_not() {
    let (_directory, path, records) = written();
    let text = fs::read_to_string(&path).expect("read");
    let version = format!("\"journal\":\"{}\"", journal::JOURNAL_VERSION);
    assert!(text.contains(&version));
    // Unknown fields come with a newer minor version.
    fs::write(&path, text.replace(&version, "\"journal\":\"1.99\",\"mood\":\"good\"")).expect("written");
    assert_eq!(all(&path).expect("readable").len(), records.len());
    // Another major version may look like anything after its first event.
    fs::write(&path, text.replace(&version, "\"journal\":\"3.1\"").replace("\"study\"", "\"topic\"")).expect("written");
    let told = all(&path).expect_err("another version").to_string();
    assert!(told.contains("format 3.1") && told.contains("reads 1.x") && told.contains("exp 0.1.0"), "{told}");
}

#[test]
fn two_runs_never_write_one_journal() {
    let (_directory, path, _) = written();
    let held = Journal::reopen(&path).expect("reopened");
    assert!(matches!(Journal::reopen(&path), Err(JournalError::Held { .. })));
    assert!(all(&path).is_ok(), "reading needs no lock");
    drop(held);
    assert!(Journal::reopen(&path).is_ok());
}

/// JSON has no NaN: a fact that must be a number is refused, an optional one is missing, live as in a replay.
#[test]
fn a_number_that_json_cannot_hold_never_becomes_another() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("journal.jsonl");
    let mut journal = Journal::create(&path).expect("created");
    journal.append(started()).expect("appended");
    let pgbench = PgbenchFacts { tps: f64::NAN, ..PgbenchFacts::default() };
    let refused = journal.append(Event::RepetitionMeasured {
        repetition: RepetitionId { phase: "database-ceiling".into(), cell: 0, number: 1 },
        facts: Box::new(RepetitionFacts { pgbench: Some(pgbench), ..RepetitionFacts::default() }),
    });
    assert!(matches!(refused, Err(JournalError::Unstorable { seq: 1, .. })));
    let shown = journal.append(measured(f64::INFINITY)).expect("the journal still works");
    assert_eq!(all(&path).expect("read").last(), Some(&shown));
    let Event::RepetitionMeasured { facts, .. } = &shown.event else { panic!("another event") };
    assert_eq!(facts.load.as_ref().map(|load| load.rate), Some(None));
}
