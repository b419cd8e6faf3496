//! `docs/journal.md` says what the types say: its examples are real lines, and it names every event and every fact.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use journal::{
    CaseOutcome, Event, Failure, Finding, Histogram, Record, RepetitionId, RunEnd, RunId, Stage, Stall, StepEnd,
};
use plan::{ContentHash, StepId};
use serde_json::Value;

use crate::support::facts::{Reading, load, pgbench};
use crate::support::scribe::environment;
use crate::support::{check, conclude};

/// One event of each kind, with what it means. A new kind of event doesn't compile here until it has its line.
fn events() -> Vec<(Event, &'static str)> {
    let repetition = || RepetitionId { phase: "ceiling".to_owned(), cell: 2, number: 1 };
    let hash = || ContentHash::of_bytes(b"example");
    let failure = || Failure {
        what: "go was not ready within 15 s: GET /healthz never answered 2xx".to_owned(),
        why: "its process ended with exit code 1".to_owned(),
        next: "read its log".to_owned(),
        log: vec!["panic: no DATABASE_URL".to_owned()],
    };
    let levels = || [("candidate".to_owned(), "go".to_owned()), ("cores".to_owned(), "1".to_owned())].into();
    let events = vec![
        Event::RunStarted {
            journal: journal::JOURNAL_VERSION.to_owned(),
            run: RunId("2026-11-30-1412-k7".to_owned()),
            study: "capacity".to_owned(),
            plan: hash(),
            environment: environment(true, "0-1"),
        },
        Event::RunResumed { plan: hash(), environment: environment(true, "0-1"), kept: 12, superseded: 1 },
        Event::NotMeasured {
            candidate: "frankenphp".to_owned(),
            why: "its image can't be pulled".to_owned(),
            mend: "docker pull dunglas/frankenphp".to_owned(),
        },
        Event::StepStarted { step: StepId(3) },
        Event::StepProgress { step: StepId(3), what: "Step 3/9 : RUN go build".to_owned(), done: 3, of: 9 },
        Event::StepFinished {
            step: StepId(3),
            end: StepEnd::Done { detail: "1,000,000 rows, locked".to_owned() },
            took_ns: 11_300_000_000,
        },
        Event::ContractChecked {
            candidate: "go".to_owned(),
            cases: vec![CaseOutcome {
                case: "expired token".to_owned(),
                problem: Some("expected 401, got 200".to_owned()),
            }],
        },
        Event::RepetitionStarted { repetition: repetition(), hash: hash(), levels: levels() },
        Event::RepetitionStage { repetition: repetition(), stage: Stage::Measuring, expected_ns: 3_000_000_000 },
        Event::RepetitionMeasured { repetition: repetition(), facts: Box::default() },
        Event::RepetitionFailed { repetition: repetition(), failure: failure() },
        Event::RunEnded { end: RunEnd::Completed },
    ];
    events
        .into_iter()
        .map(|event| {
            let meaning = match &event {
                Event::RunStarted { .. } => "The first record. The version of the format stands in `journal`.",
                Event::RunResumed { .. } => {
                    "The run goes on after it was interrupted, perhaps with another plan or place."
                }
                Event::NotMeasured { .. } => "A candidate can't be measured here; the command in `mend` changes that.",
                Event::StepStarted { .. } => "A step of the plan began; `step` is its number in the plan's `steps`.",
                Event::StepProgress { .. } => "A step got on: `done` of `of` (0: unknown).",
                Event::StepFinished { .. } => "A step is over: `done`, `reused`, `failed` or `skipped`.",
                Event::ContractChecked { .. } => "A candidate's contract; `problem` is null where a case passed.",
                Event::RepetitionStarted { .. } => {
                    "A repetition began. Rows whose `hash` is not that of the plan's step no longer count."
                }
                Event::RepetitionStage { .. } => "What a repetition does now.",
                Event::RepetitionMeasured { .. } => "A repetition was measured: its facts, described below.",
                Event::RepetitionFailed { .. } => "A repetition could not be measured.",
                Event::RunEnded { .. } => "The run is over: `completed`, `interrupted` or `failed`.",
            };
            (event, meaning)
        })
        .collect()
}

fn name(event: &Event) -> String {
    match serde_json::to_value(event).expect("an event is JSON") {
        Value::Object(fields) => fields.keys().next().cloned().unwrap_or_default(),
        Value::String(name) => name,
        other => other.to_string(),
    }
}

/// Facts in which every field has a value, so that every name shows.
fn facts() -> journal::RepetitionFacts {
    let reading = Reading {
        rate: 400.0,
        cpu_us: 218.0,
        database_us: 66.0,
        window_s: 3,
        cpus: vec![0],
        all_cpus: vec![0, 1],
        quiet: 1.0,
        open: Some((400.0, 2.0)),
        probe: Some(1.2),
        failed: 0,
        memory: 1 << 20,
        start_ns: 0,
    };
    let mut facts = load(&reading, [("candidate".to_owned(), "go".to_owned())].into());
    facts.pgbench = pgbench(3_200.0, 0, &[0, 1]).pgbench;
    facts.findings.push(Finding { what: "host cpu 1".to_owned(), why: "it has no line in /proc/stat".to_owned() });
    facts.host.frequency_mhz = [(0, (2_800, 2_800))].into();
    let stall = Stall { at_ns: 1, for_ns: 2_000_000 };
    if let Some(pace) = facts.pace.get_mut(&0) {
        pace.stalls.push(stall);
    }
    if let Some(load) = &mut facts.load {
        load.generator.stalls.push(stall);
        load.streams.truncate(1);
        load.streams[0].failures = [("status 502".to_owned(), 1)].into();
    }
    facts
}

