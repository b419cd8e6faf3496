//! Lowering of procedures: the load that a candidate gets, pgbench, or a candidate's start.

use plan::{Arrivals, Leg, LoadProcedure, PgbenchProcedure, Procedure, Protocol, Rate, StartProcedure, Tool, Travel};

use super::course;
use super::phase::{Around, count, own};
use super::subject::sql_file;
use crate::codes;
use crate::names;
use crate::problems::{Problems, problem};
use crate::resolve::Item;
use crate::value::units::as_duration;
use crate::value::{Value, Valued};

/// The procedure of a phase. `None` where it has none that can be lowered, which is reported.
pub fn procedure(item: &Item, around: &Around<'_>, problems: &mut Problems) -> Option<Procedure> {
    let mut found = PROCEDURES.iter().filter_map(|kind| item.child(kind));
    let Some(node) = found.next() else {
        if !item.broken && !item.key.is_empty() {
            problems.push(
                problem(&codes::MEASURES_NOTHING, &item.name_at, format!("phase `{}` measures nothing", item.key))
                    .help(
                        "write `load …`, `pgbench …` or `start`, or amend a definition that has one: `like=saturation`",
                    ),
            );
        }
        return None;
    };
    if let Some(second) = found.next() {
        problems.push(
            problem(
                &codes::MEASURES_NOTHING,
                &second.name_at,
                format!("phase `{}` has two procedures, `{}` and `{}`", item.key, node.kind(), second.kind()),
            )
            .also(node.name_at.clone(), "the other one")
            .help("a phase measures by one procedure: write a second phase"),
        );
        return None;
    }
    // A search has no rates to plan with: the lint `non-monotone-search` refuses it, whatever its level.
    if item.child("search").is_some() {
        return None;
    }
    match node.kind() {
        "load" => lower_load(item, node, around, problems).map(Procedure::Load),
        "pgbench" => lower_pgbench(node, around, problems).map(Procedure::Pgbench),
        _ => Some(Procedure::Start(lower_start(node, problems))),
    }
}

/// The children of a phase that say how it measures.
const PROCEDURES: [&str; 3] = ["load", "pgbench", "start"];

fn lower_start(item: &Item, problems: &mut Problems) -> StartProcedure {
    let window_ns = item.duration("for").unwrap_or(5_000_000_000).unsigned_abs();
    if let Some(valued) = item.setting("for").filter(|valued| matches!(valued.value, Value::Duration(0))) {
        problems.push(problem(&codes::OUT_OF_RANGE, &valued.at, "a window of no time measures nothing"));
    }
    StartProcedure { window_ns }
}

fn lower_load(item: &Item, load: &Item, around: &Around<'_>, problems: &mut Problems) -> Option<LoadProcedure> {
    let open = load.args.first().and_then(Valued::text) == Some("open");
    let written_rate = load.setting("rate");
    let rate = match written_rate.map(|valued| &valued.value) {
        Some(Value::Rate(rate)) => Some(Rate::PerSecond(*rate)),
        Some(Value::Reference { name, .. }) => Some(Rate::Factor(name.clone())),
        _ => None,
    };
    let workload = workload(item, load, around, problems)?;
    let course = course::legs(load, problems);
    let own = course::own_rates(around.study, &workload);
    let sources = course::Sources { open, rate: written_rate, legs: course::nodes(load), own: &own };
    course::check_sources(item, load, &sources, problems);
    let rate = match (open, rate, course.is_empty()) {
        (false, ..) => None,
        (true, _, false) => Some(Rate::PerSecond(Leg::mean(&course))),
        (true, None, true) if !own.is_empty() => Some(Rate::PerSecond(own.iter().map(|(_, rate, _)| rate).sum())),
        (true, rate, true) => rate,
    };
    let arrivals = match load.text("arrivals") {
        Some("poisson") => Arrivals::Poisson,
        _ => Arrivals::Constant,
    };
    if let Some(valued) = load.setting("arrivals").filter(|_| !open && !load.broken && !load.args.is_empty()) {
        problems.push(
            problem(
                &codes::CONTRADICTION,
                &valued.at,
                "a closed loop has no `arrivals` of its own: its requests follow the answers",
            )
            .help("remove `arrivals`, or write `load open`"),
        );
    }
    Some(LoadProcedure {
        workload,
        rate,
        window_ns: course::window(item, load, &course, problems),
        course: if open { course } else { Vec::new() },
        arrivals,
        connections: count(load.integer("connections"), 1),
        connections_of: match load.setting("connections").map(|valued| &valued.value) {
            Some(Value::Reference { name, .. }) => Some(name.clone()),
            _ => None,
        },
        keep_alive: load.text("keep-alive") != Some("off"),
        warm_up_ns: load.duration("warm-up").unwrap_or(10_000_000_000).unsigned_abs(),
        timeout_ns: load.duration("timeout").unwrap_or(10_000_000_000).unsigned_abs(),
        with: load.text("with").and_then(Tool::from_name).unwrap_or_default(),
        travel: travel(load, problems),
    })
}

