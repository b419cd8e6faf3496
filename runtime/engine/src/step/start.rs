//! A candidate's start: asked for at a known instant, watched from outside until the first ready answer.
//!
//! The looks begin before the start is asked for, so that no time passes between the backend's word and the first one.
//! The window is known beforehand, as for a load: sampler and witnesses see all of it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use journal::{CounterReading, Counters, Finding, MemoryFacts, RepetitionFacts, RepetitionId, Stage, StartFacts};
use plan::transport::Tls;
use plan::{CpuSet, Ready, Request, Role, StartProcedure};

use super::repetition::{LEAD, sample_spec, stage};
use crate::error::StepError;
use crate::host::CounterSource;
use crate::run::{Run, nanos};
use crate::sample::{SampleSpec, Sampler, clock, counters, pin, tree};
use crate::step::serve::{self, Served};

/// Pause between two looks: this, and no less than a hundredth of the time since the first one, so that a slow start is not
/// disturbed by looks that it would not need.
const PAUSE_NS: u64 = 1_000_000;
/// Pause between two questions to the backend whether the candidate has ended.
const EXIT_PAUSE: Duration = Duration::from_millis(250);
/// Pause between two looks at memory after the first ready answer.
const MEMORY_PAUSE_NS: u64 = 100_000_000;

/// Measures one start.
pub(crate) async fn measure(
    run: &mut Run,
    id: &RepetitionId,
    start: &StartProcedure,
    levels: BTreeMap<String, String>,
) -> Result<RepetitionFacts, StepError> {
    let mut facts = RepetitionFacts { levels: levels.clone(), ..RepetitionFacts::default() };
    stage(run, id, Stage::PreparingDatabase, Duration::from_secs(3))?;
    let database = run.fresh_clone(&id.to_string(), &mut facts.findings).await?;
    let window = Duration::from_nanos(start.window_ns);
    stage(run, id, Stage::Measuring, LEAD + window)?;
    let from_ns = clock::monotonic_ns() + nanos(LEAD);
    let until_ns = from_ns + start.window_ns;
    let mut sampler = Sampler::start(SampleSpec { pace_cpus: cpus(run, &levels), ..sample_spec(run) });
    sampler.window(from_ns, until_ns);
    let stop = run.stop.clone();
    stop.guard(async {
        tokio::time::sleep(LEAD).await;
        Ok(())
    })
    .await?;
    let (mut served, measured) = started(run, &levels, database.as_deref(), until_ns).await?;
    facts.findings.extend(served.notes());
    let observed = match measured {
        Ok(looked) => observe(run, &mut served, looked, (from_ns, until_ns), &mut facts).await,
        Err(error) => Err(error),
    };
    stage(run, id, Stage::Checking, Duration::from_secs(1))?;
    let observed = match observed {
        Err(error) => Err(served.explain(error)),
        Ok(()) => served.death("it had ended before it was stopped").map_or(Ok(()), Err),
    };
    served.stop().await;
    observed?;
    let candidate = facts.candidate.take();
    // The window lies behind: this only joins the sampler's threads.
    sampler.finish().fill(&mut facts);
    facts.candidate = candidate;
    facts.window.declared_ns = start.window_ns;
    Ok(facts)
}

/// The candidate's CPUs in this cell.
fn cpus(run: &Run, levels: &BTreeMap<String, String>) -> CpuSet {
    let all = run.plan.machine.cpus(Role::Candidate);
    let cores = levels.get("cores").and_then(|cores| cores.parse::<usize>().ok());
    cores.and_then(|cores| all.first(cores)).unwrap_or_else(|| all.clone())
}

