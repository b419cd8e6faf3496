//! A study on a bench of four CPUs, and the facts of a clean repetition: what the drills spoil.

use std::collections::BTreeMap;

use journal::{
    CaseOutcome, Census, CounterReading, Counters, CpuTimes, Environment, Event, Failure, GeneratorFacts, Histogram,
    HostFacts, LoadFacts, PaceFacts, PgbenchFacts, ProbeFacts, ReceiveFacts, Record, RepetitionFacts, RepetitionId,
    RowFacts, RunEnd, RunId, StartFacts, StreamFacts, ThreadFacts, WindowFacts,
};
use judge::{Evidence, Figure, Judgement, Outcome, judge};
use plan::{
    Agreement, Arrivals, Axis, Candidate, Cell, CellDatabase, Choice, Condition, ContentHash, ContractCase, Database,
    Estimate, Estimator, Expect, Gate, Level, LoadProcedure, Machine, Metric, MetricRef, Order, PLAN_VERSION,
    PgbenchProcedure, Phase, Plan, Procedure, Rate, Ready, Repeat, ReportItem, ReportPlan, Request, SqlFile,
    StartProcedure, Stream, Text, Workload,
};

pub const WINDOW_NS: u64 = 20_000_000_000;
pub const QUIET_NS: u64 = 17_000;
pub const SLOWED_NS: u64 = 28_000;
pub const CONNECTIONS: u32 = 64;

pub fn metric(phase: &str, metric: Metric) -> MetricRef {
    MetricRef { phase: phase.to_owned(), metric }
}

fn request(method: &str) -> Request {
    Request {
        method: method.to_owned(),
        path: Text::literal("/events"),
        headers: Vec::new(),
        bearer: None,
        body: None,
        content_type: None,
        accept_gzip: false,
    }
}

fn stream(name: &str, creates: Option<&str>) -> Stream {
    Stream {
        name: name.to_owned(),
        share: 0.5,
        rate: None,
        request: request(if creates.is_some() { "POST" } else { "GET" }),
        parameters: Vec::new(),
        expect: Expect::default(),
        creates_row_in: creates.map(str::to_owned),
    }
}

fn candidate(name: &str) -> Candidate {
    Candidate {
        name: name.to_owned(),
        label: name.to_owned(),
        image: None,
        process: None,
        port: 8080,
        tls: None,
        memory_bytes: None,
        open_files: 1024,
        env: Vec::new(),
        ready: Ready { path: "/healthz".to_owned(), within_ns: 1_000_000_000 },
    }
}

/// Every combination of the axes' levels as cells.
pub fn cells(phase: &str, axes: &[Axis]) -> Vec<Cell> {
    let mut combinations: Vec<Vec<Level>> = vec![Vec::new()];
    for axis in axes {
        combinations = combinations
            .into_iter()
            .flat_map(|levels| axis.levels.iter().map(move |level| [levels.clone(), vec![level.clone()]].concat()))
            .collect();
    }
    combinations.into_iter().map(|levels| Cell { hash: ContentHash::of(&(phase, &levels)), levels }).collect()
}

pub fn words(factor: &str, levels: &[&str]) -> Axis {
    Axis { factor: factor.to_owned(), levels: levels.iter().map(|level| Level::Word((*level).to_owned())).collect() }
}

pub fn integers(factor: &str, levels: &[i64]) -> Axis {
    Axis { factor: factor.to_owned(), levels: levels.iter().copied().map(Level::Integer).collect() }
}

pub fn phase(name: &str, axes: Vec<Axis>, rate: Option<Rate>, valid: u32, at_most: u32) -> Phase {
    Phase {
        name: name.to_owned(),
        procedure: Procedure::Load(LoadProcedure {
            workload: "mixed".to_owned(),
            rate,
            course: Vec::new(),
            arrivals: Arrivals::default(),
            keep_alive: true,
            connections: CONNECTIONS,
            connections_of: None,
            window_ns: WINDOW_NS,
            warm_up_ns: 0,
            timeout_ns: 1_000_000_000,
            with: plan::Tool::Exp,
            travel: plan::Travel::default(),
        }),
        cells: cells(name, &axes),
        axes,
        with: Vec::new(),
        repeat: Repeat { valid, at_most, order: Order::Blocks },
        slots: Vec::new(),
        gates: Vec::new(),
        carried: Vec::new(),
        estimates: Vec::new(),
        choose: None,
        relevant_lower_bound: false,
        demand: None,
        reads: Vec::new(),
    }
}

