//! The process backend against real processes: binding, counting, stopping, and leaving nothing behind.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::error::Class;
use engine::host::{CounterSource, Exit, Server, ServerSpec};
use engine::port;
use engine::process::{Process, RunningProcess, clean};
use engine::sample::{clock, pin, tree};
use journal::RunId;
use plan::{CpuSet, ProcessCommand, Role};

/// A directory of the test's own, removed with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("exp-process-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn backend(&self) -> Process {
        Process::new(&self.0, &self.0.join("scratch")).expect("a writable place")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("our directory");
    }
}

fn spec(run: &str, name: &str) -> ServerSpec {
    ServerSpec {
        run: RunId(run.to_owned()),
        name: name.to_owned(),
        role: Role::Candidate,
        cpus: pin::allowed().expect("readable"),
        memory_bytes: None,
        shared_memory_bytes: None,
        open_files: 1_024,
        env: Vec::new(),
        arguments: Vec::new(),
        port: port::free().expect("a port"),
        data_volume: None,
    }
}

/// A run's name that no other test and no other process of this test has.
fn run_name(name: &str) -> String {
    format!("test-{}-{name}", std::process::id())
}

fn shell(script: &str) -> ProcessCommand {
    let run = ["sh", "-c", script].map(str::to_owned).to_vec();
    ProcessCommand { directory: ".".into(), digest: String::new(), build: Vec::new(), run, needs: Vec::new() }
}

/// Waits until something is so; the test fails when it is not within ten seconds.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what} did not come about within 10 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn line(server: &RunningProcess, start: &str) -> String {
    eventually(start, || {
        server.logs(50).into_iter().find_map(|line| line.strip_prefix(start).map(|rest| rest.trim().to_owned()))
    })
}

fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_server_gets_its_cpus_limits_environment_directory_and_log() {
    let place = Place::new("gets");
    std::fs::write(place.0.join("mark"), "").expect("a file");
    let cpus = pin::allowed().expect("readable").first(1).expect("a CPU");
    let spec = ServerSpec {
        cpus: cpus.clone(),
        open_files: 777,
        memory_bytes: Some(1 << 20),
        env: vec![("POOL".into(), "8".into())],
        arguments: vec!["shell".into(), "argument".into()],
        ..spec(&run_name("gets"), "gets")
    };
    let script = "grep Cpus_allowed_list /proc/self/status; echo files $(ulimit -n); echo pool $POOL; echo run $EXP_RUN; echo argument $1; echo error >&2; ls; exec sleep 60";
    let mut server = place.backend().start(&spec, &shell(script)).expect("started");
    assert_eq!(line(&server, "Cpus_allowed_list:"), cpus.to_string());
    assert_eq!(line(&server, "files"), "777");
    assert_eq!(line(&server, "pool"), "8");
    assert_eq!(line(&server, "run"), run_name("gets"));
    assert_eq!(line(&server, "argument"), "argument");
    assert_eq!(line(&server, "error"), "");
    assert_eq!(line(&server, "mark"), "");
    assert_eq!(server.logs(2).len(), 2);
    assert_eq!(server.notes(), ["gets: the memory limit of 1048576 bytes is not enforced on processes"]);
    assert_eq!(server.counters(), Ok(CounterSource::Processes { root: server.pid() }));
    assert_eq!(server.exited(), Ok(None));
    assert_eq!(server.stop(), Ok(Exit { code: 143, out_of_memory: false }));
    assert_eq!(server.stop(), Ok(Exit { code: 143, out_of_memory: false }), "stopping twice changes nothing");
}

