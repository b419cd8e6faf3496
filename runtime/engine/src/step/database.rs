//! Starts the database server, and gives every repetition a fresh clone of the template.

use std::time::Duration;

use journal::{Finding, PgbenchFacts, StepEnd};
use plan::{PgbenchProcedure, Role, StepId};

use crate::backend::{Backend, Prepared, blocking};
use crate::error::StepError;
use crate::host::{CounterSource, Server as _, ServerSpec};
use crate::postgres::{self, Binaries, LocalPostgres, LocalSpec};
use crate::run::{Run, Subject};

/// How long a server in a container may take to answer.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long writeback may take to settle before a repetition.
const SETTLE_WITHIN: Duration = Duration::from_secs(30);
/// Where an image keeps its files.
const DATA: &str = "/var/lib/postgresql/data";

/// The database server of a run.
pub(crate) struct RunningDatabase {
    /// How to get in.
    pub(crate) server: postgres::Server,
    /// Its counters.
    pub(crate) counters: Option<CounterSource>,
    /// The template, once it is made.
    pub(crate) template: Option<String>,
    /// The clone of the repetition that goes on.
    clone: Option<String>,
    process: Box<dyn crate::host::Server>,
    /// The machine's own binaries, or the image, for pgbench.
    tools: Tools,
}

enum Tools {
    Local(Binaries),
    Image(String),
}

impl RunningDatabase {
    /// Ends the server at once: its files go with the run.
    pub(crate) async fn stop(self) {
        let mut process = self.process;
        let _ = tokio::task::spawn_blocking(move || process.stop()).await;
    }
}

/// Starts the server and waits until it answers.
pub(crate) async fn start(run: &mut Run, _step: StepId) -> Result<StepEnd, StepError> {
    let Some(declared) = run.plan.database.clone() else {
        return Ok(StepEnd::Skipped { why: "the study has no database".to_owned() });
    };
    let stop = run.stop.clone();
    let cpus = run.plan.machine.cpus(Role::Database).clone();
    let running = match &run.backend {
        Backend::Process => {
            let binaries = stop.guard(Binaries::find_or_fetch()).await?;
            let spec = LocalSpec {
                run: run.run.clone(),
                cpus,
                memory_bytes: declared.memory_bytes,
                port: None,
                settings: declared.settings.clone(),
                scratch: run.scratch.clone(),
                log: run.scratch.join("postgresql.log"),
            };
            let local = stop.guard(LocalPostgres::start(&binaries, &spec)).await?;
            RunningDatabase {
                server: local.access().clone(),
                counters: local.counters().ok(),
                template: None,
                clone: None,
                process: Box::new(local),
                tools: Tools::Local(binaries),
            }
        }
        Backend::Docker(docker) => {
            let Some(Prepared::Image(image)) = run.prepared.get(&Subject::Database).cloned() else {
                return Err(StepError::environment(
                    "the database's image was not prepared",
                    "",
                    "see the step that failed",
                ));
            };
            let port = crate::port::free()?;
            let password = postgres::password();
            let mut arguments = vec!["postgres".to_owned()];
            let ours = [("listen_addresses".to_owned(), "127.0.0.1".to_owned()), ("port".to_owned(), port.to_string())];
            for (name, value) in declared.settings.iter().chain(&ours) {
                arguments.extend(["-c".to_owned(), format!("{name}={value}")]);
            }
            let spec = ServerSpec {
                run: run.run.clone(),
                name: "database".to_owned(),
                role: Role::Database,
                cpus,
                memory_bytes: declared.memory_bytes,
                shared_memory_bytes: Some(1 << 30),
                open_files: 65_536,
                env: vec![
                    ("POSTGRES_USER".to_owned(), "exp".to_owned()),
                    ("POSTGRES_PASSWORD".to_owned(), password.clone()),
                    ("POSTGRES_DB".to_owned(), "postgres".to_owned()),
                ],
                arguments,
                port,
                data_volume: Some(DATA.to_owned()),
            };
            let docker = docker.clone();
            let from = image.clone();
            let mut container = stop.guard(blocking(move || docker.start(&spec, &from))).await?;
            let server = postgres::Server::local(port, "exp", password);
            if let Err(error) = stop.guard(ready(&server, &mut container)).await {
                let log = container.logs(20);
                let _ = tokio::task::spawn_blocking(move || container.stop()).await;
                return Err(if error.class == crate::error::Class::Interrupted { error } else { error.with_log(log) });
            }
            RunningDatabase {
                server,
                counters: container.counters().ok(),
                template: None,
                clone: None,
                process: Box::new(container),
                tools: Tools::Image(image),
            }
        }
    };
    let version = stop.guard(running.server.version()).await;
    run.database = Some(running);
    Ok(StepEnd::Done { detail: format!("PostgreSQL {}", version?.text) })
}

