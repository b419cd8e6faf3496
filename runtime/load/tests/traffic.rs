//! What a study can ask of the traffic: ramps, rates of their own, skewed and read parameters, connections for one request,
//! large bodies, compressed answers, many connections; each against a peer whose truth is known.

mod common;

use std::io::Write as _;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use common::child::Generator;
use common::{MS, job, only, plain, request, run, run_seeing, status, stream, text, within_attempts};
use load::noop::{Options, Server};
use load::peer::{Asked, Peer, Reply, Then};
use load::{Arrivals, Job, LoadError, check, single_shot, sys};
use plan::{
    Body, BodyCheck, BodyFile, ContentHash, Expect, HeaderCheck, JsonTest, Leg, Parameter, ParameterKind, RowOrder,
    Stream,
};

#[test]
fn a_ramp_sends_exactly_its_integral_and_gets_faster() {
    let server = Server::start(&Options::default()).expect("a server");
    let course =
        vec![Leg { from: 200.0, to: 3_000.0, for_ns: 300 * MS }, Leg { from: 3_000.0, to: 3_000.0, for_ns: 100 * MS }];
    // (200 + 3,000) ÷ 2 × 0.3 + 3,000 × 0.1
    let due = 480 + 300;
    for threads in [1, 3] {
        let facts = run(&Job {
            rate: Some(Leg::mean(&course)),
            course: course.clone(),
            window_ns: 400 * MS,
            threads,
            ..job(server.address(), plain())
        })
        .expect("a run");
        let stream = only(&facts);
        assert_eq!((stream.census.due, stream.census.ok), (due, due), "{:?}", stream.failures);
        assert_eq!(stream.acknowledged, due + 10, "the warm-up has 50 ms at the rate of the start");
    }
    within_attempts(5, || {
        let facts = run(&Job {
            rate: Some(Leg::mean(&course)),
            course: course.clone(),
            window_ns: 400 * MS,
            ..job(server.address(), plain())
        })
        .expect("a run");
        let progress = &only(&facts).progress;
        // 67, 160, 253 and 300 in four slices of 100 ms.
        let grows = progress.windows(2).all(|pair| pair[0] < pair[1]);
        if grows { Ok(()) } else { Err(format!("the answers don't follow the ramp: {progress:?}")) }
    });
}

#[test]
fn streams_keep_rates_of_their_own_in_one_loop() {
    let server = Server::start(&Options::default()).expect("a server");
    let streams: Vec<Stream> = [("a", 2_000.0), ("b", 500.0), ("c", 10.0)]
        .into_iter()
        .map(|(name, rate)| Stream {
            rate: Some(rate),
            ..stream(name, rate / 2_510.0, request("GET", text(&["/", name])), status(200))
        })
        .collect();
    for (threads, arrivals) in [(1, Arrivals::Constant), (3, Arrivals::Constant), (2, Arrivals::Poisson)] {
        let facts = run(&Job {
            rate: Some(2_510.0),
            arrivals,
            threads,
            window_ns: 500 * MS,
            ..job(server.address(), streams.clone())
        })
        .expect("a run");
        for (stream, due) in facts.streams.iter().zip([1_000u64, 250, 5]) {
            assert_eq!(stream.census.ok, stream.census.due, "{} {:?}", stream.name, stream.failures);
            let off = stream.census.due.abs_diff(due);
            let accepted = if arrivals == Arrivals::Constant { 0 } else { 5 * (due as f64).sqrt() as u64 + 2 };
            assert!(off <= accepted, "{} was due {} times instead of {due}", stream.name, stream.census.due);
        }
    }
}