/// Every gate that needs no other phase, with its default thresholds.
pub fn gates() -> Vec<Gate> {
    vec![
        Gate::Census,
        Gate::Counters,
        Gate::Rows,
        Gate::ServiceDemand { rise: 0.06 },
        Gate::Saturation { drop: 0.05 },
        Gate::Pace { quiet_share: 0.9 },
        Gate::Steal { max: 0.01 },
        Gate::GeneratorBottleneck { busy: Gate::GENERATOR_BUSY, receive_queue: Gate::RECEIVE_QUEUE },
        Gate::LittlesLaw { tolerance: 0.02 },
        Gate::Mix { tolerance: 0.01 },
        Gate::Clock,
        Gate::UtilisationLaw { tolerance: 0.02 },
    ]
}

/// One phase `ceiling`, one candidate, one cell.
pub fn one_cell(valid: u32, at_most: u32) -> Plan {
    let mut ceiling =
        phase("ceiling", vec![words("candidate", &["go"]), integers("cores", &[1])], None, valid, at_most);
    ceiling.gates = gates();
    ceiling.estimates = vec![Estimate { metric: Metric::Throughput, by: Estimator::BestOfValid }];
    plan_of(vec![ceiling])
}

/// A plan of these phases.
pub fn plan_of(phases: Vec<Phase>) -> Plan {
    Plan {
        version: PLAN_VERSION,
        study: "bench".to_owned(),
        title: "A bench".to_owned(),
        question: "What does it carry?".to_owned(),
        root: ".".to_owned(),
        machine: Machine {
            name: "four".to_owned(),
            chosen: "named".to_owned(),
            candidate: "0-1".parse().expect("a set"),
            database: "2".parse().expect("a set"),
            load: "3".parse().expect("a set"),
            generators: Vec::new(),
            sharing_accepted: false,
        },
        profile: None,
        seed: 1,
        inputs: Vec::new(),
        secrets: Vec::new(),
        credentials: Vec::new(),
        database: Some(Database {
            name: "events".to_owned(),
            image: None,
            memory_bytes: None,
            settings: Vec::new(),
            template: Vec::new(),
            holds: Vec::new(),
            each_cell: CellDatabase::default(),
            template_hash: ContentHash::of_bytes(b"template"),
        }),
        probe: None,
        candidates: vec![candidate("go"), candidate("php")],
        contract: vec![ContractCase {
            name: "no token".to_owned(),
            request: request("GET"),
            expect: Expect::default(),
            creates_row_in: None,
        }],
        workloads: vec![Workload {
            name: "mixed".to_owned(),
            streams: vec![stream("read", None), stream("write", Some("events"))],
        }],
        phases,
        agreements: Vec::new(),
        report: ReportPlan::default(),
        budget_ns: None,
        limits: Vec::new(),
        steps: Vec::new(),
    }
}

