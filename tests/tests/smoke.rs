//! The main job: the capacity study's smoke profile on real parts, on both backends.
//!
//! What the figures are depends on the machine; that they are there, accounted for, or withheld with a reason does not.

use std::path::{Path, PathBuf};

use tests::{Ended, Place, assert_nothing_left, count_events, journal, root, run, the_host};

fn smoke(results: &Path, more: &[&str]) -> Ended {
    let results = results.display().to_string();
    let mut arguments = vec!["run", "experiments/capacity.kdl", "--profile", "smoke", "--machine", "two-cores"];
    arguments.extend(["--format", "json", "--results", &results]);
    arguments.extend(more);
    run(&root(), &arguments).expect_code(&[0, 40])
}

fn run_of(summary: &serde_json::Value) -> PathBuf {
    root().join(summary["run"].as_str().expect("a run"))
}

/// Every repetition that was to be measured of these candidates was, and each figure is there or says why not.
fn whole(ended: &Ended, candidates: &[&str]) {
    let summary = ended.summary();
    let run = run_of(&summary);
    let records = journal(&run);
    assert_eq!(records.last().expect("records")["event"]["run-ended"]["end"], "completed");
    assert_eq!(count_events(&records, "contract-checked"), candidates.len());
    for record in records.iter().filter(|record| record["event"].get("contract-checked").is_some()) {
        let cases = record["event"]["contract-checked"]["cases"].as_array().expect("cases");
        assert!(cases.len() >= 15, "{} cases", cases.len());
        for case in cases {
            assert!(case["problem"].is_null(), "{}: {case}", record["event"]["contract-checked"]["candidate"]);
        }
    }
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(run.join("report.json")).expect("a report")).expect("JSON");
    for candidate in candidates {
        for phase in ["pool-sweep", "ceiling"] {
            let measured: Vec<&serde_json::Value> = records
                .iter()
                .filter_map(|record| record["event"].get("repetition-measured"))
                .filter(|event| {
                    event["repetition"]["phase"] == phase && event["facts"]["levels"]["candidate"] == *candidate
                })
                .collect();
            assert!(measured.len() >= 2, "{phase} of {candidate}: {} repetitions", measured.len());
            for event in measured {
                facts_are_whole(&event["facts"]);
            }
        }
        let figure = summary["figures"]
            .as_array()
            .expect("figures")
            .iter()
            .find(|figure| figure["name"] == "ceiling.throughput" && figure["cell"]["candidate"] == *candidate)
            .unwrap_or_else(|| panic!("no ceiling of {candidate}"));
        match figure["value"].as_f64() {
            Some(value) => assert!(value > 50.0, "{figure:#}"),
            None => {
                assert!(figure["not-determined"].as_str().is_some_and(|why| !why.is_empty()), "{figure:#}");
                assert!(figure["seen"]["n"].as_u64().is_some_and(|n| n >= 2), "what was seen is hidden: {figure:#}");
            }
        }
        assert_eq!(figure["cell"]["cores"], "1", "{figure:#}");
    }
    // The database alone was measured too.
    assert!(
        summary["figures"].as_array().expect("figures").iter().any(|figure| figure["name"] == "database-ceiling.tps")
    );
    // A run on two shared cores never claims much, and says why.
    assert_eq!(report["confidence"]["level"], "low");
    let page = std::fs::read_to_string(run.join("report.md")).expect("a report");
    for wanted in ["Saturation ceiling", "share CPU 1", "not measured"] {
        assert!(page.contains(wanted), "report.md lacks `{wanted}`");
    }
    assert_nothing_left(&run);
}

/// Real load against real counters: nothing is 0 that can't be 0.
fn facts_are_whole(facts: &serde_json::Value) {
    for role in ["candidate", "database"] {
        let at =
            |end: &str| facts[role][end]["cpu-ns"].as_u64().unwrap_or_else(|| panic!("no {end} of {role}: {facts:#}"));
        assert!(at("end") > at("start"), "{role} used no CPU: {facts:#}");
    }
    let rows = &facts["rows"];
    let (before, after) = (rows["before"].as_u64().expect("rows"), rows["after"].as_u64().expect("rows"));
    assert_eq!(before, 1_000_000);
    let acknowledged: u64 = facts["load"]["streams"]
        .as_array()
        .expect("streams")
        .iter()
        .filter(|stream| stream["name"] == "write")
        .map(|stream| stream["acknowledged"].as_u64().expect("a count"))
        .sum();
    assert!(acknowledged > 0);
    assert!(after >= before + acknowledged, "acknowledged writes are missing: {rows}");
    assert!(facts["pace"]["0"]["samples"]["count"].as_u64().expect("samples") > 100, "the witness slept");
}

#[test]
fn on_docker_with_go_php_fpm_and_rust() {
    let _host = the_host();
    let place = Place::new("smoke-docker");
    let ended = smoke(place.path(), &["--backend", "docker"]);
    whole(&ended, &["go", "php-fpm", "rust"]);
    // FrankenPHP's published image is measured where it can be pulled, and named where it can't.
    let summary = ended.summary();
    let records = journal(&run_of(&summary));
    let named = records.iter().any(|record| record["event"]["not-measured"]["candidate"] == "frankenphp");
    let measured = summary["figures"]
        .as_array()
        .expect("figures")
        .iter()
        .any(|figure| figure["cell"]["candidate"] == "frankenphp" && figure["valid"].as_u64().unwrap_or(0) > 0);
    assert!(named || measured, "frankenphp is neither measured nor named");
}

#[test]
fn on_processes_with_rust() {
    let _host = the_host();
    let place = Place::new("smoke-process");
    let ended = smoke(place.path(), &["--backend", "process", "--candidate", "rust"]);
    whole(&ended, &["rust"]);
}

#[test]
fn what_cannot_be_measured_is_an_error_where_all_are_required() {
    let _host = the_host();
    let place = Place::new("require-all");
    let results = place.path().join("results").display().to_string();
    let arguments =
        ["run", "experiments/capacity.kdl", "--profile", "smoke", "--machine", "two-cores", "--backend", "process"];
    let ended = run(&root(), &[&arguments[..], &["--results", &results, "--require-all"]].concat()).expect_code(&[10]);
    assert!(ended.err.contains("php-fpm") && ended.err.contains("next:"), "{}", ended.err);
    assert!(!place.path().join("results").exists(), "something was run");
}
