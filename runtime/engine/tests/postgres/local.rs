//! The server of the process backend: pinned, unprivileged, with the study's settings, gone on every ending.

use std::fs;
use std::time::{Duration, Instant};

use crate::support::{cluster, connect, spec};
use engine::error::Class;
use engine::host::{CounterSource, Server as _};
use engine::postgres::{Binaries, LocalPostgres, leftovers, remove_leftover};

/// A line of `/proc/<pid>/status`.
fn status(pid: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

fn children(pid: u32) -> Vec<u32> {
    let parent = pid.to_string();
    let entries = fs::read_dir("/proc").expect("proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&child| status(child, "PPid").as_deref() == Some(&parent)).collect()
}

fn gone(pids: &[u32]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while let Some(pid) = pids.iter().find(|&&pid| status(pid, "State").is_some_and(|state| !state.starts_with('Z'))) {
        assert!(Instant::now() < deadline, "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
async fn it_is_pinned_unprivileged_and_stops_in_order() {
    let mut cluster = cluster("pinned").await;
    let session = connect(&cluster.server, "postgres", "a test").await;
    let backend: i32 = session.query_one("SELECT pg_backend_pid()", &[]).await.expect("a row").get(0);
    let pid = cluster.local.pid();
    assert_eq!(cluster.local.counters(), Ok(CounterSource::Processes { root: pid }));
    let mut all = children(pid);
    assert!(all.contains(&backend.cast_unsigned()) && all.len() > 3, "{all:?}");
    all.push(pid);
    for &pid in &all {
        assert_eq!(status(pid, "Cpus_allowed_list").as_deref(), Some("0"), "process {pid}");
        assert!(!status(pid, "Uid").expect("a user").starts_with("0\t"), "process {pid} runs as root");
    }
    let port = cluster.server.port;
    let socket = cluster.directory().join(format!(".s.PGSQL.{port}"));
    assert!(socket.exists(), "{}", socket.display());
    assert_eq!(cluster.local.exited(), Ok(None));

    let exit = cluster.local.stop().expect("stopped");
    assert_eq!(exit.code, 0);
    assert_eq!(cluster.local.exited(), Ok(Some(exit)));
    gone(&all);
    assert!(!cluster.directory().exists());
    assert!(cluster.local.logs(50).iter().any(|line| line.contains("received fast shutdown request")));
    assert!(engine::port::require_free(port, "a test").is_ok());
}

#[tokio::test]
async fn dropping_it_ends_it() {
    let cluster = cluster("dropped").await;
    let mut all = children(cluster.local.pid());
    all.push(cluster.local.pid());
    let directory = cluster.directory();
    assert!(directory.exists());
    drop(cluster);
    gone(&all);
    assert!(!directory.exists());
}

#[tokio::test]
async fn a_crash_is_noticed() {
    let mut cluster = cluster("crash").await;
    let pid = cluster.local.pid();
    // The sessions' processes map more than the postmaster does.
    let processes = [vec![pid], children(pid)].concat();
    let maps = processes.iter().filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/maps")).ok());
    let shared: Vec<String> = maps
        .flat_map(|maps| {
            maps.lines().filter_map(|line| Some(line.split_whitespace().nth(5)?.to_owned())).collect::<Vec<_>>()
        })
        .filter(|path| path.starts_with("/dev/shm/PostgreSQL."))
        .collect();
    let segment = segment_of(&cluster.directory());
    assert!(!shared.is_empty() && segments().contains(&segment), "{shared:?} {segment}");
    let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status().expect("kill");
    assert!(killed.success());
    let deadline = Instant::now() + Duration::from_secs(5);
    let exit = loop {
        match cluster.local.exited().expect("told") {
            Some(exit) => break exit,
            None => assert!(Instant::now() < deadline, "not noticed"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(exit.code, 128 + 9);
    let error = cluster.server.count("postgres", "pg_class").await.expect_err("nobody answers");
    assert!(error.failure.why.contains("refused") || error.failure.why.contains("connect"), "{error:?}");
    drop(cluster);
    assert!(shared.iter().all(|path| !fs::exists(path).expect("told")), "{shared:?}");
    assert!(!segments().contains(&segment), "{segment}");
}

/// The number of a server's System V segment, as its pid file tells.
fn segment_of(directory: &std::path::Path) -> String {
    let text = fs::read_to_string(directory.join("data/postmaster.pid")).expect("readable");
    text.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)).expect("line 7").to_owned()
}

/// The numbers of this machine's System V segments.
fn segments() -> Vec<String> {
    let text = fs::read_to_string("/proc/sysvipc/shm").expect("readable");
    text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).map(str::to_owned).collect()
}

#[tokio::test]
async fn what_keeps_it_from_starting_is_told() {
    let logs = tempfile::tempdir().expect("a directory");
    let binaries = Binaries::find().expect("PostgreSQL is installed");
    let plain = spec("refused", &logs);

    let mut wrong = plain.clone();
    wrong.settings.push(("shared_bufers".to_owned(), "1GB".to_owned()));
    let error = LocalPostgres::start(&binaries, &wrong).await.expect_err("no such setting");
    assert_eq!(error.class, Class::Environment);
    assert!(error.failure.log.iter().any(|line| line.contains("shared_bufers")), "{error:?}");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut wrong = plain.clone();
    wrong.port = Some(port);
    let error = LocalPostgres::start(&binaries, &wrong).await.expect_err("taken");
    assert!(error.failure.what.contains(&port.to_string()), "{error:?}");
    drop(listener);

    let mut wrong = plain.clone();
    wrong.log = logs.path().join("nothing/database.log");
    let error = LocalPostgres::start(&binaries, &wrong).await.expect_err("no such directory");
    assert!(error.failure.why.contains("No such file"), "{error:?}");

    let directory = plain.scratch.join(format!("exp-postgres-{}", plain.run));
    assert!(!directory.exists(), "nothing is left of what did not start");
    let mut right = plain.clone();
    right.port = Some(port);
    right.memory_bytes = Some(1 << 30);
    let local = LocalPostgres::start(&binaries, &right).await.expect("the twin starts");
    assert_eq!(local.access().port, port);
    assert!(local.notes().iter().any(|note| note.contains("1073741824 bytes is not enforced")));

    let error = LocalPostgres::start(&binaries, &plain).await.expect_err("the same run, again");
    assert!(error.failure.why.contains(&format!("process {}", local.pid())), "{error:?}");
}

/// As after `kill -9`: the thread that started the server ends, and nobody is left to stop it.
#[test]
fn it_ends_with_whoever_started_it_and_its_directory_is_found() {
    let starting = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let cluster = runtime.block_on(cluster("orphan"));
        let mut all = children(cluster.local.pid());
        all.push(cluster.local.pid());
        let spec = cluster.spec.clone();
        let running = leftovers(&spec.scratch).into_iter().find(|left| left.run == spec.run).expect("listed");
        assert_eq!(running.running, Some(cluster.local.pid()));
        assert!(remove_leftover(&running).is_err(), "it is in use");
        std::mem::forget(cluster);
        (all, spec)
    });
    let (all, spec) = starting.join().expect("started");
    gone(&all[..all.len() - 1]);
    let ended = |running: Option<u32>| {
        running.is_none() || status(all[all.len() - 1], "State").is_some_and(|s| s.starts_with('Z'))
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    let left = loop {
        let left = leftovers(&spec.scratch).into_iter().find(|left| left.run == spec.run).expect("found");
        if ended(left.running) {
            break left;
        }
        assert!(Instant::now() < deadline, "{left:?}");
        std::thread::sleep(Duration::from_millis(20));
    };
    remove_leftover(&left).expect("removed");
    assert!(!left.path.exists());
    assert!(leftovers(&spec.scratch).iter().all(|left| left.run != spec.run));
}
