//! Reads CPU and memory counters of one role from where its backend keeps them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use journal::CounterReading;

use super::{clock, tree};
use crate::host::CounterSource;

/// Counters of one role, their files kept open.
#[derive(Debug)]
pub struct Reader {
    kind: Kind,
    memory_kind: tree::MemoryKind,
}

#[derive(Debug)]
enum Kind {
    V1 { usage: Counter, stat: Counter, memory: Counter },
    V2 { stat: Counter, memory: Counter },
    Processes { members: Vec<u32> },
}

impl Reader {
    /// Opens the files. One that can't be opened is told by every reading.
    pub fn open(source: &CounterSource) -> Self {
        let kind = match source {
            CounterSource::CgroupV1 { cpuacct, cpu, memory } => Kind::V1 {
                usage: Counter::open(cpuacct, "cpuacct.usage"),
                stat: Counter::open(cpu.as_ref().unwrap_or(cpuacct), "cpu.stat"),
                memory: Counter::open(memory, "memory.usage_in_bytes"),
            },
            CounterSource::CgroupV2 { group } => {
                Kind::V2 { stat: Counter::open(group, "cpu.stat"), memory: Counter::open(group, "memory.current") }
            }
            CounterSource::Processes { root } => Kind::Processes { members: vec![*root] },
        };
        Self { kind, memory_kind: tree::MemoryKind::Pss }
    }

    /// Where the counters are read, as [`journal::Counters::source`] names it; `proc (RSS)` says that PSS could not be
    /// read.
    pub fn source(&self) -> &'static str {
        match (&self.kind, self.memory_kind) {
            (Kind::V1 { .. }, _) => "cgroup v1",
            (Kind::V2 { .. }, _) => "cgroup v2",
            (Kind::Processes { .. }, tree::MemoryKind::Pss) => "proc",
            (Kind::Processes { .. }, tree::MemoryKind::Rss) => "proc (RSS)",
        }
    }

    /// Whether the counters are those of processes, so that [`Reader::prepare`] matters.
    pub fn is_of_processes(&self) -> bool {
        matches!(self.kind, Kind::Processes { .. })
    }

    /// Finds out which processes belong to the role, where that matters; now and then, and shortly before
    /// [`Reader::cpu`], which then takes microseconds.
    pub fn prepare(&mut self, snapshot: &tree::Snapshot) {
        if let Kind::Processes { members } = &mut self.kind
            && let Some(found) = members.first().and_then(|root| snapshot.members(*root).ok())
        {
            *members = found;
        }
    }

    /// CPU time and throttling now, without memory; an error names the file and the reason. Memory is read by
    /// [`Reader::memory`], since it can take far longer where it is summed over processes.
    pub fn cpu(&mut self) -> Result<CounterReading, String> {
        // The instant belongs to the counter: it is taken right before a file is read, which takes some microseconds.
        let at_ns = clock::monotonic_ns();
        let (cpu_ns, throttled_periods) = match &mut self.kind {
            Kind::V1 { usage, stat, .. } => {
                let text = usage.read()?;
                let ns = text.trim().parse::<u64>().map_err(|_| usage.not(text.trim(), "a number of nanoseconds"))?;
                (ns, stat.read().ok().and_then(|text| field(&text, "nr_throttled")))
            }
            Kind::V2 { stat, .. } => {
                let text = stat.read()?;
                let us = field(&text, "usage_usec").ok_or_else(|| stat.not(text.trim(), "a text with usage_usec"))?;
                (us * 1_000, field(&text, "nr_throttled"))
            }
            Kind::Processes { members } => (tree::cpu_ns(members)?, None),
        };
        Ok(CounterReading { at_ns, cpu_ns, throttled_periods, memory_bytes: None })
    }

    /// Memory now, bytes; an error names the file and the reason.
    pub fn memory(&mut self) -> Result<u64, String> {
        match &self.kind {
            Kind::V1 { memory, .. } | Kind::V2 { memory, .. } => {
                let text = memory.read()?;
                text.trim().parse().map_err(|_| memory.not(text.trim(), "a number of bytes"))
            }
            Kind::Processes { members } => {
                let (bytes, kind) = tree::memory_bytes(members)?;
                self.memory_kind = kind;
                Ok(bytes)
            }
        }
    }
}

/// A file that is opened once and read from its start again and again.
#[derive(Debug)]
pub struct Counter {
    path: PathBuf,
    file: Result<File, String>,
}

impl Counter {
    /// Opens a file of a directory.
    pub fn open(directory: &Path, name: &str) -> Self {
        let path = directory.join(name);
        let file = File::open(&path).map_err(|error| format!("{} can't be opened: {error}", path.display()));
        Self { path, file }
    }

