//! TLS, HTTP/2 and proxies against real servers: nginx, tinyproxy, certificates by openssl.

mod common;

use std::net::SocketAddr;
use std::sync::LazyLock;

use common::servers::{Certificates, Nginx, Proxy};
use common::{MS, job, only, plain, reads, request, run, status, stream, text};
use load::peer::{Peer, Reply, Then};
use load::{Job, Transport};
use plan::{BodyCheck, Expect, Protocol, Tls};

struct World {
    certificates: Certificates,
    nginx: Nginx,
}

/// One nginx for all tests of this file. Static, so it is ended by its parent's end at the latest.
fn world(name: &str) -> World {
    let certificates = Certificates::new(&format!("{name}-certificates"));
    let nginx = Nginx::start(&format!("{name}-nginx"), &certificates);
    World { certificates, nginx }
}

impl World {
    fn tls(&self) -> Option<Tls> {
        let ca = plan::Certificates { path: "ca.pem".into(), text: self.certificates.ca() };
        Some(Tls { ca: Some(ca), name: None, unchecked: false })
    }

    fn transport(&self, protocol: Protocol, in_flight: u32) -> Transport {
        Transport { protocol, in_flight, tls: self.tls(), proxy: None }
    }
}

fn clear(in_flight: u32) -> Transport {
    Transport { protocol: Protocol::Http2, in_flight, tls: None, proxy: None }
}

fn through(target: SocketAddr, transport: Transport) -> Job {
    Job { connections: 8, transport, ..job(target, vec![reads(1.0)]) }
}

#[test]
fn every_way_keeps_the_books_in_both_loops() {
    let world = world("ways");
    let proxy = Proxy::start("ways-proxy", None);
    let tunnelled = |transport: Transport| Transport { proxy: Some(proxy.address), ..transport };
    // nginx is a proxy too, one that keeps its connections; tinyproxy ends each after one answer without saying so.
    let forwarded = Transport { proxy: Some(world.nginx.forward), ..Transport::default() };
    let nginx = &world.nginx;
    for (name, target, transport, protocol, secured) in [
        ("HTTPS", nginx.secure1, world.transport(Protocol::Http1, 1), "HTTP/1.1", true),
        ("HTTP/2 by ALPN", nginx.secure, world.transport(Protocol::Http2, 4), "HTTP/2", true),
        ("HTTP/2 by prior knowledge", nginx.clear2, clear(4), "HTTP/2", false),
        ("absolute form", nginx.plain, forwarded, "HTTP/1.1", false),
        ("HTTPS in a tunnel", nginx.secure1, tunnelled(world.transport(Protocol::Http1, 1)), "HTTP/1.1", true),
        ("HTTP/2 in a tunnel", nginx.secure, tunnelled(world.transport(Protocol::Http2, 4)), "HTTP/2", true),
    ] {
        for rate in [None, Some(400.0)] {
            let job = Job { rate, threads: 2, window_ns: 400 * MS, ..through(target, transport.clone()) };
            let facts = run(&job).unwrap_or_else(|error| panic!("{name}: {error}"));
            let stream = only(&facts);
            assert_eq!(
                stream.census.failed + stream.census.timed_out,
                0,
                "{name}: {:?} {:?}",
                stream.failures,
                stream.evidence
            );
            match rate {
                None => assert!(stream.census.ok > 50, "{name}: {:?}", stream.census),
                Some(_) => assert_eq!((stream.census.due, stream.census.ok), (160, 160), "{name}: {:?}", stream.census),
            }
            assert_eq!(facts.connections_used, 8, "{name}");
            let transport = facts.transport.expect("how it travelled");
            assert_eq!((transport.engine.as_str(), transport.protocol.as_str()), ("hyper", protocol), "{name}");
            assert_eq!(transport.tls.is_some_and(|agreed| agreed.starts_with("TLS 1.3")), secured, "{name}");
            assert_eq!(transport.proxy.is_some(), job.transport.proxy.is_some(), "{name}");
        }
    }
}

#[test]
fn wrong_answers_are_told_from_right_ones_over_every_way() {
    let world = world("wrong");
    for (target, transport) in [
        (world.nginx.secure1, world.transport(Protocol::Http1, 1)),
        (world.nginx.secure, world.transport(Protocol::Http2, 2)),
    ] {
        let streams = vec![
            reads(0.5),
            stream("lost", 0.25, request("GET", text(&["/big/nothing"])), status(200)),
            stream(
                "body",
                0.25,
                request("GET", text(&["/"])),
                Expect { status: vec![200], headers: Vec::new(), body: vec![BodyCheck::Exact(text(&["no"]))] },
            ),
        ];
        let facts = run(&Job { connections: 4, transport, ..job(target, streams) }).expect("a run");
        let reasons: Vec<Vec<&str>> =
            facts.streams.iter().map(|stream| stream.failures.keys().map(String::as_str).collect()).collect();
        assert_eq!(reasons, [vec![], vec!["status 404"], vec!["body: not the expected text"]]);
        assert!(facts.streams[0].census.ok > 0);
        let evidence = &facts.streams[1].evidence[0];
        assert!(evidence.starts_with("status is 404, expected 200: HTTP/"), "{evidence}");
    }
}

