//! Our parser against the `kdl` crate, on mutations of the official suite and of texts that look like studies: the same
//! texts are accepted, with the same content. Where they differ there is a rule with a reason and an example, and a rule
//! whose example no longer differs fails.

mod support;

use kdl::{KdlDocument, KdlEntry, KdlNode, KdlValue};
use std::sync::Arc;
use support::{canonical, effort, float, mutate, random, suite};
use syntax::parse;

/// How many texts are compared; some seconds in a debug build.
const TEXTS: usize = 8000;

/// Who refuses what the other accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Only {
    WeRefuse,
    TheyRefuse,
}

/// A difference that is known.
struct Rule {
    who: Only,
    /// Where we refuse: one of these codes is among our problems.
    codes: &'static [&'static str],
    /// The text holds this; `""` where the codes say enough.
    holds: &'static str,
    reason: &'static str,
    example: &'static str,
}

const fn ours(code: &'static [&'static str], reason: &'static str, example: &'static str) -> Rule {
    Rule { who: Only::WeRefuse, codes: code, holds: "", reason, example }
}

const fn theirs(
    who: Only,
    codes: &'static [&'static str],
    holds: &'static str,
    reason: &'static str,
    example: &'static str,
) -> Rule {
    Rule { who, codes, holds, reason, example }
}

const RULES: &[Rule] = &[
    // Stricter than KDL on purpose: right KDL that means something else than its author thinks.
    ours(&["E0106"], "deeper than any study", "a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{a{"),
    ours(&["E0110"], "1e400 would be infinite, 1e-400 would be 0, and 17 * 10^38 does not fit", "a 1e400"),
    ours(&["E0112"], "`${x}` is a `$` and a block", "a ${x}"),
    ours(&["E0113"], "`http://x` is `http:` and a comment", "a http://x"),
    ours(&["E0114"], "`key:` is a name that ends in a colon", "a: 1"),
    ours(&["E0115"], "`- a` is a node called `-`", "- a"),
    ours(&["E0117"], "`'a b'` is two words", "a 'b c'"),
    ours(&["E0120"], "`a, b` is a word that ends in a comma", "a b, c"),
    ours(&["E0134"], "a text of version 1 is not read as version 2", "/- kdl-version 1\na"),
    // Where `kdl` 6.7 is not what the specification says.
    theirs(Only::WeRefuse, &["E0129"], "", "it lets banned characters into comments", "// \u{202E}"),
    theirs(Only::WeRefuse, &["E0102", "E0127"], "#\"\"\"", "`#\"\"\"` needs a line end after it", "a #\"\"\"b\"\"\"#"),
    theirs(Only::WeRefuse, &["E0111", "E0130"], "-inf", "`-inf` is no bare word", "a -inf"),
    theirs(Only::WeRefuse, &["E0122"], "/-", "`/-` needs a space before it within a node", "a #inf/- b"),
    theirs(
        Only::WeRefuse,
        &["E0123", "E0116", "E0128"],
        "/-",
        "a node that `/-` switches off has to end too",
        "/-a {}b",
    ),
    theirs(Only::WeRefuse, &["E0131"], "/-", "`/-` can't switch off a `/-`", "a /-/- b c"),
    theirs(Only::TheyRefuse, &[], "/-", "a node that `/-` switches off may end with `;`", "/-a; b"),
];

/// The example of the depth rule, which is too long to write down.
fn example(rule: &Rule) -> String {
    match rule.codes {
        ["E0106"] => "a{".repeat(300) + &"}".repeat(300),
        _ => rule.example.to_owned(),
    }
}

/// What is different about `text`, if anything.
fn difference(text: &str) -> Option<(Option<Only>, Vec<&'static str>, String)> {
    let ours = parse(Arc::from(text));
    let codes: Vec<&str> = ours.problems.iter().map(|problem| problem.code.0).collect();
    match (text.parse::<KdlDocument>(), codes.is_empty()) {
        (Err(_), false) => None,
        (Ok(document), true) => {
            let (got, want) = (canonical(&ours.tree), their_canonical(&document));
            (got != want).then(|| (None, codes, format!("we read\n{got}\nthey read\n{want}")))
        }
        (Ok(_), false) => Some((Some(Only::WeRefuse), codes, format!("{:#?}", ours.problems))),
        (Err(error), true) => Some((Some(Only::TheyRefuse), codes, format!("{error:?}"))),
    }
}

