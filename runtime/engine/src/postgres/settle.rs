//! Waiting until writeback has really settled, by counters and not by a sleep.
//!
//! A clone and its checkpoint leave work behind: pages that the kernel still holds dirty or is writing, WAL segments that
//! are being recycled. Within a window it would cost the service latency. First everything dirty is handed to the
//! disk at once (`sync`), because the kernel would otherwise start with it up to 30 s later, within the window. Then the
//! counters are read every 200 ms, and the host has settled when across one second
//! - PostgreSQL wrote no buffer: `pg_stat_bgwriter` (since version 17 `pg_stat_checkpointer` too) stands still,
//! - at most 1 MiB was under writeback in every sample (`nr_writeback` of `/proc/vmstat`),
//! - at most 32 MiB was dirty in every sample (`nr_dirty`), and
//! - at most 4 MiB went to the disks (`pgpgout`).
//!
//! The limits leave room for a host's logs, and none for a checkpoint (a clone is 140 MiB). The counters are those of
//! this host: for a server elsewhere nothing can be told, and it says so.

use std::time::{Duration, Instant};

use super::session::{Session, Trouble};
use super::{MAINTENANCE, QUICK, Server};
use crate::error::StepError;

/// Between two samples.
const PERIOD: Duration = Duration::from_millis(200);
/// Samples that are looked at together: one second.
const SAMPLES: usize = 6;
/// Most that may be under writeback, bytes.
const MAX_WRITEBACK: u64 = 1 << 20;
/// Most that may be dirty, bytes.
const MAX_DIRTY: u64 = 32 << 20;
/// Most that may go to the disks across the samples, bytes.
const MAX_WRITTEN: u64 = 4 << 20;

/// How settling went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettleFacts {
    /// Whether it settled in time.
    pub settled: bool,
    /// What still moved when the time was over; empty when it settled.
    pub why: String,
    /// How long it took.
    pub took: Duration,
    /// Dirty bytes of the host at the end.
    pub dirty_bytes: Option<u64>,
    /// Bytes of the host under writeback at the end.
    pub writeback_bytes: Option<u64>,
}

/// The counters at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    /// Buffers that PostgreSQL wrote so far.
    buffers: u64,
    /// Bytes that are dirty.
    dirty: u64,
    /// Bytes under writeback.
    writeback: u64,
    /// Bytes that went to the disks so far.
    written: u64,
}

/// Why the host has not settled across these samples; nothing when it has.
fn unsettled(samples: &[Sample]) -> Option<String> {
    let ([first, ..], [.., last]) = (samples, samples) else { return Some("no counter was read".to_owned()) };
    if samples.len() < SAMPLES {
        return Some(format!("the counters were read {} times, {SAMPLES} are needed", samples.len()));
    }
    let most = |value: fn(&Sample) -> u64| samples.iter().map(value).max().unwrap_or(u64::MAX);
    let (dirty, writeback) = (most(|sample| sample.dirty), most(|sample| sample.writeback));
    let written = last.written.saturating_sub(first.written);
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    if last.buffers != first.buffers {
        let buffers = last.buffers.abs_diff(first.buffers);
        Some(format!("PostgreSQL wrote {buffers} buffers within a second"))
    } else if writeback > MAX_WRITEBACK {
        Some(format!("{} were under writeback, at most {} may be", mib(writeback), mib(MAX_WRITEBACK)))
    } else if dirty > MAX_DIRTY {
        Some(format!("{} were dirty, at most {} may be", mib(dirty), mib(MAX_DIRTY)))
    } else if written > MAX_WRITTEN {
        Some(format!("{} went to the disks within a second, at most {} may", mib(written), mib(MAX_WRITTEN)))
    } else {
        None
    }
}

/// The kernel's part of a sample, from the text of `/proc/vmstat`.
fn kernel(vmstat: &str, page_bytes: u64) -> Result<(u64, u64, u64), String> {
    let value = |name: &str| {
        vmstat
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
            .ok_or_else(|| format!("/proc/vmstat has no `{name}`"))
    };
    // `pgpgout` counts KiB, the others pages.
    Ok((value("nr_dirty")? * page_bytes, value("nr_writeback")? * page_bytes, value("pgpgout")? * 1024))
}

