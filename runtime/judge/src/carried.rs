//! The rate that was carried: fixed rates, votes, and the relevant lower bound.

use plan::{Level, Metric, Phase, Plan};

use crate::derive::candidate_of;
use crate::estimate::{rate, seen, too_few};
use crate::evidence::Evidence;
use crate::figure::blank;
use crate::judgement::{Figure, JudgedRepetition, Outcome};
use crate::mapping::{Levels, cell_levels, rate_factor};
use crate::words::percent;

/// One rate of the grid.
struct Rung<'a> {
    /// The level as the plan has it: `87%`, `500/s`.
    level: String,
    /// Where it stands among the others: a rate, or a share of one figure.
    order: f64,
    /// The rate that was really offered, where anything was.
    offered: Option<f64>,
    ended: Vec<&'a JudgedRepetition>,
    /// Votes of the valid repetitions.
    votes: Vec<(bool, &'a JudgedRepetition)>,
    wanted: u32,
}

impl Rung<'_> {
    fn is_determined(&self) -> bool {
        !self.votes.is_empty() && self.votes.len() >= self.wanted as usize
    }

    fn yes(&self) -> usize {
        self.votes.iter().filter(|(carried, _)| *carried).count()
    }

    fn is_carried(&self) -> bool {
        stats::sample::majority(self.yes(), self.votes.len()) == Some(true)
    }

    /// `4,120/s`, or the level where nothing was offered.
    fn name(&self) -> String {
        self.offered.map_or_else(|| self.level.clone(), rate)
    }

    fn tally(&self) -> String {
        format!("{}: {} of {}", self.name(), self.yes(), self.votes.len())
    }
}

/// The `carried` figures of a phase: one for each combination of its other factors; none where it has no conditions.
pub(crate) fn figures(plan: &Plan, evidence: &Evidence, phase: &Phase, of_phase: &[&JudgedRepetition]) -> Vec<Figure> {
    if phase.carried.is_empty() {
        return Vec::new();
    }
    let factor = rate_factor(phase);
    let mut groups: Vec<(Levels, Vec<u32>)> = Vec::new();
    for cell in 0..phase.cells.len() as u32 {
        let key: Levels =
            cell_levels(phase, cell).into_iter().filter(|(name, _)| Some(name.as_str()) != factor).collect();
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, cells)) => cells.push(cell),
            None => groups.push((key, vec![cell])),
        }
    }
    groups.into_iter().map(|(key, cells)| figure(plan, evidence, phase, key, &cells, of_phase)).collect()
}

fn figure(
    plan: &Plan,
    evidence: &Evidence,
    phase: &Phase,
    key: Levels,
    cells: &[u32],
    of_phase: &[&JudgedRepetition],
) -> Figure {
    let mut figure = blank(plan, phase, Metric::Carried, key);
    let mut rungs: Vec<Rung<'_>> = cells.iter().map(|&cell| rung(phase, cell, of_phase)).collect();
    rungs.sort_by(|left, right| left.order.total_cmp(&right.order));

    let votes: Vec<&(bool, &JudgedRepetition)> = rungs.iter().flat_map(|rung| &rung.votes).collect();
    let ended: usize = rungs.iter().map(|rung| rung.ended.len()).sum();
    figure.valid = votes.len() as u32;
    figure.void = (ended - votes.len()) as u32;
    figure.rows = votes.iter().map(|(_, repetition)| repetition.id.clone()).collect();
    let carried_rates: Vec<f64> = rungs
        .iter()
        .flat_map(|rung| &rung.ended)
        .filter(|repetition| repetition.carried == Some(true))
        .filter_map(|repetition| repetition.rate)
        .collect();
    figure.seen = seen(&carried_rates);
    let beyond_chance = notes(&mut figure, &rungs);

    let excluded = cells
        .first()
        .and_then(|&cell| candidate_of(plan, phase, cell))
        .and_then(|candidate| evidence.excluded(plan, candidate));
    if let Some(why) = excluded {
        figure.outcome = Outcome::NotDetermined { why };
        return figure;
    }

    if let Some(why) = beyond_chance {
        figure.outcome = Outcome::NotDetermined { why };
        return figure;
    }

    // From below: the highest carried rate before the first one that was not carried, or of which it is not known.
    let below = rungs.iter().take_while(|rung| rung.is_determined() && rung.is_carried()).count();
    let stop = rungs.get(below);
    let highest = below.checked_sub(1).and_then(|index| rungs[index].offered);
    figure.outcome = match (highest, stop) {
        (Some(value), Some(stop)) if stop.is_determined() => Outcome::Determined {
            value,
            // The bracket: carried at the lower end, not carried at the upper one.
            interval: stop.offered.map(|not_carried| (value, not_carried)),
            coverage: None,
        },
        (Some(value), _) => Outcome::Determined { value, interval: None, coverage: None },
        (None, Some(stop)) if stop.is_determined() => Outcome::NotDetermined {
            why: format!("no rate of the grid was carried: already the lowest, {}", stop.tally()),
        },
        (None, Some(stop)) => Outcome::NotDetermined {
            why: format!("the lowest rate, {}: {}", stop.name(), too_few(stop.votes.len(), stop.wanted, &stop.ended)),
        },
        (None, None) => Outcome::NotDetermined { why: "no rate was offered".to_owned() },
    };
    if highest.is_some() {
        figure.bound = match stop {
            None => Some("a floor: every rate of the grid was carried".to_owned()),
            Some(stop) if !stop.is_determined() => Some(format!(
                "a floor: the next rate, {}, is not determined ({})",
                stop.name(),
                too_few(stop.votes.len(), stop.wanted, &stop.ended)
            )),
            Some(_) => None,
        };
    }
    figure
}

