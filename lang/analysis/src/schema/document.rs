//! `docs/language.md`, made from the schema. A test compares the file with what this makes.

use std::fmt::Write as _;

use super::{Argument, Count, FILE, Free, NodeSpec, Setting, Type, Variant, WITHOUT, every_node};
use crate::codes::CODES;
use crate::lint::LINTS;
use crate::value::units;

const HEAD: &str = "\
# The language

<!-- Made from lang/analysis/src/schema. `UPDATE=1 cargo test -p analysis` writes it anew. -->

A study is one file of [KDL v2](https://kdl.dev): nodes with arguments, properties and a block of children. What the
schema does not know is an error, never ignored.

- **Settings** may be written as a property or as a child with one argument: `load closed for=\"20s\"` is
  `load closed { for \"20s\" }`. Amendments change settings one by one.
- **Quantities** are quoted strings with units. Durations: `{durations}`, also combined (`\"1m30s\"`). Rates: `{rates}`.
  Sizes: `{bytes}`. Shares: `\"5%\"`. CPU sets as the kernel writes them: `\"0-3,8\"`.
- **Names** have letters, digits, `-` and `_`, and need no quotes.
- **Variables** in texts are written `${name}`; `$${` stands for the characters `${`.
- **Figures** are written `phase.metric`, such as `ceiling.throughput`. The metrics: {metrics}.
- **Reuse**: `use` reads another file or the standard library ({std}); `define KIND NAME { … }` is amended by
  `KIND NAME like=NAME { … }`, which gives its parameters beside `like=`: `like=NAME repetitions=7`. Same kind and name: arguments are replaced, settings one by one, children likewise; new
  ones are added; `without KIND NAME` and `(remove)` remove; `(replace)` takes the whole place.
- **Profiles** amend the study for another run of it.
- **Levels of lints**: `allow LINT reason=\"…\"` accepts what a lint says, `warn LINT` makes it a warning and `deny LINT` an
  error, in the node that it stands in; the innermost counts.

";

/// The whole page.
pub fn language() -> String {
    let unit_names = |table: &[(&str, f64)]| units::names(table);
    let metrics: Vec<String> = plan::Metric::ALL
        .iter()
        .map(|metric| match metric.unit() {
            "" => format!("`{}`", metric.name()),
            unit => format!("`{}` ({unit})", metric.name()),
        })
        .collect();
    let std: Vec<String> = crate::stdlib::NAMES.iter().map(|name| format!("`{name}`")).collect();
    let mut out = HEAD
        .replace("{durations}", &unit_names(units::DURATION_UNITS))
        .replace("{rates}", &unit_names(units::RATE_UNITS))
        .replace("{bytes}", &unit_names(units::BYTE_UNITS))
        .replace("{metrics}", &metrics.join(", "))
        .replace("{std}", &std.join(", "));
    out.push_str("## The file\n\nAt the top level stand:\n\n");
    for child in FILE.children {
        let _ =
            writeln!(out, "- [`{}`](#{}) ({}): {}", child.name, anchor(child), count(child.count), first(child.doc));
    }
    let mut told = Vec::new();
    for top in FILE.children.iter().chain([&&WITHOUT]) {
        section(&mut out, top, 2, &mut Vec::new(), &mut told);
    }
    diagnostics(&mut out);
    out
}

fn anchor(spec: &NodeSpec) -> String {
    spec.name.to_lowercase()
}

/// The first sentence.
fn first(doc: &str) -> &str {
    doc.find(". ").map_or(doc, |end| &doc[..=end])
}

fn count(count: Count) -> &'static str {
    match count {
        Count::One => "one",
        Count::Optional => "at most one",
        Count::Any => "any number",
        Count::Some => "at least one",
    }
}

