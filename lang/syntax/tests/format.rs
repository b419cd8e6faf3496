//! The formatter changes white space and nothing else, and formatting twice changes nothing more.

mod support;

use proptest::prelude::*;
use std::sync::Arc;
use support::{canonical, effort, mutate, random, suite};
use syntax::{TokenKind, format, parse, tokens};

/// What must survive: every token but white space, comments without the white space at their line's end.
fn kept(text: &str) -> Vec<(TokenKind, String)> {
    tokens(text)
        .into_iter()
        .filter(|token| !token.kind.is_white() || token.kind == TokenKind::Mark)
        .map(|token| (token.kind, token.span.of(text)))
        .map(|(kind, text)| (kind, if kind == TokenKind::LineComment { text.trim_end() } else { text }.to_owned()))
        .collect()
}

/// Format a right text and hold the result to all promises.
fn check(text: &str) -> String {
    let formatted = format(text).unwrap_or_else(|problems| panic!("{text:?} is right: {problems:?}"));
    assert_eq!(kept(&formatted), kept(text), "the tokens of\n{text}\nafter\n{formatted}");
    let parsed = parse(Arc::from(formatted.as_str()));
    assert!(parsed.problems.is_empty(), "{text:?} became {formatted:?}: {:?}", parsed.problems);
    let before = parse(Arc::from(text));
    assert_eq!(canonical(&parsed.tree), canonical(&before.tree), "the content of {text:?} after {formatted:?}");
    let again = format(&formatted).expect("a formatted text is right");
    assert_eq!(again, formatted, "twice, from {text:?}");
    formatted
}

const CASES: &[(&str, &str)] = &[
    ("", ""),
    ("  \n\n ", ""),
    ("// only a comment", "// only a comment\n"),
    ("a   1\t\"b\"  k = 2", "a 1 \"b\" k=2\n"),
    ("a{b;c 1;}", "a { b; c 1; }\n"),
    ("a {   b   ;   c }", "a { b; c }\n"),
    ("a {}\nb { }\nc {\n\n}", "a {}\nb {}\nc {}\n"),
    ("a {\n  b\n\tc { d }\n      e {\n  f\n}\n}", "a {\n    b\n    c { d }\n    e {\n        f\n    }\n}\n"),
    // A block that ends on another line than it starts gets its lines, though nodes joined by `;` stay together.
    ("a { b; c\n d }", "a {\n    b; c\n    d\n}\n"),
    // Blank lines: one at most, none inside the braces.
    ("\n\na\n\n\n\nb {\n\n  c\n\n\n  d\n\n}\n\n\n", "a\n\nb {\n    c\n\n    d\n}\n"),
    // Comments.
    ("a 1   // one  \n  // two\n/* three */ b\nc /* four */ 5", "a 1 // one\n// two\n/* three */ b\nc /* four */ 5\n"),
    ("a { // why\n b // what\n\n // last\n}", "a { // why\n    b // what\n\n    // last\n}\n"),
    ("a/*x*/1/*y*/;b", "a/*x*/1/*y*/; b\n"),
    ("a {\n/* one\n   two */\nb }", "a {\n    /* one\n   two */\n    b\n}\n"),
    ("a//x\nb", "a //x\nb\n"),
    // Spellings stay.
    ("a 1_000_000 0x1F #\"raw\"# \"\\u{e9}\" +1 1.50e+3", "a 1_000_000 0x1F #\"raw\"# \"\\u{e9}\" +1 1.50e+3\n"),
    ("a {\n  b \"\"\"\n   x\n     y\n   \"\"\" 1\n}", "a {\n    b \"\"\"\n   x\n     y\n   \"\"\" 1\n}\n"),
    ("a { b \"\"\"\n x\n \"\"\" }", "a {\n    b \"\"\"\n x\n \"\"\"\n}\n"),
    // Annotations.
    ("( t ) a ( u ) 1 k = ( v ) 2", "(t)a (u)1 k=(v)2\n"),
    // Continued lines are indented one step deeper.
    ("a 1 \\\n2 \\  // why\n  3\nb", "a 1 \\\n    2 \\ // why\n    3\nb\n"),
    ("a {\n b \\\n c\n}", "a {\n    b \\\n        c\n}\n"),
    ("a \\\n\n\nb", "a \\\n\nb\n"),
    // What is switched off is formatted like what is not.
    ("/-  a   1 { b }\nc /- 1   /-k = 2 /-{d;e}", "/- a 1 { b }\nc /- 1 /-k=2 /-{ d; e }\n"),
    ("a {\n/-\n// why\nb\n}", "a {\n    /-\n    // why\n    b\n}\n"),
    ("a /-\n1 2", "a /-\n    1 2\n"),
    // Line ends of one kind.
    ("a\r\nb {\r\nc\r\n}", "a\r\nb {\r\n    c\r\n}\r\n"),
    ("\r\na /*\n*/ b\n", "a /*\n*/ b\r\n"),
    ("a\u{2028}b\u{85}\u{B}c", "a\nb\n\nc\n"),
    ("\u{FEFF}a  1", "\u{FEFF}a 1\n"),
    ("a;b;", "a; b;\n"),
    ("a ;\nb", "a;\nb\n"),
];

