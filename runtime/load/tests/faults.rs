//! Targets that misbehave, each in one way: what the account says about them.

mod common;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{
    MS, job, json_equals, only, plain, request, run, run_seeing, status, stream, text, ways, within_attempts,
};
use load::peer::{Asked, Peer, Reply, Then};
use load::{LoadError, SingleError, check, single_shot};
use plan::{BodyCheck, Expect, HeaderCheck, JsonTest, JsonType, Stream};

const BODY: &str = r#"{"id":1}"#;

fn good() -> Reply {
    Reply::json(200, BODY)
}

fn get(expect: Expect) -> Vec<Stream> {
    vec![stream("get", 1.0, request("GET", text(&["/events/1"])), expect)]
}

/// Runs both loops on epoll and a closed one on io_uring against a peer each, and returns the accounts.
fn every_way(
    streams: Vec<Stream>,
    change: impl Fn(&mut load::Job),
    answer: impl FnMut(&Asked) -> Reply + Send + Clone + 'static,
) -> [journal::facts::LoadFacts; 3] {
    ways(1_000.0).map(|(rate, engine)| {
        let peer = Peer::start(0, answer.clone()).expect("a peer");
        let mut job = load::Job { rate, engine, ..job(peer.address(), streams.clone()) };
        change(&mut job);
        run_seeing(30, &job)
    })
}

fn reasons(facts: &journal::facts::LoadFacts) -> Vec<&str> {
    only(facts).failures.keys().map(String::as_str).collect()
}

