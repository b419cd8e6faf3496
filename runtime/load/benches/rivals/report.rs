//! What the benchmark found, as Markdown: printed, and put into the generator's page.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::median;
use crate::schedule::{Kept, middle};
use crate::tools::{Cost, Tool};

/// One server with one number of connections.
pub struct Comparison {
    pub server: &'static str,
    pub connections: u32,
    pub rounds: usize,
    pub seconds: u64,
    pub costs: BTreeMap<Tool, Vec<Cost>>,
}

/// Memory and allocations of a short run and a long one.
pub struct Memory {
    pub seconds: [u64; 2],
    pub kib: [u64; 2],
    pub more_allocations: i64,
    pub more_requests: i64,
}

/// An open loop's runs at one rate.
pub struct Schedule {
    pub rate: f64,
    pub runs: Result<Vec<Kept>, String>,
}

/// Everything.
pub struct Report {
    pub isolated: bool,
    pub left_out: Vec<String>,
    pub comparisons: Vec<Comparison>,
    pub calls: Option<(u64, u64)>,
    pub memory: Option<Memory>,
    pub schedules: Vec<Schedule>,
}

impl Report {
    pub fn new(isolated: bool) -> Self {
        let (left_out, comparisons, schedules) = (Vec::new(), Vec::new(), Vec::new());
        Self { isolated, left_out, comparisons, calls: None, memory: None, schedules }
    }
}

/// A ratio of ours to another tool's, per round: median, smallest and largest.
struct Ratio {
    median: f64,
    low: f64,
    high: f64,
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} [{:.2}..{:.2}]", self.median, self.low, self.high)
    }
}

const CPU: fn(&Cost) -> f64 = |cost| cost.cpu_us / cost.requests as f64;
const USER: fn(&Cost) -> f64 = |cost| cost.user_us / cost.requests as f64;

impl Comparison {
    fn ratio(&self, to: Tool, of: fn(&Cost) -> f64) -> Option<Ratio> {
        self.ratio_of(Tool::Exp, to, of)
    }

    fn ratio_of(&self, tool: Tool, to: Tool, of: fn(&Cost) -> f64) -> Option<Ratio> {
        let (ours, theirs) = (self.costs.get(&tool)?, self.costs.get(&to)?);
        let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| of(ours) / of(theirs)).collect();
        let (low, high) = ratios.iter().fold((f64::MAX, 0f64), |(low, high), r| (low.min(*r), high.max(*r)));
        (!ratios.is_empty()).then(|| Ratio { median: median(&ratios), low, high })
    }

    fn peak_kib(&self) -> Option<u64> {
        self.costs.get(&Tool::Exp)?.iter().filter_map(|cost| cost.peak_kib).max()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Measured on {}, {}.", date(), machine())?;
        let tools = [Tool::Exp, Tool::ExpUring, Tool::Wrk, Tool::Oha].map(Tool::version);
        let place = if self.isolated { "in a network namespace of its own" } else { "beside the host's packet rules" };
        writeln!(f, "{}; server on one CPU, tool on the other, {place}.", tools.join(", "))?;
        for left_out in &self.left_out {
            writeln!(f, "Left out: {left_out}.")?;
        }
        for comparison in &self.comparisons {
            writeln!(
                f,
                "\n**{}, {} connections**, {} rounds of {} s, random order; medians, and of the per-round ratios median [smallest..largest]:\n",
                comparison.server, comparison.connections, comparison.rounds, comparison.seconds
            )?;
            writeln!(f, "| | requests/s | CPU µs/request | of it user | exp ÷ it, CPU | exp ÷ it, user |")?;
            writeln!(f, "|---|---|---|---|---|---|")?;
            for (tool, costs) in &comparison.costs {
                let each = |of: fn(&Cost) -> f64| median(&costs.iter().map(of).collect::<Vec<_>>());
                let ratio = |of| match comparison.ratio(*tool, of) {
                    Some(ratio) if *tool != Tool::Exp => ratio.to_string(),
                    _ => "–".to_owned(),
                };
                writeln!(
                    f,
                    "| {} | {:.0} | {:.2} | {:.2} | {} | {} |",
                    tool.name(),
                    each(|cost| cost.requests as f64 / cost.seconds),
                    each(CPU),
                    each(USER),
                    ratio(CPU),
                    ratio(USER)
                )?;
            }
            for to in [Tool::Wrk, Tool::Oha] {
                let ratio = |of| comparison.ratio_of(Tool::ExpUring, to, of);
                if let (Some(cpu), Some(user)) = (ratio(CPU), ratio(USER)) {
                    writeln!(f, "\n{} ÷ {}: CPU {cpu}, user {user}.", Tool::ExpUring.name(), to.name())?;
                }
            }
        }
        self.schedules(f)?;
        self.bars(f)
    }
}

