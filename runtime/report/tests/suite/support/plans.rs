//! Plans as a compiler would make them.

use plan::phase::{Chosen, Comparison};
use plan::report::ReportItem;
use plan::{
    Agreement, Arrivals, Axis, Candidate, Cell, CellDatabase, Choice, Condition, ContentHash, ContractCase, CpuSet,
    Database, Estimate, Estimator, Expect, Gate, Image, ImageSource, Level, Limit, LoadProcedure, Machine, Metric,
    MetricRef, Order, PLAN_VERSION, PgbenchProcedure, Phase, Plan, Probe, Procedure, Rate, Ready, Repeat, ReportPlan,
    Request, Slot, SqlFile, Step, StepId, StepKind, Stream, Table, Text, Workload,
};

/// What differs between the plans.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Machine and its CPUs: candidate, database, load.
    pub machine: (&'static str, &'static str, &'static str, &'static str),
    /// Profile.
    pub profile: Option<&'static str>,
    /// Candidates: name and label.
    pub candidates: Vec<(&'static str, &'static str)>,
    /// Levels of `cores`.
    pub cores: Vec<i64>,
    /// Levels of `pool`.
    pub pools: Vec<i64>,
    /// Valid and most repetitions of the sweep and of the ceiling.
    pub repeat: [(u32, u32); 2],
    /// Shares of the open loop; empty: the phase is left out.
    pub shares: Vec<f64>,
    /// Window, s.
    pub window_s: u64,
}

impl Shape {
    /// Two CPUs, of which database and load share one; short.
    pub fn smoke() -> Self {
        Self {
            machine: ("two-cores", "0", "1", "1"),
            profile: Some("smoke"),
            candidates: vec![
                ("go", "Go · net/http · pgx"),
                ("php-fpm", "PHP-FPM · nginx"),
                ("frankenphp", "FrankenPHP · worker mode"),
            ],
            cores: vec![1],
            pools: vec![8, 32],
            repeat: [(1, 2), (2, 4)],
            shares: Vec::new(),
            window_s: 3,
        }
    }

    /// Twelve CPUs, nothing shared; the whole study.
    pub fn whole() -> Self {
        Self {
            machine: ("workstation-12", "0-3", "4-7", "8-11"),
            profile: None,
            candidates: vec![("go", "Go · net/http · pgx"), ("php-fpm", "PHP-FPM · nginx")],
            cores: vec![1, 2],
            pools: vec![8, 16, 32],
            repeat: [(2, 4), (6, 12)],
            shares: Vec::new(),
            window_s: 20,
        }
    }
}

fn set(text: &str) -> CpuSet {
    text.parse().expect("a CPU set of the tests")
}

