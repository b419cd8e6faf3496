//! Choices: which level of a factor later phases use.

use plan::{Choice, Metric, Phase, Plan};

use crate::derive::candidate_of;
use crate::estimate::{estimate, estimator_of, too_few};
use crate::evidence::Evidence;
use crate::judgement::{ChoiceOutcome, Chosen, GateKind, JudgedRepetition, LevelScore, Outcome, WorstLevel};
use crate::mapping::{Levels, cell_levels, level};
use crate::words::percent;

/// Every choice of the plan.
pub(crate) fn choices(plan: &Plan, evidence: &Evidence, repetitions: &[JudgedRepetition]) -> Vec<ChoiceOutcome> {
    let mut outcomes = Vec::new();
    for phase in &plan.phases {
        let Some(choice) = &phase.choose else {
            continue;
        };
        let mut groups: Vec<(Levels, Vec<u32>)> = Vec::new();
        for cell in 0..phase.cells.len() as u32 {
            let key: Levels =
                cell_levels(phase, cell).into_iter().filter(|(factor, _)| choice.for_each.contains(factor)).collect();
            match groups.iter_mut().find(|(other, _)| *other == key) {
                Some((_, cells)) => cells.push(cell),
                None => groups.push((key, vec![cell])),
            }
        }
        for (for_each, cells) in groups {
            outcomes.push(choose(plan, evidence, phase, choice, for_each, &cells, repetitions));
        }
    }
    outcomes
}

/// The repetitions of one level, in one group of a choice.
struct Candidates<'a> {
    level: String,
    ended: Vec<&'a JudgedRepetition>,
}

impl<'a> Candidates<'a> {
    fn valid(&self) -> Vec<&'a JudgedRepetition> {
        self.ended.iter().copied().filter(|repetition| repetition.is_valid()).collect()
    }

    /// Those whose only failures are disturbances; where there is none, those where the bench was the limit as well.
    fn not_wrong(&self) -> (Vec<&'a JudgedRepetition>, bool) {
        let only = |kinds: &[GateKind]| -> Vec<&'a JudgedRepetition> {
            self.ended.iter().copied().filter(|repetition| repetition.failed_only(kinds)).collect()
        };
        let disturbed = only(&[GateKind::Disturbed]);
        if disturbed.is_empty() {
            (only(&[GateKind::Disturbed, GateKind::BenchLimited]), true)
        } else {
            (disturbed, false)
        }
    }
}

fn choose(
    plan: &Plan,
    evidence: &Evidence,
    phase: &Phase,
    choice: &Choice,
    for_each: Levels,
    cells: &[u32],
    repetitions: &[JudgedRepetition],
) -> ChoiceOutcome {
    let axis = phase.axes.iter().find(|axis| axis.factor == choice.factor);
    let levels: Vec<String> =
        axis.map(|axis| axis.levels.iter().map(ToString::to_string).collect()).unwrap_or_default();
    let candidates: Vec<Candidates<'_>> = levels
        .into_iter()
        .map(|value| {
            let of_level: Vec<u32> = cells
                .iter()
                .copied()
                .filter(|&cell| level(&cell_levels(phase, cell), &choice.factor) == Some(value.as_str()))
                .collect();
            let ended = repetitions
                .iter()
                .filter(|repetition| !repetition.superseded && repetition.id.phase == phase.name)
                .filter(|repetition| of_level.contains(&repetition.id.cell))
                .collect();
            Candidates { level: value, ended }
        })
        .collect();

    let metric = choice.maximising;
    let by = estimator_of(phase, metric);
    let all_valid = candidates.iter().all(|candidates| !candidates.valid().is_empty());
    // One basis for all levels: a paced rate is only fairly compared with paced rates.
    let paced = !all_valid && metric == Metric::Throughput;
    let scores: Vec<LevelScore> = candidates
        .iter()
        .map(|candidates| {
            let usable = if all_valid { candidates.valid() } else { candidates.not_wrong().0 };
            let scored: Vec<(f64, &JudgedRepetition)> = usable
                .into_iter()
                .filter_map(|repetition| Some((score(repetition, metric, paced)?, repetition)))
                .collect();
            let values: Vec<f64> = scored.iter().map(|(value, _)| *value).collect();
            LevelScore {
                level: candidates.level.clone(),
                score: match estimate(&values, by, metric.unit()).outcome {
                    Outcome::Determined { value, .. } => Some(value),
                    Outcome::NotDetermined { .. } => None,
                },
                rows: scored.into_iter().map(|(_, repetition)| repetition.id.clone()).collect(),
            }
        })
        .collect();

    let best =
        scores.iter().enumerate().filter_map(|(index, score)| Some((score.score?, index))).reduce(|best, other| {
            // A tie keeps the earlier level, which is the cheaper one where levels ascend.
            if other.0 > best.0 { other } else { best }
        });
    let basis = if paced { format!("{} ÷ pace ÷ (1 − steal)", metric.name()) } else { metric.name().to_owned() };
    let outcome = match best {
        Some((_, index)) => Chosen::Level(scores[index].level.clone()),
        None => Chosen::None { why: why_nothing(plan, evidence, phase, cells, &candidates) },
    };
    let provisional = best.and_then(|_| provisional(phase, &candidates, &scores, all_valid, &basis));
    let not_bracketed = best.filter(|(_, index)| *index == 0 || index + 1 == scores.len()).map(|(_, index)| {
        let edge = if index == 0 { "first" } else { "last" };
        format!("optimum not bracketed: {} {} is the {edge} level that was tried", choice.factor, scores[index].level)
    });
    let worst = best.and_then(|(best_score, best_index)| {
        let (worst_score, index) = scores
            .iter()
            .enumerate()
            .filter_map(|(index, score)| Some((score.score?, index)))
            .reduce(|worst, other| if other.0 < worst.0 { other } else { worst })?;
        let cost = (best_score - worst_score) / best_score;
        (cost.is_finite() && index != best_index).then(|| WorstLevel {
            level: scores[index].level.clone(),
            cost_of_best: cost,
            base: format!("of the best, {} {}", choice.factor, scores[best_index].level),
        })
    });
    ChoiceOutcome {
        phase: phase.name.clone(),
        factor: choice.factor.clone(),
        maximising: metric,
        for_each,
        outcome,
        levels: scores,
        basis,
        provisional,
        not_bracketed,
        worst,
    }
}

