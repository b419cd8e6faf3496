//! From a job to its facts: check it, open the connections, run the threads, join their books.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use journal::facts::{GeneratorFacts, LoadFacts, ThreadFacts, TransportFacts};
use plan::CpuSet;

use crate::connection::{self, Connection};
use crate::course::{self, Collector, Hear, NO_CUT, Shelf, Signals};
use crate::error::LoadError;
use crate::layered::{self, Crew};
use crate::own::{self, Receiving};
use crate::program::Program;
use crate::sys;
use crate::tally::{Tally, Window};
use crate::wire::{Engine, Job};
use crate::worker::{Account, Worker};

/// A job whose connections are open.
pub struct Prepared {
    program: Arc<Program>,
    senders: Senders,
    cpus: CpuSet,
}

/// What sends it, with its open connections.
enum Senders {
    /// Plain HTTP/1.1, on epoll or io_uring.
    Plain(Vec<Connection>),
    /// TLS, HTTP/2 and proxies, on hyper.
    Layered(Crew),
}

/// The name of that engine in facts.
pub const IO_URING: &str = "io_uring";

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
    let program = Arc::new(Program::new(job)?);
    if job.engine == Engine::Uring {
        sys::uring::probe().map_err(|error| {
            let why = match error.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => {
                    " (a seccomp profile such as Docker's, or kernel.io_uring_disabled, forbids it)"
                }
                Some(libc::ENOSYS) => " (the kernel was built without it)",
                Some(libc::EINVAL) => " (it takes Linux 6.1 or later)",
                _ => "",
            };
            let next = "leave the engine at epoll, or run it where io_uring is allowed";
            LoadError::system(format!("use io_uring{why}"), next)(error)
        })?;
    }
    let raise = "raise the limit (`ulimit -n`)";
    let limit = sys::raise_open_files().map_err(LoadError::system("read its limit of open files", raise))?;
    let count = program.own_connections();
    if limit < u64::from(count) + OTHER_FILES {
        return Err(LoadError::job(
            format!("{count} connections need {} open files, the limit is {limit}", u64::from(count) + OTHER_FILES),
            "ask for fewer connections or raise the limit (`ulimit -n`)",
        ));
    }
    if !job.transport.is_plain() {
        let crew = Crew::new(job, &program)?;
        return Ok(Prepared { program, senders: Senders::Layered(crew), cpus: job.cpus.clone() });
    }
    // Where each request has its own, one connection shows that somebody listens; it is not used.
    let wanted = if job.keep_alive { count } else { 1 };
    let open = connection::open_all(job.target, wanted, CONNECT_WITHIN)
        .map_err(|(number, error)| LoadError::connect(job.target, number, count, &error))?;
    let connections = if job.keep_alive {
        open.into_iter().map(Connection::open).collect()
    } else {
        (0..count).map(|_| Connection::place()).collect()
    };
    Ok(Prepared { program, senders: Senders::Plain(connections), cpus: job.cpus.clone() })
}

/// How a prepared job is run.
#[derive(Clone, Copy)]
pub struct Course<'a> {
    /// When it begins, on CLOCK_MONOTONIC. The window is [at + warm-up, at + warm-up + window).
    pub at_ns: u64,
    /// How it is steered meanwhile.
    pub signals: Signals<'a>,
    /// Who hears what came so far, each time that this much of the window has passed, ns. Whoever hears delays nothing.
    pub intervals: Option<(u64, Hear<'a>)>,
}

/// Prepares a job and runs it from an instant of CLOCK_MONOTONIC on.
///
/// # Errors
/// When it can't be prepared, is stopped, or the system fails it.
pub fn run(job: &Job, at_ns: u64, stop: &AtomicBool) -> Result<LoadFacts, LoadError> {
    prepare(job)?.run(at_ns, stop)
}

impl Prepared {
    /// Connections that are open, or may be open at a time where each request has its own.
    pub fn connected(&self) -> u32 {
        self.program.own_connections()
    }

    /// Runs the job. The window is [at + warm-up, at + warm-up + window). Setting `stop` ends it at once.
    ///
    /// # Errors
    /// When it is stopped, started too late, or the system fails it.
    pub fn run(self, at_ns: u64, stop: &AtomicBool) -> Result<LoadFacts, LoadError> {
        let signals = Signals { stop, cut_at: &AtomicU64::new(NO_CUT) };
        self.run_course(Course { at_ns, signals, intervals: None })
    }

