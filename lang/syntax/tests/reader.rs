//! What the reader promises, a sentence each. Every kind of problem has its own examples in the registry (`problems.rs`), the
//! official suite is in `suite.rs`, the comparison with the `kdl` crate in `oracle.rs`.

use std::sync::Arc;
use syntax::{Applicability, MAX_DEPTH, Parsed, Value, parse, tokens};

fn read(text: &str) -> Parsed {
    parse(Arc::from(text))
}

fn codes(parsed: &Parsed) -> Vec<&'static str> {
    parsed.problems.iter().map(|problem| problem.code.0).collect()
}

fn names(parsed: &Parsed) -> Vec<String> {
    parsed.tree.descendants().map(|node| node.name().into_owned()).collect()
}

#[test]
fn nothing_of_the_text_is_lost() {
    for text in [
        "// why\n\n\na 1 /* what */ \\\n  2 // more\r\n/- off { b }\n",
        "a {\n 10s ${x} é 𝄞\n",
        "\u{feff}\u{2028};;}}\"",
    ] {
        let whole: String = tokens(text).iter().map(|token| token.span.of(text)).collect();
        assert_eq!(whole, text);
    }
}

#[test]
fn a_bare_quantity_keeps_its_value_and_its_fix_quotes_it() {
    for quantity in
        ["10s", "115%", "0-3", "1GiB", "64/s", "50/50", "64conn", "8,16", "2026-09-17", "1.2.3", "0..3", "+10s"]
    {
        let parsed = read(&format!("node {quantity} key={quantity}\nnext\n"));
        assert_eq!(codes(&parsed), ["E0108", "E0108"], "{quantity}");
        assert_eq!(names(&parsed), ["node", "next"], "{quantity}");
        let node = parsed.tree.nodes().next().expect("a node");
        for entry in node.entries() {
            assert_eq!(entry.value(), Value::Quantity(quantity));
        }
        for problem in &parsed.problems {
            let fix = problem.fix.as_ref().expect("a fix");
            assert_eq!((fix.title.as_str(), fix.applicability), ("quote it", Applicability::Safe));
            assert_eq!(fix.edits[0].1, format!("\"{quantity}\""));
            assert!(problem.message.contains(&format!("`{quantity}`")), "{}", problem.message);
        }
    }
}

#[test]
fn habits_of_other_formats_have_each_a_message_of_its_own() {
    let habits = [
        ("rate ${rate}", "bare-variable"),
        ("reuse true", "bare-keyword"),
        ("repeat: 3", "colon-after-name"),
        ("- repeat 3", "list-dash"),
        ("# why", "hash-comment"),
        ("repeat = 3", "assignment"),
        ("cores [1]", "brackets"),
        ("title 'it is'", "single-quotes"),
        ("use ./lib.kdl", "bare-path"),
        ("ready GET=/", "bare-path"),
        ("json r\"{}\"", "old-raw-string"),
    ];
    let mut messages = Vec::new();
    for (habit, name) in habits {
        let parsed = read(habit);
        let found: Vec<&str> = parsed.problems.iter().map(|problem| problem.name).collect();
        assert_eq!(found, [name], "{habit}");
        messages.push(parsed.problems[0].message.clone());
    }
    messages.sort();
    messages.dedup();
    assert_eq!(messages.len(), habits.len());
}

#[test]
fn after_a_mistake_reading_goes_on_at_a_line_a_semicolon_or_a_brace() {
    for text in [
        "bad ) (\ngood",
        "bad = = ; good",
        "bad \"open\ngood",
        "bad ] { good }",
        "outer { bad 1e400 }\ngood",
        "outer { bad ( }; good",
        "bad k=\ngood",
    ] {
        let parsed = read(text);
        assert!(!parsed.problems.is_empty(), "{text}");
        assert!(names(&parsed).iter().any(|name| name == "good"), "{text}: {:?}", names(&parsed));
    }
}

#[test]
fn a_missing_brace_is_blamed_on_the_block_whose_indentation_stops_matching() {
    // A text, and the line of the `{` that is blamed, from 1.
    let cases = [
        // The innermost of three.
        ("a {\n    b {\n        c {\n            d\n    e\n    }\n}\nf\n", 3),
        // The middle one: what follows stands where its siblings do.
        ("a {\n    b {\n        c {\n            d\n        }\n    e\n}\nf\n", 2),
        // A block at the top, found by the next node at the margin.
        ("a {\n    b\n\nf {\n    g\n}\n", 1),
        // On one line with its parent's brace.
        ("a { b {\n        c\n    }\nf\n", 1),
        // With tabs.
        ("a {\n\tb {\n\t\tc\n\td\n}\nf\n", 2),
    ];
    for (text, line) in cases {
        let parsed = read(text);
        assert_eq!(codes(&parsed), ["E0104"], "{text}");
        let problem = &parsed.problems[0];
        let blamed = 1 + text[..problem.span.start as usize].matches('\n').count();
        assert_eq!(blamed, line, "{text}: {}", problem.message);
        // What stands at the margin is not swallowed.
        let top: Vec<String> = parsed.tree.nodes().map(|node| node.name().into_owned()).collect();
        assert_eq!(top, ["a", "f"], "{text}");
        assert!(problem.fix.is_some());
    }
}

#[test]
fn nesting_is_capped_by_one_diagnostic() {
    let nested = |depth: usize| format!("{}{}", "a {".repeat(depth), "}".repeat(depth));
    assert_eq!(codes(&read(&nested(MAX_DEPTH))), Vec::<&str>::new());
    assert_eq!(codes(&read(&nested(MAX_DEPTH + 1))), ["E0106"]);
    assert_eq!(codes(&read(&nested(50_000))), ["E0106"]);
}

#[test]
fn a_text_that_is_too_long_is_refused_before_it_is_read() {
    let parsed = read(&"a 1\n".repeat(26 << 20));
    assert_eq!(codes(&parsed), ["E0107"]);
    assert_eq!(parsed.tree.descendants().count(), 0);
}