fn section(
    out: &mut String,
    spec: &'static NodeSpec,
    level: usize,
    path: &mut Vec<&'static str>,
    told: &mut Vec<(&'static NodeSpec, String)>,
) {
    // What several parents share is described where it comes first.
    if let Some((_, where_)) = told.iter().find(|(known, _)| std::ptr::eq(*known, spec)) {
        let _ = writeln!(out, "\n`{} › {}` is as `{where_}`.", path.join(" › "), spec.name);
        return;
    }
    path.push(spec.name);
    told.push((spec, path.join(" › ")));
    let _ = write!(out, "\n{} `{}`\n\n{}\n\n", "#".repeat(level), path.join(" › "), spec.doc);
    let _ = writeln!(out, "```text\n{}\n```", spec.example);
    let mut rows = Vec::new();
    rows.extend(spec.arguments.iter().map(|argument| argument_row(argument, false)));
    rows.extend(spec.rest.iter().map(|rest| argument_row(rest, true)));
    rows.extend(spec.settings.iter().map(setting_row));
    rows.extend(spec.free.iter().map(free_row));
    table(out, &rows);
    for variant in spec.variants {
        variant_section(out, spec, variant);
    }
    for child in spec.children {
        section(out, child, (level + 1).min(5), path, told);
    }
    path.pop();
}

fn variant_section(out: &mut String, spec: &NodeSpec, variant: &Variant) {
    let _ = writeln!(
        out,
        "\n- **`{} {}{}`**: {}",
        spec.name,
        "… ".repeat(spec.variant.unwrap_or(0)),
        variant.name,
        variant.doc
    );
    if let Some(rest) = variant.rest {
        let _ = writeln!(out, "  - {} …: {}", rest.name, rest.doc);
    }
    for setting in variant.settings {
        let default = default_text(setting);
        let _ = writeln!(out, "  - `{}` — {} {}{}", setting.name, setting.ty.noun(), setting.doc, default);
    }
}

fn default_text(setting: &Setting) -> String {
    match (setting.default, setting.required) {
        (Some(default), _) => format!(" Default: `{default}`."),
        (None, true) => " Required.".to_owned(),
        (None, false) => String::new(),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn argument_row(argument: &Argument, rest: bool) -> [String; 4] {
    let name = if rest { format!("*{}* …", argument.name) } else { format!("*{}*", argument.name) };
    let needed = if argument.required { "required" } else { "" };
    [name, argument.ty.noun(), needed.to_owned(), words(argument.ty, argument.doc)]
}

fn setting_row(setting: &Setting) -> [String; 4] {
    let needed = match (setting.default, setting.required) {
        (Some(default), _) => format!("`{default}`"),
        (None, true) => "required".to_owned(),
        (None, false) => String::new(),
    };
    [format!("`{}`", setting.name), setting.ty.noun(), needed, words(setting.ty, setting.doc)]
}

fn free_row(free: &Free) -> [String; 4] {
    [format!("*{}*`=`", free.name), free.ty.noun(), String::new(), free.doc.to_owned()]
}

/// The documentation, and that of each word.
fn words(ty: Type, doc: &str) -> String {
    let Type::Word(words) = ty else { return doc.to_owned() };
    let each: Vec<String> = words.iter().map(|word| format!("`{}`: {}", word.name, word.doc)).collect();
    format!("{doc} {}", each.join(" "))
}

fn table(out: &mut String, rows: &[[String; 4]]) {
    if rows.is_empty() {
        return;
    }
    out.push_str("\n| | is | default | |\n|---|---|---|---|\n");
    for [name, ty, default, doc] in rows {
        let _ = writeln!(out, "| {} | {} | {} | {} |", cell(name), cell(ty), cell(default), cell(doc));
    }
}

fn diagnostics(out: &mut String) {
    out.push_str("\n## Diagnostics\n\n`exp explain CODE` shows each with examples. `E01xx` are the reader's.\n\n");
    out.push_str("| code | name | |\n|---|---|---|\n");
    for info in CODES {
        let _ = writeln!(out, "| {} | `{}` | {} |", info.code, info.name, cell(info.explanation));
    }
    out.push_str("\n## Method lints\n\n| code | name | |\n|---|---|---|\n");
    for lint in LINTS {
        let (name, info) = (lint.info.name, &lint.info);
        let _ = writeln!(out, "| {} | [`{name}`](lints/{name}.md) | {} |", info.code, cell(info.explanation));
    }
}

/// Every name of the language, for tests of the documentation.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = every_node()
        .into_iter()
        .flat_map(|spec| {
            let settings = spec.settings.iter().map(|setting| setting.name);
            let variants = spec.variants.iter().flat_map(|variant| {
                std::iter::once(variant.name).chain(variant.settings.iter().map(|setting| setting.name))
            });
            std::iter::once(spec.name).chain(settings).chain(variants)
        })
        .filter(|name| *name != FILE.name)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}
