//! Load by other tools: they run pinned to the generator's CPUs, and their output becomes the same facts, with what it lacks
//! named.
//!
//! A tool that is missing, fails, tells nothing or tells what can't be read is an error, never a zero. All files of a call lie
//! below the run's scratch directory.

mod h2load;
mod oha;
mod vegeta;
mod wrk;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use journal::{Census, GeneratorFacts, Histogram, LoadFacts, RunId, StreamFacts, ToldLatency, ToolFacts};
use load::wire::Job;
use load::{Listed, sys};
use plan::{CpuSet, Plan, Procedure, Tool};
use tokio::process::Command;

use crate::error::StepError;
use crate::postgres::pinned::pinned;

/// Requests that are written out where the path varies; a tool goes through them again and again.
const LISTED: usize = 10_000;
/// How much longer than it was told a tool may take.
const SLACK: Duration = Duration::from_secs(15);
/// Lines of what a tool said that are shown with a failure.
const LOG_LINES: usize = 20;
/// Most bytes of a tool's output that are read: more than 10,000,000 requests give.
const MOST_OUTPUT: u64 = 4 << 30;

/// A tool on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Which.
    pub tool: Tool,
    /// Its program.
    pub program: PathBuf,
    /// What it says of its version.
    pub version: String,
}

/// One call of a tool.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// What it sends to.
    url: String,
    /// The requests; more than one where the path varies, and then all alike but for the path.
    requests: &'a [Listed],
    job: &'a Job,
    /// How long it sends.
    length: Duration,
    /// A directory of this call's own.
    directory: &'a Path,
}

/// What a tool told of one call.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Told {
    /// Answers by status; `None` where the tool tells only how many were errors.
    statuses: BTreeMap<u16, u64>,
    /// Answers that the tool itself took for as expected, where it tells no statuses.
    fine: u64,
    /// Requests that failed, by reason, timeouts left out.
    failures: BTreeMap<String, u64>,
    /// Requests without an answer in time.
    timed_out: u64,
    /// Requests that it says it has sent, where it says so.
    sent: Option<u64>,
    /// Requests that may have taken effect without an answer being counted.
    unknown: u64,
    /// How long it measured, ns.
    measured_ns: u64,
    /// Service times.
    service: Histogram,
    /// Latencies without a distribution.
    percentiles: BTreeMap<String, ToldLatency>,
}

/// The tools that the plan leaves loads to, found and asked for their version.
///
/// # Errors
/// When one is not installed or does not run.
pub fn installed(plan: &Plan) -> Result<Vec<Installed>, StepError> {
    let mut tools = Vec::<Installed>::new();
    for phase in &plan.phases {
        let Procedure::Load(load) = &phase.procedure else { continue };
        if !load.with.is_own() && !tools.iter().any(|known| known.tool == load.with) {
            tools.push(find(load.with)?);
        }
    }
    Ok(tools)
}

/// Looks a tool up on PATH and asks for its version.
///
/// # Errors
/// When it is not there or does not run.
pub fn find(tool: Tool) -> Result<Installed, StepError> {
    let name = tool.name();
    let next = match tool {
        Tool::H2load => "install it: apt-get install nghttp2-client",
        Tool::Oha => "install it: cargo install oha --locked",
        Tool::Vegeta => "install it: go install github.com/tsenart/vegeta/v12@latest",
        Tool::Wrk | Tool::Exp => "install it: apt-get install wrk",
    };
    let program = crate::process::program_on_path(name).ok_or_else(|| {
        StepError::environment(
            format!("`{name}` is not installed"),
            "the study leaves a load to it (`load with=`)",
            next,
        )
    })?;
    let flag = match tool {
        Tool::Wrk => "-v",
        Tool::Vegeta => "-version",
        _ => "--version",
    };
    let output = std::process::Command::new(&program)
        .arg(flag)
        .output()
        .map_err(|error| StepError::environment(format!("`{}` can't be run: {error}", program.display()), "", next))?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let version = version(tool, &text).ok_or_else(|| {
        StepError::environment(
            format!("`{}` does not say its version", program.display()),
            text.lines().next().unwrap_or("it printed nothing").to_owned(),
            next,
        )
    })?;
    Ok(Installed { tool, program, version })
}

