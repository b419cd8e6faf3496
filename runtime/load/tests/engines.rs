//! What the engines must do alike and what io_uring refuses: many connections, answers in pieces, large ones, requests that do not fit into
//! their socket, connections that end and come back.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{MS, balanced, job, json_equals, only, plain, request, run, run_seeing, status, stream, text};
use journal::facts::LoadFacts;
use load::noop::{Options, Server};
use load::peer::{Peer, Reply, Then};
use load::{Engine, Job, LoadError, sys};
use plan::{Body, BodyCheck, Expect, Stream};

/// Runs a job on each engine; what came must not depend on it.
fn each(job: &Job, verify: impl Fn(&LoadFacts, &str)) {
    for (engine, name) in [(Engine::Epoll, "epoll"), (Engine::Uring, "io_uring")] {
        let facts = run_seeing(1, &Job { engine, ..job.clone() });
        assert_eq!(facts.transport.as_ref().expect("how it travelled").engine, name);
        verify(&facts, name);
    }
}

fn all_right(facts: &LoadFacts, at_least: u64, name: &str) {
    let account = only(facts);
    assert_eq!(
        (account.census.failed, account.census.timed_out),
        (0, 0),
        "{name} {:?} {:?}",
        account.failures,
        account.evidence
    );
    assert!(account.census.ok >= at_least, "{name} {:?}", account.census);
    assert_eq!((facts.reconnects, facts.unsolicited), (0, 0), "{name}");
}

#[test]
fn each_connection_of_few_and_of_many_is_used() {
    let server = Server::start(&Options::default()).expect("a server");
    for (connections, threads, kernel_time) in
        [(1, 1, false), (64, 1, false), (64, 1, true), (64, 3, false), (1_000, 2, false)]
    {
        let job = Job { connections, threads, kernel_time, window_ns: 400 * MS, ..job(server.address(), plain()) };
        each(&job, |facts, name| {
            all_right(facts, 200, name);
            assert_eq!(facts.connections_used, connections, "{name}");
            let timed = facts.generator.receive.as_ref().expect("some answers are timed by the kernel").connections;
            assert!(if kernel_time {
                timed == connections
            } else {
                timed == connections.div_ceil(16).max(threads) || timed >= connections / 16
            });
        });
    }
}

#[test]
fn answers_in_pieces_and_large_ones_are_put_together() {
    let large = "x".repeat(3 << 20);
    let whole = Reply::json(200, &format!("{{\"id\":1,\"rest\":\"{large}\"}}"));
    let small = Reply::json(200, "{\"id\":1}").pieces.concat();
    let cut =
        Reply { pieces: small.chunks(7).map(<[u8]>::to_vec).collect(), gap_ns: 200_000, hold_ns: 0, then: Then::Keep };
    for (reply, connections) in [(cut, 40), (whole, 4)] {
        let peer = Peer::start(0, move |_| reply.clone()).expect("a peer");
        let streams = vec![stream("s", 1.0, request("GET", text(&["/"])), json_equals(200, "$.id", text(&["1"])))];
        each(&Job { connections, window_ns: 500 * MS, ..job(peer.address(), streams) }, |facts, name| {
            all_right(facts, 4, name)
        });
    }
}

/// Requests that no socket takes at once, constant and varying: the target says what reached it.
#[test]
fn a_request_that_does_not_fit_into_its_socket_arrives_whole() {
    let peer = Peer::start(0, |asked| {
        let digest = blake3::hash(&asked.body).to_hex().to_string();
        Reply::json(200, &format!("{} {digest} {}", asked.body.len(), asked.path))
    })
    .expect("a peer");
    let body = "0123456789abcdef".repeat(8 << 16);
    let digest = blake3::hash(body.as_bytes()).to_hex().to_string();
    for (path, echoed) in [(text(&["/constant"]), text(&["/constant"])), (text(&["/", "$n"]), text(&["/", "$n"]))] {
        let expected = plan::Text([text(&[&format!("{} {digest} ", body.len())]).0, echoed.0].concat());
        let streams = vec![Stream {
            parameters: vec![plan::Parameter {
                name: "n".into(),
                kind: plan::ParameterKind::Sequence { from: 1, to: 100_000 },
            }],
            ..stream(
                "s",
                1.0,
                plan::Request { body: Some(Body::Text(text(&[&body]))), ..request("POST", path) },
                Expect { body: vec![BodyCheck::Exact(expected)], ..status(200) },
            )
        }];
        for kernel_time in [false, true] {
            let job = Job { connections: 3, kernel_time, window_ns: 700 * MS, ..job(peer.address(), streams.clone()) };
            each(&job, |facts, name| all_right(facts, 3, name));
        }
    }
}