fn rung<'a>(phase: &Phase, cell: u32, of_phase: &[&'a JudgedRepetition]) -> Rung<'a> {
    let ended: Vec<&JudgedRepetition> =
        of_phase.iter().copied().filter(|repetition| repetition.id.cell == cell).collect();
    let offered: Vec<f64> = ended.iter().filter_map(|repetition| repetition.rate).collect();
    let offered = stats::median(&offered);
    let level = rate_factor(phase)
        .and_then(|factor| phase.axes.iter().position(|axis| axis.factor == factor))
        .and_then(|position| phase.cells.get(cell as usize)?.levels.get(position));
    let order = match level {
        Some(Level::PerSecond(rate)) => *rate,
        Some(Level::Integer(rate)) => *rate as f64,
        Some(Level::ShareOf { share, .. }) => *share,
        Some(Level::Word(_)) | None => offered.unwrap_or(0.0),
    };
    Rung {
        level: level.map_or_else(|| "the only rate".to_owned(), ToString::to_string),
        order,
        offered,
        votes: ended
            .iter()
            .filter(|repetition| repetition.is_valid())
            .filter_map(|repetition| Some((repetition.carried?, *repetition)))
            .collect(),
        ended,
        wanted: phase.repeat.valid,
    }
}

/// Notes the pass table, what was first not carried, and every inversion. Gives why there is no boundary, where the response to
/// the rate is not monotone beyond chance.
fn notes(figure: &mut Figure, rungs: &[Rung<'_>]) -> Option<String> {
    let judged: Vec<&Rung<'_>> = rungs.iter().filter(|rung| !rung.votes.is_empty()).collect();
    if judged.is_empty() {
        return None;
    }
    let table: Vec<String> = judged.iter().map(|rung| rung.tally()).collect();
    figure.notes.push(format!("carried at {}", table.join(", ")));
    if let Some(first) = judged.iter().find(|rung| !rung.is_carried()) {
        figure.notes.push(format!("first not carried: {}", first.tally()));
    }
    let grid = stats::Grid::new(
        &judged
            .iter()
            .map(|rung| stats::GridRate {
                rate: rung.offered.unwrap_or(rung.order),
                carried: rung.yes(),
                of: rung.votes.len(),
            })
            .collect::<Vec<_>>(),
    );
    for inversion in &grid.inversions {
        figure.notes.push(format!(
            "{INVERTED}: {} was carried in {} of its repetitions and {} in {}",
            rate(inversion.lower.0),
            percent(inversion.lower.1),
            rate(inversion.higher.0),
            percent(inversion.higher.1)
        ));
    }
    if let Some(x50) = grid.x50 {
        figure.notes.push(format!("half of the repetitions are carried at {} (isotonic fit)", rate(x50)));
    }
    grid.worst_inversion.filter(|inversion| inversion.chance < stats::grid::INVERSION_CHANCE).map(|inversion| {
        format!(
            "the response to the rate is not monotone: {} was carried in {} of its repetitions and {} in {}, which is chance in {} \
             of cases only",
            rate(inversion.lower.0),
            percent(inversion.lower.1),
            rate(inversion.higher.0),
            percent(inversion.higher.1),
            percent(inversion.chance)
        )
    })
}

/// How the note of an inversion begins.
pub(crate) const INVERTED: &str = "inverted";