/// One fault of the answer itself: (what the peer sends, what the stream expects, the reason that is counted).
#[test]
fn every_wrong_answer_is_a_failure_with_its_reason_and_the_right_one_is_none() {
    let body = |check: BodyCheck| Expect { status: vec![200], headers: Vec::new(), body: vec![check] };
    let header = |contains: Option<&str>| Expect {
        status: vec![200],
        headers: vec![HeaderCheck { name: "content-TYPE".into(), contains: contains.map(str::to_owned) }],
        body: Vec::new(),
    };
    let json = |path: &str, test: JsonTest| body(BodyCheck::Json { path: path.into(), test });
    let digest = blake3::hash(BODY.as_bytes()).to_hex().to_string();
    let cases: Vec<(Reply, Expect, &str)> = vec![
        (Reply::json(500, BODY), status(200), "status 500"),
        (Reply::json(502, BODY), Expect::default(), "status 502"),
        (Reply::json(404, BODY), status(200), "status 404"),
        (Reply::json(200, "<html>"), json_equals(200, "$.id", text(&["1"])), "body: not JSON"),
        (Reply::json(200, "{\"id\":1"), json_equals(200, "$.id", text(&["1"])), "body: not JSON"),
        (
            Reply::json(200, "{\"id\":2}"),
            json_equals(200, "$.id", text(&["1"])),
            "body: $.id is not the expected value",
        ),
        (Reply::json(200, "{}"), json("$.id", JsonTest::Exists), "body: $.id is missing"),
        (
            Reply::json(200, "{\"id\":\"1\"}"),
            json("$.id", JsonTest::Type(JsonType::Integer)),
            "body: $.id is not an integer",
        ),
        (Reply::json(200, "{\"id\":1} "), body(BodyCheck::Exact(text(&[BODY]))), "body: not the expected text"),
        (Reply::json(200, "{\"id\":1} "), body(BodyCheck::Length(8)), "body: not 8 bytes long"),
        (
            Reply::json(200, "{\"id\":2}"),
            body(BodyCheck::Contains(text(&[":1}"]))),
            "body: an expected text is not in it",
        ),
        (Reply::json(200, "{\"id\":2}"), body(BodyCheck::Digest(digest)), "body: not the expected digest"),
        (Reply::new("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), header(None), "header content-TYPE is missing"),
        (Reply::json(200, BODY), header(Some("html")), "header content-TYPE does not contain `html`"),
    ];
    for (wrong, expect, reason) in cases {
        let peer = Peer::start(0, move |_| wrong.clone()).expect("a peer");
        let short = |peer: &Peer| load::Job {
            connections: 2,
            warm_up_ns: 40 * MS,
            window_ns: 60 * MS,
            ..job(peer.address(), get(expect.clone()))
        };
        let facts = run_seeing(1, &short(&peer));
        let account = only(&facts);
        assert_eq!(account.census.ok, 0, "{reason}");
        assert!(account.census.failed > 0 && account.warm_up_failed > 0, "{reason} {:?}", account.census);
        assert_eq!(reasons(&facts), [reason]);
        assert_eq!((account.acknowledged, account.unknown), (0, 0), "a wrong answer is an answer");
        assert_eq!(account.failed.count, account.census.failed);

        let peer = Peer::start(0, |_| good()).expect("a peer");
        if reason != "header content-TYPE does not contain `html`" {
            let facts = run_seeing(1, &short(&peer));
            assert_eq!(only(&facts).census.failed, 0, "{reason}: the twin {:?}", only(&facts).failures);
            assert!(only(&facts).census.ok > 0);
        }
    }
}

#[test]
fn one_in_a_hundred_500_is_counted_as_one_in_a_hundred() {
    for facts in every_way(
        plain(),
        |_| (),
        |asked| {
            if asked.number % 100 == 50 { Reply::json(500, "oops") } else { good() }
        },
    ) {
        let account = only(&facts);
        let share = account.census.failed as f64 / (account.census.failed + account.census.ok) as f64;
        assert!((0.005..0.015).contains(&share), "{share}");
        assert_eq!(reasons(&facts), ["status 500"]);
        assert!(account.evidence[0].contains("HTTP/1.1 500 X · oops"), "{:?}", account.evidence);
        assert!(account.evidence.len() <= 5);
        assert_eq!(facts.reconnects, 0, "a wrong status does not cost the connection");
    }
}

#[test]
fn what_takes_too_long_has_timed_out_to_the_nanosecond() {
    // Every fifth answer takes 60 ms, the time-out is 40 ms; every 50th never comes.
    for facts in every_way(
        plain(),
        |job| {
            job.timeout_ns = 40 * MS;
            job.window_ns = 600 * MS;
        },
        |asked| match asked.number {
            n if n % 50 == 49 => Reply::never(),
            n if n % 5 == 0 => good().after(60 * MS),
            _ => good(),
        },
    ) {
        let account = only(&facts);
        assert!(account.census.timed_out > 10, "{:?}", account.census);
        assert!(account.census.ok > account.census.timed_out);
        assert_eq!(account.census.failed, 0, "{:?}", account.failures);
        assert!(account.service.max_ns <= 40 * MS);
        assert!(account.unknown >= account.census.timed_out, "it may have taken effect");
        assert!(facts.reconnects > 0);
        if let Some(corrected) = &account.corrected {
            assert!(corrected.max_ns >= 40 * MS, "what timed out is at least as old as the time-out");
        }
    }
}

/// Connections that end after every answer, announced or not: no request is lost, and each end is counted.
#[test]
fn a_server_that_closes_after_every_answer_costs_reconnects_not_requests() {
    let announced = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{BODY}", BODY.len());
    let old = format!("HTTP/1.0 200 OK\r\n\r\n{BODY}");
    for answer in [announced, old] {
        for facts in every_way(
            get(json_equals(200, "$.id", text(&["1"]))),
            |_| (),
            move |_| Reply::new(answer.clone()).then(Then::Close),
        ) {
            let account = only(&facts);
            assert_eq!(account.census.failed, 0, "{:?} {:?}", account.failures, account.evidence);
            assert!(account.census.ok > 100, "{:?}", account.census);
            assert!(
                facts.reconnects + u64::from(facts.connections) >= account.census.ok,
                "{} {:?}",
                facts.reconnects,
                account.census
            );
            assert_eq!(facts.connections_used, facts.connections);
        }
    }
}

#[test]
fn answers_that_break_off_are_named_and_their_effect_is_unknown() {
    let half = format!("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{BODY}");
    let cases: Vec<(Reply, &str)> = vec![
        (Reply::new(half).then(Then::Close), "connection closed in the middle of an answer"),
        (Reply::new("HTTP/1.1 2").then(Then::Close), "connection closed in the middle of an answer"),
        (Reply::never().then(Then::Close), "connection closed before an answer"),
        (Reply::never().then(Then::Reset), "connection reset"),
        (Reply::new("garbage\r\n\r\n"), "protocol: the answer is not HTTP/1.1"),
        (
            Reply::new(format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(70_000))),
            "protocol: the answer's head is longer than 64 KiB",
        ),
        (
            Reply::new("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc"),
            "protocol: the answer's Content-Length makes no sense",
        ),
        (
            Reply::new("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
            "protocol: a chunk of the answer makes no sense",
        ),
        (Reply::new("HTTP/1.1 101 Switching Protocols\r\n\r\n"), "protocol: the target switched protocols"),
        (
            Reply::new("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\n\r\n"),
            "protocol: bytes came after the end of the answer",
        ),
    ];
    for (reply, reason) in cases {
        for facts in every_way(
            plain(),
            |job| {
                job.connections = 4;
                job.warm_up_ns = 10 * MS;
                job.window_ns = 100 * MS;
            },
            {
                let reply = reply.clone();
                move |asked| if asked.number % 7 == 3 { reply.clone() } else { good() }
            },
        ) {
            let account = only(&facts);
            assert_eq!(reasons(&facts), [reason], "{:?}", account.evidence);
            assert!(account.census.ok > account.census.failed, "{reason}: the others go on {:?}", account.census);
            assert!(account.unknown >= account.census.failed, "{reason}");
            assert!(facts.reconnects > 0, "{reason}");
        }
    }
}

#[test]
fn bytes_that_nobody_asked_for_are_counted() {
    // A second answer 5 ms after the first, on a connection that is idle by then.
    let peer = Peer::start(0, |asked| {
        let mut reply = good();
        if asked.number % 3 == 0 {
            reply.pieces.push(reply.pieces[0].clone());
            reply.gap_ns = 5 * MS;
        }
        reply
    })
    .expect("a peer");
    let facts =
        run(&load::Job { rate: Some(100.0), window_ns: 500 * MS, ..job(peer.address(), plain()) }).expect("a run");
    assert!(facts.unsolicited > 5, "{}", facts.unsolicited);
    assert_eq!(only(&facts).census.ok, 50);
    let honest = Peer::start(0, |_| good()).expect("a peer");
    let facts = run(&load::Job { rate: Some(100.0), ..job(honest.address(), plain()) }).expect("a run");
    assert_eq!(facts.unsolicited, 0);
}

/// A target that speaks first, as an SSH or mail server on the wrong port does.
#[test]
fn a_target_that_speaks_first_is_no_http_server() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    let over = std::sync::Arc::new(AtomicBool::new(false));
    let is_over = std::sync::Arc::clone(&over);
    let server = std::thread::spawn(move || {
        let mut kept = Vec::new();
        while let Ok((mut stream, _)) = listener.accept() {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").expect("written");
            kept.push(stream);
        }
    });
    let facts = run(&load::Job { connections: 2, window_ns: 100 * MS, ..job(address, plain()) }).expect("a run");
    let account = only(&facts);
    assert!(account.census.failed > 2, "{:?}", account.census);
    assert_eq!((account.census.ok, account.census.timed_out), (0, 0));
    assert_eq!(reasons(&facts), ["protocol: the answer is not HTTP/1.1"]);
    over.store(true, Ordering::Relaxed);
    drop(std::net::TcpStream::connect(address));
    server.join().expect("no panic");
}

#[test]
fn usual_and_unusual_answers_that_are_right_are_accepted() {
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"i\r\n5;x=y\r\nd\":1}\r\n0\r\nTrailer: t\r\n\r\n";
    let interim = format!(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length:{}\r\n\r\n{BODY}",
        BODY.len()
    );
    let many =
        format!("HTTP/1.1 200 OK\r\n{}Content-Length: {}\r\n\r\n{BODY}", "X-Long: y\r\n".repeat(4_000), BODY.len());
    for answer in [chunked.to_owned(), interim, many] {
        // Whole, and in pieces with a pause: cut in three at every third position of the first 120 bytes.
        for cut in std::iter::once(0).chain((1..answer.len().min(120)).step_by(3)) {
            let pieces = if cut == 0 {
                vec![answer.clone().into_bytes()]
            } else {
                let (a, b) = answer.as_bytes().split_at(cut);
                let (b, c) = b.split_at(b.len() / 2);
                vec![a.to_vec(), b.to_vec(), c.to_vec()]
            };
            let peer =
                Peer::start(0, move |_| Reply { pieces: pieces.clone(), gap_ns: MS, hold_ns: 0, then: Then::Keep })
                    .expect("a peer");
            // On a busy machine a window this short may pass before the generator has its turn.
            within_attempts(10, || {
                let facts = run(&load::Job {
                    connections: 2,
                    warm_up_ns: 0,
                    window_ns: 15 * MS,
                    ..job(peer.address(), get(json_equals(200, "$.id", text(&["1"]))))
                })
                .expect("a run");
                let account = only(&facts);
                assert_eq!(account.census.failed, 0, "cut at {cut}: {:?} {:?}", account.failures, account.evidence);
                assert_eq!(facts.reconnects, 0);
                if account.acknowledged > 1 { Ok(()) } else { Err(format!("cut at {cut}: {:?}", account.census)) }
            });
        }
    }
}

#[test]
fn answers_without_a_body_end_with_their_head() {
    for (method, answer, code) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", 200),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", 204),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n", 304),
    ] {
        let streams = vec![stream("s", 1.0, request(method, text(&["/"])), status(code))];
        for facts in every_way(streams, |job| job.window_ns = 50 * MS, move |_| Reply::new(answer)) {
            assert_eq!(only(&facts).census.failed, 0, "{method} {code} {:?}", only(&facts).failures);
            assert!(only(&facts).census.ok > 10);
        }
    }
}

