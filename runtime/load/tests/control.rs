//! The generator as a process: what it answers to orders in and out of turn, and how it ends.

mod common;

use std::time::{Duration, Instant};

use common::child::Generator;
use common::{MS, job, only, plain};
use load::peer::{Peer, Reply};
use load::sys;
use load::wire::{Answer, Order};

fn peer() -> Peer {
    Peer::start(0, |_| Reply::json(200, "{}")).expect("a peer")
}

#[test]
fn one_process_runs_one_job_after_another() {
    let peer = peer();
    let job = job(peer.address(), plain());
    let mut generator = Generator::bare();
    for _ in 0..2 {
        generator.order(&Order::Job(Box::new(job.clone())));
        assert_eq!(generator.answer(), Some(Answer::Ready { connected: 16 }));
        generator.order(&Order::Start { at_ns: sys::now_ns() + 100 * MS, every_ns: 0 });
        let Some(Answer::Finished { facts }) = generator.answer() else { panic!("no facts") };
        common::balanced(&job, &facts);
        assert!(only(&facts).census.ok > 100);
    }
    assert_eq!(generator.hang_up(), Some(0));
}

#[test]
fn orders_out_of_turn_and_nonsense_are_answered_and_the_exit_code_tells() {
    let peer = peer();
    let mut generator = Generator::bare();
    let mut refused = |line: &str, part: &str| {
        generator.line(line);
        let answer = generator.answer();
        assert!(matches!(&answer, Some(Answer::Failed { why }) if why.contains(part)), "{line}: {answer:?}");
    };
    refused("nonsense", "can't be read");
    refused("{\"start\":{\"at-ns\":5}}", "without a job");
    let broken = load::Job { connections: 0, ..job(peer.address(), plain()) };
    refused(&serde_json::to_string(&Order::Job(Box::new(broken))).expect("JSON"), "0 connections");
    assert_eq!(generator.hang_up(), Some(1));
}

#[test]
fn a_stop_and_the_end_of_the_input_end_a_job_at_once() {
    let peer = peer();
    let long = load::Job { window_ns: 60_000 * MS, ..job(peer.address(), plain()) };
    for hang_up in [false, true] {
        let mut generator = Generator::start(&long);
        generator.order(&Order::Start { at_ns: sys::now_ns() + 100 * MS, every_ns: 0 });
        std::thread::sleep(Duration::from_millis(250));
        let began = Instant::now();
        if !hang_up {
            generator.order(&Order::Stop);
            let answer = generator.answer();
            assert!(matches!(&answer, Some(Answer::Failed { why }) if why.contains("stopped")), "{answer:?}");
        }
        assert_eq!(generator.hang_up(), Some(1), "a job that did not finish is no success");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}

/// Whether an answer has the form of the documented one: the same keys, the same kinds of values. `{}` stands for any object,
/// and a text for any text, except that of `why`.
fn like(documented: &serde_json::Value, actual: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Bool, Null, Number, Object, String};
    match (documented, actual) {
        (Object(documented), Object(_)) if documented.is_empty() => true,
        (Object(documented), Object(actual)) => {
            documented.len() == actual.len()
                && documented.iter().all(|(key, value)| {
                    actual.get(key).is_some_and(|actual| like(value, actual) && (key != "why" || value == actual))
                })
        }
        (Array(documented), Array(actual)) => {
            documented.len() == actual.len() && documented.iter().zip(actual).all(|(one, two)| like(one, two))
        }
        (Number(_), Number(_)) | (String(_), String(_)) | (Bool(_), Bool(_)) | (Null, Null) => true,
        _ => false,
    }
}

#[test]
fn the_documented_transcript_is_what_happens() {
    let page = include_str!("../../../docs/generator.md");
    let transcript =
        page.split("```transcript\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a transcript");
    let peer = peer();
    let mut generator = Generator::bare();
    let (mut asked, mut answered) = (0, 0);
    for line in transcript.lines() {
        if let Some(order) = line.strip_prefix("→ ") {
            let order = order.replace("127.0.0.1:8080", &peer.address().to_string());
            let mut order: Order = serde_json::from_str(&order).unwrap_or_else(|error| panic!("{error}: {order}"));
            if let Order::Start { at_ns, .. } = &mut order {
                *at_ns = sys::now_ns() + 200 * MS;
            }
            generator.order(&order);
            asked += 1;
        } else {
            let documented = line.strip_prefix("← ").unwrap_or_else(|| panic!("neither order nor answer: {line}"));
            let answer = serde_json::to_value(generator.answer().expect("an answer")).expect("JSON");
            let documented: serde_json::Value = serde_json::from_str(documented).expect("JSON");
            assert!(like(&documented, &answer), "documented: {documented}\nactual: {answer}");
            answered += 1;
        }
    }
    assert!(asked >= 5 && answered >= 8, "{asked} orders, {answered} answers");
    assert_eq!(generator.hang_up(), Some(1), "the last order was refused");
    assert!(!like(&serde_json::json!({"ready": {"connected": 2}}), &serde_json::json!({"ready": {}})));
    assert!(!like(&serde_json::json!({"failed": {"why": "a"}}), &serde_json::json!({"failed": {"why": "b"}})));
}

#[test]
fn another_version_of_the_protocol_is_refused() {
    let mut generator = Generator::bare();
    generator.order(&Order::Hello { protocol: load::wire::PROTOCOL + 1 });
    let answer = generator.answer();
    assert!(
        matches!(&answer, Some(Answer::Failed { why }) if why.contains("version 2") && why.contains("version 1")),
        "{answer:?}"
    );
    assert_eq!(generator.hang_up(), Some(1));
}