/// A plan of this shape.
pub fn capacity(shape: &Shape) -> Plan {
    let (name, candidate, database, load) = shape.machine;
    let shared = database == load;
    let mut plan = Plan {
        version: PLAN_VERSION,
        study: "capacity".to_owned(),
        title: "OAuth2 requests per core in front of PostgreSQL".to_owned(),
        question: "How much 50/50 read-write traffic does each candidate carry?".to_owned(),
        root: "experiments".to_owned(),
        machine: Machine {
            name: name.to_owned(),
            chosen: "the only one that fits".to_owned(),
            candidate: set(candidate),
            database: set(database),
            load: set(load),
            generators: Vec::new(),
            sharing_accepted: shared,
        },
        profile: shape.profile.map(str::to_owned),
        seed: 20_260_917,
        inputs: Vec::new(),
        secrets: Vec::new(),
        credentials: Vec::new(),
        database: Some(events()),
        probe: Some(Probe {
            name: "nginx".to_owned(),
            image: Some(image("candidates/probe")),
            process: None,
            port: 8_090,
            tls: None,
            env: Vec::new(),
            ready: ready("/"),
        }),
        candidates: shape
            .candidates
            .iter()
            .map(|(name, label)| Candidate {
                name: (*name).to_owned(),
                label: (*label).to_owned(),
                image: Some(image(&format!("candidates/{name}"))),
                process: None,
                port: 8_080,
                tls: None,
                memory_bytes: Some(1 << 30),
                open_files: 65_536,
                env: Vec::new(),
                ready: ready("/healthz"),
            })
            .collect(),
        contract: ["no token", "expired token", "wrong scope", "one row", "a write"]
            .iter()
            .map(|name| case(name))
            .collect(),
        workloads: vec![Workload { name: "mixed".to_owned(), streams: vec![stream("read"), stream("write")] }],
        phases: phases(shape),
        agreements: vec![Agreement {
            name: "two-phases".to_owned(),
            left: figure("ceiling", Metric::Throughput),
            right: figure("pool-sweep", Metric::Throughput),
            within: 0.05,
            not_checked: None,
        }],
        report: ReportPlan {
            items: items(shape),
            reproduce: format!(
                "exp run experiments/capacity.kdl --machine {name}{}",
                shape.profile.map_or_else(String::new, |profile| format!(" --profile {profile}"))
            ),
        },
        budget_ns: None,
        limits: Vec::new(),
        steps: Vec::new(),
    };
    if shape.shares.is_empty() {
        plan.agreements.push(Agreement {
            name: "two-loops".to_owned(),
            left: figure("ceiling", Metric::Throughput),
            right: figure("fixed-rates", Metric::Carried),
            within: 0.15,
            not_checked: Some("the profile leaves phase fixed-rates out".to_owned()),
        });
    } else {
        plan.agreements.push(Agreement {
            name: "two-loops".to_owned(),
            left: figure("ceiling", Metric::Throughput),
            right: figure("fixed-rates", Metric::Carried),
            within: 0.15,
            not_checked: None,
        });
    }
    if shared {
        plan.limits.push(Limit {
            name: "cpus-shared".to_owned(),
            text: "database and load share CPU 1: each takes time from the other".to_owned(),
            lowers_confidence: true,
        });
    }
    plan.steps = steps(&plan);
    plan
}

fn image(context: &str) -> Image {
    Image {
        source: ImageSource::Build {
            context: context.to_owned(),
            dockerfile: "Dockerfile".to_owned(),
            digest: "0".repeat(32),
        },
        hash: ContentHash::of_bytes(context.as_bytes()),
    }
}

fn ready(path: &str) -> Ready {
    Ready { path: path.to_owned(), within_ns: 15_000_000_000 }
}

fn events() -> Database {
    Database {
        name: "events".to_owned(),
        image: Some(image("candidates/postgres")),
        memory_bytes: Some(2 << 30),
        settings: vec![("max_connections".to_owned(), "200".to_owned())],
        template: vec![SqlFile { path: "sql/schema.sql".to_owned(), text: "create table events ();".to_owned() }],
        holds: vec![Table { table: "events".to_owned(), rows: 1_000_000 }],
        each_cell: CellDatabase {
            clone: true,
            prewarm: vec!["events".to_owned()],
            checkpoint: true,
            settle_writeback: true,
        },
        template_hash: ContentHash::of_bytes(b"template"),
    }
}

fn request(method: &str, path: &str) -> Request {
    Request {
        method: method.to_owned(),
        path: Text::literal(path),
        headers: Vec::new(),
        bearer: None,
        body: None,
        content_type: None,
        accept_gzip: false,
    }
}

fn case(name: &str) -> ContractCase {
    ContractCase {
        name: name.to_owned(),
        request: request("GET", "/events/1"),
        expect: Expect { status: vec![200], ..Expect::default() },
        creates_row_in: None,
    }
}

