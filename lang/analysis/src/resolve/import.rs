//! Reading the study's sources: the study itself, then what it `use`s, each once, depth first in the order of the text.

use std::collections::BTreeMap;

use syntax::{Label, Location, Severity, SourceId, Sources, Tree};

use super::convert::Top;
use super::item::Item;
use super::read::{Reader, label};
use crate::codes;
use crate::problems::{Problems, problem};

/// A source as it was read.
#[derive(Debug)]
pub struct SourceTree {
    /// The source.
    pub id: SourceId,
    /// Its tree.
    pub tree: Tree,
    /// Places of its errors of syntax, sorted.
    pub wounds: Vec<syntax::Span>,
}

/// Everything that the sources hold, before anything is amended.
#[derive(Debug, Default)]
pub struct Imported {
    /// Top-level nodes, in the order in which they were read; libraries stand before their users.
    pub nodes: Vec<Item>,
    /// Definitions.
    pub definitions: Vec<Item>,
    /// Profiles.
    pub profiles: Vec<Item>,
    /// Sources that were read, the study first.
    pub sources: Vec<SourceId>,
    /// Their trees, for definitions that are read anew for each of their callers.
    pub trees: Vec<SourceTree>,
    /// Files that values name (SQL, scripts).
    pub files: Vec<SourceId>,
    /// By source, the `use` that brought it in.
    pub used_at: BTreeMap<SourceId, Location>,
    /// Sources with errors of syntax: what they define may only be misread.
    pub wounded: bool,
}

/// Reads `id` and what it uses.
pub fn import(sources: &dyn Sources, id: &SourceId, problems: &mut Problems) -> Imported {
    let mut imported = Imported::default();
    let mut path = Vec::new();
    if let Err(missing) = sources.text(id) {
        problems.push(problem(
            &codes::MISSING_IMPORT,
            &Location::new(id, syntax::Span::default()),
            format!("the study `{id}` can't be read: {}", missing.why),
        ));
        imported.sources.push(id.clone());
        return imported;
    }
    read(sources, id, &mut path, &mut imported, problems);
    imported
}

/// Depth of `use` beyond which a study is refused; no library needs it, and a stack is finite.
const DEEPEST: usize = 64;

fn read(
    sources: &dyn Sources,
    id: &SourceId,
    path: &mut Vec<SourceId>,
    imported: &mut Imported,
    problems: &mut Problems,
) {
    let Ok(text) = sources.text(id) else { return };
    imported.sources.push(id.clone());
    path.push(id.clone());
    let parsed = syntax::parse(text);
    let mut wounds: Vec<syntax::Span> = Vec::new();
    for found in &parsed.problems {
        let diagnostic = found.in_source(id);
        // A bare quantity is reported and still has its value: nothing around it is misread.
        if diagnostic.severity == Severity::Error && diagnostic.name != "bare-quantity" {
            wounds.push(diagnostic.primary.at.span);
        }
        problems.push(diagnostic);
    }
    wounds.sort();
    imported.wounded |= parsed.problems.iter().any(|found| hides(found.in_source(id).name));
    let mut nodes = Vec::new();
    for node in parsed.tree.nodes() {
        let mut reader = Reader {
            sources,
            source: id.clone(),
            problems,
            files: &mut imported.files,
            wounds: &wounds,
            bindings: Vec::new(),
            filled: None,
            hides_parameters: false,
        };
        match reader.top(node) {
            Some(Top::Use(item)) => follow(sources, id, &item, path, imported, problems),
            Some(Top::Define(item)) => imported.definitions.push(item),
            Some(Top::Profile(item)) => imported.profiles.push(item),
            Some(Top::Node(item)) => {
                if item.kind() == "study" && path.len() > 1 {
                    problems.push(
                        problem(
                            &codes::STUDY_IN_LIBRARY,
                            &item.name_at,
                            format!("`{id}` is used by another file and can't be a study itself"),
                        )
                        .help("move what both need into a third file without `study`, and `use` that"),
                    );
                } else {
                    nodes.push(item);
                }
            }
            None => imported.wounded = true,
        }
    }
    imported.nodes.append(&mut nodes);
    imported.trees.push(SourceTree { id: id.clone(), tree: parsed.tree, wounds });
    path.pop();
}

/// Whether an error of syntax may hide definitions: what is open swallows what follows.
fn hides(name: &str) -> bool {
    matches!(
        name,
        "unterminated-string"
            | "unterminated-multi-line-string"
            | "unterminated-comment"
            | "unclosed-block"
            | "stray-brace"
            | "too-deep"
            | "too-long"
            | "text-after-block"
            | "second-block"
            | "nameless-block"
            | "not-a-name"
    )
}

fn follow(
    sources: &dyn Sources,
    from: &SourceId,
    item: &Item,
    path: &mut Vec<SourceId>,
    imported: &mut Imported,
    problems: &mut Problems,
) {
    let Some(argument) = item.args.first() else {
        if !item.broken {
            problems.push(
                problem(&codes::MISSING, &item.name_at, "`use` names no source")
                    .help("write it like `use \"std/http\"`"),
            );
        }
        return;
    };
    let Some(target) = argument.text() else { return };
    // What is there and can't be read, such as a directory, is as good as missing.
    let target = match sources.resolve(from, target).and_then(|id| sources.text(&id).map(|_| id)) {
        Ok(target) => target,
        Err(missing) => {
            let hint = if target.starts_with("std/") {
                crate::names::hint(target, crate::stdlib::NAMES.iter().copied())
            } else {
                String::new()
            };
            problems.push(
                problem(
                    &codes::MISSING_IMPORT,
                    &argument.at,
                    format!("`{target}` can't be used: {}{hint}", missing.why),
                )
                .help(format!(
                    "a study can use files inside its own root, and {}",
                    crate::names::listed(crate::stdlib::NAMES.iter().copied())
                )),
            );
            imported.wounded = true;
            return;
        }
    };
    if let Some(start) = path.iter().position(|seen| *seen == target) {
        let mut names: Vec<String> = path[start..].iter().map(|id| format!("`{id}`")).collect();
        names.push(format!("`{target}`"));
        problems.push(problem(
            &codes::IMPORT_CYCLE,
            &argument.at,
            format!("these files use each other: {}", names.join(" → ")),
        ));
        return;
    }
    if path.len() >= DEEPEST {
        problems.push(problem(&codes::IMPORT_CYCLE, &argument.at, format!("more than {DEEPEST} files use each other")));
        return;
    }
    if imported.sources.contains(&target) {
        return;
    }
    imported.used_at.entry(target.clone()).or_insert_with(|| argument.at.clone());
    read(sources, &target, path, imported, problems);
}

/// The `use` lines through which a place became part of the study, the author's own first.
pub fn chain(imported: &Imported, at: &Location) -> Vec<Label> {
    let mut chain = Vec::new();
    let mut source = &at.source;
    while let Some(used) = imported.used_at.get(source) {
        chain.push(label(used, format!("`{source}` is used here")));
        source = &used.source;
    }
    chain.reverse();
    chain
}
