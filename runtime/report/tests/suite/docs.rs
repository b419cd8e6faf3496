//! `docs/journal.md` says what the types say: its examples are real lines, and it names every event and every fact.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use journal::{CaseOutcome, Event, Failure, Histogram, Record, RepetitionId, RunEnd, RunId, Stage, StepEnd};
use plan::{ContentHash, StepId};
use serde_json::Value;

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

/// The journal's own description of its facts.
const FACTS: &str = concat!(
    include_str!("../../../journal/src/facts.rs"),
    include_str!("../../../journal/src/facts/load.rs"),
    include_str!("../../../journal/src/facts/histogram.rs")
);

/// A struct of the facts as its source describes it.
struct Described {
    name: String,
    meaning: String,
    /// Name, type and meaning of each field.
    fields: Vec<[String; 3]>,
}

/// The public structs of a source file with their doc comments.
fn described(source: &str) -> Vec<Described> {
    let mut found: Vec<Described> = Vec::new();
    let mut doc: Vec<&str> = Vec::new();
    let mut is_inside = false;
    for line in source.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("///") {
            doc.push(comment.trim());
        } else if let Some(name) = line.strip_prefix("pub struct ").and_then(|rest| rest.strip_suffix(" {")) {
            found.push(Described { name: name.to_owned(), meaning: doc.join("\n"), fields: Vec::new() });
            doc.clear();
            is_inside = true;
        } else if line == "}" {
            is_inside = false;
            doc.clear();
        } else if let Some((field, kind)) = line.strip_prefix("pub ").and_then(|rest| rest.split_once(": "))
            && is_inside
            && let Some(of) = found.last_mut()
        {
            of.fields.push([field.replace('_', "-"), kind.trim_end_matches(',').to_owned(), doc.join(" ")]);
            doc.clear();
        } else if !line.starts_with("#[") {
            doc.clear();
        }
    }
    found
}

/// A Rust type as JSON has it.
fn in_json(kind: &str) -> String {
    let inside = |prefix: &str| kind.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('>'));
    if let Some(of) = inside("Option<") {
        return format!("{} or null", in_json(of));
    }
    if let Some(of) = inside("Vec<") {
        return format!("list of {}", in_json(of));
    }
    if let Some(of) = inside("BTreeMap<") {
        let (key, value) = of.split_once(", ").unwrap_or(("", of));
        let key = if key == "String" { "name" } else { "CPU number" };
        return format!("object of {} by {key}", in_json(value));
    }
    match kind {
        "u8" | "u32" | "u64" | "u128" | "i64" => "integer".to_owned(),
        "f64" => "number".to_owned(),
        "String" => "text".to_owned(),
        "(u32, u64)" | "(u64, u64)" => "pair of integers".to_owned(),
        "(f64, f64)" => "pair of numbers".to_owned(),
        "bool" => "true or false".to_owned(),
        other => format!("[{other}](#{})", other.to_lowercase()),
    }
}

/// Doc comments as Markdown: links to Rust items lose their brackets.
fn prose(text: &str) -> String {
    text.replace("[`", "`").replace("`]", "`").replace("`None`", "null").replace('|', "\\|")
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
         Raw counts and readings; what could not be read is null and stands in `findings` with the reason, never 0.\n\n",
    );
    for described in described(FACTS) {
        let _ = writeln!(out, "### {}\n\n{}\n", described.name, prose(&described.meaning));
        let _ = writeln!(out, "| field | type | meaning |\n| --- | --- | --- |");
        for [field, kind, meaning] in &described.fields {
            let _ = writeln!(out, "| `{field}` | {} | {} |", in_json(kind), prose(meaning));
        }
        out.push('\n');
    }
    let example = Histogram::of([1_000, 1_000, 250_000]);
    let _ = writeln!(
        out,
        "## An example of a histogram\n\nHistograms are joined by adding counts; percentiles are never averaged. The values 1,000 ns, 1,000 ns and\n\
         250,000 ns:\n\n```json\n{}\n```",
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
fn the_page_describes_every_field_that_a_journal_holds() {
    let described = described(FACTS);
    let of = |name: &str| described.iter().find(|described| described.name == name);
    for (name, value) in [
        ("RepetitionFacts", serde_json::to_value(journal::RepetitionFacts::default())),
        ("StreamFacts", serde_json::to_value(journal::StreamFacts::default())),
        ("Census", serde_json::to_value(journal::Census::default())),
        ("Histogram", serde_json::to_value(Histogram::default())),
        ("Counters", serde_json::to_value(journal::Counters::default())),
        ("HostFacts", serde_json::to_value(journal::HostFacts::default())),
    ] {
        let described = of(name).unwrap_or_else(|| panic!("{name} is not described"));
        let fields: BTreeSet<&str> = described.fields.iter().map(|[field, ..]| field.as_str()).collect();
        let value = value.expect("facts are JSON");
        let stored: BTreeSet<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
        // A field that is left out where it has its default is described all the same.
        assert!(stored.is_subset(&fields), "{name}: {stored:?} and {fields:?}");
        assert!(described.fields.iter().all(|[_, _, meaning]| !meaning.is_empty()), "{name}");
    }
}

#[test]
fn the_journal_page_names_each_event_once() {
    let names: Vec<String> = events().iter().map(|(event, _)| name(event)).collect();
    let distinct: BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    assert!(names.contains(&"repetition-measured".to_owned()), "{names:?}");
}
