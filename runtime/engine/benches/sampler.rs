//! What the sampler and the pace witness cost: `cargo bench -p engine --bench sampler`.
//!
//! Three windows of five seconds at 10 Hz: two roles in cgroups; two roles as trees of processes; the witness on one
//! CPU. Each is told as a share of one CPU, beside the bar.

use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use engine::host::CounterSource;
use engine::sample::{SampleSpec, Sampler, clock, locate, pin};
use plan::CpuSet;

const WINDOW_NS: u64 = 5_000_000_000;
/// Largest share of one CPU that the sampler may take.
const BAR: f64 = 0.005;

fn main() {
    let all = pin::allowed().expect("the scheduler tells");
    let first = all.first(1).expect("a CPU");
    let processes: Vec<Child> =
        (0..16).map(|_| Command::new("sleep").arg("600").spawn().expect("`sleep` is on PATH")).collect();
    let tree = CounterSource::Processes { root: std::process::id() };
    match locate::of_process(std::process::id()).or_else(|_| some_group()) {
        Ok(group) => tell("sampler, two roles in cgroups", own_share(&all, &first, &group), Some(BAR)),
        Err(why) => println!("sampler, two roles in cgroups: not measured, {why}"),
    }
    tell("sampler, two roles as trees of 17 processes", own_share(&all, &first, &tree), Some(BAR));
    tell("pace witness of one CPU", witness_share(&all, &first), None);
    for mut process in processes {
        process.kill().expect("a child of this bench");
        process.wait().expect("a child of this bench");
    }
}

fn tell(what: &str, share: f64, bar: Option<f64>) {
    let verdict = bar.map_or(String::new(), |bar| {
        format!(" (bar {:.1} %: {})", bar * 100.0, if share < bar { "kept" } else { "MISSED" })
    });
    println!("{what}: {:.3} % of one CPU{verdict}", share * 100.0);
}

/// A group with real counters, where this process has none of its own: the root's children under cgroup v1.
fn some_group() -> Result<CounterSource, String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").map_err(|error| error.to_string())?;
    let root = locate::cpuacct_root(&mounts).ok_or("this process is in the root group and there is no cgroup v1")?;
    let memory = Path::new("/sys/fs/cgroup/memory").to_owned();
    Ok(CounterSource::CgroupV1 { cpuacct: root, cpu: None, memory })
}

fn own_share(all: &CpuSet, first: &CpuSet, source: &CounterSource) -> f64 {
    let spec = SampleSpec {
        candidate: Some(source.clone()),
        candidate_cpus: first.clone(),
        database: Some(source.clone()),
        database_cpus: first.clone(),
        ..SampleSpec::of_machine(all.clone())
    };
    let mut sampler = Sampler::start(spec);
    let start = clock::monotonic_ns() + 100_000_000;
    sampler.window(start, start + WINDOW_NS);
    let sampled = sampler.finish();
    assert_eq!(sampled.findings, [], "what can't be read costs nothing and shows nothing");
    sampled.own_cpu_ns as f64 / WINDOW_NS as f64
}

/// By the whole process' CPU clock, since nothing else runs in it.
fn witness_share(all: &CpuSet, first: &CpuSet) -> f64 {
    let cost = |pace_cpus: CpuSet| {
        let sampler = Sampler::start(SampleSpec { pace_cpus, ..SampleSpec::of_machine(all.clone()) });
        let before = clock::process_cpu_ns();
        std::thread::sleep(Duration::from_nanos(WINDOW_NS));
        let spent = clock::process_cpu_ns() - before;
        drop(sampler);
        spent as f64
    };
    (cost(first.clone()) - cost(CpuSet::default())) / WINDOW_NS as f64
}
