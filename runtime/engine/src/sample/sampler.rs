//! The sampler's thread: reads at the window's start and end, memory in between, and what follows from both.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use journal::{CounterReading, Counters, Finding, HostFacts, MemoryFacts, PaceFacts, RepetitionFacts, WindowFacts};
use plan::CpuSet;

use super::clock::{self, Clocks};
use super::pace::{Window, Witness};
use super::{counters, machine, pin, tree};
use crate::host::CounterSource;

/// A reading that comes later than this after the window's start or end is told as a finding: as a share of the
/// window, and at least this long.
const LATE_SHARE: f64 = 0.01;
const LATE_NS: u64 = 20_000_000;

/// Reading the memory of processes walks their page tables, which can take longer than the pause between two looks.
/// Then the pause is stretched to this many times what a look costs, which keeps the sampler below 0.5 % of a CPU.
const MEMORY_PAUSE: u64 = 1_000;

/// Who belongs to a tree of processes is found anew this often, since that reads a file of every process there is.
const MEMBERS_NS: u64 = 2_000_000_000;

/// The processes that count are looked for this long before an end of the window, since that takes milliseconds.
const PREPARE_NS: u64 = 60_000_000;

/// What to sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleSpec {
    /// Counters of the candidate.
    pub candidate: Option<CounterSource>,
    /// CPUs of the candidate in this cell.
    pub candidate_cpus: CpuSet,
    /// Counters of the database.
    pub database: Option<CounterSource>,
    /// CPUs of the database.
    pub database_cpus: CpuSet,
    /// CPUs whose pace is witnessed: those of what is measured.
    pub pace_cpus: CpuSet,
    /// CPUs whose times and frequency are told: those of all roles.
    pub all_cpus: CpuSet,
    /// CPUs that the sampler's own thread keeps to: the load's.
    pub own_cpus: CpuSet,
    /// Time between two looks at memory.
    pub memory_every: Duration,
}

impl SampleSpec {
    /// Nothing to sample but the machine's CPU times, from wherever the caller runs. Fields are added to this.
    pub fn of_machine(all_cpus: CpuSet) -> Self {
        Self {
            candidate: None,
            candidate_cpus: CpuSet::default(),
            database: None,
            database_cpus: CpuSet::default(),
            pace_cpus: CpuSet::default(),
            own_cpus: all_cpus.clone(),
            all_cpus,
            memory_every: Duration::from_millis(100),
        }
    }
}

/// What was sampled.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sampled {
    /// The window on the three clocks.
    pub window: WindowFacts,
    /// Counters of the candidate.
    pub candidate: Option<Counters>,
    /// Counters of the database.
    pub database: Option<Counters>,
    /// The machine.
    pub host: HostFacts,
    /// The pace of each witnessed CPU; one without a sample is missing.
    pub pace: BTreeMap<u32, PaceFacts>,
    /// What could not be read, and why.
    pub findings: Vec<Finding>,
    /// CPU time of the sampler's thread in the window, ns, without the witnesses'.
    pub own_cpu_ns: u64,
}

impl Sampled {
    /// Enters everything into a repetition's facts.
    pub fn fill(self, facts: &mut RepetitionFacts) {
        facts.window = self.window;
        facts.candidate = self.candidate;
        facts.database = self.database;
        facts.host = self.host;
        facts.pace = self.pace;
        facts.findings.extend(self.findings);
    }
}

/// A sampler at work. Dropping it ends it without a result.
#[derive(Debug)]
pub struct Sampler {
    window: Arc<Window>,
    tell: Option<mpsc::Sender<(u64, u64)>>,
    thread: Option<JoinHandle<Sampled>>,
}

impl Sampler {
    /// Opens every file, starts the witnesses and waits for the window to be told. What fails here becomes a finding.
    pub fn start(spec: SampleSpec) -> Self {
        let window = Arc::new(Window::new());
        let (tell, told) = mpsc::channel();
        let shared = Arc::clone(&window);
        let thread =
            std::thread::Builder::new().name("sampler".to_owned()).spawn(move || sample(&spec, &shared, &told));
        Self { window, tell: Some(tell), thread: thread.ok() }
    }

    /// Tells the window, as instants of CLOCK_MONOTONIC; before its start. Only the first call counts.
    pub fn window(&mut self, start_ns: u64, end_ns: u64) {
        if let Some(tell) = self.tell.take() {
            self.window.set(start_ns, end_ns);
            // A thread that is gone has no receiver; `finish` tells.
            let _gone = tell.send((start_ns, end_ns));
        }
    }

