//! What is missing: asked of the study after all amendments, so that a definition may leave things open.

use syntax::Location;

use super::references::inside;
use crate::codes;
use crate::problems::{Problems, problem};
use crate::resolve::{Item, Study};
use crate::schema::{Count, FILE, METHODS, NodeSpec, USE};

/// Reports everything that the study needs and lacks. Items that already have an error are left alone: what seems to be
/// missing may only be misspelt.
pub fn check(study: &Study, problems: &mut Problems) {
    let start = study.source.as_ref().map(|id| Location::new(id, syntax::Span::default()));
    let at = study.only("study").map(|item| item.name_at.clone()).or(start);
    for spec in FILE.children {
        let missing = matches!(spec.count, Count::One | Count::Some) && study.each(spec.name).next().is_none();
        if missing
            && !study.wounded
            && spec.name != USE.name
            && let Some(at) = &at
        {
            problems.push(
                problem(&codes::MISSING, at, format!("the study has no `{}`", spec.name))
                    .help(format!("write one, such as `{}`", spec.example)),
            );
        }
    }
    for item in &study.nodes {
        if !item.broken {
            visit(item, item, problems);
        }
    }
}

fn visit(item: &Item, top: &Item, problems: &mut Problems) {
    if item.broken {
        return;
    }
    let spec = item.spec;
    let mut lacks = |what: String, example: &str| {
        let mut diagnostic = problem(&codes::MISSING, &item.name_at, format!("{} has no {what}", item.described()))
            .help(format!("write it like `{example}`"));
        // What a definition leaves open is for those to say who amend it.
        if !inside(&top.at, &item.name_at) || std::ptr::eq(item, top) {
            for label in &top.via {
                diagnostic = diagnostic.through(label.at.clone(), label.text.clone());
            }
        }
        problems.push(diagnostic);
    };
    for argument in spec.arguments.iter().skip(item.args.len()).filter(|argument| argument.required) {
        lacks(argument.name.to_owned(), spec.example);
    }
    let rest = spec.rest.or(item.variant.and_then(|variant| variant.rest));
    if let Some(rest) = rest
        && rest.required
        && item.args.len() <= spec.arguments.len()
        && !is_status(item)
    {
        lacks(rest.name.to_owned(), spec.example);
    }
    for setting in spec.all_settings(item.variant).filter(|setting| setting.required) {
        if item.setting(setting.name).is_none() {
            lacks(format!("`{}`", setting.name), &format!("{} {}", setting.name, setting.example));
        }
    }
    for child in spec.children.iter().filter(|child| matches!(child.count, Count::One | Count::Some)) {
        if item.child(child.name).is_none() {
            lacks(format!("`{}`", child.name), child.example);
        }
    }
    request(item, spec, &mut lacks);
    for child in &item.children {
        visit(child, top, problems);
    }
}

/// `expect { json … }` without a status is possible: then any 2xx is accepted.
fn is_status(item: &Item) -> bool {
    item.kind() == "expect" && !item.children.is_empty()
}

/// A stream or case has exactly one request.
fn request(item: &Item, spec: &'static NodeSpec, lacks: &mut impl FnMut(String, &str)) {
    if spec.child(METHODS[0].name).is_none() {
        return;
    }
    if !METHODS.iter().any(|method| item.child(method.name).is_some()) {
        lacks("request".to_owned(), METHODS[0].example);
    }
}