/// A pool sweep, a ceiling that uses its choice and is probed, fixed rates from the ceiling; two agreements; a table.
pub fn capacity() -> Plan {
    let candidates = || words("candidate", &["go"]);
    let mut sweep =
        phase("sweep", vec![candidates(), integers("cores", &[1]), integers("pool", &[8, 16, 32])], None, 1, 3);
    sweep.gates = gates();
    sweep.choose = Some(Choice {
        factor: "pool".to_owned(),
        maximising: Metric::Throughput,
        for_each: vec!["candidate".to_owned(), "cores".to_owned()],
    });
    let with = vec![plan::phase::Chosen { factor: "pool".to_owned(), from: "sweep".to_owned() }];
    let mut ceiling = phase("ceiling", vec![candidates(), integers("cores", &[1])], None, 6, 9);
    ceiling.with = with.clone();
    ceiling.gates = gates();
    ceiling.gates.push(Gate::GeneratorProbe { at: 1.15, of: metric("sweep", Metric::Throughput) });
    ceiling.estimates = vec![Estimate { metric: Metric::Throughput, by: Estimator::BestOfValid }];
    let shares =
        [0.3, 0.6, 0.9, 1.05].map(|share| Level::ShareOf { share, of: metric("ceiling", Metric::Throughput) }).to_vec();
    let mut rates = phase(
        "rates",
        vec![candidates(), integers("cores", &[1]), Axis { factor: "rate".to_owned(), levels: shares }],
        Some(Rate::Factor("rate".to_owned())),
        5,
        8,
    );
    rates.with = with;
    rates.gates = vec![
        Gate::Census,
        Gate::Counters,
        Gate::SendLag { p99_ns: 1_000_000 },
        Gate::Stalls { over_ns: 10_000_000, budget: 0.2, quantile: 0.99 },
    ];
    rates.carried = vec![
        Condition {
            metric: Metric::Achieved,
            comparison: plan::phase::Comparison::GreaterOrEqual,
            value: 0.99,
            written: "achieved >= 99%".to_owned(),
        },
        Condition {
            metric: Metric::CorrectedP99,
            comparison: plan::phase::Comparison::Less,
            value: 10.0,
            written: "corrected.p99 < 10ms".to_owned(),
        },
    ];
    rates.estimates = vec![Estimate { metric: Metric::Carried, by: Estimator::Majority }];
    rates.relevant_lower_bound = true;
    let mut plan = plan_of(vec![sweep, ceiling, rates]);
    let agreement =
        |name: &str, left, right, within| Agreement { name: name.to_owned(), left, right, within, not_checked: None };
    plan.agreements = vec![
        agreement("two-phases", metric("ceiling", Metric::Throughput), metric("sweep", Metric::Throughput), 0.05),
        agreement("two-loops", metric("ceiling", Metric::Throughput), metric("rates", Metric::Carried), 0.15),
    ];
    plan.report.items = vec![ReportItem::Table {
        title: "Ceiling".to_owned(),
        of: metric("ceiling", Metric::Throughput),
        rows: "candidate".to_owned(),
        columns: Some("cores".to_owned()),
    }];
    plan.candidates.truncate(1);
    plan
}

/// pgbench alone.
pub fn pgbench() -> Plan {
    let mut alone = phase("database", Vec::new(), None, 3, 5);
    alone.procedure = Procedure::Pgbench(PgbenchProcedure {
        script: SqlFile { path: "insert.sql".to_owned(), text: "SELECT 1;".to_owned() },
        clients: 8,
        jobs: 2,
        window_ns: WINDOW_NS,
        rate: None,
        latency_limit_ns: None,
    });
    alone.gates = vec![
        Gate::Census,
        Gate::Counters,
        Gate::Rows,
        Gate::Clock,
        Gate::Steal { max: 0.01 },
        Gate::Pace { quiet_share: 0.9 },
    ];
    alone.estimates = vec![Estimate { metric: Metric::Tps, by: Estimator::Best }];
    plan_of(vec![alone])
}

fn counters(demand_ns: u64, cpus: u32) -> Counters {
    let reading =
        |at_ns, cpu_ns| Some(CounterReading { at_ns, cpu_ns, throttled_periods: None, memory_bytes: Some(10 << 20) });
    Counters {
        source: "cgroup v2".to_owned(),
        start: reading(1_000_000_000, 5_000_000),
        end: reading(1_000_000_000 + WINDOW_NS, 5_000_000 + demand_ns),
        memory_peak_bytes: Some(30 << 20),
        memory: None,
        cpus,
    }
}

fn samples(quiet_share: f64) -> Histogram {
    let quiet = (4_000.0 * quiet_share) as usize;
    Histogram::of((0..4_000).map(|index| if index < quiet { QUIET_NS } else { SLOWED_NS }))
}