fn explains(rule: &Rule, who: Only, codes: &[&str], text: &str) -> bool {
    let code = rule.codes.is_empty() || rule.codes.iter().any(|code| codes.contains(code));
    rule.who == who && code && text.contains(rule.holds)
}

#[test]
fn the_same_texts_with_the_same_content() {
    let mut random = random(20_261_130);
    let cases: Vec<String> = suite().into_iter().map(|case| case.input).collect();
    let lines: Vec<&str> = support::STUDY.split_inclusive('\n').collect();
    let (mut accepted, mut used) = (0, vec![0usize; RULES.len()]);
    let texts = TEXTS * effort();
    for n in 0..texts {
        let text = match n % 4 {
            0 => {
                let from = random.below(lines.len());
                mutate(&lines[from..(from + 6).min(lines.len())].concat(), &mut random)
            }
            _ => mutate(&cases[random.below(cases.len())], &mut random),
        };
        accepted += usize::from(parse(Arc::from(text.as_str())).problems.is_empty());
        let Some((who, codes, what)) = difference(&text) else { continue };
        let rule = who.and_then(|who| RULES.iter().position(|rule| explains(rule, who, &codes, &text)));
        match rule {
            Some(rule) => used[rule] += 1,
            None => panic!("text {n}: {text:?}\n{who:?} {codes:?}\n{what}"),
        }
    }
    assert!(accepted > texts / 20, "only {accepted} of {texts} texts were right: the mutations tell little");
    assert!(used.iter().sum::<usize>() < texts / 2, "the rules explain too much: {used:?}");
}

/// `kdl` recurses: 300 blocks overflow the stack that a test has in a debug build.
#[test]
fn each_rule_still_has_a_difference() {
    let deep = std::thread::Builder::new().stack_size(256 << 20).spawn(check_rules).expect("a thread");
    if let Err(panic) = deep.join() {
        std::panic::resume_unwind(panic);
    }
}

fn check_rules() {
    for rule in RULES {
        let text = example(rule);
        let (who, codes, what) = difference(&text).unwrap_or_else(|| panic!("no longer: {} ({text:?})", rule.reason));
        let who = who.unwrap_or_else(|| panic!("{text:?} differs in content: {what}"));
        assert!(explains(rule, who, &codes, &text), "{}: {who:?} {codes:?}", rule.reason);
    }
}

#[test]
fn a_whole_study_has_the_same_content() {
    assert_eq!(difference(support::STUDY), None);
}

fn their_canonical(document: &KdlDocument) -> String {
    let mut out = String::new();
    for node in document.nodes() {
        write_node(&mut out, node, 0);
    }
    if out.is_empty() {
        out.push('\n');
    }
    out
}

fn word(text: &str) -> String {
    if syntax::is_bare(text) { text.to_owned() } else { syntax::quote(text) }
}

fn annotation(ty: Option<&kdl::KdlIdentifier>) -> String {
    ty.map_or(String::new(), |ty| format!("({})", word(ty.value())))
}

fn write_node(out: &mut String, node: &KdlNode, depth: usize) {
    out.push_str(&"    ".repeat(depth));
    out.push_str(&annotation(node.ty()));
    out.push_str(&word(node.name().value()));
    for (i, entry) in node.entries().iter().enumerate() {
        let key = |entry: &KdlEntry| entry.name().map(|name| name.value().to_owned());
        if key(entry).is_some() && node.entries()[i + 1..].iter().any(|later| key(later) == key(entry)) {
            continue;
        }
        out.push(' ');
        if let Some(name) = entry.name() {
            out.push_str(&word(name.value()));
            out.push('=');
        }
        out.push_str(&annotation(entry.ty()));
        out.push_str(&match entry.value() {
            KdlValue::String(text) => word(text),
            KdlValue::Integer(i) => i.to_string(),
            KdlValue::Float(f) => float(*f),
            KdlValue::Bool(b) => format!("#{b}"),
            KdlValue::Null => "#null".to_owned(),
        });
    }
    let children = node.children().map_or(&[][..], |children| children.nodes());
    if !children.is_empty() {
        out.push_str(" {\n");
        for child in children {
            write_node(out, child, depth + 1);
        }
        out.push_str(&"    ".repeat(depth));
        out.push('}');
    }
    out.push('\n');
}
