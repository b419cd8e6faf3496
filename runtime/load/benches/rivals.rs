//! CPU per request of this generator and of wrk and oha, side by side: `cargo bench -p load --bench rivals`.
//!
//! The server runs on CPU 0 and one generator at a time on CPU 1, in random order within each round, so that a noisy
//! minute hits all of them; what counts is the median of the per-round ratios. Ours checks status and a JSON value of
//! every answer and keeps three histograms; the others don't. A tool that is not installed is left out and named.
//!
//! Settings by environment: `ROUNDS` (7), `SECONDS` per run (2), `CONNECTIONS` (64).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use load::wire::{Answer, Order};
use load::{Arrivals, Job, LoadFacts, noop, sys};
use plan::{BodyCheck, CpuSet, Expect, JsonTest, Request, Stream, Text, Workload};

const SERVER_CPU: u32 = 0;
const LOAD_CPU: u32 = 1;

thread_local! {
    /// The largest peak memory of our generator so far.
    static MEMORY: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}

/// What one run of one tool cost.
struct Cost {
    requests: u64,
    cpu_us: f64,
    user_us: f64,
    seconds: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tool {
    Exp,
    Wrk,
    Oha,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::Exp => "exp",
            Self::Wrk => "wrk",
            Self::Oha => "oha",
        }
    }

    fn is_here(self) -> bool {
        self == Self::Exp || which(self.name()).is_some()
    }
}

fn which(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths)
        .chain(["/usr/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn main() {
    if std::env::args().any(|argument| argument == "--generator") {
        std::process::exit(load::control(std::io::stdin().lock(), std::io::stdout()));
    }
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("a benchmark, not a test: run `cargo bench -p load --bench rivals`");
        return;
    }
    let rounds = setting("ROUNDS", 7).clamp(1, 100) as usize;
    let seconds = setting("SECONDS", 2).clamp(1, 60);
    let connections = setting("CONNECTIONS", 64).clamp(1, 20_000) as u32;
    let tools: Vec<Tool> = [Tool::Exp, Tool::Wrk, Tool::Oha].into_iter().filter(|tool| tool.is_here()).collect();
    for tool in [Tool::Wrk, Tool::Oha] {
        if !tool.is_here() {
            println!("{} is not installed: left out", tool.name());
        }
    }
    let limit = sys::raise_open_files().expect("the limit of open files");
    assert!(
        limit > u64::from(connections) * 2 + 100,
        "{connections} connections need a higher `ulimit -n` than {limit}"
    );
    for server in [Server::noop(), Server::nginx()] {
        let Some(server) = server else {
            println!("nginx is not installed: left out");
            continue;
        };
        compare(&server, &tools, rounds, seconds, connections);
    }
    print_memory();
    system_calls(seconds);
    schedule(seconds);
}

fn compare(server: &Server, tools: &[Tool], rounds: usize, seconds: u64, connections: u32) {
    println!("\n{}: {connections} connections, {rounds} rounds of {seconds} s", server.name);
    let mut costs: BTreeMap<Tool, Vec<Cost>> = BTreeMap::new();
    let mut order = tools.to_vec();
    for round in 0..rounds {
        // Fisher–Yates by the clock's last digits: the order must differ between rounds, nothing else.
        for last in (1..order.len()).rev() {
            order.swap(last, (sys::now_ns() / 1_000) as usize % (last + 1));
        }
        for tool in &order {
            match measure(*tool, server.address, seconds, connections) {
                Ok(cost) => costs.entry(*tool).or_default().push(cost),
                Err(why) => {
                    println!("round {round}: {}: {why}", tool.name());
                    return;
                }
            }
        }
    }
    println!(
        "{:<6} {:>10} {:>10} {:>10} {:>22} {:>22}",
        "", "req/s", "µs/req", "user µs", "exp ÷ it, CPU", "exp ÷ it, user"
    );
    for (tool, own) in &costs {
        let ratio = |of: fn(&Cost) -> f64| {
            let ratios: Vec<f64> = costs[&Tool::Exp].iter().zip(own).map(|(exp, other)| of(exp) / of(other)).collect();
            let (low, high) = ratios.iter().fold((f64::MAX, 0f64), |(low, high), r| (low.min(*r), high.max(*r)));
            format!("{:.2} [{low:.2}..{high:.2}]", median(&ratios))
        };
        let each = |of: fn(&Cost) -> f64| median(&own.iter().map(of).collect::<Vec<_>>());
        println!(
            "{:<6} {:>10.0} {:>10.2} {:>10.2} {:>22} {:>22}",
            tool.name(),
            each(|cost| cost.requests as f64 / cost.seconds),
            each(|cost| cost.cpu_us / cost.requests as f64),
            each(|cost| cost.user_us / cost.requests as f64),
            ratio(|cost| cost.cpu_us / cost.requests as f64),
            ratio(|cost| cost.user_us / cost.requests as f64),
        );
    }
}

