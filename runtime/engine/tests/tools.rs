//! Other tools against a service that counts: what they tell is what it saw, and what they can't tell is named.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engine::error::Class;
use engine::tool::{Installed, ToolLoad, find};
use journal::{LoadFacts, RunId};
use load::peer::{Peer, Reply};
use load::wire::{Job, Transport};
use plan::{Arrivals, Body, Expect, Parameter, ParameterKind, Piece, Request, Stream, Text, Tool, Workload};

/// What the service saw.
#[derive(Default)]
struct Seen {
    good: AtomicU64,
    bad: AtomicU64,
    odd: Mutex<Vec<String>>,
}

/// A service that answers every `bad_every`-th request with 502 and looks at each request.
fn service(bad_every: u64, seen: &Arc<Seen>) -> Peer {
    let seen = Arc::clone(seen);
    Peer::start(8, move |asked| {
        let head = asked.head.to_ascii_lowercase();
        let fine = asked.body == b"{\"kind\":\"view\"}"
            && head.starts_with("post /items/")
            && head.contains("\r\nauthorization: bearer s3cret\r\n")
            && head.contains("\r\ncontent-type: application/json\r\n");
        if !fine {
            seen.odd.lock().expect("unpoisoned").push(format!("{head}{}", String::from_utf8_lossy(&asked.body)));
        }
        let count = seen.good.load(Ordering::SeqCst) + seen.bad.load(Ordering::SeqCst) + 1;
        if bad_every > 0 && count.is_multiple_of(bad_every) {
            seen.bad.fetch_add(1, Ordering::SeqCst);
            return Reply::json(502, "{}");
        }
        seen.good.fetch_add(1, Ordering::SeqCst);
        Reply::json(201, "{\"id\":1}").after(1_000_000)
    })
    .expect("a service")
}

fn job(target: SocketAddr, rate: Option<f64>) -> Job {
    let request = Request {
        method: "POST".into(),
        path: Text(vec![Piece::Literal("/items/".into()), Piece::Variable("id".into())]),
        headers: Vec::new(),
        bearer: Some("writer".into()),
        body: Some(Body::Text(Text::literal("{\"kind\":\"view\"}"))),
        content_type: Some("application/json".into()),
        accept_gzip: false,
    };
    let stream = Stream {
        name: "write".into(),
        share: 1.0,
        rate: None,
        request,
        parameters: vec![Parameter { name: "id".into(), kind: ParameterKind::Uniform { from: 1, to: 1_000_000 } }],
        expect: Expect { status: vec![201], ..Expect::default() },
        creates_row_in: None,
    };
    Job {
        target,
        host: target.to_string(),
        workload: Workload { name: "writes".into(), streams: vec![stream] },
        tokens: BTreeMap::from([("writer".into(), "s3cret".into())]),
        variables: BTreeMap::new(),
        connections: 4,
        rate,
        arrivals: Arrivals::default(),
        course: Vec::new(),
        keep_alive: true,
        warm_up_ns: 1_000_000_000,
        window_ns: 1_000_000_000,
        timeout_ns: 2_000_000_000,
        grace_ns: 2_000_000_000,
        threads: 1,
        cpus: "0".parse().expect("a set"),
        seed: 7,
        part: None,
        requests: None,
        kernel_time: false,
        transport: Transport::default(),
        engine: load::Engine::default(),
    }
}

async fn measured(tool: Tool, target: SocketAddr, rate: Option<f64>) -> Result<LoadFacts, engine::error::StepError> {
    let installed = find(tool)?;
    let (run, job) = (RunId(format!("tools-{}", tool.name())), job(target, rate));
    let scratch = tempfile::tempdir().expect("a directory");
    let mut load = ToolLoad::new(&installed, &run, &job, scratch.path())?;
    load.warm_up().await?;
    let facts = load.measure().await;
    drop(load);
    assert_eq!(std::fs::read_dir(scratch.path()).expect("a directory").count(), 0, "it leaves nothing behind");
    facts
}

/// The tools that this machine's packages and Go modules give; oha's outputs are recorded.
const TOOLS: [(Tool, Option<f64>); 4] =
    [(Tool::Wrk, None), (Tool::H2load, None), (Tool::H2load, Some(200.0)), (Tool::Vegeta, Some(200.0))];

