//! Values from the environment: `${env:NAME}` of an `input` becomes its value, so that whatever holds the text is hashed
//! and recorded with it. A secret stays a variable.

use std::collections::BTreeMap;

use plan::input::ENVIRONMENT;
use plan::{Input, Piece, Text};

use super::{Item, Study};
use crate::value::{Value, Valued, text};

/// How a text that reads the environment begins to: `${` and [`ENVIRONMENT`].
const MARKER: &str = "${env:";

/// Fills the inputs in, and says what they are. Without a value, a text keeps its `${env:NAME}`.
pub fn fill(study: &mut Study, environment: &BTreeMap<String, String>) -> Vec<Input> {
    let inputs: Vec<Input> = study
        .each("input")
        .map(|item| {
            let given = environment.get(&item.key);
            let value = given.map(String::as_str).or_else(|| item.text("default"));
            Input { name: item.key.clone(), value: value.map(str::to_owned), is_default: given.is_none() }
        })
        .collect();
    if inputs.iter().any(|input| input.value.is_some()) {
        let values = |name: &str| {
            let name = name.strip_prefix(ENVIRONMENT)?;
            inputs.iter().find(|input| input.name == name)?.value.as_deref()
        };
        study.nodes.iter_mut().for_each(|item| fill_item(item, &values));
    }
    inputs
}

fn fill_item<'v>(item: &mut Item, values: &impl Fn(&str) -> Option<&'v str>) {
    let settings = item.settings.iter_mut().map(|(_, valued)| valued);
    let free = item.free.iter_mut().map(|(_, valued)| valued);
    for valued in item.args.iter_mut().chain(settings).chain(free) {
        fill_value(valued, values);
    }
    item.children.iter_mut().for_each(|child| fill_item(child, values));
}

fn fill_value<'v>(valued: &mut Valued, values: &impl Fn(&str) -> Option<&'v str>) {
    match &mut valued.value {
        Value::Template(template) if template.variables.iter().any(|(name, _)| values(name).is_some()) => {
            template.variables.retain(|(name, _)| values(name).is_none());
            template.text = filled(&template.text, values);
        }
        Value::Text(plain) => {
            if let Some(read) = environment_text(plain) {
                // What has no value stands as it is written: a plan with it is shown and never run.
                *plain = filled(&read, values).to_string();
            }
        }
        _ => {}
    }
}

/// A plain text that reads the environment, split at what it reads.
pub fn environment_text(plain: &str) -> Option<Text> {
    // Plain texts know no other variables, so anything else in one stands for itself.
    plain.contains(MARKER).then(|| text::split(plain).ok().map(|split| split.text)).flatten()
}

fn filled<'v>(text: &Text, values: &impl Fn(&str) -> Option<&'v str>) -> Text {
    let mut pieces: Vec<Piece> = Vec::with_capacity(text.0.len());
    for piece in &text.0 {
        let piece = match piece {
            Piece::Variable(name) => match values(name) {
                Some(value) => Piece::Literal(value.to_owned()),
                None => piece.clone(),
            },
            Piece::Literal(_) => piece.clone(),
        };
        // Neighbours become one, so that a text with a value is the text that would have been written.
        match (pieces.last_mut(), piece) {
            (Some(Piece::Literal(before)), Piece::Literal(more)) => before.push_str(&more),
            (_, piece) => pieces.push(piece),
        }
    }
    Text(pieces)
}
