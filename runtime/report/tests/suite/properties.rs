//! What holds for every journal: any part of it renders, live is replay, no line is too wide, every format carries the
//! same figures.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::support::scenarios::{Scenario, all};
use journal::Record;
use proptest::prelude::*;
use report::terminal::{Layout, View, summary};
use report::{Fold, Report, render};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

static SCENARIOS: LazyLock<Vec<Scenario>> = LazyLock::new(all);

fn layout(width: usize, tty: bool, colour: bool) -> Layout {
    Layout { width, colour, tty, run_dir: "results/capacity/2026-11-30-1412-k7".to_owned() }
}

/// Every render of a report, so that a test fails where any of them panics.
fn every_render(report: &Report) -> usize {
    let texts = [
        render::markdown(report),
        render::excluded(report),
        render::html(report),
        render::json(report).to_string(),
        render::summary_json(report, "run").to_string(),
        render::csv(report).into_iter().map(|(_, text)| text).collect(),
        summary(report, &layout(40, true, true)).join("\n"),
        summary(report, &layout(0, false, false)).join("\n"),
    ];
    texts.iter().map(String::len).sum()
}

fn show(scenario: &Scenario, records: &[Record], layout: &Layout) -> (Vec<String>, Vec<String>) {
    let mut view = View::new(&scenario.plan, layout.clone());
    let mut lines = Vec::new();
    let mut regions = Vec::new();
    for (frame, record) in records.iter().enumerate() {
        lines.extend(view.take(record));
        regions.extend(view.live(record.at_ns + 700_000_000, frame));
    }
    (lines, regions)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// A journal that was cut anywhere renders.
    #[test]
    fn any_prefix_renders(scenario in 0..8usize, cut in 0.0..1.0f64) {
        let scenario = &SCENARIOS[scenario % SCENARIOS.len()];
        let until = (scenario.records.len() as f64 * cut) as usize;
        let records = &scenario.records[..until];
        let report = report::report(&scenario.plan, records.iter().cloned());
        prop_assert!(every_render(&report) > 0);
        let _ = show(scenario, records, &layout(60, true, false));
    }

    /// So does one with records missing, doubled or out of order, against any of the plans.
    #[test]
    fn any_disorder_renders(
        scenario in 0..8usize,
        other in 0..8usize,
        picks in proptest::collection::vec(0..10_000usize, 0..120),
    ) {
        let from = &SCENARIOS[scenario % SCENARIOS.len()];
        let against = &SCENARIOS[other % SCENARIOS.len()];
        let records: Vec<Record> = picks.iter().map(|pick| from.records[pick % from.records.len()].clone()).collect();
        let report = report::report(&against.plan, records.iter().cloned());
        prop_assert!(every_render(&report) > 0);
        let _ = show(against, &records, &layout(40, true, true));
    }
}

#[test]
fn an_empty_journal_says_so() {
    for scenario in SCENARIOS.iter() {
        let report = report::report(&scenario.plan, std::iter::empty());
        assert!(every_render(&report) > 0);
        let markdown = render::markdown(&report);
        assert!(markdown.contains("**Verdict: void.**"), "{markdown}");
        assert!(markdown.contains("The journal has no end"), "{markdown}");
    }
}

/// Fails with the first line that differs.
fn same(scenario: &str, left: &str, right: &str) {
    let differing = left.lines().zip(right.lines()).find(|(left, right)| left != right);
    assert!(differing.is_none() && left.len() == right.len(), "{scenario}: {differing:?}");
}

