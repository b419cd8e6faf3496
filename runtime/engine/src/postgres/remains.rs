//! Shared memory of a server that was killed: it can't remove it itself, and memory would stay taken until a restart.

use std::fs;
use std::path::{Path, PathBuf};

/// What the control file of PostgreSQL's dynamic shared memory begins with.
const CONTROL_MAGIC: u32 = 0x9a50_3d32;
/// Where its items begin, and the length of one, in PostgreSQL 14 and later (`dsm_control_header`).
const CONTROL_ITEMS: usize = 16;
const CONTROL_ITEM: usize = 40;

/// What a running server holds that outlives its processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Remains {
    /// The System V segment that guards the data directory.
    segment: Option<i32>,
    /// Files in `/dev/shm`.
    files: Vec<PathBuf>,
}

impl Remains {
    /// Looks a server over, once it runs. What can't be read is not known, and then not removed.
    pub(super) fn of(pid: u32, data: &Path) -> Self {
        let segment = fs::read_to_string(data.join("postmaster.pid")).ok().and_then(|text| segment(&text));
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        Self { segment, files: shared_files(&maps) }
    }

    /// Removes what is still there. Only for a server whose processes have ended.
    pub(super) fn remove(&self) {
        if let Some(segment) = self.segment {
            // SAFETY: the structure lives; the segment is removed only where no process is attached, and the kernel
            // refuses what is not ours. What can't be removed (any more) needs no removing.
            unsafe {
                let mut facts: libc::shmid_ds = std::mem::zeroed();
                if libc::shmctl(segment, libc::IPC_STAT, &mut facts) == 0 && facts.shm_nattch == 0 {
                    libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut());
                }
            }
        }
        for file in &self.files {
            // The control file lists what the sessions made later.
            let handles = fs::read(file).map(|bytes| listed(&bytes)).unwrap_or_default();
            for handle in handles {
                drop(fs::remove_file(file.with_extension(handle.to_string())));
            }
            drop(fs::remove_file(file));
        }
    }
}

/// The segment's number: the second one of line 7 of `postmaster.pid`.
fn segment(pid_file: &str) -> Option<i32> {
    pid_file.lines().nth(6)?.split_whitespace().nth(1)?.parse().ok()
}

/// The handles that a control file lists: each is the number in a file's name. A file of another kind lists none.
fn listed(control: &[u8]) -> Vec<u32> {
    let word = |at: usize| control.get(at..at + 4).and_then(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?)));
    if word(0) != Some(CONTROL_MAGIC) {
        return Vec::new();
    }
    let items = word(4).unwrap_or(0) as usize;
    (0..items).map_while(|item| word(CONTROL_ITEMS + item * CONTROL_ITEM)).filter(|&handle| handle != 0).collect()
}

/// PostgreSQL's files of shared memory among the mappings of a process.
fn shared_files(maps: &str) -> Vec<PathBuf> {
    let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.starts_with("/dev/shm/PostgreSQL.")).map(PathBuf::from).collect();
    files.dedup();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_postgresql_and_the_kernel_write() {
        let pid_file = "4242\n/var/tmp/data\n1900000000\n5432\n/var/tmp\n127.0.0.1\n  1001505     65551\nready   \n";
        assert_eq!(segment(pid_file), Some(65_551));
        assert_eq!(segment("4242\n/var/tmp/data\n"), None);
        let maps = "7f00-7f01 rw-s 00000000 00:18 12 /dev/shm/PostgreSQL.3077314984\n\
                    7f01-7f02 rw-s 00000000 00:18 12 /dev/shm/PostgreSQL.3077314984\n\
                    7f02-7f03 rw-s 00000000 00:01 65551 /SYSV000f6021 (deleted)\n\
                    7f03-7f04 r--p 00000000 08:01 99 /usr/lib/postgresql/15/bin/postgres\n\
                    7f04-7f05 rw-p 00000000 00:00 0\n";
        assert_eq!(shared_files(maps), [PathBuf::from("/dev/shm/PostgreSQL.3077314984")]);

        let mut control = [0u8; 200];
        for (at, value) in [(0, CONTROL_MAGIC), (4, 2), (8, 100), (16, 43_599_022), (20, 1), (56, 7), (96, 9)] {
            control[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
        }
        assert_eq!(listed(&control), [43_599_022, 7]);
        assert_eq!(listed(&control[..50]), [43_599_022], "a file that was cut off");
        control[0] = 0;
        assert_eq!(listed(&control), [0u32; 0], "not a control file");
    }
}
