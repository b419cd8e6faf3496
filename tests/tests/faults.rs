//! A service of known capacity (2,000 requests per second) on the process backend, honest and with faults.

use std::path::{Path, PathBuf};

use tests::{Ended, Place, assert_nothing_left, count_events, journal, root, run, the_host};

/// The study of known truth with a fault in the service.
fn place(name: &str, fault: &str) -> Place {
    let text = std::fs::read_to_string(root().join("tests/studies/known-truth.kdl")).expect("the study");
    assert!(text.contains("FAULT=\"none\""));
    let place = Place::new(name).with_faulty();
    place.write("study.kdl", &text.replace("FAULT=\"none\"", &format!("FAULT=\"{fault}\"")));
    place
}

fn run_study(place: &Place) -> Ended {
    run(place.path(), &["run", "study.kdl", "--backend", "process", "--format", "json"])
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn an_honest_service_is_published_within_two_per_cent_or_refused_with_reasons() {
    let _host = the_host();
    let place = place("honest", "none");
    let ended = run_study(&place).expect_code(&[0, 40]);
    let summary = ended.summary();
    let run = place.path().join(summary["run"].as_str().expect("a run"));
    let figure = summary["figures"]
        .as_array()
        .expect("figures")
        .iter()
        .find(|figure| figure["name"] == "ceiling.throughput")
        .unwrap_or_else(|| panic!("no ceiling in {summary:#}"));
    match figure["value"].as_f64() {
        Some(value) => assert!((value / 2_000.0 - 1.0).abs() < 0.02, "published {value} for 2,000/s\n{summary:#}"),
        None => {
            let reasons = summary["reasons"].as_array().expect("reasons");
            assert!(!reasons.is_empty(), "withheld without a reason: {summary:#}");
            assert!(
                figure["void"].as_u64().expect("a count") > 0,
                "nothing was void and nothing is determined: {summary:#}"
            );
            // What was seen is shown all the same.
            assert!(read(run.join("report.md")).contains("seen"), "the report hides what was seen");
        }
    }
    let records = journal(&run);
    assert!(count_events(&records, "repetition-measured") >= 5, "{:#?}", records.len());
    for file in ["report.md", "report.json", "excluded.md", "plan.json", "study.kdl", "tables/repetitions.csv"] {
        assert!(run.join(file).is_file(), "{file} is missing");
    }
    the_figures_are_the_reports(&summary, &run);
    a_replay_gives_the_same_bytes(place.path(), &run);
    assert_nothing_left(&run);
}

/// `--format json` and `report.json` tell the same figures.
fn the_figures_are_the_reports(summary: &serde_json::Value, run: &Path) {
    let report: serde_json::Value = serde_json::from_str(&read(run.join("report.json"))).expect("JSON");
    let figures = report["figures"].as_array().expect("figures");
    let told = summary["figures"].as_array().expect("figures");
    assert_eq!(figures.len(), told.len());
    for (figure, told) in figures.iter().zip(told) {
        for key in ["name", "cell", "value", "unit", "estimator", "valid", "void"] {
            assert_eq!(figure[key], told[key], "{key} of {}", told["name"]);
        }
    }
}

/// The report is a pure fold of the journal: made again, every file has the same bytes.
fn a_replay_gives_the_same_bytes(directory: &Path, run_directory: &Path) {
    let files = ["report.md", "report.json", "excluded.md", "tables/repetitions.csv"];
    let before: Vec<String> = files.iter().map(|file| read(run_directory.join(file))).collect();
    for file in files {
        std::fs::remove_file(run_directory.join(file)).expect("a file");
    }
    run(directory, &["report", &run_directory.display().to_string()]).expect_code(&[0]);
    for (file, before) in files.iter().zip(before) {
        assert!(read(run_directory.join(file)) == before, "{file} differs when it is made again");
    }
}

#[test]
fn a_load_left_to_wrk_measures_the_same_service_and_says_what_wrk_cannot_tell() {
    let _host = the_host();
    let text = std::fs::read_to_string(root().join("tests/studies/known-truth.kdl")).expect("the study");
    let first = "phase first like=saturation {\n    over candidate\n    load connections=32 {";
    assert!(text.contains(first));
    let place = Place::new("wrk").with_faulty();
    place.write("study.kdl", &text.replace(first, &format!("{} with wrk;", first)));
    let summary = run_study(&place).expect_code(&[0, 40]).summary();
    let run = place.path().join(summary["run"].as_str().expect("a run"));
    let mut by_wrk = 0;
    for record in journal(&run) {
        let Some(measured) = record["event"].get("repetition-measured") else { continue };
        let (facts, phase) = (&measured["facts"], measured["repetition"]["phase"].as_str().expect("a phase"));
        let tool = &facts["load"]["tool"];
        assert_eq!(phase == "first", !tool.is_null(), "{phase}: {tool}");
        if phase == "first" {
            by_wrk += 1;
            assert_eq!(tool["name"], "wrk");
            assert!(!tool["lacks"].as_array().expect("a list").is_empty());
            let ok = facts["load"]["streams"][0]["census"]["ok"].as_f64().expect("a count");
            let rate = ok / (tool["measured-ns"].as_f64().expect("a time") / 1e9);
            assert!((rate / 2_000.0 - 1.0).abs() < 0.1, "wrk told {rate}/s of 2,000/s");
        }
    }
    assert!(by_wrk >= 2, "{by_wrk}");
    let report = read(run.join("report.md"));
    assert!(report.contains("is sent by wrk, which can't give") && report.contains("headers and bodies"), "{report}");
    assert_nothing_left(&run);
}

#[test]
fn a_tool_that_is_not_installed_is_said_before_anything_starts() {
    let _host = the_host();
    let text = std::fs::read_to_string(root().join("tests/studies/known-truth.kdl")).expect("the study");
    let place = Place::new("no-oha").with_faulty();
    place.write("study.kdl", &text.replace("load connections=32 {", "load connections=32 { with oha;"));
    let ended = tests::exp(place.path(), &["run", "study.kdl", "--backend", "process"])
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .expect("exp runs");
    let ended = Ended::from(ended).expect_code(&[20]);
    assert!(ended.err.contains("`oha` is not installed") && ended.err.contains("cargo install oha"), "{}", ended.err);
}

#[test]
fn one_per_cent_of_500s_voids_every_repetition_and_says_why() {
    let _host = the_host();
    let place = place("errors", "errors");
    let ended = run_study(&place).expect_code(&[40]);
    let summary = ended.summary();
    assert_eq!(summary["verdict"], "void", "{summary:#}");
    assert!(
        summary["figures"].as_array().expect("figures").iter().all(|figure| figure["value"].is_null()),
        "{summary:#}"
    );
    let run = place.path().join(summary["run"].as_str().expect("a run"));
    let excluded = read(run.join("excluded.md"));
    assert!(excluded.contains("census") && excluded.contains("status 500"), "{excluded}");
    assert_nothing_left(&run);
}

#[test]
fn a_wrong_body_fails_the_contract_and_nothing_is_measured() {
    let _host = the_host();
    let place = place("body", "body");
    let ended = run_study(&place).expect_code(&[30]);
    assert!(ended.err.contains("contract") && ended.err.contains("an item"), "{}", ended.err);
    // What was expected and what came.
    assert!(ended.err.contains('7') && ended.err.contains('8'), "{}", ended.err);
    let run = place.only_run("known-truth");
    let records = journal(&run);
    assert_eq!(count_events(&records, "repetition-started"), 0);
    assert_eq!(count_events(&records, "contract-checked"), 1);
    assert_nothing_left(&run);
}

#[test]
fn a_candidate_that_never_gets_ready_shows_its_log() {
    let _host = the_host();
    let place = place("never", "never-ready");
    let ended = run_study(&place).expect_code(&[30]);
    assert!(ended.err.contains("never got ready") && ended.err.contains("503"), "{}", ended.err);
    assert!(ended.err.contains("faulty: listening"), "its log is not shown: {}", ended.err);
    assert_nothing_left(&place.only_run("known-truth"));
}

#[test]
fn a_candidate_that_dies_under_load_is_void_with_its_last_words() {
    let _host = the_host();
    let place = place("dies", "dies");
    let ended = run_study(&place).expect_code(&[40]);
    let summary = ended.summary();
    let run = place.path().join(summary["run"].as_str().expect("a run"));
    let excluded = read(run.join("excluded.md"));
    assert!(excluded.contains("died") && excluded.contains("exit status 3"), "{excluded}");
    let logs: String = std::fs::read_dir(run.join("logs"))
        .expect("logs are kept when something dies")
        .map(|entry| read(entry.expect("an entry").path()))
        .collect();
    assert!(logs.contains("out of cheese"), "{logs}");
    assert_nothing_left(&run);
}
