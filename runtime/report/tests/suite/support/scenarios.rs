//! Runs as they happen: each scenario is a plan and its journal.

use std::collections::BTreeMap;

use journal::{Event, Failure, Record, RepetitionFacts, RunEnd};
use plan::{ContentHash, Plan, Procedure};

use super::facts::{Reading, load, pgbench};
use super::plans::{Shape, capacity};
use super::scribe::{Scribe, environment};

/// A plan and the journal of a run of it.
pub struct Scenario {
    pub name: &'static str,
    pub plan: Plan,
    pub records: Vec<Record>,
}

/// Every scenario.
pub fn all() -> Vec<Scenario> {
    vec![
        clean(),
        noisy(),
        contract_failure(),
        resumed(),
        not_measured(),
        probe_failing(),
        agreement_failing(),
        environment_failing(),
    ]
}

/// What a repetition of a cell reads on a quiet machine: deterministic, with a spread of about 1 %.
fn quiet(
    scribe: &Scribe<'_>,
    phase: &str,
    cell: u32,
    levels: &BTreeMap<String, String>,
    number: u32,
    start_ns: u64,
) -> Reading {
    let level = |factor| scribe.level(phase, cell, factor);
    let candidate = level("candidate").unwrap_or_default();
    let cores: u32 = level("cores").and_then(|cores| cores.parse().ok()).unwrap_or(1);
    let (rate, cpu_us, database_us, memory) = match candidate.as_str() {
        "go" => (4_400.0, 218.0, 66.0, 41 << 20),
        "php-fpm" => (1_180.0, 838.0, 71.0, 122 << 20),
        _ => (1_450.0, 676.0, 69.0, 161 << 20),
    };
    let pool: f64 = levels.get("pool").and_then(|pool| pool.parse().ok()).unwrap_or(16.0);
    // The best pool is in the middle, so that the choice is bracketed where three are tried.
    let bend = 1.0 - 0.09 * ((pool.log2() - 4.0) / 1.0).abs();
    let jitter = 1.0 - f64::from((number * 7 + cell * 3) % 5) * 0.002_1;
    let scale = if cores == 1 { 1.0 } else { f64::from(cores) * 0.93 };
    let per_core = if cores == 1 { 1.0 } else { 1.0 / 0.93 * 0.995 };
    let rate = rate * scale * bend * jitter;
    let cpu_us = cpu_us * per_core / bend / jitter * (if cores == 1 { 1.0 } else { 0.998 });
    Reading {
        rate,
        // A closed loop at saturation: the cores are all used, whatever the rate.
        cpu_us: (cpu_us).min(f64::from(cores) * 0.985e6 / rate),
        database_us,
        window_s: match scribe.plan.phase(phase).map(|phase| &phase.procedure) {
            Some(Procedure::Load(load)) => load.window_ns / 1_000_000_000,
            _ => 5,
        },
        cpus: scribe.plan.machine.candidate.first(cores as usize).map_or(vec![0], |set| set.cpus().to_vec()),
        all_cpus: scribe.plan.machine.all().cpus().to_vec(),
        quiet: 0.97,
        open: None,
        probe: (phase == "ceiling").then_some(1.21),
        failed: 0,
        memory,
        start_ns,
    }
}

/// Measures a phase as the engine does: again and again what the judge wants.
fn measure(scribe: &mut Scribe<'_>, phase: &str, change: &dyn Fn(&str, u32, &mut Reading)) {
    loop {
        let wanted = scribe.wanted(phase);
        if wanted.is_empty() {
            break;
        }
        let mut measured = false;
        for cell in wanted {
            measured |= one(scribe, phase, cell, change);
        }
        if !measured {
            break;
        }
    }
    scribe.estimate(phase);
}

