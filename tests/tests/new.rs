//! `exp new` as somebody uses it who has nothing yet: the templates are clean, and run at once.

use std::fs;

use tests::{Place, assert_nothing_left, count_events, journal, run, the_host};

const TEMPLATES: [&str; 2] = ["http", "http-database"];

#[test]
fn a_template_is_clean_laid_out_and_has_a_plan() {
    let place = Place::new("new");
    let listed = run(place.path(), &["new", "--list"]).expect_code(&[0]);
    assert_eq!(listed.out.lines().count(), TEMPLATES.len());
    for template in TEMPLATES {
        assert!(listed.out.lines().any(|line| line.starts_with(&format!("{template} "))), "{}", listed.out);
        let study = format!("my-{template}/study.kdl");
        let ended = run(place.path(), &["new", &format!("my-{template}"), "--template", template]).expect_code(&[0]);
        assert!(ended.out.contains(&format!("exp run {study} --profile smoke")), "{}", ended.out);
        for profile in [&[][..], &["--profile", "smoke"]] {
            let arguments = [&["check", &study][..], profile].concat();
            let ended = run(place.path(), &arguments).expect_code(&[0]);
            assert!(ended.err.contains("no problems") && ended.out.is_empty(), "{}{}", ended.out, ended.err);
            let ended = run(place.path(), &[&["plan", &study][..], profile].concat()).expect_code(&[0]);
            assert!(ended.out.contains("ceiling"), "{}", ended.out);
        }
        run(place.path(), &["fmt", "--check", &study]).expect_code(&[0]);
    }
    // Without a name and without a terminal nothing is asked.
    run(place.path(), &["new"]).expect_code(&[0]);
    assert!(place.path().join("first-study/study.kdl").exists());
}

#[test]
fn what_is_there_stays() {
    let place = Place::new("new-there");
    place.write("mine/study.kdl", "mine\n");
    place.write("file", "mine\n");
    for directory in ["mine", "file"] {
        let ended = run(place.path(), &["new", directory]).expect_code(&[2]);
        assert!(ended.err.contains("is there already"), "{}", ended.err);
    }
    assert_eq!(fs::read_to_string(place.path().join("mine/study.kdl")).expect("a file"), "mine\n");
    assert_eq!(fs::read_dir(place.path().join("mine")).expect("a directory").count(), 1);
    for name in ["2b", "two words", "é"] {
        let ended = run(place.path(), &["new", name]).expect_code(&[2]);
        assert!(ended.err.contains("no name for a study"), "{}", ended.err);
    }
    let ended = run(place.path(), &["new", "x", "--template", "htp"]).expect_code(&[2]);
    assert!(ended.err.contains("http"), "{}", ended.err);
    assert!(!place.path().join("x").exists());
}

/// Runs a template as its own comments say. Whether this machine is quiet enough for a figure is not the template's
/// business; that its service passes the contract and is measured is.
fn measures(template: &str) {
    let _host = the_host();
    let place = Place::new(&format!("new-{template}"));
    run(place.path(), &["new", "mine", "--template", template]).expect_code(&[0]);
    let mine = place.path().join("mine");
    let ended = run(&mine, &["run", "study.kdl", "--profile", "smoke", "--backend", "process"]).expect_code(&[0, 40]);
    let runs: Vec<_> = fs::read_dir(mine.join("results/mine")).expect("results").flatten().collect();
    assert_eq!(runs.len(), 1);
    let records = journal(&runs[0].path());
    let measured = count_events(&records, "repetition-measured");
    assert!(measured >= 5, "{measured} repetitions\n{}{}", ended.out, ended.err);
    let printed = format!("{}{}", ended.out, ended.err);
    let contract = if template == "http" { "service 2/2" } else { "service 5/5" };
    assert!(printed.contains(contract), "{printed}");
    assert!(!printed.contains("census"), "no answer was wrong or lost\n{printed}");
    assert_nothing_left(&runs[0].path());
}

#[test]
fn the_http_template_measures_its_service() {
    measures("http");
}

#[test]
fn the_template_with_a_database_measures_its_service() {
    measures("http-database");
}
