//! Reading values: an entry of the tree and the type that is asked for give a typed value, or a diagnostic and
//! [`Value::Unknown`].

use std::fmt::Display;

use syntax::{Applicability, Diagnostic, Entry, Fix, Label, Location, SourceId, Sources, Span};

use crate::codes::{self, CodeInfo};
use crate::names;
use crate::problems::{Problems, problem};
use crate::schema::{DEFINE, FILE, Kind, PROFILE, STUDY, Type, USE, Word};
use crate::value::{Template, Value, Valued, condition};

use super::parameter::{Binding, only_variable};

/// Reads the values of one source.
pub struct Reader<'a> {
    /// Where files and directories come from.
    pub sources: &'a dyn Sources,
    /// The source that is read.
    pub source: SourceId,
    /// Where problems go.
    pub problems: &'a mut Problems,
    /// Files that were read through values (SQL, scripts).
    pub files: &'a mut Vec<SourceId>,
    /// Places of syntax errors, sorted: what stands around them may be misread.
    pub wounds: &'a [Span],
    /// What `${NAME}` of a parameter stands for, inside a definition.
    pub bindings: Vec<Binding<'a>>,
    /// A text to be read instead of the entry's own: one in which parameters are filled in.
    pub(super) filled: Option<String>,
    /// Whether the definition may declare parameters that were not understood.
    pub(super) hides_parameters: bool,
}

/// A value's diagnostic, as an early return.
pub(super) type Refused = Box<Diagnostic>;

