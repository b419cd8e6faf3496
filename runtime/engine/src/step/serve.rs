//! Servers of a repetition: the candidate and the probe, started on their CPUs and ready to answer.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use journal::Failure;
use load::wire::{Job, Transport};
use plan::{CpuSet, LoadProcedure, ProcessCommand, Ready, Request, Role, Text, Tls};

use crate::backend::{Backend, Prepared, blocking};
use crate::error::StepError;
use crate::host::{CounterSource, Server, ServerSpec};
use crate::run::{Run, Subject};
use crate::step::repetition::grace_ns;

/// Lines of a log that go with a failure.
const LOG_LINES: usize = 20;
/// Pause between two looks whether a server is ready.
const READY_PAUSE: Duration = Duration::from_millis(20);
/// How long one look may take.
const READY_LOOK: Duration = Duration::from_secs(2);

/// A server that answers.
pub(crate) struct Served {
    server: Box<dyn Server>,
    /// Its port on 127.0.0.1.
    pub(crate) port: u16,
    /// That it speaks TLS, and how its certificate is checked.
    pub(crate) tls: Option<Tls>,
    /// Its CPUs.
    pub(crate) cpus: CpuSet,
    /// Its counters; `None` where they can't be found, which voids what is measured.
    pub(crate) counters: Option<CounterSource>,
}

impl Served {
    /// Stops it. What can't be stopped is removed with the run.
    pub(crate) async fn stop(self) {
        let mut server = self.server;
        let _ = tokio::task::spawn_blocking(move || server.stop()).await;
    }

    /// What the backend could not do as asked, as findings.
    pub(crate) fn notes(&self) -> impl Iterator<Item = journal::Finding> {
        self.server.notes().into_iter().map(|why| journal::Finding { what: "limits".to_owned(), why })
    }

    /// Its name within the run.
    pub(crate) fn name(&self) -> &str {
        self.server.name()
    }

    /// When it was asked to start, on CLOCK_MONOTONIC, ns.
    pub(crate) fn asked_ns(&self) -> u64 {
        self.server.asked_ns()
    }

    /// The last lines of its log.
    pub(crate) fn logs(&self) -> Vec<String> {
        self.server.logs(LOG_LINES)
    }

    /// The same error, or, where the server has died meanwhile, that it did and its last words.
    pub(crate) fn explain(&mut self, error: StepError) -> StepError {
        if error.class == crate::error::Class::Interrupted {
            return error;
        }
        self.death(&error.failure.what).unwrap_or(error)
    }

    /// The error of a server that has ended by itself, with its last words; `None` while it runs.
    pub(crate) fn death(&mut self, noticed: &str) -> Option<StepError> {
        let Ok(Some(exit)) = self.server.exited() else { return None };
        let error = StepError::step(
            format!("{} died: {exit}", self.server.name()),
            format!("noticed because {noticed}"),
            "its log says more; raise its memory limit if it was killed there",
        );
        Some(error.with_log(self.logs()))
    }
}

/// Starts the candidate of these levels and waits until it is ready.
pub(crate) async fn candidate(
    run: &mut Run,
    levels: &BTreeMap<String, String>,
    database: Option<&str>,
) -> Result<Served, StepError> {
    let (served, ready) = launch_candidate(run, levels, database).await?;
    until_ready(run, served, &ready).await
}

/// Starts the candidate of these levels: it runs when this returns, and may not be ready yet. Gives how that shows, too.
pub(crate) async fn launch_candidate(
    run: &mut Run,
    levels: &BTreeMap<String, String>,
    database: Option<&str>,
) -> Result<(Served, Ready), StepError> {
    let name = levels.get("candidate").cloned().unwrap_or_default();
    let candidate = run.plan.candidate(&name).cloned().ok_or_else(|| {
        StepError::step(
            format!("the plan has no candidate `{name}`"),
            "plan and journal contradict each other",
            "start a new run with --new",
        )
    })?;
    let prepared = run.prepared.get(&Subject::Candidate(name.clone())).cloned();
    let spec = spec(run, &name, levels, candidate.port, &candidate.env, database)?;
    let spec = ServerSpec { memory_bytes: candidate.memory_bytes, open_files: candidate.open_files, ..spec };
    Ok((launch(run, spec, prepared, candidate.tls).await?, candidate.ready))
}