fn stream(name: &str) -> Stream {
    Stream {
        name: name.to_owned(),
        share: 0.5,
        rate: None,
        request: if name == "read" { request("GET", "/events/1") } else { request("POST", "/events") },
        parameters: Vec::new(),
        expect: Expect { status: vec![200, 201], ..Expect::default() },
        creates_row_in: (name == "write").then(|| "events".to_owned()),
    }
}

/// A figure's name.
pub fn figure(phase: &str, metric: Metric) -> MetricRef {
    MetricRef { phase: phase.to_owned(), metric }
}

fn axis(factor: &str, levels: Vec<Level>) -> Axis {
    Axis { factor: factor.to_owned(), levels }
}

fn product(axes: &[Axis]) -> Vec<Vec<Level>> {
    axes.iter().fold(vec![Vec::new()], |rows, axis| {
        rows.iter()
            .flat_map(|row| {
                axis.levels.iter().map(move |level| {
                    let mut longer = row.clone();
                    longer.push(level.clone());
                    longer
                })
            })
            .collect()
    })
}

struct Draft {
    name: &'static str,
    procedure: Procedure,
    axes: Vec<Axis>,
    repeat: (u32, u32),
    gates: Vec<Gate>,
    estimates: Vec<(Metric, Estimator)>,
    reads: Vec<&'static str>,
}

fn phase(draft: Draft) -> Phase {
    let cells: Vec<Cell> = product(&draft.axes)
        .into_iter()
        .map(|levels| Cell { hash: ContentHash::of(&(draft.name, &levels)), levels })
        .collect();
    let (valid, at_most) = draft.repeat;
    let slots = (0..valid)
        .flat_map(|block| {
            // A fixed rotation stands for the compiler's seeded shuffle.
            (0..cells.len() as u32).map(move |index| (block, index))
        })
        .map(|(block, index)| Slot { block, cell: (index + block) % cells.len() as u32 })
        .collect();
    Phase {
        name: draft.name.to_owned(),
        procedure: draft.procedure,
        axes: draft.axes,
        with: Vec::new(),
        cells,
        repeat: Repeat { valid, at_most, order: Order::Blocks },
        slots,
        gates: draft.gates,
        carried: Vec::new(),
        estimates: draft.estimates.into_iter().map(|(metric, by)| Estimate { metric, by }).collect(),
        choose: None,
        relevant_lower_bound: false,
        demand: None,
        reads: draft.reads.into_iter().map(str::to_owned).collect(),
    }
}