#[test]
fn how_a_server_ends_is_told() {
    let place = Place::new("ends");
    let cases = [
        ("exits", "echo no such table; exit 3", false, 3),
        ("is-killed", "kill -KILL $$", false, 137),
        ("obeys", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done", true, 0),
        ("is-deaf", "trap '' TERM; echo up; while :; do sleep 0.05; done", true, 137),
    ];
    for (name, script, asked, code) in cases {
        let mut server = place.backend().start(&spec(&run_name("ends"), name), &shell(script)).expect("started");
        let exit = if asked {
            line(&server, "up");
            server.stop().expect("it ends")
        } else {
            eventually("its end", || server.exited().expect("readable"))
        };
        assert_eq!(exit, Exit { code, out_of_memory: false }, "{name}");
    }
    let log = place.0.join("scratch/exits.log");
    assert_eq!(std::fs::read_to_string(log).expect("the log"), "no such table\n");
}

/// This test runs itself again as the burners, each of which uses one second of CPU by its own clock, however long that
/// takes.
#[test]
fn ended_children_and_adopted_orphans_are_counted() {
    const ROLE: &str = "EXP_TEST_BURNER";
    if std::env::var_os(ROLE).is_some() {
        while clock::process_cpu_ns() < 1_000_000_000 {
            std::hint::spin_loop();
        }
        return;
    }
    let place = Place::new("counted");
    let program = std::env::current_exe().expect("this program").display().to_string();
    let spec = ServerSpec {
        env: vec![(ROLE.into(), "1".into()), ("BURN".into(), program)],
        ..spec(&run_name("counted"), "counted")
    };
    let burn = "$BURN --exact ended_children_and_adopted_orphans_are_counted >/dev/null";
    let script = format!("{burn} & (setsid {burn} & exec true); wait; echo waited; exec sleep 60");
    let server = place.backend().start(&spec, &shell(&script)).expect("started");
    eventually_long("both burners to end", || {
        let alone = tree::members(server.pid()).expect("alive").len() == 2;
        (alone && server.logs(9).contains(&"waited".to_owned())).then_some(())
    });
    let ns = tree::cpu_ns(&mut tree::members(server.pid()).expect("alive")).expect("alive");
    println!("two burners of one second each: {:.3} s", ns as f64 / 1e9);
    // Each of the two parents that waited may have lost two ticks to rounding; the burners also start and end.
    assert!((1_955_000_000..2_200_000_000).contains(&ns), "{ns}");
}

fn eventually_long(what: &str, mut look: impl FnMut() -> Option<()>) {
    let until = Instant::now() + Duration::from_secs(60);
    while look().is_none() {
        assert!(Instant::now() < until, "{what} did not come about within 60 s");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn memory_of_a_tree_counts_shared_pages_once() {
    let place = Place::new("memory");
    let script = "sleep 60 & sleep 60 & sleep 60 & echo up; wait";
    let server = place.backend().start(&spec(&run_name("memory"), "memory"), &shell(script)).expect("started");
    line(&server, "up");
    // The last of them has executed `sleep` when its command line says so.
    eventually("three sleepers", || {
        let members = tree::members(server.pid()).expect("alive");
        (members.iter().filter(|pid| port::command_line(**pid) == "sleep 60").count() == 3).then_some(())
    });
    let members = tree::members(server.pid()).expect("alive");
    let (bytes, kind) = tree::memory_bytes(&members).expect("alive");
    let pages = |pid: &u32| -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).expect("alive");
        text.split(' ').nth(1).expect("a number").parse().expect("a number")
    };
    let resident = members.iter().map(pages).sum::<u64>() * 4_096;
    println!(
        "guard, shell and three sleepers: {bytes} bytes as {kind:?}, {resident} bytes if shared pages count for each"
    );
    assert_eq!(kind, tree::MemoryKind::Pss);
    assert!((100_000..resident * 9 / 10).contains(&bytes), "{bytes} of {resident}");
}

/// A server whose workers live in sessions of their own and heed no SIGTERM, as far as it can be had in a shell. It prints
/// the process ids of all.
const STUBBORN: &str = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo pid $$; while :; do sleep 1; done' & \
    (setsid sh -c 'echo pid $$; while :; do sleep 1; done' &) ; echo pid $$; while :; do sleep 1; done";

fn stubborn_pids(server: &RunningProcess) -> Vec<u32> {
    eventually("three process ids", || {
        let pids: Vec<u32> =
            server.logs(50).iter().filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect();
        (pids.len() == 3).then_some(pids)
    })
}

#[test]
fn stopping_or_dropping_leaves_no_descendant() {
    let place = Place::new("descendants");
    for dropped in [false, true] {
        let name = if dropped { "dropped" } else { "stopped" };
        let mut server =
            place.backend().start(&spec(&run_name("descendants"), name), &shell(STUBBORN)).expect("started");
        let pids = stubborn_pids(&server);
        assert!(pids.iter().all(|pid| is_alive(*pid)));
        if !dropped {
            server.stop().expect("stopped");
        }
        drop(server);
        let alive: Vec<_> = pids.iter().filter(|pid| is_alive(**pid)).collect();
        assert!(alive.is_empty(), "{name}: {alive:?} are alive");
    }
}

#[test]
fn a_server_that_dies_takes_its_workers_with_it() {
    let place = Place::new("workers");
    let script = "setsid sh -c 'echo pid $$; exec sleep 60' & sleep 0.2; exit 5";
    let mut server = place.backend().start(&spec(&run_name("workers"), "dies"), &shell(script)).expect("started");
    let worker: u32 = line(&server, "pid").parse().expect("a process id");
    let exit = eventually("its end", || server.exited().expect("readable"));
    assert_eq!(exit.code, 5);
    assert!(!is_alive(worker));
}

/// This test runs itself a second time as the process that is killed.
#[test]
fn kill_9_of_exp_leaves_nothing() {
    const ROLE: &str = "EXP_TEST_VICTIM";
    if let Some(place) = std::env::var_os(ROLE) {
        let backend = Process::new(Path::new(&place), Path::new(&place)).expect("a writable place");
        let server = backend.start(&spec(&run_name("victim"), "victim"), &shell(STUBBORN)).expect("started");
        println!("\nguard {}", server.pid());
        for pid in stubborn_pids(&server) {
            println!("pid {pid}");
        }
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let place = Place::new("victim");
    let mut victim = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "kill_9_of_exp_leaves_nothing", "--nocapture"])
        .env(ROLE, &place.0)
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program again");
    let mut pids = Vec::new();
    for line in BufReader::new(victim.stdout.take().expect("piped")).lines().map_while(Result::ok) {
        pids.extend(line.strip_prefix("guard ").or(line.strip_prefix("pid ")).and_then(|pid| pid.parse::<u32>().ok()));
        if pids.len() == 4 {
            break;
        }
    }
    assert_eq!(pids.len(), 4);
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    // `Child::kill` is SIGKILL.
    victim.kill().expect("our child");
    victim.wait().expect("our child");
    eventually("the end of guard, server and workers", || pids.iter().all(|pid| !is_alive(*pid)).then_some(()));
}

