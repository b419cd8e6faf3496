//! `exp run`: runs a study, or continues it where it stopped.

use engine::availability;
use engine::backend::Backend;
use engine::error::{Class, StepError};
use engine::run::{NotMeasured, Setup};
use engine::secret::Secrets;
use engine::stop::{self, Stop, StopHandle, Urgency};
use engine::stream::Onlooker;
use engine::tool::Installed;
use journal::{Journal, Record};
use plan::Plan;

use crate::args::{BackendChoice, Run, RunFormat};
use crate::exit::Exit;
use crate::leftovers::Scratch;
use crate::lock::HostLock;
use crate::rundir::{self, RunDirectory};
use crate::study::{Against, Study};
use crate::terminal::{self, Colours};
use crate::view::Screen;

/// Runs the study and writes its report.
pub fn run(arguments: &Run, colours: Colours) -> Exit {
    // What is wrong with the study itself is told whoever runs. What another run occupies is told as that run, not as
    // mistakes of this study: so the host is taken before ports are looked at.
    match Study::open(&arguments.file, &arguments.selection, &Against::here(false), colours) {
        Ok(study) if study.analysed.has_errors() => {
            return study.into_plan(colours).err().unwrap_or(Exit::Invalid);
        }
        // So is what its environment lacks.
        Ok(study) => {
            if let Some(plan) = &study.analysed.plan
                && let Err(exit) = secrets(arguments, &study, plan, colours)
            {
                return exit;
            }
        }
        Err(exit) => return exit,
    }
    let lock = match HostLock::take(&format!("exp run {}, pid {}", arguments.file.display(), std::process::id())) {
        Ok(lock) => lock,
        Err(why) => {
            terminal::error(&why, "", "wait for it, or end it with Ctrl-C; then run the same command", colours);
            return Exit::Environment;
        }
    };
    let opened = Study::open(&arguments.file, &arguments.selection, &Against::here(true), colours)
        .and_then(|study| study.into_plan(colours));
    let (study, plan) = match opened {
        Ok(opened) => opened,
        Err(exit) => return exit,
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal::error(
                &format!("the runtime can't be started: {error}"),
                "",
                "free some memory or file handles",
                colours,
            );
            return Exit::Environment;
        }
    };
    let exit = runtime.block_on(measure(arguments, &study, plan, colours));
    drop(lock);
    exit
}

/// The values of the plan's secrets.
///
/// # Errors
/// The exit, after the reason was printed, when a variable is missing or a secret can't be kept.
fn secrets(arguments: &Run, study: &Study, plan: &Plan, colours: Colours) -> Result<Secrets, Exit> {
    let json = serde_json::to_string(plan).unwrap_or_default();
    crate::variables::secrets(
        plan,
        &[&json, &study.text(), &study.analysed.expanded()],
        &format!("exp run {}", arguments.file.display()),
    )
    .map_err(|refused| {
        terminal::error(&refused.what, &refused.why, &refused.next, colours);
        Exit::Environment
    })
}

/// Everything that needs the runtime.
async fn measure(arguments: &Run, study: &Study, plan: Plan, colours: Colours) -> Exit {
    let secrets = match secrets(arguments, study, &plan, colours) {
        Ok(secrets) => secrets,
        Err(exit) => return exit,
    };
    let fail = |error: &StepError| {
        terminal::failure(&error.failure, colours);
        Exit::from(error.class)
    };
    let (handle, stop) = stop::channel();
    let signals = tokio::spawn(listen(handle));
    let prepared = stop.guard(prepare(arguments, &plan, study, &stop)).await;
    let (backend, not_measured, tools) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return fail(&error),
    };
    if not_measured.len() == plan.candidates.len() {
        for NotMeasured { candidate, why, mend } in &not_measured {
            terminal::error(&format!("{candidate} can't be measured here: {why}"), "", mend, colours);
        }
        terminal::error("no candidate can be measured here", "", "mend one of them with its command", colours);
        return Exit::Environment;
    }
    if arguments.require_all && !not_measured.is_empty() {
        for NotMeasured { candidate, why, mend } in &not_measured {
            terminal::error(
                &format!("{candidate} can't be measured here: {why}"),
                "`--require-all` was given",
                mend,
                colours,
            );
        }
        return Exit::Invalid;
    }
    let (directory, journal, earlier) = match run_directory(arguments, study, &plan) {
        Ok(found) => found,
        Err(why) => {
            terminal::error(
                &why,
                "",
                "check the results directory and the disk, or give another with --results",
                colours,
            );
            return Exit::Environment;
        }
    };
    let environment = crate::host::environment(backend.name(), backend.docker_version(), backend.postgres_version());
    let shown = directory.path.display().to_string();
    let (screen, drawing) = Screen::start(&plan, &shown, arguments.format == RunFormat::Json, colours);
    let scratch = match Scratch::make(&directory.run) {
        Ok(scratch) => scratch,
        Err(error) => {
            terminal::error(&format!("no scratch directory: {error}"), "", "make room under /var/tmp", colours);
            return Exit::Environment;
        }
    };
    let Ok(exp) = std::env::current_exe() else {
        terminal::error("the path of this binary can't be found", "", "start it by its full path", colours);
        return Exit::Environment;
    };
    let setup = Setup {
        plan: plan.clone(),
        root: std::fs::canonicalize(study.sources.root()).unwrap_or_else(|_| study.sources.root().to_owned()),
        run: directory.run.clone(),
        scratch: scratch.path().to_owned(),
        results: directory.path.clone(),
        exp,
        backend,
        environment,
        not_measured,
        secrets,
        tools,
    };
    let onlookers: Vec<Box<dyn Onlooker>> = vec![Box::new(screen)];
    let ended = engine::run::execute(setup, journal, earlier, onlookers, stop).await;
    signals.abort();
    drop(scratch);
    drawing.finish();
    for left in &ended.left_behind {
        terminal::note(&format!("not removed: {left}; the next command tries again"));
    }
    conclude(arguments, &plan, &directory, ended.result, colours)
}