/// The version in what `-v`, `--version` or `-version` printed.
fn version(tool: Tool, text: &str) -> Option<String> {
    let line = text.lines().next()?;
    let word = match tool {
        Tool::Wrk => line.strip_prefix("wrk ")?.split_whitespace().next()?,
        Tool::Oha => line.strip_prefix("oha ")?.split_whitespace().next()?,
        Tool::H2load => line.strip_prefix("h2load nghttp2/")?.trim(),
        // One that `go install` built does not know its own.
        Tool::Vegeta => match line.strip_prefix("Version:")?.trim() {
            "" => "unknown",
            version => version,
        },
        Tool::Exp => return None,
    };
    Some(word.to_owned())
}

/// A load by a tool, with everything looked up and written out.
pub struct ToolLoad<'a> {
    installed: &'a Installed,
    run: &'a RunId,
    job: &'a Job,
    requests: Vec<Listed>,
    directory: PathBuf,
    warm_up: Option<Told>,
}

impl<'a> ToolLoad<'a> {
    /// Writes the requests out.
    ///
    /// # Errors
    /// When the job can't be sent by the tool, or the scratch directory can't be written.
    pub fn new(installed: &'a Installed, run: &'a RunId, job: &'a Job, scratch: &Path) -> Result<Self, StepError> {
        let requests = load::list(job, LISTED).map_err(|error| {
            StepError::step(error.to_string(), format!("{} was to send it", installed.tool.name()), "report this")
        })?;
        let directory = scratch.join(format!("tool-{}", sys::now_ns()));
        std::fs::create_dir_all(&directory).map_err(|error| unwritable(&directory, &error))?;
        Ok(Self { installed, run, job, requests, directory, warm_up: None })
    }

    /// Sends the load before the window, if there is any: a call of its own, since no tool leaves its warm-up out by itself.
    ///
    /// # Errors
    /// When the tool fails or can't be understood.
    pub async fn warm_up(&mut self) -> Result<(), StepError> {
        if self.job.warm_up_ns > 0 {
            self.warm_up = Some(self.call(Duration::from_nanos(self.job.warm_up_ns)).await?.0);
        }
        Ok(())
    }

    /// Sends the load of the window and gives its account.
    ///
    /// # Errors
    /// When the tool fails, tells nothing, or can't be understood.
    pub async fn measure(&mut self) -> Result<LoadFacts, StepError> {
        let (told, generator) = self.call(Duration::from_nanos(self.job.window_ns)).await?;
        Ok(facts(self.installed, self.job, self.warm_up.take(), told, generator))
    }

