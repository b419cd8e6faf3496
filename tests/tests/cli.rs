//! Bad input at the command line: one clear message each, the exit code of its class, nothing left behind.

use std::net::TcpListener;

use tests::{Place, root, run, the_host};

/// A study that runs nothing wrong: what each test breaks.
fn study() -> String {
    std::fs::read_to_string(root().join("tests/studies/known-truth.kdl")).expect("the study")
}

/// Replaces a part that must be there.
fn with(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the study has no `{from}`");
    text.replace(from, to)
}

#[test]
fn a_study_with_mistakes_is_refused_before_anything_runs() {
    let cases = [
        ("unit", with(&study(), "for \"1s\"", "for \"1GiB\""), &["1GiB", "duration"][..]),
        ("bare", with(&study(), "for \"1s\"", "for 1s"), &["1s", "quote"]),
        ("name", with(&study(), "gate generator-probe", "gate generatr-probe"), &["generatr-probe", "generator-probe"]),
        ("node", with(&study(), "label \"eight", "lable \"eight"), &["lable", "label"]),
        ("phase", with(&study(), "of=first.throughput", "of=frist.throughput"), &["frist", "first"]),
        ("cpus", with(&study(), "candidate=\"0\"", "candidate=\"4000\""), &["4000"]),
        ("use", with(&study(), "std/http", "std/htpp"), &["std/htpp", "std/http"]),
    ];
    for (name, text, wanted) in cases {
        let place = Place::new(&format!("bad-{name}"));
        place.write("bin/faulty", "");
        place.write("study.kdl", &text);
        for words in [&["check", "study.kdl", "--on", "here"][..], &["run", "study.kdl"]] {
            let ended = run(place.path(), words).expect_code(&[10]);
            let printed = format!("{}{}", ended.out, ended.err);
            for word in wanted {
                assert!(printed.contains(word), "{name}: `{word}` is not in\n{printed}");
            }
            assert!(printed.contains("study.kdl:"), "{name}: no place in\n{printed}");
        }
        assert!(!place.path().join("results").exists(), "{name}: something was run");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let place = Place::new("unreadable");
    place.write("binary.kdl", "");
    std::fs::write(place.path().join("binary.kdl"), [0x73, 0xff, 0xfe]).expect("a file");
    for (file, wanted) in [("nowhere.kdl", "nowhere.kdl"), ("binary.kdl", "UTF-8"), (".", "directory")] {
        for verb in ["check", "plan", "run"] {
            let ended = run(place.path(), &[verb, file]).expect_code(&[2]);
            assert!(ended.err.contains(wanted), "{verb} {file}: {}", ended.err);
            assert!(ended.err.contains("next:"), "{verb} {file}: {}", ended.err);
        }
    }
}

#[test]
fn imports_stay_inside_the_study() {
    let place = Place::new("imports");
    place.write("outside.kdl", "define phase x { }\n");
    place.write(
        "inside/study.kdl",
        "study s { title \"t\"; question \"q\" }\nuse \"../outside.kdl\"\nuse \"./link.kdl\"\nuse \"/etc/hostname\"\n",
    );
    std::os::unix::fs::symlink(place.path().join("outside.kdl"), place.path().join("inside/link.kdl")).expect("a link");
    let ended = run(&place.path().join("inside"), &["check", "study.kdl", "--format", "concise"]).expect_code(&[10]);
    let imports: Vec<&str> = ended.out.lines().filter(|line| line.contains("E02")).collect();
    assert_eq!(imports.len(), 3, "{}", ended.out);
}

#[test]
fn a_study_is_checked_against_a_host_that_a_file_describes() {
    let place = Place::new("hosts").with_faulty();
    place.write("study.kdl", &study());
    // Without a host the study alone is checked; a host without its CPUs is named with what it has.
    run(place.path(), &["check", "study.kdl"]).expect_code(&[0]);
    place.write("one-core.json", r#"{ "cpus": "0", "listening": [{ "port": 18080, "holder": "nginx (pid 812)" }] }"#);
    let ended = run(place.path(), &["check", "study.kdl", "--on", "one-core.json"]).expect_code(&[10]);
    for wanted in ["host `one-core`", "1 CPU (0)", "port 18080", "nginx (pid 812)"] {
        assert!(ended.out.contains(wanted), "`{wanted}` is not in\n{}", ended.out);
    }
    // What this machine says of itself can be read again.
    let described = run(place.path(), &["doctor", "--describe"]).expect_code(&[0]);
    place.write("here.json", &described.out);
    let ended = run(place.path(), &["check", "study.kdl", "--on", "here.json"]);
    assert!([0, 10].contains(&ended.code), "{}: {}", ended.code, ended.err);
    for (text, wanted) in [("{ \"cpus\": \"0-\" }", "0-"), ("{ \"cpu\": \"0\" }", "cpu"), ("{}", "without CPUs")] {
        place.write("wrong.json", text);
        let ended = run(place.path(), &["check", "study.kdl", "--on", "wrong.json"]).expect_code(&[2]);
        assert!(ended.err.contains(wanted) && ended.err.contains("exp doctor --describe"), "{}", ended.err);
    }
}

#[test]
fn the_command_line_says_what_lints_weigh() {
    let place = Place::new("levels").with_faulty();
    let single = with(&study(), "report {", "define phase unused { repeat 5 }\nreport {");
    place.write("study.kdl", &single);
    run(place.path(), &["check", "study.kdl"]).expect_code(&[0]);
    run(place.path(), &["check", "study.kdl", "--deny", "all"]).expect_code(&[10]);
    let ended = run(place.path(), &["check", "study.kdl", "--deny", "fixed-ordr"]).expect_code(&[2]);
    assert!(ended.err.contains("did you mean `fixed-order`"), "{}", ended.err);
}

#[test]
fn a_port_in_use_names_its_holder() {
    let _host = the_host();
    let place = Place::new("port").with_faulty();
    place.write("study.kdl", &study());
    let held = TcpListener::bind("127.0.0.1:18080").expect("the port is free");
    let ended = run(place.path(), &["run", "study.kdl", "--backend", "process"]);
    drop(held);
    assert!([10, 20, 30].contains(&ended.code), "exit code {}: {}", ended.code, ended.err);
    let printed = format!("{}{}", ended.out, ended.err);
    assert!(printed.contains("18080"), "{printed}");
    assert!(printed.contains(&std::process::id().to_string()), "the holder is not named: {printed}");
}

#[test]
fn every_command_explains_itself() {
    let place = Place::new("help");
    for verb in ["new", "check", "fmt", "explain", "plan", "run", "report", "doctor", "clean", "load"] {
        let ended = run(place.path(), &[verb, "--help"]).expect_code(&[0]);
        assert!(ended.out.contains("Usage:"), "{verb}: {}", ended.out);
    }
    run(place.path(), &["run"]).expect_code(&[2]);
    run(place.path(), &["rnu"]).expect_code(&[2]);
    run(place.path(), &["report", "nowhere"]).expect_code(&[2]);
    let ended = run(place.path(), &["explain", "single-repetition"]).expect_code(&[0]);
    assert!(ended.out.contains("repetition"), "{}", ended.out);
    let ended = run(place.path(), &["explain", "single-repetitoin"]).expect_code(&[2]);
    assert!(ended.err.contains("single-repetition"), "{}", ended.err);
}