#[test]
fn live_is_replay() {
    for scenario in SCENARIOS.iter() {
        let mut view = View::new(&scenario.plan, layout(100, true, false));
        let mut fold = Fold::default();
        let mut lines = Vec::new();
        for record in &scenario.records {
            lines.extend(view.take(record));
            fold.take(record);
        }
        // The replay reads what the journal's file holds.
        let stored: Vec<Record> = scenario
            .records
            .iter()
            .map(|record| {
                let line = serde_json::to_string(record).expect("a record is JSON");
                serde_json::from_str(&line).expect("a journal's line is a record")
            })
            .collect();
        let replayed = report::report(&scenario.plan, stored.iter().cloned());
        for live in [view.report(), fold.report(&scenario.plan)] {
            same(scenario.name, &render::markdown(&live), &render::markdown(&replayed));
            let pretty = |report| serde_json::to_string_pretty(&render::json(report)).expect("JSON");
            same(scenario.name, &pretty(&live), &pretty(&replayed));
            assert_eq!(render::csv(&live), render::csv(&replayed), "{}", scenario.name);
        }
        assert_eq!(lines, show(scenario, &stored, &layout(100, true, false)).0, "{}", scenario.name);
    }
}

#[test]
fn a_continued_run_shows_what_it_would_have_shown() {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == "resumed").expect("the scenario");
    let resumed = scenario
        .records
        .iter()
        .position(|record| matches!(record.event, journal::Event::RunResumed { .. }))
        .expect("the run is resumed");
    let (past, now) = scenario.records.split_at(resumed);
    let mut whole = View::new(&scenario.plan, layout(80, true, false));
    let mut continued = whole.clone();
    past.iter().for_each(|record| {
        whole.take(record);
        continued.past(record);
    });
    for record in now {
        assert_eq!(continued.take(record), whole.take(record));
        assert_eq!(continued.live(record.at_ns, 1), whole.live(record.at_ns, 1));
    }
    assert_eq!(render::markdown(&continued.report()), render::markdown(&whole.report()));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for scenario in SCENARIOS.iter() {
        for width in [40, 60, 80, 120] {
            let (lines, regions) = show(scenario, &scenario.records, &layout(width, true, false));
            for line in lines.iter().chain(&regions) {
                let columns = UnicodeWidthStr::width(line.as_str());
                assert!(columns <= width, "{} at {width}: {columns} columns: {line}", scenario.name);
                assert!(!line.chars().any(char::is_control), "{}: {line:?}", scenario.name);
            }
            let plan = report::terminal::plan(&scenario.plan, &layout(width, true, false));
            assert!(plan.lines().all(|line| UnicodeWidthStr::width(line) <= width), "{plan}");
        }
    }
}

#[test]
fn a_narrow_terminal_loses_columns_and_no_truth() {
    let words = |lines: &[String]| lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    for scenario in SCENARIOS.iter() {
        let (narrow, _) = show(scenario, &scenario.records, &layout(40, true, false));
        let narrow = words(&narrow);
        let report = report::report(&scenario.plan, scenario.records.iter().cloned());
        for verdict in [report.verdict.kind.name(), report.confidence.level.name()] {
            assert!(narrow.contains(verdict), "{}: {verdict} is missing", scenario.name);
        }
        // Every void repetition keeps its verdict and the sentence of the first gate that failed.
        for repetition in report.repetitions.iter().filter(|repetition| !repetition.valid) {
            let reason = repetition.reasons[0].split_whitespace().collect::<Vec<_>>().join(" ");
            let reason = reason.strip_prefix("it could not be measured: ").unwrap_or(&reason);
            assert!(narrow.contains(reason), "{}: {} lost its reason: {reason}", scenario.name, repetition.id);
        }
    }
}

#[test]
fn a_pipe_gets_lines_without_codes_or_region() {
    for scenario in SCENARIOS.iter() {
        let (lines, regions) = show(scenario, &scenario.records, &layout(80, false, false));
        assert!(regions.is_empty());
        assert!(!lines.is_empty() && !lines.iter().any(|line| line.chars().any(char::is_control)));
        let repetitions = scenario
            .records
            .iter()
            .filter(|record| {
                matches!(
                    record.event,
                    journal::Event::RepetitionMeasured { .. } | journal::Event::RepetitionFailed { .. }
                )
            })
            .count();
        let shown = lines.iter().filter(|line| line.starts_with("      ") && line.contains("  #")).count();
        assert!(shown >= repetitions, "{}: {shown} lines for {repetitions} repetitions", scenario.name);
    }
}

