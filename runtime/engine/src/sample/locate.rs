//! Finds the cgroup directories of a process: from `/proc/<pid>/cgroup` and `/proc/self/mountinfo`, for v1 and v2 and
//! whichever driver (cgroupfs or systemd) named the groups.

use std::path::{Path, PathBuf};

use crate::host::CounterSource;

/// Where the counters of a process' cgroup are, or why they can't be found. The process must have a group of its own:
/// the root group counts the whole machine.
pub fn of_process(pid: u32) -> Result<CounterSource, String> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path} can't be read: {error}"));
    locate(&read(&format!("/proc/{pid}/cgroup"))?, &read("/proc/self/mountinfo")?)
}

/// [`of_process`] on the texts of the two files.
///
/// Where v1 and v2 are mounted side by side (systemd's hybrid layout), the controllers are in v1, and so are the
/// counters.
pub fn locate(cgroup: &str, mountinfo: &str) -> Result<CounterSource, String> {
    let groups: Vec<Group> = cgroup.lines().filter_map(Group::parse).collect();
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
    let v1 = |controller: &str| -> Result<PathBuf, String> {
        let group = groups
            .iter()
            .find(|group| group.controllers.contains(&controller))
            .ok_or_else(|| format!("the process has no {controller} group"))?;
        let mount = mounts
            .iter()
            .find(|mount| mount.kind == "cgroup" && mount.options.contains(&controller))
            .ok_or_else(|| format!("no cgroup v1 hierarchy with {controller} is mounted"))?;
        mount.directory(group.path)
    };
    if groups.iter().any(|group| group.controllers.contains(&"cpuacct")) {
        let (cpuacct, memory) = (v1("cpuacct")?, v1("memory")?);
        let cpu = v1("cpu").ok().filter(|cpu| *cpu != cpuacct);
        return Ok(CounterSource::CgroupV1 { cpuacct, cpu, memory });
    }
    let group = groups
        .iter()
        .find(|group| group.controllers.is_empty())
        .ok_or("the process has neither a cgroup v1 cpuacct group nor a cgroup v2 group")?;
    let mount = mounts.iter().find(|mount| mount.kind == "cgroup2").ok_or("no cgroup v2 hierarchy is mounted")?;
    Ok(CounterSource::CgroupV2 { group: mount.directory(group.path)? })
}

/// The cgroup version of the machine: 1, 2, or 0 where no hierarchy is mounted.
pub fn version(mountinfo: &str) -> u8 {
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
    if mounts.iter().any(|mount| mount.kind == "cgroup" && mount.options.contains(&"cpuacct")) {
        1
    } else if mounts.iter().any(|mount| mount.kind == "cgroup2") {
        2
    } else {
        0
    }
}

/// The root of the v1 cpuacct hierarchy, whose `cpuacct.usage` counts every task of the machine to the nanosecond;
/// `None` where there is none or where only a part of the hierarchy is visible.
pub fn cpuacct_root(mountinfo: &str) -> Option<PathBuf> {
    mountinfo
        .lines()
        .filter_map(Mount::parse)
        .find(|mount| mount.kind == "cgroup" && mount.options.contains(&"cpuacct") && mount.root == "/")
        .map(|mount| PathBuf::from(mount.point))
}

/// A line of `/proc/<pid>/cgroup`: `4:memory:/docker/ab12`, or `0::/…` for v2.
struct Group<'a> {
    controllers: Vec<&'a str>,
    path: &'a str,
}

impl<'a> Group<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self { controllers: controllers.split(',').filter(|name| !name.is_empty()).collect(), path })
    }
}

/// A line of `/proc/self/mountinfo`, as far as it concerns us.
struct Mount<'a> {
    root: String,
    point: String,
    kind: &'a str,
    options: Vec<&'a str>,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        let mut fields = system.split(' ');
        let kind = fields.next()?;
        let options = fields.nth(1)?.split(',').collect();
        matches!(kind, "cgroup" | "cgroup2").then_some(Self { root, point, kind, options })
    }

    /// The directory of a group. Both the group's path and the mount's root are seen from the hierarchy's root (or from
    /// that of our cgroup namespace), so one has to lead to the other.
    fn directory(&self, group: &str) -> Result<PathBuf, String> {
        let within = Path::new(group).strip_prefix(&self.root).map_err(|_| {
            format!("the group {group} is outside of what is mounted on {} (which is {})", self.point, self.root)
        })?;
        if group == "/" {
            return Err(format!("the process is in the root group of {}, which counts the whole machine", self.point));
        }
        if within.components().any(|part| part == std::path::Component::ParentDir) {
            return Err(format!("the group {group} is outside of this cgroup namespace"));
        }
        Ok(Path::new(&self.point).join(within))
    }
}

