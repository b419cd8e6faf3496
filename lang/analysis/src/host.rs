//! The host as plain data, read by the caller: what a study is checked against before it runs.

use plan::CpuSet;

/// What the host has. A figure that could not be read is `None` and checks nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Host {
    /// CPUs that are online.
    pub cpus: CpuSet,
    /// Sets of CPUs that are threads of one core.
    pub siblings: Vec<CpuSet>,
    /// CPUs of each NUMA node.
    pub nodes: Vec<CpuSet>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Limit of open files of a process.
    pub open_files: Option<u64>,
    /// First and last ephemeral port.
    pub ephemeral_ports: Option<(u16, u16)>,
    /// Ports that something listens on.
    pub listening: Vec<Listening>,
}

/// A port in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listening {
    /// The TCP port.
    pub port: u16,
    /// Who holds it, for people: "nginx (pid 812)".
    pub holder: String,
}
