//! Lowering of phases: procedures, axes, gates, estimates, choices. Cells follow in `cells`, once every phase is known.

use plan::phase::Chosen;
use plan::{
    Axis, Choice, Condition, Estimate, Estimator, Gate, Level, LoadProcedure, Metric, MetricRef, Order,
    PgbenchProcedure, Phase, Procedure, Rate, Repeat,
};

use super::subject::sql_file;
use super::workload::place;
use syntax::Location;

use crate::check::machine::Chosen as ChosenMachine;
use crate::check::references::inside;
use crate::codes;
use crate::names;
use crate::problems::{Problems, problem};
use crate::resolve::{Item, Study};
use crate::value::units::as_duration;
use crate::value::{Value, Valued};

/// What phases are lowered against.
pub struct Around<'a> {
    /// The study.
    pub study: &'a Study,
    /// The machine, if one could be chosen.
    pub machine: Option<&'a ChosenMachine<'a>>,
    /// The plan's root.
    pub root: &'a str,
    /// Whether the study has a probe.
    pub has_probe: bool,
}

/// Where to report a problem of `node`: on the node itself, or on the phase where the node came from a definition.
fn own<'a>(item: &'a Item, node: &'a Item) -> &'a Location {
    if inside(&item.at, &node.name_at) { &node.name_at } else { &item.name_at }
}

/// The phases that a phase reads, in the order of its text, each once.
pub fn reads(item: &Item) -> Vec<(&str, &Valued)> {
    let mut reads: Vec<(&str, &Valued)> = Vec::new();
    let mut add = |name, valued| {
        if !reads.iter().any(|(known, _)| *known == name) {
            reads.push((name, valued));
        }
    };
    for child in &item.children {
        for (_, valued) in &child.settings {
            match &valued.value {
                Value::Figure { phase, .. } => add(phase.as_str(), valued),
                Value::Reference { kind: crate::schema::Kind::Phase, name } => add(name.as_str(), valued),
                _ => {}
            }
        }
    }
    reads
}

/// A figure of a setting.
pub fn figure(valued: Option<&Valued>) -> Option<MetricRef> {
    match valued.map(|valued| &valued.value) {
        Some(Value::Figure { phase, metric }) => Some(MetricRef { phase: phase.clone(), metric: *metric }),
        _ => None,
    }
}

/// Lowers a phase, without its cells. `None` where it measures nothing.
pub fn phase(item: &Item, around: &Around<'_>, problems: &mut Problems) -> Option<Phase> {
    let procedure = procedure(item, around, problems)?;
    let axes = axes(item, &procedure, around, problems);
    let with: Vec<Chosen> = item
        .each("with")
        .filter_map(|with| {
            Some(Chosen { factor: with.key.clone(), from: with.text("from").filter(|_| !with.broken)?.to_owned() })
        })
        .collect();
    for chosen in &with {
        if axes.iter().any(|axis| axis.factor == chosen.factor)
            && let Some(with) = item.keyed("with", &chosen.factor)
        {
            let message =
                format!("phase `{}` both varies `{}` and takes it from `{}`", item.key, chosen.factor, chosen.from);
            problems.push(problem(&codes::CONTRADICTION, &with.name_at, message).help("keep one of them"));
        }
    }
    let mut phase = Phase {
        name: item.key.clone(),
        procedure,
        axes,
        with,
        cells: Vec::new(),
        repeat: repeat(item, problems),
        slots: Vec::new(),
        gates: item.each("gate").filter_map(|gate| lower_gate(gate, around, problems)).collect(),
        carried: carried(item),
        estimates: Vec::new(),
        choose: None,
        relevant_lower_bound: item.child("publish").is_some(),
        reads: reads(item).into_iter().map(|(name, _)| name.to_owned()).collect(),
    };
    loops(item, &phase, problems);
    phase.estimates = item.each("estimate").filter_map(estimate).collect();
    phase.choose = choose(item, &phase, around, problems);
    Some(phase)
}