#[test]
fn cleaning_finds_what_lost_its_guard_and_spares_other_runs() {
    let place = Place::new("clean");
    let (run, other) = (run_name("clean"), run_name("other"));
    let script = "sleep 61 & echo pid $!; wait";
    let mut lost = place.backend().start(&spec(&run, "lost"), &shell(script)).expect("started");
    let spared = place.backend().start(&spec(&other, "spared"), &shell(script)).expect("started");
    let left: u32 = line(&lost, "pid").parse().expect("a process id");
    let kept: u32 = line(&spared, "pid").parse().expect("a process id");
    // SAFETY: no pointers; the guard is our child and was not waited for.
    unsafe { libc::kill(lost.pid() as libc::pid_t, libc::SIGKILL) };
    eventually("the guard's end", || lost.exited().expect("readable"));
    assert!(is_alive(left), "a guard that is killed can't kill");
    let id = RunId(run);
    assert_eq!(clean(Some(&id), std::slice::from_ref(&id)), Ok(Vec::new()), "a run to keep is kept");
    let removed = clean(Some(&id), &[]).expect("nothing is in the way");
    assert!(removed.iter().any(|told| told.contains(&format!("process {left} (`sleep 61`)"))), "{removed:?}");
    assert!(!is_alive(left) && is_alive(kept));
    assert_eq!(clean(Some(&id), &[]), Ok(Vec::new()));
}

