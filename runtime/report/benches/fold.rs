//! How long it takes to make a report of a long journal, and how much memory: `cargo bench -p report`.
//!
//! 1,000,000 events, of which 2,000 are measured repetitions of 100 cells; the bar is 5 s with flat memory, that is
//! memory that grows with the repetitions and not with the events.

use std::time::Instant;

#[expect(dead_code, reason = "the bench needs a plan, facts and a place; the tests need the rest")]
#[path = "../tests/suite/support/mod.rs"]
mod support;

use journal::{Event, JOURNAL_VERSION, Record, RepetitionId, RunEnd, RunId};
use plan::StepId;
use report::{Fold, render};
use support::facts::{Reading, load};
use support::plans::{Shape, capacity};
use support::scribe::environment;

const EVENTS: u64 = 1_000_000;
const REPETITIONS: u64 = 2_000;

fn main() {
    let mut shape = Shape::whole();
    // 2 candidates × 2 core counts × 25 pools.
    shape.pools = (1..=25).map(|pool| pool * 4).collect();
    shape.repeat = [(20, 40), (6, 12)];
    let plan = capacity(&shape);
    let cells = plan.phase("pool-sweep").map_or(0, |phase| phase.cells.len() as u64);
    let before = memory_kib();
    let started = Instant::now();
    let mut fold = Fold::default();
    let mut folded = 0u64;
    let mut take = |event: Event| {
        fold.take(&Record { seq: folded, at_ns: 1_796_047_920_000_000_000 + folded * 1_000_000, event });
        folded += 1;
    };
    take(Event::RunStarted {
        journal: JOURNAL_VERSION.to_owned(),
        run: RunId("bench".to_owned()),
        study: plan.study.clone(),
        plan: plan.hash(),
        environment: environment(false, "0-11"),
    });
    let progress = (EVENTS - 2 - 2 * REPETITIONS) / REPETITIONS;
    for index in 0..REPETITIONS {
        let cell = (index % cells) as u32;
        let repetition = RepetitionId { phase: "pool-sweep".to_owned(), cell, number: (index / cells) as u32 + 1 };
        let hash = judge::cell_hash(&plan, "pool-sweep", cell).expect("a cell of the plan").clone();
        let levels: std::collections::BTreeMap<String, String> = plan.phases[1]
            .axes
            .iter()
            .zip(&plan.phases[1].cells[cell as usize].levels)
            .map(|(axis, level)| (axis.factor.clone(), level.to_string()))
            .collect();
        take(Event::RepetitionStarted { repetition: repetition.clone(), hash, levels: levels.clone() });
        for done in 0..progress {
            take(Event::StepProgress { step: StepId(0), what: "working".to_owned(), done, of: progress });
        }
        let reading = Reading {
            rate: 4_000.0 - (index % 7) as f64,
            cpu_us: 220.0,
            database_us: 66.0,
            window_s: 20,
            cpus: vec![0],
            all_cpus: (0..12).collect(),
            quiet: 0.97,
            open: None,
            probe: None,
            failed: 0,
            memory: 41 << 20,
            start_ns: index * 30_000_000_000,
        };
        take(Event::RepetitionMeasured { repetition, facts: Box::new(load(&reading, levels)) });
    }
    take(Event::RunEnded { end: RunEnd::Completed });
    let fold_s = started.elapsed().as_secs_f64();
    let report = fold.report(&plan);
    let report_s = started.elapsed().as_secs_f64();
    let bytes = render::markdown(&report).len()
        + render::json(&report).to_string().len()
        + render::csv(&report).iter().map(|(_, text)| text.len()).sum::<usize>();
    println!("{folded} events, {} repetitions", report.repetitions.len());
    println!("folded in {fold_s:.2} s (making the events included), judged and built in {:.2} s", report_s - fold_s);
    println!("rendered {bytes} bytes in {:.2} s", started.elapsed().as_secs_f64() - report_s);
    println!("all: {:.2} s; memory grew by {} MiB", started.elapsed().as_secs_f64(), (memory_kib() - before) / 1_024);
}

/// Largest resident memory of this process so far, KiB; 0 where /proc doesn't tell.
fn memory_kib() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("VmHWM"))?.to_owned();
            line.split_whitespace().nth(1)?.parse().ok()
        })
        .unwrap_or(0)
}