fn procedure(item: &Item, around: &Around<'_>, problems: &mut Problems) -> Option<Procedure> {
    match (item.child("load"), item.child("pgbench")) {
        (Some(load), Some(pgbench)) => {
            problems.push(
                problem(
                    &codes::MEASURES_NOTHING,
                    &pgbench.name_at,
                    format!("phase `{}` has two procedures, `load` and `pgbench`", item.key),
                )
                .also(load.name_at.clone(), "the other one")
                .help("a phase measures by one procedure: write a second phase"),
            );
            None
        }
        (Some(load), None) => lower_load(item, load, around, problems).map(Procedure::Load),
        (None, Some(pgbench)) => lower_pgbench(pgbench, around, problems).map(Procedure::Pgbench),
        (None, None) => {
            if !item.broken && !item.key.is_empty() {
                problems.push(
                    problem(&codes::MEASURES_NOTHING, &item.name_at, format!("phase `{}` measures nothing", item.key))
                        .help("write `load …` or `pgbench …`, or amend a definition that has one: `like=saturation`"),
                );
            }
            None
        }
    }
}

fn count(value: Option<i64>, default: u32) -> u32 {
    value.and_then(|value| u32::try_from(value).ok()).unwrap_or(default)
}

fn lower_load(item: &Item, load: &Item, around: &Around<'_>, problems: &mut Problems) -> Option<LoadProcedure> {
    let open = load.args.first().and_then(Valued::text) == Some("open");
    let written_rate = load.setting("rate");
    let rate = match written_rate.map(|valued| &valued.value) {
        Some(Value::Rate(rate)) => Some(Rate::PerSecond(*rate)),
        Some(Value::Reference { name, .. }) => Some(Rate::Factor(name.clone())),
        _ => None,
    };
    match (open, written_rate) {
        (false, Some(valued)) if !load.broken && !load.args.is_empty() => {
            problems.push(
                problem(
                    &codes::CONTRADICTION,
                    &valued.at,
                    "a closed loop has no rate: its requests follow the answers",
                )
                .help("remove `rate`, or write `load open`"),
            );
        }
        (true, None) if !load.broken => {
            problems.push(
                problem(
                    &codes::CONTRADICTION,
                    &load.name_at,
                    format!("the open loop of phase `{}` has no rate", item.key),
                )
                .help("write `rate=\"500/s\"`, or `rate=\"${rate}\"` with a factor"),
            );
        }
        _ => {}
    }
    let mut workloads = around.study.names("workload");
    let workload = match (load.text("workload"), workloads.next(), workloads.next()) {
        (Some(name), _, _) => name.to_owned(),
        (None, Some(only), None) => only.to_owned(),
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
            return None;
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
            return None;
        }
    };
    let window_ns = load.duration("for").unwrap_or(0).unsigned_abs();
    if let Some(valued) = load.setting("for").filter(|valued| matches!(valued.value, Value::Duration(0))) {
        problems.push(problem(&codes::OUT_OF_RANGE, &valued.at, "a window of no time measures nothing"));
    }
    Some(LoadProcedure {
        workload,
        rate: if open { rate } else { None },
        connections: count(load.integer("connections"), 1),
        window_ns,
        warm_up_ns: load.duration("warm-up").unwrap_or(10_000_000_000).unsigned_abs(),
        timeout_ns: load.duration("timeout").unwrap_or(10_000_000_000).unsigned_abs(),
    })
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
    if let Some(valued) = item.setting("for").filter(|_| window_ns % 1_000_000_000 != 0 || window_ns == 0) {
        if !valued.is_unknown() {
            let written = as_duration(i64::try_from(window_ns).unwrap_or(i64::MAX));
            let message = format!("pgbench counts whole seconds, at least one, and this is {written}");
            problems.push(problem(&codes::OUT_OF_RANGE, &valued.at, message));
        }
    }
    let (clients, jobs) = (count(item.integer("clients"), 64), count(item.integer("jobs"), 4));
    if jobs > clients
        && let Some(valued) = item.setting("jobs")
    {
        let message = format!("pgbench has more threads ({jobs}) than clients ({clients})");
        problems.push(problem(&codes::CONTRADICTION, &valued.at, message).help("lower `jobs`"));
    }
    Some(PgbenchProcedure { script: sql_file(item.setting("script"), around.root)?, clients, jobs, window_ns })
}

