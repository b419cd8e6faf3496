//! What the tools' versions printed, recorded, and what is made of it.

use super::*;

const WRK: &str = include_str!("../../tests/tools/wrk-4.1.0.txt");
const H2LOAD: [&str; 2] =
    [include_str!("../../tests/tools/h2load-1.52.0.txt"), include_str!("../../tests/tools/h2load-1.52.0.tsv")];
const VEGETA: &str = include_str!("../../tests/tools/vegeta-12.13.csv");
const OHA: &str = include_str!("../../tests/tools/oha-1.16.0.json");

#[test]
fn versions_are_read() {
    for (tool, text, told) in [
        (
            Tool::Wrk,
            "wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer\nUsage: wrk",
            Some("debian/4.1.0-3+b2"),
        ),
        (Tool::Oha, "oha 1.16.0\n", Some("1.16.0")),
        (Tool::H2load, "h2load nghttp2/1.52.0\n", Some("1.52.0")),
        (Tool::Vegeta, "Version: \nCommit: \nRuntime: go1.26.8 linux/amd64\n", Some("unknown")),
        (Tool::Vegeta, "Version: 12.12.0\nCommit: abc\n", Some("12.12.0")),
        (Tool::Wrk, "", None),
        (Tool::Oha, "not found", None),
    ] {
        assert_eq!(version(tool, text).as_deref(), told, "{text}");
    }
}

/// Answers as expected, failures by reason, time-outs, and p50 of the service times in ms, of what the versions printed for a service
/// that takes 20 ms, answers every seventh request of a kind with 502, or not at all.
#[test]
fn recorded_outputs_are_read() {
    let tsv = |name: &str| match name {
        "failed" => (
            include_str!("../../tests/tools/h2load-1.52.0-failed.txt"),
            include_str!("../../tests/tools/h2load-1.52.0-failed.tsv"),
        ),
        _ => (H2LOAD[0], H2LOAD[1]),
    };
    let h2load = |name| h2load::read(tsv(name).0, tsv(name).1, 4);
    let cases: [(&str, Result<Told, String>, Expected); 12] = [
        ("wrk", wrk::read(WRK, 4), (60, &[], 0, 64)),
        (
            "wrk failed",
            wrk::read(include_str!("../../tests/tools/wrk-4.1.0-failed.txt"), 4),
            (55, &[("status of 400 or above", 9)], 0, 63),
        ),
        ("h2load", h2load(""), (62, &[], 0, 64)),
        ("h2load failed", h2load("failed"), (51, &[("status 502", 9)], 0, 64)),
        ("vegeta", vegeta::read(VEGETA), (60, &[], 0, 64)),
        (
            "vegeta failed",
            vegeta::read(include_str!("../../tests/tools/vegeta-12.13-failed.csv")),
            (51, &[("status 502", 9)], 0, 64),
        ),
        ("vegeta timeout", vegeta::read(include_str!("../../tests/tools/vegeta-12.13-timeout.csv")), (0, &[], 5, 0)),
        (
            "vegeta refused",
            vegeta::read(include_str!("../../tests/tools/vegeta-12.13-refused.csv")),
            (0, &[("connection refused", 5)], 0, 0),
        ),
        ("oha", oha::read(OHA, false), (68, &[], 0, 0)),
        ("oha timeout", oha::read(include_str!("../../tests/tools/oha-1.16.0-timeout.json"), false), (0, &[], 4, 0)),
        (
            "oha refused",
            oha::read(include_str!("../../tests/tools/oha-1.16.0-refused.json"), false),
            (0, &[("Connection refused (os error 111)", 51_454)], 0, 0),
        ),
        (
            "oha failed",
            oha::read(include_str!("../../tests/tools/oha-1.16.0-failed.json"), true),
            (56, &[("status 502", 9)], 0, 0),
        ),
    ];
    for (name, told, expected) in cases {
        let told = told.expect(name);
        let (ok, failures) = told.judged(&[200]);
        let failures: Vec<(String, u64)> = failures.into_iter().collect();
        let failures: Vec<(&str, u64)> = failures.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
        let p50_ms = told.service.quantile_ns(0.5).map_or(0, |ns| ns / 1_000_000);
        assert_eq!((ok, &failures[..], told.timed_out, p50_ms), expected, "{name}");
        assert!(told.measured_ns > 900_000_000 || name == "vegeta refused", "{name}: {} ns", told.measured_ns);
    }
    let told = oha::read(OHA, false).expect("a report");
    assert_eq!(told.percentiles.keys().collect::<Vec<_>>(), ["service", "ttfb"]);
    let told = oha::read(OHA, true).expect("a report");
    assert_eq!(told.percentiles.keys().collect::<Vec<_>>(), ["corrected", "ttfb"]);
}

type Expected = (u64, &'static [(&'static str, u64)], u64, u64);

/// A part left out, cut off or turned to nonsense is named, and never becomes a number.
#[test]
fn what_is_no_measurement_is_refused_by_name() {
    let cut = |text: &str| text[..text.len() / 2].to_owned();
    for (told, says) in [
        (wrk::read("", 4), "ends before `measured-us`"),
        (wrk::read(&cut(WRK), 4), ""),
        (wrk::read(&WRK.replace("\nend\n", "\n"), 4), "no end"),
        (wrk::read(&WRK.replace("requests ", "requests x"), 4), "`requests` and a number"),
        (wrk::read(&WRK.replace("status 0", "status 99999999"), 4), "bad statuses"),
        (h2load::read("", H2LOAD[1], 4), "no counts"),
        (h2load::read(H2LOAD[0], "", 4), "no request"),
        (h2load::read(H2LOAD[0], &cut(H2LOAD[1]), 4), ""),
        (h2load::read(&H2LOAD[0].replace(" started", " begun"), H2LOAD[1], 4), "started"),
        (vegeta::read(""), "no request"),
        (vegeta::read(&VEGETA.replace(",200,", ",OK,")), "is no result"),
        (oha::read("", false), "told nothing"),
        (oha::read(&cut(OHA), false), "not as expected"),
        (oha::read(&OHA.replace("\"p99\"", "\"p98\""), false), "no p50 or p99"),
        (oha::read("error: connection refused", false), "not as expected"),
    ] {
        let why = told.expect_err(says);
        assert!(why.contains(says) && !why.is_empty(), "{why}");
    }
}