#[test]
fn a_target_that_refuses_is_named_before_the_start_and_counted_after_it() {
    let peer = Peer::start(0, |_| good()).expect("a peer");
    let address = peer.address();
    drop(peer);
    let error = load::prepare(&job(address, plain())).err().expect("nobody listens");
    assert!(matches!(&error, LoadError::Connect { number: 1, of: 16, .. }), "{error:?}");
    assert!(error.to_string().contains("connection refused"), "{error}");

    for rate in [None, Some(500.0)] {
        let peer = Peer::start(0, |_| good().after(2 * MS)).expect("a peer");
        let job = load::Job {
            rate,
            warm_up_ns: 100 * MS,
            window_ns: 400 * MS,
            grace_ns: 300 * MS,
            ..job(peer.address(), plain())
        };
        let prepared = load::prepare(&job).expect("connected");
        let start = load::sys::now_ns() + 100 * MS;
        let facts = std::thread::scope(|scope| {
            let running = scope.spawn(|| prepared.run(start, &AtomicBool::new(false)));
            // Half-way through the window the target dies: connections break, new ones are refused.
            load::sys::sleep_until(start + 300 * MS);
            drop(peer);
            running.join().expect("no panic").expect("facts")
        });
        common::balanced(&job, &facts);
        let account = only(&facts);
        assert!(account.census.ok > 0 && account.census.failed > 10, "{:?}", account.census);
        assert!(account.failures.contains_key("connection refused"), "{:?}", account.failures);
        if let Some(rate) = rate {
            assert_eq!(account.census.due, (rate * 0.4) as u64);
            // Without a retry in time a slot stays unsent; it is never lost.
            assert!(account.census.ok < 150, "{:?}", account.census);
        }
    }
}

