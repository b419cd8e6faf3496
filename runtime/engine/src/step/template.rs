//! Makes the template database and locks it.

use journal::{Event, StepEnd};
use plan::StepId;

use crate::error::StepError;
use crate::run::Run;

/// Makes the template, showing each statement as it runs.
pub(crate) async fn make(run: &mut Run, step: StepId) -> Result<StepEnd, StepError> {
    let Some(declared) = run.plan.database.clone() else {
        return Ok(StepEnd::Skipped { why: "the study has no database".to_owned() });
    };
    let stop = run.stop.clone();
    let server = run.database()?.server.clone();
    let (sender, mut progress) = tokio::sync::mpsc::unbounded_channel();
    let mut tell = move |file: &str, done: u64, of: u64| {
        // The receiver outlives the work; if it is gone the run is ending.
        let _ = sender.send((file.to_owned(), done, of));
    };
    let making = server.make_template(&declared, &mut tell);
    tokio::pin!(making);
    let facts = loop {
        tokio::select! {
            biased;
            Some((what, done, of)) = progress.recv() => {
                run.stream.publish(Event::StepProgress { step, what, done, of })?;
            }
            made = stop.guard(&mut making) => break made?,
        }
    };
    run.database_mut()?.template = Some(facts.database.clone());
    let rows: Vec<String> =
        facts.rows.iter().map(|(table, rows)| format!("{table}: {} rows", grouped(*rows))).collect();
    let detail = format!("{}, {} MB, locked", rows.join(", "), facts.bytes / 1_000_000);
    Ok(if facts.reused { StepEnd::Reused { detail } } else { StepEnd::Done { detail } })
}

/// A count with thousands set apart.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn thousands_are_set_apart() {
        for (count, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_000_000, "1,000,000")] {
            assert_eq!(super::grouped(count), text);
        }
    }
}
