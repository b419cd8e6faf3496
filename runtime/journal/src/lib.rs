//! The journal: the append-only record of every event of a run, and the one stream that everything shown is folded from.
//!
//! Events hold facts (what was counted, read, answered), never display choices and never a derived figure. An event is
//! written and synced before anybody is shown it; a journal that can't be written ends the run.

pub mod event;
pub mod facts;
pub mod id;
pub mod read;
pub mod write;

pub use event::{CaseOutcome, Environment, Event, Failure, Record, RunEnd, Stage, StepEnd};
pub use facts::{
    Census, CounterReading, Counters, CpuTimes, DatabaseFacts, Finding, GeneratorFacts, Histogram, HostFacts,
    LoadFacts, MemoryFacts, PaceFacts, PgbenchFacts, ProbeFacts, ReceiveFacts, RepetitionFacts, RowFacts, Stall,
    StartFacts, StreamFacts, ThreadFacts, ToldLatency, ToolFacts, TransportFacts, WindowFacts,
};
pub use id::{RepetitionId, RunId};
pub use read::{JournalError, Reader, Torn, read};
pub use write::{Clock, Journal, Reopened, wall_clock};

/// Version of the journal's format: `MAJOR.MINOR`. A reader refuses another major version and ignores unknown fields.
pub const JOURNAL_VERSION: &str = "1.0";