/// Waits until the server answers, or its container ends.
async fn ready(server: &postgres::Server, container: &mut dyn crate::host::Server) -> Result<(), StepError> {
    let began = std::time::Instant::now();
    loop {
        if let Some(exit) = container.exited()? {
            return Err(StepError::environment(
                format!("the database ended at once: {exit}"),
                "its log says why",
                "check the study's database settings against its memory",
            ));
        }
        match server.wait_ready(Duration::ZERO).await {
            Ok(_) => return Ok(()),
            Err(error) if began.elapsed() > READY_WITHIN => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Runs pgbench against a database: the machine's own tool, or the one in the database's image.
pub(crate) async fn pgbench(
    run: &Run,
    procedure: &PgbenchProcedure,
    database: &str,
) -> Result<PgbenchFacts, StepError> {
    let running = run.database()?;
    let cpus = run.plan.machine.cpus(Role::Load).clone();
    match (&running.tools, &run.backend) {
        (Tools::Local(binaries), _) => {
            let program = binaries.pgbench.clone().ok_or_else(|| {
                StepError::environment(
                    "pgbench was not found",
                    format!("it is neither in {} nor on PATH", binaries.directory.display()),
                    "apt-get install postgresql-contrib",
                )
            })?;
            crate::pgbench::run(procedure, &running.server, database, crate::pgbench::local(&program, &run.run, &cpus))
                .await
        }
        (Tools::Image(image), Backend::Docker(docker)) => {
            let spec = ServerSpec {
                run: run.run.clone(),
                name: "pgbench".to_owned(),
                role: Role::Load,
                cpus,
                memory_bytes: None,
                shared_memory_bytes: None,
                open_files: 65_536,
                env: Vec::new(),
                arguments: Vec::new(),
                port: 0,
                data_volume: None,
            };
            let (docker, image) = (docker.clone(), image.clone());
            crate::pgbench::run(procedure, &running.server, database, move |invocation| {
                Box::pin(blocking(move || {
                    let spec = ServerSpec { env: invocation.env.clone(), ..spec };
                    let mut command = vec!["pgbench".to_owned()];
                    command.extend(invocation.arguments.iter().cloned());
                    docker.run_once(&spec, &image, &command, Some(invocation.stdin.as_bytes()), invocation.limit)
                }))
            })
            .await
        }
        (Tools::Image(_), Backend::Process) => {
            Err(StepError::step("an image can't be run without a Docker Engine", "", "report this"))
        }
    }
}

impl Run {
    /// The database server.
    pub(crate) fn database(&self) -> Result<&RunningDatabase, StepError> {
        self.database.as_ref().ok_or_else(not_started)
    }

    /// The database server, to be changed.
    pub(crate) fn database_mut(&mut self) -> Result<&mut RunningDatabase, StepError> {
        self.database.as_mut().ok_or_else(not_started)
    }

    /// A fresh clone of the template: prewarmed, checkpointed, settled, as the study says. `None` without a database.
    ///
    /// Writeback that did not settle in time becomes one of `findings`.
    pub(crate) async fn fresh_clone(
        &mut self,
        label: &str,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<String>, StepError> {
        let Some(declared) = self.plan.database.clone() else { return Ok(None) };
        let stop = self.stop.clone();
        let running = self.database_mut()?;
        let Some(template) = running.template.clone() else { return Err(not_started()) };
        if !declared.each_cell.clone {
            return Ok(Some(template));
        }
        let name = postgres::clone_name(label);
        let server = running.server.clone();
        running.clone = Some(name.clone());
        let work = async {
            server.drop_database(&name).await?;
            server.clone_template(&template, &name).await?;
            if !declared.each_cell.prewarm.is_empty() {
                server.prewarm(&name, &declared.each_cell.prewarm).await?;
            }
            if declared.each_cell.checkpoint {
                server.checkpoint().await?;
            }
            if declared.each_cell.settle_writeback {
                let settled = server.settle(SETTLE_WITHIN).await?;
                if !settled.settled {
                    findings.push(Finding { what: "database writeback".to_owned(), why: settled.why });
                }
            }
            Ok(())
        };
        stop.guard(work).await?;
        Ok(Some(name))
    }

    /// Drops the clone of the repetition that is over. What can't be dropped goes with the server.
    pub(crate) async fn drop_clone(&mut self) {
        let Some(running) = self.database.as_mut() else { return };
        let Some(name) = running.clone.take() else { return };
        let server = running.server.clone();
        let _ = self.stop.guard(server.drop_database(&name)).await;
    }
}

fn not_started() -> StepError {
    StepError::step(
        "the database was not started, or has no template",
        "an earlier step failed",
        "see the step that failed",
    )
}
