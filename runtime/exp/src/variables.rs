//! The environment variables that a study declares: inputs for its plan, secrets for its run.

use std::collections::BTreeMap;

use engine::secret::{SHORTEST, Secrets};
use plan::Plan;

/// Why a study can't be run with this environment.
#[derive(Debug)]
pub struct Refused {
    /// What is wrong.
    pub what: String,
    /// Why that matters.
    pub why: String,
    /// What to do.
    pub next: String,
}

/// The environment, for the compiler, which looks at what the study declares with `input` alone.
pub fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The values of the plan's secrets, once every variable that the plan needs has a value. `written` are texts that the
/// run will store: a secret must not stand in them.
///
/// # Errors
/// Everything that is missing, at once; a secret that could not be hidden.
pub fn secrets(plan: &Plan, written: &[&str], command: &str) -> Result<Secrets, Refused> {
    let mut missing: Vec<&str> =
        plan.inputs.iter().filter(|input| input.value.is_none()).map(|input| input.name.as_str()).collect();
    let mut values = BTreeMap::new();
    for name in &plan.secrets {
        match std::env::var(name) {
            Ok(value) if !value.is_empty() => {
                values.insert(name.clone(), value);
            }
            Ok(_) | Err(std::env::VarError::NotPresent) => missing.push(name),
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(Refused {
                    what: format!("the value of the secret {name} is not UTF-8"),
                    why: "what is no text can't be filled into one".to_owned(),
                    next: format!("give {name} a value that is a text"),
                });
            }
        }
    }
    if !missing.is_empty() {
        let assigned: Vec<String> = missing.iter().map(|name| format!("{name}=…")).collect();
        let (is, a) = if missing.len() == 1 { ("is", "it") } else { ("are", "them") };
        return Err(Refused {
            what: format!("{} {is} not set in the environment", missing.join(", ")),
            why: format!("the study reads {a} and has no default"),
            next: format!("{} {command}", assigned.join(" ")),
        });
    }
    for (name, value) in &values {
        let length = value.chars().count();
        if length < SHORTEST {
            return Err(Refused {
                what: format!("the value of the secret {name} has {length} characters"),
                why: format!(
                    "fewer than {SHORTEST} turn up in texts by chance, so they can't be hidden in what is written"
                ),
                next: format!("give {name} a longer value; what is no secret can be an `input`"),
            });
        }
    }
    let secrets = Secrets::new(values);
    for text in written {
        if let [name, ..] = secrets.found_in(text).as_slice() {
            return Err(Refused {
                what: format!("the value of the secret {name} stands in the study or in an input"),
                why: "the study, its files and its inputs are stored with the run and printed in its report".to_owned(),
                next: format!("take the value out and write `${{env:{name}}}` instead, or give {name} another value"),
            });
        }
    }
    Ok(secrets)
}