impl Reader<'_> {
    /// The place of a span in this source.
    pub fn at(&self, span: Span) -> Location {
        Location::new(&self.source, span)
    }

    /// Whether a syntax error lies inside.
    pub fn is_wounded(&self, span: Span) -> bool {
        let first = self.wounds.partition_point(|wound| wound.end < span.start);
        self.wounds.get(first).is_some_and(|wound| wound.start <= span.end)
    }

    /// The entry's value as `ty`; `what` names it in diagnostics, such as "`for`".
    pub fn read(&mut self, entry: Entry<'_>, ty: Type, what: &dyn Display) -> Valued {
        if let Some(valued) = self.read_parameter(entry, ty, what) {
            return valued;
        }
        let at = self.at(entry.value_span());
        let value = match self.try_read(entry, ty, what) {
            Ok(value) => value,
            // What it reads may be declared by the line that was misread.
            Err(refused) if self.hides_parameters && refused.code == codes::UNKNOWN_VARIABLE.code => Value::Unknown,
            Err(diagnostic) => {
                self.problems.push(*diagnostic);
                Value::Unknown
            }
        };
        Valued { value, at, written: entry.value_text().to_owned(), replaced: Vec::new() }
    }

    pub(super) fn refuse(&self, info: &'static CodeInfo, entry: Entry<'_>, message: String) -> Refused {
        Box::new(problem(info, &self.at(entry.value_span()), message))
    }

    pub(super) fn wrong_type(&self, entry: Entry<'_>, ty: Type, what: &dyn Display) -> Refused {
        if let Some(name) = entry.value().as_str().and_then(only_variable) {
            return self.no_parameter(entry, what, name);
        }
        let is = entry.value().kind();
        let mut diagnostic = problem(
            &codes::WRONG_TYPE,
            &self.at(entry.value_span()),
            format!("{what} must be {}, but this is {is}: {}", ty.noun(), entry.value_text()),
        );
        if let Some((title, replacement)) = self.retype(entry, ty) {
            let at = self.at(entry.value_span());
            diagnostic = diagnostic.fix(Fix::replace(title, at, replacement, Applicability::Unsafe));
        }
        Box::new(diagnostic)
    }

    /// The same value with or without quotes, where that is what is wrong.
    fn retype(&self, entry: Entry<'_>, ty: Type) -> Option<(&'static str, String)> {
        match (ty, entry.value()) {
            (Type::Integer(..) | Type::IntegerOrFactor(..), syntax::Value::String { text, .. }) => {
                text.parse::<i64>().ok().map(|number| ("write the number without quotes", number.to_string()))
            }
            (Type::Text | Type::Template, syntax::Value::Integer(number)) => {
                Some(("put it in quotes", format!("\"{number}\"")))
            }
            _ => None,
        }
    }

    pub(super) fn try_read(&mut self, entry: Entry<'_>, ty: Type, what: &dyn Display) -> Result<Value, Refused> {
        let value = entry.value();
        if value.is_unknown() {
            return Ok(Value::Unknown);
        }
        if let Some((annotation, span)) = entry.annotation() {
            let at = self.at(span);
            self.problems.push(
                problem(
                    &codes::UNKNOWN_ANNOTATION,
                    &at,
                    format!("`({annotation})` means nothing here: the schema knows the type of {what}"),
                )
                .help("leave the annotation out"),
            );
        }
        let string = match &value {
            syntax::Value::String { text, .. } => Some(text.to_string()),
            syntax::Value::Quantity(text) => Some((*text).to_owned()),
            _ => None,
        };
        let string = self.filled.take().or(string);
        match ty {
            Type::IntegerOrFactor(..) if string.as_deref().is_some_and(|string| string.contains("${")) => {
                self.factor(entry, ty, what, string.as_deref().unwrap_or_default())
            }
            Type::Integer(least, most) | Type::IntegerOrFactor(least, most) => match value {
                syntax::Value::Integer(number) => match i64::try_from(number) {
                    Ok(number) if (least..=most).contains(&number) => Ok(Value::Integer(number)),
                    _ => Err(self.refuse(
                        &codes::OUT_OF_RANGE,
                        entry,
                        format!("{what} must be {}, but this is {number}", ty.noun()),
                    )),
                },
                _ => Err(self.wrong_type(entry, ty, what)),
            },
            Type::Decimal(least, most) => match value {
                syntax::Value::Integer(_) | syntax::Value::Float(_) => {
                    let number = match value {
                        syntax::Value::Integer(number) => number as f64,
                        syntax::Value::Float(number) => number,
                        _ => f64::NAN,
                    };
                    if (least..=most).contains(&number) {
                        Ok(Value::Number(number))
                    } else {
                        Err(self.refuse(
                            &codes::OUT_OF_RANGE,
                            entry,
                            format!("{what} must be {}, but this is {}", ty.noun(), entry.value_text()),
                        ))
                    }
                }
                _ => Err(self.wrong_type(entry, ty, what)),
            },
            Type::Scalar => match value {
                syntax::Value::Integer(number) => Ok(constant(number.to_string())),
                syntax::Value::Float(number) if number.is_finite() => Ok(constant(number.to_string())),
                syntax::Value::Bool(flag) => Ok(constant(flag.to_string())),
                syntax::Value::Null => Ok(constant("null".to_owned())),
                _ => self.template(entry, ty, what, string.as_deref()),
            },
            Type::Text => match (string, value) {
                (Some(text), _) => Ok(Value::Text(text)),
                // `set max_connections=200`: numbers stand for themselves where a text is due.
                (None, syntax::Value::Integer(number)) => Ok(Value::Text(number.to_string())),
                (None, syntax::Value::Float(number)) if number.is_finite() => Ok(Value::Text(number.to_string())),
                _ => Err(self.wrong_type(entry, ty, what)),
            },
            Type::Template => match (string, value) {
                (None, syntax::Value::Integer(number)) => Ok(constant(number.to_string())),
                (string, _) => self.template(entry, ty, what, string.as_deref()),
            },
            Type::Duration | Type::SignedDuration | Type::Rate | Type::Bytes | Type::Percent(_) => {
                self.quantity(entry, ty, what, string.as_deref(), &value)
            }
            Type::Level => self.level(entry, ty, what, string, &value),
            _ => {
                let Some(string) = string else { return Err(self.wrong_type(entry, ty, what)) };
                self.worded(entry, ty, what, string)
            }
        }
    }

    /// A value of its own type can be read from a definition's parameter and from nothing else.
    pub(super) fn no_parameter(&self, entry: Entry<'_>, what: &dyn Display, name: &str) -> Refused {
        let known = self.bindings.iter().map(|binding| binding.name.as_str());
        let near = names::nearest(name, known);
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        let at = self.at(entry.value_span());
        let message = format!("{what} reads `${{{name}}}`, which has no value here{hint}");
        let mut diagnostic = problem(&codes::UNKNOWN_VARIABLE, &at, message).help(format!(
            "only a definition's own parameter can stand here: `parameter {name} type=…` inside `define`"
        ));
        if let Some(near) = near {
            let replacement = format!("\"${{{near}}}\"");
            diagnostic =
                diagnostic.fix(Fix::replace(format!("write `${{{near}}}`"), at, replacement, Applicability::Unsafe));
        }
        Box::new(diagnostic)
    }

    /// Types that are written as a text of some form.
    fn worded(&mut self, entry: Entry<'_>, ty: Type, what: &dyn Display, string: String) -> Result<Value, Refused> {
        match ty {
            Type::Name => {
                if is_name(&string) {
                    Ok(Value::Text(string))
                } else {
                    Err(self.refuse(
                        &codes::MALFORMED,
                        entry,
                        format!("{what} must be {}, but this is `{string}`", ty.noun()),
                    ))
                }
            }
            Type::Variable => match is_variable(&string) {
                true => Ok(Value::Text(string)),
                false => Err(self.refuse(
                    &codes::MALFORMED,
                    entry,
                    format!("{what} must be {}, but this is `{string}`", ty.noun()),
                )),
            },
            Type::Word(words) => self.word(entry, what, words, string),
            Type::Cpus if string.is_empty() => {
                Err(self.refuse(&codes::MALFORMED, entry, format!("{what} is an empty CPU set")))
            }
            Type::Cpus => string.parse().map(Value::Cpus).map_err(|why: plan::cpus::NotACpuSet| {
                Box::new(
                    problem(&codes::MALFORMED, &self.at(entry.value_span()), format!("{what} is no CPU set: {why}"))
                        .help("write it as the kernel does: \"0-3\", \"0,2\", \"4-7,12\""),
                )
            }),
            Type::File => self.file(entry, what, &string),
            Type::Content => self.content(entry, what, &string),
            Type::Directory => self.sources.directory(&self.source, &string).map(Value::Directory).map_err(|missing| {
                self.refuse(
                    &codes::MISSING_DIRECTORY,
                    entry,
                    format!("{what} names the directory `{string}`, which can't be used: {}", missing.why),
                )
            }),
            Type::Json => {
                let template = self.template(entry, ty, what, Some(&string))?;
                self.check_json(entry, what, &string)?;
                Ok(template)
            }
            Type::Condition => condition::read(&string).map(Value::Condition).map_err(|wrong| {
                let span = entry.span_in_value(wrong.from, wrong.to);
                Box::new(problem(&codes::MALFORMED, &self.at(span), format!("not a condition: {}", wrong.message)))
            }),
            Type::Figure => self.figure(entry, what, &string),
            Type::Metric => match plan::Metric::from_name(&string) {
                Some(_) => Ok(Value::Reference { kind: Kind::Metric, name: string }),
                None => Err(self.unknown_metric(entry, &string, 0)),
            },
            Type::Reference(kind) => Ok(Value::Reference { kind, name: string }),
            Type::References(kind) => Ok(Value::List(
                pieces(&string)
                    .map(|(from, piece)| {
                        let at = self.at(entry.span_in_value(from, from + piece.len()));
                        let value = Value::Reference { kind, name: piece.to_owned() };
                        Valued { value, at, written: piece.to_owned(), replaced: Vec::new() }
                    })
                    .collect(),
            )),
            Type::Numbers => self.numbers(entry, ty, what, &string),
            Type::JsonPath => {
                if is_json_path(&string) {
                    Ok(Value::Text(string))
                } else {
                    Err(self.refuse(
                        &codes::MALFORMED,
                        entry,
                        format!("`{string}` is no place in a JSON document; it must be {}", ty.noun()),
                    ))
                }
            }
            Type::NodeKind => Ok(Value::Text(string)),
            _ => Err(self.wrong_type(entry, ty, what)),
        }
    }

    fn word(&self, entry: Entry<'_>, what: &dyn Display, words: &[Word], string: String) -> Result<Value, Refused> {
        if words.iter().any(|word| word.name == string) {
            return Ok(Value::Text(string));
        }
        Err(Box::new(self.unknown_word(entry, what, &string, words.iter().map(|word| word.name))))
    }

    /// "`x` is none of …", with a fix where one is near.
    pub fn unknown_word<'w>(
        &self,
        entry: Entry<'_>,
        what: &dyn Display,
        string: &str,
        words: impl Iterator<Item = &'w str> + Clone,
    ) -> Diagnostic {
        let at = self.at(entry.value_span());
        let near = names::nearest(string, words.clone());
        let message = match near {
            Some(near) => format!("{what} knows no `{string}`; did you mean `{near}`?"),
            None => format!("{what} knows no `{string}`"),
        };
        let mut diagnostic =
            problem(&codes::UNKNOWN_WORD, &at, message).help(format!("it can be {}", names::listed(words)));
        if let Some(near) = near {
            diagnostic = diagnostic.fix(Fix::replace(format!("write `{near}`"), at, near, Applicability::Unsafe));
        }
        diagnostic
    }

    /// Several values of a list setting that is written as a child: `for-each candidate cores`.
    pub fn read_list<'t>(
        &mut self,
        entries: impl Iterator<Item = Entry<'t>>,
        ty: Type,
        what: &dyn Display,
    ) -> Option<Valued> {
        let mut all: Option<Valued> = None;
        for entry in entries {
            let one = match (ty, entry.value()) {
                (Type::Numbers, syntax::Value::Integer(number)) if number > 0 => Valued {
                    value: Value::List(vec![Valued {
                        value: Value::Number(number as f64),
                        at: self.at(entry.value_span()),
                        written: entry.value_text().to_owned(),
                        replaced: Vec::new(),
                    }]),
                    at: self.at(entry.value_span()),
                    written: entry.value_text().to_owned(),
                    replaced: Vec::new(),
                },
                _ => self.read(entry, ty, what),
            };
            all = Some(match all {
                None => one,
                Some(mut all) => {
                    all.at.span = all.at.span.to(one.at.span);
                    all.written = format!("{} {}", all.written, one.written);
                    match (&mut all.value, one.value) {
                        (Value::List(list), Value::List(more)) => list.extend(more),
                        (value, _) => *value = Value::Unknown,
                    }
                    all
                }
            });
        }
        all
    }
}

