//! Reading the forms that a text takes as a value: quantities, levels, templates, files, figures, lists of numbers.

use std::fmt::Display;

use syntax::Entry;

use super::parameter::only_variable;
use super::read::{Reader, Refused, is_name, pieces};
use crate::codes;
use crate::names;
use crate::problems::problem;
use crate::schema::{Kind, Type};
use crate::value::units::{self, UnitProblem};
use crate::value::{Template, Value, Valued, text};

impl Reader<'_> {
    pub(super) fn quantity(
        &self,
        entry: Entry<'_>,
        ty: Type,
        what: &dyn Display,
        string: Option<&str>,
        value: &syntax::Value<'_>,
    ) -> Result<Value, Refused> {
        let table = match ty {
            Type::Duration | Type::SignedDuration => units::DURATION_UNITS,
            Type::Rate => units::RATE_UNITS,
            Type::Bytes => units::BYTE_UNITS,
            _ => units::PERCENT_UNITS,
        };
        let Some(string) = string else {
            return Err(match value {
                syntax::Value::Integer(_) | syntax::Value::Float(_) => Box::new(
                    problem(
                        &codes::WRONG_UNIT,
                        &self.at(entry.value_span()),
                        format!("{what} has no unit: {}", entry.value_text()),
                    )
                    .help(format!(
                        "it must be {}; units that fit: {}",
                        ty.noun(),
                        units::names(table)
                    )),
                ),
                _ => self.wrong_type(entry, ty, what),
            });
        };
        let read = match ty {
            Type::Duration => units::duration(string).and_then(|ns| {
                if ns < 0 {
                    Err(UnitProblem::OutOfRange("it lies in the past".to_owned()))
                } else {
                    Ok(Value::Duration(ns))
                }
            }),
            Type::SignedDuration => units::duration(string).map(Value::Duration),
            Type::Rate => {
                if string.contains("${") {
                    return self.factor(entry, ty, what, string);
                }
                units::rate(string).map(Value::Rate)
            }
            Type::Bytes => units::bytes(string).map(Value::Bytes),
            Type::Percent(most) => units::percent(string).and_then(|ratio| {
                if ratio > most {
                    Err(UnitProblem::OutOfRange(format!("it is above {}", units::as_percent(most))))
                } else {
                    Ok(Value::Ratio(ratio))
                }
            }),
            _ => return Err(self.wrong_type(entry, ty, what)),
        };
        if let (Err(_), Some(name)) = (&read, only_variable(string)) {
            return Err(self.no_parameter(entry, what, name));
        }
        read.map_err(|wrong| {
            let info = match wrong {
                UnitProblem::OutOfRange(_) => &codes::OUT_OF_RANGE,
                _ => &codes::WRONG_UNIT,
            };
            Box::new(
                problem(
                    info,
                    &self.at(entry.value_span()),
                    format!("{what} must be {}, but `{string}` is not: {wrong}", ty.noun()),
                )
                .help(format!("units that fit: {}", units::names(table))),
            )
        })
    }

    /// `rate="${rate}"`: one variable and nothing else.
    pub(super) fn factor(
        &self,
        entry: Entry<'_>,
        ty: Type,
        what: &dyn Display,
        string: &str,
    ) -> Result<Value, Refused> {
        match text::split(string) {
            Ok(split) if split.text.0.len() == 1 && split.variables.len() == 1 => {
                Ok(Value::Reference { kind: Kind::Factor, name: split.variables[0].0.clone() })
            }
            _ => Err(self.refuse(
                &codes::MALFORMED,
                entry,
                format!("{what} must be {}, but this is `{string}`", ty.noun()),
            )),
        }
    }

    pub(super) fn level(
        &self,
        entry: Entry<'_>,
        ty: Type,
        what: &dyn Display,
        string: Option<String>,
        value: &syntax::Value<'_>,
    ) -> Result<Value, Refused> {
        match (string, value) {
            (None, syntax::Value::Integer(number)) => i64::try_from(*number).map(Value::Integer).map_err(|_| {
                self.refuse(&codes::OUT_OF_RANGE, entry, format!("{what} {number} does not fit into 64 bits"))
            }),
            (Some(string), _) if string.ends_with('%') => {
                self.quantity(entry, Type::Percent(100.0), what, Some(&string), value)
            }
            (Some(string), _) if string.starts_with(|c: char| c.is_ascii_digit()) && string.contains('/') => {
                self.quantity(entry, Type::Rate, what, Some(&string), value)
            }
            (Some(string), _) if is_name(&string) => Ok(Value::Text(string)),
            _ => Err(self.wrong_type(entry, ty, what)),
        }
    }

    pub(super) fn template(
        &self,
        entry: Entry<'_>,
        ty: Type,
        what: &dyn Display,
        string: Option<&str>,
    ) -> Result<Value, Refused> {
        let Some(string) = string else { return Err(self.wrong_type(entry, ty, what)) };
        match text::split(string) {
            Ok(split) => Ok(Value::Template(Template {
                text: split.text,
                variables: split
                    .variables
                    .into_iter()
                    .map(|(name, from, to)| (name, self.at(entry.span_in_value(from, to))))
                    .collect(),
            })),
            Err(wrong) => {
                let span = entry.span_in_value(wrong.from, wrong.to);
                Err(Box::new(problem(&codes::MALFORMED, &self.at(span), wrong.message)))
            }
        }
    }

    /// JSON with variables is JSON when each variable is a digit: both `${id}` and `"${id}"` are then values.
    pub(super) fn check_json(&self, entry: Entry<'_>, what: &dyn Display, string: &str) -> Result<(), Refused> {
        let mut filled = String::with_capacity(string.len());
        if let Ok(split) = text::split(string) {
            for piece in &split.text.0 {
                match piece {
                    plan::Piece::Literal(text) => filled.push_str(text),
                    plan::Piece::Variable(_) => filled.push('1'),
                }
            }
        }
        match serde_json::from_str::<serde_json::Value>(&filled) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.refuse(&codes::MALFORMED, entry, format!("{what} is not JSON: {error}"))),
        }
    }

    pub(super) fn file(&mut self, entry: Entry<'_>, what: &dyn Display, string: &str) -> Result<Value, Refused> {
        let read = self.sources.resolve(&self.source, string).and_then(|id| Ok((self.sources.text(&id)?, id)));
        match read {
            Ok((text, id)) => {
                if !self.files.contains(&id) {
                    self.files.push(id.clone());
                }
                Ok(Value::File { id, text })
            }
            Err(missing) => Err(self.refuse(
                &codes::MISSING_FILE,
                entry,
                format!("{what} names the file `{string}`, which can't be used: {}", missing.why),
            )),
        }
    }

    pub(super) fn content(&mut self, entry: Entry<'_>, what: &dyn Display, string: &str) -> Result<Value, Refused> {
        let read = self.sources.resolve(&self.source, string).and_then(|id| Ok((self.sources.bytes(&id)?, id)));
        match read {
            Ok((bytes, id)) => {
                if !self.files.contains(&id) {
                    self.files.push(id.clone());
                }
                Ok(Value::Content { id, bytes })
            }
            Err(missing) => Err(self.refuse(
                &codes::MISSING_FILE,
                entry,
                format!("{what} names the file `{string}`, which can't be used: {}", missing.why),
            )),
        }
    }

    pub(super) fn figure(&self, entry: Entry<'_>, what: &dyn Display, string: &str) -> Result<Value, Refused> {
        match string.split_once('.') {
            Some((phase, metric)) if is_name(phase) => match plan::Metric::from_name(metric) {
                Some(metric) => Ok(Value::Figure { phase: phase.to_owned(), metric }),
                None => Err(self.unknown_metric(entry, metric, phase.len() + 1)),
            },
            _ => Err(self.refuse(
                &codes::MALFORMED,
                entry,
                format!("{what} must be {}, but this is `{string}`", Type::Figure.noun()),
            )),
        }
    }

    pub(super) fn unknown_metric(&self, entry: Entry<'_>, name: &str, from: usize) -> Refused {
        let known = plan::Metric::ALL.iter().map(|metric| metric.name());
        let span = entry.span_in_value(from, from + name.len());
        Box::new(
            problem(
                &codes::UNKNOWN_NAME,
                &self.at(span),
                format!("no metric is called `{name}`{}", names::hint(name, known.clone())),
            )
            .help(format!("the metrics are {}", names::listed(known))),
        )
    }

    pub(super) fn numbers(
        &self,
        entry: Entry<'_>,
        ty: Type,
        what: &dyn Display,
        string: &str,
    ) -> Result<Value, Refused> {
        let mut list = Vec::new();
        for (from, piece) in pieces(string) {
            let digits = piece.strip_suffix("/s").unwrap_or(piece).replace('_', "");
            let at = self.at(entry.span_in_value(from, from + piece.len()));
            match digits.parse::<f64>() {
                Ok(number) if number.is_finite() && number > 0.0 => {
                    let value = Value::Number(number);
                    list.push(Valued { value, at, written: piece.to_owned(), replaced: Vec::new() });
                }
                _ => {
                    return Err(Box::new(problem(
                        &codes::WRONG_TYPE,
                        &at,
                        format!("{what} must be {}, but `{piece}` is no number above zero", ty.noun()),
                    )));
                }
            }
        }
        if list.is_empty() {
            return Err(self.wrong_type(entry, ty, what));
        }
        Ok(Value::List(list))
    }
}