impl Server {
    /// Waits until writeback has settled, at the longest this long. That it did not is told in the facts and no error:
    /// what it means for a repetition is judged elsewhere.
    ///
    /// # Errors
    /// When the server can't be asked.
    pub async fn settle(&self, within: Duration) -> Result<SettleFacts, StepError> {
        let begin = Instant::now();
        let what = || "whether PostgreSQL's writeback has settled could not be found out".to_owned();
        let session = self.session(MAINTENANCE, QUICK, what).await?;
        flush_dirty_pages(within).await;
        let mut samples: Vec<Sample> = Vec::new();
        let (settled, why) = loop {
            let sample = match self.sample(&session).await {
                Ok(Ok(sample)) => sample,
                Ok(Err(unreadable)) => break (false, unreadable),
                Err(trouble) => return Err(trouble.step(what(), "see whether the server still runs (its log tells)")),
            };
            samples.push(sample);
            let window = &samples[samples.len().saturating_sub(SAMPLES)..];
            match unsettled(window) {
                None => break (true, String::new()),
                Some(why) if begin.elapsed() + PERIOD > within => break (false, why),
                Some(_) => tokio::time::sleep(PERIOD).await,
            }
        };
        session.close().await;
        let last = samples.last();
        Ok(SettleFacts {
            settled,
            why,
            took: begin.elapsed(),
            dirty_bytes: last.map(|sample| sample.dirty),
            writeback_bytes: last.map(|sample| sample.writeback),
        })
    }

    /// One sample, or what of the host's counters can't be read.
    async fn sample(&self, session: &Session) -> Result<Result<Sample, String>, Trouble> {
        if !self.host.is_loopback() {
            return Ok(Err(format!("PostgreSQL runs on {}, whose writeback can't be read from here", self.host)));
        }
        let sql = if session.version()?.major >= 17 {
            "SELECT (SELECT buffers_written FROM pg_stat_checkpointer) + (SELECT buffers_clean FROM pg_stat_bgwriter)"
        } else {
            "SELECT buffers_checkpoint + buffers_clean + buffers_backend FROM pg_stat_bgwriter"
        };
        let buffers: i64 = session.one(sql, &[]).await?;
        let read = std::fs::read_to_string("/proc/vmstat")
            .map_err(|error| format!("/proc/vmstat can't be read: {error}"))
            .and_then(|vmstat| kernel(&vmstat, page_bytes()));
        Ok(read.map(|(dirty, writeback, written)| Sample {
            buffers: buffers.unsigned_abs(),
            dirty,
            writeback,
            written,
        }))
    }
}

fn page_bytes() -> u64 {
    // SAFETY: sysconf reads a constant of the system and has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

/// Has the kernel write what is dirty now, and waits for it at the longest this long.
async fn flush_dirty_pages(within: Duration) {
    let (done, flushed) = tokio::sync::oneshot::channel();
    // A thread of its own: `sync` can't be interrupted, and a runtime that ends would wait for its own threads.
    let spawned = std::thread::Builder::new().name("exp-sync".to_owned()).spawn(move || {
        // SAFETY: sync has no preconditions and touches no memory of ours.
        unsafe { libc::sync() };
        // Nobody waits any more where the limit has passed.
        let _late = done.send(());
    });
    // Without a thread the kernel writes in its own time, which the samples then show.
    if spawned.is_ok() {
        let _in_time = tokio::time::timeout(within, flushed).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn settled_is_what_stays_low_for_a_second() {
        let quiet = Sample { buffers: 9_000, dirty: 2 * MIB, writeback: 0, written: 500 * MIB };
        let with = |change: fn(usize, &mut Sample)| {
            let mut samples = [quiet; SAMPLES];
            samples.iter_mut().enumerate().for_each(|(n, sample)| change(n, sample));
            unsettled(&samples)
        };
        assert_eq!(with(|_, _| {}), None);
        assert_eq!(with(|n, s| s.dirty += n as u64 * MIB), None, "a host's logs");
        assert_eq!(with(|n, s| s.written += n as u64 * MIB / 2), None, "a host's logs");
        for (says, change) in [
            ("PostgreSQL wrote 1 buffers", (|n, s| s.buffers += u64::from(n == SAMPLES - 1)) as fn(usize, &mut Sample)),
            ("2.0 MiB were under writeback", |n, s| s.writeback += if n == 3 { 2 * MIB } else { 0 }),
            ("140.0 MiB were dirty", |_, s| s.dirty = 140 * MIB),
            ("5.0 MiB went to the disks", |n, s| s.written += n as u64 * MIB),
        ] {
            let told = with(change).expect(says);
            assert!(told.contains(says), "{told}");
        }
        assert!(unsettled(&[quiet; SAMPLES - 1]).is_some(), "too few samples are no second");
        assert!(unsettled(&[]).is_some(), "no data is not settled");
    }

    #[test]
    fn reads_the_kernel_or_says_what_is_missing() {
        let vmstat = "nr_dirty_threshold 9\nnr_dirty 31373\nnr_writeback_temp 4\nnr_writeback 28\npgpgout 7906628\n";
        assert_eq!(kernel(vmstat, 4096), Ok((31_373 * 4096, 28 * 4096, 7_906_628 * 1024)));
        for missing in ["nr_dirty", "nr_writeback", "pgpgout"] {
            let without = vmstat.replace(&format!("{missing} "), "other ");
            let told = kernel(&without, 4096).expect_err(missing);
            assert!(told.contains(missing), "{told}");
        }
        assert!(std::fs::read_to_string("/proc/vmstat").is_ok_and(|vmstat| kernel(&vmstat, page_bytes()).is_ok()));
    }
}