fn print_memory() {
    MEMORY.with_borrow(|most| println!("exp's peak memory: {}", most.trim()));
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

fn measure(tool: Tool, address: SocketAddr, seconds: u64, connections: u32) -> Result<Cost, String> {
    let before = sys::children_usage().map_err(|error| error.to_string())?;
    let began = Instant::now();
    let requests = match tool {
        Tool::Exp => exp(&job(address, seconds, connections), &[])?.streams[0].acknowledged,
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
    })
}

fn job(address: SocketAddr, seconds: u64, connections: u32) -> Job {
    Job {
        target: address,
        host: address.to_string(),
        workload: Workload {
            name: "rivals".into(),
            streams: vec![Stream {
                name: "get".into(),
                share: 1.0,
                rate: None,
                request: Request {
                    method: "GET".into(),
                    path: Text::literal("/"),
                    headers: Vec::new(),
                    bearer: None,
                    body: None,
                    content_type: None,
                    accept_gzip: false,
                },
                parameters: Vec::new(),
                expect: Expect {
                    status: vec![200],
                    headers: Vec::new(),
                    body: vec![BodyCheck::Json { path: "$.id".into(), test: JsonTest::Equals(Text::literal("1")) }],
                },
                creates_row_in: None,
            }],
        },
        tokens: BTreeMap::new(),
        variables: BTreeMap::new(),
        connections,
        keep_alive: true,
        rate: None,
        course: Vec::new(),
        arrivals: Arrivals::Constant,
        warm_up_ns: 0,
        window_ns: seconds * 1_000_000_000,
        timeout_ns: 5_000_000_000,
        grace_ns: 1_000_000_000,
        threads: 1,
        cpus: CpuSet::new([LOAD_CPU]),
        kernel_time: false,
        seed: 1,
        transport: load::Transport::default(),
        part: None,
        requests: None,
    }
}

/// Runs this benchmark's own binary as a generator, in front of it whatever `wrapper` says.
fn exp(job: &Job, wrapper: &[&str]) -> Result<LoadFacts, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = match wrapper {
        [] => Command::new(&own),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(&own);
            command
        }
    };
    let mut child = command
        .arg("--generator")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let (Some(mut orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("no pipes".into());
    };
    let mut answers = BufReader::new(answers);
    let mut ask = |order: &Order| -> Result<Answer, String> {
        let line = serde_json::to_string(order).map_err(|error| error.to_string())?;
        writeln!(orders, "{line}").map_err(|error| error.to_string())?;
        let mut answer = String::new();
        answers.read_line(&mut answer).map_err(|error| error.to_string())?;
        serde_json::from_str(&answer).map_err(|error| format!("{error}: {answer}"))
    };
    let ready = ask(&Order::Job(Box::new(job.clone())))?;
    let finished = ask(&Order::Start { at_ns: sys::now_ns() + 200_000_000, every_ns: 0 })?;
    let memory = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    if let Some(peak) = memory.lines().find_map(|line| line.strip_prefix("VmHWM:")).filter(|_| wrapper.is_empty()) {
        MEMORY.with_borrow_mut(|most| *most = std::mem::take(most).max(format!("{:>12}", peak.trim())));
    }
    drop(orders);
    child.wait().map_err(|error| error.to_string())?;
    match finished {
        Answer::Finished { facts } if facts.streams[0].census.failed == 0 => Ok(*facts),
        Answer::Finished { facts } => Err(format!("failures: {:?}", facts.streams[0].failures)),
        other => Err(format!("{ready:?} {other:?}")),
    }
}