/// Answers behind which the connection ends without a word: it is opened again, and the next request is not lost with it.
#[test]
fn connections_that_end_come_back() {
    for then in [Then::Close, Then::Reset] {
        let peer = Peer::start(0, move |asked| {
            let reply = Reply::json(200, "{}");
            if asked.number % 10 == 9 { reply.then(then) } else { reply }
        })
        .expect("a peer");
        each(&Job { connections: 8, ..job(peer.address(), plain()) }, |facts, name| {
            let account = only(facts);
            assert!(
                account.census.ok > account.census.failed * 5,
                "{name} {:?} {:?}",
                account.census,
                account.failures
            );
            assert!(account.census.ok > 50 && facts.reconnects > 2, "{name} {:?} {}", account.census, facts.reconnects);
        });
    }
}

#[test]
fn a_target_that_goes_away_costs_failures_and_a_stop_is_heard() {
    for engine in [Engine::Epoll, Engine::Uring] {
        let peer = Peer::start(0, |_| Reply::json(200, "{}")).expect("a peer");
        let job = Job { engine, connections: 4, window_ns: 600 * MS, ..job(peer.address(), plain()) };
        let prepared = load::prepare(&job).expect("connections");
        let at = sys::now_ns() + 50 * MS;
        let facts = std::thread::scope(|scope| {
            scope.spawn(move || {
                sys::sleep_until(at + 300 * MS);
                drop(peer);
            });
            prepared.run(at, &AtomicBool::new(false)).expect("a run")
        });
        balanced(&job, &facts);
        let account = only(&facts);
        assert!(account.census.ok > 10 && account.census.failed > 4, "{:?} {:?}", account.census, account.failures);
        assert!(account.failures.keys().any(|reason| reason.contains("refused")), "{:?}", account.failures);

        let server = Server::start(&Options::default()).expect("a server");
        let prepared = load::prepare(&Job { engine, window_ns: 60_000 * MS, ..common::job(server.address(), plain()) })
            .expect("connections");
        let stop = AtomicBool::new(false);
        let began = sys::now_ns();
        let stopped = std::thread::scope(|scope| {
            scope.spawn(|| {
                sys::sleep_until(began + 200 * MS);
                stop.store(true, Ordering::Relaxed);
            });
            prepared.run(began + 50 * MS, &stop)
        });
        assert!(matches!(stopped, Err(LoadError::Stopped)), "{stopped:?}");
        assert!(sys::now_ns() - began < 10_000 * MS);
    }
}

#[test]
fn what_io_uring_does_not_carry_is_refused_in_words() {
    let server = Server::start(&Options::default()).expect("a server");
    let job = Job { engine: Engine::Uring, ..job(server.address(), plain()) };
    let proxied = load::Transport { proxy: Some(server.address()), ..load::Transport::default() };
    for (refused, words) in [
        (Job { rate: Some(100.0), ..job.clone() }, "together with a rate; it sends in batches"),
        (Job { keep_alive: false, ..job.clone() }, "together with a connection for each request"),
        (Job { transport: proxied, ..job.clone() }, "together with TLS, HTTP/2 or a proxy"),
    ] {
        let error = load::prepare(&refused).err().expect("refused").to_string();
        assert!(error.contains(words) && error.contains("leave the engine at epoll"), "{error}");
        run(&Job { engine: Engine::Epoll, transport: load::Transport::default(), ..refused })
            .expect("the twin runs on epoll");
    }
    run(&job).expect("the twin runs on io_uring");
}