/// Starts the probe on the CPUs that the candidate of these levels has.
pub(crate) async fn probe(run: &mut Run, levels: &BTreeMap<String, String>) -> Result<Served, StepError> {
    let probe =
        run.plan.probe.clone().ok_or_else(|| {
            StepError::step("the study has no probe", "a gate drives one", "add a `probe` to the study")
        })?;
    let prepared = run.prepared.get(&Subject::Probe).cloned();
    let spec = spec(run, "probe", levels, probe.port, &probe.env, None)?;
    let served = launch(run, spec, prepared, probe.tls).await?;
    until_ready(run, served, &probe.ready).await
}

/// The job of a generator for a phase's load.
pub(crate) fn job(
    run: &Run,
    load: &LoadProcedure,
    levels: &BTreeMap<String, String>,
    served: &Served,
) -> Result<Job, StepError> {
    let workload =
        run.plan.workload(&load.workload).cloned().ok_or_else(|| {
            StepError::step(format!("the plan has no workload `{}`", load.workload), "", "report this")
        })?;
    let rate = match &load.rate {
        None => None,
        Some(plan::Rate::PerSecond(rate)) => Some(*rate),
        Some(plan::Rate::Factor(factor)) => {
            let level = levels.get(factor).map(String::as_str).unwrap_or_default();
            let number = level.trim_end_matches("/s").parse::<f64>().ok().filter(|rate| *rate > 0.0);
            Some(number.ok_or_else(|| {
                StepError::step(format!("`{level}` is no rate, and it is the level of `{factor}`"), "", "report this")
            })?)
        }
    };
    let connections = connections(load, levels)?;
    let proxy = match load.travel.proxy.as_deref().map(str::parse) {
        None => None,
        Some(Ok(proxy)) => Some(proxy),
        Some(Err(_)) => {
            let proxy = load.travel.proxy.as_deref().unwrap_or_default();
            return Err(StepError::step(format!("`{proxy}` is not the address of a proxy"), "", "report this"));
        }
    };
    let cpus = run.plan.machine.cpus(Role::Load).clone();
    // A thread per CPU of the load role, as far as there are connections; one carries about 80,000 requests per second.
    let threads = u32::try_from(cpus.len()).unwrap_or(1).clamp(1, connections.max(1));
    Ok(Job {
        target: SocketAddr::from((Ipv4Addr::LOCALHOST, served.port)),
        host: format!("127.0.0.1:{}", served.port),
        workload,
        tokens: run.minted.tokens().clone(),
        variables: run.variables(levels, None),
        connections,
        keep_alive: load.keep_alive,
        rate,
        course: load.course.clone(),
        arrivals: load.arrivals,
        warm_up_ns: load.warm_up_ns,
        window_ns: load.window_ns,
        timeout_ns: load.timeout_ns,
        grace_ns: grace_ns(load),
        threads,
        cpus,
        kernel_time: false,
        seed: run.plan.seed,
        part: None,
        requests: None,
        transport: Transport {
            protocol: load.travel.protocol,
            in_flight: load.travel.in_flight,
            tls: served.tls.clone(),
            proxy,
        },
        engine: load::Engine::default(),
    })
}

/// The connections of a cell.
fn connections(load: &LoadProcedure, levels: &BTreeMap<String, String>) -> Result<u32, StepError> {
    let Some(factor) = &load.connections_of else { return Ok(load.connections) };
    let level = levels.get(factor).map(String::as_str).unwrap_or_default();
    level.parse().ok().filter(|count| *count > 0).ok_or_else(|| {
        StepError::step(
            format!("`{level}` is no number of connections, and it is the level of `{factor}`"),
            "",
            "report this",
        )
    })
}

fn spec(
    run: &Run,
    name: &str,
    levels: &BTreeMap<String, String>,
    port: u16,
    env: &[(String, Text)],
    database: Option<&str>,
) -> Result<ServerSpec, StepError> {
    let all = run.plan.machine.cpus(Role::Candidate);
    let cores = levels.get("cores").and_then(|cores| cores.parse::<usize>().ok()).unwrap_or(all.len());
    let cpus = all.first(cores).ok_or_else(|| {
        StepError::step(
            format!("{name} is to run on {cores} CPUs and the machine `{}` gives it {all}", run.plan.machine.name),
            "",
            "choose another machine, or fewer cores",
        )
    })?;
    let mut values = run.variables(levels, database);
    values.insert("port".to_owned(), port.to_string());
    values.insert("cores".to_owned(), cores.to_string());
    let mut filled = vec![("PORT".to_owned(), port.to_string()), ("CORES".to_owned(), cores.to_string())];
    for (key, text) in env {
        let value = text.fill(&values).map_err(|missing| {
            StepError::step(format!("{key} of {name} can't be filled in: {missing}"), "", "report this")
        })?;
        filled.retain(|(earlier, _)| earlier != key);
        filled.push((key.clone(), value));
    }
    Ok(ServerSpec {
        run: run.run.clone(),
        name: name.to_owned(),
        role: Role::Candidate,
        cpus,
        memory_bytes: None,
        shared_memory_bytes: None,
        open_files: 65_536,
        env: filled,
        arguments: Vec::new(),
        port,
        data_volume: None,
    })
}

