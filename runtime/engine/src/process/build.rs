//! What a command needs and how it is built.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use plan::ProcessCommand;

use super::{Process, guard, pipe};
use crate::error::{Class, StepError};
use crate::host::Progress;

/// Lines of output that a failed build is told with.
const LAST_LINES: usize = 20;

impl Process {
    /// An environment failure that names every missing program, with how each is installed; a candidate that needs
    /// them is not measured.
    pub fn require_programs(&self, command: &ProcessCommand) -> Result<(), StepError> {
        let own = [command.build.first(), command.run.first()].into_iter().flatten().filter(|word| !word.contains('/'));
        let mut missing: Vec<&str> =
            command.needs.iter().chain(own).map(String::as_str).filter(|program| !on_path(program)).collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            return Ok(());
        }
        let named: Vec<String> = missing.iter().map(|program| format!("`{program}`")).collect();
        let packages: Vec<&str> = missing.iter().map(|program| package(program)).collect();
        Err(StepError::environment(
            format!("{} is not installed", named.join(", ")),
            format!("`{}` in {} needs it, and it is not on PATH", command.run.join(" "), command.directory),
            format!("apt-get install {}", packages.join(" ")),
        ))
    }

    /// Builds a command, once before anything is measured. Nothing happens where there is nothing to build.
    pub fn build(&self, command: &ProcessCommand, mut progress: impl FnMut(Progress)) -> Result<(), StepError> {
        self.require_programs(command)?;
        if command.build.is_empty() {
            return Ok(());
        }
        let told = command.build.join(" ");
        let failed =
            |why: String, next: &str| StepError::step(format!("`{told}` in {} failed", command.directory), why, next);
        let (mut from, to) = std::io::pipe().map_err(|error| failed(error.to_string(), "Close files."))?;
        let mut build = self.command(command, &command.build);
        build.stdin(Stdio::null());
        build.stdout(to.try_clone().map_err(|error| failed(error.to_string(), "Close files."))?).stderr(to);
        // A build has a guard as a server has: when it ends, or `exp` does, nothing that it started goes on.
        let (life_read, life) = pipe().map_err(|error| failed(error.to_string(), "Close files."))?;
        // SAFETY: the closure makes system calls on values that were made before the fork, and allocates nothing.
        unsafe { build.pre_exec(move || guard::stand_between(&life_read)) };
        let mut child =
            build.spawn().map_err(|error| failed(error.to_string(), "Look whether the program is there."))?;
        // The command holds the pipe's writing ends too; without them here, reading ends when the build does.
        drop(build);

        let (tell, told_lines) = mpsc::channel();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(&mut from).split(b'\n').map_while(Result::ok) {
                if tell.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                    break;
                }
            }
        });
        let (mut lines, mut last) = (0, Vec::new());
        loop {
            match told_lines.recv_timeout(Duration::from_millis(100)) {
                Ok(line) => {
                    lines += 1;
                    if last.len() == LAST_LINES {
                        last.remove(0);
                    }
                    last.push(line.clone());
                    progress(Progress { what: line, done: lines, of: 0 });
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.interrupt.load(Ordering::Relaxed) {
                drop(life);
                let _ended = child.wait();
                return Err(StepError::new(Class::Interrupted, format!("`{told}` was interrupted"), "", ""));
            }
        }
        let status = child.wait().map_err(|error| failed(error.to_string(), "Run the study again."))?;
        // It has read everything, for the pipe is closed. A panic there would have shown as lines that are missing.
        let _over = reader.join();
        if status.success() {
            return Ok(());
        }
        Err(failed(super::exit(status).to_string(), "Mend what its last lines say, and run the study again.")
            .with_log(last))
    }
}

/// Whether a program can be found as a shell finds it.
fn on_path(program: &str) -> bool {
    program_on_path(program).is_some()
}

/// Where on PATH a program is.
pub(crate) fn program_on_path(program: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|file| {
        file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    })
}

/// The Debian package of a program, where its name is another.
fn package(program: &str) -> &str {
    match program {
        "go" => "golang-go",
        "php" => "php-cli",
        "php-fpm" => "php-fpm",
        "node" => "nodejs",
        "python" => "python-is-python3",
        "postgres" | "initdb" | "pg_ctl" => "postgresql",
        "pgbench" => "postgresql-contrib",
        "java" => "default-jre-headless",
        "javac" => "default-jdk-headless",
        "gcc" | "cc" | "make" => "build-essential",
        other => other,
    }
}
