//! pgbench against a real server: what it counts is in the table, and whatever goes wrong is an error.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use engine::error::{Class, StepError};
use engine::host::{Exit, Output};
use engine::pgbench::{Invocation, Running, local, run};
use journal::PgbenchFacts;
use plan::{CpuSet, PgbenchProcedure, SqlFile};

use crate::support::{Cluster, cluster};

const INSERT: &str = "-- One row.\nINSERT INTO events (kind) VALUES ('it''s') RETURNING id;\n";

fn procedure(script: &str, seconds: u64) -> PgbenchProcedure {
    PgbenchProcedure {
        script: SqlFile { path: "sql/insert.sql".to_owned(), text: script.to_owned() },
        clients: 4,
        jobs: 8,
        window_ns: seconds * 1_000_000_000,
        rate: None,
        latency_limit_ns: None,
    }
}

async fn bench(cluster: &Cluster, program: &Path, script: &str) -> Result<PgbenchFacts, StepError> {
    let cpus: CpuSet = "0".parse().expect("a set");
    let runner = local(program, &cluster.spec.run, &cpus);
    run(&procedure(script, 2), &cluster.server, "postgres", runner).await
}

#[tokio::test]
async fn what_it_counts_is_in_the_table_and_what_goes_wrong_is_an_error() {
    let cluster = cluster("pgbench").await;
    cluster.sql("postgres", "CREATE TABLE events (id bigint GENERATED ALWAYS AS IDENTITY, kind text)").await;
    let program = cluster.binaries.pgbench.clone().expect("pgbench is installed with PostgreSQL");

    let begin = Instant::now();
    let facts = bench(&cluster, &program, INSERT).await.expect("measured");
    let took = begin.elapsed().as_secs_f64();
    assert!((2.0..8.0).contains(&took), "{took}");
    assert_eq!(cluster.server.count("postgres", "events").await, Ok(facts.transactions));
    assert_eq!(facts.failed, 0);
    let rate = facts.transactions as f64 / 2.0;
    assert!((0.5 * rate..2.0 * rate).contains(&facts.tps), "{facts:?}");
    // Little's law: four clients, each with one transaction at a time.
    let concurrent = facts.tps * facts.latency_ms / 1_000.0;
    assert!((3.5..4.5).contains(&concurrent), "{facts:?}");
    assert!(facts.latency_stddev_ms.is_some_and(|deviation| deviation > 0.0), "{facts:?}");

    // In a transaction of its own level, two updates of one row can't both go through: counted, not an error.
    let failing = "BEGIN ISOLATION LEVEL SERIALIZABLE;\nUPDATE counters SET value = value + 1;\nCOMMIT;\n";
    cluster.sql("postgres", "CREATE TABLE counters AS SELECT 0 AS value").await;
    let facts = bench(&cluster, &program, failing).await.expect("measured");
    assert!(facts.failed > 0 && facts.transactions > 0, "{facts:?}");

    let error = bench(&cluster, &program, "SELECT * FROM nothing;").await.expect_err("no such table");
    assert_eq!(error.class, Class::Step);
    assert!(error.failure.why.contains("nothing") && !error.failure.log.is_empty(), "{error:?}");
    assert!(error.failure.next.contains("sql/insert.sql"), "{error:?}");

    let error = bench(&cluster, Path::new("/nothing/pgbench"), INSERT).await.expect_err("no such program");
    assert_eq!(error.class, Class::Environment);
    assert!(error.failure.what.contains("/nothing/pgbench"), "{error:?}");

    let cpus: CpuSet = "0".parse().expect("a set");
    let runner = local(&program, &cluster.spec.run, &cpus);
    let error = run(&procedure(INSERT, 1), &cluster.server, "exp_cell_none", runner).await.expect_err("no database");
    assert!(error.failure.why.contains("does not exist"), "{error:?}");

    // The way for a runner that has no standard input, as a container's may be.
    let by_shell = |invocation: Invocation| -> Running<'static> {
        let directory = program.parent().map(PathBuf::from).unwrap_or_default();
        Box::pin(async move {
            let (command, env) = invocation.without_stdin();
            let path = format!("{}:/usr/bin:/bin", directory.display());
            let output =
                Command::new(&command[0]).args(&command[1..]).envs(env).env("PATH", path).output().expect("sh");
            Ok(Output {
                exit: Exit { code: i64::from(output.status.code().unwrap_or(-1)), out_of_memory: false },
                stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
                stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            })
        })
    };
    let before = cluster.server.count("postgres", "events").await.expect("counted");
    let facts = run(&procedure(INSERT, 1), &cluster.server, "postgres", by_shell).await.expect("measured");
    assert_eq!(cluster.server.count("postgres", "events").await, Ok(before + facts.transactions));
}

/// What a tool leaves that crashed, was killed, or says nothing; none of it may become a measurement.
#[tokio::test]
async fn a_tool_that_does_not_report_is_an_error() {
    let server = engine::postgres::Server::local(1, "exp", "secret");
    let report = include_str!("pgbench-15.txt");
    let said = |code, stdout: &str, stderr: &str| Output {
        exit: Exit { code, out_of_memory: false },
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    };
    let aborted = "pgbench: error: client 2 aborted in command 0 (SQL) of script 0; perhaps the backend died\n\
                   pgbench: error: Run was aborted; the above results are incomplete.\n";
    for (output, what, why) in [
        (said(2, report, aborted), "exit status 2", "client 2 aborted"),
        (said(137, report, ""), "ended by signal 9", "it said nothing"),
        (said(1, "", "sh: 1: pgbench: not found\n"), "exit status 1", "pgbench: not found"),
        (said(0, "", ""), "report can't be used", "it has no line `number of transactions actually processed:"),
        (said(0, &report[..report.len() / 2], ""), "report can't be used", "it has no line"),
    ] {
        let runner = |_| -> Running<'static> { Box::pin(async move { Ok(output) }) };
        let error = run(&procedure(INSERT, 1), &server, "postgres", runner).await.expect_err(what);
        assert!(error.failure.what.contains(what) && error.failure.why.contains(why), "{error:?}");
    }
    let quiet = |_| -> Running<'static> { Box::pin(async move { Ok(said(0, report, "")) }) };
    assert!(run(&procedure(INSERT, 1), &server, "postgres", quiet).await.is_ok(), "the twin");
    let mut seen = None;
    let look = |invocation: Invocation| -> Running<'static> {
        seen = Some(invocation);
        Box::pin(async move { Ok(said(0, report, "")) })
    };
    run(&procedure(INSERT, 3), &server, "events", look).await.expect("measured");
    let invocation = seen.expect("called");
    assert_eq!(invocation.arguments.join(" "), "-n -h 127.0.0.1 -p 1 -U exp -M simple -f - -c 4 -j 4 -T 3 -P 3 events");
    assert_eq!(invocation.limit, Duration::from_secs(33));
    assert!(!format!("{invocation:?}").contains("secret"));
}