fn pinned(program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &LOAD_CPU.to_string(), program]);
    command
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn wrk(address: SocketAddr, seconds: u64, connections: u32) -> Result<u64, String> {
    let text = output(pinned("wrk").args([
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
    let text = output(pinned("oha").env("TOKIO_WORKER_THREADS", "1").args([
        "--no-tui",
        "-j",
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

/// System calls per request under strace, which slows them but doesn't change their number much.
fn system_calls(seconds: u64) {
    let Some(strace) = which("strace") else {
        println!("\nstrace is not installed: system calls not counted");
        return;
    };
    let Some(server) = Server::noop() else { return };
    let file = std::env::temp_dir().join(format!("exp-rivals-{}.strace", std::process::id()));
    let wrapper = [&strace.to_string_lossy(), "-c", "-f", "-o", &file.to_string_lossy()].map(str::to_owned);
    let requests = exp(&job(server.address, seconds, 64), &wrapper.each_ref().map(String::as_str))
        .map(|facts| facts.streams[0].acknowledged);
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    drop(std::fs::remove_file(&file));
    let calls: u64 = text
        .lines()
        .filter(|line| {
            ["read", "recvfrom", "sendto", "write", "epoll_wait", "epoll_ctl"]
                .contains(&line.split_whitespace().last().unwrap_or_default())
        })
        .filter_map(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok())
        .sum();
    match requests {
        Ok(requests) => {
            println!("\nsystem calls per request: {:.3} ({calls} for {requests})", calls as f64 / requests as f64)
        }
        Err(why) => println!("\nsystem calls not counted: {why}"),
    }
}

/// How exactly an open loop keeps its schedule, beside the jitter of the host just before: gaps between readings of the clock by a
/// thread that does nothing else on the generator's CPU.
fn schedule(seconds: u64) {
    let Some(server) = Server::noop() else { return };
    let jitter = std::thread::spawn(|| {
        sys::pin_to_cpu(LOAD_CPU).expect("the generator's CPU");
        let (start, mut last) = (sys::now_ns(), sys::now_ns());
        // As a request that is due at a random moment would meet them: each nanosecond of a gap waits for the gap's rest.
        let mut waits = [0u64; 3];
        while last < start + 1_000_000_000 {
            let now = sys::now_ns();
            for (wait, over) in waits.iter_mut().zip([10_000, 100_000, 1_000_000]) {
                *wait += (now - last).saturating_sub(over);
            }
            last = now;
        }
        waits.map(|wait| wait as f64 / 1e9)
    })
    .join()
    .expect("the jitter");
    println!(
        "\nhost just before: a moment waits > 10 µs with chance {:.4}, > 100 µs {:.4}, > 1 ms {:.4}",
        jitter[0], jitter[1], jitter[2]
    );
    for rate in [5_000.0, 20_000.0] {
        let job = Job { rate: Some(rate), warm_up_ns: 500_000_000, ..job(server.address, seconds, 64) };
        match exp(&job, &[]) {
            Err(why) => println!("open loop at {rate}/s: {why}"),
            Ok(facts) => {
                let stream = &facts.streams[0];
                let us = |histogram: Option<&journal::facts::Histogram>, q: f64| {
                    histogram.and_then(|histogram| histogram.quantile_ns(q)).unwrap_or(0) as f64 / 1e3
                };
                println!(
                    "open loop at {rate}/s: {} due of {}, {} answered; own lag p50 {:.2} µs, p99 {:.0} µs; corrected p50 {:.0} µs, p99 {:.0} µs; {:.2} of a CPU; {} stalls",
                    stream.census.due,
                    rate * seconds as f64,
                    stream.census.ok,
                    us(stream.own_lag.as_ref(), 0.5),
                    us(stream.own_lag.as_ref(), 0.99),
                    us(stream.corrected.as_ref(), 0.5),
                    us(stream.corrected.as_ref(), 0.99),
                    facts.generator.cpu_ns.unwrap_or(0) as f64 / job.window_ns as f64,
                    facts.generator.stalls.len(),
                );
            }
        }
    }
}

/// A server on its CPU. It ends when it is dropped.
struct Server {
    name: &'static str,
    address: SocketAddr,
    _noop: Option<noop::Server>,
    nginx: Option<(Child, PathBuf)>,
}

impl Server {
    fn noop() -> Option<Self> {
        let options = noop::Options { cpus: CpuSet::new([SERVER_CPU]), ..noop::Options::default() };
        let server = noop::Server::start(&options).expect("the no-op server");
        Some(Self { name: "no-op server", address: server.address(), _noop: Some(server), nginx: None })
    }

    fn nginx() -> Option<Self> {
        let nginx = which("nginx")?;
        let folder = std::env::temp_dir().join(format!("exp-rivals-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        // A free port, let go again: nginx can't be asked which one it took.
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let configuration = folder.join("nginx.conf");
        std::fs::write(&configuration, configuration_text(&folder, port)).expect("a configuration");
        let child = Command::new("taskset")
            .args(["-c", &SERVER_CPU.to_string()])
            .arg(nginx)
            .arg("-c")
            .arg(&configuration)
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let server = Self { name: "nginx", address, _noop: None, nginx: Some((child, folder)) };
        let deadline = Instant::now() + Duration::from_secs(5);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "nginx does not listen on {address}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }
}

fn configuration_text(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    format!(
        "daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; worker_rlimit_nofile 60000;\n\
         events {{ worker_connections 50000; }}\n\
         http {{ access_log off; keepalive_requests 100000000; client_body_temp_path {folder}; proxy_temp_path {folder}; \
         fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};\n\
         server {{ listen 127.0.0.1:{port} backlog=8192; location / {{ default_type application/json; return 200 '{}'; }} }} }}\n",
        noop::BODY
    )
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((child, folder)) = &mut self.nginx {
            // Without a master process the child is the whole of it.
            drop(child.kill());
            drop(child.wait());
            drop(std::fs::remove_dir_all(folder));
        }
    }
}
