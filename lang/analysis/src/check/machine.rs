//! Which machine of the study is used, and whether the host has its CPUs. What else the host must have: `feasible`.

use plan::{CpuSet, GeneratorOn, GeneratorPlace, Machine};
use syntax::Location;

use crate::codes;
use crate::host::Host;
use crate::names;
use crate::problems::{Problems, problem};
use crate::resolve::{Item, Study};
use crate::value::Value;

/// The machine that was chosen and where it stands.
pub struct Chosen<'a> {
    /// As the plan has it.
    pub machine: Machine,
    /// As the study has it.
    pub item: &'a Item,
}

fn cpus(item: &Item, role: &str) -> CpuSet {
    match item.child("cpus").and_then(|cpus| cpus.setting(role)).map(|valued| &valued.value) {
        Some(Value::Cpus(set)) => set.clone(),
        _ => CpuSet::default(),
    }
}

fn machine(item: &Item, chosen: String) -> Machine {
    Machine {
        name: item.key.clone(),
        chosen,
        candidate: cpus(item, "candidate"),
        database: cpus(item, "database"),
        load: cpus(item, "load"),
        generators: item.each("generator").filter_map(|place| generator(place, item)).collect(),
        sharing_accepted: item.child("cpus").is_some_and(|cpus| cpus.setting("sharing").is_some()),
    }
}

/// Where a generator runs. `None` where that can't be read, which is reported.
fn generator(place: &Item, machine: &Item) -> Option<GeneratorPlace> {
    let own = place.setting("cpus").and_then(|valued| match &valued.value {
        Value::Cpus(set) => Some(set.clone()),
        _ => None,
    });
    Some(match place.text("on").unwrap_or("process") {
        "process" => GeneratorPlace { on: GeneratorOn::Process, cpus: own.unwrap_or_else(|| cpus(machine, "load")) },
        "container" => {
            GeneratorPlace { on: GeneratorOn::Container, cpus: own.unwrap_or_else(|| cpus(machine, "load")) }
        }
        _ => GeneratorPlace {
            on: GeneratorOn::Engine {
                address: place.text("address")?.to_owned(),
                target: place.text("target").and_then(|target| target.parse().ok()),
            },
            cpus: own.unwrap_or_default(),
        },
    })
}

/// Generators of the machine: each has what its place needs and nothing else, and those of this machine have CPUs of their own
/// among those of `load`.
pub fn check_generators(chosen: &Chosen<'_>, problems: &mut Problems) {
    let load = cpus(chosen.item, "load");
    let is_shared = chosen.machine.sharing_accepted;
    let mut earlier: Vec<(CpuSet, &Item)> = Vec::new();
    for place in chosen.item.each("generator").filter(|place| !place.broken) {
        let is_engine = place.text("on") == Some("engine");
        for name in ["address", "target"] {
            match place.setting(name) {
                Some(valued) if !is_engine => {
                    let message = format!("a generator on this machine has no `{name}`");
                    problems.push(
                        problem(&codes::CONTRADICTION, &valued.at, message)
                            .help(format!("remove `{name}`, or write `on=engine`")),
                    );
                }
                None if is_engine && name == "address" => {
                    problems.push(
                        problem(&codes::MISSING, &place.name_at, "the other Docker Engine has no address")
                            .help("write `address=\"tcp://10.0.0.7:2375\"`"),
                    );
                }
                _ => {}
            }
        }
        if let Some(valued) = place.setting("target").filter(|_| is_engine)
            && let Some(text) = valued.text()
            && text.parse::<std::net::IpAddr>().is_err()
        {
            let message = format!("`{text}` is no address of this machine");
            problems.push(
                problem(&codes::OUT_OF_RANGE, &valued.at, message)
                    .help("write an IP address, such as `target=\"10.0.0.2\"`; a name could lead elsewhere"),
            );
        }
        if is_engine {
            continue;
        }
        let Some(GeneratorPlace { cpus: own, .. }) = generator(place, chosen.item) else { continue };
        let outside = own.missing_from(&load);
        let at = place.setting("cpus").map_or(&place.name_at, |valued| &valued.at);
        if !outside.is_empty() {
            let message = format!("a generator has CPU {outside}, which is not among those of `load`: {load}");
            problems.push(problem(&codes::CONTRADICTION, at, message).help("give `load` all CPUs that generators use"));
        }
        let shared =
            earlier.iter().find(|(other, _)| !is_shared && other.cpus().iter().any(|cpu| own.cpus().contains(cpu)));
        if let Some((other, item)) = shared {
            let message = format!("two generators share a CPU: {own} and {other}");
            problems.push(
                problem(&codes::CONTRADICTION, at, message)
                    .also(item.name_at.clone(), "the other one")
                    .help("give each CPUs of its own with `cpus`: they would wait for each other and call it latency"),
            );
        }
        earlier.push((own, place));
    }
}

/// The place of the study's own node, for problems that belong to no line.
pub fn study_at(study: &Study) -> Option<Location> {
    study.only("study").map(|item| item.name_at.clone()).or_else(|| {
        let id = study.source.as_ref()?;
        Some(Location::new(id, syntax::Span::default()))
    })
}

