//! One value of a cell's repetitions, by the declared estimator.

use plan::{Estimator, Metric, Phase};

use crate::judgement::{JudgedRepetition, Outcome, Seen};
use crate::words::{number, percent, with_unit};

/// Coverage that is asked of an interval.
pub(crate) const COVERAGE: f64 = 0.95;

/// A maximum that the second best misses by more than this ratio was not reproduced.
pub(crate) const REPRODUCED: f64 = 0.02;

/// An estimate with what has to stand beside it.
pub(crate) struct Estimated {
    pub outcome: Outcome,
    pub notes: Vec<String>,
    /// Place of the value's own repetition, where it is one repetition's.
    pub row: Option<usize>,
    /// Whether the maximum was not reproduced.
    pub not_reproduced: bool,
}

/// The estimator of a metric in a phase: the declared one, else the median.
pub(crate) fn estimator_of(phase: &Phase, metric: Metric) -> Estimator {
    let declared = phase.estimates.iter().find(|estimate| estimate.metric == metric).map(|estimate| estimate.by);
    declared.unwrap_or(if matches!(metric, Metric::Carried | Metric::Demand) {
        Estimator::Majority
    } else {
        Estimator::Median
    })
}

/// Reduces values of valid repetitions.
pub(crate) fn estimate(values: &[f64], by: Estimator, unit: &str) -> Estimated {
    let nothing = |why: &str| Estimated {
        outcome: Outcome::NotDetermined { why: why.to_owned() },
        notes: Vec::new(),
        row: None,
        not_reproduced: false,
    };
    match by {
        Estimator::Best | Estimator::BestOfValid => {
            let Some(best) = stats::best(values) else {
                return nothing("there is no finite value");
            };
            let not_reproduced = best.gap.is_none_or(|gap| gap > REPRODUCED);
            let mut notes = vec![match best.gap {
                None => "a single repetition: nobody reproduced it".to_owned(),
                Some(gap) if not_reproduced => format!(
                    "the maximum was not reproduced: the second best is {} below it, more than {}",
                    percent(gap),
                    percent(REPRODUCED)
                ),
                Some(gap) => format!("the maximum was reproduced: the second best is {} below it", percent(gap)),
            }];
            if values.len() > 1 {
                notes.push(format!("the median is {}", with_unit(best.median, unit)));
            }
            Estimated {
                outcome: Outcome::Determined { value: best.value, interval: None, coverage: None },
                notes,
                row: Some(best.index),
                not_reproduced,
            }
        }
        Estimator::Median => {
            let Some(value) = stats::median(values) else {
                return nothing("there is no finite value");
            };
            let interval = stats::median_interval(values, COVERAGE);
            let notes = match interval {
                Some(_) => Vec::new(),
                None => vec![format!(
                    "{} repetitions give no {} interval of a median, six do",
                    values.len(),
                    percent(COVERAGE)
                )],
            };
            determined(value, interval, notes)
        }
        Estimator::Mean => match stats::mean(values) {
            None => nothing("there is no finite value"),
            Some(value) => determined(value, stats::mean_interval(values, COVERAGE), Vec::new()),
        },
        Estimator::Majority => nothing("a majority is of votes, and this is a value"),
    }
}

fn determined(value: f64, interval: Option<stats::Interval>, notes: Vec<String>) -> Estimated {
    Estimated {
        outcome: Outcome::Determined {
            value,
            interval: interval.map(|interval| (interval.low, interval.high)),
            coverage: interval.map(|interval| interval.coverage),
        },
        notes,
        row: None,
        not_reproduced: false,
    }
}

/// What all measured repetitions showed of a metric.
pub(crate) fn seen(values: &[f64]) -> Option<Seen> {
    Some(Seen {
        min: stats::quantile(values, 0.0)?,
        median: stats::median(values)?,
        max: stats::quantile(values, 1.0)?,
        n: values.len() as u32,
    })
}