fn one(scribe: &mut Scribe<'_>, phase: &str, cell: u32, change: &dyn Fn(&str, u32, &mut Reading)) -> bool {
    let candidate = scribe.level(phase, cell, "candidate").unwrap_or_default();
    scribe.repetition(phase, cell, |scribe, levels: BTreeMap<String, String>, start_ns, number| -> RepetitionFacts {
        if candidate.is_empty() {
            return pgbench(3_240.0 + f64::from(number) * 11.0, start_ns, scribe.plan.machine.all().cpus());
        }
        let mut reading = quiet(scribe, phase, cell, &levels, number, start_ns);
        if let Some(rate) = levels.get("rate").and_then(|rate| rate.parse::<f64>().ok()) {
            let ceiling = reading.rate;
            // Above the ceiling the queue grows for the whole window.
            let wait = if rate < ceiling * 0.98 { 1.9 } else { 480.0 };
            reading.cpu_us = (reading.cpu_us * 1.02).min(0.985e6 * reading.cpus.len() as f64 / rate);
            reading.rate = rate;
            reading.open = Some((rate, wait));
        }
        change(&candidate, number, &mut reading);
        load(&reading, levels)
    })
}

fn phases(scribe: &mut Scribe<'_>, change: &dyn Fn(&str, u32, &mut Reading)) {
    let names: Vec<String> = scribe.plan.phases.iter().map(|phase| phase.name.clone()).collect();
    for name in names {
        measure(scribe, &name, change);
    }
}

/// A quiet machine: everything is determined.
fn clean() -> Scenario {
    let plan = capacity(&Shape::whole());
    let mut scribe = Scribe::new(&plan);
    scribe.begin(environment(false, "0-11"));
    scribe.prepare(false, None, None);
    phases(&mut scribe, &|_, _, _| {});
    scribe.end(RunEnd::Completed);
    Scenario { name: "clean", records: scribe.records, plan }
}

/// A rented machine with a busy neighbour: every repetition of the ceiling is void by pace.
fn noisy() -> Scenario {
    let plan = capacity(&Shape::smoke());
    let mut scribe = Scribe::new(&plan);
    scribe.begin(environment(true, "0-1"));
    scribe.prepare(true, None, None);
    phases(&mut scribe, &|_, number, reading| {
        let quiet = [0.41, 0.62, 0.33, 0.55][number as usize % 4];
        let slowed = 1.0 + (1.0 - quiet) * 0.6;
        reading.quiet = quiet;
        reading.rate /= slowed;
        reading.cpu_us *= slowed;
    });
    scribe.end(RunEnd::Completed);
    Scenario { name: "noisy", records: scribe.records, plan }
}

/// One candidate answers wrongly and is not measured; the others are.
fn contract_failure() -> Scenario {
    let plan = capacity(&Shape::smoke());
    let mut scribe = Scribe::new(&plan);
    scribe.begin(environment(true, "0-1"));
    scribe.prepare(true, None, Some("php-fpm"));
    phases(&mut scribe, &|_, _, _| {});
    scribe.end(RunEnd::Completed);
    Scenario { name: "contract-failure", records: scribe.records, plan }
}

/// Interrupted by Ctrl-C, resumed after the sweep's first cell had changed.
fn resumed() -> Scenario {
    let plan = capacity(&Shape::smoke());
    let mut scribe = Scribe::new(&plan);
    scribe.old_hash.insert(("pool-sweep".to_owned(), 0), ContentHash::of_bytes(b"before the change"));
    scribe.begin(environment(true, "0-1"));
    scribe.prepare(false, None, None);
    measure(&mut scribe, "database-ceiling", &|_, _, _| {});
    for cell in 0..4 {
        one(&mut scribe, "pool-sweep", cell, &|_, _, _| {});
    }
    scribe.start("pool-sweep", 4);
    scribe.pass(1_800);
    scribe.end(RunEnd::Interrupted);
    scribe.pass(3_600_000);
    scribe.old_hash.clear();
    scribe.write(Event::RunResumed {
        plan: plan.hash(),
        environment: environment(true, "0-1"),
        kept: 4,
        superseded: 1,
    });
    scribe.prepare(true, None, None);
    for phase in ["pool-sweep", "ceiling"] {
        measure(&mut scribe, phase, &|_, _, _| {});
    }
    scribe.end(RunEnd::Completed);
    Scenario { name: "resumed", records: scribe.records, plan }
}

