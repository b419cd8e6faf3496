//! Figures: one value for each metric of each cell, or why there is none.

use plan::{Gate, Metric, Phase, Plan, Procedure, ReportItem};

use crate::derive::{candidate_of, metrics_of};
use crate::estimate::{ROUNDING, estimate, estimator_of, formula, seen, too_few};
use crate::evidence::Evidence;
use crate::judgement::{Figure, JudgedRepetition, Outcome};
use crate::mapping::cell_levels;
use crate::remarks::{BOTTLENECK, CHECKPOINT};
use crate::{carried, demand, paced};

/// Every figure of the plan, by phase, then cell, then metric.
pub(crate) fn figures(plan: &Plan, evidence: &Evidence, repetitions: &[JudgedRepetition]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for phase in &plan.phases {
        let of_phase: Vec<&JudgedRepetition> = repetitions
            .iter()
            .filter(|repetition| !repetition.superseded && repetition.id.phase == phase.name)
            .collect();
        let metrics: Vec<Metric> = all_metrics(plan, phase)
            .into_iter()
            .filter(|metric| {
                is_named(plan, phase, *metric)
                    || of_phase.iter().any(|repetition| repetition.values.contains_key(metric))
            })
            .collect();
        for cell in 0..phase.cells.len() as u32 {
            let ended: Vec<&JudgedRepetition> =
                of_phase.iter().copied().filter(|repetition| repetition.id.cell == cell).collect();
            for &metric in &metrics {
                figures.push(one(plan, evidence, phase, cell, metric, &ended));
            }
        }
        figures.extend(carried::figures(plan, evidence, phase, &of_phase));
        figures.extend(demand::figures(plan, evidence, phase, &of_phase));
    }
    figures
}

/// The metrics that a phase may have figures of, but for `carried`.
fn all_metrics(plan: &Plan, phase: &Phase) -> Vec<Metric> {
    let mut metrics = metrics_of(phase);
    for metric in Metric::ALL {
        let named = is_named(plan, phase, metric);
        if named
            && !metrics.contains(&metric)
            && !matches!(metric, Metric::Carried | Metric::Demand | Metric::Choice | Metric::Database)
        {
            metrics.push(metric);
        }
    }
    metrics
}

/// Whether something in the plan reads this figure: an estimate, the report, an agreement, another phase.
fn is_named(plan: &Plan, phase: &Phase, metric: Metric) -> bool {
    let named = |of: &plan::MetricRef| of.phase == phase.name && of.metric == metric;
    is_published(plan, phase, metric)
        || plan.agreements.iter().any(|agreement| named(&agreement.left) || named(&agreement.right))
        || plan.phases.iter().any(|reader| {
            let shares = reader
                .axes
                .iter()
                .flat_map(|axis| &axis.levels)
                .any(|level| matches!(level, plan::Level::ShareOf { of, .. } if named(of)));
            shares || reader.gates.iter().any(|gate| matches!(gate, Gate::GeneratorProbe { of, .. } if named(of)))
        })
}

/// Whether the study publishes this figure: an estimate or the report names it.
pub(crate) fn is_published(plan: &Plan, phase: &Phase, metric: Metric) -> bool {
    let of_database = matches!(metric, Metric::DatabaseCpuPerRequest | Metric::DatabaseCoresUsed);
    let named = |of: &plan::MetricRef| {
        of.phase == phase.name && (of.metric == metric || of.metric == Metric::Database && of_database)
    };
    phase.estimates.iter().any(|estimate| estimate.metric == metric)
        || (phase.relevant_lower_bound && metric == Metric::Carried)
        || (phase.demand.is_some() && metric == Metric::Demand)
        || plan.report.items.iter().any(|item| match item {
            ReportItem::Table { of, .. } | ReportItem::BarChart { of, .. } | ReportItem::LineChart { of, .. } => {
                named(of)
            }
            ReportItem::CapacityPlan { of, not_possible, .. } => {
                *of == phase.name
                    && not_possible.is_none()
                    && matches!(metric, Metric::Throughput | Metric::CpuPerRequest | Metric::CoresUsed)
            }
        })
}

/// Whether the report shows this figure and it is one of a candidate: these answer the study's question.
pub(crate) fn answers(plan: &Plan, figure: &Figure) -> bool {
    let reported = plan.report.items.iter().any(|item| match item {
        ReportItem::Table { of, .. } | ReportItem::BarChart { of, .. } | ReportItem::LineChart { of, .. } => {
            of.phase == figure.phase && of.metric == figure.metric
        }
        ReportItem::CapacityPlan { of, not_possible, .. } => {
            *of == figure.phase && not_possible.is_none() && figure.metric == Metric::Throughput
        }
    });
    reported && figure.cell.iter().any(|(factor, _)| factor == "candidate")
}