fn axes(item: &Item, procedure: &Procedure, around: &Around<'_>, problems: &mut Problems) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    let over = item.child("over");
    if let (Procedure::Pgbench(_), Some(over)) = (procedure, over) {
        problems.push(
            problem(
                &codes::CONTRADICTION,
                &over.name_at,
                format!("phase `{}` measures the database alone, so no factor varies it", item.key),
            )
            .help("remove `over`"),
        );
        return axes;
    }
    for valued in over.map(|over| over.args.as_slice()).unwrap_or_default() {
        let Some(factor) = valued.text() else { continue };
        if axes.iter().any(|axis| axis.factor == factor) {
            let message = format!("phase `{}` varies `{factor}` twice", item.key);
            problems.push(problem(&codes::LEVEL_TWICE, &valued.at, message));
            continue;
        }
        let before = problems.len();
        let levels: Vec<Level> = if factor == "candidate" {
            around.study.names("candidate").map(|name| Level::Word(name.to_owned())).collect()
        } else {
            match item.keyed("factor", factor).or_else(|| around.study.find("factor", factor)) {
                Some(node) => levels(node, around, problems),
                None => continue,
            }
        };
        let told = problems.len() > before;
        let restricted = restrict(factor, levels.clone(), around);
        // `only` that leaves nothing names levels that the factor lacks, which is told where it is written.
        let emptied = restricted.is_empty() && !levels.is_empty();
        let levels = restricted;
        if levels.is_empty() && !around.study.wounded && !told && !emptied {
            let broken = around.study.each("candidate").chain(around.study.each("factor")).any(|item| item.broken);
            if !broken {
                let message = if factor == "candidate" {
                    format!("phase `{}` varies the candidates, and the study has none", item.key)
                } else {
                    format!("no level of `{factor}` is left for phase `{}`", item.key)
                };
                problems.push(problem(&codes::MEASURES_NOTHING, &valued.at, message));
            }
        }
        axes.push(Axis { factor: factor.to_owned(), levels });
    }
    let has_candidate = axes.iter().any(|axis| axis.factor == "candidate");
    if matches!(procedure, Procedure::Load(_)) && !has_candidate && !item.broken {
        let at = over.map_or(&item.name_at, |over| &over.name_at);
        problems.push(
            problem(&codes::MEASURES_NOTHING, at, format!("phase `{}` puts load on no candidate", item.key))
                .help("write `over candidate …`"),
        );
    }
    axes
}

