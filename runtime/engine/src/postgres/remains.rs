//! Shared memory of a server that was killed: it can't remove it itself, and memory would stay taken until a restart.

use std::fs;
use std::path::{Path, PathBuf};

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
            drop(fs::remove_file(file));
        }
    }
}

/// The segment's number: the second one of line 7 of `postmaster.pid`.
fn segment(pid_file: &str) -> Option<i32> {
    pid_file.lines().nth(6)?.split_whitespace().nth(1)?.parse().ok()
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
    }
}