    /// The file's text now.
    pub fn read(&self) -> Result<String, String> {
        let file = self.file.as_ref().map_err(Clone::clone)?;
        let failed = |why: &dyn std::fmt::Display| format!("{} can't be read: {why}", self.path.display());
        let mut bytes = vec![0; 4_096];
        let mut length = 0;
        loop {
            let read = file.read_at(&mut bytes[length..], length as u64).map_err(|error| failed(&error))?;
            length += read;
            if read == 0 {
                bytes.truncate(length);
                return String::from_utf8(bytes).map_err(|_| failed(&"it is not text"));
            }
            if length == bytes.len() {
                bytes.resize(length * 2, 0);
            }
        }
    }

    fn not(&self, text: &str, expected: &str) -> String {
        let start: String = text.chars().take(60).collect();
        format!("{} holds `{start}`, which is not {expected}", self.path.display())
    }
}

/// The value of a line `name value`.
pub fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with these files.
    fn directory(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let path = std::env::temp_dir().join(format!("exp-counters-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory for the test");
        for (file, text) in files {
            std::fs::write(path.join(file), text).expect("a file for the test");
        }
        path
    }

    #[test]
    fn readings_are_numbers_or_name_the_file() {
        const STAT: &str = "nr_periods 10\nnr_throttled 3\nthrottled_time 5\n";
        const STAT2: &str = "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnr_periods 1\nnr_throttled 2\n";
        struct Case {
            name: &'static str,
            version: u8,
            files: &'static [(&'static str, &'static str)],
            cpu: Result<(u64, Option<u64>), &'static str>,
            memory: Result<u64, &'static str>,
        }
        let cases = [
            Case {
                name: "v1",
                version: 1,
                files: &[("cpuacct.usage", "123\n"), ("cpu.stat", STAT), ("memory.usage_in_bytes", "456\n")],
                cpu: Ok((123, Some(3))),
                memory: Ok(456),
            },
            Case {
                name: "v1-no-quota",
                version: 1,
                files: &[("cpuacct.usage", "123\n"), ("memory.usage_in_bytes", "0\n")],
                cpu: Ok((123, None)),
                memory: Ok(0),
            },
            Case {
                name: "v1-missing",
                version: 1,
                files: &[("cpu.stat", STAT)],
                cpu: Err("cpuacct.usage can't be opened: No such file"),
                memory: Err("memory.usage_in_bytes can't be opened"),
            },
            Case {
                name: "v1-broken",
                version: 1,
                files: &[("cpuacct.usage", "x\n"), ("memory.usage_in_bytes", "max")],
                cpu: Err("holds `x`, which is not a number of nanoseconds"),
                memory: Err("holds `max`, which is not a number of bytes"),
            },
            Case {
                name: "v2",
                version: 2,
                files: &[("cpu.stat", STAT2), ("memory.current", "789\n")],
                cpu: Ok((1_500_000, Some(2))),
                memory: Ok(789),
            },
            Case {
                name: "v2-empty",
                version: 2,
                files: &[("cpu.stat", ""), ("memory.current", "")],
                cpu: Err("holds ``, which is not a text with usage_usec"),
                memory: Err("holds ``, which is not a number of bytes"),
            },
            Case {
                name: "v2-other",
                version: 2,
                files: &[("cpu.stat", "usage_usec_total 5\n")],
                cpu: Err("which is not a text with usage_usec"),
                memory: Err("memory.current can't be opened"),
            },
        ];
        for Case { name, version, files, cpu, memory } in cases {
            let path = directory(name, files);
            let mut reader = Reader::open(&match version {
                1 => CounterSource::CgroupV1 { cpuacct: path.clone(), cpu: None, memory: path.clone() },
                _ => CounterSource::CgroupV2 { group: path.clone() },
            });
            match (reader.cpu().map(|reading| (reading.cpu_ns, reading.throttled_periods)), cpu) {
                (Ok(read), Ok(expected)) => assert_eq!(read, expected, "{name}"),
                (Err(read), Err(expected)) => assert!(read.contains(expected), "{name}: {read}"),
                other => panic!("{name}: {other:?}"),
            }
            match (reader.memory(), memory) {
                (Ok(read), Ok(expected)) => assert_eq!(read, expected, "{name}"),
                (Err(read), Err(expected)) => assert!(read.contains(expected), "{name}: {read}"),
                other => panic!("{name}: {other:?}"),
            }
            std::fs::remove_dir_all(path).expect("the test's own directory");
        }
    }
}