/// A clean window of a closed loop at this rate, on one core, with this CPU per request.
pub fn closed(rate: f64, demand_us: f64) -> RepetitionFacts {
    let seconds = WINDOW_NS as f64 / 1e9;
    let each = (rate * seconds / 2.0).round() as u64;
    let cpu_ns = (2.0 * each as f64 * demand_us * 1e3) as u64;
    let latency = (f64::from(CONNECTIONS) / rate * 1e9) as u64;
    let stream = |name: &str| StreamFacts {
        name: name.to_owned(),
        census: Census { sent: each, carried_in: 32, ok: each, carried_out: 32, ..Census::default() },
        acknowledged: each + 1_000,
        service: Histogram {
            count: each,
            sum_ns: u128::from(each) * u128::from(latency),
            min_ns: latency,
            max_ns: latency,
            buckets: vec![(Histogram::index(latency), each)],
        },
        ttfb: Histogram {
            count: each,
            sum_ns: u128::from(each) * u128::from(latency),
            min_ns: latency,
            max_ns: latency,
            buckets: vec![(Histogram::index(latency), each)],
        },
        ..StreamFacts::default()
    };
    let ticks = WINDOW_NS / 10_000_000;
    let busy = |share: f64| CpuTimes {
        busy: (ticks as f64 * share) as u64,
        idle: ticks - (ticks as f64 * share) as u64,
        steal: 0,
    };
    RepetitionFacts {
        window: WindowFacts {
            start_ns: 1_000_000_000,
            end_ns: 1_000_000_000 + WINDOW_NS,
            wall_start_ns: 7_000_000_000,
            wall_end_ns: 7_000_000_000 + WINDOW_NS,
            boot_start_ns: 3_000_000_000,
            boot_end_ns: 3_000_000_000 + WINDOW_NS,
            declared_ns: WINDOW_NS,
        },
        levels: BTreeMap::new(),
        load: Some(LoadFacts {
            connections: CONNECTIONS,
            connections_used: CONNECTIONS,
            streams: vec![stream("read"), stream("write")],
            generator: GeneratorFacts {
                cpu_ns: Some(WINDOW_NS / 3),
                threads: 1,
                by_thread: vec![ThreadFacts {
                    cpu: Some(3),
                    cpu_ns: Some(WINDOW_NS / 3),
                    polling_ns: 0,
                    involuntary_switches: Some(2),
                }],
                receive: Some(ReceiveFacts {
                    connections: 4,
                    queue: Histogram::of([latency / 50; 100]),
                    service: Histogram::of([latency; 100]),
                }),
                ..GeneratorFacts::default()
            },
            ..LoadFacts::default()
        }),
        pgbench: None,
        candidate: Some(counters(cpu_ns, 1)),
        database: Some(counters(cpu_ns / 4, 1)),
        host: HostFacts {
            cpus: [(0, busy(0.98)), (1, busy(0.01)), (2, busy(0.5)), (3, busy(0.4))].into(),
            ..HostFacts::default()
        },
        pace: [
            (0, PaceFacts { samples: samples(0.97), stalls: Vec::new() }),
            (1, PaceFacts { samples: samples(0.97), stalls: Vec::new() }),
        ]
        .into(),
        rows: Some(RowFacts { table: "events".to_owned(), before: 1_000_000, after: 1_000_000 + each + 1_000 }),
        postgres: None,
        start: None,
        probe: Some(ProbeFacts { target: rate * 1.3, achieved: rate * 1.3, errors: 0, window_ns: 10_000_000_000 }),
        findings: Vec::new(),
    }
}

/// A clean window of an open loop at this rate, with this corrected latency.
pub fn open(rate: f64, corrected_ns: u64) -> RepetitionFacts {
    let mut facts = closed(rate, 50.0);
    let load = facts.load.as_mut().expect("a load");
    load.rate = Some(rate);
    for stream in &mut load.streams {
        let each = stream.census.ok;
        stream.census = Census { due: each, sent: each, ok: each, ..Census::default() };
        let all_at = |ns: u64| Histogram {
            count: each,
            sum_ns: u128::from(each) * u128::from(ns),
            min_ns: ns,
            max_ns: ns,
            buckets: vec![(Histogram::index(ns), each)],
        };
        stream.service = all_at(1_000_000);
        stream.corrected = Some(all_at(corrected_ns));
        stream.send_lag = Some(all_at(1_000));
    }
    facts
}

