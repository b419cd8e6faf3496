//! Reuse from the command line: where values come from, the expanded study, and imports on a real disk.

use std::fs;
use std::os::unix::fs::symlink;

use tests::{Place, root, run};

fn study() -> String {
    fs::read_to_string(root().join("tests/studies/known-truth.kdl")).expect("the study")
}

fn place(name: &str) -> Place {
    let place = Place::new(name);
    place.write("bin/faulty", "");
    let profile = "\nprofile quick {\n    phase ceiling { repeat 2 }\n    without phase first\n}\n";
    place.write("study.kdl", &format!("{}{profile}", study()));
    place
}

#[test]
fn a_value_says_who_gave_it() {
    let place = place("origin");
    let explain = |arguments: &[&str]| run(place.path(), &[&["explain-value"], arguments].concat());
    let ended = explain(&["phase.ceiling.repeat"]).expect_code(&[0]);
    let first = ended.out.lines().next().unwrap_or_default();
    assert!(first.starts_with("phase.ceiling.repeat: 3, here (study.kdl:"), "{first}");
    assert!(first.contains("; std/http gave 5 (std/http.kdl:"), "{first}");
    // The profile on top of it, and the file by its name.
    let ended = explain(&["phase.ceiling.repeat", "study.kdl", "--profile", "quick"]).expect_code(&[0]);
    assert!(ended.out.contains("2, profile `quick` (study.kdl:"), "{}", ended.out);
    assert!(ended.out.contains("; the study gave 3 (study.kdl:"), "{}", ended.out);
    let ended = explain(&["phase.ceiling.load.timeout", "--machine", "here"]).expect_code(&[0]);
    assert!(ended.out.contains("the default of the language"), "{}", ended.out);

    let ended = explain(&["phase.ceiling.gate.steal.max", "--format", "json"]).expect_code(&[0]);
    let value = &serde_json::from_str::<serde_json::Value>(&ended.out).expect("JSON")[0];
    assert_eq!(value["value"], "\"1%\"");
    assert_eq!(value["given-by"]["source"], "std/http");
    assert!(value["given-by"]["line"].as_u64().is_some_and(|line| line > 1), "{value}");
    assert_eq!(value["through"][0]["source"], "study.kdl");

    let ended = explain(&["phase.ceilign.repeat"]).expect_code(&[2]);
    assert!(ended.err.contains("did you mean `phase.ceiling.repeat`?"), "{}", ended.err);
    place.write("other.kdl", &study());
    let ended = explain(&["phase.ceiling.repeat"]).expect_code(&[2]);
    assert!(ended.err.contains("other.kdl, study.kdl"), "{}", ended.err);
}

#[test]
fn an_expanded_study_is_a_study_of_its_own() {
    let place = place("expanded");
    for profile in [&[][..], &["--profile", "quick"]] {
        let arguments = [&["check", "--expanded", "study.kdl"], profile].concat();
        let text = run(place.path(), &arguments).expect_code(&[0]).out;
        assert!(!text.contains("use ") && !text.contains("like="), "{text}");
        let plan = |file: &str| {
            let ended = run(place.path(), &[&["plan", file, "--format", "json"], profile].concat()).expect_code(&[0]);
            ended.out.replace(file, "FILE").lines().filter(|line| !line.contains("\"hash\"")).collect::<String>()
        };
        place.write("again.kdl", &text);
        assert_eq!(plan("again.kdl"), plan("study.kdl"), "{profile:?}\n{text}");
        run(place.path(), &["fmt", "--check", "again.kdl"]).expect_code(&[0]);
    }
    place.write("broken.kdl", &study().replace("like=saturation", "like=saturatoin"));
    let ended = run(place.path(), &["check", "--expanded", "broken.kdl"]).expect_code(&[10]);
    assert!(ended.out.is_empty() && ended.err.contains("saturation"), "{}{}", ended.out, ended.err);
}

#[test]
fn imports_on_a_disk_stay_inside_the_study() {
    let place = Place::new("import-walls");
    let outside = "define phase outside like=saturation { repeat 4 }\n";
    place.write("outside/lib.kdl", outside);
    place.write("study/bin/faulty", "");
    place.write("study/near.kdl", "use \"std/http\"\ndefine phase near like=saturation { repeat 4 }\n");
    // From a directory below, up to a file that is still inside.
    place.write("study/below/lib.kdl", "use \"../near.kdl\"\ndefine phase below like=near { repeat 6 }\n");
    let inside = place.path().join("study");
    symlink(place.path().join("outside"), inside.join("link")).expect("a link");
    symlink("../outside/lib.kdl", inside.join("link.kdl")).expect("a link");
    symlink("near.kdl", inside.join("within.kdl")).expect("a link");
    let check = |uses: &str, like: &str| {
        let text = study().replace("use \"std/http\"", uses).replace("ceiling like=saturation", like);
        let text = text.replace("first like=saturation", like.replace("ceiling", "first").as_str());
        place.write("study/study.kdl", &text);
        run(&inside, &["check", "study.kdl", "--format", "concise"])
    };
    for (uses, like) in [
        ("use \"./below/lib.kdl\"", "ceiling like=below"),
        ("use \"below/../near.kdl\"", "ceiling like=near"),
        ("use \"./within.kdl\"", "ceiling like=near"),
    ] {
        check(uses, like).expect_code(&[0]);
    }
    for uses in [
        "../outside/lib.kdl",
        "below/../../outside/lib.kdl",
        "link/lib.kdl",
        "./link.kdl",
        "./link/../link.kdl",
        "std/../near",
        "./below",
        "",
    ] {
        let ended = check(&format!("use \"{uses}\""), "ceiling like=outside").expect_code(&[10]);
        assert!(ended.out.contains("E0201"), "{uses}: {}", ended.out);
        assert!(!ended.out.contains("E0303"), "{uses}: an error that only follows: {}", ended.out);
    }
    let absolute = place.path().join("study/near.kdl").display().to_string();
    let ended = check(&format!("use \"{absolute}\""), "ceiling like=near").expect_code(&[10]);
    assert!(ended.out.contains("absolute"), "{}", ended.out);
    // A pipe is refused, not waited for.
    let status = std::process::Command::new("mkfifo").arg(inside.join("pipe.kdl")).status().expect("mkfifo");
    assert!(status.success());
    check("use \"./pipe.kdl\"", "ceiling like=near").expect_code(&[10]);
    // A circle is shown as the path that it is.
    place.write("study/a.kdl", "use \"./b.kdl\"\n");
    place.write("study/b.kdl", "use \"./below/c.kdl\"\n");
    place.write("study/below/c.kdl", "use \"../a.kdl\"\n");
    let ended = check("use \"std/http\"\nuse \"./a.kdl\"", "ceiling like=saturation").expect_code(&[10]);
    assert!(ended.out.contains("`./a.kdl` → `./b.kdl` → `./below/c.kdl` → `./a.kdl`"), "{}", ended.out);
}
