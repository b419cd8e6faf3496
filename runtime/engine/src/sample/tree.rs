//! A process and everything that descends from it: who belongs to it, its CPU time and its memory, from `/proc`.
//!
//! CPU time of a living process is read from its CPU clock (`clock_getcpuclockid`): nanoseconds, all threads, ended
//! threads included. CPU time of ended processes is in their parents' `cutime`/`cstime` once these have waited for them,
//! in ticks of 10 ms, so each parent can be off by two ticks. Not seen: a process that leaves the tree because its parent ended, unless
//! an ancestor adopts it (a server started by [`crate::process`] has such an ancestor); children of a parent that
//! ignores SIGCHLD, whose time the kernel drops.

use std::collections::BTreeMap;
use std::fs;

/// Nanoseconds of a clock tick: `USER_HZ` is 100 on every architecture that Linux runs a server on.
pub const TICK_NS: u64 = 10_000_000;

/// What `/proc/<pid>/stat` says of a process, as far as it concerns us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: u32,
    zombie: bool,
    /// CPU time of the process itself, ticks; for zombies, whose CPU clock is gone.
    own_ticks: u64,
    /// CPU time of ended children that were waited for, ticks.
    children_ticks: u64,
}

/// The processes of the machine and who started whom, at one moment. Taking it reads a file per process: some
/// milliseconds where there are hundreds.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    children: BTreeMap<u32, Vec<u32>>,
}

impl Snapshot {
    /// Looks at every process that can be seen.
    pub fn take() -> Result<Self, String> {
        let entries = fs::read_dir("/proc").map_err(|error| format!("/proc can't be read: {error}"))?;
        let mut children = BTreeMap::<u32, Vec<u32>>::new();
        for pid in entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
            if let Some(stat) = stat(pid) {
                children.entry(stat.parent).or_default().push(pid);
            }
        }
        Ok(Self { children })
    }

    /// A process and its descendants, parents before their children; an error when the process is gone.
    pub fn members(&self, root: u32) -> Result<Vec<u32>, String> {
        if stat(root).is_none() {
            return Err(gone(root));
        }
        let mut found = vec![root];
        let mut next = 0;
        while next < found.len() {
            let children = self.children.get(&found[next]).map_or(&[][..], Vec::as_slice);
            // A number that was used again while we looked could make a circle.
            let new: Vec<u32> = children.iter().copied().filter(|child| !found.contains(child)).collect();
            found.extend(new);
            next += 1;
        }
        Ok(found)
    }
}

/// The process and its descendants, parents before their children; an error when it is gone.
pub fn members(root: u32) -> Result<Vec<u32>, String> {
    Snapshot::take()?.members(root)
}

/// CPU time of these processes ([`members`] of a root) and of their ended children so far, in ns; or what could not be
/// read.
///
/// Processes that were started since the members were found are not counted before they end. A process that ended since
/// has left its time to its parent, which was read before it: then the members are found anew.
pub fn cpu_ns(members: &mut Vec<u32>) -> Result<u64, String> {
    let root = *members.first().ok_or("there is no process to read")?;
    for _ in 0..5 {
        if let Some(ns) = sum(members) {
            return Ok(ns);
        }
        *members = self::members(root)?;
    }
    Err(format!("the processes under {root} start and end too quickly for their CPU time to be read"))
}

/// `None` when one of them is gone.
fn sum(members: &[u32]) -> Option<u64> {
    let mut ns = 0;
    for &pid in members {
        let stat = stat(pid)?;
        let own = if stat.zombie { stat.own_ticks * TICK_NS } else { clock_ns(pid)? };
        ns += own + stat.children_ticks * TICK_NS;
    }
    Some(ns)
}

fn gone(pid: u32) -> String {
    format!("/proc/{pid}/stat can't be read: there is no such process")
}

/// How memory was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// Proportional set size: shared pages are divided among those who share them, so the sum counts them once.
    Pss,
    /// Resident set size of at least one process, where PSS may not be read: shared pages count for each process.
    Rss,
}

/// Memory of these processes ([`members`] of a root) now, in bytes. Those that ended since hold none; an error when the
/// root did.
pub fn memory_bytes(members: &[u32]) -> Result<(u64, MemoryKind), String> {
    let root = *members.first().ok_or("there is no process to read")?;
    if stat(root).is_none() {
        return Err(gone(root));
    }
    let (mut bytes, mut kind) = (0, MemoryKind::Pss);
    for &pid in members {
        if let Some(pss) = pss_bytes(pid) {
            bytes += pss;
        } else if let Some(rss) = rss_bytes(pid) {
            // Threads of the kernel and zombies have neither; both files then read as nothing or 0.
            if rss > 0 {
                bytes += rss;
                kind = MemoryKind::Rss;
            }
        }
    }
    Ok((bytes, kind))
}

fn pss_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1_024)
}

fn rss_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: no pointers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * u64::try_from(page).ok()?)
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The text of `/proc/<pid>/stat`. The name is in parentheses and may hold any character, so fields are counted from
/// the last closing one: state, ppid, …, utime (12th), stime, cutime, cstime.
fn parse_stat(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        zombie: matches!(*fields.first()?, "Z" | "X"),
        own_ticks: ticks(11)? + ticks(12)?,
        children_ticks: ticks(13)? + ticks(14)?,
    })
}

/// CPU time of a living process, all its threads, ended ones included.
fn clock_ns(pid: u32) -> Option<u64> {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls write to one variable each, which live.
    let read = unsafe {
        libc::clock_getcpuclockid(libc::pid_t::try_from(pid).ok()?, &mut clock) == 0
            && libc::clock_gettime(clock, &mut time) == 0
    };
    read.then_some(u64::try_from(time.tv_sec).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_is_no_trap() {
        let text = "42 (a) R 1 (b) S 7 42 42 0 -1 4194560 1 2 3 4 10 5 20 3 20 0 1 0 100 0 0\n";
        assert_eq!(parse_stat(text), Some(Stat { parent: 7, zombie: false, own_ticks: 15, children_ticks: 23 }));
        for broken in ["", "42 (a", "42 (a) S", "42 (a) S x 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "42 (a) S 1 2 3"] {
            assert_eq!(parse_stat(broken), None, "{broken}");
        }
    }

    /// Beyond the largest number that Linux gives a process.
    const NOBODY: u32 = 0x7fff_fff0;

    #[test]
    fn this_process_is_in_its_own_tree_and_has_memory() {
        let me = std::process::id();
        assert_eq!(members(me).expect("alive").first(), Some(&me));
        let (bytes, _) = memory_bytes(&[me]).expect("alive");
        assert!((100_000..100_000_000_000).contains(&bytes), "{bytes}");
        for read in [members(NOBODY).err(), cpu_ns(&mut vec![NOBODY]).err(), memory_bytes(&[NOBODY]).err()] {
            assert_eq!(read, Some(gone(NOBODY)));
        }
        assert!(cpu_ns(&mut Vec::new()).is_err() && memory_bytes(&[]).is_err());
    }

    #[test]
    fn cpu_time_is_precise_and_runs_forward() {
        let me = std::process::id();
        let mut tree = vec![me];
        let before = cpu_ns(&mut tree).expect("alive");
        let own = clock_ns(me).expect("alive");
        let mut x = 1u64;
        while clock_ns(me).expect("alive") < own + 30_000_000 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let spent = cpu_ns(&mut tree).expect("alive") - before;
        // Other tests of this program run beside this one, so there is no upper bound but common sense.
        assert!((30_000_000..20_000_000_000).contains(&spent), "{spent}");
    }
}
