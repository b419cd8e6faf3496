//! From the resolved study to the plan: phases in the order of what they read, their cells, agreements, the report, the
//! graph. Whatever can't be lowered has its diagnostic; the plan is then only a draft for the lints.

mod axes;
mod cells;
mod course;
pub mod figures;
mod graph;
mod parameter;
pub mod phase;
mod procedure;
mod publish;
mod random;
mod reproduce;
pub mod subject;
mod tool;
pub mod workload;

use std::collections::BTreeSet;

use plan::graph::{Cycle, sort_by_reads};
use plan::{Limit, Machine, MetricRef, PLAN_VERSION, Phase, Plan, Procedure, Rate, ReportPlan};
use syntax::{Diagnostic, Location};

use crate::check::machine::Chosen;
use crate::check::references::inside;
use crate::codes;
use crate::names;
use crate::problems::{Problems, problem};
use crate::resolve::{Item, Study};
use crate::value::Valued;
use figures::Unmapped;
use phase::Around;

pub use reproduce::environment;

/// The plan, and phases that fell away with the reason.
pub struct Lowered {
    /// The plan. Complete only where there was no error.
    pub plan: Plan,
    /// Phases that are not measured, and why.
    pub dropped: Vec<(String, String)>,
}

/// Phases that already have an error: what they measure and how their cells map can't be judged.
#[derive(Debug, Default)]
pub struct Faulty(BTreeSet<String>);

impl Faulty {
    /// Whether the phase has an error.
    pub fn is(&self, phase: &str) -> bool {
        self.0.contains(phase)
    }
}

/// Lowers the study.
pub fn lower(study: &Study, machine: Option<&Chosen<'_>>, problems: &mut Problems) -> Lowered {
    let root = subject::root(study);
    let header = study.only("study");
    let text = |name: &str| header.and_then(|item| item.text(name)).unwrap_or_default().to_owned();
    let mut plan = Plan {
        version: PLAN_VERSION,
        study: header.map(|item| item.name().to_owned()).unwrap_or_default(),
        title: text("title"),
        question: text("question"),
        root: root.clone(),
        machine: machine.map_or_else(no_machine, |chosen| chosen.machine.clone()),
        profile: study.profile.clone(),
        seed: header.and_then(|item| item.integer("seed")).map_or(1, i64::unsigned_abs),
        inputs: Vec::new(),
        secrets: study.names("secret").map(str::to_owned).collect(),
        credentials: subject::credentials(study, problems),
        database: subject::database(study, &root, problems),
        probe: subject::probe(study, &root, problems),
        candidates: subject::candidates(study, &root, problems),
        contract: workload::contract(study, &root, problems),
        workloads: workload::workloads(study, &root, problems),
        phases: Vec::new(),
        agreements: Vec::new(),
        report: ReportPlan { items: Vec::new(), reproduce: reproduce::reproduce(study, machine) },
        budget_ns: header.and_then(|item| item.duration("budget")).map(i64::unsigned_abs),
        limits: Vec::new(),
        steps: Vec::new(),
    };
    rows(study, &plan, problems);
    one_table(study, problems);
    let dropped = fallen(study);
    let around = Around { study, machine, root: &root, has_probe: plan.probe.is_some() };
    let mut faulty = Faulty::default();
    let mut phases: Vec<(&Item, Phase)> = Vec::new();
    for item in study.each("phase").filter(|item| !dropped.iter().any(|(name, _)| *name == item.key)) {
        let before = problems.count();
        // In a phase with an error, what seems wrong beyond it may only follow from it.
        let doubtful = item.broken || misspelt(study, item);
        let mut unheard = Problems::default();
        let lowered = phase::phase(item, &around, if doubtful { &mut unheard } else { problems });
        unheard.into_each().filter(|found| stands_alone(item, found)).for_each(|found| problems.push(found));
        if doubtful || problems.count() > before {
            faulty.0.insert(item.key.clone());
        }
        if let (Some(phase), false) = (&lowered, doubtful) {
            tool::check(item, phase, &plan, problems);
        }
        phases.extend(lowered.map(|phase| (item, phase)));
    }
    only(study, machine, problems);
    let order = order(&phases, problems);
    check_phases(study, &plan, &phases, &faulty, problems);
    let mut phases: Vec<Option<(&Item, Phase)>> = phases.into_iter().map(Some).collect();
    let mut upstream = cells::Upstream::new();
    for place in order {
        let Some((item, mut phase)) = phases.get_mut(place).and_then(Option::take) else { continue };
        match cells::count(&phase) {
            Some(cells) if cells <= cells::MOST_CELLS => cells::fill(&mut phase, &plan, &mut upstream),
            _ => too_many(item, &phase, problems),
        }
        plan.phases.push(phase);
    }
    publish::agreements(study, &mut plan, &dropped, &faulty, problems);
    publish::report(study, &mut plan, &dropped, &faulty, problems);
    limits(study, machine, &mut plan, &dropped);
    let by_tools: Vec<Limit> = tool::limits(&plan).collect();
    plan.limits.extend(by_tools);
    Lowered { plan, dropped }
}

