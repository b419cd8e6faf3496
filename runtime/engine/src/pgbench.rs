//! pgbench: what the database carries alone, without HTTP, tokens or a candidate.
//!
//! The tool runs in the image of the database or from this machine, pinned to the generator's CPUs; its report becomes
//! [`PgbenchFacts`]. A tool that is missing, ends in failure, aborts a client or does not say what is asked is an error,
//! never a zero.

use std::future::Future;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::time::Duration;

use journal::{PgbenchFacts, RunId};
use plan::{CpuSet, PgbenchProcedure};
use tokio::io::AsyncWriteExt as _;

use crate::error::StepError;
use crate::host::{Exit, Output};
use crate::postgres::Server;
use crate::postgres::pinned::pinned;

/// How much longer than its window the tool may take: connecting, the last transactions.
const GRACE: Duration = Duration::from_secs(30);
/// Lines of what the tool said that are shown with a failure.
const LOG_LINES: usize = 20;

/// How pgbench is called: its arguments, environment and the script, which it reads from standard input (`-f -`).
#[derive(Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Arguments, without the program.
    pub arguments: Vec<String>,
    /// Environment: the password.
    pub env: Vec<(String, String)>,
    /// Standard input: the script.
    pub stdin: String,
    /// The tool must have ended by then.
    pub limit: Duration,
}

/// The password stays out of logs and panics.
impl std::fmt::Debug for Invocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Invocation").field("arguments", &self.arguments).field("limit", &self.limit).finish()
    }
}

impl Invocation {
    /// The same call for a runner that can't write to standard input: a command that reads the script from the
    /// environment, and the environment with it.
    pub fn without_stdin(&self) -> (Vec<String>, Vec<(String, String)>) {
        let shell = "printf '%s\\n' \"$PGBENCH_SCRIPT\" | exec pgbench \"$@\"";
        let command = ["sh", "-c", shell, "pgbench"].into_iter().map(str::to_owned);
        let mut env = self.env.clone();
        env.push(("PGBENCH_SCRIPT".to_owned(), self.stdin.clone()));
        (command.chain(self.arguments.iter().cloned()).collect(), env)
    }
}

/// A call that is under way.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Output, StepError>> + 'a>>;

/// Runs the tool against a database, with `runner` as the way to call it (a container of the database's image, or
/// [`local`]).
///
/// # Errors
/// When the tool can't be called, fails, or does not report.
pub async fn run<'a>(
    procedure: &PgbenchProcedure,
    server: &Server,
    database: &str,
    runner: impl FnOnce(Invocation) -> Running<'a>,
) -> Result<PgbenchFacts, StepError> {
    let seconds = procedure.window_ns.div_ceil(1_000_000_000).max(1);
    let invocation = invocation(procedure, server, database, seconds);
    let limit = invocation.limit;
    let output = match tokio::time::timeout(limit, runner(invocation)).await {
        Ok(output) => output?,
        Err(_) => {
            return Err(StepError::step(
                format!("pgbench was not done within {limit:.0?}"),
                format!("its window is {seconds} s"),
                "see in PostgreSQL's log what the statements of the script wait for",
            ));
        }
    };
    let log = || {
        let lines: Vec<&str> = output.stderr.lines().chain(output.stdout.lines()).collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|&line| line.to_owned()).collect()
    };
    if output.exit.code != 0 {
        // The first complaint is the reason; what follows repeats it for every client.
        let said = output.stderr.lines().find(|line| line.contains("error:") || line.contains("FATAL:"));
        return Err(StepError::step(
            format!("pgbench failed: {}", output.exit),
            said.or_else(|| output.stderr.lines().next()).unwrap_or("it said nothing").to_owned(),
            format!("try the script {} by hand against the database", procedure.script.path),
        )
        .with_log(log()));
    }
    report(&output.stdout).map_err(|why| {
        StepError::step("pgbench's report can't be used", why, "use pgbench of PostgreSQL 15 or later").with_log(log())
    })
}