/// A clean pgbench window.
pub fn pgbench_facts(tps: f64) -> RepetitionFacts {
    let mut facts = closed(1_000.0, 50.0);
    facts.load = None;
    facts.candidate = None;
    facts.rows = None;
    facts.probe = None;
    facts.pace = [(2, PaceFacts { samples: samples(0.97), stalls: Vec::new() })].into();
    facts.pgbench = Some(PgbenchFacts {
        transactions: (tps * 20.0) as u64,
        failed: 0,
        tps,
        latency_ms: 8.0 / tps * 1e3,
        latency_stddev_ms: None,
        ..PgbenchFacts::default()
    });
    facts
}

/// Starts of a candidate, ten of which are wanted.
pub fn starts() -> Plan {
    let mut starts = phase("cold", vec![words("candidate", &["go"]), integers("cores", &[1])], None, 10, 12);
    starts.procedure = Procedure::Start(StartProcedure { window_ns: WINDOW_NS });
    starts.gates = vec![Gate::Counters, Gate::Clock, Gate::Pace { quiet_share: 0.9 }, Gate::Steal { max: 0.01 }];
    starts.estimates = vec![Estimate { metric: Metric::StartTime, by: Estimator::Median }];
    plan_of(vec![starts])
}

/// A clean start that took this long and this much CPU time.
pub fn started(took_ns: u64, cpu_ns: u64) -> RepetitionFacts {
    let mut facts = closed(1_000.0, 50.0);
    facts.load = None;
    facts.rows = None;
    facts.probe = None;
    let asked_ns = facts.window.start_ns + 2_000_000;
    facts.start = Some(StartFacts {
        asked_ns,
        not_ready_ns: Some(asked_ns + took_ns - 1_000_000),
        ready_ns: asked_ns + took_ns,
        looks: 40,
        cpu_ns: Some(cpu_ns),
    });
    facts
}

/// Slows CPU 0 for the rest of the window: its samples, and with them the CPU per request.
pub fn slow(facts: &mut RepetitionFacts, quiet_share: f64) {
    let pace = 1.0 / (quiet_share + (1.0 - quiet_share) * SLOWED_NS as f64 / QUIET_NS as f64);
    facts.pace.insert(0, PaceFacts { samples: samples(quiet_share), stalls: Vec::new() });
    let load = facts.load.as_mut().expect("a load");
    let mut written = 0;
    for stream in &mut load.streams {
        let ok = (stream.census.ok as f64 * pace) as u64;
        stream.census = Census { sent: ok, ok, ..Census::default() };
        let latency = (stream.service.max_ns as f64 / pace) as u64;
        stream.service = Histogram {
            count: ok,
            sum_ns: u128::from(ok) * u128::from(latency),
            min_ns: latency,
            max_ns: latency,
            buckets: vec![(Histogram::index(latency), ok)],
        };
        stream.acknowledged = ok;
        written = ok;
    }
    if let Some(rows) = &mut facts.rows {
        rows.after = rows.before + written;
    }
}

/// A run in the making: events as the engine writes them.
pub struct Run {
    pub plan: Plan,
    pub records: Vec<Record>,
}

impl Run {
    pub fn new(plan: Plan) -> Self {
        let mut run = Self { records: Vec::new(), plan };
        run.push(Event::RunStarted {
            journal: "1.0".to_owned(),
            run: RunId("r".to_owned()),
            study: run.plan.study.clone(),
            plan: run.plan.hash(),
            environment: Environment { cpu: "one".to_owned(), ..Environment::default() },
        });
        for candidate in run.plan.candidates.clone() {
            run.push(Event::ContractChecked {
                candidate: candidate.name,
                cases: vec![CaseOutcome { case: "no token".to_owned(), problem: None }],
            });
        }
        run
    }

    pub fn push(&mut self, event: Event) {
        let seq = self.records.len() as u64;
        self.records.push(Record { seq, at_ns: seq, event });
    }

