//! The tools, each run once: what they cost, and what ours says about itself.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use load::alone::{self, Options};
use load::wire::{Answer, Order};
use load::{Engine, Job, LoadFacts, sys};
use plan::{BodyCheck, CpuSet, Expect, JsonTest, Text};

use crate::{LOAD_CPU, which};

/// What one run of one tool cost.
pub struct Cost {
    pub requests: u64,
    pub cpu_us: f64,
    pub user_us: f64,
    pub seconds: f64,
    /// Largest memory of the tool, KiB; ours only.
    pub peak_kib: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    Exp,
    /// Our generator on io_uring.
    ExpUring,
    Wrk,
    Oha,
}

impl Tool {
    pub fn name(self) -> &'static str {
        match self {
            Self::Exp => "exp",
            Self::ExpUring => "exp-uring",
            Self::Wrk => "wrk",
            Self::Oha => "oha",
        }
    }

    /// Where it is; `None` where it isn't installed.
    pub fn path(self) -> Option<PathBuf> {
        match self {
            Self::Exp => std::env::current_exe().ok(),
            Self::ExpUring => sys::uring::probe().ok().and_then(|()| std::env::current_exe().ok()),
            Self::Wrk => which("wrk"),
            Self::Oha => which("oha").or_else(|| Some(oha_root()?.join("bin/oha")).filter(|path| path.is_file())),
        }
    }

    /// Name and version as the tool says them.
    pub fn version(self) -> String {
        let Some(path) = self.path() else { return format!("{}: not installed", self.name()) };
        if matches!(self, Self::Exp | Self::ExpUring) {
            return format!("{} {}", self.name(), env!("CARGO_PKG_VERSION"));
        }
        let output = Command::new(path).arg(if self == Self::Wrk { "-v" } else { "--version" }).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let first = text.lines().next().unwrap_or_default().split(" [").next().unwrap_or_default();
        if first.is_empty() { format!("{}, which does not say its version", self.name()) } else { first.to_owned() }
    }
}

/// Where this benchmark keeps the oha that it built: `target/rivals/oha`.
fn oha_root() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    Some(own.ancestors().find(|folder| folder.ends_with("target"))?.join("rivals/oha"))
}

/// Builds oha once, about 12 minutes on two cores.
pub fn build_oha() -> Result<(), String> {
    let root = oha_root().ok_or("no target directory")?;
    println!("oha is not installed: building version {OHA} into {} (once, about 12 minutes)", root.display());
    let status = Command::new("cargo")
        .args(["install", "oha", "--locked", "--version", OHA, "--root"])
        .arg(&root)
        .status()
        .map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("cargo install oha: {status}")) }
}

/// The version that is compared with.
const OHA: &str = "1.16.0";

pub fn measure(tool: Tool, address: SocketAddr, seconds: u64, connections: u32) -> Result<Cost, String> {
    let before = sys::children_usage().map_err(|error| error.to_string())?;
    let began = Instant::now();
    let mut peak_kib = None;
    let requests = match tool {
        Tool::Exp | Tool::ExpUring => {
            let engine = if tool == Tool::Exp { Engine::Epoll } else { Engine::Uring };
            let ran = exp(&Job { engine, ..job(address, seconds, connections)? }, &[])?;
            peak_kib = Some(ran.peak_kib);
            ran.facts.streams[0].acknowledged
        }
        Tool::Wrk => wrk(address, seconds, connections)?,
        Tool::Oha => oha(address, seconds, connections)?,
    };
    let after = sys::children_usage().map_err(|error| error.to_string())?;
    if requests == 0 {
        return Err("no request was answered".into());
    }
    Ok(Cost {
        requests,
        cpu_us: (after.cpu_ns - before.cpu_ns) as f64 / 1e3,
        user_us: (after.user_ns - before.user_ns) as f64 / 1e3,
        seconds: began.elapsed().as_secs_f64(),
        peak_kib,
    })
}

/// Our job: status and a JSON value of every answer are checked, three histograms kept.
pub fn job(address: SocketAddr, seconds: u64, connections: u32) -> Result<Job, String> {
    let options = Options {
        url: format!("http://{address}/"),
        connections,
        window_ns: seconds * 1_000_000_000,
        timeout_ns: 5_000_000_000,
        cpus: CpuSet::new([LOAD_CPU]),
        ..Options::default()
    };
    let mut job = alone::job(&options).map_err(|error| error.to_string())?;
    job.workload.streams[0].expect = Expect {
        status: vec![200],
        headers: Vec::new(),
        body: vec![BodyCheck::Json { path: "$.id".into(), test: JsonTest::Equals(Text::literal("1")) }],
    };
    Ok(job)
}

