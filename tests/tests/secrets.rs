//! Secrets stay where they belong: no file of a run and nothing that is printed holds the value of one, whatever the
//! service does with it. Inputs are recorded.

use std::fs;
use std::path::Path;

use tests::{Ended, Place, exp, root, the_host};

const VALUE: &str = "correct-horse/battery \"staple\"";

fn place(name: &str) -> Place {
    let place = Place::new(name).with_faulty();
    place.write("secret.kdl", &fs::read_to_string(root().join("tests/studies/secret.kdl")).expect("the study"));
    place
}

fn with(place: &Place, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = exp(place.path(), arguments);
    command.env_remove("SERVICE_TOKEN").env_remove("SERVICE_FAULT").envs(variables.iter().copied());
    command.output().expect("exp runs").into()
}

/// Every file below a directory, with its bytes.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.display().to_string(), fs::read(&path).expect("a file")));
        }
    }
    found
}

/// The files and streams that hold a text, as it is or as JSON writes it.
fn holders(place: &Place, ended: &Ended, text: &str) -> Vec<String> {
    let quoted = serde_json::Value::String(text.to_owned()).to_string();
    let forms = [text.to_owned(), quoted.trim_matches('"').to_owned()];
    let holds = |bytes: &[u8]| {
        let all = String::from_utf8_lossy(bytes);
        forms.iter().any(|form| all.contains(form.as_str()))
    };
    let streams = [("standard output", &ended.out), ("standard error", &ended.err)];
    let printed = streams.into_iter().filter(|(_, text)| holds(text.as_bytes())).map(|(name, _)| name.to_owned());
    let results = place.path().join("results");
    let stored = files(&results).into_iter().filter(|(_, bytes)| holds(bytes)).map(|(path, _)| path);
    printed.chain(stored).collect()
}

#[test]
fn a_secret_is_nowhere_in_a_run() {
    let _host = the_host();
    let run = ["run", "secret.kdl", "--backend", "process"];
    for fault in ["tells", "tells-at-once", "tells-and-dies"] {
        let place = place(&format!("secret-{fault}"));
        let variables = [("SERVICE_TOKEN", VALUE), ("SERVICE_FAULT", fault)];
        let ended = with(&place, &run, &variables).expect_code(&[0, 30, 40]);
        let directory = place.only_run("secret");
        assert_eq!(holders(&place, &ended, VALUE), Vec::<String>::new(), "{fault}: the secret is written");
        // The input is recorded, and so is that a secret was read.
        assert!(!holders(&place, &ended, &format!("fault {fault}")).is_empty());
        let plan = fs::read_to_string(directory.join("plan.json")).expect("a plan");
        assert!(plan.contains("SERVICE_TOKEN") && plan.contains("env:SERVICE_TOKEN"), "{plan}");
        if fault != "tells" {
            // What the service told stands in the journal, with the secret's name in the value's place.
            let journal = fs::read_to_string(directory.join("journal.jsonl")).expect("a journal");
            assert!(journal.contains("‹secret SERVICE_TOKEN›"), "the service told nothing: the test proves nothing");
        }
        // The report that is made again from the journal has nothing else to tell.
        let shown = directory.display().to_string();
        let again = with(&place, &["report", &shown], &[]).expect_code(&[0, 40]);
        assert_eq!(holders(&place, &again, VALUE), Vec::<String>::new(), "{fault}: the secret is in the report");
    }
}

#[test]
fn a_secret_that_cannot_be_kept_is_refused_before_anything_starts() {
    // What is refused last would find the port of a study that runs.
    let _host = the_host();
    let place = place("secret-refused");
    let study = fs::read_to_string(place.path().join("secret.kdl")).expect("the study");
    place.write("input.kdl", &study.replace("input SERVICE_FAULT default=\"none\"", "input SERVICE_FAULT"));
    let long = "sixteen-of-these";
    type Variables<'v> = &'v [(&'v str, &'v str)];
    let cases: [(&str, Variables<'_>, &[&str]); 6] = [
        ("secret.kdl", &[], &["SERVICE_TOKEN is not set", "SERVICE_TOKEN=…"]),
        ("secret.kdl", &[("SERVICE_TOKEN", "")], &["SERVICE_TOKEN is not set"]),
        ("input.kdl", &[], &["SERVICE_FAULT, SERVICE_TOKEN are not set", "SERVICE_FAULT=… SERVICE_TOKEN=… exp run"]),
        ("secret.kdl", &[("SERVICE_TOKEN", "abc")], &["has 3 characters", "8"]),
        ("secret.kdl", &[("SERVICE_TOKEN", "A service with a secret")], &["stands in the study"]),
        ("secret.kdl", &[("SERVICE_TOKEN", long), ("SERVICE_FAULT", long)], &["or in an input"]),
    ];
    for (file, variables, wanted) in cases {
        let ended = with(&place, &["run", file, "--backend", "process"], variables).expect_code(&[20]);
        for word in wanted {
            assert!(ended.err.contains(word), "{variables:?}: `{word}` is not in\n{}", ended.err);
        }
        assert!(!place.path().join("results").exists(), "{variables:?}: something was run");
    }
    // Checking and planning need none of them.
    with(&place, &["check", "secret.kdl"], &[]).expect_code(&[0]);
    let planned =
        with(&place, &["plan", "input.kdl", "--format", "json"], &[("SERVICE_TOKEN", VALUE)]).expect_code(&[0]);
    assert!(!planned.out.contains("correct-horse"), "{}", planned.out);
}