/// Chooses: the one that was named, or the only one that fits. Machines with errors are not chosen.
pub fn choose<'a>(
    study: &'a Study,
    wanted: Option<&str>,
    host: Option<&Host>,
    problems: &mut Problems,
) -> Option<Chosen<'a>> {
    let at = study_at(study)?;
    let all: Vec<&Item> = study.each("machine").collect();
    if let Some(name) = wanted {
        let Some(item) = all.iter().copied().find(|item| item.key == name) else {
            let known: Vec<&str> = all.iter().map(|item| item.key.as_str()).collect();
            let message = format!("the study has no machine `{name}`{}", names::hint(name, known.iter().copied()));
            problems.push(problem(&codes::UNKNOWN_NAME, &at, message).help(format!("it has {}", listing(&all, host))));
            return None;
        };
        if item.broken {
            return None;
        }
        let chosen = machine(item, "named on the command line".to_owned());
        if let Some(host) = host {
            let missing = chosen.all().missing_from(&host.cpus);
            if !missing.is_empty() {
                let place = item.child("cpus").map_or(&item.name_at, |cpus| &cpus.at);
                let message =
                    format!("machine `{name}` needs CPU {missing}, and {} has only {}", host.called(), host.topology());
                problems.push(
                    problem(&codes::CPUS_MISSING, place, message)
                        .help(format!("the study's machines: {}", listing(&all, Some(host)))),
                );
                return None;
            }
        }
        return Some(Chosen { machine: chosen, item });
    }
    let whole: Vec<&Item> = all.iter().copied().filter(|item| !item.broken).collect();
    let Some(host) = host else {
        // Nobody will run it here; the first machine stands for all in the checks.
        let item = whole.first().copied()?;
        let why = if all.len() == 1 { "the only one of the study" } else { "the first of the study" };
        return Some(Chosen { machine: machine(item, why.to_owned()), item });
    };
    let fitting: Vec<Chosen<'a>> = whole
        .iter()
        .map(|item| Chosen { machine: machine(item, String::new()), item })
        .filter(|chosen| chosen.machine.all().missing_from(&host.cpus).is_empty())
        .collect();
    let fits = fitting.len();
    let unshared = fitting.iter().filter(|chosen| !chosen.machine.sharing_accepted).count();
    let pick = match (fits, unshared) {
        (1, _) => fitting.into_iter().next().map(|chosen| (chosen, "the only one that fits")),
        (_, 1) => fitting
            .into_iter()
            .find(|chosen| !chosen.machine.sharing_accepted)
            .map(|chosen| (chosen, "the only one that fits without sharing CPUs")),
        _ => None,
    };
    if let Some((mut chosen, why)) = pick {
        chosen.machine.chosen = format!("{why} the CPUs {} of {}", host.cpus, host.called());
        if why.ends_with("sharing CPUs") {
            chosen.machine.chosen = format!("{why}; {} has CPUs {}", host.called(), host.cpus);
        }
        return Some(chosen);
    }
    if whole.len() < all.len() || all.is_empty() {
        // One that has errors might have been the one.
        return None;
    }
    let message = if fits == 0 {
        format!("no machine of the study fits {}, which has {}", host.called(), host.topology())
    } else {
        format!("{fits} machines of the study fit {}, which has {}", host.called(), host.topology())
    };
    let help = if fits == 0 {
        format!("the study's machines: {}; add one that fits", listing(&all, Some(host)))
    } else {
        format!("name one with --machine: {}", listing(&all, Some(host)))
    };
    let place = all.first().map_or(&at, |item| &item.name_at);
    problems.push(problem(&codes::NO_MACHINE, place, message).help(help));
    None
}

/// Machines, their CPUs, and what the host lacks of them.
fn listing(all: &[&Item], host: Option<&Host>) -> String {
    if all.is_empty() {
        return "none".to_owned();
    }
    all.iter()
        .map(|item| {
            let machine = machine(item, String::new());
            let lacks = host.map(|host| (host.called(), machine.all().missing_from(&host.cpus)));
            let lacks = lacks
                .filter(|(_, missing)| !missing.is_empty())
                .map_or_else(String::new, |(called, missing)| format!(", of which {called} lacks {missing}"));
            format!("`{}` (CPUs {}{lacks})", machine.name, machine.all())
        })
        .collect::<Vec<_>>()
        .join(", ")
}

/// A study with a database needs CPUs for it.
pub fn check_database(study: &Study, chosen: &Chosen<'_>, problems: &mut Problems) {
    let (Some(database), Some(cpus)) = (study.only("database"), chosen.item.child("cpus")) else { return };
    if chosen.item.broken || cpus.setting("database").is_some() {
        return;
    }
    problems.push(
        problem(
            &codes::MISSING,
            &cpus.name_at,
            format!("machine `{}` has no CPUs for the database `{}`", chosen.item.key, database.key),
        )
        .help("write `database=\"4-7\"` in `cpus`"),
    );
}
