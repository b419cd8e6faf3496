//! What holds of every text, however broken. Each promise is an assertion; the harness catches it and says how to repeat it.

use std::collections::BTreeSet;
use std::sync::Arc;

use analysis::fix::{self, Which};
use analysis::{Options, analyse, explain};
use syntax::{MemorySources, Severity, SourceId, Sources, TokenKind, format, parse, tokens};

/// What an input showed: the codes of its diagnostics, and whether it had a plan.
#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shown {
    pub codes: BTreeSet<&'static str>,
    pub plan: bool,
}

/// Reader and formatter: every byte lies in a token; a right text stays right, with the same tokens, and is formatted once
/// and for all; a broken one is left alone.
pub fn reading(text: &str) {
    let parsed = parse(Arc::from(text));
    let mut end = 0;
    for token in tokens(text) {
        assert_eq!(token.span.start, end, "tokens lie side by side");
        assert!(text.get(token.span.range()).is_some_and(|piece| !piece.is_empty()), "a token is a piece of the text");
        end = token.span.end;
    }
    assert_eq!(end as usize, text.len(), "the tokens are the whole text");
    for node in parsed.tree.descendants() {
        assert!(text.get(node.span().range()).is_some() && node.span().contains(node.name_span()));
        for entry in node.entries() {
            assert!(node.span().contains(entry.span()) && entry.span().contains(entry.value_span()));
            let _ = (entry.value(), entry.key(), entry.annotation(), entry.span_in_value(0, 3));
        }
        let _ = (node.name(), node.doc(), node.parent(), node.annotation());
    }
    match format(text) {
        Ok(formatted) => {
            assert!(parsed.problems.is_empty(), "a broken text is not formatted");
            assert_eq!(kept(&formatted), kept(text), "the tokens before are the tokens after");
            assert_eq!(format(&formatted).as_deref(), Ok(&*formatted), "formatting twice changes nothing more");
        }
        Err(problems) => assert_eq!(problems.len(), parsed.problems.len()),
    }
}

/// Every token but white space; comments without the white space at their line's end.
fn kept(text: &str) -> Vec<(TokenKind, &str)> {
    let all = tokens(text).into_iter().map(|token| (token.kind, token.span.of(text)));
    all.filter(|(kind, _)| !kind.is_white())
        .map(|(kind, piece)| (kind, if kind == TokenKind::LineComment { piece.trim_end() } else { piece }))
        .collect()
}

/// The checker: a plan if and only if there is no error (with a host, on which a machine fits), diagnostics that speak and
/// point at what exists, a plan that hangs together.
pub fn checking(sources: &dyn Sources, id: &SourceId, options: &Options) -> Shown {
    let analysed = analyse(sources, id, options);
    assert!(!(analysed.plan.is_some() && analysed.has_errors()), "a plan with errors");
    for diagnostic in &analysed.diagnostics {
        assert!(!diagnostic.message.is_empty(), "{} says nothing", diagnostic.code);
        assert!(explain(diagnostic.code.0).is_some(), "{} has no page", diagnostic.code);
        let edits = diagnostic.fixes.iter().flat_map(|fix| &fix.edits).map(|edit| &edit.at);
        let labels = diagnostic.secondary.iter().chain(&diagnostic.chain).map(|label| &label.at);
        for at in [&diagnostic.primary.at].into_iter().chain(labels).chain(edits) {
            let text = sources.text(&at.source).unwrap_or_else(|_| "".into());
            assert!(
                text.get(at.span.range()).is_some(),
                "{} points at {at:?}: {}",
                diagnostic.code,
                diagnostic.message
            );
        }
    }
    if let Some(plan) = &analysed.plan {
        assert!(plan::graph::topological_order(&plan.steps).is_ok(), "the steps are a graph");
        for phase in &plan.phases {
            let there = phase.slots.iter().all(|slot| (slot.cell as usize) < phase.cells.len());
            assert!(there, "slots have cells");
        }
    }
    Shown { codes: analysed.diagnostics.iter().map(|one| one.code.0).collect(), plan: analysed.plan.is_some() }
}

/// Fixes come to an end, touch no library, and leave a text that keeps every promise. A safe one never turns a study without
/// errors into one with any.
pub fn fixing(sources: &dyn Sources, id: &SourceId, options: &Options) {
    let before = analyse(sources, id, options);
    for which in [Which::Safe, Which::All] {
        let fixed = fix::fix(sources, id, options, which);
        assert!(fixed.texts.keys().all(|id| !id.is_std()), "a library was changed");
        assert_eq!(fixed.applied == 0, fixed.texts.is_empty(), "what is applied changes something");
        for text in fixed.texts.values() {
            reading(text);
        }
        if which == Which::Safe {
            assert!(fixed.settled, "safe fixes bring no new ones without end");
            let errors = |found: &[syntax::Diagnostic]| found.iter().any(|one| one.severity == Severity::Error);
            assert!(errors(&before.diagnostics) || !errors(&fixed.analysed.diagnostics), "a safe fix made an error");
        }
    }
}

/// The expanded study is laid out and can be read, and of a study without errors it gives the same plan. Every value that is
/// explained is found again by its own path.
pub fn expanding(sources: &MemorySources, id: &SourceId, options: &Options) {
    let analysed = analyse(sources, id, options);
    let text = analysed.expanded();
    // A study that is its own SQL file holds another text once it is expanded.
    let own_file = analysed.sources.iter().filter(|source| *source == id).count() > 1;
    if analysed.plan.is_some() && !own_file {
        assert_eq!(format(&text).as_deref(), Ok(&*text), "the expanded study is laid out");
        let mut again = sources.clone();
        again.set(id.as_str(), text.as_str());
        assert_eq!(analyse(&again, id, options).plan, analysed.plan, "the expanded study has another plan:\n{text}");
    }
    for path in ["", "phase", "phase.ceiling", "phase.ceiling.repeat", "candidate.app", "study.nothing.at.all", "."] {
        for value in analysed.explain_value(path).unwrap_or_default() {
            assert!(analysed.explain_value(&value.path).is_ok(), "{} is explained and not found", value.path);
        }
    }
}

/// The same sources give the same diagnostics and the same bytes of plan.
pub fn repeating(sources: &dyn Sources, id: &SourceId, options: &Options) {
    let (one, other) = (analyse(sources, id, options), analyse(sources, id, options));
    assert_eq!(one.diagnostics, other.diagnostics);
    let bytes = |plan: &Option<plan::Plan>| serde_json::to_vec(plan).expect("a plan is JSON");
    assert_eq!(bytes(&one.plan), bytes(&other.plan));
}