/// Calls the `pgbench` of this machine, on these CPUs. It dies with us and when nobody waits for it any more.
pub fn local<'a>(program: &'a Path, run: &'a RunId, cpus: &'a CpuSet) -> impl FnOnce(Invocation) -> Running<'a> {
    move |invocation| {
        Box::pin(async move {
            let failed = |error: std::io::Error| {
                StepError::environment(
                    format!("pgbench ({}) could not be run", program.display()),
                    error.to_string(),
                    "install the package that has it (Debian: postgresql, Fedora: postgresql-contrib)",
                )
            };
            let mut command = tokio::process::Command::from(pinned(program, run, cpus, libc::SIGKILL).map_err(failed)?);
            command
                .args(&invocation.arguments)
                .envs(invocation.env)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .kill_on_drop(true);
            let mut child = command.spawn().map_err(failed)?;
            if let Some(mut stdin) = child.stdin.take() {
                // A tool that ends before it has read the script tells why itself.
                drop(stdin.write_all(invocation.stdin.as_bytes()).await);
            }
            let output = child.wait_with_output().await.map_err(failed)?;
            let code = output.status.code().or(output.status.signal().map(|signal| 128 + signal)).unwrap_or(-1);
            Ok(Output {
                exit: Exit { code: i64::from(code), out_of_memory: false },
                stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
                stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            })
        })
    }
}

fn invocation(procedure: &PgbenchProcedure, server: &Server, database: &str, seconds: u64) -> Invocation {
    let arguments = [
        ("-h", server.host.to_string()),
        ("-p", server.port.to_string()),
        ("-U", server.user.clone()),
        ("-M", "simple".to_owned()),
        ("-f", "-".to_owned()),
        ("-c", procedure.clients.to_string()),
        // More threads than clients are refused by the tool.
        ("-j", procedure.jobs.min(procedure.clients).max(1).to_string()),
        ("-T", seconds.to_string()),
        // With progress it also tells the standard deviation.
        ("-P", seconds.to_string()),
    ];
    let rate = procedure.rate.map(|rate| ("-R", rate.to_string()));
    let limit = procedure.latency_limit_ns.map(|ns| ("-L", (ns as f64 / 1e6).to_string()));
    // No vacuum: the tables are the study's, not the tool's.
    let mut words = vec!["-n".to_owned()];
    words.extend(arguments.into_iter().chain(rate).chain(limit).flat_map(|(name, value)| [name.to_owned(), value]));
    words.push(database.to_owned());
    Invocation {
        arguments: words,
        env: vec![
            ("PGPASSWORD".to_owned(), server.password.clone()),
            ("PGCONNECT_TIMEOUT".to_owned(), "10".to_owned()),
        ],
        stdin: procedure.script.text.clone(),
        limit: Duration::from_secs(seconds) + GRACE,
    }
}

