//! The command that makes a plan again, and what it reads of the environment.

use plan::{Input, Plan};

use crate::check::machine::Chosen;
use crate::resolve::Study;

/// The command line that makes every figure of the report.
pub(super) fn reproduce(study: &Study, machine: Option<&Chosen<'_>>) -> String {
    let id = study.source.as_ref().map_or("", |id| id.as_str());
    let machine = machine.map_or_else(String::new, |chosen| format!(" --machine {}", chosen.machine.name));
    let profile = study.profile.as_ref().map_or_else(String::new, |profile| format!(" --profile {profile}"));
    format!("exp run {id}{machine}{profile}")
}

/// What the environment gave, in the plan and in the command that makes it again.
pub fn environment(plan: &mut Plan, inputs: Vec<Input>) {
    let given = inputs.iter().filter(|input| !input.is_default);
    let given = given.filter_map(|input| Some(format!("{}={} ", input.name, shell(input.value.as_deref()?))));
    // What the value is, whoever runs the study knows.
    let secrets = plan.secrets.iter().map(|name| format!("{name}=… "));
    let variables: String = given.chain(secrets).collect();
    plan.report.reproduce.insert_str(0, &variables);
    plan.inputs = inputs;
}

/// A word of a POSIX shell.
fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}