/// Asks for the start while somebody looks whether the candidate is ready. An error in the outer result means that nothing
/// runs; in the inner one, that it runs and never got ready.
async fn started(
    run: &mut Run,
    levels: &BTreeMap<String, String>,
    database: Option<&str>,
    until_ns: u64,
) -> Result<(Served, Result<StartFacts, StepError>), StepError> {
    let name = levels.get("candidate").cloned().unwrap_or_default();
    let asked = match run.plan.candidate(&name) {
        Some(candidate) => Asked::of(candidate.port, &candidate.ready, candidate.tls.clone()),
        // Launching it says what is wrong.
        None => Asked::of(0, &Ready { path: "/".to_owned(), within_ns: 0 }, None),
    };
    let looker = Looker::start(asked, until_ns, run.plan.machine.cpus(Role::Load).clone())?;
    let (mut served, ready) = serve::launch_candidate(run, levels, database).await?;
    let stop = run.stop.clone();
    let waited = stop.guard(async { Ok(wait(&mut served, looker, &ready).await) }).await;
    match waited {
        Ok(looked) => Ok((served, looked)),
        Err(error) => {
            served.stop().await;
            Err(error)
        }
    }
}

/// Waits for the first ready answer, the window's end, or the candidate's own end.
async fn wait(served: &mut Served, looker: Looker, ready: &Ready) -> Result<StartFacts, StepError> {
    let mut looks = looker.looks;
    let looked = loop {
        tokio::select! {
            looked = &mut looks => break looked.unwrap_or_else(|_| Looked { last: "the looks ended without a result".to_owned(), ..Looked::default() }),
            () = tokio::time::sleep(EXIT_PAUSE) => {
                if let Some(error) = served.death("it was not ready yet") {
                    return Err(error);
                }
            }
        }
    };
    let asked_ns = served.asked_ns();
    match looked.ready_ns {
        Some(ready_ns) if ready_ns > asked_ns => Ok(StartFacts {
            asked_ns,
            not_ready_ns: looked.not_ready_ns.filter(|&at| at >= asked_ns),
            ready_ns,
            looks: looked.looks,
            cpu_ns: None,
        }),
        Some(_) => Err(StepError::step(
            format!("something answered on port {} before {} was started", served.port, served.name()),
            "its answer would count as that of the candidate",
            "find out what listens there (`ss -ltnp`), and end it",
        )),
        None => {
            let why = format!("GET {} within the window: {}", ready.path, looked.last);
            Err(serve::never_ready(served.name(), &why, served.logs()))
        }
    }
}

/// What looking at a starting server came to.
#[derive(Debug, Default)]
struct Looked {
    not_ready_ns: Option<u64>,
    ready_ns: Option<u64>,
    looks: u64,
    last: String,
}

/// A thread that asks again and again whether a server is ready. Dropping this ends it.
struct Looker {
    looks: tokio::sync::oneshot::Receiver<Looked>,
    _over: Over,
}

struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Who is asked, and how.
struct Asked {
    port: u16,
    request: Request,
    tls: Option<Tls>,
}

impl Asked {
    fn of(port: u16, ready: &Ready, tls: Option<Tls>) -> Self {
        Self { port, request: serve::ready_request(ready), tls }
    }
}

impl Looker {
    fn start(asked: Asked, until_ns: u64, cpus: CpuSet) -> Result<Self, StepError> {
        let over = Arc::new(AtomicBool::new(false));
        let (give, looks) = tokio::sync::oneshot::channel();
        let shared = Arc::clone(&over);
        let thread = std::thread::Builder::new().name("looks".to_owned()).spawn(move || {
            // Unbound it would still look; it would only take time from whoever it lands on.
            let _unbound = pin::pin_self(&cpus);
            let _nobody_waits = give.send(look(&asked, until_ns, &shared));
        });
        match thread {
            Ok(_) => Ok(Self { looks, _over: Over(over) }),
            Err(error) => Err(StepError::environment(
                "nobody can watch the candidate's start: no thread could be made",
                error.to_string(),
                "raise the limit of processes (`ulimit -u`)",
            )),
        }
    }
}

fn look(asked: &Asked, until_ns: u64, over: &AtomicBool) -> Looked {
    let target = SocketAddr::from((Ipv4Addr::LOCALHOST, asked.port));
    let (host, nothing) = (format!("127.0.0.1:{}", asked.port), BTreeMap::new());
    let mut looked = Looked { last: "it was not asked yet".to_owned(), ..Looked::default() };
    let began_ns = clock::monotonic_ns();
    while !over.load(Ordering::Relaxed) {
        let at_ns = clock::monotonic_ns();
        if at_ns >= until_ns {
            break;
        }
        looked.looks += 1;
        let left = Duration::from_nanos(until_ns - at_ns);
        match load::single_shot(target, &host, &asked.request, &nothing, &nothing, left, asked.tls.as_ref()) {
            Ok(response) if (200..300).contains(&response.status) => {
                looked.ready_ns = Some(clock::monotonic_ns());
                break;
            }
            Ok(response) => looked.last = format!("status {}", response.status),
            Err(error) => looked.last = error.to_string(),
        }
        looked.not_ready_ns = Some(at_ns);
        clock::sleep_until(clock::monotonic_ns() + PAUSE_NS.max((at_ns - began_ns) / 100));
    }
    looked
}