#[test]
fn rates_that_contradict_each_other_are_refused() {
    let server = Server::start(&Options::default()).expect("a server");
    let base = || job(server.address(), plain());
    let own = |rate: Option<f64>| vec![Stream { rate, ..plain()[0].clone() }];
    let leg = Leg { from: 1.0, to: 3.0, for_ns: 300 * MS };
    let mut mixed = own(Some(5.0));
    mixed.extend(plain());
    for (job, says) in [
        (Job { course: vec![leg], ..base() }, "a closed loop has no rate"),
        (job(server.address(), own(Some(5.0))), "a closed loop has no rate"),
        (Job { rate: Some(5.0), ..job(server.address(), mixed) }, "1 of 2 streams"),
        (Job { rate: Some(6.0), ..job(server.address(), own(Some(5.0))) }, "add up to 5"),
        (Job { rate: Some(3.0), course: vec![leg], ..base() }, "is 2"),
        (Job { rate: Some(2.0), course: vec![leg], window_ns: 200 * MS, ..base() }, "ramps and steps take"),
        (Job { rate: Some(5.0), course: vec![leg], ..job(server.address(), own(Some(5.0))) }, "ramps or steps"),
    ] {
        let error = run(&job).expect_err(says).to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn rows_of_a_file_reach_the_target_together() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&seen);
    let peer = Peer::start(0, move |asked: &Asked| {
        log.lock().expect("the log").push(asked.path.clone());
        Reply::json(200, &format!("{{\"path\":{:?}}}", asked.path))
    })
    .expect("a peer");
    let column = |name: &str, values: [&str; 3]| Parameter {
        name: name.into(),
        kind: ParameterKind::Csv {
            path: "users.csv".into(),
            digest: ContentHash::of_bytes(b"users"),
            column: name.into(),
            values: values.map(str::to_owned).to_vec(),
            order: RowOrder::Random,
        },
    };
    let stream = Stream {
        parameters: vec![
            column("user", ["ada", "grace", "joan"]),
            column("badge", ["1", "2", "3"]),
            Parameter { name: "id".into(), kind: ParameterKind::Zipf { from: 1, to: 50, exponent: 1.2 } },
        ],
        ..stream("get", 1.0, request("GET", text(&["/", "$user", "/", "$badge", "/", "$id"])), status(200))
    };
    let expect = Expect {
        body: vec![BodyCheck::Json {
            path: "$.path".into(),
            test: JsonTest::Equals(text(&["/", "$user", "/", "$badge", "/", "$id"])),
        }],
        ..status(200)
    };
    let facts = run_seeing(300, &job(peer.address(), vec![Stream { expect, ..stream }]));
    assert_eq!(only(&facts).census.failed, 0, "{:?}", only(&facts).evidence);
    let seen = seen.lock().expect("the log");
    for row in ["/ada/1/", "/grace/2/", "/joan/3/"] {
        assert!(seen.iter().any(|path| path.starts_with(row)), "{row} never came");
    }
    assert!(seen.iter().all(|path| ["/ada/1/", "/grace/2/", "/joan/3/"].iter().any(|row| path.starts_with(row))));
    let first = seen.iter().filter(|path| path.ends_with("/1")).count();
    let last = seen.iter().filter(|path| path.ends_with("/50")).count();
    assert!(first > 10 * last.max(1), "the first value is asked for far more often: {first} against {last}");
}

/// A connection for each request: as many connections as requests, opened within the request's time.
#[test]
fn each_request_can_have_a_connection_of_its_own() {
    for rate in [None, Some(500.0)] {
        let closes = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&closes);
        let peer = Peer::start(0, move |asked: &Asked| {
            assert_eq!(asked.on_connection, 0, "a second request on one connection");
            count.fetch_add(u64::from(asked.head.contains("Connection: close")), Ordering::Relaxed);
            Reply::json(200, "{\"id\":1}").after(2 * MS).then(if asked.number.is_multiple_of(2) {
                Then::Close
            } else {
                Then::Keep
            })
        })
        .expect("a peer");
        let facts = run(&Job { keep_alive: false, threads: 2, rate, connections: 8, ..job(peer.address(), plain()) })
            .expect("a run");
        let stream = only(&facts);
        assert_eq!((stream.census.failed, stream.census.timed_out), (0, 0), "{:?}", stream.failures);
        assert!(stream.census.ok >= 100, "{:?}", stream.census);
        let requests = closes.load(Ordering::Relaxed);
        assert_eq!(peer.connections(), requests + 1, "one more showed that somebody listens");
        assert!(requests >= stream.acknowledged);
        let connect = stream.connect.as_ref().expect("connecting is timed");
        assert!(connect.count >= stream.census.ok.saturating_sub(8), "{} of {}", connect.count, stream.census.ok);
        assert!(connect.sum_ns < stream.service.sum_ns, "connecting is part of the request");
        assert_eq!(facts.reconnects, 0);
        if rate.is_none() {
            // Little's law: rate × service ÷ connections. A request that began before its connection stood counts from there.
            let taken = stream.service.sum_ns as f64 / (300 * MS) as f64 / 8.0;
            assert!((0.5..1.2).contains(&taken), "{taken} of the places were taken");
        }
    }
}