fn constant(text: String) -> Value {
    Value::Template(Template { text: plan::Text::literal(text), variables: Vec::new() })
}

/// The words of a text and where each starts.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_whitespace().map(move |piece| (piece.as_ptr() as usize - text.as_ptr() as usize, piece))
}

/// Whether a text can name something.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// Whether a text can name an environment variable (POSIX.1-2017, XBD 8.1).
fn is_variable(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_json_path(text: &str) -> bool {
    let Some(mut rest) = text.strip_prefix('$') else { return false };
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 || after[..end].contains([']', ' ', '"']) {
                return false;
            }
            rest = &after[end..];
        } else if let Some(after) = rest.strip_prefix('[') {
            let Some(end) = after.find(']') else { return false };
            if end == 0 || end > 9 || !after[..end].bytes().all(|byte| byte.is_ascii_digit()) {
                return false;
            }
            rest = &after[end + 1..];
        } else {
            return false;
        }
    }
    true
}

/// Kinds that a profile's `without` may name, for suggestions.
pub fn node_kinds() -> impl Iterator<Item = &'static str> + Clone {
    let kept = [STUDY.name, USE.name, DEFINE.name, PROFILE.name];
    FILE.children.iter().map(|child| child.name).filter(move |name| !kept.contains(name))
}

/// A label without text.
pub fn label(at: &Location, text: impl Into<String>) -> Label {
    Label { at: at.clone(), text: text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_names_and_json_paths() {
        for (text, expected) in
            [("go", true), ("php-fpm", true), ("2x", true), ("", false), ("a.b", false), ("é", false)]
        {
            assert_eq!(is_name(text), expected, "{text}");
        }
        for (text, expected) in [
            ("$", true),
            ("$.id", true),
            ("$.items[0].name", true),
            ("$[12]", true),
            ("id", false),
            ("$.", false),
            ("$..a", false),
            ("$[a]", false),
            ("$[", false),
            ("$.a]", false),
            ("$x", false),
        ] {
            assert_eq!(is_json_path(text), expected, "{text}");
        }
    }
}
