//! The lock that keeps two runs off one host: they would measure each other.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Held while a run lasts; the kernel releases it whatever the ending.
#[derive(Debug)]
pub struct HostLock {
    _file: File,
}

/// Places for the lock file, the first that can be opened counts. All users of a host must meet at the same file.
const PLACES: [&str; 2] = ["/run/lock/exp.lock", "/tmp/exp.lock"];

impl HostLock {
    /// Takes the lock, and writes into it who holds it.
    ///
    /// # Errors
    /// A sentence that names the holder, or says why no lock file can be opened.
    pub fn take(holder: &str) -> Result<Self, String> {
        let mut last = String::new();
        for place in PLACES {
            match Self::take_at(Path::new(place), holder) {
                Ok(lock) => return Ok(lock),
                Err(Refusal::Held(who)) => {
                    return Err(format!("another run holds this host: {who}; two runs would measure each other"));
                }
                Err(Refusal::Unusable(why)) => last = why,
            }
        }
        Err(format!("no lock file can be opened: {last}"))
    }

    fn take_at(path: &Path, holder: &str) -> Result<Self, Refusal> {
        let unusable = |error: std::io::Error| Refusal::Unusable(format!("{}: {error}", path.display()));
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o666)
            .open(path)
            .map_err(unusable)?;
        if !lock(&file) {
            let mut who = String::new();
            return match file.read_to_string(&mut who) {
                Ok(_) if !who.trim().is_empty() => Err(Refusal::Held(who.trim().to_owned())),
                _ => Err(Refusal::Held("a run that has not said its name yet".to_owned())),
            };
        }
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{holder}")).map_err(unusable)?;
        Ok(Self { _file: file })
    }
}

enum Refusal {
    Held(String),
    Unusable(String),
}

/// Tries to lock a file for this process alone; `false` when somebody else holds it.
pub fn lock(file: &File) -> bool {
    // SAFETY: `flock` takes a descriptor that `file` keeps open and touches no memory of ours.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_is_told_who_holds_the_host() {
        let place = std::env::temp_dir().join(format!("exp-lock-test-{}", std::process::id()));
        let first = HostLock::take_at(&place, "run a, pid 1").unwrap_or_else(|_| panic!("the lock is free"));
        match HostLock::take_at(&place, "run b, pid 2") {
            Err(Refusal::Held(who)) => assert_eq!(who, "run a, pid 1"),
            _ => panic!("the lock was given twice"),
        }
        drop(first);
        assert!(HostLock::take_at(&place, "run b, pid 2").is_ok());
        std::fs::remove_file(place).expect("the lock file is there");
    }
}
