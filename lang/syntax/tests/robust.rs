//! Whatever the text: no panic, a tree that holds together, tokens that cover every byte, and time and memory that grow with
//! the text alone.

mod support;

use std::sync::Arc;
use support::{PIECES, corpus, effort, mutate, random, suite};
use syntax::{LineIndex, Node, Parsed, SourceId, Span, apply_edits, format, parse, tokens};

/// Read `text` in every way there is, and hold the result to what is promised of all texts.
fn check(text: &str) -> Parsed {
    let parsed = parse(Arc::from(text));
    let mut end = 0;
    for token in tokens(text) {
        assert_eq!(token.span.start, end, "a hole in the tokens of {text:?}");
        assert!(!token.span.is_empty(), "an empty token in {text:?}");
        end = token.span.end;
    }
    assert_eq!(end as usize, text.len(), "the end of {text:?}");

    let mut count = 0;
    for node in parsed.tree.nodes() {
        check_node(text, node, Span::new(0, text.len() as u32), &mut count);
    }
    assert_eq!(count, parsed.tree.descendants().count(), "nodes that no parent has, in {text:?}");
    for span in parsed.tree.disabled() {
        on_boundaries(text, *span);
    }
    let source = SourceId::new("x.kdl");
    for problem in &parsed.problems {
        on_boundaries(text, problem.span);
        problem.secondary.iter().for_each(|(span, _)| on_boundaries(text, *span));
        let fixes = problem.in_source(&source).fixes;
        fixes.iter().flat_map(|fix| &fix.edits).for_each(|edit| on_boundaries(text, edit.at.span));
        // Every fix can be applied, and what comes out can be read.
        let fixed = apply_edits(text, &source, fixes.iter().flat_map(|fix| &fix.edits));
        assert_eq!(parse(Arc::from(fixed.as_str())).tree.text(), fixed);
    }
    assert!(parsed.problems.is_sorted_by_key(|problem| problem.span.start), "problems out of order in {text:?}");
    assert_eq!(format(text).is_ok(), parsed.problems.is_empty(), "formatting {text:?}");
    let index = LineIndex::new(text);
    for offset in [0, end / 2, end] {
        assert!(index.position(text, offset).line < index.lines());
        assert!(parsed.tree.path_at(offset).iter().all(|node| node.span().touches(offset)));
    }
    parsed
}

fn on_boundaries(text: &str, span: Span) {
    assert!(text.get(span.range()).is_some(), "{span:?} does not fit {text:?}");
}

fn check_node(text: &str, node: Node<'_>, within: Span, count: &mut usize) {
    *count += 1;
    on_boundaries(text, node.span());
    on_boundaries(text, node.name_span());
    assert!(within.contains(node.span()), "{node:?} is not within {within:?} in {text:?}");
    assert!(node.span().contains(node.name_span()), "{node:?} does not hold its name in {text:?}");
    std::hint::black_box((node.name(), node.doc(), node.annotation()));
    let mut last = node.name_span().end;
    for entry in node.entries() {
        assert!(entry.span().start >= last && node.span().contains(entry.span()), "{entry:?} of {node:?} in {text:?}");
        on_boundaries(text, entry.value_span());
        last = entry.span().end;
        let value = entry.value();
        for index in 0..=value.as_str().map_or(0, str::len) {
            let offset = entry.offset_in_value(index);
            assert!(entry.value_span().touches(offset), "byte {index} of {entry:?} in {text:?}");
        }
        std::hint::black_box(entry.annotation());
    }
    let block = node.block_span();
    if let Some(block) = block {
        assert!(node.span().contains(block), "{node:?} does not hold its block in {text:?}");
    }
    for child in node.children() {
        assert_eq!(child.parent().map(Node::id), Some(node.id()));
        check_node(text, child, block.expect("a node with children has a block"), count);
    }
}

#[test]
fn the_corpus_with_changes() {
    let mut random = random(5);
    let texts = corpus();
    assert!(texts.len() >= 5, "the corpus has {} texts", texts.len());
    for (name, text) in &texts {
        let broken = !check(text).problems.is_empty();
        assert_eq!(
            broken,
            matches!(name.as_str(), "mistakes.kdl" | "found-mark-in-lines.kdl" | "found-name-after-annotation.kdl"),
            "{name}"
        );
        for _ in 0..50 * effort() {
            check(&mutate(text, &mut random));
        }
    }
}

#[test]
fn pieces_in_any_order() {
    let mut random = random(1);
    for _ in 0..6000 * effort() {
        let text: String = (0..random.below(24)).map(|_| random.pick(PIECES)).collect();
        check(&text);
    }
}

#[test]
fn characters_in_any_order() {
    let mut random = random(2);
    for _ in 0..3000 * effort() {
        let bytes: Vec<u8> = (0..random.below(60)).map(|_| random.next() as u8).collect();
        check(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn the_suite_and_a_study_with_changes() {
    let mut random = random(3);
    for case in suite() {
        for _ in 0..8 * effort() {
            check(&mutate(&case.input, &mut random));
        }
    }
    for _ in 0..300 * effort() {
        check(&mutate(support::STUDY, &mut random));
    }
}

/// A text that is being typed: every beginning of it.
#[test]
fn every_beginning_of_a_study() {
    for (at, _) in support::STUDY.char_indices() {
        check(&support::STUDY[..at]);
    }
}

/// Texts made to cost more than their length.
#[test]
fn no_text_costs_more_than_its_length() {
    let times = 200_000;
    let many = |unit: &str| unit.repeat(times / unit.len());
    for unit in [
        "a{",
        "{",
        "}",
        "(",
        "a(",
        "\"",
        "\"\"\"",
        "\"\"\"\n",
        "#\"\"\"\n",
        "#\"",
        "#\"\n",
        "##\"\"\"\n",
        "/*",
        "/*/",
        "*/",
        "'a ",
        "'",
        "\\",
        "\\\n",
        "/-",
        "/-{",
        "a /-{",
        "a;",
        ";",
        "=",
        "k=",
        "[",
        "#",
        "# \n",
        "${x",
        "$",
        "r\"",
        "r#\"",
        "a:",
        "- ",
        ",",
        "1,",
        "a/",
        "a\n  }\n",
        "a {\n",
        " a {\n}\n",
        "\u{2028}",
        "\u{202E}",
        "\u{FEFF}",
        "\\u{",
        "\"\\",
        "\"\\u{",
        "a \"\"\"\n \\\n",
        "0x",
    ] {
        let text = many(unit);
        let parsed = parse(Arc::from(text.as_str()));
        assert!(parsed.problems.len() <= syntax::MAX_PROBLEMS, "{unit:?}");
        assert!(parsed.tree.descendants().count() <= times, "{unit:?}");
    }
    // The number of hashes falls from string to string, so that no search tells anything about the next.
    let falling: String = (1..1400).rev().map(|n| format!("{}\"\"\"\n", "#".repeat(n))).collect();
    assert!(!parse(Arc::from(falling)).problems.is_empty());
}

#[test]
fn a_million_nested_blocks_are_a_diagnostic() {
    let text = "a {".repeat(1_000_000);
    let parsed = parse(Arc::from(text.as_str()));
    assert_eq!(parsed.problems.iter().map(|problem| problem.code.0).collect::<Vec<_>>(), ["E0106"]);
    assert_eq!(parsed.tree.descendants().count(), syntax::MAX_DEPTH + 1);
    let closed = format!("{text}{} b", "}".repeat(1_000_000));
    let parsed = parse(Arc::from(closed.as_str()));
    assert_eq!(parsed.problems.first().map(|problem| problem.code.0), Some("E0106"));
}
