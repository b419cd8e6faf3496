//! The tree: what it holds, from right texts and from broken ones. The main thing about a broken text is that the rest of it
//! has the tree that it would have without the mistake.

use std::sync::Arc;
use syntax::{Entry, LineIndex, Node, Parsed, Severity, SourceId, Span, StringStyle, Value, parse};

fn read(text: &str) -> Parsed {
    parse(Arc::from(text))
}

/// The names of all nodes, children in brackets.
fn outline(text: &str) -> String {
    fn level<'t>(nodes: impl Iterator<Item = Node<'t>>) -> String {
        let each = |node: Node<'t>| {
            let inside = level(node.children());
            let entries: String = node.entries().map(|entry| format!(" {}", entry.text())).collect();
            format!("{}{entries}{}", node.name(), if inside.is_empty() { inside } else { format!("[{inside}]") })
        };
        nodes.map(each).collect::<Vec<_>>().join(", ")
    }
    level(read(text).tree.nodes())
}

/// A broken text, and the tree it has all the same.
const BROKEN: &[(&str, &str)] = &[
    // A missing `}`: what is not indented as if it were inside is outside.
    ("a {\n    b {\n        c\n    d\n}\ne", "a[b[c], d], e"),
    ("a {\n    b\nc {\n    d\n}\n", "a[b], c[d]"),
    ("a {\n    b {\n        c\nd\n", "a[b[c]], d"),
    ("a {\n    b {\n        c\n}\nd\n", "a[b[c]], d"),
    ("a {\n  b {\n    c {\n      d\n  e\n}\nf {\n  g\n", "a[b[c[d]], e], f[g]"),
    ("a {\n    b", "a[b]"),
    // Lazy indentation is no mistake as long as the braces fit.
    ("a {\nb {\nc\n}\nd\n}\ne", "a[b[c], d], e"),
    ("a {\n      b {\n  c\n }\n d\n}\ne", "a[b[c], d], e"),
    // A `}` too many.
    ("a {\n    b\n}\n}\nc", "a[b], c"),
    // Half of something, as while typing.
    ("a {\n    b k=\n    c\n}", "a[b k=, c]"),
    ("a {\n    b \"x\n    c\n}", "a[b \"x, c]"),
    ("a {\n    b (\n    c\n}", "a[b, c]"),
    ("a {\n    b (t)\n    c\n}", "a[b, c]"),
    ("a {\n    b #\n    c\n}", "a[b, c]"),
    ("a {\n    (t\n    c\n}", "a[c]"),
    ("a {\n    b =\n    c\n}", "a[b, c]"),
    ("a {\n    /-\n}\nb", "a, b"),
    ("a {\n    b \"\"\"\n        text\n    c\n}\nd", "a[b \"\"\"\n        text, c], d"),
    ("a { b", "a[b]"),
    ("a { b; c } d", "a[b, c], d"),
    ("a 1 { b } { c }\nd", "a 1[b, c], d"),
    ("{\n    a\n}\nb", "[a], b"),
    ("a ) ] 1\nb", "a 1, b"),
    ("a 10s 115% k=0-3", "a 10s 115% k=0-3"),
    ("- a 1\n- b", "a 1, b"),
    ("a: 1\nb: {\n    c: \"x\"\n}", "a 1, b[c \"x\"]"),
    ("a [1, 2]", "a 1 2"),
    ("a ${x} b", "a ${x} b"),
];

#[test]
fn the_rest_of_a_broken_text_has_its_tree() {
    for (text, want) in BROKEN {
        assert_eq!(outline(text), *want, "{text:?}: {:#?}", read(text).problems);
    }
}

#[test]
fn an_unclosed_block_is_blamed_where_it_opens() {
    let text = "phase a {\n    load {\n        for \"3s\"\n    repeat 3\n}\nphase b {\n    repeat 4\n}\n";
    let problems = read(text).problems;
    assert_eq!(problems.len(), 1, "{problems:#?}");
    let problem = problems.first().expect("one problem");
    let index = LineIndex::new(text);
    assert_eq!(index.position(text, problem.span.start).line, 1);
    assert_eq!(problem.message, "the block of `load` is never closed");
    let (next, _) = problem.secondary.first().expect("what is outside");
    assert_eq!(next.of(text), "repeat");
    let source = SourceId::new("x.kdl");
    let diagnostic = problem.in_source(&source);
    assert_eq!(diagnostic.severity, Severity::Error);
    assert_eq!(diagnostic.primary.at.source, source);
    assert_eq!(diagnostic.code.0, "E0104");
}