#[test]
fn a_stop_ends_a_job_at_once_and_gives_no_facts() {
    let peer = Peer::start(0, |_| good()).expect("a peer");
    for rate in [None, Some(100.0)] {
        let job = load::Job { rate, window_ns: 60_000 * MS, ..job(peer.address(), plain()) };
        let stop = AtomicBool::new(false);
        let began = std::time::Instant::now();
        let result = std::thread::scope(|scope| {
            let running = scope.spawn(|| load::run(&job, load::sys::now_ns() + 100 * MS, &stop));
            std::thread::sleep(Duration::from_millis(250));
            stop.store(true, Ordering::Relaxed);
            running.join().expect("no panic")
        });
        assert!(matches!(result, Err(LoadError::Stopped)), "{result:?}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
    let late = load::run(&job(peer.address(), plain()), load::sys::now_ns() - 500 * MS, &AtomicBool::new(false));
    assert!(matches!(late, Err(LoadError::Late { late_ns }) if late_ns >= 500 * MS), "{late:?}");
    for far in [u64::MAX, load::sys::now_ns() + 7_200_000 * MS] {
        let far = load::run(&job(peer.address(), plain()), far, &AtomicBool::new(false));
        assert!(matches!(&far, Err(error) if error.to_string().contains("in the future")), "{far:?}");
    }
}

#[test]
fn jobs_that_make_no_sense_are_refused_with_the_value() {
    let peer = Peer::start(0, |_| good()).expect("a peer");
    let base = || job(peer.address(), plain());
    let cases: Vec<(load::Job, &str)> = vec![
        (load::Job { connections: 0, ..base() }, "0 connections"),
        (load::Job { rate: Some(0.0), ..base() }, "rate is 0"),
        (load::Job { rate: Some(f64::NAN), ..base() }, "rate is NaN"),
        (load::Job { rate: Some(f64::INFINITY), ..base() }, "rate is inf"),
        (load::Job { window_ns: 0, ..base() }, "window is 0"),
        (load::Job { timeout_ns: 0, ..base() }, "time-out is 0"),
        (load::Job { warm_up_ns: u64::MAX, ..base() }, "warm-up is 18446744073709551615"),
        (job(peer.address(), Vec::new()), "has 0 streams"),
        (job(peer.address(), vec![Stream { share: -0.5, ..plain()[0].clone() }]), "share of -0.5"),
        (job(peer.address(), get(json_equals(200, "id", text(&["1"])))), "`id` is not a path"),
        (job(peer.address(), get(json_equals(200, "$.id", text(&["$nobody"])))), "${nobody}"),
    ];
    for (job, part) in cases {
        let error = load::prepare(&job).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn a_single_request_is_sent_read_and_checked_with_values() {
    let peer = Peer::start(0, |asked| match asked.path.as_str() {
        "/events/1" => {
            let authorised = asked.head.contains("Authorization: Bearer secret");
            if authorised { good() } else { Reply::json(401, "{}") }
        }
        "/slow" => good().after(10_000 * MS),
        "/half" => Reply::new("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab").then(Then::Close),
        "/junk" => Reply::new("SSH-2.0-OpenSSH\r\n"),
        _ => Reply::json(404, "{\"error\":\"nothing\"}"),
    })
    .expect("a peer");
    let variables = BTreeMap::from([("id".to_owned(), "1".to_owned())]);
    let tokens = BTreeMap::from([("reader".to_owned(), "secret".to_owned())]);
    let ask = |path, bearer: Option<&str>| {
        let mut request = request("GET", path);
        request.bearer = bearer.map(str::to_owned);
        single_shot(peer.address(), "localhost", &request, &tokens, &variables, Duration::from_millis(300), None)
    };
    let response = ask(text(&["/events/", "$id"]), Some("reader")).expect("an answer");
    assert_eq!((response.status, response.body.as_slice()), (200, BODY.as_bytes()));
    assert!(response.headers.contains(&("Content-Type".into(), "application/json".into())));
    assert_eq!(check(&json_equals(200, "$.id", text(&["$id"])), &response, &variables), None);
    for (expect, text) in [
        (status(401), "status is 200, expected 401".to_owned()),
        (json_equals(200, "$.id", text(&["2"])), "body: $.id is 1, expected 2".to_owned()),
        (json_equals(200, "$.kind", text(&["2"])), "body: $.kind is missing, expected 2".to_owned()),
    ] {
        assert_eq!(check(&expect, &response, &variables), Some(text));
    }
    assert_eq!(ask(text(&["/events/1"]), None).expect("an answer").status, 401);
    assert!(matches!(ask(text(&["/slow"]), None), Err(SingleError::TimedOut { received: 0, .. })));
    assert!(matches!(
        ask(text(&["/half"]), None),
        Err(SingleError::Broken { when: "in the middle of its answer", .. })
    ));
    assert!(matches!(ask(text(&["/junk"]), None), Err(SingleError::Protocol { .. })));
    assert!(matches!(ask(text(&["/$x", "$x"]), None), Err(SingleError::Request(_))));
    let address = peer.address();
    drop(peer);
    let refused =
        single_shot(address, "h", &request("GET", text(&["/"])), &tokens, &variables, Duration::from_secs(1), None);
    assert!(refused.is_err_and(|error| error.to_string().contains("refused")));
}