/// Why a cell has fewer valid repetitions than wanted: `2 of 6 valid repetitions; of 9 that ended 7 are void: pace 6, steal 2`.
pub(crate) fn too_few(valid: usize, wanted: u32, ended: &[&JudgedRepetition]) -> String {
    if ended.is_empty() {
        return "nothing was measured here".to_owned();
    }
    let mut gates: Vec<(&str, usize)> = Vec::new();
    for gate in ended.iter().flat_map(|repetition| repetition.failed_gates()) {
        match gates.iter_mut().find(|(name, _)| *name == gate.gate) {
            Some((_, count)) => *count += 1,
            None => gates.push((&gate.gate, 1)),
        }
    }
    gates.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(right.0)));
    let void = ended.iter().filter(|repetition| !repetition.is_valid()).count();
    let named: Vec<String> = gates
        .iter()
        .map(|(gate, count)| match *gate {
            crate::judgement::NOT_MEASURED => format!("not measurable {count}"),
            gate => format!("{gate} {count}"),
        })
        .collect();
    let reasons = if void == 0 {
        String::new()
    } else {
        format!(
            "; of {} that ended, {void} {} void: {}",
            ended.len(),
            if void == 1 { "is" } else { "are" },
            named.join(", ")
        )
    };
    format!("{valid} of {wanted} valid repetitions{reasons}")
}

/// The formula of a metric.
pub(crate) fn formula(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "Σ answers as expected ÷ window on the monotonic clock",
        Metric::CpuPerRequest => "CPU time of the candidate in the window ÷ Σ answers as expected",
        Metric::PacedCpuPerRequest => {
            "CPU time of the candidate ÷ Σ answers as expected × pace × (1 − steal share); pace = quiet time ÷ mean of the samples, \
             each capped at 3 × the quiet time"
        }
        Metric::CoresUsed => "CPU time of the candidate in the window ÷ window",
        Metric::DatabaseCpuPerRequest => "CPU time of the database in the window ÷ Σ answers as expected",
        Metric::DatabaseCoresUsed => "CPU time of the database in the window ÷ window",
        Metric::Database => "CPU time of the database per answer, and its cores used",
        Metric::Memory => "largest memory of the candidate seen within the window",
        Metric::MemoryGrowth => {
            "slope of the candidate's memory over the window: least squares over the largest memory of each slice"
        }
        Metric::StartTime => {
            "first ready answer complete − start asked for; looked at every ms, every hundredth of the time passed where that is more"
        }
        Metric::StartCpu => "CPU time of the candidate from its start to its first ready answer",
        Metric::ServiceP50 => "50th percentile of request sent → last byte, histograms of all streams merged",
        Metric::ServiceP99 => "99th percentile of request sent → last byte, histograms of all streams merged",
        Metric::TtfbP99 => "99th percentile of request sent → first byte, histograms of all streams merged",
        Metric::CorrectedP50 => "50th percentile of due → last byte, histograms of all streams merged",
        Metric::CorrectedP99 => "99th percentile of due → last byte, histograms of all streams merged",
        Metric::CorrectedP999 => "99.9th percentile of due → last byte, histograms of all streams merged",
        Metric::Achieved => "Σ answers as expected ÷ Σ requests due",
        Metric::Errors => "Σ failed + timed out + unanswered + unsent",
        Metric::Tps => "transactions per second as pgbench says, without the time to connect",
        Metric::TransactionLatency => "mean latency of a transaction as pgbench says",
        Metric::Carried => {
            "highest rate carried in more than half of its valid repetitions, below the lowest rate that was not"
        }
        Metric::Demand => {
            "smallest amount of the resource from which on every one carried the load in more than half of its valid repetitions"
        }
        Metric::Choice => "level with the largest estimate",
    }
}

/// The rounding rule of every value in a judgement.
pub(crate) const ROUNDING: &str = "none: kept in full; printed to nearest, ties to even";

/// `4,120/s` of a rate, for sentences.
pub(crate) fn rate(value: f64) -> String {
    format!("{}/s", number(value))
}