fn phases(shape: &Shape) -> Vec<Phase> {
    let second = 1_000_000_000;
    let candidates =
        axis("candidate", shape.candidates.iter().map(|(name, _)| Level::Word((*name).to_owned())).collect());
    let cores = axis("cores", shape.cores.iter().map(|&cores| Level::Integer(cores)).collect());
    let pools = axis("pool", shape.pools.iter().map(|&pool| Level::Integer(pool)).collect());
    let closed = Procedure::Load(LoadProcedure {
        workload: "mixed".to_owned(),
        rate: None,
        course: Vec::new(),
        arrivals: Arrivals::default(),
        keep_alive: true,
        connections: 64,
        connections_of: None,
        window_ns: shape.window_s * second,
        warm_up_ns: if shape.window_s > 5 { 10 * second } else { second },
        timeout_ns: 10 * second,
        with: plan::Tool::Exp,
        travel: plan::Travel::default(),
    });
    let saturation = vec![
        Gate::Census,
        Gate::Counters,
        Gate::Rows,
        Gate::Clock,
        Gate::ServiceDemand { rise: 0.06 },
        Gate::Saturation { drop: 0.05 },
        Gate::Pace { quiet_share: 0.9 },
        Gate::Steal { max: 0.01 },
        Gate::LittlesLaw { tolerance: 0.02 },
        Gate::Mix { tolerance: 0.01 },
        Gate::UtilisationLaw { tolerance: 0.02 },
    ];
    let estimates = vec![
        (Metric::Throughput, Estimator::BestOfValid),
        (Metric::CpuPerRequest, Estimator::Median),
        (Metric::PacedCpuPerRequest, Estimator::Median),
        (Metric::CoresUsed, Estimator::Median),
    ];
    let database = phase(Draft {
        name: "database-ceiling",
        procedure: Procedure::Pgbench(PgbenchProcedure {
            script: SqlFile { path: "sql/insert.sql".to_owned(), text: "insert into events values ();".to_owned() },
            clients: 64,
            jobs: 8,
            window_ns: 5 * second,
            rate: None,
            latency_limit_ns: None,
        }),
        axes: Vec::new(),
        repeat: if shape.window_s > 5 { (3, 6) } else { (1, 2) },
        gates: vec![Gate::Counters, Gate::Clock],
        estimates: vec![(Metric::Tps, Estimator::Best)],
        reads: Vec::new(),
    });
    let mut sweep = phase(Draft {
        name: "pool-sweep",
        procedure: closed.clone(),
        axes: vec![candidates.clone(), cores.clone(), pools],
        repeat: shape.repeat[0],
        gates: saturation.clone(),
        estimates: estimates.clone(),
        reads: Vec::new(),
    });
    sweep.choose = Some(Choice {
        factor: "pool".to_owned(),
        maximising: Metric::Throughput,
        for_each: vec!["candidate".to_owned(), "cores".to_owned()],
    });
    let chosen = vec![Chosen { factor: "pool".to_owned(), from: "pool-sweep".to_owned() }];
    let mut gates = saturation.clone();
    gates.insert(1, Gate::GeneratorProbe { at: 1.15, of: figure("pool-sweep", Metric::Throughput) });
    let mut ceiling = phase(Draft {
        name: "ceiling",
        procedure: closed,
        axes: vec![candidates.clone(), cores.clone()],
        repeat: shape.repeat[1],
        gates,
        estimates,
        reads: vec!["pool-sweep"],
    });
    ceiling.with.clone_from(&chosen);
    let mut phases = vec![database, sweep, ceiling];
    if !shape.shares.is_empty() {
        let rates = axis(
            "rate",
            shape
                .shares
                .iter()
                .map(|&share| Level::ShareOf { share, of: figure("ceiling", Metric::Throughput) })
                .collect(),
        );
        let mut fixed = phase(Draft {
            name: "fixed-rates",
            procedure: Procedure::Load(LoadProcedure {
                workload: "mixed".to_owned(),
                rate: Some(Rate::Factor("rate".to_owned())),
                course: Vec::new(),
                arrivals: Arrivals::default(),
                keep_alive: true,
                connections: 256,
                connections_of: None,
                window_ns: shape.window_s * second,
                warm_up_ns: second,
                timeout_ns: 10 * second,
                with: plan::Tool::Exp,
                travel: plan::Travel::default(),
            }),
            axes: vec![candidates, cores, rates],
            repeat: (3, 6),
            gates: vec![Gate::Census, Gate::Counters, Gate::Rows, Gate::Clock, Gate::Pace { quiet_share: 0.9 }],
            estimates: vec![(Metric::Carried, Estimator::Majority)],
            reads: vec!["pool-sweep", "ceiling"],
        });
        fixed.with = chosen;
        fixed.relevant_lower_bound = true;
        fixed.carried = vec![
            Condition {
                metric: Metric::Achieved,
                comparison: Comparison::GreaterOrEqual,
                value: 0.99,
                written: "achieved >= 99%".to_owned(),
            },
            Condition {
                metric: Metric::CorrectedP99,
                comparison: Comparison::Less,
                value: 10.0,
                written: "corrected.p99 < 10ms".to_owned(),
            },
        ];
        phases.push(fixed);
    }
    phases
}