/// Reads the report of pgbench 15 and later.
///
/// # Errors
/// What the report lacks, or what in it is no measurement.
pub fn report(text: &str) -> Result<PgbenchFacts, String> {
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
        lines.next().map(str::trim).ok_or_else(|| format!("it has no line `{name} …`"))
    };
    // A number and what follows it: `0.512 ms`, `7767.87 (without initial connection time)`.
    let number = |name: &str, unit: &str| {
        let text = value(name)?;
        let (digits, rest) = text.split_once(' ').unwrap_or((text, ""));
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        match digits.parse::<f64>() {
            Ok(number) if is_number && rest.starts_with(unit) => Ok(number),
            _ => Err(format!("`{name} {text}` is not a number with `{unit}` behind it")),
        }
    };
    let count = |name: &str| {
        let text = value(name)?;
        let digits = text.split([' ', '/']).next().unwrap_or_default();
        digits.parse::<u64>().map_err(|_| format!("`{name} {text}` is not a whole number"))
    };
    let transactions = count("number of transactions actually processed:")?;
    let failed = count("number of failed transactions:")?;
    if transactions == 0 {
        return Err(format!("no transaction was processed ({failed} failed)"));
    }
    // Where transactions failed, pgbench cannot leave them out of the latency, and says so behind the unit.
    let has_deviation = text.contains("latency stddev =");
    // These lines are there when there was a schedule.
    let when_there = |name: &str| if text.contains(name) { count(name).map(Some) } else { Ok(None) };
    let skipped = when_there("number of transactions skipped:")?;
    // `number of transactions above the 4.0 ms latency limit: 292/1480 (19.730%)`
    let late = match text.lines().find_map(|line| line.split_once(" ms latency limit: ")) {
        None => None,
        Some((_, rest)) => Some(
            rest.split('/')
                .next()
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(|| format!("`{rest}` is no count of late transactions"))?,
        ),
    };
    // `rate limit schedule lag: avg 0.664 (max 8.377) ms`
    let lag_ms = match text.lines().find_map(|line| line.strip_prefix("rate limit schedule lag: avg ")) {
        None => None,
        Some(rest) => {
            let lag = rest
                .strip_suffix(") ms")
                .and_then(|rest| rest.split_once(" (max "))
                .and_then(|(mean, max)| Some((mean.parse().ok()?, max.parse().ok()?)));
            Some(lag.ok_or_else(|| format!("`{rest}` is no lag of the schedule"))?)
        }
    };
    let facts = PgbenchFacts {
        transactions,
        failed,
        tps: number("tps =", "(without initial connection time)")?,
        latency_ms: number("latency average =", "ms")?,
        skipped,
        late,
        lag_ms,
        latency_stddev_ms: if has_deviation { Some(number("latency stddev =", "ms")?) } else { None },
    };
    if facts.tps > 0.0 {
        Ok(facts)
    } else {
        Err(format!("{transactions} transactions were processed at a rate of {} per second", facts.tps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = include_str!("../tests/postgres/pgbench-15.txt");

    /// What the versions printed, recorded.
    #[test]
    fn reads_what_the_versions_print() {
        let facts = |transactions, failed, tps, latency_ms, latency_stddev_ms| {
            Ok(PgbenchFacts { transactions, failed, tps, latency_ms, latency_stddev_ms, ..PgbenchFacts::default() })
        };
        for (text, expected) in [
            (PLAIN, facts(23_261, 0, 7_767.874_108, 0.512, Some(1.133))),
            (include_str!("../tests/postgres/pgbench-15-failed.txt"), facts(5_796, 12_558, 2_908.197_595, 0.434, None)),
            (include_str!("../tests/postgres/pgbench-17.txt"), facts(29_732, 0, 9_935.166_788, 0.400, Some(0.694))),
            (include_str!("../tests/postgres/pgbench-17-failed.txt"), facts(1_056, 2_691, 529.654_641, 2.128, None)),
        ] {
            assert_eq!(report(text), expected, "{text}");
        }
    }

    /// A schedule of 500 per second that four clients keep but for a few, and one of 3,000 that one client can't.
    #[test]
    fn a_schedule_tells_what_was_skipped_late_and_how_late() {
        let slow = include_str!("../tests/postgres/pgbench-15-skipped.txt");
        let facts = report(include_str!("../tests/postgres/pgbench-15-rate.txt")).expect("a report");
        assert_eq!((facts.skipped, facts.late, facts.lag_ms), (Some(22), Some(292), Some((0.664, 8.377))));
        let facts = report(slow).expect("a report");
        assert_eq!((facts.skipped, facts.late, facts.lag_ms), (Some(5_257), Some(662), Some((9.634, 10.0))));
        let facts = report(PLAIN).expect("a report");
        assert_eq!((facts.skipped, facts.late, facts.lag_ms), (None, None, None));
        for (from, to) in [("skipped: 5257", "skipped: many"), ("662/662", "x/662"), ("(max 10.000)", "(most 10.000)")]
        {
            assert!(report(&slow.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn what_is_no_measurement_is_refused_by_name() {
        for (from, to, says) in [
            ("actually processed: 23261", "actually processed: 0", "no transaction was processed"),
            ("number of transactions actually processed: 23261\n", "", "no line `number of transactions actually"),
            ("actually processed: 23261", "actually processed: many", "is not a whole number"),
            ("number of failed transactions: 0 (0.000%)\n", "", "no line `number of failed transactions:"),
            ("tps = 7767.874108 (without initial connection time)\n", "", "no line `tps ="),
            ("tps = 7767.874108", "tps = NaN", "`tps = NaN (without initial connection time)` is not a number"),
            ("tps = 7767.874108", "tps = -1", "is not a number"),
            ("tps = 7767.874108", "tps = 0.000000", "at a rate of 0 per second"),
            ("(without initial connection time)", "(including connections establishing)", "is not a number with"),
            ("latency average = 0.512 ms\n", "", "no line `latency average ="),
            (
                "latency average = 0.512 ms",
                "latency average = 0.512 s",
                "`latency average = 0.512 s` is not a number with `ms`",
            ),
            ("latency stddev = 1.133 ms", "latency stddev = nan ms", "`latency stddev = nan ms` is not a number"),
        ] {
            let changed = PLAIN.replace(from, to);
            assert_ne!(changed, PLAIN, "{from}");
            let told = report(&changed).expect_err(says);
            assert!(told.contains(says), "{told}");
        }
        assert!(report("").is_err());
    }
}
