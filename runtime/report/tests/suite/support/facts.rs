//! Facts of one repetition that fit together: what a generator, counters, witness and database would have recorded.

use std::collections::BTreeMap;

use journal::{
    Census, CounterReading, Counters, CpuTimes, DatabaseFacts, GeneratorFacts, Histogram, HostFacts, LoadFacts,
    MemoryFacts, PaceFacts, PgbenchFacts, ProbeFacts, RepetitionFacts, RowFacts, StreamFacts, WindowFacts,
};

/// What a repetition was like.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Expected answers per second.
    pub rate: f64,
    /// CPU time of the candidate per answer, µs.
    pub cpu_us: f64,
    /// CPU time of the database per answer, µs.
    pub database_us: f64,
    /// Window, s.
    pub window_s: u64,
    /// CPUs of the candidate.
    pub cpus: Vec<u32>,
    /// All CPUs of the study.
    pub all_cpus: Vec<u32>,
    /// Share of the window in which the CPUs were at their quiet pace.
    pub quiet: f64,
    /// Rate that was asked for (open loop) and mean of the corrected latency, ms.
    pub open: Option<(f64, f64)>,
    /// What the probe reached, relative to the rate; `None`: no probe.
    pub probe: Option<f64>,
    /// Answers with status 502.
    pub failed: u64,
    /// Peak memory of the candidate, bytes.
    pub memory: u64,
    /// Start of the window on the monotonic clock, ns.
    pub start_ns: u64,
}

const CONNECTIONS: u64 = 64;

/// A latency distribution with exactly this mean, ns: a body and a tail, in few buckets.
fn latencies(count: u64, mean_ns: f64) -> Histogram {
    let shape: [(f64, u64); 8] =
        [(0.55, 15), (0.7, 20), (0.85, 20), (1.0, 15), (1.15, 12), (1.4, 10), (1.9, 6), (2.6, 2)];
    let mean: f64 = shape.iter().map(|(factor, weight)| factor * *weight as f64).sum::<f64>() / 100.0;
    let mut left = count;
    let mut histogram = Histogram::default();
    for (index, (factor, weight)) in shape.iter().enumerate() {
        let number = if index + 1 == shape.len() { left } else { (count * weight / 100).min(left) };
        left -= number;
        let value = (mean_ns * factor / mean) as u64;
        if number > 0 {
            let mut one = Histogram::of([value]);
            one.count = number;
            one.sum_ns = u128::from(value) * u128::from(number);
            one.buckets[0].1 = number;
            histogram.merge(&one);
        }
    }
    histogram
}

fn window(start_ns: u64, seconds: u64) -> WindowFacts {
    let wall = 1_796_000_000_000_000_000;
    let end_ns = start_ns + seconds * 1_000_000_000;
    WindowFacts {
        start_ns,
        end_ns,
        wall_start_ns: wall + start_ns,
        wall_end_ns: wall + end_ns,
        boot_start_ns: start_ns,
        boot_end_ns: end_ns,
        declared_ns: seconds * 1_000_000_000,
    }
}

/// Memory that climbs by a tenth over the window, looked at in every slice.
fn course(window: &WindowFacts, memory: u64) -> MemoryFacts {
    let length = window.end_ns - window.start_ns;
    let mut course = MemoryFacts::over(length);
    for slice in 0..course.largest.len() as u64 {
        course.see(slice * course.slice_ns, memory + memory / 10 * slice * course.slice_ns / length);
    }
    course
}

fn counters(window: &WindowFacts, cpu_ns: u64, memory: u64, cpus: u32) -> Counters {
    let reading = |at_ns, cpu_ns| CounterReading { at_ns, cpu_ns, throttled_periods: None, memory_bytes: Some(memory) };
    Counters {
        source: "cgroup v1".to_owned(),
        start: Some(reading(window.start_ns, 4_000_000_000)),
        end: Some(reading(window.end_ns, 4_000_000_000 + cpu_ns)),
        memory_peak_bytes: Some(memory + memory / 10),
        memory: Some(course(window, memory)),
        cpus,
    }
}

fn witness(seconds: u64, quiet: f64) -> PaceFacts {
    let samples = seconds * 200;
    let quiet_samples = (samples as f64 * quiet) as u64;
    let values = (0..samples).map(|index| match (index < quiet_samples, index % 3) {
        (true, 0) => 16_900,
        (true, 1) => 17_200,
        (true, _) => 17_600,
        (false, _) => 28_400,
    });
    PaceFacts { samples: Histogram::of(values), stalls: Vec::new() }
}

/// Time of a reading that is taken from the whole window, in ticks of 10 ms.
fn host(all: &[u32], seconds: u64, busy: impl Fn(u32) -> f64) -> HostFacts {
    let ticks = seconds * 100;
    HostFacts {
        cpus: all
            .iter()
            .map(|&cpu| {
                let used = (ticks as f64 * busy(cpu).clamp(0.0, 1.0)) as u64;
                (cpu, CpuTimes { busy: used, idle: ticks - used, steal: 0 })
            })
            .collect(),
        frequency_mhz: BTreeMap::new(),
        pressure_some_us: None,
        foreign_cpu_ns: Some(20_000_000),
    }
}

