//! Replay and arbitrary facts: the same records give the same judgement, no facts end the program, and no figure is a NaN.

use std::collections::BTreeMap;

use journal::{
    Census, CounterReading, Counters, CpuTimes, Event, Histogram, LoadFacts, MemoryFacts, PaceFacts, PgbenchFacts,
    ProbeFacts, ReceiveFacts, RepetitionFacts, RowFacts, Stall, StartFacts, StreamFacts, ThreadFacts, WindowFacts,
};
use judge::{Evidence, Judgement, Outcome, judge, levels, probe_target, wanted};
use proptest::prelude::*;

use crate::bench::{Run, capacity, closed, one_cell, open, pgbench, pgbench_facts, slow, started, starts, whole};

/// Whether a judgement holds only finite numbers.
fn is_finite(judgement: &Judgement) -> bool {
    let repetitions = judgement.repetitions.iter().all(|repetition| {
        repetition.values.values().all(|value| value.is_finite())
            && repetition.pace.values().all(|pace| pace.pace.is_finite() && pace.quiet_share.is_finite())
            && repetition.gates.iter().flat_map(|gate| &gate.values).all(|value| value.value.is_none_or(f64::is_finite))
    });
    let figures = judgement.figures.iter().all(|figure| {
        let outcome = match figure.outcome {
            Outcome::Determined { value, interval, coverage } => {
                value.is_finite()
                    && interval.is_none_or(|(low, high)| low.is_finite() && high.is_finite())
                    && coverage.is_none_or(f64::is_finite)
            }
            Outcome::NotDetermined { .. } => true,
        };
        outcome
            && figure.spread.is_none_or(f64::is_finite)
            && figure.seen.is_none_or(|seen| seen.min.is_finite() && seen.median.is_finite() && seen.max.is_finite())
    });
    repetitions && figures
}

#[test]
fn a_replay_gives_the_same_judgement_and_its_bytes() {
    let mut run = whole([5, 3, 4, 0], Some(3));
    let mut slowed = closed(18_000.0, 50.0);
    slow(&mut slowed, 0.5);
    run.measure("ceiling", 0, slowed);
    run.fail("rates", 2, "the candidate was never ready");
    let live = run.judge();
    // Through the journal's own lines, as a replay reads them.
    let lines: Vec<String> = run.records.iter().map(|record| serde_json::to_string(record).expect("a line")).collect();
    let mut evidence = Evidence::new();
    for line in &lines {
        evidence.take(&serde_json::from_str(line).expect("a record"));
    }
    let replayed = judge(&run.plan, &evidence);
    assert_eq!(live, replayed);
    let bytes = serde_json::to_string(&live).expect("JSON");
    assert_eq!(bytes, serde_json::to_string(&replayed).expect("JSON"));
    assert_eq!(serde_json::from_str::<Judgement>(&bytes).expect("the same type"), live);
}

#[test]
fn every_prefix_of_a_run_can_be_judged() {
    let run = whole([5, 3, 4, 0], None);
    let mut evidence = Evidence::new();
    for record in &run.records {
        evidence.take(record);
        let judgement = judge(&run.plan, &evidence);
        assert!(is_finite(&judgement));
        for phase in &run.plan.phases {
            for cell in wanted(&run.plan, &phase.name, &judgement, &evidence) {
                let _ = levels(&run.plan, &phase.name, cell, &judgement);
                let _ = probe_target(&run.plan, &phase.name, cell, &judgement);
            }
        }
    }
    assert_eq!(wanted(&run.plan, "rates", &judge(&run.plan, &evidence), &evidence), [] as [u32; 0]);
}

/// Counts as they come, and those at which arithmetic breaks.
fn count() -> BoxedStrategy<u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), Just(u64::MAX / 2), 0..1_000_000u64, any::<u64>()].boxed()
}

fn float() -> BoxedStrategy<f64> {
    prop_oneof![Just(0.0), Just(f64::NAN), Just(f64::INFINITY), Just(-1.0), Just(f64::MAX), 0.0..1e6f64, any::<f64>()]
        .boxed()
}