    /// Waits for the window's end, and gives what was sampled.
    pub fn finish(mut self) -> Sampled {
        self.tell = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(sampled)) => sampled,
            Some(Err(_)) => failed("the sampler's thread panicked"),
            None => failed("the sampler's thread could not be started"),
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.tell = None;
        self.window.finish();
        if let Some(thread) = self.thread.take() {
            // Nobody asks for the result any more.
            let _unasked = thread.join();
        }
    }
}

fn failed(why: &str) -> Sampled {
    Sampled { findings: vec![finding("sampler", why)], ..Sampled::default() }
}

fn finding(what: &str, why: impl Into<String>) -> Finding {
    Finding { what: what.to_owned(), why: why.into() }
}

/// The thread.
fn sample(spec: &SampleSpec, window: &Arc<Window>, told: &mpsc::Receiver<(u64, u64)>) -> Sampled {
    let mut sampled = Sampled::default();
    if let Err(error) = pin::pin_self(&spec.own_cpus) {
        let why = format!("it can't be bound to the CPUs {}: {error}", spec.own_cpus);
        sampled.findings.push(finding("sampler", why));
    }
    pin::wake_exactly();
    let witnesses: Vec<Result<Witness, (u32, String)>> = spec
        .pace_cpus
        .cpus()
        .iter()
        .map(|&cpu| Witness::start(cpu, Arc::clone(window)).map_err(|why| (cpu, why)))
        .collect();
    let mut roles = Roles {
        candidate: spec.candidate.as_ref().map(|source| Role::open("candidate", source, &spec.candidate_cpus)),
        database: spec.database.as_ref().map(|source| Role::open("database", source, &spec.database_cpus)),
    };
    let machine = machine::Reader::open(&spec.all_cpus);

    match told.recv() {
        Ok((start_ns, end_ns)) => {
            run(spec, window, (start_ns, end_ns), &mut roles, &machine, &mut sampled);
            if window.is_over() {
                sampled.findings.push(finding("sampler", "it was ended before the window was over"));
            }
        }
        Err(_) => sampled.findings.push(finding("sampler", "no window was told")),
    }
    window.finish();
    sampled.candidate = roles.candidate.map(|role| role.close(&mut sampled.findings));
    sampled.database = roles.database.map(|role| role.close(&mut sampled.findings));
    for witness in witnesses {
        let (cpu, facts) = witness.map_or_else(|(cpu, why)| (cpu, Err(why)), Witness::join);
        match facts {
            Ok(facts) if facts.samples.count > 0 => {
                sampled.pace.insert(cpu, facts);
            }
            Ok(_) => sampled.findings.push(finding(&format!("pace cpu {cpu}"), "no sample lies in the window")),
            Err(why) => sampled.findings.push(finding(&format!("pace cpu {cpu}"), why)),
        }
    }
    sampled
}

/// From the window's start to its end.
fn run(
    spec: &SampleSpec,
    window: &Window,
    (start_ns, end_ns): (u64, u64),
    roles: &mut Roles,
    machine: &machine::Reader,
    sampled: &mut Sampled,
) {
    let mut ours = vec![std::process::id()];
    // One look before the window: it tells what a look costs.
    roles.prepare();
    roles.each(|role| role.look_at_memory(spec.memory_every));
    let own_before = clock::thread_cpu_ns();
    let start = Edge::read_at(start_ns, window, roles, machine, &mut ours);
    roles.each(|role| role.take_start(spec.memory_every, (start_ns, end_ns)));
    let prepare_ns = end_ns.saturating_sub(PREPARE_NS);
    let mut members_ns = start_ns + MEMBERS_NS;
    while !window.is_over() && clock::monotonic_ns() < prepare_ns {
        if clock::monotonic_ns() >= members_ns {
            roles.prepare();
            members_ns += MEMBERS_NS;
        }
        roles.each(|role| role.look_if_due(spec.memory_every, prepare_ns));
        sleep_unless_over(roles.next_look().map_or(prepare_ns, |next| next.min(prepare_ns)), window);
    }
    let end = Edge::read_at(end_ns, window, roles, machine, &mut ours);
    roles.each(Role::take_end);
    sampled.own_cpu_ns = clock::thread_cpu_ns() - own_before;

    let (at_start, at_end) = (start.clocks.at(start_ns), end.clocks.at(end_ns));
    sampled.window = WindowFacts {
        start_ns,
        end_ns,
        wall_start_ns: at_start.wall_ns,
        wall_end_ns: at_end.wall_ns,
        boot_start_ns: at_start.boot_ns,
        boot_end_ns: at_end.boot_ns,
        declared_ns: end_ns.saturating_sub(start_ns),
    };
    let allowed_ns = LATE_NS.max((end_ns.saturating_sub(start_ns) as f64 * LATE_SHARE) as u64);
    for (edge, due, clocks) in [("start", start_ns, start.clocks), ("end", end_ns, end.clocks)] {
        let late = clocks.monotonic_ns.saturating_sub(due);
        if late > allowed_ns {
            let why = format!("the counters were read {:.1} ms after the window's {edge}", late as f64 / 1e6);
            sampled.findings.push(finding("sampler", why));
        }
    }
    fill_host(spec, &start, &end, sampled);
}