/// Facts of a candidate under load.
pub fn load(reading: &Reading, levels: BTreeMap<String, String>) -> RepetitionFacts {
    let window = window(reading.start_ns, reading.window_s);
    let ok = (reading.rate * reading.window_s as f64) as u64;
    let mean_ns = CONNECTIONS as f64 / reading.rate * 1e9;
    let streams = ["read", "write"].map(|name| {
        let share = if name == "read" { ok.div_ceil(2) } else { ok / 2 };
        let failed = if name == "read" { reading.failed } else { 0 };
        let census = match reading.open {
            Some((asked, _)) => {
                let due = (asked * reading.window_s as f64 / 2.0) as u64;
                Census { due, sent: due, ok: due, ..Census::default() }
            }
            None => Census {
                sent: share + failed,
                carried_in: CONNECTIONS / 2,
                ok: share,
                failed,
                carried_out: CONNECTIONS / 2,
                ..Census::default()
            },
        };
        let service = if reading.open.is_some() { 1.1e6 } else { mean_ns };
        StreamFacts {
            name: name.to_owned(),
            census,
            acknowledged: census.ok + 1_000,
            unknown: 0,
            warm_up_failed: 0,
            failures: if failed > 0 { BTreeMap::from([("status 502".to_owned(), failed)]) } else { BTreeMap::new() },
            evidence: if failed > 0 {
                vec!["HTTP/1.1 502 Bad Gateway: <html><head><title>502 Bad Gateway</title></head>".to_owned()]
            } else {
                Vec::new()
            },
            service: latencies(census.ok, service),
            ttfb: latencies(census.ok, service * 0.97),
            corrected: reading.open.map(|(_, mean_ms)| latencies(census.ok, mean_ms * 1e6)),
            send_lag: reading.open.map(|_| latencies(census.ok, 2_000.0)),
            failed: if failed > 0 { latencies(failed, 4e5) } else { Histogram::default() },
            ..StreamFacts::default()
        }
    });
    let acknowledged = streams[1].acknowledged;
    let cpu_ns = (reading.cpu_us * 1e3 * ok as f64) as u64;
    let database_ns = (reading.database_us * 1e3 * ok as f64) as u64;
    let used = cpu_ns as f64 / 1e9 / reading.window_s as f64 / reading.cpus.len() as f64;
    let generator_ns = 6_000 * ok;
    let others = (database_ns + generator_ns) as f64
        / 1e9
        / reading.window_s as f64
        / (reading.all_cpus.len() - reading.cpus.len()).max(1) as f64;
    RepetitionFacts {
        levels,
        load: Some(LoadFacts {
            connections: CONNECTIONS as u32,
            connections_used: CONNECTIONS as u32,
            reconnects: 0,
            unsolicited: 0,
            rate: reading.open.map(|(asked, _)| asked),
            generator: GeneratorFacts {
                cpu_ns: Some(generator_ns),
                user_ns: Some(generator_ns / 4),
                threads: 1,
                stalls: Vec::new(),
                involuntary_switches: Some(12),
                max_backlog: 0,
                ..GeneratorFacts::default()
            },
            streams: streams.to_vec(),
            ..LoadFacts::default()
        }),
        candidate: Some(counters(&window, cpu_ns, reading.memory, reading.cpus.len() as u32)),
        database: Some(counters(&window, database_ns, 900 << 20, 1)),
        host: host(&reading.all_cpus, reading.window_s, |cpu| {
            if reading.cpus.contains(&cpu) { used.min(0.995) + 0.004 } else { others }
        }),
        pace: reading.cpus.iter().map(|&cpu| (cpu, witness(reading.window_s, reading.quiet))).collect(),
        rows: Some(RowFacts { table: "events".to_owned(), before: 1_000_000, after: 1_000_000 + acknowledged }),
        postgres: Some(DatabaseFacts {
            checkpoints_timed: 0,
            checkpoints_requested: 0,
            wal_bytes: ok / 2 * 210,
            commits: ok,
            inserted: ok / 2,
        }),
        probe: reading.probe.map(|factor| ProbeFacts {
            target: reading.rate * 1.2,
            achieved: reading.rate * factor,
            errors: 0,
            window_ns: 2_000_000_000,
        }),
        window,
        ..RepetitionFacts::default()
    }
}

/// Facts of pgbench.
pub fn pgbench(tps: f64, start_ns: u64, all: &[u32]) -> RepetitionFacts {
    let window = window(start_ns, 5);
    RepetitionFacts {
        pgbench: Some(PgbenchFacts {
            transactions: (tps * 5.0) as u64,
            failed: 0,
            tps,
            latency_ms: 64_000.0 / tps,
            latency_stddev_ms: Some(1.9),
            ..PgbenchFacts::default()
        }),
        database: Some(counters(&window, 4_600_000_000, 900 << 20, 1)),
        host: host(all, 5, |_| 0.6),
        window,
        ..RepetitionFacts::default()
    }
}
