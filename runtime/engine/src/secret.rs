//! Secrets of a run: values that are filled in at use, and hidden in whatever is written or shown.
//!
//! A server may print what it was given, a service may send it back: so every event and every failure is looked through
//! before it leaves the engine. Recognised are the value itself, the lines of a value of several lines, the form that it
//! has inside JSON and inside a URL, and a beginning of it at the end of a text that was cut. Another encoding of it (a
//! hash, base64) is not.

use std::collections::BTreeMap;
use std::fmt;

use journal::{Event, Failure};
use serde_json::Value;

use crate::error::StepError;

/// The fewest characters of a secret: what is shorter turns up in texts by chance, and can't be hidden in them.
pub const SHORTEST: usize = 8;

/// The values of the plan's secrets, by name.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secrets {
    values: BTreeMap<String, String>,
    /// What is looked for, longest first, with what is written in its place.
    needles: Vec<(String, String)>,
}

/// Values stay out of logs and panics.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl Secrets {
    /// Secrets with these values, each of at least [`SHORTEST`] characters.
    pub fn new(values: BTreeMap<String, String>) -> Self {
        let mut needles: Vec<(String, String)> = Vec::new();
        for (name, value) in &values {
            let parts = std::iter::once(value.as_str()).chain(value.lines().map(str::trim));
            for part in parts.filter(|part| part.chars().count() >= SHORTEST) {
                for form in [part.to_owned(), in_json(part), in_url(part)] {
                    if !needles.iter().any(|(known, _)| *known == form) {
                        needles.push((form, format!("‹secret {name}›")));
                    }
                }
            }
        }
        needles.sort_by_key(|(needle, _)| std::cmp::Reverse(needle.len()));
        Self { values, needles }
    }

    /// The variables that texts of the plan read, such as `env:API_TOKEN`, with their values.
    pub fn variables(&self) -> impl Iterator<Item = (String, String)> {
        self.values.iter().map(|(name, value)| (plan::input::variable(name), value.clone()))
    }

    /// The names of those that stand in a text.
    pub fn found_in(&self, text: &str) -> Vec<&str> {
        let inside = |value: &str| text.contains(value) || text.contains(&in_json(value));
        self.values.iter().filter(|(_, value)| inside(value)).map(|(name, _)| name.as_str()).collect()
    }

    /// The text without secrets; `None` where it has none.
    fn hidden(&self, text: &str) -> Option<String> {
        let mut hidden: Option<String> = None;
        for (needle, instead) in &self.needles {
            let now = hidden.as_deref().unwrap_or(text);
            if now.contains(needle.as_str()) {
                hidden = Some(now.replace(needle.as_str(), instead));
            }
            // A text that was cut may end within a secret.
            let now = hidden.as_deref().unwrap_or(text);
            let whole = now.trim_end_matches(['…', '.', ' ', '"', '`']);
            let cut = needle.char_indices().map(|(at, _)| at).rev().find(|at| {
                let beginning = &needle[..*at];
                beginning.chars().count() >= SHORTEST && whole.ends_with(beginning)
            });
            if let Some(length) = cut {
                let (start, end) = (whole.len() - length, whole.len());
                hidden = Some(format!("{}{instead}{}", &now[..start], &now[end..]));
            }
        }
        hidden
    }

    /// The failure without secrets.
    pub(crate) fn hide_failure(&self, mut failure: Failure) -> Failure {
        let texts = [&mut failure.what, &mut failure.why, &mut failure.next];
        for text in texts.into_iter().chain(&mut failure.log) {
            if let Some(hidden) = self.hidden(text) {
                *text = hidden;
            }
        }
        failure
    }

    /// The error without secrets.
    pub(crate) fn hide_error(&self, error: StepError) -> StepError {
        StepError { failure: self.hide_failure(error.failure), ..error }
    }

    /// The event without secrets: every text that it carries is looked through.
    pub(crate) fn hide(&self, event: Event) -> Event {
        if self.needles.is_empty() {
            return event;
        }
        // An event that can't be JSON can't be journaled either, which is told where it is tried.
        let Ok(original) = serde_json::to_value(&event) else { return event };
        let mut all = original.clone();
        let found = self.hide_value(&mut all, &mut None);
        if found == 0 {
            return event;
        }
        if let Ok(hidden) = serde_json::from_value(all) {
            return hidden;
        }
        // A word of the format itself reads like a secret: it isn't from outside. Each text is then taken alone.
        let mut kept = (original, event);
        for index in (0..found).rev() {
            let mut value = kept.0.clone();
            self.hide_value(&mut value, &mut Some(index));
            if let Ok(hidden) = serde_json::from_value(value.clone()) {
                kept = (value, hidden);
            }
        }
        kept.1
    }

    /// Hides in every text of a value, or in one alone: the one with that number. How many texts hold secrets.
    fn hide_value(&self, value: &mut Value, only: &mut Option<usize>) -> usize {
        match value {
            Value::String(text) => {
                let Some(hidden) = self.hidden(text) else { return 0 };
                if is_next(only) {
                    *text = hidden;
                }
                1
            }
            Value::Array(values) => values.iter_mut().map(|value| self.hide_value(value, only)).sum(),
            Value::Object(members) => {
                let mut found = 0;
                for (key, mut value) in std::mem::take(members) {
                    let hidden = self.hidden(&key);
                    found += usize::from(hidden.is_some());
                    let key = hidden.filter(|_| is_next(only)).unwrap_or(key);
                    found += self.hide_value(&mut value, only);
                    members.insert(key, value);
                }
                found
            }
            _ => 0,
        }
    }
}