fn items(shape: &Shape) -> Vec<ReportItem> {
    let table = |title: &str, of: MetricRef, columns: Option<&str>| ReportItem::Table {
        title: title.to_owned(),
        of,
        rows: "candidate".to_owned(),
        columns: columns.map(str::to_owned),
    };
    let mut items = vec![
        table("Saturation ceiling", figure("ceiling", Metric::Throughput), Some("cores")),
        table("CPU per request", figure("ceiling", Metric::CpuPerRequest), Some("cores")),
        table("Cores used at saturation", figure("ceiling", Metric::CoresUsed), Some("cores")),
        table("Pool chosen, cost of the worst", figure("pool-sweep", Metric::Choice), Some("cores")),
        table("What the database does meanwhile", figure("ceiling", Metric::Database), None),
        ReportItem::LineChart {
            title: "Memory over the window".to_owned(),
            of: MetricRef { phase: "ceiling".to_owned(), metric: Metric::Memory },
            by: "candidate".to_owned(),
            group: Some("cores".to_owned()),
        },
        ReportItem::BarChart {
            title: "Saturation ceiling, every repetition".to_owned(),
            of: figure("ceiling", Metric::Throughput),
            by: "candidate".to_owned(),
            group: Some("cores".to_owned()),
        },
        ReportItem::CapacityPlan {
            of: "ceiling".to_owned(),
            cores: shape.cores.last().copied().unwrap_or(1),
            targets: vec![10_000.0, 20_000.0, 50_000.0],
            not_possible: None,
        },
    ];
    if !shape.shares.is_empty() {
        items.insert(1, table("Rate carried", figure("fixed-rates", Metric::Carried), Some("cores")));
    }
    items
}

fn steps(plan: &Plan) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut add = |kind: StepKind, needs: Vec<StepId>| {
        let id = StepId(steps.len() as u32);
        steps.push(Step { id, hash: ContentHash::of(&(&kind, &needs)), kind, needs });
        id
    };
    let images: Vec<StepId> = plan
        .candidates
        .iter()
        .map(|candidate| add(StepKind::PrepareCandidate { candidate: candidate.name.clone() }, Vec::new()))
        .collect();
    let database = add(StepKind::PrepareDatabase, Vec::new());
    let probe = add(StepKind::PrepareProbe, Vec::new());
    let started = add(StepKind::StartDatabase, vec![database]);
    let template = add(StepKind::MakeTemplate, vec![started]);
    let contracts: Vec<StepId> = plan
        .candidates
        .iter()
        .zip(&images)
        .map(|(candidate, &image)| {
            add(StepKind::VerifyContract { candidate: candidate.name.clone() }, vec![image, template])
        })
        .collect();
    let mut estimates: Vec<(String, StepId)> = Vec::new();
    for phase in &plan.phases {
        let mut cells = Vec::new();
        for (index, cell) in phase.cells.iter().enumerate() {
            let mut needs = vec![template, probe];
            if let Some(axis) = phase.axes.iter().position(|axis| axis.factor == "candidate") {
                let name = cell.levels[axis].to_string();
                needs.extend(
                    plan.candidates.iter().position(|candidate| candidate.name == name).map(|index| contracts[index]),
                );
            }
            needs.extend(estimates.iter().filter(|(name, _)| phase.reads.contains(name)).map(|(_, id)| *id));
            cells.push(add(StepKind::MeasureCell { phase: phase.name.clone(), cell: index as u32 }, needs));
        }
        let estimate = add(StepKind::Estimate { phase: phase.name.clone() }, cells);
        estimates.push((phase.name.clone(), estimate));
    }
    let mut last: Vec<StepId> = estimates.iter().map(|(_, id)| *id).collect();
    for agreement in &plan.agreements {
        let needs = estimates
            .iter()
            .filter(|(name, _)| *name == agreement.left.phase || *name == agreement.right.phase)
            .map(|(_, id)| *id)
            .collect();
        last.push(add(StepKind::Agree { agreement: agreement.name.clone() }, needs));
    }
    add(StepKind::Report, last);
    steps
}
