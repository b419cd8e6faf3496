//! The study as one text: after imports, definitions, amendments and profile. It checks clean where the study does, and
//! gives the same plan.

use std::fmt::Write as _;

use super::{Item, Study};
use crate::lower::subject::{relative, root};
use crate::schema::PROFILE;
use crate::value::{Value, Valued};

/// Columns within which properties stay on their node's line.
const WIDTH: usize = 100;

/// The study's text. What the profile removed is kept beside a profile that removes it, so that everything which falls
/// away with it is still told: such a text is read with the same profile.
pub fn expanded(study: &Study) -> String {
    let mut out = Writer { out: String::from("/- kdl-version 2\n"), root: root(study) };
    for item in study.nodes.iter().chain(&study.removed_nodes) {
        out.out.push('\n');
        for line in item.doc.iter().flat_map(|doc| doc.lines()) {
            let _ = writeln!(out.out, "// {line}");
        }
        out.item(item, 0);
    }
    if let Some(profile) = &study.profile {
        let _ = writeln!(out.out, "\n{} {} {{", PROFILE.name, word(profile));
        for (kind, name, _) in &study.removed {
            let _ = writeln!(out.out, "    without {kind} {}", word(name));
        }
        out.out.push_str("}\n");
    }
    // Layout is the formatter's; a text that it does not take is left as it is.
    syntax::format(&out.out).unwrap_or(out.out)
}

struct Writer {
    out: String,
    root: String,
}

impl Writer {
    fn item(&mut self, item: &Item, depth: usize) {
        let indent = "    ".repeat(depth);
        let mut line = format!("{indent}{}", item.kind());
        for argument in &item.args {
            let _ = write!(line, " {}", self.value(argument));
        }
        let settings = item.settings.iter().filter(|(name, _)| *name != super::LIKE);
        let settings = settings.map(|(name, valued)| ((*name).to_owned(), self.value(valued)));
        let free = item.free.iter().map(|(name, valued)| (word(name), self.value(valued)));
        let properties: Vec<(String, String)> = settings.chain(free).collect();
        let inline: String = properties.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        let in_line = line.chars().count() + inline.chars().count() <= WIDTH && !inline.contains('\n');
        if in_line {
            line.push_str(&inline);
        }
        self.out.push_str(&line);
        if item.children.is_empty() && in_line {
            self.out.push('\n');
            return;
        }
        self.out.push_str(" {\n");
        if !in_line {
            for (name, value) in &properties {
                let _ = writeln!(self.out, "{indent}    {name} {value}");
            }
        }
        for child in &item.children {
            self.item(child, depth + 1);
        }
        let _ = writeln!(self.out, "{indent}}}");
    }

    /// A value as the study's own file writes it: paths of a library become relative to it.
    fn value(&self, valued: &Valued) -> String {
        let path = |path: &str| match relative(&self.root, path).as_str() {
            "" => syntax::quote("."),
            path => syntax::quote(path),
        };
        match &valued.value {
            Value::File { id, .. } => path(id.as_str()),
            Value::Directory(directory) => path(&directory.path),
            // Written as one text or as several arguments: one text says both.
            Value::List(list) => {
                let each: Vec<&str> =
                    list.iter().map(|one| one.text().unwrap_or_else(|| one.written.trim_matches('"'))).collect();
                syntax::quote(&each.join(" "))
            }
            _ => valued.written.clone(),
        }
    }
}

/// A name, quoted where it must be.
fn word(name: &str) -> String {
    if syntax::is_bare(name) { name.to_owned() } else { syntax::quote(name) }
}
