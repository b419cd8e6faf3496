//! The official KDL v2 suite, both ways: what must be accepted is accepted with the expected content, what must be refused
//! is refused. Where we differ on purpose there is a reason, and an entry that no longer differs fails.

mod support;

use std::sync::Arc;
use support::{canonical, suite};
use syntax::parse;

/// Cases of the suite that must be accepted and that we refuse, with the only codes we may refuse them for.
const STRICTER: &[(&str, &str, &str)] = &[
    ("sci_notation_large", "E0110", "1.23E+1000 would be infinite: a number that a study did not mean"),
    ("sci_notation_small", "E0110", "1.23E-1000 would be 0: a number that a study did not mean"),
];

/// Accepted by the suite without an expected content, and the content it must have.
const WITHOUT_EXPECTED: &[(&str, &str)] = &[("hex", "node 12379813812177893520\n")];

#[test]
fn accepted_with_the_expected_content_or_refused() {
    let mut wrong = Vec::new();
    let mut refused = 0;
    for case in suite() {
        let parsed = parse(Arc::from(case.input.as_str()));
        let codes: Vec<&str> = parsed.problems.iter().map(|problem| problem.code.0).collect();
        if case.must_be_refused() {
            refused += 1;
            assert!(case.expected.is_none(), "{} must fail and has an expected content", case.name);
            if codes.is_empty() {
                wrong.push(format!("{} is accepted as\n{}", case.name, canonical(&parsed.tree)));
            }
            continue;
        }
        if let Some((_, code, _)) = STRICTER.iter().find(|(name, ..)| *name == case.name) {
            if codes != [*code] {
                wrong.push(format!("{} is to be refused with {code} and has {codes:?}", case.name));
            }
            continue;
        }
        if !codes.is_empty() {
            wrong.push(format!("{} is refused: {:#?}", case.name, parsed.problems));
            continue;
        }
        let own = WITHOUT_EXPECTED.iter().find(|(name, _)| *name == case.name).map(|(_, text)| (*text).to_owned());
        let Some(expected) = case.expected.or(own) else {
            wrong.push(format!("{} has no expected content", case.name));
            continue;
        };
        let got = canonical(&parsed.tree);
        if got != expected {
            wrong.push(format!("{}\n got {got:?}\nwant {expected:?}", case.name));
        }
    }
    assert!(refused >= 80, "only {refused} cases must be refused");
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_differs_on_purpose_is_in_the_suite() {
    let names: Vec<String> = suite().into_iter().map(|case| case.name).collect();
    for (name, ..) in STRICTER {
        assert!(names.iter().any(|known| known == name), "{name} is no case of the suite");
    }
}