/// The levels of a factor, checked among themselves.
pub fn levels(node: &Item, around: &Around<'_>, problems: &mut Problems) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    let of = figure(node.setting("of"));
    let mut kinds: Vec<(&'static str, &Valued)> = Vec::new();
    for valued in node.args.iter().skip(1) {
        let (level, kind) = match &valued.value {
            Value::Integer(number) => (Level::Integer(*number), "a whole number"),
            Value::Text(word) => (Level::Word(word.clone()), "a word"),
            Value::Rate(rate) => (Level::PerSecond(*rate), "a rate"),
            Value::Ratio(share) => match &of {
                Some(of) => (Level::ShareOf { share: *share, of: of.clone() }, "a share"),
                None => {
                    if node.setting("of").is_none() && kinds.iter().all(|(kind, _)| *kind != "a share") {
                        let message = format!("the level {} of `{}` is a share of nothing", valued.written, node.key);
                        problems.push(
                            problem(&codes::MISSING, &valued.at, message).help("say of what: `of=ceiling.throughput`"),
                        );
                    }
                    kinds.push(("a share", valued));
                    continue;
                }
            },
            _ => continue,
        };
        if let Some((first, _)) = kinds.first()
            && *first != kind
        {
            let message = format!(
                "the levels of `{}` are of different types: {} is {first}, {} is {kind}",
                node.key, kinds[0].1.written, valued.written
            );
            problems.push(problem(&codes::MIXED_LEVELS, &valued.at, message).also(kinds[0].1.at.clone(), *first));
            return levels;
        }
        kinds.push((kind, valued));
        if levels.contains(&level) {
            let message = format!("the factor `{}` has the level {} twice", node.key, valued.written);
            problems.push(problem(&codes::LEVEL_TWICE, &valued.at, message));
            continue;
        }
        if node.key == "cores" {
            let Level::Integer(cores) = level else {
                let message = format!("`cores` counts CPUs, and {} is {kind}", valued.written);
                problems.push(problem(&codes::WRONG_TYPE, &valued.at, message));
                continue;
            };
            if cores < 1 {
                let message = format!("`cores` counts CPUs, and {cores} is below one");
                problems.push(problem(&codes::OUT_OF_RANGE, &valued.at, message));
                continue;
            }
        }
        levels.push(level);
    }
    if let (Some(valued), false) = (node.setting("of"), kinds.iter().any(|(kind, _)| *kind == "a share"))
        && !node.broken
    {
        problems.push(
            problem(
                &codes::CONTRADICTION,
                &valued.at,
                format!("no level of `{}` is a share, so `of` changes nothing", node.key),
            )
            .help("write levels such as \"60%\", or remove `of`"),
        );
    }
    out_of_reach(node, &levels, around, problems);
    levels
}

/// Cores that the machine's candidate set does not have, unless `only` leaves them out.
fn out_of_reach(node: &Item, levels: &[Level], around: &Around<'_>, problems: &mut Problems) {
    let Some(machine) = around.machine else { return };
    if node.key != "cores" {
        return;
    }
    let has = machine.machine.candidate.len();
    let kept = restrict("cores", levels.to_vec(), around);
    for valued in node.args.iter().skip(1) {
        let Value::Integer(cores) = valued.value else { continue };
        let beyond = usize::try_from(cores).is_ok_and(|cores| cores > has);
        if beyond && kept.contains(&Level::Integer(cores)) && !machine.item.broken {
            problems.push(
                problem(
                    &codes::LEVEL_OUT_OF_REACH,
                    &valued.at,
                    format!(
                        "{cores} cores are out of reach: on machine `{}` the candidate has {has} ({})",
                        machine.machine.name, machine.machine.candidate
                    ),
                )
                .also(
                    machine.item.child("cpus").map_or(machine.item.name_at.clone(), |cpus| cpus.at.clone()),
                    "the machine's CPUs",
                )
                .help(format!("write `only cores …` in machine `{}`, or choose another machine", machine.machine.name)),
            );
        }
    }
}

/// The levels that the machine's `only` leaves.
fn restrict(factor: &str, levels: Vec<Level>, around: &Around<'_>) -> Vec<Level> {
    let Some(only) = around.machine.and_then(|machine| machine.item.keyed("only", factor)) else { return levels };
    let kept: Vec<Level> = only
        .args
        .iter()
        .skip(1)
        .filter_map(|valued| match &valued.value {
            Value::Integer(number) => Some(Level::Integer(*number)),
            Value::Text(word) => Some(Level::Word(word.clone())),
            Value::Rate(rate) => Some(Level::PerSecond(*rate)),
            _ => None,
        })
        .collect();
    levels.into_iter().filter(|level| kept.contains(level)).collect()
}

fn repeat(item: &Item, problems: &mut Problems) -> Repeat {
    let node = item.child("repeat");
    let valid = node
        .and_then(|node| match node.args.first().map(|valued| &valued.value) {
            Some(Value::Integer(valid)) => u32::try_from(*valid).ok(),
            _ => None,
        })
        .unwrap_or(1);
    let written = node.and_then(|node| node.integer("at-most"));
    let at_most = written.map_or(valid.saturating_mul(2), |most| count(Some(most), valid));
    if let (Some(node), true) = (node, at_most < valid) {
        let argument = node.args.first();
        let mut diagnostic = problem(
            &codes::AT_MOST_BELOW_VALID,
            &place(node, node.setting("at-most")),
            format!("phase `{}` wants {valid} valid repetitions and allows {at_most} at the most", item.key),
        )
        .help("raise `at-most`; a void repetition is measured again");
        if let Some(argument) = argument {
            diagnostic = diagnostic.also(argument.at.clone(), format!("{valid} valid ones"));
        }
        problems.push(diagnostic);
    }
    let order = match node.and_then(|node| node.text("order")) {
        Some("listed") => Order::Listed,
        _ => Order::Blocks,
    };
    Repeat { valid, at_most: at_most.max(valid), order }
}

/// The plan's gate. Defaults are the schema's own.
fn lower_gate(item: &Item, around: &Around<'_>, problems: &mut Problems) -> Option<Gate> {
    let variant = item.variant?;
    let ratio = |name: &str| {
        item.ratio(name).or_else(|| {
            let default = variant.settings.iter().find(|setting| setting.name == name)?.default?;
            crate::value::units::percent(default).ok()
        })
    };
    let duration = |name: &str| {
        let ns = item.duration(name).or_else(|| {
            let default = variant.settings.iter().find(|setting| setting.name == name)?.default?;
            crate::value::units::duration(default).ok()
        })?;
        Some(ns.unsigned_abs())
    };
    Some(match variant.name {
        "census" => Gate::Census,
        "counters" => Gate::Counters,
        "rows" => Gate::Rows,
        "generator-probe" => {
            if !around.has_probe && !around.study.wounded {
                problems.push(
                    problem(
                        &codes::CANNOT_RUN,
                        &item.name_at,
                        "`gate generator-probe` needs a probe, and the study has none",
                    )
                    .help("write `probe nginx { process builtin; listen 8090; ready GET=\"/\" within=\"10s\" }`"),
                );
            }
            Gate::GeneratorProbe { at: ratio("at")?, of: figure(item.setting("of"))? }
        }
        "service-demand" => Gate::ServiceDemand { rise: ratio("rise")? },
        "saturation" => Gate::Saturation { drop: ratio("drop")? },
        "pace" => Gate::Pace { quiet_share: ratio("quiet-share")? },
        "steal" => Gate::Steal { max: ratio("max")? },
        "stalls" => Gate::Stalls { over_ns: duration("over")?, budget: ratio("budget")?, quantile: ratio("quantile")? },
        "send-lag" => Gate::SendLag { p99_ns: duration("p99")? },
        "littles-law" => Gate::LittlesLaw { tolerance: ratio("tolerance")? },
        "mix" => Gate::Mix { tolerance: ratio("tolerance")? },
        "clock" => Gate::Clock,
        "utilisation-law" => Gate::UtilisationLaw { tolerance: ratio("tolerance")? },
        _ => return None,
    })
}

fn carried(item: &Item) -> Vec<Condition> {
    let Some(node) = item.child("carried") else { return Vec::new() };
    node.args
        .iter()
        .filter_map(|valued| match &valued.value {
            Value::Condition(condition) => Some(condition.clone()),
            _ => None,
        })
        .collect()
}

/// What belongs to one kind of loop and stands in the other.
fn loops(item: &Item, phase: &Phase, problems: &mut Problems) {
    let open = matches!(&phase.procedure, Procedure::Load(load) if load.rate.is_some());
    let is_load = matches!(&phase.procedure, Procedure::Load(_));
    let load_broken = item.child("load").is_some_and(|load| load.broken);
    if load_broken {
        return;
    }
    let mut refuse = |node: &Item, what: &str, needs: &str| {
        let message = format!("`{what}` needs {needs}, and phase `{}` has none", item.key);
        problems.push(problem(&codes::CONTRADICTION, own(item, node), message).help(format!("remove `{what}`")));
    };
    if !open {
        for node in item.each("carried").chain(item.each("publish")) {
            refuse(node, node.kind(), "an open loop");
        }
        if let Some(gate) = item.keyed("gate", "send-lag") {
            refuse(gate, "gate send-lag", "an open loop");
        }
    }
    let closed = is_load && !open;
    if !closed && let Some(gate) = item.keyed("gate", "littles-law") {
        refuse(gate, "gate littles-law", "a closed loop");
    }
    if !is_load && let Some(gate) = item.keyed("gate", "generator-probe") {
        refuse(gate, "gate generator-probe", "a load");
    }
    // A bound is a bound over rates, between those that were carried and those that were not.
    if open && let Some(publish) = item.child("publish") {
        if item.child("carried").is_none() {
            refuse(publish, "publish relevant-lower-bound", "conditions for a carried rate (`carried …`)");
        } else if super::figures::rate_factor(phase).is_none() && rate_is_known(item, phase) {
            refuse(publish, "publish relevant-lower-bound", "a factor of rates that it varies");
        }
    }
}

/// Whether the rate is a figure or a factor that exists; one that doesn't has its own diagnostic.
fn rate_is_known(item: &Item, phase: &Phase) -> bool {
    match &phase.procedure {
        Procedure::Load(LoadProcedure { rate: Some(Rate::Factor(factor)), .. }) => {
            item.keyed("factor", factor).is_some() || phase.with.iter().any(|chosen| chosen.factor == *factor)
        }
        _ => true,
    }
}

fn estimate(item: &Item) -> Option<Estimate> {
    let by = match item.text("by")? {
        "best" => Estimator::Best,
        "best-of-valid" => Estimator::BestOfValid,
        "mean" => Estimator::Mean,
        "majority" => Estimator::Majority,
        _ => Estimator::Median,
    };
    Some(Estimate { metric: Metric::from_name(&item.key)?, by })
}

fn choose(item: &Item, phase: &Phase, around: &Around<'_>, problems: &mut Problems) -> Option<Choice> {
    let node = item.child("choose")?;
    let argument = node.args.first()?;
    let factor = argument.text()?.to_owned();
    let for_each: Vec<String> = match node.setting("for-each").map(|valued| &valued.value) {
        Some(Value::List(list)) => list.iter().filter_map(Valued::text).map(str::to_owned).collect(),
        _ => return None,
    };
    let axes: Vec<&str> = phase.axes.iter().map(|axis| axis.factor.as_str()).collect();
    // A factor that does not exist has its own diagnostic.
    let known = factor == "candidate"
        || around.study.find("factor", &factor).is_some()
        || item.keyed("factor", &factor).is_some();
    if !known {
        return None;
    }
    if !axes.contains(&factor.as_str()) && !item.broken {
        problems.push(
            problem(
                &codes::NOT_AN_AXIS,
                &argument.at,
                format!("phase `{}` chooses `{factor}` and does not vary it", item.key),
            )
            .help(format!("write `over … {factor}`; it varies {}", names::listed(axes.iter().copied()))),
        );
        return None;
    }
    let rest: Vec<&str> = axes.iter().copied().filter(|axis| *axis != factor).collect();
    let missing: Vec<&str> = rest.iter().copied().filter(|axis| !for_each.iter().any(|each| each == axis)).collect();
    let extra: Vec<&str> = for_each.iter().map(String::as_str).filter(|each| !rest.contains(each)).collect();
    if !(missing.is_empty() && extra.is_empty()) && !item.broken {
        let at = place(node, node.setting("for-each"));
        let why = if missing.is_empty() {
            format!("phase `{}` does not vary {} beside `{factor}`", item.key, names::listed(extra))
        } else {
            format!(
                "the choice of `{factor}` leaves {} open: each of its levels would choose anew",
                names::listed(missing)
            )
        };
        problems.push(problem(&codes::NOT_AN_AXIS, &at, why).help(format!("write `for-each=\"{}\"`", rest.join(" "))));
    }
    let maximising = node.text("maximising").and_then(Metric::from_name).unwrap_or(Metric::Throughput);
    Some(Choice { factor, maximising, for_each })
}