/// The plan's graph, once its limits are complete.
pub fn finish(plan: &mut Plan) {
    plan.steps = graph::steps(plan);
}

fn no_machine() -> Machine {
    Machine {
        name: String::new(),
        chosen: String::new(),
        candidate: plan::CpuSet::default(),
        database: plan::CpuSet::default(),
        load: plan::CpuSet::default(),
        generators: Vec::new(),
        sharing_accepted: false,
    }
}

/// Tables that streams and cases write to.
fn rows(study: &Study, plan: &Plan, problems: &mut Problems) {
    let streams = study.each("workload").flat_map(|workload| workload.each("stream"));
    let cases = study.each("contract").flat_map(|contract| contract.each("case"));
    for creates in streams.chain(cases).filter_map(|item| item.child("creates")) {
        let Some(valued) = creates.setting("in") else { continue };
        let Some(table) = valued.text() else { continue };
        let Some(database) = &plan.database else {
            if !study.wounded {
                let message = format!("rows in `{table}` can't be counted: the study has no database");
                problems.push(problem(&codes::CONTRADICTION, &valued.at, message));
            }
            continue;
        };
        let tables: Vec<&str> = database.holds.iter().map(|table| table.table.as_str()).collect();
        let known = study.only("database").is_some_and(|item| !item.broken);
        if known && !tables.is_empty() && !tables.contains(&table) {
            let hint = names::hint(table, tables.iter().copied());
            problems.push(
                problem(&codes::UNKNOWN_NAME, &valued.at, format!("the template holds no table `{table}`{hint}")).help(
                    format!("its tables are {}; declare another with `holds table=… rows=…`", names::listed(tables)),
                ),
            );
        }
    }
}

/// Whether the phase names a factor that does not exist, which has its own diagnostic.
fn misspelt(study: &Study, item: &Item) -> bool {
    let over = item.each("over").flat_map(|over| &over.args);
    let with = item.each("with").filter_map(|with| with.args.first());
    over.chain(with).filter_map(Valued::text).any(|factor| {
        factor != "candidate" && study.find("factor", factor).is_none() && item.keyed("factor", factor).is_none()
    })
}

/// Whether a problem of a phase with an error follows from a sound node of it alone, so that it is there whatever the
/// error is: `repeat 5 at-most=3` beside a misspelt gate.
fn stands_alone(item: &Item, found: &Diagnostic) -> bool {
    let of_one_node = [
        &codes::AT_MOST_BELOW_VALID,
        &codes::LEVEL_TWICE,
        &codes::MIXED_LEVELS,
        &codes::OUT_OF_RANGE,
        &codes::EMPTY_RANGE,
    ];
    // What belongs to the other kind of loop: the load is what it says, or it is not heard.
    let of_the_load = found.code == codes::CONTRADICTION.code
        && item.child("load").is_some_and(|load| !load.broken && !load.args.is_empty())
        && !item.lost_child;
    let place = &found.primary.at;
    let node = item.children.iter().find(|child| inside(&child.at, place));
    node.is_some_and(|node| !node.broken) && (of_the_load || of_one_node.iter().any(|info| info.code == found.code))
}