/// A figure without a value yet.
pub(crate) fn blank(plan: &Plan, phase: &Phase, metric: Metric, cell: crate::mapping::Levels) -> Figure {
    Figure {
        name: format!("{}.{}", phase.name, metric.name()),
        phase: phase.name.clone(),
        metric,
        cell,
        outcome: Outcome::NotDetermined { why: "nothing was measured here".to_owned() },
        seen: None,
        unit: metric.unit().to_owned(),
        estimator: estimator_of(phase, metric).name().to_owned(),
        valid: 0,
        void: 0,
        bound: None,
        formula: formula(metric).to_owned(),
        rows: Vec::new(),
        rounding: ROUNDING.to_owned(),
        spread: None,
        published: is_published(plan, phase, metric),
        not_reproduced: false,
        notes: Vec::new(),
    }
}

fn one(
    plan: &Plan,
    evidence: &Evidence,
    phase: &Phase,
    cell: u32,
    metric: Metric,
    ended: &[&JudgedRepetition],
) -> Figure {
    let mut figure = blank(plan, phase, metric, cell_levels(phase, cell));
    let all: Vec<f64> = ended.iter().filter_map(|repetition| repetition.values.get(&metric).copied()).collect();
    figure.seen = seen(&all);
    let counting: Vec<&JudgedRepetition> = if metric == Metric::PacedCpuPerRequest {
        paced::usable(phase, ended)
    } else {
        ended.iter().copied().filter(|repetition| repetition.is_valid()).collect()
    };
    let with_value: Vec<(f64, &JudgedRepetition)> =
        counting.iter().filter_map(|repetition| Some((*repetition.values.get(&metric)?, *repetition))).collect();
    let values: Vec<f64> = with_value.iter().map(|(value, _)| *value).collect();
    figure.valid = values.len() as u32;
    figure.void = (ended.len() - values.len()) as u32;
    figure.rows = with_value.iter().map(|(_, repetition)| repetition.id.clone()).collect();
    figure.spread = stats::spread(&values);
    if metric == Metric::PacedCpuPerRequest {
        figure.notes.push(paced::note(&counting));
    }

    let excluded = candidate_of(plan, phase, cell)
        .filter(|_| !matches!(phase.procedure, Procedure::Pgbench(_)))
        .and_then(|candidate| evidence.excluded(plan, candidate));
    if let Some(why) = excluded {
        figure.outcome = Outcome::NotDetermined { why };
        return figure;
    }
    if values.len() < phase.repeat.valid as usize || values.is_empty() {
        figure.outcome = Outcome::NotDetermined { why: why_too_few(phase, metric, &counting, values.len(), ended) };
        return figure;
    }
    let estimated = estimate(&values, estimator_of(phase, metric), metric.unit());
    figure.outcome = estimated.outcome;
    figure.notes.extend(estimated.notes);
    figure.not_reproduced = estimated.not_reproduced;
    let remarked = |how: &str| {
        with_value.iter().filter(|(_, one)| one.remarks.iter().any(|remark| remark.starts_with(how))).count()
    };
    for (what, of) in [(CHECKPOINT, "of"), (BOTTLENECK, "in")] {
        let times = remarked(what);
        if times > 0 {
            figure.notes.push(format!("{what} {of} {times} of the {} repetitions", values.len()));
        }
    }
    if metric == Metric::PacedCpuPerRequest
        && let Some(why) = paced::contradiction(&with_value)
    {
        figure.outcome = Outcome::NotDetermined { why };
    }
    if metric == Metric::Throughput {
        figure.bound = bound(&with_value, estimated.row);
    }
    figure
}

fn why_too_few(
    phase: &Phase,
    metric: Metric,
    counting: &[&JudgedRepetition],
    with_value: usize,
    ended: &[&JudgedRepetition],
) -> String {
    if counting.len() < phase.repeat.valid as usize {
        let text = too_few(counting.len(), phase.repeat.valid, ended);
        return if metric == Metric::PacedCpuPerRequest { text.replacen("valid", "usable", 1) } else { text };
    }
    let missing = counting.iter().find_map(|repetition| repetition.missing.get(&metric));
    format!(
        "{with_value} of {} valid repetitions have it: {}",
        counting.len(),
        missing.map_or("it was not recorded", String::as_str)
    )
}

/// The sentence of a floor: of the repetition that gave the value, or of most of them.
fn bound(with_value: &[(f64, &JudgedRepetition)], row: Option<usize>) -> Option<String> {
    if let Some(row) = row {
        return with_value.get(row)?.1.limited_by.clone();
    }
    let limited: Vec<&String> =
        with_value.iter().filter_map(|(_, repetition)| repetition.limited_by.as_ref()).collect();
    if limited.len() * 2 > with_value.len() { limited.first().map(|sentence| (*sentence).clone()) } else { None }
}