#[test]
fn a_target_that_goes_away_refuses_connections_and_comes_back_in_the_account() {
    for rate in [None, Some(1_000.0)] {
        let peer = Peer::start(0, |_| Reply::json(200, "{}")).expect("a peer");
        let job = Job { keep_alive: false, connections: 4, rate, warm_up_ns: 0, ..job(peer.address(), plain()) };
        let prepared = load::prepare(&job).expect("a target");
        let start = sys::now_ns() + 100 * MS;
        let ender = std::thread::spawn(move || {
            sys::sleep_until(start + 150 * MS);
            drop(peer);
        });
        let facts = prepared.run(start, &std::sync::atomic::AtomicBool::new(false)).expect("a run");
        ender.join().expect("the ender");
        common::balanced(&job, &facts);
        let stream = only(&facts);
        assert!(stream.failures.get("connection refused").is_some_and(|count| *count > 3), "{:?}", stream.failures);
        assert!(stream.census.ok > 0);
        assert!(stream.failures["connection refused"] < 2_000, "attempts rest: {:?}", stream.failures);
    }
}

/// Runs again in a network of its own that has sixteen local ports.
#[test]
fn local_ports_that_run_out_are_named() {
    const INSIDE: &str = "LOAD_TEST_FEW_PORTS";
    if std::env::var_os(INSIDE).is_none() {
        let test = std::env::current_exe().expect("the test's own path");
        let script = format!(
            "ip link set lo up && echo '40000 40015' > /proc/sys/net/ipv4/ip_local_port_range && \
             echo 0 > /proc/sys/net/ipv4/tcp_tw_reuse && exec '{}' --exact local_ports_that_run_out_are_named --nocapture",
            test.display()
        );
        let output = Command::new("unshare")
            .args(["--map-root-user", "--net", "sh", "-c", &script])
            .env(INSIDE, "1")
            .output()
            .expect("unshare, of util-linux");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        return;
    }
    let peer = Peer::start(0, |_| Reply::json(200, "{}")).expect("a peer");
    let facts =
        run(&Job { keep_alive: false, connections: 4, warm_up_ns: 0, ..job(peer.address(), plain()) }).expect("a run");
    let stream = only(&facts);
    assert!(stream.census.ok > 0 && stream.census.failed > 0, "{:?} {:?}", stream.census, stream.failures);
    let reason = stream.failures.keys().next().expect("a reason");
    assert!(reason.contains("no local port is left") && reason.contains("keeps its port for a minute"), "{reason}");
    let error = run(&Job { connections: 40, ..job(peer.address(), plain()) }).expect_err("too few ports");
    assert!(
        matches!(error, LoadError::Connect { .. }) && error.to_string().contains("no local port is left"),
        "{error}"
    );
}

