//! Reading a journal: record by record, in memory that does not grow with the journal.
//!
//! Every line must be as it was written: JSON of a known event, numbered without gaps, the first one telling the
//! format's version. The one exception is an unfinished last line, which a killed run leaves: it was shown to nobody.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::JOURNAL_VERSION;
use crate::event::{Event, Record};

/// The longest line. A repetition's facts with all histograms need some hundred KiB.
pub const MAX_LINE_BYTES: u64 = 64 << 20;

/// What went wrong with a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system refused something.
    #[error("can't {doing} the journal {}: {error}{}", path.display(), advice(error))]
    Io {
        /// The journal.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// The operating system's answer.
        error: io::Error,
    },
    /// An earlier write failed, so nothing more is written.
    #[error("the journal {} takes no further event, because an earlier write to it failed; run `exp run` again to go on from what was written", path.display())]
    Broken {
        /// The journal.
        path: PathBuf,
    },
    /// Another process writes this journal.
    #[error("another run is writing the journal {}; wait until it ends, or end it", path.display())]
    Held {
        /// The journal.
        path: PathBuf,
    },
    /// An event that can't be stored.
    #[error("event {seq} can't be stored in the journal {}: {why}", path.display())]
    Unstorable {
        /// The journal.
        path: PathBuf,
        /// The number that the event would have had.
        seq: u64,
        /// Why.
        why: String,
    },
    /// No record at all.
    #[error("the journal {} holds no record: the run ended before its first event was written", path.display())]
    Empty {
        /// The journal.
        path: PathBuf,
    },
    /// A line is not as it was written.
    #[error("line {line} of the journal {} {why}; what follows can't be trusted, so nothing is derived from this journal", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it, as the rest of a sentence that starts with the line.
        why: String,
    },
    /// Another major version of the format.
    #[error("the journal {} has format {found}; this exp reads {}.x. Read it with the exp that wrote it ({written_by})", path.display(), major(JOURNAL_VERSION))]
    Version {
        /// The journal.
        path: PathBuf,
        /// Its version.
        found: String,
        /// What wrote it: `exp 0.4.0`.
        written_by: String,
    },
}

impl JournalError {
    pub(crate) fn io(path: &Path, doing: &'static str, error: io::Error) -> Self {
        Self::Io { path: path.to_owned(), doing, error }
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space and run `exp run` again: it goes on from what was written"
        }
        io::ErrorKind::AlreadyExists => "; a journal is never overwritten",
        io::ErrorKind::NotFound => "; check the path of the run directory",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; give this user write access to the run directory"
        }
        _ => "",
    }
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or(version)
}

/// An unfinished last line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// Its line number, from 1.
    pub line: u64,
    /// Its length, bytes.
    pub bytes: u64,
}

/// Opens a journal for reading.
///
/// # Errors
/// When the file can't be opened.
pub fn read(path: &Path) -> Result<Reader, JournalError> {
    let file = File::open(path).map_err(|error| JournalError::io(path, "open", error))?;
    Ok(Reader {
        source: BufReader::with_capacity(256 * 1024, file),
        path: path.to_owned(),
        buffer: Vec::new(),
        lines: 0,
        whole_bytes: 0,
        torn: None,
        over: false,
    })
}

/// Yields the records of a journal in order. The first error is the last item.
#[derive(Debug)]
pub struct Reader {
    source: BufReader<File>,
    path: PathBuf,
    buffer: Vec<u8>,
    lines: u64,
    whole_bytes: u64,
    torn: Option<Torn>,
    over: bool,
}

impl Reader {
    /// The unfinished last line, once the reader has come to it.
    pub fn torn(&self) -> Option<&Torn> {
        self.torn.as_ref()
    }

    /// Bytes of the finished lines that were read so far.
    pub fn whole_bytes(&self) -> u64 {
        self.whole_bytes
    }

    fn record(&mut self) -> Result<Option<Record>, JournalError> {
        self.buffer.clear();
        let read = (&mut self.source)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut self.buffer)
            .map_err(|error| JournalError::io(&self.path, "read", error))? as u64;
        let line = self.lines + 1;
        if self.buffer.last() != Some(&b'\n') {
            if read == MAX_LINE_BYTES {
                return Err(self.damaged(line, format!("is longer than {MAX_LINE_BYTES} bytes")));
            }
            if read > 0 {
                self.torn = Some(Torn { line, bytes: read });
            }
            if self.lines == 0 {
                return Err(JournalError::Empty { path: self.path.clone() });
            }
            return Ok(None);
        }
        self.buffer.pop();
        if self.lines == 0 {
            self.check_version()?;
        }
        let record: Record = serde_json::from_slice(&self.buffer)
            .map_err(|error| self.damaged(line, format!("is not a record of this format ({error})")))?;
        if record.seq != self.lines {
            return Err(self.damaged(line, format!("has number {} where {} is due", record.seq, self.lines)));
        }
        if line == 1 && !matches!(record.event, Event::RunStarted { .. }) {
            return Err(self.damaged(line, "does not start a run, as the first line of a journal does".to_owned()));
        }
        self.lines = line;
        self.whole_bytes += read;
        Ok(Some(record))
    }

    /// Looks for the version before the record itself is read, because another version may hold anything else.
    fn check_version(&self) -> Result<(), JournalError> {
        let Ok(first) = serde_json::from_slice::<serde_json::Value>(&self.buffer) else {
            return Ok(());
        };
        let start = &first["event"]["run-started"];
        let Some(found) = start["journal"].as_str() else { return Ok(()) };
        if major(found) == major(JOURNAL_VERSION) {
            return Ok(());
        }
        let written_by = match start["environment"]["exp"].as_str() {
            Some(version) => format!("exp {version}"),
            None => "its version is not told".to_owned(),
        };
        Err(JournalError::Version { path: self.path.clone(), found: found.to_owned(), written_by })
    }

    fn damaged(&self, line: u64, why: String) -> JournalError {
        JournalError::Damaged { path: self.path.clone(), line, why }
    }
}

impl Iterator for Reader {
    type Item = Result<Record, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let record = self.record().transpose();
        self.over = !matches!(record, Some(Ok(_)));
        record
    }
}
