//! A run that is ended in the middle: nothing measured is lost, nothing of ours is left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tests::{Place, Started, assert_nothing_left, count_events, journal, processes_of, root, run, start, the_host};

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

const RUN: [&str; 6] = ["run", "endings.kdl", "--backend", "process", "--format", "json"];

fn place(name: &str) -> Place {
    let place = Place::new(name).with_faulty();
    for file in ["endings.kdl", "schema.sql"] {
        place.write(file, &fs::read_to_string(root().join("tests/studies").join(file)).expect("the study"));
    }
    place
}

/// The journal of the only run, once there is one.
fn run_of(place: &Path) -> Option<PathBuf> {
    let mut runs: Vec<PathBuf> =
        fs::read_dir(place.join("results/endings")).ok()?.flatten().map(|entry| entry.path()).collect();
    runs.pop().filter(|run| run.join("journal.jsonl").is_file())
}

/// Waits until the run is within the window of a repetition, with at least one measured before.
fn until_measuring(running: &mut Started, place: &Path) -> PathBuf {
    running.wait_until(Duration::from_secs(120), "the second window", || {
        let Some(run) = run_of(place) else { return false };
        let records = journal(&run);
        let measuring = records.last().is_some_and(|last| last["event"]["repetition-stage"]["stage"] == "measuring");
        count_events(&records, "repetition-measured") >= 1 && measuring
    });
    run_of(place).expect("a run")
}

/// What makes up a report, without what differs between two runs: which figures and repetitions there are.
fn structure(run: &Path) -> (Vec<String>, Vec<String>) {
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(run.join("report.json")).expect("a report")).expect("JSON");
    let names = |list: &str, key: &str| -> Vec<String> {
        report[list]
            .as_array()
            .expect("a list")
            .iter()
            .map(|entry| format!("{} {}", entry[key], entry["cell"]))
            .collect()
    };
    (names("figures", "name"), names("items", "title"))
}

#[test]
fn killed_and_started_again_it_goes_on_where_it_was() {
    let _host = the_host();
    let place = place("kill");
    let mut running = start(place.path(), &RUN);
    let run_directory = until_measuring(&mut running, place.path());
    let id = run_directory.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(!processes_of(&id).is_empty(), "the run has no processes: the test would see nothing left over either");
    let kept: Vec<serde_json::Value> = journal(&run_directory)
        .into_iter()
        .filter(|record| record["event"].get("repetition-measured").is_some())
        .collect();
    running.signal(SIGKILL);
    running.end(Duration::from_secs(5));

    // The same command: it continues the same run.
    let ended = run(place.path(), &RUN).expect_code(&[0, 40]);
    let again = PathBuf::from(ended.summary()["run"].as_str().expect("a run"));
    assert_eq!(place.path().join(again), run_directory, "a new run was begun");
    let records = journal(&run_directory);
    assert_eq!(count_events(&records, "run-resumed"), 1);
    for (number, record) in kept.iter().enumerate() {
        assert!(records.contains(record), "measured repetition {number} was lost");
    }
    let measured = count_events(&records, "repetition-measured");
    assert!(
        (3..=4).contains(&measured),
        "{measured} repetitions: a finished one was measured again, or one is missing"
    );
    for (seq, record) in records.iter().enumerate() {
        assert_eq!(record["seq"], seq, "the journal has a gap");
    }
    assert_nothing_left(&run_directory);

    // Of the same structure as an undisturbed run.
    let undisturbed = place.path().join("undisturbed");
    fs::create_dir(&undisturbed).expect("a directory");
    let results = undisturbed.display().to_string();
    let mut arguments = RUN.to_vec();
    arguments.extend(["--results", &results]);
    let ended = run(place.path(), &arguments).expect_code(&[0, 40]);
    let other = place.path().join(ended.summary()["run"].as_str().expect("a run"));
    assert_eq!(structure(&run_directory), structure(&other));
    assert_nothing_left(&other);
}

#[test]
fn ctrl_c_ends_within_five_seconds_and_says_how_to_continue() {
    let _host = the_host();
    for (name, signal) in [("int", SIGINT), ("term", SIGTERM)] {
        let place = place(name);
        let mut running = start(place.path(), &RUN);
        let run_directory = until_measuring(&mut running, place.path());
        let began = Instant::now();
        running.signal(signal);
        let ended = running.end(Duration::from_secs(20)).expect_code(&[130]);
        assert!(began.elapsed() < Duration::from_secs(5), "it took {:?}", began.elapsed());
        assert!(ended.err.contains("run the same command"), "{}", ended.err);
        let records = journal(&run_directory);
        assert_eq!(records.last().expect("a record")["event"]["run-ended"]["end"], "interrupted");
        assert_nothing_left(&run_directory);
    }
}

#[test]
fn a_second_run_is_refused_and_told_who_holds_the_host() {
    let _host = the_host();
    let place = place("second");
    let mut running = start(place.path(), &RUN);
    let first = until_measuring(&mut running, place.path());
    let refused = run(place.path(), &RUN).expect_code(&[20]);
    assert!(refused.err.contains("another run holds this host"), "{}", refused.err);
    assert!(refused.err.contains(&running.pid().to_string()), "the holder is not named: {}", refused.err);
    running.signal(SIGINT);
    running.end(Duration::from_secs(10)).expect_code(&[130]);
    assert_nothing_left(&first);
}

/// A small file system that is unmounted at its end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(path: &Path, size: &str) -> Self {
        fs::create_dir_all(path).expect("a directory");
        let options = format!("size={size}");
        let status =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(path).status().expect("mount");
        assert!(status.success(), "a small disk can't be mounted: the tests run as root");
        Self(path.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_ends_the_run_and_says_that_the_journal_is_lost() {
    let _host = the_host();
    let place = place("full");
    let disk = SmallDisk::mount(&place.path().join("results"), "24k");
    let ended = run(place.path(), &RUN).expect_code(&[50]);
    assert!(ended.err.contains("journal") && ended.err.contains("next:"), "{}", ended.err);
    let run_directory = run_of(place.path()).expect("a run");
    assert_nothing_left(&run_directory);
    drop(disk);
}

#[test]
fn a_database_that_cannot_start_shows_its_log() {
    let _host = the_host();
    let place = place("settings");
    let text = fs::read_to_string(place.path().join("endings.kdl")).expect("the study");
    let wanted = "image \"postgres:17\"";
    assert!(text.contains(wanted));
    place.write("endings.kdl", &text.replace(wanted, &format!("{wanted}\n    set {{ shared_buffers \"plenty\" }}")));
    let ended = run(place.path(), &RUN).expect_code(&[20]);
    assert!(ended.err.contains("PostgreSQL") && ended.err.contains("shared_buffers"), "{}", ended.err);
    assert_nothing_left(&place.only_run("endings"));
}
