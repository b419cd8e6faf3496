//! Finds and ends processes that a run left behind.

use std::time::{Duration, Instant};

use journal::RunId;

use crate::error::StepError;
use crate::host::RUN_VARIABLE;
use crate::port::command_line;

/// Kills processes that carry our variable with the id of this run, or of any run when there is none, but for the runs
/// to keep; and says which. Processes of other users, whose environment can't be read, are never ours.
pub fn clean(run: Option<&RunId>, keep: &[RunId]) -> Result<Vec<String>, StepError> {
    let mut killed = Vec::new();
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let found = left(run, keep);
        if found.is_empty() {
            return Ok(killed);
        }
        if Instant::now() > until {
            let named: Vec<String> = found.iter().map(|(pid, id)| format!("{pid} of run {id}")).collect();
            return Err(StepError::environment(
                format!("processes of earlier runs could not be ended: {}", named.join(", ")),
                "they were killed and are still there",
                "Look at `dmesg`; a process that can't be killed waits inside the kernel.",
            ));
        }
        for (pid, id) in found {
            let told = format!("process {pid} (`{}`) of run {id}", command_line(pid));
            // SAFETY: no pointers.
            if unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) } == 0 && !killed.contains(&told) {
                killed.push(told);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Processes with our variable, other than this one and its ancestors: an `exp` that a server of an `exp` starts would
/// otherwise end itself.
fn left(run: Option<&RunId>, keep: &[RunId]) -> Vec<(u32, String)> {
    let mut spared = vec![std::process::id()];
    while let Some(parent) = spared.last().copied().and_then(parent).filter(|parent| !spared.contains(parent)) {
        spared.push(parent);
    }
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut found: Vec<(u32, String)> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| !spared.contains(pid))
        .filter_map(|pid| Some((pid, run_of(&std::fs::read(format!("/proc/{pid}/environ")).ok()?)?)))
        .filter(|(_, id)| run.is_none_or(|run| run.0 == *id) && keep.iter().all(|kept| kept.0 != *id))
        .collect();
    found.sort_unstable();
    found
}

fn parent(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok()).filter(|parent| *parent > 0)
}

/// The run that an environment names.
fn run_of(environment: &[u8]) -> Option<String> {
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(RUN_VARIABLE.as_bytes())?.strip_prefix(b"=")?;
        String::from_utf8(value.to_vec()).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_variable_names_a_run() {
        for (environment, expected) in [
            (&b"A=1\0EXP_RUN=2026-11-30-1412-k7\0B=2\0"[..], Some("2026-11-30-1412-k7")),
            (b"EXP_RUNNER=x\0NOT_EXP_RUN=y\0", None),
            (b"EXP_RUN\0", None),
            (b"", None),
        ] {
            assert_eq!(run_of(environment).as_deref(), expected);
        }
    }
}
