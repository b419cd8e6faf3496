//! The one event stream: the journal first, then the evidence, then whoever looks on.

use std::time::{SystemTime, UNIX_EPOCH};

use journal::{Event, Record};
use judge::Evidence;

use crate::error::{Class, StepError};
use crate::secret::Secrets;

/// Sees every event after it was journaled: the terminal, a live page.
pub trait Onlooker {
    /// Takes one record. An onlooker can't fail the run.
    fn take(&mut self, record: &Record);

    /// Takes a record of the journal that is continued: it is known, and need not be shown again.
    fn past(&mut self, record: &Record);
}

/// Where events go.
pub struct Stream {
    journal: journal::Journal,
    evidence: Evidence,
    onlookers: Vec<Box<dyn Onlooker>>,
    secrets: Secrets,
}

impl Stream {
    /// A stream into `journal`. `earlier` are the records that the journal already holds; `secrets` never get into it.
    pub fn new(
        journal: journal::Journal,
        earlier: &[Record],
        mut onlookers: Vec<Box<dyn Onlooker>>,
        secrets: Secrets,
    ) -> Self {
        let mut evidence = Evidence::new();
        for record in earlier {
            evidence.take(record);
            for onlooker in &mut onlookers {
                onlooker.past(record);
            }
        }
        Self { journal, evidence, onlookers, secrets }
    }

    /// Journals an event and shows it.
    ///
    /// # Errors
    /// Class [`Class::Journal`] when it can't be written; nobody was shown it then.
    pub fn publish(&mut self, event: Event) -> Result<(), StepError> {
        let record = self.journal.append(self.secrets.hide(event)).map_err(|error| {
            StepError::new(
                Class::Journal,
                format!("the journal can't be written: {error}"),
                "what is not recorded is not shown, so the run ends here",
                "make room or mend the disk, then run the same command: finished repetitions are kept",
            )
        })?;
        self.evidence.take(&record);
        for onlooker in &mut self.onlookers {
            onlooker.take(&record);
        }
        Ok(())
    }

    /// What is known so far.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }
}

/// Nanoseconds since the Unix epoch on the wall clock.
pub fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