impl Report {
    fn schedules(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n**Open loop**, 64 connections, against a server that polls and notes each arrival; medians of the runs:\n"
        )?;
        writeln!(
            f,
            "| rate | due / wanted | answered | rate error | own lateness p50 / p99 µs | at the server p50 / p99 µs | host's jitter p99 µs | busy | stalls |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|---|---|")?;
        for Schedule { rate, runs } in &self.schedules {
            let runs = match runs {
                Ok(runs) => runs,
                Err(why) => {
                    writeln!(f, "| {rate}/s | not measured: {why} | | | | | | | |")?;
                    continue;
                }
            };
            let sum = |of: fn(&Kept) -> u64| runs.iter().map(of).sum::<u64>();
            writeln!(
                f,
                "| {rate}/s | {} / {} | {} | {:+.4} % | {:.2} / {:.0} | {:.1} / {:.0} | {:.0} | {:.0} % | {} |",
                sum(|kept| kept.due),
                sum(|kept| kept.wanted),
                sum(|kept| kept.ok),
                middle(runs, |kept| kept.rate_error * 100.0),
                middle(runs, |kept| kept.own_p50_us),
                middle(runs, |kept| kept.own_p99_us),
                middle(runs, |kept| kept.server_p50_us),
                middle(runs, |kept| kept.server_p99_us),
                middle(runs, |kept| kept.jitter_p99_us),
                middle(runs, |kept| kept.busy * 100.0),
                runs.iter().map(|kept| kept.stalls).sum::<usize>()
            )?;
        }
        Ok(())
    }

    /// Each bar with what was measured; a bar that was not measured is not met.
    fn bars(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n| bar | measured | |\n|---|---|---|")?;
        let mut line = |what: &str, bar: String, found: Option<(String, bool)>| {
            let (found, met) = found.unwrap_or_else(|| ("not measured".into(), false));
            writeln!(f, "| {what} {bar} | {found} | {} |", if met { "met" } else { "**not met**" })
        };
        for (connections, wrk, oha) in [(64, 0.80, 0.55), (4_000, 0.70, 0.55)] {
            for server in ["no-op server", "nginx"] {
                let comparison = self.comparisons.iter().find(|c| c.connections == connections && c.server == server);
                let mut bars = vec![("CPU per request", Tool::Wrk, CPU, wrk), ("CPU per request", Tool::Oha, CPU, oha)];
                if connections == 64 {
                    bars.push(("user-space part", Tool::Wrk, USER, 0.5));
                }
                for (what, tool, of, bar) in bars {
                    let ratio = comparison.and_then(|comparison| comparison.ratio(tool, of));
                    line(
                        &format!("{connections} connections, {server}: {what}"),
                        format!("≤ {bar:.2} × {}", tool.name()),
                        ratio.map(|ratio| (ratio.to_string(), ratio.median <= bar)),
                    )?;
                }
            }
        }
        line(
            "system calls per request",
            "≤ 2.15".into(),
            self.calls.map(|(calls, requests)| {
                let each = calls as f64 / requests as f64;
                (format!("{each:.3} ({calls} for {requests})"), each <= 2.15)
            }),
        )?;
        let memory = self.memory.as_ref();
        line(
            "heap allocations per request",
            "0".into(),
            memory.map(|memory| {
                let (more, requests) = (memory.more_allocations, memory.more_requests);
                // A histogram with more buckets filled in is longer when it is written down: some allocations, however many requests.
                (
                    format!("{more} more for {requests} more requests"),
                    requests > 10_000 && more < 100 && more < requests / 10_000,
                )
            }),
        )?;
        line(
            "memory independent of the requests:",
            "within 256 KiB".into(),
            memory.map(|memory| {
                let [short, long] = memory.kib;
                (
                    format!("{short} KiB after {} s, {long} KiB after {} s", memory.seconds[0], memory.seconds[1]),
                    long <= short + 256,
                )
            }),
        )?;
        let many = self.comparisons.iter().filter(|comparison| comparison.connections == 4_000);
        let most = many.filter_map(Comparison::peak_kib).max();
        line(
            "memory with 4,000 connections",
            "≤ 8 MB".into(),
            most.map(|kib| (format!("{:.1} MB", kib as f64 * 1_024.0 / 1e6), kib * 1_024 <= 8_000_000)),
        )?;
        for Schedule { rate, runs } in &self.schedules {
            let runs = runs.as_ref().ok().filter(|runs| !runs.is_empty());
            line(
                &format!("{rate}/s:"),
                "count exact".into(),
                runs.map(|runs| {
                    let exact = runs.iter().all(|kept| kept.due == kept.wanted && kept.ok == kept.due);
                    (format!("{} runs", runs.len()), exact)
                }),
            )?;
            line(
                &format!("{rate}/s:"),
                "rate within 0.05 %".into(),
                runs.map(|runs| {
                    let error = middle(runs, |kept| kept.rate_error.abs() * 100.0);
                    (format!("{error:.4} %"), error <= 0.05)
                }),
            )?;
            line(
                &format!("{rate}/s: own send lateness p50"),
                "≤ 1 µs".into(),
                runs.map(|runs| {
                    let own = middle(runs, |kept| kept.own_p50_us);
                    (format!("{own:.2} µs"), own <= 1.0)
                }),
            )?;
            line(
                &format!("{rate}/s: at the server p50"),
                "≤ 15 µs".into(),
                runs.map(|runs| {
                    let late = middle(runs, |kept| kept.server_p50_us);
                    (format!("{late:.1} µs"), late <= 15.0)
                }),
            )?;
            line(
                &format!("{rate}/s: at the server p99"),
                "≤ 3 × the host's jitter".into(),
                runs.map(|runs| {
                    let ratio = middle(runs, |kept| kept.server_p99_us / kept.jitter_p99_us);
                    (format!("{ratio:.2} ×"), ratio <= 3.0)
                }),
            )?;
        }
        Ok(())
    }
}

fn date() -> String {
    let said = Command::new("date")
        .arg("+%F")
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    said.ok().filter(|date| !date.is_empty()).unwrap_or_else(|| "an unknown day".into())
}

/// The machine's class, not its name: CPUs, model, kernel, virtual or not.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model =
        info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("CPU", |(_, name)| name);
    let virtual_machine = if info.contains(" hypervisor") { ", virtual" } else { "" };
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let release = read("/proc/sys/kernel/osrelease");
    let kernel: Vec<&str> = release.trim().split(['.', '-']).take(2).collect();
    format!("{cpus} CPUs ({}{virtual_machine}), Linux {}", model.trim(), kernel.join("."))
}

const BEGIN: &str = "<!-- rivals: begin (written by `cargo bench -p load --bench rivals -- --write-docs`) -->";
const END: &str = "<!-- rivals: end -->";

/// Puts the report between its markers in the generator's page.
///
/// # Errors
/// When the page can't be read or written, or has no markers.
pub fn write_docs(report: &Report) -> Result<PathBuf, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/generator.md");
    let page = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let missing = || format!("{} lacks the markers `{BEGIN}` and `{END}`", path.display());
    let (before, rest) = page.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    let text = format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", report.to_string().trim());
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}