    /// Runs the job and lets it be steered and watched on its way.
    ///
    /// # Errors
    /// When it is stopped, started too late, or the system fails it.
    pub fn run_course(self, course: Course<'_>) -> Result<LoadFacts, LoadError> {
        let Course { at_ns, signals, intervals } = course;
        let notice_ns = at_ns.saturating_sub(sys::now_ns());
        if notice_ns > LONGEST_NOTICE_NS {
            return Err(LoadError::job(
                format!("the start lies {:.0} s in the future", notice_ns as f64 / 1e9),
                "give an instant of this machine's CLOCK_MONOTONIC within the next hour",
            ));
        }
        let Self { program, senders, cpus } = self;
        let program = program.as_ref();
        let (window_start, window_end) = (at_ns + program.warm_up, at_ns + program.warm_up + program.window);
        let shelves: Arc<Vec<Shelf>> = Arc::new(match intervals {
            Some(_) => program.own.clone().map(|_| Shelf::new(program)).collect(),
            None => Vec::new(),
        });
        let pinned: Vec<Option<u32>> =
            (0..program.own.len()).map(|index| cpus.cpus().get(index % cpus.len().max(1)).copied()).collect();
        let mut transport = None;
        let sent_again = AtomicU64::new(0);
        let mut workers = Vec::new();
        match senders {
            Senders::Plain(mut connections) => {
                for (thread, cpu) in program.own.clone().zip(&pinned) {
                    let rest = connections.split_off(program.connections_of(thread) as usize);
                    let own = std::mem::replace(&mut connections, rest);
                    workers.push((thread, *cpu, Hand::Plain(Box::new(Worker::new(program, thread, own)?))));
                }
            }
            Senders::Layered(crew) => {
                transport = Some(crew.facts());
                let hands = crew.into_hands().into_iter().map(Hand::Layered);
                let threads = program.own.clone().zip(&pinned);
                workers.extend(threads.zip(hands).map(|((thread, cpu), hand)| (thread, *cpu, hand)));
            }
        }
        let mut collector = intervals
            .map(|(every_ns, hear)| (every_ns, Collector::new(program, &shelves, window_start, every_ns.max(1), hear)));
        let every_ns = collector.as_ref().map_or(0, |(every_ns, _)| *every_ns);
        let ended = AtomicBool::new(false);
        let used = CpuSet::new(pinned.iter().flatten().copied());
        let running = &AtomicU32::new(workers.len() as u32);
        let waiter = std::thread::current();
        let (mut accounts, steal_ns) = std::thread::scope(|scope| {
            if let Some((_, collector)) = &mut collector {
                let ended = &ended;
                scope.spawn(move || collector.run(ended));
            }
            let (shelves, sent_again) = (&shelves, &sent_again);
            let threads: Vec<_> = workers
                .into_iter()
                .enumerate()
                .map(|(index, (thread, cpu, hand))| {
                    let shelf = shelves.get(index);
                    let ending = Ending { running, waiter: waiter.clone() };
                    std::thread::Builder::new().name(format!("load-{thread}")).spawn_scoped(scope, move || {
                        let _ending = ending;
                        let account = match hand {
                            Hand::Plain(worker) => {
                                if let Some(cpu) = cpu {
                                    let next = "give the load role CPUs that this machine has";
                                    sys::pin_to_cpu(cpu)
                                        .map_err(LoadError::system(format!("run on CPU {cpu}"), next))?;
                                }
                                worker.run(at_ns, signals, shelf.map(|shelf| (every_ns, shelf)))
                            }
                            Hand::Layered(hand) => {
                                let intervals = shelf.map(|_| (every_ns, Arc::clone(shelves)));
                                hand.run(at_ns, signals, intervals, sent_again)
                            }
                        };
                        if let Some(shelf) = shelf {
                            shelf.close();
                        }
                        account
                    })
                })
                .collect();
            // Before the window begins and after it has ended: the reading itself must not take the generator's CPU within it.
            wait_until(window_start.saturating_sub(STEAL_READ_NS), running);
            let before = own::stolen_ns(&used);
            wait_until(window_end, running);
            let after = own::stolen_ns(&used);
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
            ended.store(true, Ordering::Release);
            let accounts = accounts.into_iter().collect::<Result<Vec<_>, LoadError>>()?;
            Ok::<_, LoadError>((accounts, after.zip(before).and_then(|(after, before)| after.checked_sub(before))))
        })?;
        let rest: Vec<Vec<Tally>> = accounts.iter_mut().map(|account| std::mem::take(&mut account.tallies)).collect();
        let tallies = match collector {
            Some((_, collector)) => collector.finish(rest),
            None => {
                let mut all = course::books(program);
                rest.into_iter().for_each(|books| course::merge(&mut all, books));
                all
            }
        };
        let mut facts = join(program, &pinned, accounts, &tallies);
        facts.generator.steal_ns = steal_ns;
        facts.transport = Some(TransportFacts {
            sent_again: sent_again.load(Ordering::Relaxed),
            ..transport.unwrap_or_else(|| TransportFacts {
                engine: match program.engine {
                    Engine::Epoll => "epoll",
                    Engine::Uring => IO_URING,
                }
                .into(),
                protocol: "HTTP/1.1".into(),
                in_flight: 1,
                ..TransportFacts::default()
            })
        });
        Ok(facts)
    }
}