#[tokio::test]
async fn what_they_tell_is_what_the_service_saw() {
    for (tool, rate) in TOOLS {
        for bad_every in [0, 10] {
            let seen = Arc::new(Seen::default());
            let peer = service(bad_every, &seen);
            let facts =
                measured(tool, peer.address(), rate).await.unwrap_or_else(|error| panic!("{}: {error:?}", tool.name()));
            let label = format!("{} {rate:?} {bad_every}: {facts:?}", tool.name());
            assert_eq!(*seen.odd.lock().expect("unpoisoned"), [""; 0], "{label}");
            let [stream] = &facts.streams[..] else { panic!("{label}") };
            let (good, bad) = (seen.good.load(Ordering::SeqCst), seen.bad.load(Ordering::SeqCst));
            assert!(
                stream.acknowledged <= good && good <= stream.acknowledged + stream.unknown,
                "{good} good; {label}"
            );
            assert!(stream.unknown <= 8, "{label}");
            assert_eq!(bad_every > 0, stream.census.failed > 0, "{label}");
            let failed = stream.census.failed + stream.warm_up_failed;
            assert!(failed <= bad && bad <= failed + 8, "{bad} bad; {label}");
            assert!(stream.census.ok > 60, "{label}");
            assert!(stream.service.count >= stream.census.ok, "{label}");
            // Eight workers that hold 1 ms each, four connections.
            assert!(stream.service.min_ns >= if bad_every == 0 { 900_000 } else { 0 }, "{label}");
            let told = facts.tool.as_ref().expect("a tool");
            assert_eq!(told.name, tool.name());
            assert!(!told.lacks.is_empty() && told.measured_ns >= 700_000_000, "{label}");
            if let Some(rate) = rate {
                let achieved = (stream.census.ok + stream.census.failed) as f64 / (told.measured_ns as f64 / 1e9);
                assert!((0.8 * rate..1.2 * rate).contains(&achieved), "{achieved}; {label}");
            }
            assert!(facts.generator.cpu_ns.is_some_and(|ns| ns > 0), "{label}");
        }
    }
}

#[tokio::test]
async fn a_tool_that_sends_nothing_is_an_error_and_no_zero() {
    // A port that nobody listens on.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    for (tool, rate) in TOOLS {
        match measured(tool, free, rate).await {
            Err(error) => assert_eq!(error.class, Class::Step, "{error:?}"),
            Ok(facts) => {
                let stream = &facts.streams[0];
                assert!(stream.census.ok == 0 && stream.census.failed > 0, "{facts:?}");
                assert!(!stream.failures.is_empty(), "{facts:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_tool_that_is_missing_crashes_or_is_wordless_is_an_error() {
    let scratch = tempfile::tempdir().expect("a directory");
    let run = RunId("tools-broken".to_owned());
    let job = job("127.0.0.1:9".parse().expect("an address"), None);
    for (script, says) in [
        ("exit 0", "told can't be used"),
        ("echo Running; exit 3", "wrk failed: exit status: 3"),
        ("kill -9 $$", "signal: 9"),
        ("echo 'account 1'; echo 'measured-us 0'", "told can't be used"),
    ] {
        let program = scratch.path().join("wrk");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("a script");
        let mut mode = std::fs::metadata(&program).expect("a script").permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
        std::fs::set_permissions(&program, mode).expect("a script");
        let installed = Installed { tool: Tool::Wrk, program: program.clone(), version: "0".into() };
        let mut load = ToolLoad::new(&installed, &run, &job, scratch.path()).expect("written");
        let error = load.measure().await.expect_err(script);
        assert!(error.failure.what.contains(says), "{script}: {error:?}");
    }
    let gone = Installed { tool: Tool::Wrk, program: scratch.path().join("gone"), version: "0".into() };
    let mut load = ToolLoad::new(&gone, &run, &job, scratch.path()).expect("written");
    let error = load.measure().await.expect_err("nothing to start");
    assert!(error.failure.what.contains("can't be started"), "{error:?}");
}
