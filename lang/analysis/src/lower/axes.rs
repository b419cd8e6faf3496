//! Lowering of factors: the axes of a phase and their levels.

use plan::{Axis, Level, Procedure};

use super::phase::{Around, figure};
use crate::codes;
use crate::problems::{Problems, problem};
use crate::resolve::Item;
use crate::value::{Value, Valued};

/// The factors that a phase varies, with the levels that the machine leaves.
pub fn axes(item: &Item, procedure: &Procedure, around: &Around<'_>, problems: &mut Problems) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    let over = item.child("over");
    // A factor that does not exist has its own diagnostic, and may be the candidate misspelt.
    let mut unknown = false;
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
        let before = problems.count();
        let levels: Vec<Level> = if factor == "candidate" {
            around.study.names("candidate").map(|name| Level::Word(name.to_owned())).collect()
        } else {
            match item.keyed("factor", factor).or_else(|| around.study.find("factor", factor)) {
                Some(node) => levels(node, around, problems),
                None => {
                    unknown = true;
                    continue;
                }
            }
        };
        let told = problems.count() > before;
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
    if !matches!(procedure, Procedure::Pgbench(_)) && !has_candidate && !unknown && !item.broken {
        let at = over.map_or(&item.name_at, |over| &over.name_at);
        let message = match procedure {
            Procedure::Start(_) => format!("phase `{}` starts no candidate", item.key),
            _ => format!("phase `{}` puts load on no candidate", item.key),
        };
        problems.push(problem(&codes::MEASURES_NOTHING, at, message).help("write `over candidate …`"));
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
