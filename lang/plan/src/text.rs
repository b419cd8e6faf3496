//! Text with variables: `"postgres://…/${database.name}?pool=${pool}"`, split at compile time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A text with `${variables}`, as literal and variable pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(pub Vec<Piece>);

/// One piece of a [`Text`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Piece {
    /// Characters that stand for themselves.
    Literal(String),
    /// The name inside `${…}`: a factor, `port`, `database.url`, `oauth2.public-key`, a stream's parameter …
    Variable(String),
}

/// A variable that had no value when the text was filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownVariable(pub String);

impl std::fmt::Display for UnknownVariable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the variable `${{{}}}` has no value here", self.0)
    }
}

impl std::error::Error for UnknownVariable {}

impl Text {
    /// A text without variables.
    pub fn literal(text: impl Into<String>) -> Self {
        Self(vec![Piece::Literal(text.into())])
    }

    /// Whether the text has no variable.
    pub fn is_constant(&self) -> bool {
        self.0.iter().all(|piece| matches!(piece, Piece::Literal(_)))
    }

    /// The names of the variables, in order of appearance, repeated where they repeat.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Variable(name) => Some(name.as_str()),
            Piece::Literal(_) => None,
        })
    }

    /// The text with every variable replaced by its value.
    ///
    /// # Errors
    /// When a variable has no value.
    pub fn fill(&self, values: &BTreeMap<String, String>) -> Result<String, UnknownVariable> {
        let mut filled = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => filled.push_str(text),
                Piece::Variable(name) => {
                    filled.push_str(values.get(name).ok_or_else(|| UnknownVariable(name.clone()))?);
                }
            }
        }
        Ok(filled)
    }
}

/// The text as a study writes it, `$` doubled where it stands for itself.
impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => f.write_str(&text.replace("${", "$${"))?,
                Piece::Variable(name) => write!(f, "${{{name}}}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_variables_and_names_the_missing_one() {
        let text = Text(vec![Piece::Literal("/events/".into()), Piece::Variable("id".into())]);
        let mut values = BTreeMap::new();
        assert_eq!(text.fill(&values), Err(UnknownVariable("id".into())));
        values.insert("id".to_owned(), "7".to_owned());
        assert_eq!(text.fill(&values).as_deref(), Ok("/events/7"));
        assert_eq!(text.to_string(), "/events/${id}");
        assert!(!text.is_constant());
    }
}