    async fn call(&self, length: Duration) -> Result<(Told, GeneratorFacts), StepError> {
        let name = self.installed.tool.name();
        let call = Call {
            url: format!("http://{}", self.job.target),
            requests: &self.requests,
            job: self.job,
            length,
            directory: &self.directory,
        };
        let arguments = match self.installed.tool {
            Tool::Wrk => wrk::arguments(&call),
            Tool::Oha => oha::arguments(&call),
            Tool::Vegeta => vegeta::arguments(&call),
            Tool::H2load => h2load::arguments(&call),
            Tool::Exp => return Err(StepError::step("our own generator is no other tool", "", "report this")),
        }
        .map_err(|error| unwritable(&self.directory, &error))?;
        let before = sys::children_usage().ok();
        let output = self.output(&arguments, length).await?;
        let used = before.zip(sys::children_usage().ok()).map(|(before, after)| sys::Usage {
            cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns),
            user_ns: after.user_ns.saturating_sub(before.user_ns),
            involuntary_switches: after.involuntary_switches.saturating_sub(before.involuntary_switches),
        });
        let told = match self.installed.tool {
            Tool::Wrk => wrk::read(&output, self.job.connections),
            Tool::Oha => oha::read(&output, self.job.rate.is_some()),
            Tool::Vegeta => self.encoded().await.and_then(|rows| vegeta::read(&rows)),
            Tool::H2load => h2load::read(&output, &read_file(&h2load::log(&self.directory))?, self.job.connections),
            Tool::Exp => Err("it is our own".to_owned()),
        };
        let told = told.and_then(|told| {
            if told.answers() + told.failed() > 0 {
                Ok(told)
            } else {
                Err(format!("{name} sent nothing that came to an end"))
            }
        });
        let told = told.map_err(|why| {
            let next = format!("run it by hand: {name} {}", arguments.first().map_or("", |_| "…"));
            StepError::step(format!("what {name} {} told can't be used", self.installed.version), why, next)
                .with_log(last(&output))
        })?;
        let generator = GeneratorFacts {
            cpu_ns: used.map(|used| used.cpu_ns),
            user_ns: used.map(|used| used.user_ns),
            threads: self.job.threads,
            involuntary_switches: used.map(|used| used.involuntary_switches),
            ..GeneratorFacts::default()
        };
        Ok((told, generator))
    }

    /// Runs the tool and gives what it printed.
    async fn output(&self, arguments: &[String], length: Duration) -> Result<String, StepError> {
        let limit = length + Duration::from_nanos(self.job.timeout_ns) + SLACK;
        run(&self.installed.program, self.run, &self.job.cpus, arguments, limit).await
    }

    /// vegeta's results, as it writes them for others.
    async fn encoded(&self) -> Result<String, String> {
        let arguments = vegeta::encoding(&self.directory);
        let limit = Duration::from_secs(120);
        run(&self.installed.program, self.run, &self.job.cpus, &arguments, limit)
            .await
            .map_err(|error| error.to_string())
    }
}

impl Drop for ToolLoad<'_> {
    fn drop(&mut self) {
        // The scratch directory goes at the end of the run in any case.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Told {
    fn answers(&self) -> u64 {
        self.fine + self.statuses.values().sum::<u64>()
    }

    fn failed(&self) -> u64 {
        self.timed_out + self.failures.values().sum::<u64>()
    }

    /// Answers with a status that is expected, and the others by reason.
    fn judged(&self, expected: &[u16]) -> (u64, BTreeMap<String, u64>) {
        let mut fine = self.fine;
        let mut failures = self.failures.clone();
        for (status, count) in &self.statuses {
            if expected.is_empty() || expected.contains(status) {
                fine += count;
            } else {
                *failures.entry(format!("status {status}")).or_default() += count;
            }
        }
        (fine, failures)
    }
}

/// The account of a repetition: the window's call, and what the warm-up's may have changed.
fn facts(installed: &Installed, job: &Job, warm_up: Option<Told>, told: Told, generator: GeneratorFacts) -> LoadFacts {
    let stream = &job.workload.streams[0];
    let expected = &stream.expect.status;
    let (ok, failures) = told.judged(expected);
    let (warm_ok, warm_failures) = warm_up.as_ref().map(|told| told.judged(expected)).unwrap_or_default();
    let failed: u64 = failures.values().sum();
    let open = job.rate.is_some();
    let ended = ok + failed + told.timed_out;
    // What the tool doesn't tell is set so that the equation holds; `lacks` says that it was not checked.
    let sent = told.sent.unwrap_or(ended);
    let census = Census {
        due: job.rate.map_or(0, |rate| ((rate * job.window_ns as f64) / 1e9).floor() as u64),
        sent,
        ok,
        failed,
        timed_out: told.timed_out,
        carried_out: if open { 0 } else { sent.saturating_sub(ended).min(u64::from(job.connections)) },
        ..Census::default()
    };
    let unknown = |told: &Told| told.unknown + told.timed_out;
    LoadFacts {
        connections: job.connections,
        rate: job.rate,
        streams: vec![StreamFacts {
            name: stream.name.clone(),
            census,
            acknowledged: ok + warm_ok,
            unknown: unknown(&told) + warm_up.as_ref().map_or(0, unknown),
            warm_up_failed: warm_failures.values().sum::<u64>() + warm_up.as_ref().map_or(0, |told| told.timed_out),
            failures,
            service: told.service,
            ..StreamFacts::default()
        }],
        generator,
        tool: Some(ToolFacts {
            name: installed.tool.name().to_owned(),
            version: installed.version.clone(),
            measured_ns: told.measured_ns,
            percentiles: told.percentiles,
            lacks: installed.tool.lacks(open).into_iter().map(|account| account.words().to_owned()).collect(),
            remarks: remarks(installed.tool, open),
        }),
        ..LoadFacts::default()
    }
}