/// What a repetition scores. Pace × (1 − steal) is what the paced CPU per request differs by from the raw one.
fn score(repetition: &JudgedRepetition, metric: Metric, paced: bool) -> Option<f64> {
    let value = *repetition.values.get(&metric)?;
    if !paced {
        return Some(value);
    }
    let factor = repetition.values.get(&Metric::PacedCpuPerRequest)? / repetition.values.get(&Metric::CpuPerRequest)?;
    stats::pace::paced_rate(value, factor, 0.0)
}

fn provisional(
    phase: &Phase,
    candidates: &[Candidates<'_>],
    scores: &[LevelScore],
    all_valid: bool,
    basis: &str,
) -> Option<String> {
    let mut reasons = Vec::new();
    let without: Vec<&str> = candidates
        .iter()
        .filter(|candidates| candidates.valid().is_empty())
        .map(|candidates| candidates.level.as_str())
        .collect();
    if !all_valid {
        reasons.push(format!("no valid repetition at {}, so {basis} was compared", without.join(", ")));
    }
    let limited: Vec<&str> = candidates
        .iter()
        .filter(|candidates| !all_valid && matches!(candidates.not_wrong(), (usable, true) if !usable.is_empty()))
        .map(|candidates| candidates.level.as_str())
        .collect();
    if !limited.is_empty() {
        reasons.push(format!("the bench was the limit at {}", limited.join(", ")));
    }
    let unusable: Vec<&str> =
        scores.iter().filter(|score| score.score.is_none()).map(|score| score.level.as_str()).collect();
    if !unusable.is_empty() {
        reasons.push(format!("nothing usable at {}", unusable.join(", ")));
    }
    let fewest = candidates.iter().map(|candidates| candidates.valid().len()).min().unwrap_or(0);
    if all_valid && fewest < phase.repeat.valid as usize {
        reasons.push(format!("some level has {fewest} of {} valid repetitions", phase.repeat.valid));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn why_nothing(
    plan: &Plan,
    evidence: &Evidence,
    phase: &Phase,
    cells: &[u32],
    candidates: &[Candidates<'_>],
) -> String {
    let excluded = cells
        .first()
        .and_then(|&cell| candidate_of(plan, phase, cell))
        .and_then(|candidate| evidence.excluded(plan, candidate));
    if let Some(why) = excluded {
        return why;
    }
    let ended: Vec<&JudgedRepetition> = candidates.iter().flat_map(|candidates| candidates.ended.clone()).collect();
    too_few(0, phase.repeat.valid, &ended)
}

/// The sentences that choices add to the limits.
pub(crate) fn limits(choices: &[ChoiceOutcome]) -> Vec<String> {
    let mut limits = Vec::new();
    for choice in choices {
        let Chosen::Level(chosen) = &choice.outcome else {
            continue;
        };
        let of = format!("{} {} of {}", choice.factor, chosen, crate::mapping::show(&choice.for_each));
        if let Some(why) = &choice.provisional {
            limits.push(format!("{}: {of} was chosen provisionally: {why}", choice.phase));
        }
        if let Some(why) = &choice.not_bracketed {
            let gain = choice.worst.as_ref().map_or(String::new(), |worst| {
                format!(" (the worst, {}, costs {} {})", worst.level, percent(worst.cost_of_best), worst.base)
            });
            limits.push(format!("{}: {of}: {why}{gain}", choice.phase));
        }
    }
    limits
}
