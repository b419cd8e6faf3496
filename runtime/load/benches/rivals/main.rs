//! This generator, wrk and oha side by side: `cargo bench -p load --bench rivals`, about 9 minutes.
//!
//! The server runs on CPU 0 and one generator at a time on CPU 1, in random order within each round, so that a noisy minute hits all
//! of them; what counts is the median of the per-round ratios. Ours checks status and a JSON value of every answer and keeps three
//! histograms; the others don't. All of it runs in a network namespace of its own, without the host's packet rules. Single figures
//! move by a fifth between minutes on a shared machine; ratios of one run by a tenth between sessions.
//!
//! `-- --quick`: 3 rounds of 1 s, shorter rests, about 2 minutes, to see that it works. `-- --write-docs`: puts the table into
//! `docs/generator.md`. `-- --build-oha`: builds oha once if it is not installed.

mod report;
mod schedule;
mod servers;
mod tools;

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use load::sys;

use report::{Comparison, Memory, Report, Schedule};
use servers::Server;
use tools::{Cost, Tool};

/// Where the servers run.
pub const SERVER_CPU: u32 = 0;
/// Where the generators run.
pub const LOAD_CPU: u32 = 1;
/// What the process that runs in a namespace of its own is told by.
const INSIDE: &str = "EXP_RIVALS_NAMESPACE";

/// The system's allocator, counting. As all of this benchmark, it also runs as our generator.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How long everything takes.
struct Plan {
    rounds: usize,
    seconds: u64,
    /// With 4,000 connections, whose opening is a part of each run.
    seconds_of_many: u64,
    rests: [u64; 2],
    open_seconds: u64,
    open_runs: usize,
}

const FULL: Plan = Plan { rounds: 7, seconds: 2, seconds_of_many: 2, rests: [5, 30], open_seconds: 4, open_runs: 3 };
const QUICK: Plan = Plan { rounds: 3, seconds: 1, seconds_of_many: 2, rests: [1, 4], open_seconds: 1, open_runs: 1 };

fn main() {
    let asked = |flag: &str| std::env::args().any(|argument| argument == flag);
    if asked("--generator") {
        let code = load::control(std::io::stdin().lock(), std::io::stdout());
        eprintln!("allocations {}", ALLOCATIONS.load(Ordering::Relaxed));
        std::process::exit(code);
    }
    if !asked("--bench") {
        println!("a benchmark, not a test: run `cargo bench -p load --bench rivals`");
        return;
    }
    if std::env::var_os(INSIDE).is_none() {
        if Tool::Oha.path().is_none()
            && asked("--build-oha")
            && let Err(why) = tools::build_oha()
        {
            println!("oha is left out: {why}");
        }
        if let Some(code) = in_a_namespace_of_its_own() {
            std::process::exit(code);
        }
        println!("no network namespace of its own (that takes root): the host's packet rules are part of every figure");
    }
    let plan = if asked("--quick") { QUICK } else { FULL };
    let report = run(&plan);
    print!("{report}");
    if asked("--write-docs") {
        match report::write_docs(&report) {
            Ok(path) => println!("\nwritten into {}", path.display()),
            Err(why) => {
                println!("\nnot written: {why}");
                std::process::exit(1);
            }
        }
    }
}

/// Runs this program again in a network namespace with nothing but a loopback. `None` where that can't be had.
fn in_a_namespace_of_its_own() -> Option<i32> {
    let may = Command::new("unshare").args(["-n", "true"]).status().is_ok_and(|status| status.success());
    if !may || which("ip").is_none() {
        return None;
    }
    let own = std::env::current_exe().ok()?;
    let status = Command::new("unshare")
        .args(["-n", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""])
        .arg(own)
        .args(std::env::args_os().skip(1))
        .env(INSIDE, "1")
        .status();
    Some(status.ok()?.code().unwrap_or(1))
}

