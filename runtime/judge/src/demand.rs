//! The demand of a load: the smallest level of a resource from which on every level carries it.
//!
//! The demand metric of Henning and Hasselbring, "A configurable method for benchmarking scalability of cloud-native
//! applications" (2022), on a whole grid: nothing is taken for granted about levels that were not measured.

use plan::{Level, Metric, Phase, Plan};

use crate::derive::{candidate_of, level_of};
use crate::estimate::{seen, too_few};
use crate::evidence::Evidence;
use crate::figure::blank;
use crate::judgement::{Figure, JudgedRepetition, Outcome};
use crate::mapping::{Levels, cell_levels};

/// One amount of the resource.
struct Amount<'a> {
    amount: i64,
    ended: Vec<&'a JudgedRepetition>,
    /// Votes of the valid repetitions.
    votes: Vec<(bool, &'a JudgedRepetition)>,
}

impl Amount<'_> {
    fn yes(&self) -> usize {
        self.votes.iter().filter(|(carried, _)| *carried).count()
    }

    fn tally(&self) -> String {
        format!("{}: {} of {}", self.amount, self.yes(), self.votes.len())
    }
}

/// The `demand` figures of a phase: one for each combination of its other factors; none where it has no such factor.
pub(crate) fn figures(plan: &Plan, evidence: &Evidence, phase: &Phase, of_phase: &[&JudgedRepetition]) -> Vec<Figure> {
    let Some(factor) = &phase.demand else { return Vec::new() };
    let mut groups: Vec<(Levels, Vec<u32>)> = Vec::new();
    for cell in 0..phase.cells.len() as u32 {
        let key: Levels = cell_levels(phase, cell).into_iter().filter(|(name, _)| name != factor).collect();
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, cells)) => cells.push(cell),
            None => groups.push((key, vec![cell])),
        }
    }
    groups.into_iter().map(|(key, cells)| figure(plan, evidence, phase, factor, key, &cells, of_phase)).collect()
}

fn figure(
    plan: &Plan,
    evidence: &Evidence,
    phase: &Phase,
    factor: &str,
    key: Levels,
    cells: &[u32],
    of_phase: &[&JudgedRepetition],
) -> Figure {
    let mut figure = blank(plan, phase, Metric::Demand, key);
    let mut amounts: Vec<Amount<'_>> = cells
        .iter()
        .filter_map(|&cell| match level_of(phase, cell, factor) {
            Some(Level::Integer(amount)) => Some(self::amount(amount, cell, of_phase)),
            _ => None,
        })
        .collect();
    amounts.sort_by_key(|amount| amount.amount);

    let votes: Vec<&(bool, &JudgedRepetition)> = amounts.iter().flat_map(|amount| &amount.votes).collect();
    let ended: usize = amounts.iter().map(|amount| amount.ended.len()).sum();
    figure.valid = votes.len() as u32;
    figure.void = (ended - votes.len()) as u32;
    figure.rows = votes.iter().map(|(_, repetition)| repetition.id.clone()).collect();
    let carrying: Vec<f64> = amounts
        .iter()
        .filter(|amount| amount.ended.iter().any(|repetition| repetition.carried == Some(true)))
        .map(|amount| amount.amount as f64)
        .collect();
    figure.seen = seen(&carrying);
    let table: Vec<String> = amounts.iter().filter(|amount| !amount.votes.is_empty()).map(Amount::tally).collect();
    if !table.is_empty() {
        figure.notes.push(format!("carried at {factor} {}", table.join(", ")));
    }

    let excluded = cells
        .first()
        .and_then(|&cell| candidate_of(plan, phase, cell))
        .and_then(|candidate| evidence.excluded(plan, candidate));
    if let Some(why) = excluded {
        figure.outcome = Outcome::NotDetermined { why };
        return figure;
    }
    figure.outcome = outcome(&mut figure.notes, factor, &amounts, phase.repeat.valid);
    figure
}

/// From above: the last of the amounts that carry, before the first one that does not, or of which it is not known.
fn outcome(notes: &mut Vec<String>, factor: &str, amounts: &[Amount<'_>], wanted: u32) -> Outcome {
    let is_determined = |amount: &Amount<'_>| !amount.votes.is_empty() && amount.votes.len() >= wanted as usize;
    let is_carried = |amount: &Amount<'_>| stats::sample::majority(amount.yes(), amount.votes.len()) == Some(true);
    let from_above = amounts.iter().rev().take_while(|amount| is_determined(amount) && is_carried(amount)).count();
    let below = amounts.len() - from_above;
    let stop = below.checked_sub(1).map(|index| &amounts[index]);
    if let Some(stop) = stop.filter(|stop| !is_determined(stop)) {
        let why = too_few(stop.votes.len(), wanted, &stop.ended);
        return Outcome::NotDetermined {
            why: format!("whether {factor} {} carries it is not known: {why}", stop.amount),
        };
    }
    let Some(smallest) = amounts.get(below) else {
        let why = match stop {
            Some(stop) => format!("no {factor} of the grid carries it: already the largest, {}", stop.tally()),
            None => "nothing was offered".to_owned(),
        };
        return Outcome::NotDetermined { why };
    };
    match stop {
        None => notes.push(format!("the smallest {factor} that was tried carries it: fewer may do")),
        Some(stop) => notes.push(format!("first not carried: {}", stop.tally())),
    }
    if let Some(fluke) = amounts[..below].iter().find(|amount| is_determined(amount) && is_carried(amount)) {
        notes.push(format!(
            "{}: {factor} {} carried it in {} of its {} repetitions, and more did not",
            crate::carried::INVERTED,
            fluke.amount,
            fluke.yes(),
            fluke.votes.len()
        ));
    }
    Outcome::Determined { value: smallest.amount as f64, interval: None, coverage: None }
}

fn amount<'a>(amount: i64, cell: u32, of_phase: &[&'a JudgedRepetition]) -> Amount<'a> {
    let ended: Vec<&JudgedRepetition> =
        of_phase.iter().copied().filter(|repetition| repetition.id.cell == cell).collect();
    let votes = ended
        .iter()
        .filter(|repetition| repetition.is_valid())
        .filter_map(|repetition| Some((repetition.carried?, *repetition)))
        .collect();
    Amount { amount, ended, votes }
}