#[test]
fn colour_changes_nothing_but_colour() {
    for scenario in SCENARIOS.iter() {
        let (plain, _) = show(scenario, &scenario.records, &layout(80, true, false));
        let (coloured, _) = show(scenario, &scenario.records, &layout(80, true, true));
        let stripped: Vec<String> = coloured.iter().map(|line| strip(line)).collect();
        assert_eq!(plain, stripped, "{}", scenario.name);
        assert!(coloured.iter().any(|line| line.contains('\u{1b}')), "{}", scenario.name);
    }
}

fn strip(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        out.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    out + rest
}

#[test]
fn csv_reads_back() {
    for scenario in SCENARIOS.iter() {
        let report = report::report(&scenario.plan, scenario.records.iter().cloned());
        let files = render::csv(&report);
        let mut names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), files.len(), "two tables have one name: {names:?}");
        assert_eq!(files.len(), report.items.len() + 2);
        let rows = |name: &str| -> (Vec<String>, Vec<Vec<String>>) {
            let text = &files.iter().find(|(file, _)| file == name).expect("the file is there").1;
            assert!(text.ends_with("\r\n") && !text.contains("can't be written"), "{text}");
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            let head = reader.headers().expect("a head").iter().map(str::to_owned).collect();
            let rows =
                reader.records().map(|row| row.expect("as long as the head").iter().map(str::to_owned).collect());
            (head, rows.collect())
        };
        let (head, figures) = rows("figures.csv");
        let column = |name: &str| head.iter().position(|column| column == name).expect("the column is there");
        assert_eq!(figures.len(), report.figures.len());
        for (row, figure) in figures.iter().zip(&report.figures) {
            assert_eq!(row[0], figure.name);
            assert_eq!(row[column("value")].parse::<f64>().ok(), figure.value);
            assert_eq!(row[column("not_determined")], figure.not_determined.clone().unwrap_or_default());
            assert_eq!(row[column("void")], figure.void.to_string());
        }
        let (head, repetitions) = rows("repetitions.csv");
        let reasons = head.iter().position(|column| column == "reasons").expect("the column is there");
        assert_eq!(repetitions.len(), report.repetitions.len());
        for (row, repetition) in repetitions.iter().zip(&report.repetitions) {
            assert_eq!((&row[0], &row[reasons]), (&repetition.id, &repetition.reasons.join("; ")));
        }
        for (name, _) in &files {
            rows(name);
        }
    }
}

#[test]
fn json_reads_back_and_the_summary_has_the_same_figures() {
    for scenario in SCENARIOS.iter() {
        let report = report::report(&scenario.plan, scenario.records.iter().cloned());
        let json = render::json(&report);
        let text = serde_json::to_string(&json).expect("JSON");
        let again: Report = serde_json::from_str(&text).expect("report.json is a report");
        let pretty = |json: &Value| serde_json::to_string_pretty(json).expect("JSON");
        same(scenario.name, &pretty(&render::json(&again)), &pretty(&json));

        let summary = render::summary_json(&report, "results/x");
        assert_eq!(summary["run"], "results/x");
        assert_eq!(summary["verdict"], report.verdict.kind.name());
        let (figures, short) =
            (json["figures"].as_array().expect("figures"), summary["figures"].as_array().expect("figures"));
        assert_eq!(figures.len(), short.len());
        for (figure, short) in figures.iter().zip(short) {
            for key in ["name", "cell", "value", "unit", "interval", "estimator", "valid", "void"] {
                assert_eq!(figure[key], short[key], "{key} of {}", figure["name"]);
            }
            assert_eq!(figure["value"] == Value::Null, figure["not-determined"] != Value::Null);
        }
    }
}

