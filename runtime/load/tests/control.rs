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