/// Bodies of 1.2 MB both ways, byte for byte; in one piece, in chunks, and with a slow reader's pauses.
#[test]
fn large_bodies_go_both_ways_and_are_checked_to_the_last_byte() {
    let content: Vec<u8> = (0..1_200_000u32).map(|n| b'a' + (n % 23 + n / 997 % 3) as u8).collect();
    let digest = blake3::hash(&content).to_hex().to_string();
    let all = content.clone();
    let arrived_whole = Arc::new(AtomicU64::new(0));
    let whole = Arc::clone(&arrived_whole);
    let peer = Peer::start(0, move |asked: &Asked| {
        whole.fetch_add(u64::from(asked.body == all), Ordering::Relaxed);
        let mut answer = asked.body.clone();
        if asked.path == "/wrong" {
            *answer.last_mut().expect("a body") = b'!';
        }
        if asked.path == "/chunked" {
            let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for chunk in answer.chunks(70_001) {
                let _ = write!(bytes, "{:x}\r\n", chunk.len());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
            return Reply::new(bytes);
        }
        let mut bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len()).into_bytes();
        bytes.extend_from_slice(&answer);
        let pieces = bytes.chunks(500_000).map(<[u8]>::to_vec).collect();
        Reply { pieces, ..Reply::new(Vec::new()) }
    })
    .expect("a peer");
    let upload = |path: &str, body: Vec<BodyCheck>| Stream {
        request: plan::Request {
            body: Some(Body::File(BodyFile {
                path: "upload.bin".into(),
                digest: ContentHash::of_bytes(&content),
                content: content.clone(),
            })),
            ..request("POST", text(&[path]))
        },
        ..stream("up", 1.0, request("POST", text(&[path])), Expect { body, ..status(200) })
    };
    let exact = || BodyCheck::Exact(plan::Text::literal(String::from_utf8(content.clone()).expect("letters")));
    for (path, checks, failure) in [
        ("/plain", vec![exact(), BodyCheck::Length(1_200_000)], None),
        ("/chunked", vec![BodyCheck::Digest(digest.clone())], None),
        ("/wrong", vec![exact()], Some("body: not the expected text")),
        ("/wrong", vec![BodyCheck::Digest(digest.clone())], Some("body: not the expected digest")),
        ("/plain", vec![BodyCheck::Length(1_199_999)], Some("body: not 1199999 bytes long")),
    ] {
        for keep_alive in [true, false] {
            let facts = run_seeing(
                5,
                &Job {
                    connections: 3,
                    keep_alive,
                    window_ns: 400 * MS,
                    ..job(peer.address(), vec![upload(path, checks.clone())])
                },
            );
            let stream = only(&facts);
            match failure {
                None => assert_eq!(stream.census.failed, 0, "{path} {:?} {:?}", stream.failures, stream.evidence),
                Some(reason) => {
                    assert_eq!(stream.census.ok, 0, "{path}");
                    assert_eq!(stream.failures.keys().collect::<Vec<_>>(), [reason]);
                    assert!(stream.evidence.iter().all(|text| text.len() < 2_000), "evidence is bounded");
                }
            }
            assert!(stream.ttfb.sum_ns <= stream.service.sum_ns);
        }
    }
    assert!(arrived_whole.load(Ordering::Relaxed) > 50, "what was sent arrived whole");
}

fn gzipped(body: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(body.as_bytes()).expect("in memory");
    encoder.finish().expect("in memory")
}

fn answer(headers: &str, body: &[u8]) -> Reply {
    let mut bytes = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    Reply::new(bytes)
}

#[test]
fn compressed_answers_are_asked_for_only_where_declared_and_decoded_before_they_are_checked() {
    const TEXT: &str = "{\"id\":1,\"filler\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}";
    let json = Expect {
        body: vec![
            BodyCheck::Json { path: "$.id".into(), test: JsonTest::Equals(text(&["1"])) },
            BodyCheck::Length(TEXT.len() as u64),
            BodyCheck::Contains(text(&["filler"])),
        ],
        ..status(200)
    };
    let stream_of = |accept_gzip: bool| {
        let request = plan::Request { accept_gzip, ..request("GET", text(&["/"])) };
        vec![stream("get", 1.0, request, json.clone())]
    };
    let cases: Vec<(bool, Reply, Option<&str>)> = vec![
        (true, answer("Content-Encoding: gzip\r\n", &gzipped(TEXT)), None),
        (true, answer("", TEXT.as_bytes()), None),
        (true, answer("Content-Encoding: gzip\r\n", TEXT.as_bytes()), Some("body: not the gzip that its header says")),
        (
            true,
            answer("Content-Encoding: gzip\r\n", &gzipped("{\"id\":2}")),
            Some("body: $.id is not the expected value"),
        ),
        (
            true,
            answer("Content-Encoding: br\r\n", &[1, 2, 3]),
            Some("body: compressed, which the request did not ask for"),
        ),
        (
            false,
            answer("Content-Encoding: gzip\r\n", &gzipped(TEXT)),
            Some("body: compressed, which the request did not ask for"),
        ),
        (false, answer("", &gzipped(TEXT)), Some("body: not JSON")),
    ];
    for (accept_gzip, reply, failure) in cases {
        let asked_for = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&asked_for);
        let sent = reply.clone();
        let peer = Peer::start(0, move |asked: &Asked| {
            count.fetch_add(
                u64::from(asked.head.to_ascii_lowercase().contains("accept-encoding: gzip")),
                Ordering::Relaxed,
            );
            sent.clone()
        })
        .expect("a peer");
        let facts = run_seeing(1, &Job { connections: 2, ..job(peer.address(), stream_of(accept_gzip)) });
        let stream = only(&facts);
        assert_eq!(asked_for.load(Ordering::Relaxed) > 0, accept_gzip, "asked for only where declared");
        match failure {
            None => assert!(
                stream.census.failed == 0 && stream.census.ok > 0,
                "{:?} {:?}",
                stream.failures,
                stream.evidence
            ),
            Some(reason) => {
                assert_eq!(stream.failures.keys().collect::<Vec<_>>(), [reason]);
                assert!(!stream.evidence.is_empty());
            }
        }
        // The same of a single request, as a contract's cases are sent.
        let one = &stream_of(accept_gzip)[0];
        let nothing = std::collections::BTreeMap::new();
        let response =
            single_shot(peer.address(), "h", &one.request, &nothing, &nothing, std::time::Duration::from_secs(5), None);
        let wrong = match response {
            Ok(response) => check(&one.expect, &response, &nothing),
            Err(error) => Some(error.to_string()),
        };
        assert_eq!(wrong.is_some(), failure.is_some(), "{failure:?} {wrong:?}");
    }
}

