//! The host as plain data, read by the caller: what a study is checked against before it runs. As JSON it travels from
//! the machine that will measure to the one where the study is written.

use std::fmt::Write as _;

use plan::CpuSet;
use serde::{Deserialize, Serialize};

/// What the host has. A figure that could not be read is `None` (or an empty list) and checks nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Host {
    /// What people call it; empty for the host that `exp` runs on.
    pub name: String,
    /// CPUs that are online and may be used.
    pub cpus: CpuSet,
    /// Sets of CPUs that are hardware threads of one core.
    pub siblings: Vec<CpuSet>,
    /// Kinds of cores, where the host has several: performance and efficiency cores.
    pub kinds: Vec<CoreKind>,
    /// CPUs of each NUMA node.
    pub nodes: Vec<CpuSet>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// File systems on which databases and containers may lie.
    pub disks: Vec<FileSystem>,
    /// Limit of open files of a process: the hard one, up to which a process may raise its own.
    pub open_files: Option<u64>,
    /// First and last ephemeral port.
    pub ephemeral_ports: Option<(u16, u16)>,
    /// Ports that something listens on.
    pub listening: Vec<Listening>,
}

/// Cores of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CoreKind {
    /// Such as `performance`.
    pub name: String,
    /// Its CPUs.
    pub cpus: CpuSet,
}

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FileSystem {
    /// A directory on it.
    pub path: String,
    /// Bytes that can still be written there.
    pub free_bytes: u64,
}

/// A port in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Listening {
    /// The TCP port.
    pub port: u16,
    /// Who holds it, for people: "nginx (pid 812)".
    pub holder: String,
}

impl Host {
    /// The host in a sentence: "this host", or "host `bench-1`".
    pub fn called(&self) -> String {
        if self.name.is_empty() { "this host".to_owned() } else { format!("host `{}`", self.name) }
    }

    /// What the CPUs are, in one line: "4 CPUs (0-3); hardware threads of one core: 0,2 1,3". Says only what is known.
    pub fn topology(&self) -> String {
        let mut text = match self.cpus.len() {
            1 => format!("1 CPU ({})", self.cpus),
            count => format!("{count} CPUs ({})", self.cpus),
        };
        // Of many sets the first ones and the last show the pattern.
        let lists = |sets: &[CpuSet]| {
            let all: Vec<String> = sets.iter().map(ToString::to_string).collect();
            match all.as_slice() {
                [first, second, third, .., last] if all.len() > 6 => format!("{first} {second} {third} … {last}"),
                _ => all.join(" "),
            }
        };
        let mut parts = Vec::new();
        let threads: Vec<CpuSet> = self.siblings.iter().filter(|core| core.len() > 1).cloned().collect();
        if !threads.is_empty() {
            parts.push(format!("hardware threads of one core: {}", lists(&threads)));
        }
        if self.kinds.len() > 1 {
            let kinds: Vec<String> = self.kinds.iter().map(|kind| format!("{} {}", kind.name, kind.cpus)).collect();
            parts.push(format!("kinds of cores: {}", kinds.join(", ")));
        }
        if self.nodes.len() > 1 {
            parts.push(format!("NUMA nodes: {}", lists(&self.nodes)));
        }
        if !parts.is_empty() {
            let _ = write!(text, "; {}", parts.join("; "));
        }
        text
    }

    /// The cores, as sets of the threads that share one, of which `cpus` holds more than one thread.
    pub fn whole_cores(&self, cpus: &CpuSet) -> Vec<CpuSet> {
        self.siblings.iter().map(|core| core.shared_with(cpus)).filter(|threads| threads.len() > 1).collect()
    }

    /// The kinds of cores that `cpus` lie on, with the CPUs of each.
    pub fn kinds_of(&self, cpus: &CpuSet) -> Vec<(&str, CpuSet)> {
        self.kinds
            .iter()
            .map(|kind| (kind.name.as_str(), kind.cpus.shared_with(cpus)))
            .filter(|(_, cpus)| !cpus.is_empty())
            .collect()
    }

    /// The NUMA nodes that `cpus` lie on.
    pub fn nodes_of(&self, cpus: &CpuSet) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&node| !self.nodes[node].shared_with(cpus).is_empty()).collect()
    }

    /// Ephemeral ports, how many and from where to where.
    pub fn ports(&self) -> Option<(u64, u16, u16)> {
        let (first, last) = self.ephemeral_ports?;
        (first <= last).then(|| (u64::from(last - first) + 1, first, last))
    }
}
