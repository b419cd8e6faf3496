//! The generator as a child process, spoken to over its standard streams.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use journal::facts::LoadFacts;
use load::Job;
use load::wire::{Answer, Order};

pub struct Generator {
    child: Child,
    answers: BufReader<ChildStdout>,
}

/// The example `generator`, as it is now: cargo builds it with all tests, but not when only some of them are asked for.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let test = std::env::current_exe().expect("the test's own path");
        let folder = test.ancestors().nth(2).expect("target/<profile>");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--example", "generator"]);
        build.args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo").success(), "the example `generator` can't be built");
        folder.join("examples/generator")
    })
}

impl Generator {
    /// Starts a generator and prepares a job in it.
    pub fn start(job: &Job) -> Self {
        let mut generator = Self::bare();
        generator.order(&Order::Job(Box::new(job.clone())));
        let answer = generator.answer();
        assert_eq!(answer, Some(Answer::Ready { connected: job.connections }));
        generator
    }

    /// Starts a generator.
    pub fn bare() -> Self {
        let mut child =
            Command::new(program()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a generator");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, answers }
    }

    pub fn order(&mut self, order: &Order) {
        self.line(&serde_json::to_string(order).expect("JSON"));
    }

    pub fn line(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        writeln!(input, "{line}").expect("written");
    }

    /// The next answer; `None` when the generator has ended.
    pub fn answer(&mut self) -> Option<Answer> {
        let mut line = String::new();
        let length = self.answers.read_line(&mut line).expect("read");
        (length > 0).then(|| serde_json::from_str(&line).expect("an answer"))
    }

    /// Ends the input, as a controller does that has gone away, and returns the exit code.
    pub fn hang_up(mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        self.child.wait().expect("an end").code()
    }

    pub fn signal(&self, signal: i32) {
        let id = i32::try_from(self.child.id()).expect("a process id");
        // SAFETY: the process is a child that has not been waited for, so the number is still its.
        assert_eq!(unsafe { libc::kill(id, signal) }, 0);
    }

    /// The facts of the job that runs; the generator must then end well.
    pub fn finish(mut self) -> LoadFacts {
        let answer = self.answer();
        let Some(Answer::Finished { facts }) = answer else { panic!("{answer:?}") };
        assert_eq!(self.hang_up(), Some(0));
        *facts
    }
}
