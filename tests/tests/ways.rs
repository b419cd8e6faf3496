//! `exp load` over TLS, HTTP/2 and proxies, from outside: what it takes, and what it says where it can't.

#[expect(dead_code, reason = "the generator's own tests use all of it")]
#[path = "../../runtime/load/tests/common/servers.rs"]
mod servers;

use std::net::SocketAddr;

use servers::{Certificates, Nginx, Proxy};
use tests::{Ended, Place, run};

fn url(scheme: &str, address: SocketAddr) -> String {
    format!("{scheme}://{address}/")
}

/// The parts of an error: what, why, next.
fn told(ended: &Ended) -> Vec<&str> {
    let part = |mark: &str| ended.err.lines().find_map(|line| line.trim_start().strip_prefix(mark)).unwrap_or_default();
    vec![part("error: "), part("why:  "), part("next: ")]
}

#[test]
fn every_way_is_sent_and_told() {
    let (place, certificates) = (Place::new("ways"), Certificates::new("cli-ways"));
    let (nginx, proxy) = (Nginx::start("cli-ways-nginx", &certificates), Proxy::start("cli-ways-proxy", None));
    let (ca, proxy) = (certificates.path("ca.pem").display().to_string(), proxy.address.to_string());
    let (secure, plain) = (url("https", nginx.secure), url("http", nginx.plain));
    let named = format!("https://bench.test:{}/", nginx.secure.port());
    let secure_at = nginx.secure.to_string();
    for (arguments, words) in [
        (vec![&*secure, "--cacert", &ca], &["HTTP/1.1", "TLS 1.3"][..]),
        (vec![&*secure, "--cacert", &ca, "--http2", "-p", "4"], &["HTTP/2, 4 in flight", "TLS 1.3"]),
        (vec![&*secure, "-k"], &["certificate not checked"]),
        (vec![&*named, "--cacert", &ca, "--connect-to", &secure_at], &["TLS 1.3"]),
        (vec![&*secure, "--cacert", &ca, "-x", &proxy], &["through the proxy"]),
        (vec![&*plain, "--disable-keepalive"], &["connect "]),
        (vec![&*plain, "--compressed", "--arrivals", "poisson", "-r", "1000"], &["open loop, 1,000/s"]),
    ] {
        let each = ["load", "-n", "200", "-c", "4", "--allow-bottleneck"].into_iter().chain(arguments);
        let ended = run(place.path(), &each.collect::<Vec<_>>()).expect_code(&[0]);
        for part in words.iter().chain(&[" answers as expected"]) {
            assert!(ended.out.contains(part), "{part}: {}{}", ended.out, ended.err);
        }
    }
    let ramp = ["load", &plain, "--ramp", "0:400:1s", "--step", "100:500ms", "--allow-bottleneck", "--format", "json"];
    let summary = run(place.path(), &ramp).expect_code(&[0]).summary();
    assert_eq!((summary["census"]["due"].as_u64(), summary["census"]["ok"].as_u64()), (Some(250), Some(250)));
    assert_eq!(summary["course"].as_array().map(Vec::len), Some(2), "{}", summary["course"]);
}

/// Each with its exit code, in the layout of every command: what happened, why, and what to do next.
#[test]
fn what_cannot_be_reached_says_what_why_and_what_next() {
    let (place, certificates) = (Place::new("no-ways"), Certificates::new("cli-no-ways"));
    let (nginx, refusing) = (Nginx::start("cli-no-ways-nginx", &certificates), Proxy::start("cli-refusing", Some(1)));
    let (ca, refusing) = (certificates.path("ca.pem").display().to_string(), refusing.address.to_string());
    let [expired, other, secure, secure1, plain, narrow] =
        [nginx.expired, nginx.other, nginx.secure, nginx.secure1, nginx.plain, nginx.narrow]
            .map(|address| url("https", address));
    let clear = url("http", nginx.plain);
    let unopened = "can't be opened";
    for (arguments, code, parts) in [
        (vec![&*expired, "--cacert", &ca], 31, [unopened, "certificate has expired", "renew"]),
        (vec![&*secure], 31, [unopened, "nobody that is trusted signed", "--cacert"]),
        (vec![&*secure, "-g", "2"], 31, [unopened, "nobody that is trusted signed", "--cacert"]),
        (vec![&*other, "--cacert", &ca], 31, [unopened, "is for other.test, and not for 127.0.0.1", "--connect-to"]),
        (vec![&*plain, "-k"], 31, [unopened, "does not speak TLS on this port", "http:// in place of https://"]),
        (vec![&*secure1, "-k", "--http2"], 31, [unopened, "does not speak", "--http2"]),
        (vec![&*clear, "--http2"], 31, [unopened, "does not speak HTTP/2", "--http2"]),
        (vec![&*narrow, "-k", "--http2", "-p", "8"], 31, [unopened, "allows 4 requests in flight", "fewer in flight"]),
        (vec![&*secure, "-k", "-x", &refusing], 31, [unopened, "proxy refused the tunnel", "allow CONNECT"]),
        (
            vec!["http://127.0.0.1:1/"],
            31,
            ["to 127.0.0.1:1 can't be opened", "connection refused", "its port is right"],
        ),
        (vec!["http://no-such-name.invalid/"], 31, ["can't be resolved", "", "getent hosts"]),
        (vec!["127.0.0.1:8080"], 2, ["is not a URL", "", "http://127.0.0.1:8080/path"]),
        (vec![&*secure, "-k", "--disable-keepalive"], 2, ["together with TLS", "", "keep connections alive"]),
        (vec![&*clear, "--on", "nowhere"], 2, ["`nowhere` is no place", "", "exp load --help"]),
    ] {
        let ended = run(place.path(), &[&["load", "-z", "100ms"][..], &arguments].concat()).expect_code(&[code]);
        for (found, part) in told(&ended).into_iter().zip(parts) {
            assert!(found.contains(part), "{arguments:?}: `{part}` is not in `{found}`\n{}", ended.err);
        }
        assert_eq!(ended.out, "", "{arguments:?}");
    }
}
