//! Drills: for every gate a repetition that it voids for the reason it exists, and a twin that it leaves alone.

use journal::{Finding, Histogram, PaceFacts, ProbeFacts, RepetitionFacts, Stall};
use judge::{GateKind, GateOutcome};
use plan::Gate;

use crate::bench::{self, Run, capacity, closed, one_cell, open, pgbench, pgbench_facts, slow};

type Spoil = fn(&mut RepetitionFacts);

/// A gate, what is done to clean facts, and what it must say; `None`: it stays quiet.
struct Drill {
    gate: &'static str,
    case: &'static str,
    spoil: Spoil,
    says: Option<(GateKind, &'static str)>,
}

const fn fires(gate: &'static str, case: &'static str, kind: GateKind, says: &'static str, spoil: Spoil) -> Drill {
    Drill { gate, case, spoil, says: Some((kind, says)) }
}

const fn quiet(gate: &'static str, case: &'static str, spoil: Spoil) -> Drill {
    Drill { gate, case, spoil, says: None }
}

/// Runs drills: three clean repetitions, then the one in question; the gate's outcome on that one is compared.
fn run(drills: &[Drill], clean: fn() -> RepetitionFacts, phase: &str, plan: fn() -> plan::Plan) {
    for drill in drills {
        let mut run = Run::new(plan());
        for _ in 0..3 {
            run.measure(phase, 0, clean());
        }
        let mut facts = clean();
        (drill.spoil)(&mut facts);
        run.measure(phase, 0, facts);
        let judgement = run.judge();
        let of_phase: Vec<_> = judgement.repetitions_of(phase, 0).collect();
        let (last, others) = of_phase.split_last().expect("four repetitions");
        for other in others {
            assert!(other.is_valid(), "{}: {}: {:?}", drill.gate, drill.case, other.failed_gates().collect::<Vec<_>>());
        }
        let outcome: &GateOutcome = last
            .gates
            .iter()
            .find(|outcome| outcome.gate == drill.gate)
            .unwrap_or_else(|| panic!("{}: no outcome", drill.gate));
        let found = format!("{} / {}: {outcome:?}", drill.gate, drill.case);
        match drill.says {
            None => assert!(outcome.passed && !outcome.sentence.is_empty(), "{found}"),
            Some((kind, says)) => {
                assert!(!outcome.passed && !last.is_valid(), "{found}");
                assert_eq!(outcome.kind, kind, "{found}");
                assert!(outcome.sentence.contains(says), "{found}");
            }
        }
        assert!(outcome.values.iter().all(|value| value.value.is_none_or(f64::is_finite)), "{found}");
    }
}

fn load(facts: &mut RepetitionFacts) -> &mut journal::LoadFacts {
    facts.load.as_mut().expect("a load")
}

use GateKind::{BenchLimited, Disturbed, Wrong};

const CLOSED: &[Drill] = &[
    quiet("contract", "passed", |_| {}),
    // Census.
    quiet("census", "clean", |_| {}),
    fires(
        "census",
        "gateway errors counted as requests",
        Wrong,
        "402 requests failed: status 502 (400), body (2)",
        |f| {
            let stream = &mut load(f).streams[0];
            stream.census.ok -= 402;
            stream.census.failed = 402;
            stream.failures = [("status 502".to_owned(), 400), ("body".to_owned(), 2)].into();
        },
    ),
    fires("census", "an answer is missing", Wrong, "are accounted for", |f| load(f).streams[0].census.ok -= 1),
    fires("census", "timed out", Wrong, "3 requests timed out", |f| {
        load(f).streams[1].census.ok -= 3;
        load(f).streams[1].census.timed_out = 3;
    }),
    fires("census", "never answered", Wrong, "1 requests were never answered", |f| {
        load(f).streams[1].census.ok -= 1;
        load(f).streams[1].census.unanswered = 1;
    }),
    fires("census", "answers that nobody asked for", Wrong, "bytes came 2 times", |f| load(f).unsolicited = 2),
    fires("census", "no account", Wrong, "the generator left no account", |f| f.load = None),
    fires("census", "half of the generator crashed", Wrong, "stream `write` left no account", |f| {
        load(f).streams.truncate(1);
    }),
    fires("census", "a stream died in silence", Wrong, "the stream `write` had no answer", |f| {
        load(f).streams[1].census = journal::Census::default();
    }),
    fires("census", "no answers at all", Wrong, "no expected answer", |f| {
        for stream in &mut load(f).streams {
            stream.census = journal::Census::default();
        }
    }),
    fires("census", "the generator ended badly", Wrong, "exit status 1", |f| {
        f.findings.push(Finding { what: "generator".to_owned(), why: "exit status 1".to_owned() });
    }),
    // Rows.
    quiet("rows", "clean", |_| {}),
    quiet("rows", "an unknown outcome took effect", |f| {
        load(f).streams[1].unknown = 2;
        f.rows.as_mut().expect("rows").after += 1;
    }),
    quiet("rows", "an unknown outcome took no effect", |f| load(f).streams[1].unknown = 2),
    fires("rows", "acknowledged and not there", Wrong, "lacks 1 of", |f| f.rows.as_mut().expect("rows").after -= 1),
    fires("rows", "written twice", Wrong, "has 1 rows that nobody acknowledged", |f| {
        f.rows.as_mut().expect("rows").after += 1;
    }),
    fires("rows", "more than the unknown ones", Wrong, "nobody acknowledged", |f| {
        load(f).streams[1].unknown = 2;
        f.rows.as_mut().expect("rows").after += 3;
    }),
    fires("rows", "not counted", Wrong, "were not counted (server gone)", |f| {
        f.rows = None;
        f.findings.push(Finding { what: "rows".to_owned(), why: "server gone".to_owned() });
    }),
    fires("rows", "another table was counted", Wrong, "`other` was counted", |f| {
        f.rows.as_mut().expect("rows").table = "other".to_owned();
    }),
    // Mix.
    quiet("mix", "clean", |_| {}),
    quiet("mix", "within the chance of a short window", |f| {
        for (stream, ok) in load(f).streams.iter_mut().zip([420, 380]) {
            stream.census = journal::Census { sent: ok, ok, ..journal::Census::default() };
        }
    }),
    fires("mix", "the mix floats", Wrong, "`read` was 35 % of the answers instead of 50 %", |f| {
        for (stream, ok) in load(f).streams.iter_mut().zip([35_400, 64_600]) {
            stream.census = journal::Census { sent: ok, ok, ..journal::Census::default() };
        }
    }),
    fires("mix", "no account", Wrong, "the mix is not known", |f| f.load = None),
    // Counters.
    quiet("counters", "clean", |_| {}),
    quiet("counters", "the database rests", |f| {
        let database = f.database.as_mut().expect("counters");
        database.end.as_mut().expect("a reading").cpu_ns = database.start.expect("a reading").cpu_ns;
    }),
    fires("counters", "no reading at the end", Wrong, "at the window's end (no such file)", |f| {
        f.candidate.as_mut().expect("counters").end = None;
        f.findings.push(Finding { what: "candidate cpu".to_owned(), why: "no such file".to_owned() });
    }),
    fires("counters", "no reading at the start", Wrong, "at the window's start", |f| {
        f.database.as_mut().expect("counters").start = None;
    }),
    fires("counters", "not read at all", Wrong, "candidate's CPU counter was not read", |f| f.candidate = None),
    fires("counters", "reads 0 all the time", Wrong, "did not move", |f| {
        let candidate = f.candidate.as_mut().expect("counters");
        candidate.end.as_mut().expect("a reading").cpu_ns = candidate.start.expect("a reading").cpu_ns;
    }),
    fires("counters", "runs backwards", Wrong, "ran backwards", |f| {
        f.candidate.as_mut().expect("counters").end.as_mut().expect("a reading").cpu_ns = 1;
    }),
    fires("counters", "a CPU of the host is missing", Wrong, "times of CPU 0", |f| {
        f.host.cpus.remove(&0);
    }),
    fires("counters", "the generator's CPU is missing", Wrong, "generator's CPU time", |f| {
        load(f).generator.cpu_ns = None;
    }),
    // Clock.
    quiet("clock", "clean", |_| {}),
    quiet("clock", "slewed by NTP", |f| f.window.wall_end_ns += 8_000_000),
    fires("clock", "the lid was closed", Wrong, "suspended for 3,426,000 ms", |f| {
        f.window.boot_end_ns += 3_426_000_000_000;
        f.window.wall_end_ns += 3_426_000_000_000;
    }),
    fires("clock", "the wall clock was set", Wrong, "jumped by 60,000 ms", |f| f.window.wall_end_ns += 60_000_000_000),
    fires("clock", "the window is too short", Wrong, "lasted 15 s instead of 20 s", |f| {
        f.window.end_ns -= 5_000_000_000;
        f.window.wall_end_ns -= 5_000_000_000;
        f.window.boot_end_ns -= 5_000_000_000;
    }),
    fires("clock", "no window", Wrong, "were not recorded", |f| f.window = journal::WindowFacts::default()),
    // Utilisation law.
    quiet("utilisation-law", "clean", |_| {}),
    fires("utilisation-law", "more cores than there are", Wrong, "where it was given 1", |f| {
        f.candidate.as_mut().expect("counters").end.as_mut().expect("a reading").cpu_ns *= 2;
    }),
    fires(
        "utilisation-law",
        "the counter spans more than the window",
        Wrong,
        "23,000 ms, the window lasted 20,000 ms",
        |f| {
            f.candidate.as_mut().expect("counters").end.as_mut().expect("a reading").at_ns += 3_000_000_000;
        },
    ),
    fires("utilisation-law", "nobody knows its CPUs", Wrong, "how many CPUs", |f| {
        f.candidate.as_mut().expect("counters").cpus = 0;
    }),
    fires("utilisation-law", "no counter", Wrong, "is not known", |f| f.candidate = None),
    // Pace.
    quiet("pace", "clean", |_| {}),
    quiet("pace", "the other CPU, which the candidate has not, is slowed", |f| {
        let slowed = f.pace.get_mut(&1).expect("samples");
        slowed.samples = Histogram::of((0..4_000).map(|i| if i < 400 { 17_000 } else { 28_000 }));
    }),
    fires(
        "pace",
        "a neighbour on the core",
        Disturbed,
        "CPU 0 was slowed to 0.61 of its quiet speed for 73 % of the window: a neighbour on its core, or frequency",
        |f| slow(f, 0.27),
    ),
    fires("pace", "the frequency fell", Disturbed, "its frequency went from 3000 to 1800 MHz", |f| {
        slow(f, 0.27);
        f.host.frequency_mhz.insert(0, (3_000, 1_800));
    }),
    fires("pace", "not sampled", Disturbed, "the pace of CPU 0 was not sampled", |f| f.pace.clear()),
    fires("pace", "hardly sampled", Disturbed, "was sampled 5 times", |f| {
        f.pace.insert(0, PaceFacts { samples: Histogram::of([17_000; 5]), stalls: Vec::new() });
    }),
    // Steal.
    quiet("steal", "clean", |_| {}),
    fires("steal", "the hypervisor took a twentieth", Disturbed, "5 % of CPU 0's time", |f| {
        let times = f.host.cpus.get_mut(&0).expect("times");
        times.busy -= 100;
        times.steal += 100;
    }),
    fires("steal", "unknown", Disturbed, "the steal of CPU 0 is not known", |f| {
        f.host.cpus.remove(&0);
    }),
    fires("steal", "throttled", Disturbed, "throttled in 12 periods", |f| {
        let candidate = f.candidate.as_mut().expect("counters");
        candidate.start.as_mut().expect("a reading").throttled_periods = Some(3);
        candidate.end.as_mut().expect("a reading").throttled_periods = Some(15);
    }),
    // Service demand and saturation.
    quiet("service-demand", "clean", |_| {}),
    quiet("service-demand", "within the gate", |f| scale_cpu(f, 1.04)),
    fires(
        "service-demand",
        "a neighbour raises it",
        Disturbed,
        "8 % above the cell's lowest (50 µs in #1), more than 6 %",
        |f| {
            *f = closed(17_600.0, 54.0);
        },
    ),
    fires("service-demand", "no counter", Disturbed, "cpu-per-request is missing", |f| f.candidate = None),
    quiet("saturation", "clean", |_| {}),
    quiet("saturation", "within the gate", |f| scale_cpu(f, 0.97)),
    fires(
        "saturation",
        "kept off its cores",
        Disturbed,
        "10 % below the cell's highest (0.95 in #1), more than 5 %",
        |f| *f = closed(17_100.0, 50.0),
    ),
    fires("saturation", "no counter", Disturbed, "cores-used is missing", |f| f.candidate = None),
    // The generator as the bottleneck.
    quiet("generator-bottleneck", "clean", |_| {}),
    quiet("generator-bottleneck", "an open loop polls all the time and has little to do", |f| {
        let thread = &mut load(f).generator.by_thread[0];
        (thread.cpu_ns, thread.polling_ns) = (Some(bench::WINDOW_NS), bench::WINDOW_NS / 2);
    }),
    fires(
        "generator-bottleneck",
        "one of two threads is at its limit",
        BenchLimited,
        "the generator was the bottleneck: a thread of it was busy for 93 % of the window, more than 85 %",
        |f| {
            let threads = &mut load(f).generator.by_thread;
            threads.push(threads[0].clone());
            threads[1].cpu_ns = Some(bench::WINDOW_NS / 100 * 93);
        },
    ),
    fires(
        "generator-bottleneck",
        "answers wait for it to read them",
        BenchLimited,
        "the generator was the bottleneck of the latencies: answers lay in the kernel for 500 µs",
        |f| {
            let receive = load(f).generator.receive.as_mut().expect("timed answers");
            receive.queue = Histogram::of([500_000; 100]);
        },
    ),
    quiet("generator-bottleneck", "a wake-up is a third of a quick answer's time", |f| {
        let receive = load(f).generator.receive.as_mut().expect("timed answers");
        (receive.queue, receive.service) = (Histogram::of([15_000; 100]), Histogram::of([42_000; 100]));
    }),
    fires(
        "generator-bottleneck",
        "answers wait longer than a wake-up takes",
        BenchLimited,
        "the generator was the bottleneck of the latencies: answers lay in the kernel for 120 µs",
        |f| {
            let receive = load(f).generator.receive.as_mut().expect("timed answers");
            (receive.queue, receive.service) = (Histogram::of([120_000; 100]), Histogram::of([400_000; 100]));
        },
    ),
    fires("generator-bottleneck", "a thread's CPU time is missing", BenchLimited, "threads is not known", |f| {
        load(f).generator.by_thread[0].cpu_ns = None;
    }),
    fires("generator-bottleneck", "no thread is known", BenchLimited, "threads is not known", |f| {
        load(f).generator.by_thread.clear();
    }),
    fires("generator-bottleneck", "nothing was timed", BenchLimited, "nobody recorded how long answers waited", |f| {
        load(f).generator.receive = None;
    }),
    fires(
        "generator-bottleneck",
        "no answer was timed",
        BenchLimited,
        "nobody recorded how long answers waited",
        |f| {
            load(f).generator.receive = Some(journal::ReceiveFacts::default());
        },
    ),
    fires("generator-bottleneck", "no account", BenchLimited, "left no account of itself", |f| f.load = None),
    // Little's law.
    quiet("littles-law", "clean", |_| {}),
    fires("littles-law", "latencies that can't be", Wrong, "is 520 % of the 64 connections", |f| {
        for stream in &mut load(f).streams {
            stream.service.sum_ns = stream.service.sum_ns * 52 / 10;
        }
    }),
    fires("littles-law", "connections wait for the generator", BenchLimited, "they waited for the generator", |f| {
        for stream in &mut load(f).streams {
            stream.service.sum_ns = stream.service.sum_ns * 93 / 100;
        }
    }),
    fires("littles-law", "dead connections", BenchLimited, "32 of them never got an answer", |f| {
        load(f).connections_used = 32;
        for stream in &mut load(f).streams {
            stream.service.sum_ns /= 2;
        }
    }),
    fires("littles-law", "nothing to hold against it", Wrong, "left no account", |f| f.load = None),
    fires("littles-law", "empty histograms", Wrong, "no mean service time", |f| {
        for stream in &mut load(f).streams {
            stream.service = Histogram::default();
        }
    }),
];

fn scale_cpu(facts: &mut RepetitionFacts, by: f64) {
    let candidate = facts.candidate.as_mut().expect("counters");
    let start = candidate.start.expect("a reading").cpu_ns;
    let end = candidate.end.as_mut().expect("a reading");
    end.cpu_ns = start + ((end.cpu_ns - start) as f64 * by) as u64;
}

#[test]
fn closed_loop_gates() {
    run(CLOSED, || closed(19_000.0, 50.0), "ceiling", || one_cell(3, 9));
}

#[test]
fn every_gate_of_the_plan_has_a_drill_that_fires_and_a_twin_that_is_quiet() {
    let all: Vec<&Drill> = CLOSED.iter().chain(OPEN).chain(PROBE).collect();
    let gates = [capacity(), one_cell(1, 1)]
        .into_iter()
        .flat_map(|plan| plan.phases)
        .flat_map(|phase| phase.gates)
        .map(|gate: Gate| gate.name());
    for gate in gates {
        assert!(all.iter().any(|drill| drill.gate == gate && drill.says.is_some()), "{gate}: nothing fires");
        assert!(all.iter().any(|drill| drill.gate == gate && drill.says.is_none()), "{gate}: nothing is quiet");
    }
}

/// The candidate holds all 64 connections for 12.5 ms each, so sends are late.
fn overload(facts: &mut RepetitionFacts) {
    for stream in &mut load(facts).streams {
        stream.send_lag = Some(Histogram::of([5_000_000; 100]));
        stream.service.sum_ns = u128::from(stream.service.count) * 12_500_000;
    }
}

const STALLED: Stall = Stall { at_ns: 2_000_000_000, for_ns: 60_000_000 };

const OPEN: &[Drill] = &[
    quiet("census", "clean", |_| {}),
    fires("census", "iterations were dropped", Wrong, "5 requests were never sent", |f| {
        load(f).streams[0].census.ok -= 5;
        load(f).streams[0].census.unsent = 5;
    }),
    quiet("census", "the candidate is overloaded by its own slowness", |f| {
        overload(f);
        load(f).streams[0].census.ok -= 300;
        load(f).streams[0].census.unsent = 200;
        load(f).streams[0].census.timed_out = 100;
    }),
    fires("census", "overloaded, and answers are wrong", Wrong, "1 requests failed", |f| {
        overload(f);
        load(f).streams[0].census.ok -= 1;
        load(f).streams[0].census.failed = 1;
    }),
    fires("census", "every connection is taken, but none too long", Wrong, "200 requests were never sent", |f| {
        // 10 connections and 2 ms each: more connections might well have carried the rate.
        load(f).connections = 10;
        for stream in &mut load(f).streams {
            stream.service.sum_ns = u128::from(stream.service.count) * 2_000_000;
        }
        load(f).streams[0].census.ok -= 200;
        load(f).streams[0].census.unsent = 200;
    }),
    quiet("send-lag", "clean", |_| {}),
    fires("send-lag", "the generator is late", BenchLimited, "sends were late: p99 of (sent − due) is 5", |f| {
        for stream in &mut load(f).streams {
            stream.send_lag = Some(Histogram::of([5_000_000; 100]));
        }
    }),
    quiet("send-lag", "late because the candidate holds every connection", overload),
    fires(
        "send-lag",
        "every connection is held, but the generator is busy too",
        BenchLimited,
        "sends were late",
        |f| {
            overload(f);
            load(f).generator.cpu_ns = Some(bench::WINDOW_NS);
        },
    ),
    fires("send-lag", "slots were never sent", BenchLimited, "7 requests that were due were never sent", |f| {
        load(f).streams[0].census.unsent = 7;
    }),
    fires("send-lag", "nobody recorded it", BenchLimited, "nobody recorded how late", |f| {
        load(f).streams[0].send_lag = None;
    }),
    quiet("stalls", "clean", |_| {}),
    quiet("stalls", "within the budget", |f| {
        f.pace.get_mut(&0).expect("samples").stalls = vec![Stall { at_ns: 1, for_ns: 45_000_000 }];
    }),
    fires("stalls", "the platform stood still", Disturbed, "CPU 0 stood still for 50 ms beyond 10 ms each", |f| {
        f.pace.get_mut(&0).expect("samples").stalls = vec![STALLED];
    }),
    fires("stalls", "the generator was frozen", BenchLimited, "the generator stood still for", |f| {
        load(f).generator.stalls = vec![STALLED];
    }),
    fires("stalls", "not watched", Disturbed, "stalls of CPU 0 were not watched", |f| f.pace.clear()),
    fires("stalls", "no account", Disturbed, "left no account of its stalls", |f| f.load = None),
    quiet("conditions", "clean", |_| {}),
    fires(
        "conditions",
        "no corrected latency",
        Wrong,
        "`corrected.p99 < 10ms` can't be judged: a stream left no histogram",
        |f| {
            load(f).streams[0].corrected = None;
        },
    ),
    fires(
        "conditions",
        "too few answers for the percentile",
        Wrong,
        "p99 needs at least 459 answers, there were 200",
        |f| {
            for stream in &mut load(f).streams {
                stream.corrected = Some(Histogram::of([1_000_000; 100]));
            }
        },
    ),
];

#[test]
fn open_loop_gates() {
    run(OPEN, || open(5_000.0, 2_000_000), "rates", capacity);
}

const PROBE: &[Drill] = &[
    quiet("generator-probe", "clean", |_| {}),
    quiet("generator-probe", "99 % of what was asked for", |f| {
        f.probe = Some(ProbeFacts { target: 21_850.0, achieved: 21_850.0 * 0.992, errors: 0, window_ns: 1 });
    }),
    fires("generator-probe", "no headroom", BenchLimited, "the generator had no headroom", |f| {
        f.probe = Some(ProbeFacts { target: 21_850.0, achieved: 20_000.0, errors: 0, window_ns: 1 });
    }),
    fires(
        "generator-probe",
        "capped below what it vouches for",
        BenchLimited,
        "driven at 19,500/s, which can't vouch for the 19,000/s finally measured: 1.15 × that is 21,850/s",
        |f| f.probe = Some(ProbeFacts { target: 19_500.0, achieved: 19_500.0, errors: 0, window_ns: 1 }),
    ),
    fires("generator-probe", "errors", BenchLimited, "the probe had 2 errors", |f| {
        f.probe.as_mut().expect("a probe").errors = 2;
    }),
    fires("generator-probe", "missing", BenchLimited, "there was no generator probe (port taken)", |f| {
        f.probe = None;
        f.findings.push(Finding { what: "generator probe".to_owned(), why: "port taken".to_owned() });
    }),
    fires("generator-probe", "vouches for nothing", BenchLimited, "a rate that is not known", |f| f.load = None),
    fires("generator-probe", "no number", BenchLimited, "no headroom", |f| {
        f.probe = Some(ProbeFacts { target: f64::INFINITY, achieved: f64::NAN, errors: 0, window_ns: 1 });
    }),
];

#[test]
fn the_probe_is_judged_against_the_rate_finally_measured() {
    run(PROBE, || closed(19_000.0, 50.0), "ceiling", capacity);
}

const PGBENCH: &[Drill] = &[
    quiet("census", "clean", |_| {}),
    fires("census", "no account", Wrong, "pgbench left no account", |f| f.pgbench = None),
    fires("census", "transactions failed", Wrong, "3 transactions failed", |f| {
        f.pgbench.as_mut().expect("an account").failed = 3;
    }),
    fires("census", "transactions skipped", Wrong, "22 transactions were skipped", |f| {
        f.pgbench.as_mut().expect("an account").skipped = Some(22);
    }),
    quiet("census", "none skipped", |f| f.pgbench.as_mut().expect("an account").skipped = Some(0)),
    fires("census", "no transactions", Wrong, "processed no transaction", |f| {
        f.pgbench.as_mut().expect("an account").transactions = 0;
    }),
    quiet("rows", "nothing acknowledged", |_| {}),
    quiet("pace", "clean", |_| {}),
    fires("pace", "the database's CPU was slowed", Disturbed, "CPU 2 was slowed to 0.61", |f| {
        let slowed = Histogram::of((0..400).map(|i| if i < 100 { bench::QUIET_NS } else { bench::SLOWED_NS }));
        f.pace.insert(2, PaceFacts { samples: slowed, stalls: Vec::new() });
    }),
    fires(
        "pace",
        "the database's CPU was not watched",
        Disturbed,
        "the pace of CPU 2 was not sampled (the sampler died)",
        |f| {
            f.pace.remove(&2);
            f.findings.push(Finding { what: "sampler".to_owned(), why: "the sampler died".to_owned() });
        },
    ),
    quiet("counters", "clean", |_| {}),
    fires("counters", "no counter of the database", Wrong, "database's CPU counter was not read", |f| {
        f.database = None
    }),
    fires("steal", "of the database's CPU", Disturbed, "of CPU 2's time", |f| {
        f.host.cpus.get_mut(&2).expect("times").steal = 500;
    }),
];

#[test]
fn pgbench_gates() {
    run(PGBENCH, || pgbench_facts(29_000.0), "database", pgbench);
}

#[test]
fn a_run_without_quiet_moments_voids_by_pace_and_says_so() {
    let mut run = Run::new(one_cell(1, 3));
    let mut facts = closed(19_000.0, 50.0);
    slow(&mut facts, 0.05);
    run.measure("ceiling", 0, facts);
    let judgement = run.judge();
    let pace = judgement.repetitions[0].gates.iter().find(|gate| gate.gate == "pace").expect("a pace gate");
    assert!(!pace.passed && pace.sentence.contains("too few quiet moments"), "{pace:?}");
    assert!(judgement.limits.iter().any(|limit| limit.contains("CPU 0 had too few quiet moments")));
    let paced = judgement.repetitions[0].missing.get(&plan::Metric::PacedCpuPerRequest);
    assert!(paced.is_some_and(|why| why.contains("too few quiet moments")), "{paced:?}");
    assert!(judgement.quiet[&0].problem.is_some() && judgement.quiet[&1].problem.is_none());
}