#[test]
fn no_table_is_a_field_of_dashes_and_every_figure_says_how_sure_it_is() {
    for scenario in SCENARIOS.iter() {
        let report = report::report(&scenario.plan, scenario.records.iter().cloned());
        let markdown = render::markdown(&report);
        for line in markdown.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---")) {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            assert!(cells.iter().all(|cell| !matches!(*cell, "-" | "–" | "—")), "{}: {line}", scenario.name);
            for cell in cells
                .iter()
                .filter(|cell| cell.starts_with("**") && !cell.starts_with("**void**") && cell.contains(" ("))
            {
                assert!(cell.contains("n "), "{}: no n beside {cell}", scenario.name);
            }
            for cell in cells.iter().filter(|cell| cell.starts_with("not determined")) {
                // A capacity plan says it once a row, beside the candidate.
                assert!(
                    cell.contains("seen") || cells[1].contains("seen"),
                    "{}: nothing said beside {line}",
                    scenario.name
                );
            }
        }
        // A figure that the report determines names the repetitions that it is made of.
        for figure in report.figures.iter().filter(|figure| figure.value.is_some()) {
            assert!(!figure.rows.is_empty() && !figure.formula.is_empty(), "{}: {}", scenario.name, figure.name);
        }
        for figure in report.figures.iter().filter(|figure| figure.metric == plan::Metric::PacedCpuPerRequest) {
            let text = render::words::figure_value(figure);
            assert!(figure.seen.is_none() || text.contains("at quiet pace"), "{text}");
        }
    }
}

#[test]
fn html_is_self_contained_and_its_links_lead_somewhere() {
    for scenario in SCENARIOS.iter() {
        let report = report::report(&scenario.plan, scenario.records.iter().cloned());
        let html = render::html(&report);
        for foreign in ["http://", "https://", "<script", "<link", "<img", "@import", "src="] {
            assert!(!html.contains(foreign), "{}: {foreign}", scenario.name);
        }
        let places: BTreeSet<&str> = html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let links: Vec<&str> = html.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        for link in &links {
            assert!(places.contains(link), "{}: nothing is at #{link}", scenario.name);
        }
        assert_eq!(links.is_empty(), report.repetitions.is_empty(), "{}", scenario.name);
        for tag in ["table", "tr", "ul", "pre", "svg", "p", "h2"] {
            let (open, close) = (
                html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count(),
                html.matches(&format!("</{tag}>")).count(),
            );
            assert_eq!(open, close, "{}: <{tag}>", scenario.name);
        }
    }
}

#[test]
fn html_shows_foreign_text_as_text() {
    let mut scenario = all().swap_remove(0);
    scenario.plan.title = "<script>alert(1)</script> & \"quotes\"".to_owned();
    scenario.plan.candidates[0].label = "<b>bold</b> [link](javascript:alert(1)) ![x](y)".to_owned();
    let html = render::html(&report::report(&scenario.plan, scenario.records.iter().cloned()));
    assert!(
        !html.contains("<script")
            && !html.contains("<b>")
            && !html.contains("javascript:alert(1)\"")
            && !html.contains("<img")
    );
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn a_capacity_plan_rounds_instances_up() {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == "clean").expect("the scenario");
    let report = report::report(&scenario.plan, scenario.records.iter().cloned());
    let plan = report
        .items
        .iter()
        .find_map(|item| match item {
            report::model::Item::CapacityPlan(plan) => Some(plan),
            _ => None,
        })
        .expect("a capacity plan");
    let go = plan.rows.iter().find(|row| row.candidate == "go").expect("a row");
    let ceiling = go.ceiling.expect("a ceiling");
    for need in &go.needs {
        assert!(
            need.instances as f64 * ceiling >= need.target && (need.instances as f64 - 1.0) * ceiling < need.target
        );
        assert!((need.cores - need.target / ceiling * 2.0).abs() < 1e-9);
    }
}

#[test]
fn time_left_follows_what_was_measured() {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == "noisy").expect("the scenario");
    let mut view = View::new(&scenario.plan, layout(100, true, false));
    let mut left = Vec::new();
    for record in &scenario.records {
        view.take(record);
        let region = view.live(record.at_ns, 0);
        left.extend(region.iter().filter_map(|line| line.split_once(" of ")).map(|(_, rest)| rest.to_owned()));
    }
    // At the end of the last phase nothing is left to be done but the repetition that runs.
    assert!(left.iter().any(|line| line.contains("left")), "{left:?}");
    assert!(left.last().is_some_and(|line| line.ends_with("seconds left")), "{:?}", left.last());
}
