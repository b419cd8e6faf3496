//! What this host has: the facts that a study's machines are checked against. Read from `/proc` and `/sys`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use analysis::{CoreKind, FileSystem, Host, Listening};
use journal::Environment;
use plan::CpuSet;

/// The host that this process runs on. Who listens where is asked only where a run is near: it takes a walk over all
/// processes.
pub fn read(with_listeners: bool) -> Host {
    let online = online();
    let mut smt = BTreeSet::new();
    let mut nodes = BTreeSet::new();
    for &cpu in online.cpus() {
        let base = format!("/sys/devices/system/cpu/cpu{cpu}");
        if let Some(set) = cpu_list(&format!("{base}/topology/thread_siblings_list"))
            && set.len() > 1
        {
            smt.insert(set);
        }
    }
    if let Ok(entries) = fs::read_dir("/sys/devices/system/node") {
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with("node")
                && let Some(set) = cpu_list(&entry.path().join("cpulist").to_string_lossy())
            {
                nodes.insert(set);
            }
        }
    }
    Host {
        name: String::new(),
        kinds: kinds(&online),
        cpus: online,
        siblings: smt.into_iter().collect(),
        nodes: nodes.into_iter().collect(),
        memory_bytes: memory_bytes(),
        disks: disks(),
        open_files: open_files(),
        ephemeral_ports: ephemeral_ports(),
        listening: if with_listeners { listening() } else { Vec::new() },
    }
}

/// The host that a file describes, as `exp doctor --describe` writes it.
///
/// # Errors
/// A sentence, when the file can't be read or describes no host.
pub fn described(path: &Path) -> Result<Host, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{} can't be read: {error}", path.display()))?;
    let mut host: Host =
        serde_json::from_str(&text).map_err(|error| format!("{} describes no host: {error}", path.display()))?;
    if host.cpus.is_empty() {
        return Err(format!("{} describes a host without CPUs", path.display()));
    }
    if host.name.is_empty() {
        host.name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    }
    Ok(host)
}

/// This host as JSON, to be carried to where studies are written.
///
/// # Errors
/// When it can't be written as JSON.
pub fn describe() -> Result<String, serde_json::Error> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    let host = Host { name, ..read(true) };
    serde_json::to_string_pretty(&host).map(|text| text + "\n")
}

/// Kinds of cores: what the kernel counts apart on hybrid x86, and by their capacity elsewhere. Empty where all are alike.
fn kinds(online: &CpuSet) -> Vec<CoreKind> {
    let hybrid: Vec<CoreKind> =
        [("performance", "cpu_core"), ("efficiency", "cpu_atom"), ("low power", "cpu_lowpower")]
            .into_iter()
            .filter_map(|(name, device)| {
                let cpus = cpu_list(&format!("/sys/devices/{device}/cpus"))?.shared_with(online);
                (!cpus.is_empty()).then(|| CoreKind { name: name.to_owned(), cpus })
            })
            .collect();
    if hybrid.len() > 1 {
        return hybrid;
    }
    let mut capacities: Vec<(u64, Vec<u32>)> = Vec::new();
    for &cpu in online.cpus() {
        let read = fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity")).ok();
        let Some(capacity) = read.and_then(|text| text.trim().parse().ok()) else { return Vec::new() };
        match capacities.iter_mut().find(|(known, _)| *known == capacity) {
            Some((_, cpus)) => cpus.push(cpu),
            None => capacities.push((capacity, vec![cpu])),
        }
    }
    if capacities.len() < 2 {
        return Vec::new();
    }
    capacities.sort_by_key(|(capacity, _)| std::cmp::Reverse(*capacity));
    capacities
        .into_iter()
        .map(|(capacity, cpus)| CoreKind { name: format!("capacity {capacity}"), cpus: CpuSet::new(cpus) })
        .collect()
}

/// Where containers and the databases of processes lie, each file system once.
fn disks() -> Vec<FileSystem> {
    let mut seen = BTreeSet::new();
    let docker = Path::new("/var/lib/docker").to_owned();
    [docker, engine::postgres::default_scratch()]
        .into_iter()
        .filter_map(|path| {
            let device = std::os::unix::fs::MetadataExt::dev(&fs::metadata(&path).ok()?);
            let room = rustix::fs::statvfs(&path).ok()?;
            let free_bytes = room.f_bavail.saturating_mul(room.f_frsize);
            seen.insert(device).then(|| FileSystem { path: path.display().to_string(), free_bytes })
        })
        .collect()
}

/// Ports that somebody listens on, with the holder.
fn listening() -> Vec<Listening> {
    engine::port::listening_ports()
        .into_iter()
        .map(|port| Listening {
            port,
            holder: match engine::port::holder(port) {
                Some(holder) => format!("{} (pid {})", holder.command, holder.pid),
                None => "a process that can't be seen".to_owned(),
            },
        })
        .collect()
}

/// CPUs that are online and that this process may use.
pub fn online() -> CpuSet {
    let online = cpu_list("/sys/devices/system/cpu/online").unwrap_or_default();
    let allowed = fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            line.trim().parse::<CpuSet>().ok()
        })
        .unwrap_or_else(|| online.clone());
    if online.is_empty() { allowed } else { online.shared_with(&allowed) }
}

fn cpu_list(path: &str) -> Option<CpuSet> {
    fs::read_to_string(Path::new(path)).ok()?.trim().parse().ok()
}

fn memory_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?
        .trim()
        .trim_end_matches(" kB")
        .trim()
        .parse()
        .ok()?;
    Some(kib * 1024)
}

fn open_files() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    line.split_whitespace().nth(4)?.parse().ok()
}

fn ephemeral_ports() -> Option<(u16, u16)> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut numbers = range.split_whitespace().map(str::parse::<u16>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The environment of a run, as far as the host tells it.
pub fn environment(backend: &str, docker: Option<String>, postgres: Option<String>) -> Environment {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim().to_owned()))
        .unwrap_or_else(|| "unknown".to_owned());
    let virtual_machine = cpuinfo.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned());
    let mut notes = Vec::new();
    let governor = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    match governor.as_deref().map(str::trim) {
        Ok("performance") => {}
        Ok(governor) => notes.push(format!("the frequency governor is `{governor}`: the CPUs change their speed")),
        Err(_) => notes.push("the host does not tell the CPUs' frequency".to_owned()),
    }
    if online().cpus().iter().any(|cpu| {
        cpu_list(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
            .is_some_and(|set| set.len() > 1)
    }) {
        notes.push("the CPUs are hardware threads that share cores".to_owned());
    }
    Environment {
        exp: env!("CARGO_PKG_VERSION").to_owned(),
        backend: backend.to_owned(),
        docker,
        kernel,
        cpu,
        cpus: online().to_string(),
        virtual_machine,
        memory_bytes: memory_bytes().unwrap_or(0),
        postgres,
        cgroup: cgroup_version(),
        notes,
    }
}

/// 2 where the unified hierarchy is mounted, 1 where the separate ones are, 0 where none is.
fn cgroup_version() -> u8 {
    if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        2
    } else if Path::new("/sys/fs/cgroup/cpuacct").exists() || Path::new("/sys/fs/cgroup/cpu,cpuacct").exists() {
        1
    } else {
        0
    }
}
