//! The gates on the rows of a published study: what they would have voided, and what they would have kept.

use std::collections::BTreeMap;

use journal::{Counters, RepetitionFacts};
use judge::{JudgedRepetition, Judgement, Outcome, VerdictKind};
use plan::{Agreement, Estimate, Estimator, Gate, Metric, Plan};

use crate::bench::{Run, closed, metric, phase, plan_of, words};

const CEILING: &str = include_str!("../../../stats/tests/data/capacity/ceiling.csv");
const TUNE: &str = include_str!("../../../stats/tests/data/capacity/tune.csv");
const CONTENDED: &str = include_str!("../../../stats/tests/data/capacity/contended.csv");

/// A row: cell, repetition, answers in 20 s, CPU time of the application in µs.
struct Row {
    cell: String,
    rep: u32,
    reads: u64,
    writes: u64,
    cpu_us: u64,
}

fn rows(text: &str) -> Vec<Row> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    lines
        .map(|line| header.iter().copied().zip(line.split(',')).collect::<BTreeMap<&str, &str>>())
        .filter(|row| row.get("phase").is_none_or(|phase| *phase == "ceiling"))
        .map(|row| {
            let number = |name: &str| row[name].parse::<u64>().unwrap_or_else(|_| panic!("{name}: {}", row[name]));
            Row {
                cell: format!("{}-{}", row["candidate"], row["cores"]),
                rep: number("rep") as u32,
                reads: number("read_ok"),
                writes: number("write_ok"),
                // The sweep recorded no CPU time; its phase has no gate that needs one.
                cpu_us: if row.contains_key("app_cpu_us") { number("app_cpu_us") } else { 1_000_000 },
            }
        })
        .collect()
}

/// The facts that such a row holds, all else as in a clean window.
fn facts(row: &Row) -> RepetitionFacts {
    let mut facts = closed(1_000.0, 50.0);
    let load = facts.load.as_mut().expect("a load");
    for (stream, ok) in load.streams.iter_mut().zip([row.reads, row.writes]) {
        stream.census.ok = ok;
        stream.census.sent = ok;
        stream.census.carried_in = 0;
        stream.census.carried_out = 0;
    }
    let Some(Counters { start: Some(start), end: Some(end), .. }) = &mut facts.candidate else {
        panic!("counters");
    };
    end.cpu_ns = start.cpu_ns + row.cpu_us * 1_000;
    facts
}

const CELLS: [&str; 9] =
    ["go-1", "go-2", "go-4", "fpm-1", "fpm-2", "fpm-4", "frankenphp-1", "frankenphp-2", "frankenphp-4"];

fn study() -> Plan {
    let mut ceiling = phase("ceiling", vec![words("system", &CELLS)], None, 2, 9);
    ceiling.gates = vec![Gate::Census, Gate::ServiceDemand { rise: 0.06 }, Gate::Saturation { drop: 0.05 }];
    ceiling.estimates = vec![Estimate { metric: Metric::Throughput, by: Estimator::BestOfValid }];
    let mut plan = plan_of(vec![ceiling]);
    plan.contract.clear();
    plan
}

/// Judges rows; those that count as bad are the contended ones and the first of FrankenPHP on two cores.
fn judged(rows: &[(bool, Row)]) -> (Judgement, Vec<(bool, JudgedRepetition)>) {
    let mut run = Run::new(study());
    for (_, row) in rows {
        let cell = CELLS.iter().position(|cell| *cell == row.cell).expect("a cell");
        run.measure("ceiling", cell as u32, facts(row));
    }
    run.end();
    let judgement = run.judge();
    let marked = rows.iter().map(|(bad, _)| *bad).zip(judgement.repetitions.clone()).collect();
    (judgement, marked)
}

fn all(contended: impl Fn(&Row) -> bool) -> Vec<(bool, Row)> {
    let clean = rows(CEILING).into_iter().map(|row| (row.cell == "frankenphp-2" && row.rep == 1, row));
    clean.chain(rows(CONTENDED).into_iter().filter(|row| contended(row)).map(|row| (true, row))).collect()
}