fn histogram() -> BoxedStrategy<Histogram> {
    let honest = proptest::collection::vec(count(), 0..40).prop_map(Histogram::of);
    let broken = (count(), any::<u128>(), count(), count(), proptest::collection::vec((any::<u32>(), count()), 0..4))
        .prop_map(|(count, sum_ns, min_ns, max_ns, buckets)| Histogram { count, sum_ns, min_ns, max_ns, buckets });
    prop_oneof![Just(Histogram::default()), honest, broken].boxed()
}

fn stalls() -> BoxedStrategy<Vec<Stall>> {
    proptest::collection::vec((count(), count()).prop_map(|(at_ns, for_ns)| Stall { at_ns, for_ns }), 0..3).boxed()
}

fn counters() -> BoxedStrategy<Option<Counters>> {
    let reading = || {
        proptest::option::of((count(), count(), proptest::option::of(count())).prop_map(
            |(at_ns, cpu_ns, throttled_periods)| CounterReading {
                at_ns,
                cpu_ns,
                throttled_periods,
                memory_bytes: None,
            },
        ))
    };
    let memory = || {
        let largest = proptest::collection::vec(proptest::option::of(count()), 0..9);
        proptest::option::of((count(), largest).prop_map(|(slice_ns, largest)| MemoryFacts { slice_ns, largest }))
    };
    proptest::option::of((reading(), reading(), proptest::option::of(count()), memory(), 0..3u32).prop_map(
        |(start, end, memory_peak_bytes, memory, cpus)| Counters {
            source: String::new(),
            start,
            end,
            memory_peak_bytes,
            memory,
            cpus,
        },
    ))
    .boxed()
}

fn stream(name: &'static str) -> BoxedStrategy<StreamFacts> {
    let census = (count(), count(), count(), count(), count(), count(), count());
    let histograms = (histogram(), histogram(), proptest::option::of(histogram()), proptest::option::of(histogram()));
    (census, histograms, count(), count())
        .prop_map(move |(census, histograms, acknowledged, unknown)| StreamFacts {
            name: name.to_owned(),
            census: Census {
                due: census.0,
                sent: census.1,
                carried_in: census.2,
                ok: census.3,
                failed: census.4,
                timed_out: census.5,
                unanswered: census.6,
                carried_out: census.0,
                unsent: census.1,
            },
            acknowledged,
            unknown,
            service: histograms.0,
            ttfb: histograms.1,
            corrected: histograms.2,
            send_lag: histograms.3,
            ..StreamFacts::default()
        })
        .boxed()
}

fn load() -> BoxedStrategy<Option<LoadFacts>> {
    let streams = prop_oneof![
        Just(Vec::new()),
        (stream("read"), stream("write")).prop_map(|(read, write)| vec![read, write]),
        stream("read").prop_map(|read| vec![read]),
    ];
    let receive =
        (histogram(), histogram()).prop_map(|(queue, service)| ReceiveFacts { connections: 1, queue, service });
    let thread = (proptest::option::of(count()), count()).prop_map(|(cpu_ns, polling_ns)| ThreadFacts {
        cpu_ns,
        polling_ns,
        ..ThreadFacts::default()
    });
    let threads = proptest::collection::vec(thread, 0..3);
    let own = (proptest::option::of(receive), threads);
    let generator = (proptest::option::of(count()), 0..2u32, stalls(), own, stalls());
    proptest::option::of((0..2u32, proptest::option::of(float()), streams, generator).prop_map(
        |(connections, rate, streams, (cpu_ns, threads, stalls, (receive, by_thread), silences))| LoadFacts {
            connections: connections * 64,
            rate,
            streams,
            silences,
            generator: journal::GeneratorFacts {
                cpu_ns,
                threads,
                stalls,
                receive,
                by_thread,
                ..journal::GeneratorFacts::default()
            },
            ..LoadFacts::default()
        },
    ))
    .boxed()
}