/// A repetition counts the rows of one table, so a workload writes to one.
fn one_table(study: &Study, problems: &mut Problems) {
    for workload in study.each("workload") {
        let written: Vec<&Valued> = workload
            .each("stream")
            .filter_map(|stream| stream.child("creates"))
            .filter_map(|creates| creates.setting("in"))
            .filter(|valued| valued.text().is_some())
            .collect();
        let Some(first) = written.first() else { continue };
        if let Some(other) = written.iter().find(|valued| valued.text() != first.text()) {
            let message = format!(
                "workload `{}` creates rows in `{}` and in `{}`, and a repetition counts the rows of one table",
                workload.key,
                first.text().unwrap_or_default(),
                other.text().unwrap_or_default()
            );
            problems.push(
                problem(&codes::CONTRADICTION, &other.at, message)
                    .also(first.at.clone(), "the other table")
                    .help("write to one table per workload"),
            );
        }
    }
}

/// Levels that the machine's `only` names and the factor lacks.
fn only(study: &Study, machine: Option<&Chosen<'_>>, problems: &mut Problems) {
    let Some(machine) = machine.filter(|machine| !machine.item.broken) else { return };
    for only in machine.item.each("only") {
        let Some(factor) = study.find("factor", &only.key).filter(|factor| !factor.broken) else { continue };
        let levels: Vec<&Valued> = factor.args.iter().skip(1).collect();
        for valued in only.args.iter().skip(1) {
            if !levels.iter().any(|level| level.value == valued.value) {
                let known = names::listed(levels.iter().map(|level| level.written.as_str()));
                problems.push(
                    problem(
                        &codes::LEVEL_OUT_OF_REACH,
                        &valued.at,
                        format!("the factor `{}` has no level {}", only.key, valued.written),
                    )
                    .also(factor.name_at.clone(), "the factor")
                    .help(format!("its levels are {known}")),
                );
            }
        }
    }
}

/// Phases that read a removed one, directly or through others: they can't be measured without it.
fn fallen(study: &Study) -> Vec<(String, String)> {
    let profile = study.profile.as_deref().unwrap_or("");
    let mut dropped: Vec<(String, String)> = study
        .removed
        .iter()
        .filter(|(kind, _, _)| kind == "phase")
        .map(|(_, name, _)| (name.clone(), format!("profile `{profile}` leaves phase `{name}` out")))
        .collect();
    if dropped.is_empty() {
        return dropped;
    }
    loop {
        let next = study.each("phase").find_map(|item| {
            if dropped.iter().any(|(name, _)| *name == item.key) {
                return None;
            }
            let (read, _) =
                phase::reads(item).into_iter().find(|(read, _)| dropped.iter().any(|(name, _)| name == read))?;
            Some((item.key.clone(), format!("it reads phase `{read}`, which profile `{profile}` leaves out")))
        });
        match next {
            Some(next) => dropped.push(next),
            None => return dropped,
        }
    }
}

/// The places of the phases, each after those that it reads. A cycle is reported, and the order of the study is kept.
fn order(phases: &[(&Item, Phase)], problems: &mut Problems) -> Vec<usize> {
    let nodes: Vec<(&str, Vec<&str>)> = phases
        .iter()
        .map(|(_, phase)| (phase.name.as_str(), phase.reads.iter().map(String::as_str).collect()))
        .collect();
    match sort_by_reads(&nodes) {
        Ok(sorted) => {
            sorted.into_iter().filter_map(|name| phases.iter().position(|(_, phase)| phase.name == name)).collect()
        }
        Err(Cycle(names)) => {
            let mut path: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            path.extend(path.first().cloned());
            let find = |name: &str| phases.iter().find(|(_, phase)| phase.name == name).map(|(item, _)| *item);
            let reading = |index: usize| -> Option<(&str, &Valued)> {
                let item = find(&names[index])?;
                let next = &names[(index + 1) % names.len()];
                phase::reads(item).into_iter().find(|(read, _)| read == next)
            };
            if let Some((_, first)) = reading(0) {
                let mut diagnostic =
                    problem(&codes::CYCLE, &first.at, format!("these phases read each other: {}", path.join(" → ")));
                for (index, name) in names.iter().enumerate().skip(1) {
                    if let Some((read, valued)) = reading(index) {
                        diagnostic = diagnostic.also(valued.at.clone(), format!("`{name}` reads `{read}`"));
                    }
                }
                problems.push(diagnostic.help("one of them must not read the other"));
            }
            (0..phases.len()).collect()
        }
    }
}