#[test]
fn demand_and_saturation_void_every_bad_row_and_no_good_one() {
    // The first two contended repetitions of each cell, and all that there are.
    for (contended, bad_rows) in [(2, 19), (3, 22)] {
        let (_, marked) = judged(&all(|row| row.rep <= contended));
        let caught = marked.iter().filter(|(bad, repetition)| *bad && !repetition.is_valid()).count();
        let alarms = marked.iter().filter(|(bad, repetition)| !*bad && !repetition.is_valid()).count();
        let bad = marked.iter().filter(|(bad, _)| *bad).count();
        assert_eq!((caught, bad, alarms, marked.len() - bad), (bad_rows, bad_rows, 0, 44));
        for (_, repetition) in marked.iter().filter(|(bad, _)| *bad) {
            let failed: Vec<&str> = repetition.failed_gates().map(|gate| gate.gate.as_str()).collect();
            assert!(failed.iter().all(|gate| matches!(*gate, "service-demand" | "saturation")), "{failed:?}");
        }
    }
}

#[test]
fn the_kept_repetition_is_void_and_the_ceiling_stays() {
    let (judgement, marked) = judged(&all(|_| false));
    let void: Vec<&JudgedRepetition> =
        marked.iter().map(|(_, repetition)| repetition).filter(|repetition| !repetition.is_valid()).collect();
    assert_eq!(void.len(), 1);
    assert_eq!((void[0].id.cell, void[0].id.number), (7, 1));
    assert_eq!(void[0].failed_gates().map(|gate| gate.gate.as_str()).collect::<Vec<_>>(), ["saturation"]);
    let ceilings: Vec<f64> = judgement
        .figures
        .iter()
        .filter(|figure| figure.metric == Metric::Throughput)
        .map(|figure| figure.value().expect("determined").trunc())
        .collect();
    assert_eq!(ceilings, [16_883.0, 29_449.0, 57_321.0, 6_218.0, 11_211.0, 20_606.0, 6_544.0, 14_306.0, 25_659.0]);
}

/// Where every row of a cell is contended these gates have no clean base: of nine cells they leave one. The other phase, measured on
/// another occasion, is what refuses it.
#[test]
fn a_run_that_is_contended_throughout_is_refused_by_the_agreement() {
    let mut plan = study();
    let mut sweep = phase("sweep", vec![words("system", &CELLS)], None, 8, 8);
    sweep.gates = vec![Gate::Census];
    sweep.estimates = vec![Estimate { metric: Metric::Throughput, by: Estimator::Best }];
    plan.phases.insert(0, sweep);
    let determined = |plan: Plan| {
        let mut run = Run::new(plan);
        let contended = rows(CONTENDED).into_iter().filter(|row| row.rep <= 2).map(|row| ("ceiling", row));
        for (phase, row) in rows(TUNE).into_iter().map(|row| ("sweep", row)).chain(contended) {
            let cell = CELLS.iter().position(|cell| *cell == row.cell).expect("a cell");
            run.measure(phase, cell as u32, facts(&row));
        }
        run.end();
        let judgement = run.judge();
        let cells: Vec<(String, f64)> = judgement
            .figures
            .iter()
            .filter(|figure| figure.phase == "ceiling" && figure.metric == Metric::Throughput)
            .filter_map(|figure| Some((figure.cell[0].1.clone(), figure.value()?.trunc())))
            .collect();
        (cells, judgement)
    };
    assert_eq!(determined(plan.clone()).0, [("frankenphp-2".to_owned(), 3_501.0)]);
    plan.agreements = vec![Agreement {
        name: "two-phases".to_owned(),
        left: metric("ceiling", Metric::Throughput),
        right: metric("sweep", Metric::Throughput),
        within: 0.05,
        not_checked: None,
    }];
    let (cells, judgement) = determined(plan);
    assert_eq!(cells, []);
    assert_eq!(judgement.verdict.kind, VerdictKind::Void);
    let refused = judgement.figures.iter().find(|figure| matches!(&figure.outcome, Outcome::NotDetermined { why } if why.starts_with("withheld: two-phases: ceiling.throughput")));
    assert!(refused.is_some_and(|figure| figure.cell[0].1 == "frankenphp-2"), "{refused:?}");
}