#[test]
fn the_shape() {
    for (text, want) in CASES {
        assert_eq!(check(text), *want, "from {text:?}");
    }
}

#[test]
fn broken_texts_are_left_alone() {
    let problems = format("a {\n  b 10s\n").expect_err("a broken text is not formatted");
    assert_eq!(problems.iter().map(|problem| problem.code.0).collect::<Vec<_>>(), ["E0104", "E0108"]);
}

#[test]
fn the_suite_and_a_study_and_what_becomes_of_them() {
    let mut random = random(4);
    let mut right = 0;
    let cases: Vec<String> = suite().into_iter().map(|case| case.input).chain([support::STUDY.to_owned()]).collect();
    for case in &cases {
        for n in 0..20 * effort() {
            let text = if n == 0 { case.clone() } else { mutate(case, &mut random) };
            if parse(Arc::from(text.as_str())).problems.is_empty() {
                right += 1;
                check(&text);
            }
        }
    }
    assert!(right > 1000, "only {right} texts were right");
}

#[test]
fn a_formatted_study_stays_as_it_is() {
    let text = check(support::STUDY);
    assert!(text.contains("    each cell { clone; prewarm events events_pkey; checkpoint settled=writeback }\n"));
    assert!(text.contains("max_connections=200 // one per worker\n"));
}

/// White space as people leave it, within a line.
fn gap() -> impl Strategy<Value = &'static str> + Clone {
    prop_oneof![
        6 => Just(" "),
        2 => Just("   "),
        1 => Just("\t"),
        1 => Just(" /* c */ "),
        1 => Just("/**/"),
        1 => Just(" \\\n  "),
        1 => Just(" \\ // why  \n"),
        1 => Just("\u{A0}"),
    ]
}

fn value() -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        "[a-z][a-z0-9.-]{0,6}[a-z0-9]".prop_filter("keywords", |word| syntax::is_bare(word)),
        Just("\"a \\\"b\\\" é\"".to_owned()),
        Just("#\"raw \\ \"#".to_owned()),
        Just("\"\"\"\n  x\n    y\n  \"\"\"".to_owned()),
        Just("1_000".to_owned()),
        Just("-0x1F".to_owned()),
        Just("#true".to_owned()),
        Just("(t)1.5".to_owned()),
    ]
}

fn entry() -> impl Strategy<Value = String> + Clone {
    let slashdash = prop_oneof![8 => Just(""), 1 => Just("/-"), 1 => Just("/- \n ")];
    let key = prop_oneof![3 => Just(""), 2 => Just("k="), 1 => Just("k = "), 1 => Just("\"a b\"\t=")];
    (slashdash, key, value()).prop_map(|(slashdash, key, value)| format!("{slashdash}{key}{value}"))
}

fn nodes() -> impl Strategy<Value = String> {
    let end = prop_oneof![5 => Just("\n"), 2 => Just(";"), 1 => Just(" ; "), 1 => Just("\n\n\n"), 1 => Just(" // c \n"), 1 => Just("\r\n")];
    let start =
        prop_oneof![8 => Just(""), 1 => Just("/-"), 1 => Just("/- "), 1 => Just("// c\n"), 1 => Just("/* d\n */ ")];
    let head = (start, "[a-z]{1,5}[0-9]", prop::collection::vec((gap(), entry()), 0..4));
    let leaf = (head.clone(), end.clone()).prop_map(|((start, name, entries), end)| {
        let entries: String = entries.into_iter().map(|(gap, entry)| format!("{gap}{entry}")).collect();
        format!("{start}{name}{entries}{end}")
    });
    leaf.prop_recursive(4, 40, 5, move |inner| {
        let open = prop_oneof![Just("{"), Just("{ "), Just("{\n"), Just("{ // c\n"), Just("{\n\n\n")];
        let close = prop_oneof![Just("}"), Just(" }"), Just("\n}"), Just("} /-{ z }")];
        let block = (gap(), open, prop::collection::vec(inner, 0..5), close)
            .prop_map(|(gap, open, nodes, close)| format!("{gap}{open}{}{close}", nodes.concat()));
        (head.clone(), block, end.clone()).prop_map(|((start, name, entries), block, end)| {
            let entries: String = entries.into_iter().map(|(gap, entry)| format!("{gap}{entry}")).collect();
            format!("{start}{name}{entries}{block}{end}")
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400 * effort() as u32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_right_text_keeps_its_tokens_and_its_content(nodes in prop::collection::vec(nodes(), 0..6)) {
        check(&nodes.concat());
    }
}