/// Every field of the facts as a path, without the names of CPUs, levels and reasons.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let is_data = ["levels", "cpus", "frequency-mhz", "pace", "failures"]
                    .iter()
                    .any(|map| path.ends_with(map) || path == *map);
                let path = match (is_data, path) {
                    (true, _) => format!("{path}.*"),
                    (false, "") => key.clone(),
                    (false, _) => format!("{path}.{key}"),
                };
                paths(value, &path, found);
            }
        }
        Value::Array(values) if values.iter().any(Value::is_object) => {
            for value in values {
                paths(value, &format!("{path}[]"), found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

/// Histograms are described once.
fn without_histograms(paths: BTreeSet<String>) -> BTreeSet<String> {
    let of_histogram = ["count", "sum-ns", "min-ns", "max-ns", "buckets"];
    paths
        .into_iter()
        .map(|path| match path.rsplit_once('.') {
            Some((before, last)) if of_histogram.contains(&last) => format!("{before} (histogram)"),
            _ => path,
        })
        .collect()
}

fn page() -> String {
    let mut out = String::from(
        "# The journal\n\n<!-- Written by the tests of runtime/report; UPDATE=1 cargo test -p report rewrites it. -->\n\n\
         `journal.jsonl` in a run's directory is the record of everything that happened in the run: one JSON object a\n\
         line, appended and synced before anybody is shown the event. Terminal, report and tables are folds of it;\n\
         `exp report RUN` makes them again from it alone.\n\n",
    );
    let _ = writeln!(
        out,
        "The format is version {}. A reader refuses another major version and ignores fields that it does not know.\n",
        journal::JOURNAL_VERSION
    );
    out.push_str(
        "## Records\n\n\
         | field | value |\n| --- | --- |\n\
         | `seq` | number of the record: from 0, without gaps |\n\
         | `at-ns` | wall clock, nanoseconds since 1970 |\n\
         | `event` | what happened: an object whose only key is the kind of event |\n\n\
         A journal may end anywhere: a run can be killed. An unfinished last line was shown to nobody and is left out.\n\
         Nothing in it is a verdict: whether a repetition is valid follows from the facts of the whole run.\n\n\
         ## Events\n\n",
    );
    for (seq, (event, meaning)) in events().into_iter().enumerate() {
        let _ = writeln!(out, "### {}\n\n{meaning}\n", name(&event));
        let record = Record { seq: seq as u64, at_ns: 1_796_047_920_000_000_000, event };
        let mut value = serde_json::to_value(&record).expect("a record is JSON");
        if let Some(facts) = value.pointer_mut("/event/repetition-measured/facts") {
            *facts = Value::String("…".to_owned());
        }
        let _ = writeln!(out, "```json\n{}\n```\n", serde_json::to_string_pretty(&value).expect("JSON"));
    }
    out.push_str(
        "## Facts of a repetition\n\n\
         Raw counts and readings; what could not be read is `null` and stands in `findings` with the reason, never 0.\n\
         Instants are nanoseconds of CLOCK_MONOTONIC unless their name says otherwise. `*` stands for a CPU's number, a\n\
         factor's or a reason's name, `[]` for each element of a list.\n\n",
    );
    let mut found = BTreeSet::new();
    paths(&serde_json::to_value(facts()).expect("facts are JSON"), "", &mut found);
    for path in without_histograms(found) {
        let _ = writeln!(out, "- `{path}`");
    }
    let example = Histogram::of([1_000, 1_000, 250_000]);
    let _ = writeln!(
        out,
        "\n## Histograms\n\nExact `count`, `sum-ns`, `min-ns` and `max-ns`, and `buckets`: pairs of index and count. Values below\n\
         {} have a bucket each; above, every power of two has {} of them, so a value is known to one part in {}.\n\
         Histograms are joined by adding counts; percentiles are never averaged.\n\n\
         The values 1,000 ns, 1,000 ns and 250,000 ns:\n\n```json\n{}\n```",
        1 << Histogram::SUB_BUCKET_BITS,
        1 << Histogram::SUB_BUCKET_BITS,
        1 << Histogram::SUB_BUCKET_BITS,
        serde_json::to_string(&example).expect("JSON")
    );
    out
}

#[test]
fn the_journal_page_is_what_the_types_say() {
    let mut problems = Vec::new();
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/journal.md"), &page(), &mut problems);
    conclude(&problems);
}

#[test]
fn the_journal_page_names_each_event_once() {
    let names: Vec<String> = events().iter().map(|(event, _)| name(event)).collect();
    let distinct: BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    assert!(names.contains(&"repetition-measured".to_owned()), "{names:?}");
}