/// Whether it is the turn of this text; one at a time where a number is given.
fn is_next(only: &mut Option<usize>) -> bool {
    only.as_mut().is_none_or(|left| {
        let now = *left == 0;
        *left = left.wrapping_sub(1);
        now
    })
}

/// The text as it stands inside a JSON string.
fn in_json(text: &str) -> String {
    let quoted = Value::String(text.to_owned()).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// The text as it stands inside a URL (RFC 3986 §2.1: everything but unreserved characters).
fn in_url(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use journal::{CaseOutcome, StepEnd};
    use plan::StepId;

    use super::*;

    fn secrets(values: &[(&str, &str)]) -> Secrets {
        Secrets::new(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_secret_is_hidden_in_every_form_and_nothing_else_is() {
        let secrets = secrets(&[("T", "pa\"ss wörd/1"), ("KEY", "-----BEGIN\nabcdefghij\n-----END K\n")]);
        for (text, expected) in [
            ("nothing here", None),
            ("pa\"ss", None),
            ("got pa\"ss wörd/1!", Some("got ‹secret T›!")),
            (r#"{"t":"pa\"ss wörd/1"}"#, Some(r#"{"t":"‹secret T›"}"#)),
            ("/x?t=pa%22ss%20w%C3%B6rd%2F1&y", Some("/x?t=‹secret T›&y")),
            ("line: abcdefghij", Some("line: ‹secret KEY›")),
            ("cut pa\"ss wör", Some("cut ‹secret T›")),
            ("cut pa\"ss wör…", Some("cut ‹secret T›…")),
            ("cut pa\"s…", None),
        ] {
            assert_eq!(secrets.hidden(text).as_deref(), expected, "{text}");
        }
        assert!(!format!("{secrets:?}").contains("pa"), "{secrets:?}");
    }

    #[test]
    fn events_lose_secrets_and_keep_everything_else() {
        let secrets = secrets(&[("T", "correct horse"), ("WORD", "step-finished")]);
        let event = |what: &str| Event::StepFinished {
            step: StepId(3),
            end: StepEnd::Failed(Failure {
                what: what.to_owned(),
                why: "step-finished".to_owned(),
                next: String::new(),
                log: vec![what.to_owned(), "fine".to_owned()],
            }),
            took_ns: 7,
        };
        // The event's own name reads like a secret, and stays; what came from outside goes.
        let Event::StepFinished { end: StepEnd::Failed(failure), took_ns: 7, .. } =
            secrets.hide(event("it said correct horse"))
        else {
            panic!("the event is another one")
        };
        assert_eq!(failure.what, "it said ‹secret T›");
        assert_eq!(failure.why, "‹secret WORD›");
        assert_eq!(failure.log, ["it said ‹secret T›", "fine"]);

        let case = CaseOutcome { case: "c".into(), problem: Some("body `correct horse` came".into()) };
        let checked = Event::ContractChecked { candidate: "app".into(), cases: vec![case] };
        let text = serde_json::to_string(&secrets.hide(checked.clone())).expect("JSON");
        assert!(text.contains("body `‹secret T›` came"), "{text}");
        assert_eq!(Secrets::default().hide(checked.clone()), checked);
    }
}