#[test]
fn what_keeps_a_server_from_starting_is_named() {
    let place = Place::new("named");
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = held.local_addr().expect("its address").port();
    let plain = || spec(&run_name("named"), "go");
    let program = |run: &[&str], needs: &[&str]| ProcessCommand {
        run: run.iter().map(|word| (*word).to_owned()).collect(),
        needs: needs.iter().map(|word| (*word).to_owned()).collect(),
        ..shell("")
    };
    let cases = [
        (
            ServerSpec { port, ..plain() },
            shell("true"),
            format!("go can't listen on 127.0.0.1:{port}"),
            format!("process {} (`", std::process::id()),
            format!("kill {}", std::process::id()),
        ),
        (
            plain(),
            program(&["php-fpm-none", "-F"], &["no-such-program", "sh"]),
            "`no-such-program`, `php-fpm-none` is not installed".into(),
            "`php-fpm-none -F` in . needs it".into(),
            "apt-get install no-such-program php-fpm-none".into(),
        ),
        (
            plain(),
            program(&["./server"], &[]),
            "go can't be started: `./server`".into(),
            "No such file".into(),
            "Look whether the program is there".into(),
        ),
        (
            ServerSpec { cpus: CpuSet::new([1_000]), ..plain() },
            shell("true"),
            "go can't be started".into(),
            "Invalid argument".into(),
            "the role's CPUs are this machine's".into(),
        ),
        (
            ServerSpec { cpus: CpuSet::default(), ..plain() },
            shell("true"),
            "go can't be started".into(),
            "there is no CPU in the set".into(),
            "exp doctor".into(),
        ),
    ];
    for (spec, command, what, why, next) in cases {
        let error = place.backend().start(&spec, &command).expect_err(&what);
        assert_eq!(error.class, Class::Environment, "{error:?}");
        assert!(error.failure.what.contains(&what), "{error:?}");
        assert!(error.failure.why.contains(&why), "{error:?}");
        assert!(error.failure.next.contains(&next), "{error:?}");
    }
}

#[test]
fn builds_tell_their_output_and_their_failure() {
    let place = Place::new("builds");
    std::fs::create_dir(place.0.join("app")).expect("a directory");
    let build = |script: &str| ProcessCommand {
        directory: "app".into(),
        build: ["sh", "-c", script].map(str::to_owned).to_vec(),
        ..shell("")
    };
    let mut told = BTreeMap::new();
    let good = build("echo compiling; echo linking >&2; touch built");
    place
        .backend()
        .build(&good, |progress| {
            told.insert(progress.done, progress.what);
        })
        .expect("it builds");
    assert_eq!(told.into_values().collect::<Vec<_>>(), ["compiling", "linking"]);
    assert!(place.0.join("app/built").exists());

    let bad = build("for i in $(seq 30); do echo line $i; done; echo error: no main >&2; exit 2");
    let error = place.backend().build(&bad, |_| {}).expect_err("it fails");
    assert_eq!((error.class, error.failure.why.as_str()), (Class::Step, "exit status 2"));
    assert_eq!((error.failure.log.len(), error.failure.log.last().map(String::as_str)), (20, Some("error: no main")));
    assert!(error.failure.what.ends_with("in app failed"), "{error:?}");

    let none = ProcessCommand { build: Vec::new(), ..good };
    place.backend().build(&none, |progress| panic!("{progress:?}")).expect("nothing to build");

    let interrupt = Arc::new(AtomicBool::new(false));
    let backend = place.backend().interrupted_by(Arc::clone(&interrupt));
    let before = Instant::now();
    let mut started = Vec::new();
    let error = backend
        .build(&build("setsid sleep 30 & echo $!; wait"), |progress| {
            started.push(progress.what.parse::<u32>().expect("a process id"));
            interrupt.store(true, Ordering::Relaxed);
        })
        .expect_err("interrupted");
    assert!(started.len() == 1 && !is_alive(started[0]), "{started:?}");
    assert_eq!(error.class, Class::Interrupted);
    assert!(before.elapsed() < Duration::from_secs(10));
}
