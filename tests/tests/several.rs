//! A study whose machine names two generators: planned, run and reported, and one of them killed.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tests::{Place, assert_nothing_left, count_events, journal, processes_of, root, run, start, the_host};

const RUN: [&str; 6] = ["run", "study.kdl", "--backend", "process", "--format", "json"];

/// The study of known truth with two generators.
fn place(name: &str) -> Place {
    let text = std::fs::read_to_string(root().join("tests/studies/known-truth.kdl")).expect("the study");
    let cpus = "    cpus candidate=\"0\" database=\"1\" load=\"1\" sharing=accepted\n";
    assert!(text.contains(cpus));
    let place = Place::new(name).with_faulty();
    place.write("study.kdl", &text.replace(cpus, &format!("{cpus}    generator one\n    generator two\n")));
    place
}

fn report(run: &std::path::Path, file: &str) -> String {
    std::fs::read_to_string(run.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn two_generators_are_planned_measure_together_and_stand_in_the_report() {
    let _host = the_host();
    let place = place("two-generators");
    let planned = run(place.path(), &["plan", "study.kdl"]).expect_code(&[0]);
    let says = "2 generators send each load together: process on CPU 1; process on CPU 1";
    assert!(planned.out.split_whitespace().collect::<Vec<_>>().join(" ").contains(says), "{}", planned.out);

    let summary = run(place.path(), &RUN).expect_code(&[0, 40]).summary();
    let run = place.path().join(summary["run"].as_str().expect("a run"));
    let records = journal(&run);
    let mut measured = 0;
    for facts in records.iter().filter_map(|record| record["event"].get("repetition-measured")) {
        measured += 1;
        let load = &facts["facts"]["load"];
        let parts = load["generators"].as_array().expect("generators");
        let number = |part: &Value, key: &str| part[key].as_u64().expect("a number");
        assert_eq!(parts.len(), 2, "{load:#}");
        assert!(parts.iter().all(|part| number(part, "connections") == 16 && part["place"] == "process"), "{parts:#?}");
        assert!(parts.iter().all(|part| number(part, "clock-uncertainty-ns") == 0), "one machine has one clock");
        let ok: Vec<u64> = parts.iter().map(|part| number(part, "ok")).collect();
        assert_eq!(Some(ok.iter().sum()), load["streams"][0]["census"]["ok"].as_u64());
        assert!(ok.iter().all(|&ok| ok > 0), "{ok:?}");
    }
    assert!(measured >= 5, "{measured} repetitions");
    let figures = summary["figures"].as_array().expect("figures");
    let ceiling = figures.iter().find(|figure| figure["name"] == "ceiling.throughput").expect("a ceiling");
    match ceiling["value"].as_f64() {
        Some(value) => assert!((value / 2_000.0 - 1.0).abs() < 0.02, "published {value} for 2,000/s"),
        None => assert!(ceiling["void"].as_u64().is_some_and(|void| void > 0), "{ceiling:#}"),
    }
    let page = report(&run, "report.md");
    let each = "1 thread, 16 connections, the controller's own clock";
    assert!(page.contains("These generators sent each load together") && page.matches(each).count() == 2, "{page}");
    let whole: Value = serde_json::from_str(&report(&run, "report.json")).expect("JSON");
    let repetitions = whole["repetitions"].as_array().expect("repetitions");
    assert!(!repetitions.is_empty());
    for repetition in repetitions {
        assert_eq!(repetition["sent"]["generators"].as_array().map(Vec::len), Some(2), "{repetition:#}");
    }
    assert_nothing_left(&run);
}

#[test]
fn one_of_two_generators_killed_in_the_window_voids_that_repetition_by_name() {
    let _host = the_host();
    let place = place("killed-generator");
    let mut running = start(place.path(), &RUN);
    let runs = place.path().join("results/known-truth");
    let mut found: Option<PathBuf> = None;
    running.wait_until(Duration::from_secs(120), "a window", || {
        found = std::fs::read_dir(&runs)
            .ok()
            .and_then(|mut entries| Some(entries.next()?.ok()?.path()))
            .filter(|run| run.join("journal.jsonl").is_file());
        let Some(run) = &found else { return false };
        journal(run).last().is_some_and(|last| last["event"]["repetition-stage"]["stage"] == "measuring")
    });
    let run_directory = found.expect("a run");
    let id = run_directory.file_name().expect("a name").to_string_lossy().into_owned();
    let generators: Vec<String> =
        processes_of(&id).into_iter().filter(|process| process.contains("load --control")).collect();
    assert_eq!(generators.len(), 2, "{generators:?}");
    let victim = generators[1].split(':').next().expect("a process id");
    assert!(Command::new("kill").args(["-9", victim]).status().expect("kill").success());

    let ended = running.end(Duration::from_secs(240)).expect_code(&[0, 40]);
    let records = journal(&run_directory);
    let failed: Vec<&Value> = records.iter().filter_map(|record| record["event"].get("repetition-failed")).collect();
    assert_eq!(failed.len(), 1, "{failed:#?}");
    let what = failed[0]["failure"]["what"].as_str().expect("what");
    assert!(what.contains(" of 2 (process, CPUs 1) died") && what.contains("signal: 9"), "{what}");
    // It was measured again, and the report says why one is void.
    assert!(count_events(&records, "repetition-measured") >= 5, "{}", ended.err);
    let whole: Value = serde_json::from_str(&report(&run_directory, "report.json")).expect("JSON");
    let void = whole["repetitions"].as_array().expect("repetitions").iter().find(|repetition| {
        let reasons = repetition["reasons"].as_array().expect("reasons");
        repetition["valid"] == false
            && reasons.iter().any(|reason| reason.as_str().is_some_and(|why| why.contains("died")))
    });
    assert!(void.is_some(), "no repetition is void for it: {whole:#}");
    assert_nothing_left(&run_directory);
}