fn remarks(tool: Tool, open: bool) -> Vec<String> {
    let remarks: &[&str] = match (tool, open) {
        (Tool::Wrk, _) => &["wrk tells statuses below 400 not apart"],
        (Tool::Oha, true) => &[
            "oha's correction starts late: at its own tick of about 1 ms, not when the request was due, so its own stalls are not in it",
        ],
        (Tool::Vegeta, _) => &["vegeta's latency starts when a request is sent, not when it was due"],
        // 1.52 has an option for connections that are still, and aborts when one is.
        (Tool::H2load, false) => &["h2load gives up no request: one without an answer is cut off at the end"],
        (Tool::H2load, true) => &[
            "h2load gives up no request: one without an answer is cut off at the end",
            "h2load gives each connection a rate of its own; its latency starts when a request is sent, not when it was due",
        ],
        _ => &[],
    };
    remarks.iter().map(|&remark| remark.to_owned()).collect()
}

/// Runs a program on these CPUs until it has ended; its standard output.
async fn run(
    program: &Path,
    id: &RunId,
    cpus: &CpuSet,
    arguments: &[String],
    limit: Duration,
) -> Result<String, StepError> {
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    let failed = |what: String, why: String| {
        StepError::step(what, why, format!("see whether `{name}` works alone on this machine"))
    };
    let started = pinned(program, id, cpus, libc::SIGKILL).and_then(|command| {
        let mut command = Command::from(command);
        command.args(arguments).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn()
    });
    let child = started.map_err(|error| failed(format!("{name} can't be started"), error.to_string()))?;
    let output = match tokio::time::timeout(limit, child.wait_with_output()).await {
        Ok(output) => output.map_err(|error| failed(format!("{name} can't be read"), error.to_string()))?,
        Err(_) => {
            let why = "it was ended; a load without an account is not used".to_owned();
            return Err(failed(format!("{name} was not done within {:.0} s", limit.as_secs_f64()), why));
        }
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        let why =
            said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim().to_owned();
        return Err(failed(format!("{name} failed: {}", output.status), why).with_log(last(&said)));
    }
    Ok(text(&output.stdout))
}

fn last(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|line| line.chars().take(300).collect()).collect()
}

fn read_file(path: &Path) -> Result<String, StepError> {
    let read = || {
        let length = std::fs::metadata(path)?.len();
        if length > MOST_OUTPUT {
            return Err(std::io::Error::other(format!("it has {length} bytes")));
        }
        std::fs::read_to_string(path)
    };
    read().map_err(|error| {
        StepError::step(
            format!("{} can't be read: {error}", path.display()),
            "the tool was to write it",
            "run the command again",
        )
    })
}

fn unwritable(directory: &Path, error: &std::io::Error) -> StepError {
    StepError::environment(
        format!("{} can't be written: {error}", directory.display()),
        "what a tool sends is written there",
        "free space in the directory for temporary files",
    )
}

/// Writes a file of a call.
fn write(directory: &Path, name: &str, text: &[u8]) -> std::io::Result<String> {
    let path = directory.join(name);
    std::fs::File::create(&path)?.write_all(text)?;
    Ok(path.to_string_lossy().into_owned())
}

/// Whole seconds, rounded up: at least one.
fn seconds(duration: Duration) -> u64 {
    duration.as_nanos().div_ceil(1_000_000_000).max(1) as u64
}

/// A duration in milliseconds, as most tools read it.
fn milliseconds(duration: Duration) -> String {
    format!("{}ms", duration.as_millis().max(1))
}

#[cfg(test)]
mod tests;