fn too_many(item: &Item, phase: &Phase, problems: &mut Problems) {
    let operands: Vec<String> =
        phase.axes.iter().map(|axis| format!("{} ({})", axis.levels.len(), axis.factor)).collect();
    let at = item.child("over").map_or(&item.name_at, |over| &over.at);
    problems.push(
        problem(
            &codes::TOO_MANY_CELLS,
            at,
            format!("phase `{}` has more than {} cells: {}", item.key, cells::MOST_CELLS, operands.join(" × ")),
        )
        .help("vary fewer factors at once"),
    );
}

/// What needs all phases at once: figures that are read, cells that map, variables that have values.
fn check_phases(study: &Study, plan: &Plan, phases: &[(&Item, Phase)], faulty: &Faulty, problems: &mut Problems) {
    let find = |name: &str| phases.iter().find(|(_, phase)| phase.name == name).map(|(_, phase)| phase);
    let has_database = plan.database.is_some();
    for (item, phase) in phases {
        if item.broken {
            continue;
        }
        let own: Vec<&str> = phase.axes.iter().map(|axis| axis.factor.as_str()).collect();
        for node in item.each("gate").chain(item.each("factor")) {
            let Some(of) = phase::figure(node.setting("of")) else { continue };
            let Some(valued) = node.setting("of") else { continue };
            let Some(source) = find(&of.phase).filter(|source| !faulty.is(&source.name)) else { continue };
            if !check_figure(&of, source, has_database, &valued.at, problems) {
                continue;
            }
            if of.metric.unit() != "1/s" {
                let message = format!("a rate is due here, and `{of}` is measured in {}", unit(&of));
                problems.push(problem(&codes::WRONG_TYPE, &valued.at, message));
                continue;
            }
            // A factor's own levels are what `of` makes, so they can't say which value of it is meant.
            let axes: Vec<&str> =
                own.iter().copied().filter(|axis| node.kind() != "factor" || *axis != node.key).collect();
            if !faulty.is(&phase.name) {
                check_maps(&of, source, phase, &axes, &valued.at, problems);
            }
        }
        for (chosen, node) in phase.with.iter().filter_map(|chosen| Some((chosen, item.keyed("with", &chosen.factor)?)))
        {
            let Some(source) = find(&chosen.from) else { continue };
            let at = node.setting("from").map_or(&node.name_at, |valued| &valued.at);
            let choice = source.choose.as_ref();
            match choice {
                Some(choice) if choice.factor == chosen.factor => {
                    let open: Vec<&str> =
                        choice.for_each.iter().map(String::as_str).filter(|each| !own.contains(each)).collect();
                    if !open.is_empty() {
                        let message = format!(
                            "`{}` chooses `{}` for each level of {}, and phase `{}` does not vary {}",
                            chosen.from,
                            chosen.factor,
                            names::listed(choice.for_each.iter().map(String::as_str)),
                            phase.name,
                            names::listed(open)
                        );
                        problems.push(problem(&codes::CELLS_DO_NOT_MAP, at, message));
                    }
                }
                // A choice that could not be lowered has its own diagnostic.
                None if study.find("phase", &chosen.from).is_some_and(|item| item.child("choose").is_some()) => {}
                _ if faulty.is(&chosen.from) => {}
                _ => {
                    let message = format!("phase `{}` chooses no `{}`", chosen.from, chosen.factor);
                    problems.push(
                        problem(&codes::NOT_CHOSEN, at, message)
                            .help(format!("write `choose {} …` in phase `{}`", chosen.factor, chosen.from)),
                    );
                }
            }
        }
        rates(study, item, phase, problems);
        values(study, plan, item, phase, problems);
        metrics(item, phase, has_database, problems);
    }
}

fn unit(of: &MetricRef) -> &'static str {
    match of.metric.unit() {
        "" => "several units",
        unit => unit,
    }
}