async fn launch(
    run: &mut Run,
    spec: ServerSpec,
    prepared: Option<Prepared>,
    tls: Option<Tls>,
) -> Result<Served, StepError> {
    let (port, cpus) = (spec.port, spec.cpus.clone());
    let stop = run.stop.clone();
    let server: Box<dyn Server> = match (&run.backend, prepared) {
        (Backend::Docker(docker), Some(Prepared::Image(image))) => {
            let docker = docker.clone();
            Box::new(stop.guard(blocking(move || docker.start(&spec, &image))).await?)
        }
        (Backend::Process, Some(Prepared::Command(command))) => Box::new(run.processes()?.start(&spec, &command)?),
        (_, Some(Prepared::BuiltIn)) => Box::new(run.processes()?.start(&spec, &built_in(run))?),
        _ => {
            return Err(StepError::step(
                format!("{} was not prepared", spec.name),
                "its image or its build failed earlier",
                "see the step that failed",
            ));
        }
    };
    let counters = server.counters().ok();
    Ok(Served { server, port, tls, cpus, counters })
}

async fn until_ready(run: &Run, mut served: Served, ready: &Ready) -> Result<Served, StepError> {
    let stop = run.stop.clone();
    match stop.guard(wait_ready(&mut served, ready)).await {
        Ok(()) => Ok(served),
        Err(error) => {
            served.stop().await;
            Err(error)
        }
    }
}

/// The no-op server of this binary, as a command.
fn built_in(run: &Run) -> ProcessCommand {
    ProcessCommand {
        directory: ".".to_owned(),
        digest: String::new(),
        build: Vec::new(),
        run: vec![run.exp.display().to_string(), "probe".to_owned()],
        needs: Vec::new(),
    }
}

async fn wait_ready(served: &mut Served, ready: &Ready) -> Result<(), StepError> {
    let within = Duration::from_nanos(ready.within_ns);
    let began = Instant::now();
    let target = SocketAddr::from((Ipv4Addr::LOCALHOST, served.port));
    let request = ready_request(ready);
    let mut last = "it was not asked yet".to_owned();
    loop {
        let name = served.server.name().to_owned();
        if let Some(exit) = served.server.exited()? {
            return Err(never_ready(&name, &format!("it ended: {exit}"), served.logs()));
        }
        if began.elapsed() >= within {
            let why = format!("GET {} within {:.0} s: {last}", ready.path, within.as_secs_f64());
            return Err(never_ready(&name, &why, served.logs()));
        }
        let request = request.clone();
        let host = format!("127.0.0.1:{}", served.port);
        let tls = served.tls.clone();
        let look = tokio::task::spawn_blocking(move || {
            let nothing = BTreeMap::new();
            load::single_shot(target, &host, &request, &nothing, &nothing, READY_LOOK, tls.as_ref())
        });
        match look.await {
            Ok(Ok(response)) if (200..300).contains(&response.status) => return Ok(()),
            Ok(Ok(response)) => last = format!("status {}", response.status),
            Ok(Err(error)) => last = error.to_string(),
            Err(error) => last = error.to_string(),
        }
        tokio::time::sleep(READY_PAUSE).await;
    }
}

/// The request that asks a server whether it is ready.
pub(crate) fn ready_request(ready: &Ready) -> Request {
    Request {
        method: "GET".to_owned(),
        path: Text::literal(&ready.path),
        headers: Vec::new(),
        bearer: None,
        body: None,
        content_type: None,
        accept_gzip: false,
    }
}

pub(crate) fn never_ready(name: &str, why: &str, log: Vec<String>) -> StepError {
    let failure = Failure {
        what: format!("{name} never got ready"),
        why: why.to_owned(),
        next: format!(
            "its log says more; give it longer (`ready within=`, or `for=` where its start is measured), or mend {name}"
        ),
        log,
    };
    StepError { class: crate::error::Class::Step, failure }
}
