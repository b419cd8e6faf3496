//! `exp doctor`: what this machine can do, what is missing, and the command that mends it.

use engine::availability;
use engine::backend::Backend;
use engine::run::NotMeasured;
use engine::stop;
use plan::Plan;

use crate::args::{Doctor, Selection};
use crate::exit::Exit;
use crate::study::{Against, Study};
use crate::terminal::{self, Colours};

/// Prints one line per finding on standard output. Ends well when studies can run here on some backend.
pub fn run(arguments: &Doctor, colours: Colours) -> Exit {
    if arguments.describe {
        return match crate::host::describe() {
            Ok(text) => {
                terminal::out(&text);
                Exit::Ok
            }
            Err(error) => {
                terminal::error(&format!("this host can't be written as JSON: {error}"), "", "report this", colours);
                Exit::Defect
            }
        };
    }
    let (good, bad, off) =
        if colours.out { ("\u{1b}[32m✓\u{1b}[0m", "\u{1b}[31m✗\u{1b}[0m", "") } else { ("✓", "✗", "") };
    let line = |ok: bool, what: &str, mend: &str| {
        let mark = if ok { good } else { bad };
        let mend = if mend.is_empty() { String::new() } else { format!("\n    mend: {mend}") };
        terminal::out(&format!("  {mark} {what}{mend}{off}\n"));
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal::error(&format!("the runtime can't be started: {error}"), "", "free some memory", colours);
            return Exit::Environment;
        }
    };
    let (_handle, stop) = stop::channel();
    let environment = crate::host::environment("", None, None);
    terminal::out(&format!(
        "{} · CPUs {} · {:.1} GiB · kernel {} · {}\n",
        environment.cpu,
        environment.cpus,
        environment.memory_bytes as f64 / 1_073_741_824.0,
        environment.kernel,
        if environment.virtual_machine {
            "virtual machine: absolute figures may not be determinable"
        } else {
            "no hypervisor seen"
        },
    ));
    for note in &environment.notes {
        terminal::out(&format!("  – {note}\n"));
    }
    line(
        environment.cgroup > 0,
        &format!("cgroup counters: version {}", environment.cgroup),
        if environment.cgroup > 0 { "" } else { "mount the cgroup file system" },
    );

    terminal::out("docker backend\n");
    let docker = runtime.block_on(Backend::docker(&stop));
    match &docker {
        Ok(backend) => line(true, &format!("Docker Engine {}", backend.docker_version().unwrap_or_default()), ""),
        Err(error) => line(false, &error.failure.what, &error.failure.next),
    }
    terminal::out("process backend\n");
    let process = Backend::process();
    let postgres = engine::postgres::Binaries::find();
    match &postgres {
        Ok(binaries) => {
            let version = process.postgres_version().unwrap_or_default();
            line(true, &format!("PostgreSQL {version} in {}", binaries.directory.display()), "");
            let pgbench = binaries.pgbench.is_some();
            line(
                pgbench,
                if pgbench { "pgbench" } else { "pgbench was not found" },
                if pgbench { "" } else { "apt-get install postgresql-contrib" },
            );
        }
        Err(error) => line(false, &error.failure.what, &error.failure.next),
    }
    if let Some(file) = &arguments.file {
        let selection = Selection { machine: None, profile: None };
        let opened =
            Study::open(file, &selection, &Against::here(true), colours).and_then(|study| study.into_plan(colours));
        let (study, plan) = match opened {
            Ok(opened) => opened,
            Err(exit) => return exit,
        };
        let root = study.sources.root().to_owned();
        for backend in docker.iter().chain([&process]) {
            terminal::out(&format!("{} on the {} backend\n", plan.study, backend.name()));
            match runtime.block_on(availability::check(&plan, backend, &root)) {
                Ok(not_measured) => candidates(&plan, &not_measured, line),
                Err(error) => line(false, &error.failure.what, &error.failure.next),
            }
        }
    }
    if docker.is_ok() || postgres.is_ok() { Exit::Ok } else { Exit::Environment }
}

fn candidates(plan: &Plan, not_measured: &[NotMeasured], line: impl Fn(bool, &str, &str)) {
    for candidate in &plan.candidates {
        match not_measured.iter().find(|entry| entry.candidate == candidate.name) {
            None => line(true, &format!("{} can be measured", candidate.name), ""),
            Some(entry) => line(false, &format!("{}: {}", candidate.name, entry.why), &entry.mend),
        }
    }
}
