//! Lowering of phases: procedures, axes, gates, estimates, choices. Cells follow in `cells`, once every phase is known.

use plan::phase::Chosen;
use plan::{
    Choice, Condition, Estimate, Estimator, Gate, Level, LoadProcedure, Metric, MetricRef, Order, Phase, Procedure,
    Rate, Repeat,
};

use super::workload::place;
use syntax::Location;

use crate::check::machine::Chosen as ChosenMachine;
use crate::check::references::inside;
use crate::codes;
use crate::names;
use crate::problems::{Problems, problem};
use crate::resolve::{Item, Study};
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
pub fn own<'a>(item: &'a Item, node: &'a Item) -> &'a Location {
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
    let procedure = super::procedure::procedure(item, around, problems)?;
    let axes = super::axes::axes(item, &procedure, around, problems);
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
        demand: None,
        reads: reads(item).into_iter().map(|(name, _)| name.to_owned()).collect(),
    };
    connections(item, &mut phase, around, problems);
    loops(item, &phase, problems);
    phase.estimates = item.each("estimate").filter_map(estimate).collect();
    phase.choose = choose(item, &phase, around, problems);
    phase.demand = demand(item, &phase, around, problems);
    Some(phase)
}

/// Connections that a factor gives: its levels are numbers of connections, and the most of them is what the host must hold.
fn connections(item: &Item, phase: &mut Phase, around: &Around<'_>, problems: &mut Problems) {
    let Procedure::Load(load) = &mut phase.procedure else { return };
    let Some(factor) = load.connections_of.clone() else { return };
    let Some(valued) = item.child("load").and_then(|load| load.setting("connections")) else { return };
    let axis = phase.axes.iter().find(|axis| axis.factor == factor).map(|axis| axis.levels.clone());
    let node = item.keyed("factor", &factor).or_else(|| around.study.find("factor", &factor));
    let chosen = phase.with.iter().any(|chosen| chosen.factor == factor);
    let levels = match (axis, node) {
        (Some(levels), _) => levels,
        // Its own place tells what is wrong with it.
        (None, Some(node)) if chosen => super::axes::levels(node, around, &mut Problems::default()),
        (None, Some(_)) => {
            let message =
                format!("phase `{}` neither varies nor takes `{factor}`, which gives its connections", item.key);
            problems.push(
                problem(&codes::NO_VALUE_HERE, &valued.at, message)
                    .help(format!("write `over … {factor}`, or `with {factor} from=PHASE`")),
            );
            return;
        }
        // A factor that does not exist has its own diagnostic.
        (None, None) => return,
    };
    let mut most = 0;
    for level in levels {
        match level {
            Level::Integer(count) if (1..=crate::schema::MOST_CONNECTIONS).contains(&count) => most = most.max(count),
            other => {
                let message = format!(
                    "the level {other} of `{factor}` is no number of connections from 1 to {}",
                    crate::schema::MOST_CONNECTIONS
                );
                problems.push(problem(&codes::WRONG_TYPE, &valued.at, message));
                return;
            }
        }
    }
    load.connections = count(Some(most), 1);
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
        "generator-bottleneck" => {
            Gate::GeneratorBottleneck { busy: ratio("busy")?, receive_queue: ratio("receive-queue")? }
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
    let is_start =
        matches!(phase.procedure, Procedure::Start(_)) && item.child("start").is_some_and(|start| start.broken);
    if load_broken || is_start {
        return;
    }
    let mut refuse = |node: &Item, what: &str, needs: &str| {
        let message = format!("`{what}` needs {needs}, and phase `{}` has none", item.key);
        problems.push(problem(&codes::CONTRADICTION, own(item, node), message).help(format!("remove `{what}`")));
    };
    if !open {
        for node in item.each("carried").chain(item.each("publish")).chain(item.each("demand")) {
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
    if !is_load {
        for (name, written) in
            [("generator-probe", "gate generator-probe"), ("generator-bottleneck", "gate generator-bottleneck")]
        {
            if let Some(gate) = item.keyed("gate", name) {
                refuse(gate, written, "a load");
            }
        }
    }
    if matches!(phase.procedure, Procedure::Start(_)) {
        // The others judge answers, or compare what a load makes a candidate do.
        let of_any_window = ["counters", "pace", "steal", "clock", "littles-law", "send-lag", "generator-probe"];
        for gate in item.each("gate").filter(|gate| gate.variant.is_some() && !of_any_window.contains(&&*gate.key)) {
            refuse(gate, &format!("gate {}", gate.key), "a load");
        }
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
    let known = |factor: &str| {
        factor == "candidate" || around.study.find("factor", factor).is_some() || item.keyed("factor", factor).is_some()
    };
    if !known(&factor) || !for_each.iter().all(|each| known(each)) {
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
    let exact = missing.is_empty() && extra.is_empty();
    if !exact && !item.broken {
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

/// The factor of resources. A figure over them needs votes at each, and an order among them.
fn demand(item: &Item, phase: &Phase, around: &Around<'_>, problems: &mut Problems) -> Option<String> {
    let node = item.child("demand")?;
    let argument = node.args.first()?;
    let factor = argument.text()?;
    let Some(axis) = phase.axes.iter().find(|axis| axis.factor == factor) else {
        // A factor that does not exist has its own diagnostic.
        let known: Vec<&str> = phase.axes.iter().map(|axis| axis.factor.as_str()).collect();
        let exists = around.study.find("factor", factor).is_some() || item.keyed("factor", factor).is_some();
        if !item.broken && exists {
            let message = format!("phase `{}` has a demand of `{factor}` and does not vary it", item.key);
            let help = format!("write `over … {factor}`; it varies {}", names::listed(known));
            problems.push(problem(&codes::NOT_AN_AXIS, &argument.at, message).help(help));
        }
        return None;
    };
    if super::figures::rate_factor(phase) == Some(factor) {
        let message = format!("`{factor}` is the load of phase `{}`, and its demand is of what carries it", item.key);
        problems.push(
            problem(&codes::CONTRADICTION, &argument.at, message).help("name the factor of resources, such as `cores`"),
        );
        return None;
    }
    if let Some(level) = axis.levels.iter().find(|level| !matches!(level, Level::Integer(_))) {
        let message = format!("the level {level} of `{factor}` is no amount of a resource");
        problems.push(problem(&codes::WRONG_TYPE, &argument.at, message).help("give it levels that are whole numbers"));
        return None;
    }
    if phase.carried.is_empty() {
        // In a closed loop nothing is carried, which is told already.
        let open = matches!(&phase.procedure, Procedure::Load(load) if load.rate.is_some());
        if open && item.child("carried").is_none() {
            let message = format!("phase `{}` does not say when a load is carried", item.key);
            problems.push(
                problem(&codes::CONTRADICTION, own(item, node), message)
                    .help("write `carried \"achieved >= 99%\" …`, or remove `demand`"),
            );
        }
        return None;
    }
    Some(factor.to_owned())
}

/// A number of things, within what the schema allows.
pub fn count(value: Option<i64>, default: u32) -> u32 {
    value.and_then(|value| u32::try_from(value).ok()).unwrap_or(default)
}