fn run(plan: &Plan) -> Report {
    let tools: Vec<Tool> =
        [Tool::Exp, Tool::ExpUring, Tool::Wrk, Tool::Oha].into_iter().filter(|tool| tool.path().is_some()).collect();
    let limit = sys::raise_open_files().expect("the limit of open files");
    let mut report = Report::new(std::env::var_os(INSIDE).is_some());
    for tool in [Tool::ExpUring, Tool::Wrk, Tool::Oha].into_iter().filter(|tool| !tools.contains(tool)) {
        let why = if tool == Tool::ExpUring { "this machine has no io_uring" } else { "not installed" };
        report.left_out.push(format!("{} ({why})", tool.name()));
    }
    for connections in [64, 4_000] {
        if limit < u64::from(connections) * 2 + 100 {
            report.left_out.push(format!("{connections} connections (the limit of open files is {limit})"));
            continue;
        }
        for server in [Some(Server::noop()), Server::nginx()] {
            let Some(server) = server else {
                report.left_out.push("nginx (not installed)".into());
                continue;
            };
            let seconds = if connections == 64 { plan.seconds } else { plan.seconds_of_many };
            match compare(&server, &tools, plan.rounds, seconds, connections) {
                Ok(costs) => report.comparisons.push(Comparison {
                    server: server.name,
                    connections,
                    rounds: plan.rounds,
                    seconds,
                    costs,
                }),
                Err(why) => report.left_out.push(format!("{} with {connections} connections ({why})", server.name)),
            }
        }
    }
    let server = Server::noop();
    eprintln!("system calls, allocations, memory");
    match tools::system_calls(server.address, plan.seconds) {
        Ok(calls) => report.calls = Some(calls),
        Err(why) => report.left_out.push(format!("system calls ({why})")),
    }
    match memory(&server, plan.rests) {
        Ok(memory) => report.memory = Some(memory),
        Err(why) => report.left_out.push(format!("memory and allocations ({why})")),
    }
    drop(server);
    for rate in [5_000.0, 20_000.0] {
        eprintln!("open loop at {rate}/s");
        report.schedules.push(Schedule { rate, runs: schedule::runs(rate, plan.open_seconds, plan.open_runs) });
    }
    report
}

fn compare(
    server: &Server,
    tools: &[Tool],
    rounds: usize,
    seconds: u64,
    connections: u32,
) -> Result<BTreeMap<Tool, Vec<Cost>>, String> {
    let mut costs: BTreeMap<Tool, Vec<Cost>> = BTreeMap::new();
    let mut order = tools.to_vec();
    for round in 1..=rounds {
        eprintln!("{}, {connections} connections: round {round} of {rounds}", server.name);
        // Fisher–Yates by the clock's last digits: the order must differ between rounds, nothing else.
        for last in (1..order.len()).rev() {
            order.swap(last, (sys::now_ns() / 1_000) as usize % (last + 1));
        }
        for tool in &order {
            let cost = tools::measure(*tool, server.address, seconds, connections)
                .map_err(|why| format!("{}: {why}", tool.name()))?;
            costs.entry(*tool).or_default().push(cost);
        }
    }
    Ok(costs)
}

/// Memory and heap allocations of a short run and a long one: neither may grow with the number of requests.
fn memory(server: &Server, seconds: [u64; 2]) -> Result<Memory, String> {
    let [short, long] = seconds.map(|seconds| tools::exp(&tools::job(server.address, seconds, 64)?, &[]));
    let (short, long) = (short?, long?);
    let requests = |ran: &tools::Ran| ran.facts.streams[0].acknowledged;
    Ok(Memory {
        seconds,
        kib: [short.peak_kib, long.peak_kib],
        more_allocations: long.allocations as i64 - short.allocations as i64,
        more_requests: requests(&long) as i64 - requests(&short) as i64,
    })
}

/// A program on the path.
pub fn which(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths)
        .chain(["/usr/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// The median of at least one value.
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}