/// The kernel writes space, tab, newline and backslash of a path as `\040`, `\011`, `\012`, `\134`.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        match rest.get(at + 1..at + 4).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(char::from(byte));
                rest = &rest[at + 4..];
            }
            None => {
                plain.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// cgroup v1, each controller mounted alone (cgroupfs driver, no systemd).
    const V1_APART: &str = "\
        31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
        33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    /// cgroup v1 as systemd mounts it: cpu and cpuacct together, a v2 hierarchy without controllers beside it.
    const V1_JOINED: &str = "\
        30 25 0:26 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw,nsdelegate\n\
        33 25 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:14 - cgroup cgroup rw,cpu,cpuacct\n\
        38 25 0:34 / /sys/fs/cgroup/memory rw,nosuid shared:19 - cgroup cgroup rw,memory\n";
    /// cgroup v2 alone.
    const V2: &str =
        "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n";
    /// A part of a v1 hierarchy, as a container sees it, with a space in a path.
    const V1_PART: &str = "\
        33 31 0:30 /docker/outer /sys/fs/cgroup/cpu\\040acct rw - cgroup cgroup rw,cpuacct\n\
        35 31 0:32 /docker/outer /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

    #[test]
    fn the_layouts_that_exist_are_found() {
        let v1 = |cpuacct: &str, cpu: Option<&str>, memory: &str| {
            Ok(CounterSource::CgroupV1 { cpuacct: cpuacct.into(), cpu: cpu.map(PathBuf::from), memory: memory.into() })
        };
        let v2 = |group: &str| Ok(CounterSource::CgroupV2 { group: group.into() });
        let cases: [(&str, &str, &str, Result<CounterSource, String>); 11] = [
            (
                "v1, controllers apart, cgroupfs driver",
                "4:memory:/docker/ab\n2:cpuacct:/docker/ab\n1:cpu:/docker/ab\n0::/\n",
                V1_APART,
                v1("/sys/fs/cgroup/cpuacct/docker/ab", Some("/sys/fs/cgroup/cpu/docker/ab"), "/sys/fs/cgroup/memory/docker/ab"),
            ),
            (
                "v1, joined, systemd driver",
                "7:memory:/system.slice/docker-ab.scope\n5:cpu,cpuacct:/system.slice/docker-ab.scope\n0::/system.slice/docker-ab.scope\n",
                V1_JOINED,
                v1(
                    "/sys/fs/cgroup/cpu,cpuacct/system.slice/docker-ab.scope",
                    None,
                    "/sys/fs/cgroup/memory/system.slice/docker-ab.scope",
                ),
            ),
            (
                "v1, controllers named in another order",
                "7:memory:/docker/ab\n5:cpuacct,cpu:/docker/ab\n",
                V1_JOINED,
                v1("/sys/fs/cgroup/cpu,cpuacct/docker/ab", None, "/sys/fs/cgroup/memory/docker/ab"),
            ),
            ("v2, systemd driver", "0::/system.slice/docker-ab.scope\n", V2, v2("/sys/fs/cgroup/system.slice/docker-ab.scope")),
            ("v2, cgroupfs driver", "0::/docker/ab\n", V2, v2("/sys/fs/cgroup/docker/ab")),
            (
                "a part of the hierarchy, seen from within a container",
                "4:memory:/docker/outer/docker/in\n2:cpuacct:/docker/outer/docker/in\n",
                V1_PART,
                v1("/sys/fs/cgroup/cpu acct/docker/in", None, "/sys/fs/cgroup/memory/docker/in"),
            ),
            (
                "outside of the visible part",
                "4:memory:/docker/other\n2:cpuacct:/docker/other\n",
                V1_PART,
                Err("the group /docker/other is outside of what is mounted on /sys/fs/cgroup/cpu acct (which is /docker/outer)".into()),
            ),
            (
                "outside of the namespace",
                "0::/../other\n",
                V2,
                Err("the group /../other is outside of this cgroup namespace".into()),
            ),
            (
                "the root group",
                "4:memory:/\n2:cpuacct:/\n",
                V1_APART,
                Err("the process is in the root group of /sys/fs/cgroup/cpuacct, which counts the whole machine".into()),
            ),
            (
                "no memory controller",
                "2:cpuacct:/docker/ab\n",
                V1_APART,
                Err("the process has no memory group".into()),
            ),
            ("nothing", "", "", Err("the process has neither a cgroup v1 cpuacct group nor a cgroup v2 group".into())),
        ];
        for (name, cgroup, mountinfo, expected) in cases {
            assert_eq!(locate(cgroup, mountinfo), expected, "{name}");
        }
    }

    #[test]
    fn the_version_and_the_root_are_told() {
        let cases = [
            (V1_APART, 1, Some("/sys/fs/cgroup/cpuacct")),
            (V1_JOINED, 1, Some("/sys/fs/cgroup/cpu,cpuacct")),
            (V2, 2, None),
            (V1_PART, 1, None),
            ("", 0, None),
        ];
        for (mountinfo, number, root) in cases {
            assert_eq!((version(mountinfo), cpuacct_root(mountinfo)), (number, root.map(PathBuf::from)), "{mountinfo}");
        }
    }
}
