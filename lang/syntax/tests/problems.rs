//! The registry's examples, the fixes, and what each habit of other formats is told.

use std::sync::Arc;
use syntax::{Applicability, PROBLEMS, Parsed, Problem, SourceId, apply_edits, parse};

fn read(text: &str) -> Parsed {
    parse(Arc::from(text))
}

fn codes(text: &str) -> Vec<&'static str> {
    read(text).problems.iter().map(|problem| problem.code.0).collect()
}

fn fixed(text: &str, problems: &[Problem]) -> String {
    let source = SourceId::new("x.kdl");
    let fixes: Vec<_> = problems.iter().flat_map(|problem| problem.in_source(&source).fixes).collect();
    apply_edits(text, &source, fixes.iter().flat_map(|fix| &fix.edits))
}

#[test]
fn each_bad_example_has_its_problem_alone_and_each_good_one_none() {
    for (i, row) in PROBLEMS.iter().enumerate() {
        assert_eq!(row.code.0, format!("E01{:02}", i + 1), "{} is in the order of its code", row.name);
        assert!(row.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{} is in kebab case", row.name);
        let bad = codes(&row.bad.source());
        assert!(!bad.is_empty() && bad.iter().all(|code| *code == row.code.0), "{}: {bad:?}", row.name);
        assert!(read(&row.bad.source()).problems.iter().all(|problem| problem.name == row.name), "{}", row.name);
        assert_eq!(codes(&row.good.source()), Vec::<&str>::new(), "the good example of {}", row.name);
        let twice = PROBLEMS.iter().filter(|other| other.name == row.name || other.code == row.code).count();
        assert_eq!(twice, 1, "{} is there once", row.name);
    }
}

#[test]
fn each_fix_removes_its_problem() {
    let mut safe = 0;
    for row in PROBLEMS {
        let text = row.bad.source();
        let problems = read(&text).problems;
        if problems.iter().all(|problem| problem.fix.is_none()) {
            continue;
        }
        safe += usize::from(
            problems.iter().all(|p| p.fix.as_ref().is_some_and(|fix| fix.applicability == Applicability::Safe)),
        );
        assert_eq!(codes(&fixed(&text, &problems)), Vec::<&str>::new(), "{} after its fix", row.name);
    }
    assert!(safe >= 15, "{safe} problems have a safe fix");
}

/// A text, what it is told (codes in order), and the text after all fixes.
const HABITS: &[(&str, &[&str], &str)] = &[
    // Quantities.
    ("for 10s", &["E0108"], "for \"10s\""),
    ("gate at=115%", &["E0108"], "gate at=\"115%\""),
    ("cpus candidate=0-3 load=4-7", &["E0108", "E0108"], "cpus candidate=\"0-3\" load=\"4-7\""),
    ("memory 1GiB", &["E0108"], "memory \"1GiB\""),
    ("rate 64/s", &["E0108"], "rate \"64/s\""),
    ("share 50/50", &["E0108"], "share \"50/50\""),
    ("day 2026-09-17", &["E0108"], "day \"2026-09-17\""),
    ("image 1.2.3", &["E0108"], "image \"1.2.3\""),
    ("vary 0..3", &["E0108"], "vary \"0..3\""),
    ("expires -1h", &["E0108"], "expires \"-1h\""),
    ("set 8,16", &["E0108"], "set \"8,16\""),
    ("share .5", &["E0109"], "share 0.5"),
    ("share -.5", &["E0109"], "share -0.5"),
    ("share 5.", &["E0109"], "share 5"),
    ("mask 0xZZ", &["E0109"], "mask \"0xZZ\""),
    // Variables.
    ("pool ${pool}", &["E0112"], "pool \"${pool}\""),
    ("env URL=http://${host}:80/x", &["E0112"], "env URL=\"http://${host}:80/x\""),
    ("n 1${x}", &["E0112"], "n \"1${x}\""),
    // Paths and addresses. Without the quotes `//…` would be a comment.
    ("use ./lib.kdl", &["E0113"], "use \"./lib.kdl\""),
    ("ready GET=/ within=\"1s\"", &["E0113"], "ready GET=\"/\" within=\"1s\""),
    ("a { GET / }", &["E0113"], "a { GET \"/\" }"),
    ("build /srv/app", &["E0113"], "build \"/srv/app\""),
    ("url http://127.0.0.1:80/x?a=b#c", &["E0113"], "url \"http://127.0.0.1:80/x?a=b#c\""),
    ("use std/http as=a/b", &["E0113", "E0113"], "use \"std/http\" as=\"a/b\""),
    // Keywords.
    ("reuse true", &["E0111"], "reuse #true"),
    ("reuse on=false off=null", &["E0111", "E0111"], "reuse on=#false off=#null"),
    ("true 1", &["E0111"], "\"true\" 1"),
    ("a null=1", &["E0111"], "a \"null\"=1"),
    ("reuse #yes #False", &["E0128", "E0128"], "reuse #true #false"),
    ("colour is=#fff", &["E0128"], "colour is=\"#fff\""),
    // YAML.
    ("repeat: 6", &["E0114"], "repeat 6"),
    ("for: 10s", &["E0114", "E0108"], "for \"10s\""),
    ("phase a:\n    repeat 6", &["E0114"], "phase a\n    repeat 6"),
    ("load rate: 5 for: \"3s\"", &["E0114", "E0114"], "load rate=5 for=\"3s\""),
    ("- repeat 6\n- load", &["E0115", "E0115"], "repeat 6\nload"),
    // JSON.
    ("\"repeat\": 6", &["E0114"], "\"repeat\" 6"),
    ("cores [1, 2, 4]", &["E0121", "E0120", "E0120"], "cores 1 2 4"),
    ("over \"a\", \"b\"", &["E0120"], "over \"a\" \"b\""),
    ("load rate=5, for=\"3s\"", &["E0120"], "load rate=5 for=\"3s\""),
    // TOML and shell.
    ("repeat = 6", &["E0118"], "repeat 6"),
    ("title=\"x\"", &["E0118"], "title \"x\""),
    ("# a comment\nrepeat 6 # and another", &["E0116", "E0116"], "// a comment\nrepeat 6 // and another"),
    ("## heading\n#!/usr/bin/env exp", &["E0116", "E0116"], "// heading\n//!/usr/bin/env exp"),
    ("title 'it is' b='c'", &["E0117", "E0117"], "title \"it is\" b=\"c\""),
    // Spaces around a property's `=` are KDL.
    ("load rate = 5", &[], "load rate = 5"),
    // KDL v1.
    ("json r\"a\\b\"", &["E0133"], "json #\"a\\b\"#"),
    // What stands together without a space.
    ("a \"b\"c=1", &["E0122"], "a \"b\" c=1"),
    ("a 1(t)2", &["E0122"], "a 1 (t)2"),
    // Names.
    ("10s 1", &["E0132"], "\"10s\" 1"),
    ("a 1=2", &["E0132"], "a \"1\"=2"),
    ("a (t)k=1", &["E0130"], "a k=(t)1"),
    // Blocks.
    ("a { b } c", &["E0123"], "a { b }; c"),
    ("a {\n    b\n", &["E0104"], "a {\n    b\n}\n"),
    ("a {\n    b {\n        c\n    d\n}\ne", &["E0104"], "a {\n    b {\n        c\n    }\n    d\n}\ne"),
    ("a\n}\nb", &["E0105"], "a\nb"),
    // Strings.
    ("a \"b\nc", &["E0101"], "a \"b\"\nc"),
    ("a #\"b\"\nc", &["E0101"], "a #\"b\"\"#\nc"),
    ("a \"C:\\dir\"", &["E0126"], "a \"C:\\\\dir\""),
    ("a \"\"\"b\"\"\"", &["E0127"], "a \"b\""),
];

#[test]
fn habits_are_told_what_to_write_and_the_fix_writes_it() {
    for (text, want, after) in HABITS {
        let problems = read(text).problems;
        let got: Vec<&str> = problems.iter().map(|problem| problem.code.0).collect();
        assert_eq!(got, *want, "{text:?}: {problems:#?}");
        let fixed = fixed(text, &problems);
        assert_eq!(fixed, *after, "{text:?} after all fixes");
        assert_eq!(codes(&fixed), Vec::<&str>::new(), "{fixed:?}");
        for problem in &problems {
            assert!(problem.span.end as usize <= text.len(), "{problem:?}");
            assert!(!problem.message.is_empty() && !problem.message.contains('\n'), "{problem:?}");
        }
    }
}

#[test]
fn a_line_of_mistakes_costs_its_own_problems_and_no_others() {
    // Ten mistakes of ten kinds and right lines between them: all are seen, and nothing else.
    let text = "title 'x y'\nrepeat 6\nfor 10s\ngate at=115%\nuse ./x\n# c\nok #true\non true\nrate: 5\npool ${p}\nb = 1\n\
                c [1 2]\nd \"e\"f\nlast 1\n";
    let want = ["E0117", "E0108", "E0108", "E0113", "E0116", "E0111", "E0114", "E0112", "E0118", "E0121", "E0122"];
    assert_eq!(codes(text), want);
    let names: Vec<String> = read(text).tree.nodes().map(|node| node.name().into_owned()).collect();
    assert_eq!(names, ["title", "repeat", "for", "gate", "use", "ok", "on", "rate", "pool", "b", "c", "d", "last"]);
}

#[test]
fn more_problems_than_anyone_reads_are_counted() {
    let parsed = read(&"}\n".repeat(5000));
    assert_eq!(parsed.problems.len(), syntax::MAX_PROBLEMS);
    assert_eq!(parsed.omitted, 5000 - syntax::MAX_PROBLEMS);
}

#[test]
fn a_study_with_every_habit_is_told_each_of_them_once() {
    let text = include_str!("../corpus/mistakes.kdl");
    let told: Vec<String> = read(text)
        .problems
        .iter()
        .map(|problem| format!("{} {}", 1 + syntax::line_column(text, problem.span.start).line, problem.message))
        .collect();
    let want = [
        "1 `#` starts no comment; `//` does",
        "2 `study` has a colon after it, and no name does",
        "3 the value of `title` follows after a space, without `=`",
        "5 `0-3` needs quotes: quantities are quoted strings",
        "5 values are separated by spaces, not by commas",
        "5 `8-11` needs quotes: quantities are quoted strings",
        "6 `24GiB` needs quotes: quantities are quoted strings",
        "8 there are no lists in brackets",
        "8 values are separated by spaces, not by commas",
        "8 values are separated by spaces, not by commas",
        "11 `${rate}` needs quotes",
        "11 `10s` needs quotes: quantities are quoted strings",
        "11 the block of `load` is never closed",
        "12 `5s` needs quotes: quantities are quoted strings",
        "16 `-` starts no list item: each item is a node with a name",
        "16 `50%` needs quotes: quantities are quoted strings",
        "17 '/events/1' needs double quotes",
        "18 `http://127.0.0.1:8080/events?id=1` needs quotes",
        "19 `./sql/schema.sql` needs quotes",
        "20 `\"json\"` has a colon after it, and no name does",
        "20 `\"kind\"` has a colon after it, and no name does",
        "21 `true` is written `#true`",
        "22 the string does not end on its line",
    ];
    assert_eq!(told, want);
}