/// Whether the phase measures the figure; otherwise it is reported.
pub fn check_figure(
    of: &MetricRef,
    source: &Phase,
    has_database: bool,
    at: &Location,
    problems: &mut Problems,
) -> bool {
    if figures::produces(source, of.metric, has_database) {
        return true;
    }
    let known: Vec<&str> = figures::produced(source, has_database).map(|metric| metric.name()).collect();
    problems.push(
        problem(&codes::NEVER_MEASURED, at, format!("phase `{}` never measures `{}`", of.phase, of.metric.name()))
            .help(match tool::why_missing(source, of.metric) {
                Some(why) => format!("{why}; it measures {}", names::listed(known)),
                None => format!("it measures {}", names::listed(known)),
            }),
    );
    false
}

fn check_maps(of: &MetricRef, source: &Phase, reader: &Phase, own: &[&str], at: &Location, problems: &mut Problems) {
    match figures::maps(of, source, reader, own) {
        Ok(()) => {}
        Err(Unmapped::Factor(factor)) => problems.push(
            problem(
                &codes::CELLS_DO_NOT_MAP,
                at,
                format!("`{of}` has one value for each level of `{factor}`, and phase `{}` has no `{factor}`", reader.name),
            )
            .help(format!(
                "vary it too (`over … {factor}`), or choose one: `choose {factor} …` in `{}`, `with {factor} from={}` in `{}`",
                of.phase, of.phase, reader.name
            )),
        ),
        Err(Unmapped::Level { factor, level }) => problems.push(
            problem(
                &codes::CELLS_DO_NOT_MAP,
                at,
                format!("phase `{}` has the level {level} of `{factor}`, and `{}` lacks it", reader.name, of.phase),
            )
            .help("give both phases the same levels"),
        ),
    }
}

/// `rate="${rate}"` names a factor of rates that the phase has.
fn rates(study: &Study, item: &Item, phase: &Phase, problems: &mut Problems) {
    let Procedure::Load(load) = &phase.procedure else { return };
    let Some(Rate::Factor(factor)) = &load.rate else { return };
    let Some(valued) = item.child("load").and_then(|load| load.setting("rate")) else { return };
    match phase.axes.iter().find(|axis| axis.factor == *factor) {
        Some(axis) => {
            if axis.levels.iter().any(|level| matches!(level, plan::Level::Word(_))) {
                let message = format!("the levels of `{factor}` are words, and a rate is due");
                problems.push(problem(&codes::WRONG_TYPE, &valued.at, message).help("write levels such as \"500/s\""));
            }
        }
        None if phase.with.iter().any(|chosen| chosen.factor == *factor) => {}
        // A factor that does not exist has its own diagnostic.
        None if item.keyed("factor", factor).is_none() && study.find("factor", factor).is_none() => {}
        None => problems.push(no_value(phase, factor, "its rate", &valued.at)),
    }
}

fn no_value(phase: &Phase, factor: &str, reader: &str, at: &Location) -> syntax::Diagnostic {
    problem(
        &codes::NO_VALUE_HERE,
        at,
        format!("phase `{}` neither varies nor takes `{factor}`, which {reader} reads", phase.name),
    )
    .help(format!("write `over … {factor}`, or `with {factor} from=PHASE`"))
}

/// Factors that a candidate's environment or the traffic reads have a level in the phase.
fn values(study: &Study, plan: &Plan, item: &Item, phase: &Phase, problems: &mut Problems) {
    if matches!(phase.procedure, Procedure::Pgbench(_)) {
        return;
    }
    let has = |factor: &str| {
        phase.axes.iter().any(|axis| axis.factor == factor) || phase.with.iter().any(|chosen| chosen.factor == factor)
    };
    let factors: BTreeSet<&str> =
        study.names("factor").chain(item.each("factor").map(|factor| factor.key.as_str())).chain(["cores"]).collect();
    let elsewhere: BTreeSet<&str> =
        study.each("phase").flat_map(|phase| phase.each("factor")).map(|factor| factor.key.as_str()).collect();
    let is_factor = |name: &str| factors.contains(name) || elsewhere.contains(name);
    let at = item.child("over").map_or(&item.name_at, |over| &over.at);
    let mut told = BTreeSet::new();
    for candidate in &plan.candidates {
        for (variable, text) in &candidate.env {
            for name in text.variables().filter(|name| is_factor(name) && !has(name)) {
                if told.insert(name.to_owned()) {
                    let reader = format!("`{variable}` of candidate `{}`", candidate.name);
                    let mut diagnostic = no_value(phase, name, &reader, at);
                    let env = study.find("candidate", &candidate.name).and_then(|item| item.child("env"));
                    if let Some((_, valued)) = env.and_then(|env| env.free.iter().find(|(known, _)| known == variable))
                    {
                        diagnostic = diagnostic.also(valued.at.clone(), "read here");
                    }
                    problems.push(diagnostic);
                }
            }
        }
    }
    let Procedure::Load(load) = &phase.procedure else { return };
    let Some(traffic) = plan.workload(&load.workload) else { return };
    for (stream, text) in workload::workload_texts(traffic) {
        let parameter = |name: &str| stream.parameters.iter().any(|parameter| parameter.name == name);
        for name in text.variables().filter(|name| is_factor(name) && !parameter(name) && !has(name)) {
            if told.insert(name.to_owned()) {
                problems.push(no_value(phase, name, &format!("stream `{}` of `{}`", stream.name, traffic.name), at));
            }
        }
    }
}