fn facts() -> BoxedStrategy<RepetitionFacts> {
    let window = (count(), count(), count(), count(), count(), count(), count()).prop_map(|window| WindowFacts {
        start_ns: window.0,
        end_ns: window.1,
        wall_start_ns: window.2,
        wall_end_ns: window.3,
        boot_start_ns: window.4,
        boot_end_ns: window.5,
        declared_ns: window.6,
    });
    let times = (count(), count(), count()).prop_map(|(busy, idle, steal)| CpuTimes { busy, idle, steal });
    let cpus = proptest::collection::btree_map(0..4u32, times, 0..4);
    let pace = proptest::collection::btree_map(
        0..3u32,
        (histogram(), stalls()).prop_map(|(samples, stalls)| PaceFacts { samples, stalls }),
        0..3,
    );
    let pgbench = proptest::option::of((count(), count(), float(), float()).prop_map(
        |(transactions, failed, tps, latency_ms)| PgbenchFacts {
            transactions,
            failed,
            tps,
            latency_ms,
            latency_stddev_ms: None,
            ..PgbenchFacts::default()
        },
    ));
    let rows = proptest::option::of((count(), count()).prop_map(|(before, after)| RowFacts {
        table: "events".to_owned(),
        before,
        after,
    }));
    let probe = proptest::option::of((float(), float(), count()).prop_map(|(target, achieved, errors)| ProbeFacts {
        target,
        achieved,
        errors,
        window_ns: 1,
    }));
    let start =
        (count(), count(), count(), proptest::option::of(count())).prop_map(|(asked_ns, ready_ns, looks, cpu_ns)| {
            StartFacts { asked_ns, not_ready_ns: None, ready_ns, looks, cpu_ns }
        });
    let start = proptest::option::of(start);
    ((window, load(), counters(), counters()), (cpus, pace, pgbench, rows, probe, start))
        .prop_map(|((window, load, candidate, database), (cpus, pace, pgbench, rows, probe, start))| RepetitionFacts {
            window,
            levels: BTreeMap::new(),
            load,
            pgbench,
            candidate,
            database,
            host: journal::HostFacts { cpus, ..journal::HostFacts::default() },
            pace,
            rows,
            probe,
            start,
            ..RepetitionFacts::default()
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_facts_end_the_program_and_no_figure_is_a_nan(
        (arbitrary, kind, clean) in (proptest::collection::vec((facts(), 0..3usize), 1..5), 0..4usize, 0..4usize),
    ) {
        let (plan, phases): (_, &[&str]) = match kind {
            0 => (one_cell(2, 9), &["ceiling"]),
            1 => (capacity(), &["sweep", "ceiling", "rates"]),
            2 => (pgbench(), &["database"]),
            _ => (starts(), &["cold"]),
        };
        let mut run = Run::new(plan);
        for _ in 0..clean {
            for phase in phases {
                run.measure(phase, 0, match *phase {
                    "rates" => open(5_000.0, 2_000_000),
                    "database" => pgbench_facts(29_000.0),
                    "cold" => started(42_000_000, 9_000_000),
                    _ => closed(19_000.0, 50.0),
                });
            }
        }
        for (facts, place) in arbitrary {
            run.measure(phases[place % phases.len()], 0, facts);
        }
        let judgement = run.judge();
        prop_assert!(is_finite(&judgement), "{judgement:?}");
        for phase in phases {
            let _ = levels(&run.plan, phase, 0, &judgement);
            let target = probe_target(&run.plan, phase, 0, &judgement);
            prop_assert!(target.is_err() || target.is_ok_and(|rate| rate.is_finite() && rate > 0.0));
        }
        // Arbitrary facts that were voided never enter a figure.
        for figure in &judgement.figures {
            if figure.metric == plan::Metric::Throughput && figure.value().is_some() {
                for row in &figure.rows {
                    let judged = judgement.repetitions.iter().find(|repetition| repetition.id == *row);
                    prop_assert!(judged.is_some_and(judge::JudgedRepetition::is_valid));
                }
            }
        }
    }
}

#[test]
fn records_out_of_order_or_of_unknown_phases_count_for_nothing() {
    let mut run = Run::new(one_cell(1, 2));
    let stray = |phase: &str, cell| journal::RepetitionId { phase: phase.to_owned(), cell, number: 1 };
    for (phase, cell) in [("nowhere", 0), ("ceiling", 77), ("ceiling", 0)] {
        run.push(Event::RepetitionMeasured { repetition: stray(phase, cell), facts: Box::new(closed(19_000.0, 50.0)) });
    }
    let judgement = run.judge();
    assert_eq!(judgement.repetitions.len(), 3);
    assert!(judgement.repetitions.iter().all(|repetition| repetition.superseded && !repetition.is_valid()));
    assert!(judgement.figures.iter().all(|figure| figure.value().is_none()));
}
