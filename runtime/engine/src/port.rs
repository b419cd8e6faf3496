//! TCP ports of this machine: whether one is free, and who holds it.
//!
//! A leftover server on a candidate's port would answer in the candidate's place, so no server is started before its
//! port is free.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};

use crate::error::StepError;

/// The process that listens on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

/// Whether a server can listen on 127.0.0.1 with this port; an environment failure that names the holder otherwise.
pub fn require_free(port: u16, wanted_by: &str) -> Result<(), StepError> {
    // A holder on every address, IPv6's too, keeps this one from us as well.
    let Err(error) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) else {
        return Ok(());
    };
    let what = format!("{wanted_by} can't listen on 127.0.0.1:{port}");
    Err(match holder(port) {
        Some(Holder { pid, command }) => StepError::environment(
            what,
            format!("process {pid} (`{command}`) listens there"),
            format!(
                "End that process (`kill {pid}`), or give {wanted_by} another port; `exp clean` ends what a run left behind."
            ),
        ),
        None => StepError::environment(
            what,
            format!("{error}; no process of this machine that can be seen listens there"),
            format!("Find the holder with `ss -ltnp sport = :{port}` as root, or give {wanted_by} another port."),
        ),
    })
}

/// A port of 127.0.0.1 that is free now. Nothing keeps it free until it is used.
pub fn free() -> Result<u16, StepError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| {
            StepError::environment(
                "no free TCP port on 127.0.0.1",
                error.to_string(),
                "Look at `ss -s` for what uses the machine's ports up.",
            )
        })
}

/// The process that listens on this port on any address, where the kernel lets us see it.
pub fn holder(port: u16) -> Option<Holder> {
    let inodes: Vec<u64> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|table| listening(&table, port))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    let targets: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let mut pids: Vec<u32> =
        fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    // The smallest number first: of a server with workers that is nearly always the one that started the others.
    pids.sort_unstable();
    pids.into_iter().find(|pid| holds(*pid, &targets)).map(|pid| Holder { pid, command: command_line(pid) })
}

/// The command line of a process, or its name in brackets as `ps` prints it, or `?`.
pub fn command_line(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&words).trim_end_matches('\0').replace('\0', " ");
    if !line.trim().is_empty() {
        return line.trim().to_owned();
    }
    fs::read_to_string(format!("/proc/{pid}/comm")).map_or_else(|_| "?".to_owned(), |name| format!("[{}]", name.trim()))
}

/// Every port that somebody listens on, in ascending order.
pub fn listening_ports() -> Vec<u16> {
    const LISTEN: &str = "0A";
    let mut ports: Vec<u16> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|table| {
            let port = |line: &str| {
                let mut fields = line.split_ascii_whitespace().skip(1);
                let local = fields.next()?.rsplit_once(':')?.1;
                (fields.nth(1)? == LISTEN).then(|| u16::from_str_radix(local, 16).ok()).flatten()
            };
            table.lines().skip(1).filter_map(port).collect::<Vec<u16>>()
        })
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

fn holds(pid: u32, targets: &[String]) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok())
        .any(|link| targets.iter().any(|target| link.as_os_str() == target.as_str()))
}

/// Inodes of the sockets that listen on a port, from the text of `/proc/net/tcp` or `tcp6`.
fn listening(table: &str, port: u16) -> Vec<u64> {
    const LISTEN: &str = "0A";
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let local = fields.get(1)?.rsplit_once(':')?.1;
            let matches = u16::from_str_radix(local, 16) == Ok(port) && *fields.get(3)? == LISTEN;
            matches.then(|| fields.get(9)?.parse().ok()).flatten()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listening_sockets_of_the_port_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0\n\
            1: 0100007F:1F90 0100007F:C000 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 20 4\n\
            2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0 100 0\n";
        assert_eq!(listening(table, 8080), [4711]);
        assert_eq!(listening(table, 22), [4713]);
        assert_eq!(listening(table, 80), Vec::<u64>::new());
        assert_eq!(listening("", 80), Vec::<u64>::new());
    }

    #[test]
    fn the_holder_of_a_port_is_named_and_a_free_port_is_free() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let error = require_free(port, "go").expect_err("held by this test");
        let pid = std::process::id();
        assert!(error.failure.why.contains(&format!("process {pid} (`")), "{error:?}");
        assert!(error.failure.why.contains(&command_line(pid)), "{error:?}");
        drop(listener);
        assert_eq!(require_free(port, "go"), Ok(()));
    }
}
