//! Changes that remove what a lint found. Each needs the text around a place: where a setting was never written there is
//! nothing to replace.

use syntax::{Applicability, Edit, Fix, Location, Span};

use super::Look;
use crate::resolve::Item;

/// Writes `name` of `item` as `value`: replaces what the study wrote, or adds a property after the last argument.
pub fn set(item: &Item, name: &str, value: &str, applicability: Applicability) -> Option<Fix> {
    let title = format!("write `{name}={value}`");
    match item.setting(name) {
        Some(valued) => Some(Fix::replace(title, valued.at.clone(), value, applicability)),
        None => Some(Fix { title, edits: vec![after_arguments(item, &format!(" {name}={value}"))?], applicability }),
    }
}

/// Writes `text` behind the node's last argument, or behind its name.
pub fn after_arguments(item: &Item, text: &str) -> Option<Edit> {
    let inside = |at: &&Location| at.source == item.at.source && item.at.span.contains(at.span);
    let arguments = item.args.iter().map(|valued| &valued.at).filter(inside);
    let end = arguments.chain([&item.name_at]).filter(inside).map(|at| at.span.end).max()?;
    Some(Edit { at: Location::new(&item.at.source, Span::new(end, end)), text: text.to_owned() })
}

/// Replaces the node's first argument.
pub fn argument(item: &Item, value: &str, applicability: Applicability) -> Option<Fix> {
    let title = format!("write `{} {value}`", item.kind());
    item.args.first().map(|valued| Fix::replace(title, valued.at.clone(), value, applicability))
}

/// Removes the property `name`, where it is written as one.
pub fn without_property(look: &Look<'_>, item: &Item, name: &str) -> Option<Fix> {
    let valued = item.setting(name)?;
    let text = look.sources.text(&valued.at.source).ok()?;
    let end = valued.at.span.end;
    let before = text.get(..valued.at.span.start as usize)?;
    let property = before.strip_suffix('=')?.strip_suffix(name)?.trim_end_matches([' ', '\t']);
    let at = Location::new(&valued.at.source, Span::new(u32::try_from(property.len()).ok()?, end));
    Some(Fix::replace(format!("remove `{name}`"), at, "", Applicability::Safe))
}

/// Removes a node, with the `;` behind it.
pub fn without_node(look: &Look<'_>, at: &Location, applicability: Applicability) -> Option<Fix> {
    let text = look.sources.text(&at.source).ok()?;
    let behind = text.get(at.span.end as usize..)?;
    let gap = behind.len() - behind.trim_start_matches([' ', '\t']).len();
    let more = if behind[gap..].starts_with(';') { gap + 1 } else { 0 };
    let end = at.span.end.saturating_add(u32::try_from(more).ok()?);
    let whole = Location::new(&at.source, Span::new(at.span.start, end));
    Some(Fix::replace("remove it", whole, "", applicability))
}

/// Adds a node to the block of `item`, before its first child; the child's indentation is the new one's.
pub fn add_child(look: &Look<'_>, item: &Item, node: &str, applicability: Applicability) -> Option<Fix> {
    let inside = |child: &&Item| child.at.source == item.at.source && item.at.span.contains(child.at.span);
    let first = item.children.iter().filter(inside).min_by_key(|child| child.at.span.start)?;
    let text = look.sources.text(&item.at.source).ok()?;
    let before = text.get(..first.at.span.start as usize)?;
    let line = before.rsplit('\n').next().unwrap_or(before);
    let separator =
        if line.trim().is_empty() && before.len() > line.len() { format!("\n{line}") } else { "; ".to_owned() };
    let at = Location::new(&item.at.source, Span::new(first.at.span.start, first.at.span.start));
    Some(Fix::replace(format!("add `{node}`"), at, format!("{node}{separator}"), applicability))
}
