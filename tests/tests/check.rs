//! `exp check` and `exp fmt` as a person, an editor and a code host use them: every format, fixes, diffs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use tests::{Place, root, run};

/// A study with mistakes of the reader and of the analysis, warnings, and characters of two, three and four bytes.
const MISTAKES: &str = "\
study demo { title \"é𝄞, 100%: why?\"; question \"q\" }
use \"std/http\"
machine bench { cpus candidate=\"0\" database=\"1\" load=0-1 sharing=accepted }
factor cores 1
candidate app { image \"é𝄞\"; listen 8080; memory 1GiB; ready GET=/ within 10s }
workload mixed { stream read { GET \"/\"; expct 200 } }
phase ceiling like=saturation { over candidate, cores; repaet 5 }
define phase slow { repeat 5 }
";

/// What `--fix` makes of it: what was plainly meant.
const SAFE: &str = "\
study demo { title \"é𝄞, 100%: why?\"; question \"q\" }
use \"std/http\"
machine bench { cpus candidate=\"0\" database=\"1\" load=\"0-1\" sharing=accepted }
factor cores 1
candidate app { image \"é𝄞\"; listen 8080; memory \"1GiB\"; ready GET=\"/\" within \"10s\" }
workload mixed { stream read { GET \"/\"; expct 200 } }
phase ceiling like=saturation { over candidate cores; repaet 5 }
define phase slow { repeat 5 }
";

fn place(name: &str) -> Place {
    let place = Place::new(name);
    place.write("study.kdl", MISTAKES);
    place
}

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path().join(name)).expect("a file")
}

#[test]
fn json_has_bytes_lines_and_fixes() {
    let place = place("json");
    let ended = run(place.path(), &["check", "study.kdl", "--format", "json"]).expect_code(&[10]);
    let log: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!(log["version"], 1);
    let found = log["diagnostics"].as_array().expect("diagnostics");
    assert_eq!(
        log["errors"].as_u64().map(|n| n as usize + log["warnings"].as_u64().unwrap_or(0) as usize),
        Some(found.len())
    );
    let memory =
        found.iter().find(|one| one["message"].as_str().is_some_and(|text| text.contains("1GiB"))).expect("1GiB");
    let at = MISTAKES.find("1GiB").expect("it is written");
    let line = &MISTAKES[MISTAKES[..at].rfind('\n').map_or(0, |end| end + 1)..at];
    let primary = &memory["primary"];
    assert_eq!(primary["bytes"], serde_json::json!([at, at + 4]));
    assert_eq!(primary["start"]["line"], 5);
    assert_eq!(primary["start"]["column"], line.len() + 1, "in bytes");
    assert_eq!(primary["start"]["utf16"], line.encode_utf16().count() + 1);
    let fix = &memory["fixes"][0];
    assert_eq!((&fix["applicability"], &fix["edits"][0]["text"]), (&"safe".into(), &"\"1GiB\"".into()));
    // A clean study is an object too.
    place.write("clean.kdl", include_str!("../studies/known-truth.kdl"));
    place.write("bin/faulty", "");
    let ended = run(place.path(), &["check", "clean.kdl", "--format", "json"]).expect_code(&[0]);
    let log: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!((&log["errors"], &log["diagnostics"]), (&0.into(), &serde_json::json!([])));
}

/// The official schema, as the crate `serde-sarif` 0.8.0 carries it (MIT; the schema is OASIS's).
fn sarif_schema() -> jsonschema::Validator {
    let text = fs::read_to_string(root().join("tests/schemas/sarif-2.1.0.json")).expect("the schema");
    let mut schema: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    // Its pattern for languages has a bracket too many, which only JavaScript takes for a letter.
    for definition in ["run", "toolComponent"] {
        let language = &mut schema["definitions"][definition]["properties"]["language"];
        language.as_object_mut().expect("a property").remove("pattern").expect("the pattern");
    }
    jsonschema::validator_for(&schema).expect("a schema")
}

#[test]
fn sarif_obeys_the_official_schema() {
    let schema = sarif_schema();
    let place = place("sarif");
    place.write("two words/lib.kdl", "define phase x like=saturation { repeat 0 }\n");
    place.write(
        "other.kdl",
        "study o { title \"t\"; question \"q\" }\nuse \"two words/lib.kdl\"\nphase y like=x { over candidate }\n",
    );
    let ended = run(place.path(), &["check", "study.kdl", "other.kdl", "--format", "sarif"]).expect_code(&[10]);
    let log: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
    let wrong: Vec<String> =
        schema.iter_errors(&log).map(|error| format!("{error} at {}", error.instance_path())).collect();
    assert_eq!(wrong, Vec::<String>::new());
    // The schema notices what is wrong.
    let mut broken = log.clone();
    broken["runs"][0]["results"][0]["level"] = "fatal".into();
    assert!(!schema.is_valid(&broken), "the schema lets everything through");

    let run_object = &log["runs"][0];
    let rules = run_object["tool"]["driver"]["rules"].as_array().expect("rules");
    let results = run_object["results"].as_array().expect("results");
    assert!(rules.len() >= 4 && results.len() >= rules.len(), "{} rules, {} results", rules.len(), results.len());
    for result in results {
        let rule = &rules[result["ruleIndex"].as_u64().expect("an index") as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(rule["help"]["text"].as_str().is_some_and(|page| page.contains("```kdl")), "{rule}");
    }
    let quantity = results
        .iter()
        .find(|one| one["message"]["text"].as_str().is_some_and(|text| text.contains("1GiB")))
        .expect("1GiB");
    let region = &quantity["locations"][0]["physicalLocation"]["region"];
    let change = &quantity["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(change["deletedRegion"], *region);
    assert_eq!(change["insertedContent"]["text"], "\"1GiB\"");
    assert_eq!(region["startLine"], 5);
    assert!(ended.out.contains("two%20words/lib.kdl"), "{}", ended.out);
}

#[test]
fn github_annotations_escape_what_they_must() {
    let place = place("github");
    fs::rename(place.path().join("study.kdl"), place.path().join("a,b:c%.kdl")).expect("a name");
    let ended = run(place.path(), &["check", "a,b:c%.kdl", "--format", "github"]).expect_code(&[10]);
    let lines: Vec<&str> = ended.out.lines().collect();
    assert!(lines.len() >= 6, "{}", ended.out);
    for line in &lines {
        let (head, message) = line.strip_prefix("::").and_then(|line| line.split_once("::")).expect("a command");
        let (command, properties) = head.split_once(' ').expect("properties");
        assert!(["error", "warning", "notice"].contains(&command), "{line}");
        let keys: Vec<&str> = properties.split(',').map(|one| one.split_once('=').expect("key=value").0).collect();
        assert!(keys.starts_with(&["file", "line"]) && keys.ends_with(&["title"]), "{line}");
        assert!(properties.starts_with("file=a%2Cb%3Ac%25.kdl,"), "{line}");
        assert!(!message.is_empty());
    }
    // The help follows after an escaped line end.
    assert!(ended.out.contains("%0Ahelp: "), "{}", ended.out);
}

#[test]
fn concise_and_human_name_place_code_and_message() {
    let place = place("concise");
    let ended = run(place.path(), &["check", "study.kdl", "--format", "concise"]).expect_code(&[10]);
    assert!(ended.out.starts_with("study.kdl:3:54: error[E0108]: `0-1` needs quotes"), "{}", ended.out);
    assert!(ended.err.contains("1 file checked: "), "{}", ended.err);
    let ended = run(place.path(), &["check", "study.kdl"]).expect_code(&[10]);
    assert!(ended.out.starts_with("error[E0108 bare-quantity]: `0-1` needs quotes"), "{}", ended.out);
    for wanted in ["╭─[study.kdl:3:54]", "fix: quote it", "warning[W0"] {
        assert!(ended.out.contains(wanted), "`{wanted}` is not in\n{}", ended.out);
    }
}

#[test]
fn fixes_are_applied_shown_or_left() {
    let place = place("fix");
    // A diff changes nothing, and applied by `patch` it gives what `--fix` gives.
    let diff = run(place.path(), &["check", "--diff", "study.kdl"]).expect_code(&[10]);
    assert_eq!(read(&place, "study.kdl"), MISTAKES);
    assert!(diff.err.contains("would be applied, nothing was changed"), "{}", diff.err);
    assert!(diff.out.starts_with("--- a/study.kdl\n+++ b/study.kdl\n"), "{}", diff.out);

    let ended = run(place.path(), &["check", "--fix", "study.kdl"]).expect_code(&[10]);
    assert_eq!(read(&place, "study.kdl"), SAFE);
    assert!(ended.err.contains("5 fixes applied; left: "), "{}", ended.err);
    assert!(ended.out.contains("expct") && !ended.out.contains("needs quotes"), "{}", ended.out);
    for line in diff.out.lines().skip(3) {
        let (side, text) = line.split_at(1);
        let (in_old, in_new) = (MISTAKES.lines().any(|l| l == text), SAFE.lines().any(|l| l == text));
        assert!(
            match side {
                "+" => in_new,
                "-" => in_old,
                _ => in_old && in_new,
            },
            "{line}"
        );
    }

    // Guesses only where they are asked for.
    run(place.path(), &["check", "--unsafe-fixes", "study.kdl"]).expect_code(&[10]);
    let guessed = read(&place, "study.kdl");
    assert!(guessed.contains("expect 200") && guessed.contains("repeat 5"), "{guessed}");
    // A second time there is nothing left to do.
    let ended = run(place.path(), &["check", "--unsafe-fixes", "study.kdl"]).expect_code(&[10]);
    assert!(ended.err.contains("0 fixes applied"), "{}", ended.err);
    assert_eq!(read(&place, "study.kdl"), guessed);
}

#[test]
fn fixes_stay_inside_the_study() {
    let place = Place::new("fix-inside");
    let outside = place.write("outside.kdl", MISTAKES);
    fs::create_dir_all(place.path().join("inside")).expect("a directory");
    symlink(&outside, place.path().join("inside/study.kdl")).expect("a link");
    let ended = run(&place.path().join("inside"), &["check", "--fix", "study.kdl"]).expect_code(&[20]);
    assert!(ended.err.contains("outside"), "{}", ended.err);
    assert_eq!(fs::read_to_string(&outside).expect("a file"), MISTAKES);
    // A library of the study is mended, with its permissions.
    let library = place.write("inside/lib.kdl", "define phase x { load closed for=5s }\n");
    fs::set_permissions(&library, fs::Permissions::from_mode(0o640)).expect("permissions");
    place.write("inside/other.kdl", "study o { title \"t\"; question \"q\" }\nuse \"lib.kdl\"\n");
    run(&place.path().join("inside"), &["check", "--fix", "other.kdl"]).expect_code(&[10]);
    assert_eq!(fs::read_to_string(&library).expect("a file"), "define phase x { load closed for=\"5s\" }\n");
    assert_eq!(fs::metadata(&library).expect("a file").permissions().mode() & 0o777, 0o640);
}

#[test]
fn fmt_writes_checks_or_shows() {
    let place = Place::new("fmt");
    let (ragged, neat) = ("a   1 { b ;c } // why\n\n\n\nd  0x1F\n", "a 1 { b; c } // why\n\nd 0x1F\n");
    place.write("a.kdl", ragged);
    let ended = run(place.path(), &["fmt", "--check", "a.kdl"]).expect_code(&[10]);
    assert_eq!(ended.out, "a.kdl would change\n");
    let ended = run(place.path(), &["fmt", "--diff", "a.kdl"]).expect_code(&[10]);
    assert!(ended.out.contains("-a   1 { b ;c } // why\n+a 1 { b; c } // why\n"), "{}", ended.out);
    assert_eq!(read(&place, "a.kdl"), ragged, "neither changes anything");
    run(place.path(), &["fmt", "a.kdl"]).expect_code(&[0]);
    assert_eq!(read(&place, "a.kdl"), neat);
    for option in ["--check", "--diff"] {
        let ended = run(place.path(), &["fmt", option, "a.kdl"]).expect_code(&[0]);
        assert_eq!(ended.out, "");
    }
    place.write("broken.kdl", "a {\n");
    let ended = run(place.path(), &["fmt", "broken.kdl"]).expect_code(&[10]);
    assert!(ended.err.contains("not formatted"), "{}", ended.err);
    assert_eq!(read(&place, "broken.kdl"), "a {\n");
}

#[test]
fn every_code_is_explained() {
    let place = Place::new("explain");
    let ended = run(place.path(), &["explain", "--list"]).expect_code(&[0]);
    let codes: Vec<&str> = ended.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(codes.len() > 80, "{}", ended.out);
    for code in codes {
        let ended = run(place.path(), &["explain", code]).expect_code(&[0]);
        assert!(ended.out.starts_with(&format!("# {code}")), "{}", ended.out);
        assert!(ended.out.contains("Wrong") && ended.out.contains("Right"), "{}", ended.out);
    }
}