/// What a run of our generator left.
pub struct Ran {
    pub facts: LoadFacts,
    /// The instant of its start, CLOCK_MONOTONIC ns.
    pub at_ns: u64,
    /// Its largest memory, KiB.
    pub peak_kib: u64,
    /// Heap allocations of the process, from its start to its end.
    pub allocations: u64,
}

/// Runs this benchmark's own binary as a generator, in front of it whatever `wrapper` says.
pub fn exp(job: &Job, wrapper: &[&str]) -> Result<Ran, String> {
    let text = |error: std::io::Error| error.to_string();
    let own = std::env::current_exe().map_err(text)?;
    let mut command = match wrapper {
        [] => Command::new(&own),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(&own);
            command
        }
    };
    command.arg("--generator").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(text)?;
    let (Some(mut orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("no pipes".into());
    };
    let mut answers = BufReader::new(answers);
    let mut ask = |order: &Order| -> Result<Answer, String> {
        let line = serde_json::to_string(order).map_err(|error| error.to_string())?;
        writeln!(orders, "{line}").map_err(text)?;
        let mut answer = String::new();
        answers.read_line(&mut answer).map_err(text)?;
        serde_json::from_str(&answer).map_err(|error| format!("{error}: {answer}"))
    };
    let ready = ask(&Order::Job(Box::new(job.clone())))?;
    let at_ns = sys::now_ns() + 200_000_000;
    let finished = ask(&Order::Start { at_ns, every_ns: 0 })?;
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    drop(orders);
    let output = child.wait_with_output().map_err(text)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let allocations = said.lines().find_map(|line| line.strip_prefix("allocations ")?.parse().ok());
    match finished {
        Answer::Finished { facts } if facts.streams[0].census.failed == 0 => Ok(Ran {
            facts: *facts,
            at_ns,
            peak_kib: peak.ok_or("the generator's memory can't be read")?,
            allocations: allocations.ok_or_else(|| format!("the generator did not count its allocations: {said}"))?,
        }),
        Answer::Finished { facts } => Err(format!("failures: {:?}", facts.streams[0].failures)),
        other => Err(format!("{ready:?} {other:?} {said}")),
    }
}

fn pinned(tool: Tool) -> Result<Command, String> {
    let mut command = Command::new("taskset");
    command.args(["-c", &LOAD_CPU.to_string()]).arg(tool.path().ok_or("not installed")?);
    Ok(command)
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn wrk(address: SocketAddr, seconds: u64, connections: u32) -> Result<u64, String> {
    let text = output(pinned(Tool::Wrk)?.args([
        "-t1",
        &format!("-c{connections}"),
        &format!("-d{seconds}s"),
        &format!("http://{address}/"),
    ]))?;
    text.lines()
        .find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok())
        .ok_or_else(|| format!("wrk printed no count: {text}"))
}

fn oha(address: SocketAddr, seconds: u64, connections: u32) -> Result<u64, String> {
    let text = output(pinned(Tool::Oha)?.env("TOKIO_WORKER_THREADS", "1").args([
        "--no-tui",
        "--output-format",
        "json",
        "-c",
        &connections.to_string(),
        "-z",
        &format!("{seconds}s"),
        &format!("http://{address}/"),
    ]))?;
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
    let counts = json["statusCodeDistribution"].as_object().ok_or_else(|| format!("oha printed no count: {text}"))?;
    Ok(counts.values().filter_map(serde_json::Value::as_u64).sum())
}

/// System calls of our generator, by name, under strace, which slows it and hardly changes their number.
pub fn system_calls(address: SocketAddr, seconds: u64) -> Result<(u64, u64), String> {
    let strace = which("strace").ok_or("strace is not installed")?;
    let file = std::env::temp_dir().join(format!("exp-rivals-{}.strace", std::process::id()));
    let wrapper = [&strace.to_string_lossy(), "-c", "-f", "-o", &file.to_string_lossy()].map(str::to_owned);
    let ran = exp(&job(address, seconds, 64)?, &wrapper.each_ref().map(String::as_str));
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    drop(std::fs::remove_file(&file));
    let calls: u64 = text
        .lines()
        .filter(|line| {
            ["read", "recvfrom", "recvmsg", "sendto", "write", "writev", "epoll_wait", "epoll_pwait", "epoll_ctl"]
                .contains(&line.split_whitespace().last().unwrap_or_default())
        })
        .filter_map(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok())
        .sum();
    let requests = ran?.facts.streams[0].acknowledged;
    if calls == 0 || requests == 0 {
        return Err(format!("strace counted nothing: {text}"));
    }
    Ok((calls, requests))
}