#[test]
fn large_bodies_travel_both_ways() {
    let world = world("large");
    for (target, transport) in [
        (world.nginx.secure1, world.transport(Protocol::Http1, 1)),
        (world.nginx.secure, world.transport(Protocol::Http2, 2)),
        (world.nginx.clear2, clear(2)),
    ] {
        let down = stream(
            "down",
            1.0,
            request("GET", text(&["/big/blob"])),
            Expect { status: vec![200], headers: Vec::new(), body: vec![BodyCheck::Length(1_200_000)] },
        );
        let facts = run(&Job { connections: 2, transport, ..job(target, vec![down]) }).expect("a run");
        let stream = only(&facts);
        assert!(stream.census.ok > 0 && stream.census.failed == 0, "{:?} {:?}", stream.census, stream.failures);
    }
}

#[test]
fn connections_that_the_target_ends_in_good_order_lose_no_request() {
    let world = world("short");
    for (transport, again) in
        [(world.transport(Protocol::Http1, 1), false), (world.transport(Protocol::Http2, 8), true)]
    {
        let facts = run(&Job { window_ns: 600 * MS, ..through(world.nginx.short, transport) }).expect("a run");
        let stream = only(&facts);
        assert!(stream.census.ok > 450, "{:?}", stream.census);
        assert_eq!(stream.census.failed, 0, "{:?}", stream.failures);
        assert!(facts.reconnects >= 8, "{}", facts.reconnects);
        let sent_again = facts.transport.expect("how it travelled").sent_again;
        assert!(again || sent_again == 0, "{sent_again}");
    }
}