    pub fn start(&mut self, phase: &str, cell: u32, levels: &[(&str, &str)]) -> RepetitionId {
        let hash = judge::cell_hash(&self.plan, phase, cell).expect("a cell").clone();
        self.start_as(phase, cell, levels, hash)
    }

    pub fn start_as(&mut self, phase: &str, cell: u32, levels: &[(&str, &str)], hash: ContentHash) -> RepetitionId {
        let number = self.evidence().next_number(phase, cell);
        let repetition = RepetitionId { phase: phase.to_owned(), cell, number };
        let levels = levels.iter().map(|(factor, level)| ((*factor).to_owned(), (*level).to_owned())).collect();
        self.push(Event::RepetitionStarted { repetition: repetition.clone(), hash, levels });
        repetition
    }

    /// A repetition with these facts.
    pub fn measure(&mut self, phase: &str, cell: u32, facts: RepetitionFacts) {
        let repetition = self.start(phase, cell, &[]);
        self.push(Event::RepetitionMeasured { repetition, facts: Box::new(facts) });
    }

    /// A repetition that could not be measured.
    pub fn fail(&mut self, phase: &str, cell: u32, what: &str) {
        let repetition = self.start(phase, cell, &[]);
        let failure = Failure { what: what.to_owned(), ..Failure::default() };
        self.push(Event::RepetitionFailed { repetition, failure });
    }

    pub fn end(&mut self) {
        self.push(Event::RunEnded { end: RunEnd::Completed });
    }

    pub fn evidence(&self) -> Evidence {
        let mut evidence = Evidence::new();
        for record in &self.records {
            evidence.take(record);
        }
        evidence
    }

    pub fn judge(&self) -> Judgement {
        judge(&self.plan, &self.evidence())
    }
}

pub fn figure<'a>(judgement: &'a Judgement, phase: &str, metric: Metric) -> &'a Figure {
    judgement
        .figures
        .iter()
        .find(|figure| figure.phase == phase && figure.metric == metric)
        .unwrap_or_else(|| panic!("no {phase}.{}", metric.name()))
}

pub fn why(figure: &Figure) -> &str {
    match &figure.outcome {
        Outcome::NotDetermined { why } => why,
        Outcome::Determined { value, .. } => panic!("{} is determined: {value}", figure.name),
    }
}

pub fn close(figure: &Figure, expected: f64) {
    let value = figure.value().unwrap_or_else(|| panic!("{figure:?}"));
    assert!((value / expected - 1.0).abs() < 1e-3, "{}: {value} is not {expected}", figure.name);
}

/// A run of `one_cell` with closed windows of these rates at 50 µs.
pub fn run_of(plan: Plan, rates: &[f64]) -> Run {
    let mut run = Run::new(plan);
    for &rate in rates {
        run.measure("ceiling", 0, closed(rate, 50.0));
    }
    run.end();
    run
}

/// A run of `capacity` whose sweep showed these windows at pools of 8, 16 and 32.
pub fn swept(pools: [RepetitionFacts; 3]) -> Run {
    let mut run = Run::new(capacity());
    for (cell, facts) in (0u32..).zip(pools) {
        run.measure("sweep", cell, facts);
    }
    run
}

/// A whole run of `capacity`: ceiling 19,000/s, and at each of the four rates five windows of which so many carried it.
pub fn whole(carried: [usize; 4], void_at: Option<usize>) -> Run {
    let mut run = swept([closed(15_000.0, 50.0), closed(19_000.0, 50.0), closed(17_000.0, 50.0)]);
    for _ in 0..6 {
        run.measure("ceiling", 0, closed(19_000.0, 50.0));
    }
    for (cell, yes) in carried.into_iter().enumerate() {
        for window in 0..5 {
            let rate = [0.3, 0.6, 0.9, 1.05][cell] * 19_000.0;
            let mut facts = open(rate, if window < yes { 3_000_000 } else { 40_000_000 });
            if void_at == Some(cell) {
                facts.load.as_mut().expect("a load").generator.stalls =
                    vec![journal::Stall { at_ns: 0, for_ns: 900_000_000 }];
            }
            run.measure("rates", cell as u32, facts);
        }
    }
    run.end();
    run
}
