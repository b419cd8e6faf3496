//! Reads the whole machine: times per CPU, frequency, pressure.

use std::collections::BTreeMap;
use std::path::Path;

use journal::CpuTimes;
use plan::CpuSet;

use super::counters::Counter;
use super::locate;
use super::tree::TICK_NS;

/// Files of the machine, kept open.
#[derive(Debug)]
pub struct Reader {
    cpus: CpuSet,
    stat: Counter,
    pressure: Counter,
    all_tasks: Option<Counter>,
    frequency: BTreeMap<u32, Counter>,
}

/// One reading of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Times since boot of each CPU, by number; or why they could not be read.
    pub cpus: Result<BTreeMap<u32, CpuTimes>, String>,
    /// CPU time of all tasks since boot, ns.
    pub all_tasks_ns: Option<u64>,
    /// CPU pressure since boot, µs.
    pub pressure_some_us: Option<u64>,
    /// Frequencies, MHz.
    pub frequency_mhz: BTreeMap<u32, u64>,
}

impl Reader {
    /// Opens the files. Times and frequencies are told of `cpus`, and foreign CPU time of the whole machine.
    pub fn open(cpus: &CpuSet) -> Self {
        let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let frequency = cpus
            .cpus()
            .iter()
            .map(|cpu| (*cpu, format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq")))
            .filter(|(_, directory)| Path::new(directory).is_dir())
            .map(|(cpu, directory)| (cpu, Counter::open(Path::new(&directory), "scaling_cur_freq")))
            .collect();
        Self {
            cpus: cpus.clone(),
            stat: Counter::open(Path::new("/proc"), "stat"),
            pressure: Counter::open(Path::new("/proc/pressure"), "cpu"),
            all_tasks: locate::cpuacct_root(&mountinfo).map(|root| Counter::open(&root, "cpuacct.usage")),
            frequency,
        }
    }

    /// Reads everything now.
    pub fn read(&self) -> Reading {
        let stat = self.stat.read();
        // Precise where cgroup v1 counts every task; else from the ticks, which are samples of who ran.
        let precise = self.all_tasks.as_ref().and_then(|usage| usage.read().ok()?.trim().parse().ok());
        let all_tasks_ns = precise.or_else(|| {
            let (_, all) = cpu_times(stat.as_ref().ok()?).into_iter().find(|(cpu, _)| cpu.is_none())?;
            Some(all.busy * TICK_NS)
        });
        Reading {
            cpus: stat.map(|text| {
                cpu_times(&text)
                    .into_iter()
                    .filter_map(|(cpu, times)| Some((cpu?, times)))
                    .filter(|(cpu, _)| self.cpus.cpus().contains(cpu))
                    .collect()
            }),
            all_tasks_ns,
            pressure_some_us: self.pressure.read().ok().and_then(|text| pressure_total(&text)),
            frequency_mhz: self
                .frequency
                .iter()
                .filter_map(|(cpu, file)| Some((*cpu, file.read().ok()?.trim().parse::<u64>().ok()? / 1_000)))
                .collect(),
        }
    }
}

/// Times of each CPU between two readings; CPUs that either lacks, or whose times ran backwards, are left out.
pub fn between(start: &BTreeMap<u32, CpuTimes>, end: &BTreeMap<u32, CpuTimes>) -> BTreeMap<u32, CpuTimes> {
    end.iter()
        .filter_map(|(cpu, end)| {
            let start = start.get(cpu)?;
            let times = CpuTimes {
                busy: end.busy.checked_sub(start.busy)?,
                // The kernel's idle time is corrected now and then, and may run back by a tick.
                idle: end.idle.saturating_sub(start.idle),
                steal: end.steal.checked_sub(start.steal)?,
            };
            Some((*cpu, times))
        })
        .collect()
}

/// The `cpu` lines of `/proc/stat`: of each CPU, and of all together without a number.
fn cpu_times(stat: &str) -> Vec<(Option<u32>, CpuTimes)> {
    stat.lines()
        .filter_map(|line| {
            let mut fields = line.strip_prefix("cpu")?.split(' ');
            let cpu = match fields.next()? {
                "" => None,
                number => Some(number.parse().ok()?),
            };
            // user nice system idle iowait irq softirq steal; guest times after them are part of user and nice.
            let ticks: Vec<u64> =
                fields.filter(|field| !field.is_empty()).map_while(|field| field.parse().ok()).collect();
            let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks[..] else { return None };
            Some((cpu, CpuTimes { busy: user + nice + system + irq + softirq, idle: idle + iowait, steal }))
        })
        .collect()
}

/// The total of the `some` line of a pressure file.
fn pressure_total(text: &str) -> Option<u64> {
    text.lines().find(|line| line.starts_with("some "))?.rsplit_once("total=")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  30 2 12 200 4 1 1 7 9 0\ncpu0 10 1 4 100 2 1 1 3 9 0\ncpu12 20 1 8 100 2 0 0 4 0 0\nintr 5 cpu1\ncpufoo 1 2 3\n";

    #[test]
    fn times_are_read_per_cpu() {
        let expected = [
            (None, CpuTimes { busy: 46, idle: 204, steal: 7 }),
            (Some(0), CpuTimes { busy: 17, idle: 102, steal: 3 }),
            (Some(12), CpuTimes { busy: 29, idle: 102, steal: 4 }),
        ];
        assert_eq!(cpu_times(STAT), expected);
        assert_eq!(cpu_times("cpu0 1 2 3\n"), [], "a kernel without steal is not guessed at");
    }

    #[test]
    fn differences_leave_out_what_is_missing_or_ran_backwards() {
        let times = |busy, idle, steal| CpuTimes { busy, idle, steal };
        let start = BTreeMap::from([(0, times(10, 10, 1)), (1, times(10, 10, 1)), (2, times(10, 10, 1))]);
        let end = BTreeMap::from([(0, times(15, 9, 2)), (1, times(9, 20, 1)), (3, times(10, 10, 1))]);
        assert_eq!(between(&start, &end), BTreeMap::from([(0, times(5, 0, 1))]));
    }

    #[test]
    fn pressure_is_the_total_of_some() {
        let text =
            "some avg10=0.00 avg60=1.20 avg300=0.50 total=123456\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n";
        assert_eq!(pressure_total(text), Some(123_456));
        assert_eq!(pressure_total("full total=9\n"), None);
        assert_eq!(pressure_total(""), None);
    }

    #[test]
    fn this_machine_can_be_read() {
        let cpus = super::super::pin::allowed().expect("readable");
        let reading = Reader::open(&cpus).read();
        let times = reading.cpus.expect("/proc/stat");
        assert_eq!(times.keys().copied().collect::<Vec<_>>(), cpus.cpus());
        assert!(reading.all_tasks_ns.is_some_and(|ns| ns > 0));
    }
}
