//! Writing a journal: one JSON line per event, on the disk before anybody is shown it.
//!
//! [`Journal::append`] returns the record as a reader will read it back, so a live view and a replay fold the same
//! values. The first failure ends the journal: what follows an unfinished line could not be trusted.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::event::{Event, Record};
use crate::read::{self, JournalError, MAX_LINE_BYTES, Torn};

/// Gives the wall clock in Unix nanoseconds.
pub type Clock = fn() -> u64;

/// The wall clock in Unix nanoseconds; 0 where the clock stands before 1970.
pub fn wall_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// A journal that is being written. It holds a lock on its file, so that no second run writes into it.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    clock: Clock,
    next_seq: u64,
    line: Vec<u8>,
    unsynced: bool,
    broken: bool,
}

/// A journal that was opened again, and what it held.
#[derive(Debug)]
pub struct Reopened {
    /// The journal, ready for the next event.
    pub journal: Journal,
    /// Every record, in order; empty where the run ended before its first event was written.
    pub records: Vec<Record>,
    /// The unfinished last line that was cut off, if there was one.
    pub torn: Option<Torn>,
}

impl Journal {
    /// Creates a journal. It never overwrites one.
    ///
    /// # Errors
    /// When the file exists or can't be created.
    pub fn create(path: &Path) -> Result<Self, JournalError> {
        Self::create_with_clock(path, wall_clock)
    }

    /// [`Journal::create`] with another clock.
    ///
    /// # Errors
    /// As [`Journal::create`].
    pub fn create_with_clock(path: &Path, clock: Clock) -> Result<Self, JournalError> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(|error| JournalError::io(path, "create", error))?;
        lock(&file, path)?;
        // The new name must outlive a power failure too.
        if let Some(directory) = path.parent() {
            let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
            File::open(directory)
                .and_then(|directory| directory.sync_all())
                .map_err(|error| JournalError::io(path, "sync the directory of", error))?;
        }
        Ok(Self::new(file, path, clock, 0))
    }

    /// Opens the journal of an interrupted run: reads every record, cuts off an unfinished last line (a `kill -9` within
    /// a write) and continues the numbers.
    ///
    /// # Errors
    /// When the file can't be read or written, another run holds it, its version is another, or anything else in it is
    /// not as it was written; the line is named.
    pub fn reopen(path: &Path) -> Result<Reopened, JournalError> {
        Self::reopen_with_clock(path, wall_clock)
    }

    /// [`Journal::reopen`] with another clock.
    ///
    /// # Errors
    /// As [`Journal::reopen`].
    pub fn reopen_with_clock(path: &Path, clock: Clock) -> Result<Reopened, JournalError> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| JournalError::io(path, "open", error))?;
        lock(&file, path)?;
        let mut reader = read::read(path)?;
        let mut records = Vec::new();
        for record in &mut reader {
            match record {
                Ok(record) => records.push(record),
                Err(JournalError::Empty { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        let torn = reader.torn().cloned();
        let whole = reader.whole_bytes();
        if torn.is_some() {
            file.set_len(whole)
                .and_then(|()| file.sync_all())
                .map_err(|error| JournalError::io(path, "cut the unfinished last line off", error))?;
        }
        file.seek(SeekFrom::Start(whole)).map_err(|error| JournalError::io(path, "seek in", error))?;
        let journal = Self::new(file, path, clock, records.len() as u64);
        Ok(Reopened { journal, records, torn })
    }

    fn new(file: File, path: &Path, clock: Clock, next_seq: u64) -> Self {
        Self { file, path: path.to_owned(), clock, next_seq, line: Vec::new(), unsynced: false, broken: false }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes an event and syncs it to the disk; then it may be shown. Progress ([`Event::StepProgress`]) is written at
    /// once and synced with the next other event, because nothing is derived from it.
    ///
    /// The record is the one that a reader gets: a number that JSON can't hold, such as an optional NaN, is missing in
    /// it as it will be missing in a replay.
    ///
    /// # Errors
    /// When the event can't be stored or the disk refuses it. The journal then takes no further event.
    pub fn append(&mut self, event: Event) -> Result<Record, JournalError> {
        if self.broken {
            return Err(JournalError::Broken { path: self.path.clone() });
        }
        let progress = matches!(event, Event::StepProgress { .. });
        let record = Record { seq: self.next_seq, at_ns: (self.clock)(), event };
        self.line.clear();
        let refused = |why: String| JournalError::Unstorable { path: self.path.clone(), seq: record.seq, why };
        // Nothing has been written yet: the journal stays usable after an event that it can't hold.
        serde_json::to_writer(&mut self.line, &record).map_err(|error| refused(error.to_string()))?;
        if self.line.len() as u64 >= MAX_LINE_BYTES {
            return Err(refused(format!("it needs {} bytes, a line holds {MAX_LINE_BYTES}", self.line.len())));
        }
        let record: Record = serde_json::from_slice(&self.line)
            .map_err(|error| refused(format!("it could not be read back: {error}")))?;
        self.line.push(b'\n');
        let written = self.file.write_all(&self.line).map_err(|error| JournalError::io(&self.path, "write to", error));
        let synced = written.and_then(|()| if progress { Ok(()) } else { self.sync_data() });
        // Whatever part of the line is there now, another line after it would be unreadable or, after a failed sync,
        // a promise that nobody can keep.
        self.broken = synced.is_err();
        synced?;
        self.unsynced = progress;
        self.next_seq += 1;
        Ok(record)
    }

    /// Syncs what was written and not yet synced.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub fn sync(&mut self) -> Result<(), JournalError> {
        if self.unsynced {
            let synced = self.sync_data();
            self.broken |= synced.is_err();
            synced?;
            self.unsynced = false;
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<(), JournalError> {
        self.file.sync_data().map_err(|error| JournalError::io(&self.path, "sync", error))
    }
}

fn lock(file: &File, path: &Path) -> Result<(), JournalError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(JournalError::Held { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(JournalError::io(path, "lock", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RunEnd;

    /// `/dev/full` refuses every write as a full disk does.
    #[test]
    fn a_full_disk_ends_the_journal_and_is_named() {
        let path = Path::new("/dev/full");
        let file = OpenOptions::new().write(true).open(path).expect("the device of every Linux");
        let mut journal = Journal::new(file, path, wall_clock, 0);
        let told = journal.append(Event::RunEnded { end: RunEnd::Completed }).expect_err("no space").to_string();
        assert!(
            told.contains("/dev/full") && told.contains("No space left") && told.contains("free some space"),
            "{told}"
        );
        let told = journal.append(Event::RunEnded { end: RunEnd::Completed }).expect_err("broken").to_string();
        assert!(told.contains("takes no further event"), "{told}");
    }
}
