//! Amendment: a node written over another one. Same kind and name: arguments are replaced, settings one by one, children
//! likewise; new ones are added; `without` and `(remove)` remove; `(replace)` takes the whole place.

use crate::codes;
use crate::names;
use crate::problems::{Problems, problem};
use crate::resolve::item::{Item, Mode, Without};
use crate::value::Valued;

/// `over` written over `base`.
pub fn amend(base: Item, mut over: Item, problems: &mut Problems) -> Item {
    if over.mode == Mode::Replace {
        inherit(&base, &mut over);
        return plain(over, problems);
    }
    let mut item = base;
    // Problems speak of the node that amends, not of the definition underneath.
    if !over.key.is_empty() {
        item.key.clone_from(&over.key);
    }
    for without in &over.without {
        remove(&mut item, without, problems);
    }
    // The name is how the node was found; arguments beyond it are replaced together.
    if over.args.len() > item.spec.key {
        let old = std::mem::take(&mut item.args);
        remember(&old, item.spec.key, &mut item.replaced_args);
        item.args = over
            .args
            .into_iter()
            .enumerate()
            .map(|(index, new)| match old.get(index) {
                Some(old) if index >= item.spec.key => replaced(old, new),
                _ => new,
            })
            .collect();
    } else if !over.args.is_empty() {
        for (slot, new) in item.args.iter_mut().zip(over.args) {
            *slot = new;
        }
    }
    item.variant = over.variant.or(item.variant);
    for (name, new) in over.settings {
        match item.settings.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = replaced(old, new),
            None => item.settings.push((name, new)),
        }
    }
    for (name, new) in over.free {
        match item.free.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = replaced(old, new),
            None => item.free.push((name, new)),
        }
    }
    for child in over.children {
        let place = item.children.iter().position(|known| known.kind() == child.kind() && known.key == child.key);
        match (place, child.mode) {
            (Some(place), Mode::Remove) => {
                item.children.remove(place);
            }
            (None, Mode::Remove) => nothing_to_remove(&item, child.kind(), &child.key, &child.name_at, problems),
            (Some(place), _) => {
                let old = std::mem::replace(&mut item.children[place], child.clone());
                item.children[place] = amend(old, child, problems);
            }
            (None, _) => item.children.push(plain(child, problems)),
        }
    }
    item.broken |= over.broken;
    item.lost_child |= over.lost_child;
    item.at = over.at;
    item.name_at = over.name_at;
    item.via.extend(over.via);
    item.doc = over.doc.or(item.doc);
    item
}

/// A node that amends nothing: what it would remove isn't there.
pub fn plain(mut item: Item, problems: &mut Problems) -> Item {
    settle(&mut item, problems);
    item
}

fn settle(item: &mut Item, problems: &mut Problems) {
    item.mode = Mode::Amend;
    for without in std::mem::take(&mut item.without) {
        nothing_to_remove(item, &without.kind, &without.key, &without.at, problems);
    }
    // Items are large: where nothing goes, nothing is moved.
    let mut gone = Vec::new();
    if item.children.iter().any(|child| child.mode == Mode::Remove) {
        (gone, item.children) =
            std::mem::take(&mut item.children).into_iter().partition(|child| child.mode == Mode::Remove);
    }
    for child in &mut item.children {
        settle(child, problems);
    }
    for child in gone {
        nothing_to_remove(item, child.kind(), &child.key, &child.name_at, problems);
    }
}

/// Keeps where arguments beyond the name came from.
fn remember(old: &[Valued], key: usize, replaced: &mut Vec<(syntax::Location, String)>) {
    if let Some(first) = old.get(key) {
        let written: Vec<&str> = old[key..].iter().map(|valued| valued.written.as_str()).collect();
        replaced.insert(0, (first.at.clone(), written.join(" ")));
    }
}

/// What takes a node's place remembers the values that it replaced.
fn inherit(base: &Item, over: &mut Item) {
    over.replaced_args.clone_from(&base.replaced_args);
    remember(&base.args, base.spec.key, &mut over.replaced_args);
    for (name, new) in &mut over.settings {
        if let Some(old) = base.setting(name) {
            *new = replaced(old, new.clone());
        }
    }
    for (name, new) in &mut over.free {
        if let Some((_, old)) = base.free.iter().find(|(known, _)| known == name) {
            *new = replaced(old, new.clone());
        }
    }
    for child in &mut over.children {
        if let Some(old) = base.children.iter().find(|old| old.kind() == child.kind() && old.key == child.key) {
            inherit(old, child);
        }
    }
}

/// Keeps where a value came from.
fn replaced(old: &Valued, mut new: Valued) -> Valued {
    new.replaced.push((old.at.clone(), old.written.clone()));
    new.replaced.extend(old.replaced.iter().cloned());
    new
}

fn remove(item: &mut Item, without: &Without, problems: &mut Problems) {
    let before = item.settings.len() + item.children.len();
    if without.key.is_empty() {
        item.settings.retain(|(name, _)| *name != without.kind);
    }
    item.children.retain(|child| {
        let same = child.kind() == without.kind && (child.key == without.key || without.key.is_empty());
        !same
    });
    if item.settings.len() + item.children.len() == before && !item.broken {
        nothing_to_remove(item, &without.kind, &without.key, &without.at, problems);
    }
}

fn nothing_to_remove(item: &Item, kind: &str, key: &str, at: &syntax::Location, problems: &mut Problems) {
    let there: Vec<&str> = item.each(kind).map(|child| child.key.as_str()).filter(|key| !key.is_empty()).collect();
    let what = if key.is_empty() { format!("`{kind}`") } else { format!("{kind} `{key}`") };
    let hint = names::hint(key, there.iter().copied());
    let mut diagnostic =
        problem(&codes::NOTHING_TO_AMEND, at, format!("{} has no {what} to remove{hint}", item.described()));
    if !there.is_empty() {
        diagnostic = diagnostic.help(format!("it has {}", names::listed(there)));
    }
    problems.push(diagnostic);
}