/// Sleeps until an instant, in pieces so that an end is noticed.
fn sleep_unless_over(until_ns: u64, window: &Window) {
    const PIECE_NS: u64 = 200_000_000;
    loop {
        let now = clock::monotonic_ns();
        if now >= until_ns || window.is_over() {
            return;
        }
        clock::sleep_until(until_ns.min(now + PIECE_NS));
    }
}

/// Everything but the roles' memory, read at one end of the window.
struct Edge {
    clocks: Clocks,
    machine: machine::Reading,
    /// CPU time of this process and everything that it started, and of both roles where these are not among them; ns.
    ours_ns: Result<u64, String>,
}

impl Edge {
    /// Finds the processes that count, waits for the instant and reads: the roles' counters first, for they make the
    /// figures, then the machine.
    fn read_at(at_ns: u64, window: &Window, roles: &mut Roles, machine: &machine::Reader, ours: &mut Vec<u32>) -> Self {
        sleep_unless_over(at_ns.saturating_sub(PREPARE_NS), window);
        if let Ok(snapshot) = tree::Snapshot::take() {
            roles.each(|role| role.reader.prepare(&snapshot));
            if let Ok(found) = snapshot.members(std::process::id()) {
                *ours = found;
            }
        }
        // From here to the last reading some 100 µs of work: the generator may wait that long, the readings may not.
        pin::take_precedence();
        sleep_unless_over(at_ns, window);
        let clocks = Clocks::now();
        roles.each(Role::read_cpu);
        let machine = machine.read();
        let ours_ns = tree::cpu_ns(ours).map(|ns| ns + roles.apart_cpu_ns());
        pin::give_up_precedence();
        Self { clocks, machine, ours_ns }
    }
}

fn fill_host(spec: &SampleSpec, start: &Edge, end: &Edge, sampled: &mut Sampled) {
    let findings = &mut sampled.findings;
    let host = &mut sampled.host;
    match (&start.machine.cpus, &end.machine.cpus) {
        (Ok(before), Ok(after)) => host.cpus = machine::between(before, after),
        (Err(why), _) | (_, Err(why)) => findings.push(finding("host cpu", why.clone())),
    }
    for cpu in spec.all_cpus.cpus() {
        if host.cpus.contains_key(cpu) || start.machine.cpus.is_err() || end.machine.cpus.is_err() {
            continue;
        }
        findings.push(finding(&format!("host cpu {cpu}"), "/proc/stat does not tell its times, or they ran backwards"));
    }
    host.frequency_mhz = start
        .machine
        .frequency_mhz
        .iter()
        .filter_map(|(cpu, before)| Some((*cpu, (*before, *end.machine.frequency_mhz.get(cpu)?))))
        .collect();
    host.pressure_some_us = difference(start.machine.pressure_some_us, end.machine.pressure_some_us);
    host.foreign_cpu_ns = match (&start.ours_ns, &end.ours_ns) {
        (Ok(before), Ok(after)) => difference(start.machine.all_tasks_ns, end.machine.all_tasks_ns)
            // The parts are read some milliseconds apart, and ticks are samples: a little below nothing is nothing.
            .map(|all| all.saturating_sub(after.saturating_sub(*before))),
        (Err(why), _) | (_, Err(why)) => {
            findings.push(finding("foreign cpu", why.clone()));
            None
        }
    };
}

fn difference(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    after?.checked_sub(before?)
}

/// The measured roles.
struct Roles {
    candidate: Option<Role>,
    database: Option<Role>,
}

impl Roles {
    fn each(&mut self, act: impl FnMut(&mut Role)) {
        self.candidate.iter_mut().chain(&mut self.database).for_each(act);
    }

    /// Finds the processes of roles that consist of such.
    fn prepare(&mut self) {
        if self.candidate.iter().chain(&self.database).any(|role| role.reader.is_of_processes())
            && let Ok(snapshot) = tree::Snapshot::take()
        {
            self.each(|role| role.reader.prepare(&snapshot));
        }
    }

    fn next_look(&self) -> Option<u64> {
        self.candidate.iter().chain(&self.database).map(|role| role.next_look_ns).min()
    }

    /// CPU time of roles that are not processes of ours, as read last, ns.
    fn apart_cpu_ns(&self) -> u64 {
        self.candidate
            .iter()
            .chain(&self.database)
            .filter(|role| role.apart)
            .filter_map(|role| role.read.as_ref().ok())
            .map(|reading| reading.cpu_ns)
            .sum()
    }
}