/// Writes the report whatever the ending, says how it ended and what comes next.
fn conclude(
    arguments: &Run,
    plan: &Plan,
    directory: &RunDirectory,
    result: Result<(), StepError>,
    colours: Colours,
) -> Exit {
    let shown = directory.path.display().to_string();
    let report = match super::report::write(plan, directory) {
        Ok(report) => report,
        Err(why) => {
            terminal::error(&why, "the report could not be written", &format!("exp report {shown}"), colours);
            return match result {
                Ok(()) => Exit::Environment,
                Err(error) => {
                    terminal::failure(&error.failure, colours);
                    Exit::from(error.class)
                }
            };
        }
    };
    if arguments.format == RunFormat::Json {
        terminal::out(&format!("{:#}\n", report::render::summary_json(&report, &shown)));
    }
    match result {
        Ok(()) if report.verdict.kind == judge::VerdictKind::Void => Exit::Void,
        Ok(()) => Exit::Ok,
        Err(error) if error.class == Class::Interrupted => {
            terminal::note(&format!(
                "interrupted; nothing of ours is left behind. To continue, run the same command again.\n{shown}"
            ));
            Exit::Interrupted
        }
        Err(error) => {
            terminal::failure(&error.failure, colours);
            Exit::from(error.class)
        }
    }
}

/// The backend, and the candidates that can't be measured on it.
async fn prepare(
    arguments: &Run,
    plan: &Plan,
    study: &Study,
    stop: &Stop,
) -> Result<(Backend, Vec<NotMeasured>, Vec<Installed>), StepError> {
    let backend = match arguments.backend {
        BackendChoice::Docker => Backend::docker(stop).await?,
        BackendChoice::Process => Backend::process(),
        // An engine is of no use to a study of commands.
        BackendChoice::Auto if plan.candidates.iter().all(|candidate| candidate.image.is_none()) => Backend::process(),
        BackendChoice::Auto => match Backend::docker(stop).await {
            Ok(docker) => docker,
            Err(_) => Backend::process(),
        },
    };
    for name in &arguments.candidate {
        if plan.candidate(name).is_none() {
            let known: Vec<&str> = plan.candidates.iter().map(|candidate| candidate.name.as_str()).collect();
            let what = format!("the study has no candidate `{name}`");
            return Err(StepError::environment(what, "", format!("it has {}", known.join(", "))));
        }
    }
    let mut not_measured = availability::check(plan, &backend, study.sources.root()).await?;
    if !arguments.candidate.is_empty() {
        let left_out =
            plan.candidates.iter().map(|candidate| &candidate.name).filter(|name| !arguments.candidate.contains(name));
        not_measured.retain(|entry| arguments.candidate.contains(&entry.candidate));
        not_measured.extend(left_out.map(|name| NotMeasured {
            candidate: name.clone(),
            why: "left out on the command line".to_owned(),
            mend: "leave `--candidate` away".to_owned(),
        }));
    }
    let tools = engine::tool::installed(plan)?;
    Ok((backend, not_measured, tools))
}

/// The directory of the unfinished run that is continued, or of a new one, with its journal.
fn run_directory(arguments: &Run, study: &Study, plan: &Plan) -> Result<(RunDirectory, Journal, Vec<Record>), String> {
    if !arguments.new
        && let Some(directory) = rundir::unfinished(&arguments.results, plan)
    {
        let reopened = Journal::reopen(&directory.journal()).map_err(|error| error.to_string())?;
        if let Some(torn) = &reopened.torn {
            terminal::note(&format!("the journal's last line ({} bytes) was unfinished and was cut off", torn.bytes));
        }
        directory
            .store(plan, &study.analysed.expanded())
            .map_err(|error| format!("{}: {error}", directory.path.display()))?;
        return Ok((directory, reopened.journal, reopened.records));
    }
    let directory = rundir::new_run(&arguments.results, &plan.study)
        .map_err(|error| format!("{} can't be made: {error}", arguments.results.display()))?;
    directory
        .store(plan, &study.analysed.expanded())
        .map_err(|error| format!("{}: {error}", directory.path.display()))?;
    let journal = Journal::create(&directory.journal()).map_err(|error| error.to_string())?;
    Ok((directory, journal, Vec::new()))
}

/// Turns Ctrl-C, SIGTERM and SIGHUP into asking the run to stop; asking twice means now.
async fn listen(handle: StopHandle) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hang_up)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(SignalKind::hangup()))
    else {
        terminal::note("signals can't be caught: Ctrl-C ends this run without cleaning; the next command cleans");
        return;
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
        match handle.ask() {
            Urgency::Now => terminal::note("ending now; the next command removes what is left"),
            _ => terminal::note("stopping, and removing what was started (again: now)"),
        }
    }
}