fn only_node(text: &str, look: impl Fn(Node<'_>)) {
    let parsed = read(text);
    assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
    look(parsed.tree.nodes().next().expect("a node"));
}

#[test]
fn entries_in_order_with_their_places() {
    let text = "(add)stream \"read é\" share=50 (u8)7 share=(pct)60 \"a b\"=#null {\n    x\n}\n";
    only_node(text, |node| {
        assert_eq!(node.name(), "stream");
        assert_eq!(node.name_span().of(text), "stream");
        assert_eq!(
            node.annotation().map(|(name, span)| (name.into_owned(), span)),
            Some(("add".into(), Span::new(1, 4)))
        );
        assert_eq!(node.span(), Span::new(0, text.len() as u32 - 1));
        assert_eq!(node.block_span().map(|span| span.of(text)), Some("{\n    x\n}"));
        let values: Vec<String> = node.entries().map(|entry| entry.text().to_owned()).collect();
        assert_eq!(values, ["\"read é\"", "share=50", "(u8)7", "share=(pct)60", "\"a b\"=#null"]);
        assert_eq!(node.arguments().count(), 2);
        assert_eq!(node.argument(1).map(Entry::value), Some(Value::Integer(7)));
        assert_eq!(node.argument(1).and_then(Entry::annotation).map(|(name, _)| name.into_owned()), Some("u8".into()));
        let shares: Vec<Value<'_>> = node.properties().take(2).map(Entry::value).collect();
        assert_eq!(shares, [Value::Integer(50), Value::Integer(60)], "both are kept");
        let share = node.property("share").expect("a share");
        assert_eq!(share.value(), Value::Integer(60), "the last counts");
        assert_eq!(share.key().map(|(_, span)| span.of(text)), Some("share"));
        assert_eq!(share.value_span().of(text), "60");
        assert_eq!(
            share.annotation().map(|(name, span)| (name.into_owned(), span.of(text))),
            Some(("pct".into(), "pct"))
        );
        let last = node.entries().next_back().expect("an entry");
        assert_eq!(last.key().map(|(key, span)| (key.into_owned(), span.of(text))), Some(("a b".into(), "\"a b\"")));
        assert_eq!(last.value(), Value::Null);
    });
}

#[test]
fn values_of_all_kinds() {
    let text = "v bare \"quoted\" #\"raw\"# 1_0 0x10 1.5 17.10 1e3 #true #false #null #inf #-inf -0";
    only_node(text, |node| {
        let strings: Vec<StringStyle> = node.entries().filter_map(Entry::style).collect();
        assert_eq!(strings, [StringStyle::Bare, StringStyle::Quoted, StringStyle::Raw]);
        let rest: Vec<Value<'_>> = node.arguments().skip(3).map(Entry::value).collect();
        let want = [
            Value::Integer(10),
            Value::Integer(16),
            Value::Float(1.5),
            Value::Float(17.1),
            Value::Float(1000.0),
            Value::Bool(true),
            Value::Bool(false),
            Value::Null,
            Value::Float(f64::INFINITY),
            Value::Float(f64::NEG_INFINITY),
            Value::Integer(0),
        ];
        assert_eq!(rest, want);
        let version = node.argument(6).expect("17.10");
        assert_eq!(version.value_text(), "17.10", "as written");
    });
}

#[test]
fn broken_values_keep_what_was_meant() {
    let parsed = read("v 10s true ${x} a/b 'c d' 1e400 #yes 0xZ \"\\q\" 3,\n");
    let values: Vec<Value<'_>> =
        parsed.tree.nodes().flat_map(|node| node.arguments()).map(|entry| entry.value()).collect();
    let bare = |text: &'static str| Value::String { text: text.into(), style: StringStyle::Bare };
    let want = [
        Value::Quantity("10s"),
        Value::Bool(true),
        bare("${x}"),
        bare("a/b"),
        Value::String { text: "c d".into(), style: StringStyle::Quoted },
        Value::Unknown,
        Value::Unknown,
        Value::Unknown,
        Value::Unknown,
        Value::Integer(3),
    ];
    assert_eq!(values, want);
}

#[test]
fn places_within_a_value() {
    let text = "expect \"corrected.p99 < 10ms\" path=\"/events/${id}\" esc=\"\\t${id}\"";
    only_node(text, |node| {
        let place = |entry: Entry<'_>, part: &str| {
            let value = entry.value();
            let start = value.as_str().and_then(|content| content.find(part)).expect("the part is in the value");
            entry.span_in_value(start, start + part.len()).of(text).to_owned()
        };
        assert_eq!(place(node.argument(0).expect("an argument"), "< 10ms"), "< 10ms");
        assert_eq!(place(node.property("path").expect("a path"), "${id}"), "${id}");
        assert_eq!(place(node.property("esc").expect("an escape"), "${id}"), "${id}");
    });
}

#[test]
fn comments_above_a_node_are_its_doc() {
    let text = "// not this\n\n// one\n//   two\na\n// three\nb // four\nc\n    // five\n\n  /* six */\nd";
    let docs: Vec<Option<String>> = read(text).tree.nodes().map(|node| node.doc()).collect();
    assert_eq!(docs, [Some("one\n  two".to_owned()), Some("three".to_owned()), None, None]);
}

#[test]
fn the_node_under_a_cursor() {
    let text = "a {\n    b {\n        c 1\n    }\n}\nd\n";
    let parsed = read(text);
    let path = |part: &str| -> Vec<String> {
        let at = text.find(part).expect("the part is in the text") as u32;
        parsed.tree.path_at(at).iter().map(|node| node.name().into_owned()).collect()
    };
    assert_eq!(path("c 1"), ["a", "b", "c"]);
    assert_eq!(path("b {"), ["a", "b"]);
    assert_eq!(path("d"), ["d"]);
    let c = parsed.tree.descendants().find(|node| node.name() == "c").expect("c");
    assert_eq!(c.parent().and_then(Node::parent).map(|node| node.name().into_owned()), Some("a".to_owned()));
    assert_eq!(parsed.tree.node(c.id()), Some(c));
}

#[test]
fn what_is_switched_off_is_gone_and_remembered() {
    let text = "a /-1 2 /-k=3 {\n    /-b { c }\n    d\n} /-{ e }\n/- f /- 1\n";
    let parsed = read(text);
    assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
    assert_eq!(outline(text), "a 2[d]");
    let off: Vec<&str> = parsed.tree.disabled().iter().map(|span| span.of(text)).collect();
    assert_eq!(off, ["/-1", "/-k=3", "/-b { c }", "/-{ e }", "/- f /- 1"]);
    // Mistakes in it are mistakes all the same.
    assert_eq!(read("/- a 10s\n").problems.len(), 1);
}