/// One candidate's image can't be had.
fn not_measured() -> Scenario {
    let plan = capacity(&Shape::smoke());
    let mut scribe = Scribe::new(&plan);
    scribe.begin(environment(true, "0-1"));
    scribe.prepare(false, Some("frankenphp"), None);
    phases(&mut scribe, &|_, _, _| {});
    scribe.end(RunEnd::Completed);
    Scenario { name: "not-measured", records: scribe.records, plan }
}

/// The generator has no headroom over the quickest candidate; another answers 502 once and dies once.
fn probe_failing() -> Scenario {
    let plan = capacity(&Shape::smoke());
    let mut scribe = Scribe::new(&plan);
    scribe.begin(environment(true, "0-1"));
    scribe.prepare(true, None, None);
    let change = |candidate: &str, number: u32, reading: &mut Reading| {
        if candidate == "go" && reading.probe.is_some() {
            reading.probe = Some(1.05);
        }
        if candidate == "php-fpm" && number == 1 {
            reading.failed = 1_204;
        }
    };
    for phase in ["database-ceiling", "pool-sweep"] {
        measure(&mut scribe, phase, &change);
    }
    scribe.failed_repetition(
        "ceiling",
        2,
        Failure {
            what: "frankenphp was not ready within 15 s: GET /healthz never answered 2xx".to_owned(),
            why: "its process ended with exit code 1".to_owned(),
            next: "read its log below; the repetition is measured again while the budget allows".to_owned(),
            log: vec!["panic: runtime error: index out of range [3] with length 3".to_owned()],
        },
    );
    measure(&mut scribe, "ceiling", &change);
    scribe.end(RunEnd::Completed);
    Scenario { name: "probe-failing", records: scribe.records, plan }
}

/// The open loop carries far less than the closed loop promises for one candidate.
fn agreement_failing() -> Scenario {
    let mut shape = Shape::whole();
    shape.cores = vec![1];
    shape.repeat = [(1, 2), (3, 6)];
    shape.shares = vec![0.45, 0.75, 0.97, 1.05];
    shape.window_s = 10;
    let plan = capacity(&shape);
    let mut scribe = Scribe::new(&plan);
    scribe.begin(environment(false, "0-11"));
    scribe.prepare(true, None, None);
    phases(&mut scribe, &|candidate, _, reading| {
        if candidate == "php-fpm"
            && let Some((rate, wait)) = &mut reading.open
            && *rate > 700.0
        {
            *wait = 14.0;
        }
    });
    scribe.end(RunEnd::Completed);
    Scenario { name: "agreement-failing", records: scribe.records, plan }
}

/// The database's image can't be built: nothing can be measured.
fn environment_failing() -> Scenario {
    let plan = capacity(&Shape::smoke());
    let mut scribe = Scribe::new(&plan);
    scribe.begin(environment(true, "0-1"));
    let failure = Failure {
        what: "the image of the database can't be built: Step 2/5 failed".to_owned(),
        why: "apt-get could not reach its mirror".to_owned(),
        next: "exp doctor".to_owned(),
        log: vec!["Err:1 bookworm InRelease".to_owned(), "  Temporary failure resolving 'deb.debian.org'".to_owned()],
    };
    let database = scribe.step(|kind| matches!(kind, plan::StepKind::PrepareDatabase));
    scribe.finish(database, 9_000, journal::StepEnd::Failed(failure.clone()));
    scribe.end(RunEnd::Failed(failure));
    Scenario { name: "environment-failing", records: scribe.records, plan }
}