/// Reads the counters right after the first ready answer, watches memory to the window's end, and reads them again.
async fn observe(
    run: &Run,
    served: &mut Served,
    looked: StartFacts,
    (from_ns, until_ns): (u64, u64),
    facts: &mut RepetitionFacts,
) -> Result<(), StepError> {
    let source = served.counters.clone();
    let (cpus, own) = (served.cpus.clone(), run.plan.machine.cpus(Role::Load).clone());
    let over = Over(Arc::new(AtomicBool::new(false)));
    let shared = Arc::clone(&over.0);
    let watched = crate::backend::blocking(move || {
        Ok(watch(source.as_ref(), &cpus, &own, looked.asked_ns, (from_ns, until_ns), &shared))
    });
    let stop = run.stop.clone();
    let (counters, cpu_ns, findings) = stop.guard(watched).await?;
    drop(over);
    facts.start = Some(StartFacts { cpu_ns, ..looked });
    facts.candidate = counters;
    facts.findings.extend(findings);
    Ok(())
}

type Watched = (Option<Counters>, Option<u64>, Vec<Finding>);

fn watch(
    source: Option<&CounterSource>,
    cpus: &CpuSet,
    own: &CpuSet,
    asked_ns: u64,
    (from_ns, until_ns): (u64, u64),
    over: &AtomicBool,
) -> Watched {
    let mut findings = Vec::new();
    let mut tell = |what: &str, why: String| {
        if findings.iter().all(|known: &Finding| known.what != what) {
            findings.push(Finding { what: what.to_owned(), why });
        }
    };
    let Some(source) = source else {
        tell("candidate cpu", "its counters can't be found".to_owned());
        return (None, None, findings);
    };
    // A pooled thread: what it is bound to stays, and is right for whatever comes next.
    let _unbound = pin::pin_self(own);
    let mut reader = counters::Reader::open(source);
    let cpu = |reader: &mut counters::Reader| -> Result<CounterReading, String> {
        if reader.is_of_processes() {
            reader.prepare(&tree::Snapshot::take()?);
        }
        reader.cpu()
    };
    let at_ready = cpu(&mut reader);
    let mut memory = Some(MemoryFacts::over(until_ns - from_ns));
    let mut peak = None;
    let end = loop {
        let now = clock::monotonic_ns();
        match reader.memory() {
            Ok(bytes) => {
                peak = peak.max(Some(bytes));
                if let Some(memory) = &mut memory {
                    memory.see(now.saturating_sub(from_ns), bytes);
                }
            }
            Err(why) => {
                tell("candidate memory", why);
                memory = None;
            }
        }
        if now >= until_ns || over.load(Ordering::Relaxed) {
            break cpu(&mut reader);
        }
        clock::sleep_until((now + MEMORY_PAUSE_NS).min(until_ns));
    };
    let mut reading = |reading: Result<CounterReading, String>, when: &str| match reading {
        Ok(reading) => Some(reading),
        Err(why) => {
            tell("candidate cpu", format!("{when}: {why}"));
            None
        }
    };
    let at_ready = reading(at_ready, "after the first ready answer");
    let counters = Counters {
        source: reader.source().to_owned(),
        // A counter is born with its candidate.
        start: Some(CounterReading { at_ns: asked_ns, ..CounterReading::default() }),
        end: reading(end, "at the window's end"),
        memory_peak_bytes: peak.filter(|_| memory.is_some()),
        memory,
        cpus: u32::try_from(cpus.len()).unwrap_or(u32::MAX),
    };
    (Some(counters), at_ready.map(|reading| reading.cpu_ns), findings)
}