#[test]
fn a_redirect_is_an_answer_and_is_not_followed() {
    let elsewhere = Peer::start(0, |_| Reply::json(200, "{}")).expect("a peer");
    let location = format!("http://{}/", elsewhere.address());
    let to = location.clone();
    let peer = Peer::start(0, move |_| {
        Reply::new(format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"))
    })
    .expect("a peer");
    let expected = Expect {
        status: vec![302],
        headers: vec![HeaderCheck { name: "Location".into(), contains: Some(location) }],
        body: Vec::new(),
    };
    let of = |expect: Expect| vec![stream("get", 1.0, request("GET", text(&["/"])), expect)];
    let facts = run_seeing(1, &job(peer.address(), of(expected)));
    assert_eq!(only(&facts).census.failed, 0, "{:?}", only(&facts).failures);
    let facts = run_seeing(1, &job(peer.address(), of(status(200))));
    assert_eq!(only(&facts).failures.keys().collect::<Vec<_>>(), ["status 302"]);
    assert_eq!(elsewhere.connections(), 0, "nobody followed");
}

/// Ten thousand connections, each of which gets answers: the generator in a process of its own, so that the limit of open files
/// holds both ends.
#[test]
fn ten_thousand_connections_are_all_served() {
    const CONNECTIONS: u32 = 10_000;
    let limit = sys::raise_open_files().expect("the limit of open files");
    assert!(limit > u64::from(CONNECTIONS) + 200, "this test needs {CONNECTIONS} open files, and {limit} are allowed");
    let server = Server::start(&Options::default()).expect("a server");
    for rate in [None, Some(5_000.0)] {
        let job = Job {
            connections: CONNECTIONS,
            rate,
            warm_up_ns: 500 * MS,
            window_ns: 2_500 * MS,
            timeout_ns: 10_000 * MS,
            grace_ns: 10_000 * MS,
            ..job(server.address(), plain())
        };
        let mut generator = Generator::start(&job);
        generator.order(&load::wire::Order::Start { at_ns: sys::now_ns() + 200 * MS, every_ns: 0 });
        let facts = generator.finish();
        common::balanced(&job, &facts);
        let stream = only(&facts);
        assert_eq!(
            (stream.census.failed, stream.census.timed_out, facts.reconnects),
            (0, 0, 0),
            "{:?}",
            stream.failures
        );
        assert_eq!(facts.connections_used, CONNECTIONS, "every connection got an answer");
        match rate {
            Some(_) => assert_eq!(stream.census.ok, 12_500),
            None => assert!(stream.census.ok > u64::from(CONNECTIONS), "{:?}", stream.census),
        }
    }
}