/// How long before the window steal is read.
const STEAL_READ_NS: u64 = 3_000_000;

/// Tells who waits when a generating thread has ended, however it ended.
struct Ending<'a> {
    running: &'a AtomicU32,
    waiter: std::thread::Thread,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::AcqRel);
        self.waiter.unpark();
    }
}

/// Sleeps until an instant of CLOCK_MONOTONIC, or until no thread runs any more.
fn wait_until(at_ns: u64, running: &AtomicU32) {
    while running.load(Ordering::Acquire) > 0 {
        let Some(left) = at_ns.checked_sub(sys::now_ns()).filter(|left| *left > 0) else { return };
        std::thread::park_timeout(Duration::from_nanos(left));
    }
}

/// One thread of a job, ready to run.
enum Hand<'a> {
    /// On epoll, to be pinned.
    Plain(Box<Worker<'a>>),
    /// On hyper; its thread lives already.
    Layered(layered::Hand),
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "without a message".into())
}

/// Joins the books of all threads. Histograms are merged as histograms.
fn join(program: &Program, cpus: &[Option<u32>], accounts: Vec<Account>, tallies: &[Tally]) -> LoadFacts {
    let threads = accounts.len() as u32;
    let mut facts = LoadFacts {
        connections: program.own_connections(),
        rate: program.own_rate(),
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
    let mut receiving = Receiving::new();
    let (mut timed, mut silences) = (0, Vec::new());
    for (account, cpu) in accounts.into_iter().zip(cpus) {
        timed += account.timed;
        receiving.merge(&account.receiving);
        silences.push(account.silences);
        facts.connections_used += account.connections_used;
        facts.reconnects += account.reconnects;
        facts.unsolicited += account.unsolicited;
        let generator = &mut facts.generator;
        let add = |sum: Option<u64>, part: Option<u64>| Some(sum? + part?);
        generator.cpu_ns = add(generator.cpu_ns, account.usage.map(|usage| usage.cpu_ns));
        generator.user_ns = add(generator.user_ns, account.usage.map(|usage| usage.user_ns));
        generator.involuntary_switches =
            add(generator.involuntary_switches, account.usage.map(|usage| usage.involuntary_switches));
        generator.by_thread.push(ThreadFacts {
            cpu: *cpu,
            cpu_ns: account.usage.map(|usage| usage.cpu_ns),
            polling_ns: account.polling_ns,
            involuntary_switches: account.usage.map(|usage| usage.involuntary_switches),
        });
        generator.stalls.extend(account.stalls);
        generator.max_backlog += account.max_backlog;
        facts.took_ns = facts.took_ns.max(account.took_ns);
    }
    facts.generator.receive = receiving.to_facts(timed);
    facts.silences = own::of_all(&silences);
    facts.generator.stalls.sort_by_key(|stall| (stall.at_ns, stall.for_ns));
    facts.streams = course::facts(program, tallies);
    facts
}