/// What keeps a job from running, in words that say what and what next.
#[test]
fn handshakes_that_fail_say_why_in_plain_words() {
    let world = world("handshakes");
    let nginx = &world.nginx;
    let http1 = |tls| Transport { protocol: Protocol::Http1, in_flight: 1, tls, proxy: None };
    let named = |name: &str| world.tls().map(|tls| Tls { name: Some(name.into()), ..tls });
    let system = Some(Tls { ca: None, name: None, unchecked: false });
    let own = Peer::start(0, |_| Reply::json(200, "{}")).expect("a peer");
    let refusing = Proxy::start("handshakes-proxy", Some(1));
    let gone = {
        let peer = Peer::start(0, |_| Reply::json(200, "{}")).expect("a peer");
        peer.address()
    };
    let cases: [(SocketAddr, Transport, &[&str]); 11] = [
        (nginx.expired, http1(world.tls()), &["certificate has expired", "renew"]),
        (nginx.secure1, http1(system), &["nobody that is trusted signed", "`tls ca=`"]),
        (nginx.other, http1(world.tls()), &["is for ", "other.test", "not for 127.0.0.1", "`tls name=`"]),
        (nginx.secure1, http1(named("wrong.test")), &["not for wrong.test"]),
        (nginx.plain, http1(world.tls()), &["does not speak TLS on this port", "leave TLS out"]),
        (own.address(), clear(1), &["does not speak HTTP/2"]),
        (nginx.secure1, world.transport(Protocol::Http2, 1), &["does not speak", "choose another `protocol`"]),
        (nginx.narrow, world.transport(Protocol::Http2, 8), &["allows 4 requests in flight", "8 were asked for"]),
        (gone, http1(world.tls()), &["connection refused", "check that the target runs"]),
        (
            nginx.secure1,
            Transport { proxy: Some(refusing.address), ..http1(world.tls()) },
            &["proxy refused the tunnel", "403", "allow CONNECT"],
        ),
        (
            nginx.secure1,
            http1(Some(Tls {
                ca: Some(plan::Certificates { path: "ca.pem".into(), text: "no certificate".into() }),
                name: None,
                unchecked: false,
            })),
            &["`ca.pem` holds no certificate"],
        ),
    ];
    for (target, transport, words) in cases {
        let job = through(target, transport);
        let error = load::prepare(&job).err().unwrap_or_else(|| panic!("{words:?}: it was prepared")).to_string();
        for part in words {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
    }
}

#[test]
fn names_that_fit_and_certificates_that_nobody_checks_are_taken() {
    let world = world("names");
    let named = Tls { name: Some("bench.test".into()), ..world.tls().expect("an authority") };
    let unchecked = Tls { ca: None, name: None, unchecked: true };
    for (target, tls, is_unchecked) in [
        (world.nginx.secure1, named, false),
        (world.nginx.expired, unchecked.clone(), true),
        (world.nginx.other, unchecked, true),
    ] {
        let transport = Transport { protocol: Protocol::Http1, in_flight: 1, tls: Some(tls), proxy: None };
        let facts = run(&through(target, transport)).expect("a run");
        assert!(only(&facts).census.ok > 0);
        assert_eq!(facts.transport.expect("how it travelled").certificate_unchecked, is_unchecked);
    }
}

/// The same faults that the engine on epoll is shown, through the peer as a proxy of absolute form.
#[test]
fn faults_of_the_target_are_counted_by_reason() {
    type Fault = fn(u64) -> Reply;
    let cases: [(Fault, &str); 4] = [
        (|n| if n % 4 == 3 { Reply::json(503, "{}") } else { Reply::json(200, "{}") }, "status 503"),
        (
            |n| {
                if n % 4 == 3 {
                    Reply::new(*b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc").then(Then::Close)
                } else {
                    Reply::json(200, "{}")
                }
            },
            "connection closed in the middle of an answer",
        ),
        (
            |n| if n % 4 == 3 { Reply::new(*b"").then(Then::Close) } else { Reply::json(200, "{}") },
            "connection closed before an answer",
        ),
        (
            |n| if n % 4 == 3 { Reply::new(*b"SSH-2.0-OpenSSH\r\n\r\n") } else { Reply::json(200, "{}") },
            "protocol: the answer is not HTTP/1.1",
        ),
    ];
    for (fault, reason) in cases {
        let peer = Peer::start(0, move |asked| fault(asked.number)).expect("a peer");
        for rate in [None, Some(500.0)] {
            let transport = Transport { proxy: Some(peer.address()), ..Transport::default() };
            let job = Job { rate, connections: 4, transport, ..job(peer.address(), plain()) };
            let facts = run(&job).expect("a run");
            let stream = only(&facts);
            assert!(stream.census.ok > 0, "{reason}: {:?}", stream.census);
            assert_eq!(stream.failures.keys().collect::<Vec<_>>(), [reason], "{:?}", stream.evidence);
        }
    }
}

#[test]
fn what_never_answers_times_out_and_what_is_unsent_is_counted() {
    let peer =
        Peer::start(0, |asked| Reply::json(200, "{}").after(if asked.number % 10 == 9 { 60_000 * MS } else { 0 }))
            .expect("a peer");
    let transport = Transport { proxy: Some(peer.address()), ..Transport::default() };
    for rate in [None, Some(300.0)] {
        let job = Job {
            rate,
            connections: 4,
            timeout_ns: 100 * MS,
            grace_ns: 150 * MS,
            window_ns: 600 * MS,
            transport: transport.clone(),
            ..job(peer.address(), plain())
        };
        let facts = run(&job).expect("a run");
        let stream = only(&facts);
        assert!(stream.census.timed_out > 0 && stream.census.ok > 0, "{:?}", stream.census);
        assert_eq!(stream.census.failed, 0, "{:?}", stream.failures);
        assert!(facts.reconnects > 0);
    }
}

#[test]
fn a_single_request_goes_over_tls_and_says_what_keeps_it_from_going() {
    let world = world("single");
    let nothing = std::collections::BTreeMap::new();
    let ask = |target: SocketAddr, tls: Option<Tls>| {
        let request = request("GET", text(&["/events/7"]));
        let host = target.to_string();
        load::single_shot(target, &host, &request, &nothing, &nothing, std::time::Duration::from_secs(5), tls.as_ref())
    };
    let answer = ask(world.nginx.secure, world.tls()).expect("an answer");
    assert_eq!((answer.status, answer.body.as_slice()), (200, br#"{"id":7}"#.as_slice()));
    let refused = ask(world.nginx.expired, world.tls()).expect_err("expired").to_string();
    assert!(refused.contains("certificate has expired"), "{refused}");
    let refused = ask(world.nginx.plain, world.tls()).expect_err("no TLS").to_string();
    assert!(refused.contains("does not speak TLS"), "{refused}");
    let answer = ask(world.nginx.secure, None).expect("nginx answers what is in the clear");
    assert_eq!(answer.status, 400);
}

static KNOWN: LazyLock<Peer> = LazyLock::new(|| Peer::of_known_capacity().expect("a peer"));

#[test]
fn a_service_of_known_capacity_is_measured_at_its_capacity() {
    common::within_attempts(5, || {
        let transport = Transport { proxy: Some(KNOWN.address()), ..Transport::default() };
        let job = Job {
            connections: 32,
            window_ns: 1_000 * MS,
            warm_up_ns: 200 * MS,
            transport,
            ..job(KNOWN.address(), plain())
        };
        let facts = run(&job).map_err(|error| error.to_string())?;
        let stream = only(&facts);
        let rate = stream.census.ok as f64;
        let in_flight = rate * stream.service.mean_ns().unwrap_or_default() / 1e9;
        if !(1_960.0..=2_040.0).contains(&rate) || !(31.0..=32.64).contains(&in_flight) {
            return Err(format!("measured {rate}/s with {in_flight} in flight, where 2,000/s and 32 are the truth"));
        }
        Ok(())
    });
}