/// The workload that a load sends. `None` where there is none, which is reported.
fn workload(item: &Item, load: &Item, around: &Around<'_>, problems: &mut Problems) -> Option<String> {
    let mut workloads = around.study.names("workload");
    match (load.text("workload"), workloads.next(), workloads.next()) {
        (Some(name), _, _) => Some(name.to_owned()),
        (None, Some(only), None) => Some(only.to_owned()),
        (None, None, _) => {
            if !load.broken && !around.study.wounded {
                problems.push(
                    problem(
                        &codes::MISSING,
                        own(item, load),
                        format!("phase `{}` has no traffic: the study has no workload", item.key),
                    )
                    .help("write a `workload` with a `stream`"),
                );
            }
            None
        }
        (None, Some(_), Some(_)) => {
            let all = names::listed(around.study.names("workload"));
            problems.push(
                problem(
                    &codes::MISSING,
                    own(item, load),
                    format!("phase `{}` does not say which traffic it sends", item.key),
                )
                .help(format!("write `workload=` in `load`; there is {all}")),
            );
            None
        }
    }
}

/// How the requests of a load travel.
fn travel(load: &Item, problems: &mut Problems) -> Travel {
    let protocol = if load.text("protocol") == Some("http2") { Protocol::Http2 } else { Protocol::Http1 };
    let in_flight = count(load.integer("in-flight"), 1);
    if protocol == Protocol::Http1
        && in_flight > 1
        && let Some(valued) = load.setting("in-flight")
    {
        let message = format!("HTTP/1.1 has one request at a time on a connection, and this asks for {in_flight}");
        problems.push(
            problem(&codes::CONTRADICTION, &valued.at, message).help("write `protocol=http2`, or remove `in-flight`"),
        );
    }
    let proxy = load.text("proxy").map(str::to_owned);
    if let (Some(proxy), Some(valued)) = (&proxy, load.setting("proxy"))
        && !proxy.parse::<std::net::SocketAddr>().is_ok_and(|address| address.port() > 0)
    {
        let message = format!("`{proxy}` is not the address and port of a proxy");
        problems.push(problem(&codes::MALFORMED, &valued.at, message).help("write it as \"127.0.0.1:3128\""));
    }
    let travel = Travel { protocol, in_flight, proxy };
    if let Some(valued) = load.setting("keep-alive").filter(|valued| valued.text() == Some("off"))
        && !travel.is_plain()
    {
        let message = "`keep-alive=off` is for HTTP/1.1 straight to the candidate only";
        problems
            .push(problem(&codes::CONTRADICTION, &valued.at, message).help("leave it out, or `protocol` and `proxy`"));
    }
    let tool = load.text("with").and_then(Tool::from_name).unwrap_or_default();
    if !tool.is_own()
        && !travel.is_plain()
        && let Some(valued) = load.setting("with")
    {
        problems.push(
            problem(
                &codes::CONTRADICTION,
                &valued.at,
                format!("`{}` is run for plain HTTP/1.1 straight to the candidate only", tool.name()),
            )
            .help("leave `with` out, or `protocol`, `in-flight` and `proxy`"),
        );
    }
    travel
}

fn lower_pgbench(item: &Item, around: &Around<'_>, problems: &mut Problems) -> Option<PgbenchProcedure> {
    if around.study.only("database").is_none() {
        if !around.study.wounded {
            problems.push(
                problem(&codes::CANNOT_RUN, &item.name_at, "`pgbench` needs a database, and the study has none")
                    .help("write `database NAME { image …; template { … } }`"),
            );
        }
        return None;
    }
    let window_ns = item.duration("for").unwrap_or(0).unsigned_abs();
    let whole = window_ns > 0 && window_ns.is_multiple_of(1_000_000_000);
    if let Some(valued) = item.setting("for").filter(|valued| !whole && !valued.is_unknown()) {
        let written = as_duration(i64::try_from(window_ns).unwrap_or(i64::MAX));
        let message = format!("pgbench counts whole seconds, at least one, and this is {written}");
        problems.push(problem(&codes::OUT_OF_RANGE, &valued.at, message));
    }
    let (clients, jobs) = (count(item.integer("clients"), 64), count(item.integer("jobs"), 4));
    if jobs > clients
        && let Some(valued) = item.setting("jobs")
    {
        let message = format!("pgbench has more threads ({jobs}) than clients ({clients})");
        problems.push(problem(&codes::CONTRADICTION, &valued.at, message).help("lower `jobs`"));
    }
    let rate = match item.setting("rate").map(|valued| &valued.value) {
        Some(Value::Rate(rate)) => Some(*rate),
        Some(Value::Reference { .. }) => {
            if let Some(valued) = item.setting("rate") {
                problems.push(
                    problem(&codes::CONTRADICTION, &valued.at, "pgbench takes a rate of its own, no factor's level")
                        .help("write the rate, such as `rate=\"500/s\"`, and a phase for each"),
                );
            }
            None
        }
        _ => None,
    };
    let latency_limit_ns = item.duration("latency-limit").map(i64::unsigned_abs).filter(|ns| *ns > 0);
    if let (Some(valued), None) = (item.setting("latency-limit"), item.setting("rate")) {
        let message = "`latency-limit` skips transactions of a schedule, and there is no `rate`";
        problems.push(problem(&codes::CONTRADICTION, &valued.at, message).help("write `rate=` too, or remove it"));
    }
    Some(PgbenchProcedure {
        script: sql_file(item.setting("script"), around.root)?,
        clients,
        jobs,
        window_ns,
        rate,
        latency_limit_ns,
    })
}