/// Metrics that the phase estimates, maximises or compares are measured by it.
fn metrics(item: &Item, phase: &Phase, has_database: bool, problems: &mut Problems) {
    for estimate in item.each("estimate") {
        if let Some(valued) = estimate.setting("counting").filter(|_| estimate.key != plan::Metric::Memory.name()) {
            let message = format!("`counting` says how memory is counted, and this estimates `{}`", estimate.key);
            problems.push(problem(&codes::CONTRADICTION, &valued.at, message).help("remove `counting`"));
        }
    }
    let mut check = |metric: plan::Metric, at: &Location| {
        let of = MetricRef { phase: phase.name.clone(), metric };
        check_figure(&of, phase, has_database, at, problems);
    };
    for estimate in item.each("estimate") {
        if let (Some(metric), Some(valued)) = (plan::Metric::from_name(&estimate.key), estimate.args.first()) {
            check(metric, &valued.at);
        }
    }
    if let (Some(choice), Some(valued)) =
        (&phase.choose, item.child("choose").and_then(|choose| choose.setting("maximising")))
    {
        check(choice.maximising, &valued.at);
    }
    if let Some(carried) = item.child("carried") {
        for valued in &carried.args {
            if let crate::value::Value::Condition(condition) = &valued.value {
                check(condition.metric, &valued.at);
            }
        }
    }
}

/// What weakens the study and is known before it runs.
fn limits(study: &Study, machine: Option<&Chosen<'_>>, plan: &mut Plan, dropped: &[(String, String)]) {
    let mut add = |name: &str, text: String, lowers_confidence: bool| {
        plan.limits.push(Limit { name: name.to_owned(), text, lowers_confidence });
    };
    if let Some(chosen) = machine {
        for only in chosen.item.each("only") {
            let factor = &only.key;
            let Some(node) = study.find("factor", factor) else { continue };
            let kept: Vec<&str> = only.args.iter().skip(1).map(|valued| valued.written.as_str()).collect();
            let gone: Vec<&str> = node
                .args
                .iter()
                .skip(1)
                .map(|valued| valued.written.as_str())
                .filter(|level| !kept.contains(level))
                .collect();
            if !gone.is_empty() {
                add(
                    "levels-left-out",
                    format!(
                        "Machine `{}` measures {factor} {} only; {} not measured.",
                        chosen.machine.name,
                        kept.join(" "),
                        match gone.as_slice() {
                            [one] => format!("{one} is"),
                            _ => format!("{} are", gone.join(" ")),
                        }
                    ),
                    false,
                );
            }
        }
    }
    for (phase, why) in dropped {
        add("phase-left-out", format!("Phase `{phase}` is not measured: {why}."), false);
    }
    for (kind, name, _) in study.removed.iter().filter(|(kind, _, _)| kind != "phase") {
        let profile = study.profile.as_deref().unwrap_or("");
        add("left-out", format!("Profile `{profile}` leaves {kind} `{name}` out."), false);
    }
    for agreement in &plan.agreements {
        if let Some(why) = &agreement.not_checked {
            let text = format!("Agreement `{}` is not checked: {why}.", agreement.name);
            plan.limits.push(Limit { name: "agreement-not-checked".to_owned(), text, lowers_confidence: true });
        }
    }
}
