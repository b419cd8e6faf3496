//! From a job to its facts: check it, open the connections, run the threads, join their books.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use journal::facts::{GeneratorFacts, LoadFacts};
use plan::CpuSet;

use crate::connection::{self, Connection};
use crate::error::LoadError;
use crate::program::Program;
use crate::sys;
use crate::tally::{Tally, Window};
use crate::wire::Job;
use crate::worker::{Account, Worker};

/// A job whose connections are open.
pub struct Prepared {
    program: Program,
    connections: Vec<Connection>,
    cpus: CpuSet,
}

/// File descriptors that the process needs besides its connections.
const OTHER_FILES: u64 = 64;
/// A start farther off than an hour is an instant of another clock.
const LONGEST_NOTICE_NS: u64 = 3_600_000_000_000;
/// How long the target may take to accept one connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Checks a job and opens its connections.
///
/// # Errors
/// When the job contradicts itself, or a connection can't be opened.
pub fn prepare(job: &Job) -> Result<Prepared, LoadError> {
    let program = Program::new(job)?;
    let raise = "raise the limit (`ulimit -n`)";
    let limit = sys::raise_open_files().map_err(LoadError::system("read its limit of open files", raise))?;
    if limit < u64::from(job.connections) + OTHER_FILES {
        return Err(LoadError::job(
            format!(
                "{} connections need {} open files, the limit is {limit}",
                job.connections,
                u64::from(job.connections) + OTHER_FILES
            ),
            "ask for fewer connections or raise the limit (`ulimit -n`)",
        ));
    }
    let connections = (1..=job.connections).map(|number| {
        connection::open(job.target, CONNECT_WITHIN)
            .map(Connection::open)
            .map_err(|error| LoadError::connect(job.target, number, job.connections, &error))
    });
    let connections = connections.collect::<Result<_, LoadError>>()?;
    Ok(Prepared { program, connections, cpus: job.cpus.clone() })
}

/// Prepares a job and runs it from an instant of CLOCK_MONOTONIC on.
///
/// # Errors
/// When it can't be prepared, is stopped, or the system fails it.
pub fn run(job: &Job, at_ns: u64, stop: &AtomicBool) -> Result<LoadFacts, LoadError> {
    prepare(job)?.run(at_ns, stop)
}

impl Prepared {
    /// Connections that are open.
    pub fn connected(&self) -> u32 {
        self.program.connections
    }

    /// Runs the job. The window is [at + warm-up, at + warm-up + window). Setting `stop` ends it at once.
    ///
    /// # Errors
    /// When it is stopped, started too late, or the system fails it.
    pub fn run(self, at_ns: u64, stop: &AtomicBool) -> Result<LoadFacts, LoadError> {
        let notice_ns = at_ns.saturating_sub(sys::now_ns());
        if notice_ns > LONGEST_NOTICE_NS {
            return Err(LoadError::job(
                format!("the start lies {:.0} s in the future", notice_ns as f64 / 1e9),
                "give an instant of this machine's CLOCK_MONOTONIC within the next hour",
            ));
        }
        let Self { program, mut connections, cpus } = self;
        let mut workers = Vec::new();
        for thread in 0..program.threads {
            let rest = connections.split_off(program.connections_of(thread) as usize);
            let own = std::mem::replace(&mut connections, rest);
            let cpu = cpus.cpus().get(thread as usize % cpus.len().max(1)).copied();
            workers.push((thread, cpu, Worker::new(&program, thread, own)?));
        }
        let accounts = std::thread::scope(|scope| {
            let threads: Vec<_> = workers
                .into_iter()
                .map(|(thread, cpu, worker)| {
                    std::thread::Builder::new().name(format!("load-{thread}")).spawn_scoped(scope, move || {
                        if let Some(cpu) = cpu {
                            let next = "give the load role CPUs that this machine has";
                            sys::pin_to_cpu(cpu).map_err(LoadError::system(format!("run on CPU {cpu}"), next))?;
                        }
                        worker.run(at_ns, stop)
                    })
                })
                .collect();
            let accounts: Vec<Result<Account, LoadError>> = threads
                .into_iter()
                .map(|thread| match thread {
                    Ok(thread) => match thread.join() {
                        Ok(account) => account,
                        Err(panic) => Err(LoadError::Panicked(panic_text(panic.as_ref()))),
                    },
                    Err(error) => Err(LoadError::system("start a thread", "close other programs")(error)),
                })
                .collect();
            accounts.into_iter().collect::<Result<Vec<_>, _>>()
        })?;
        Ok(join(&program, accounts))
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "without a message".into())
}

/// Joins the books of all threads. Histograms are merged as histograms.
fn join(program: &Program, accounts: Vec<Account>) -> LoadFacts {
    let threads = accounts.len() as u32;
    let mut facts = LoadFacts {
        connections: program.connections,
        rate: program.rate,
        slice_ns: Window::slice(program.window),
        generator: GeneratorFacts {
            cpu_ns: Some(0),
            user_ns: Some(0),
            involuntary_switches: Some(0),
            threads,
            ..GeneratorFacts::default()
        },
        ..LoadFacts::default()
    };
    let mut tallies: Vec<Tally> = program.lanes.iter().map(|_| Tally::new(program.window)).collect();
    for account in accounts {
        facts.connections_used += account.connections_used;
        facts.reconnects += account.reconnects;
        facts.unsolicited += account.unsolicited;
        let generator = &mut facts.generator;
        let add = |sum: Option<u64>, part: Option<u64>| Some(sum? + part?);
        generator.cpu_ns = add(generator.cpu_ns, account.usage.map(|usage| usage.cpu_ns));
        generator.user_ns = add(generator.user_ns, account.usage.map(|usage| usage.user_ns));
        generator.involuntary_switches =
            add(generator.involuntary_switches, account.usage.map(|usage| usage.involuntary_switches));
        generator.stalls.extend(account.stalls);
        generator.max_backlog += account.max_backlog;
        for (mine, theirs) in tallies.iter_mut().zip(account.tallies) {
            mine.merge(theirs);
        }
    }
    facts.generator.stalls.sort_by_key(|stall| (stall.at_ns, stall.for_ns));
    facts.streams = program
        .lanes
        .iter()
        .zip(&tallies)
        .map(|(lane, tally)| tally.to_facts(&lane.name, &lane.checks, program.rate.is_some()))
        .collect();
    facts
}
