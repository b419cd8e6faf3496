//! Starts of real processes: as long as they are known to be, or not determined with the reason.

use std::path::Path;

use tests::{Place, assert_nothing_left, journal, root, run, the_host};

/// The value of a figure, or why it has none.
fn figure(summary: &serde_json::Value, name: &str, candidate: &str) -> Result<f64, String> {
    let figures = summary["figures"].as_array().expect("figures");
    let found = figures
        .iter()
        .find(|figure| figure["name"] == name && figure["cell"]["candidate"] == candidate)
        .unwrap_or_else(|| panic!("no {name} of {candidate} in {summary:#}"));
    found["value"].as_f64().ok_or_else(|| found["not-determined"].as_str().expect("a reason").to_owned())
}

fn logs(run: &Path) -> String {
    let logs = std::fs::read_dir(run.join("logs")).expect("logs of what died");
    logs.map(|entry| std::fs::read_to_string(entry.expect("an entry").path()).expect("a log")).collect()
}

#[test]
fn starts_are_as_long_as_they_are_known_to_be() {
    let _host = the_host();
    let place = Place::new("starts").with_faulty();
    let study = std::fs::read_to_string(root().join("tests/studies/starts.kdl")).expect("the study");
    place.write("study.kdl", &study);
    let ended = run(place.path(), &["run", "study.kdl", "--backend", "process", "--format", "json"]).expect_code(&[0]);
    let summary = ended.summary();

    let [quick, slow] = ["quick", "slow"].map(|name| figure(&summary, "cold.start-time", name).expect("a start"));
    // It sleeps 400 ms first. A busy machine makes both longer, never shorter.
    assert!(slow >= 400.0, "{slow} ms\n{summary:#}");
    assert!(quick > 0.0 && quick < slow, "{quick} and {slow} ms");
    // Sleeping costs no CPU time.
    let cpu = figure(&summary, "cold.start-cpu", "slow").expect("CPU time");
    assert!(cpu > 0.0 && cpu < slow / 2.0, "{cpu} ms of CPU in {slow} ms");
    assert!(figure(&summary, "cold.memory", "slow").expect("memory") > 100_000.0);
    for name in ["never", "dead"] {
        assert!(figure(&summary, "cold.start-time", name).is_err(), "{name} has a start\n{summary:#}");
    }

    let run = place.path().join(summary["run"].as_str().expect("a run"));
    let records = journal(&run);
    let failures: Vec<String> = records
        .iter()
        .filter_map(|record| record["event"].get("repetition-failed"))
        .map(|event| event["failure"].to_string())
        .collect();
    assert!(failures.iter().any(|failure| failure.contains("never never got ready")), "{failures:#?}");
    assert!(failures.iter().any(|failure| failure.contains("dead died: exit status 3")), "{failures:#?}");
    assert!(logs(&run).contains("no licence found"), "the last words of a candidate that died are kept");
    for record in &records {
        let Some(measured) = record["event"].get("repetition-measured") else { continue };
        let start = &measured["facts"]["start"];
        let [asked, ready] = ["asked-ns", "ready-ns"].map(|key| start[key].as_u64().expect("an instant"));
        assert!(asked < ready && start["looks"].as_u64().expect("looks") >= 1, "{start:#}");
        // The last look that found it not ready began at most some pauses before the one that found it ready.
        if let Some(not_ready) = start["not-ready-ns"].as_u64() {
            assert!(asked <= not_ready && not_ready < ready, "{start:#}");
        }
    }
    assert_nothing_left(&run);
}