/// One role's counters across the window.
struct Role {
    name: &'static str,
    reader: counters::Reader,
    counters: Counters,
    /// Whether its processes are not descendants of this one.
    apart: bool,
    read: Result<CounterReading, String>,
    problems: Vec<(&'static str, String)>,
    memory_bytes: Option<u64>,
    /// Start of the window, once it has begun.
    window_start_ns: Option<u64>,
    look_took_ns: u64,
    next_look_ns: u64,
}

impl Role {
    fn open(name: &'static str, source: &CounterSource, cpus: &CpuSet) -> Self {
        let apart = match source {
            CounterSource::CgroupV1 { .. } | CounterSource::CgroupV2 { .. } => true,
            CounterSource::Processes { root } => {
                tree::members(std::process::id()).is_ok_and(|members| !members.contains(root))
            }
        };
        let reader = counters::Reader::open(source);
        let counters = Counters { cpus: u32::try_from(cpus.len()).unwrap_or(u32::MAX), ..Counters::default() };
        Self {
            name,
            reader,
            counters,
            apart,
            read: Err("it was not read".to_owned()),
            problems: Vec::new(),
            memory_bytes: None,
            window_start_ns: None,
            look_took_ns: 0,
            next_look_ns: 0,
        }
    }

    fn read_cpu(&mut self) {
        self.read = self.reader.cpu();
    }

    fn look_at_memory(&mut self, every: Duration) {
        let before = clock::monotonic_ns();
        let cpu_before = clock::thread_cpu_ns();
        match self.reader.memory() {
            Ok(bytes) => {
                self.memory_bytes = Some(bytes);
                if let Some(start_ns) = self.window_start_ns {
                    self.note_memory(before.saturating_sub(start_ns), bytes);
                }
            }
            Err(why) => {
                self.memory_bytes = None;
                self.problem("memory", why);
            }
        }
        self.look_took_ns = clock::thread_cpu_ns() - cpu_before;
        let pause = (every.as_nanos() as u64).max(self.look_took_ns * MEMORY_PAUSE);
        self.next_look_ns = before + pause;
    }

    /// A look that could last beyond the window's end would make the reading there late, so it is left out.
    fn look_if_due(&mut self, every: Duration, end_ns: u64) {
        let now = clock::monotonic_ns();
        if now < self.next_look_ns {
            return;
        }
        if now + 2 * self.look_took_ns >= end_ns {
            self.next_look_ns = u64::MAX;
            return;
        }
        self.look_at_memory(every);
    }

    fn note_memory(&mut self, after_ns: u64, bytes: u64) {
        self.counters.memory_peak_bytes = self.counters.memory_peak_bytes.max(Some(bytes));
        if let Some(memory) = &mut self.counters.memory {
            memory.see(after_ns, bytes);
        }
    }

    fn take_start(&mut self, every: Duration, (start_ns, end_ns): (u64, u64)) {
        self.window_start_ns = Some(start_ns);
        self.counters.memory = Some(MemoryFacts::over(end_ns.saturating_sub(start_ns)));
        // The memory of a moment ago counts as that of the start; where it is cheap it is read once more.
        if self.look_took_ns < 1_000_000 {
            self.look_at_memory(every);
        } else if let Some(bytes) = self.memory_bytes {
            self.note_memory(0, bytes);
        }
        self.counters.start = self.taken("at the window's start");
    }

    fn take_end(&mut self) {
        self.look_at_memory(Duration::ZERO);
        self.counters.end = self.taken("at the window's end");
    }

    fn taken(&mut self, when: &str) -> Option<CounterReading> {
        match self.read.clone() {
            Ok(reading) => Some(CounterReading { memory_bytes: self.memory_bytes, ..reading }),
            Err(why) => {
                self.problem("cpu", format!("{when}: {why}"));
                None
            }
        }
    }

    /// Each counter's first problem is kept: the others repeat it.
    fn problem(&mut self, what: &'static str, why: String) {
        if self.problems.iter().all(|(known, _)| *known != what) {
            self.problems.push((what, why));
        }
    }

    fn close(mut self, findings: &mut Vec<Finding>) -> Counters {
        self.counters.source = self.reader.source().to_owned();
        if self.problems.iter().any(|(what, _)| *what == "memory") {
            // A peak of what could be seen is not the peak.
            self.counters.memory_peak_bytes = None;
            self.counters.memory = None;
        }
        findings.extend(self.problems.into_iter().map(|(what, why)| finding(&format!("{} {what}", self.name), why)));
        self.counters
    }
}
