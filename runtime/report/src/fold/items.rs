//! The report's items: tables, charts, choices and capacity plans, made of figures.

use judge::Judgement;
use plan::{Metric, MetricRef, Phase, Plan, Procedure, Rate, ReportItem};

use super::label;
use crate::history::History;
use crate::model::{
    Bar, BarChart, CapacityPlan, CapacityRow, Cell, ChoiceTable, Figure, Item, Level, Line, LineChart, Need, Point,
    Repetition, Row, Table, Trace,
};
use crate::render::words;

/// The metrics that a table of [`Metric::Database`] shows.
const DATABASE: [Metric; 2] = [Metric::DatabaseCpuPerRequest, Metric::DatabaseCoresUsed];

/// How a capacity plan is derived.
const CAPACITY_FORMULA: &str = "instances = ⌈target ÷ ceiling of one instance⌉; cores = target ÷ ceiling × cores of one \
    instance, which is target × CPU per request ÷ attained utilisation";

/// What every builder of an item reads.
struct Context<'a> {
    plan: &'a Plan,
    history: &'a History,
    judgement: &'a Judgement,
    figures: &'a [Figure],
    repetitions: &'a [Repetition],
}

/// The items, in the study's order.
pub(super) fn items(
    plan: &Plan,
    history: &History,
    judgement: &Judgement,
    figures: &[Figure],
    repetitions: &[Repetition],
) -> Vec<Item> {
    let context = Context { plan, history, judgement, figures, repetitions };
    plan.report.items.iter().map(|item| context.item(item)).collect()
}

/// One factor of a figure and its levels.
struct FigureAxis {
    factor: String,
    levels: Vec<String>,
}

impl Context<'_> {
    fn item(&self, item: &ReportItem) -> Item {
        match item {
            ReportItem::Table { title, of, .. } if of.metric == Metric::Choice => {
                Item::Choices(self.choices(title, of))
            }
            ReportItem::Table { title, of, rows, columns } => {
                Item::Table(self.table(title, of, rows, columns.as_deref()))
            }
            ReportItem::BarChart { title, of, by, group } => {
                Item::BarChart(self.chart(title, of, by, group.as_deref()))
            }
            ReportItem::LineChart { title, of, by, group } => {
                Item::LineChart(self.lines(title, of, by, group.as_deref()))
            }
            ReportItem::CapacityPlan { of, cores, targets, not_possible } => {
                Item::CapacityPlan(self.capacity(of, *cores, targets, not_possible.as_deref()))
            }
        }
    }

    /// The factors of a figure with their levels. What a `carried` or `demand` figure is made over is not among them.
    fn axes(&self, of: &MetricRef) -> Vec<FigureAxis> {
        let Some(phase) = self.plan.phase(&of.phase) else { return Vec::new() };
        let decided = match &phase.procedure {
            _ if of.metric == Metric::Demand => phase.demand.as_deref(),
            Procedure::Load(load) if of.metric == Metric::Carried => match &load.rate {
                Some(Rate::Factor(factor)) => Some(factor.as_str()),
                _ => None,
            },
            _ => None,
        };
        phase
            .axes
            .iter()
            .filter(|axis| Some(axis.factor.as_str()) != decided)
            .map(|axis| FigureAxis {
                factor: axis.factor.clone(),
                levels: axis.levels.iter().map(ToString::to_string).collect(),
            })
            .collect()
    }

    /// The figure of a metric at these levels, whatever their order.
    fn cell(&self, phase: &str, metric: Metric, levels: &[Level]) -> Cell {
        let found = self.figures.iter().position(|figure| {
            figure.phase == phase
                && figure.metric == metric
                && figure.cell.len() == levels.len()
                && levels.iter().all(|level| figure.level(&level.factor) == Some(level.level.as_str()))
        });
        match found {
            Some(figure) => Cell { figure: Some(figure), missing: None },
            None => Cell { figure: None, missing: Some(self.why_missing(phase, metric, levels)) },
        }
    }

    fn why_missing(&self, phase: &str, metric: Metric, levels: &[Level]) -> String {
        let candidate = levels.iter().find(|level| level.factor == "candidate").map(|level| level.level.as_str());
        if let Some(candidate) = candidate {
            if let Some(note) = self.history.not_measured.iter().find(|note| note.candidate == candidate) {
                return format!("not measured: {}", note.why);
            }
            if let Some(why) = self.judgement_excludes(candidate) {
                return why;
            }
        }
        match self.plan.phase(phase) {
            None => format!("the plan has no phase {phase}"),
            Some(_) if !self.history.attempts.iter().any(|attempt| attempt.id.phase == phase) => {
                format!("phase {phase} was not reached")
            }
            Some(_) => format!("no repetition of {phase} yields {}", metric.name()),
        }
    }

    fn judgement_excludes(&self, candidate: &str) -> Option<String> {
        let contract = self.history.contracts.iter().find(|contract| contract.candidate == candidate)?;
        let failed = contract.cases.iter().filter(|case| case.problem.is_some()).count();
        (failed > 0).then(|| format!("failed {failed} of {} contract cases", contract.cases.len()))
    }

    fn table(&self, title: &str, of: &MetricRef, rows: &str, columns: Option<&str>) -> Table {
        let axes = self.axes(of);
        let metrics: Vec<Metric> = if of.metric == Metric::Database { DATABASE.to_vec() } else { vec![of.metric] };
        let column_axis = columns.and_then(|factor| axes.iter().find(|axis| axis.factor == factor));
        let (fixed, varying): (Vec<&FigureAxis>, Vec<&FigureAxis>) = axes
            .iter()
            .filter(|axis| Some(axis.factor.as_str()) != columns && axis.factor != rows)
            .partition(|axis| axis.levels.len() == 1);
        let fixed: Vec<Level> =
            fixed.iter().map(|axis| Level { factor: axis.factor.clone(), level: axis.levels[0].clone() }).collect();
        let row_axes: Vec<&FigureAxis> =
            axes.iter().filter(|axis| axis.factor == rows).chain(varying.iter().copied()).collect();

        let mut heads = Vec::new();
        let mut column_levels: Vec<(Metric, Option<Level>)> = Vec::new();
        for &metric in &metrics {
            match column_axis {
                None => {
                    heads.push(words::metric(metric).to_owned());
                    column_levels.push((metric, None));
                }
                Some(axis) => {
                    for level in &axis.levels {
                        let head = words::level(&axis.factor, level);
                        heads.push(if metrics.len() > 1 { format!("{}, {head}", words::metric(metric)) } else { head });
                        column_levels.push((metric, Some(Level { factor: axis.factor.clone(), level: level.clone() })));
                    }
                }
            }
        }
        let rows = product(&row_axes)
            .into_iter()
            .map(|levels| {
                let cells = column_levels
                    .iter()
                    .map(|(metric, column)| {
                        let mut all = levels.clone();
                        all.extend(column.clone());
                        all.extend(fixed.iter().cloned());
                        self.cell(&of.phase, *metric, &all)
                    })
                    .collect();
                Row { label: self.row_label(&of.phase, &levels), levels, cells }
            })
            .collect();
        Table {
            title: title.to_owned(),
            of: of.to_string(),
            about: self.about(of, &metrics),
            fixed,
            columns: heads,
            rows,
        }
    }

    fn row_label(&self, phase: &str, levels: &[Level]) -> String {
        if levels.is_empty() {
            return phase.to_owned();
        }
        levels
            .iter()
            .map(|level| {
                if level.factor == "candidate" {
                    label(self.plan, &level.level)
                } else {
                    words::level(&level.factor, &level.level)
                }
            })
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn about(&self, of: &MetricRef, metrics: &[Metric]) -> String {
        metrics
            .iter()
            .map(|&metric| {
                let estimator = self
                    .figures
                    .iter()
                    .find(|figure| figure.phase == of.phase && figure.metric == metric)
                    .map(|figure| figure.estimator.as_str())
                    .filter(|estimator| !estimator.is_empty())
                    .map_or(String::new(), |estimator| format!(", by {estimator}"));
                format!("`{}.{}`: {}{estimator}", of.phase, metric.name(), words::definition(metric))
            })
            .collect::<Vec<_>>()
            .join("; ")
    }

    fn chart(&self, title: &str, of: &MetricRef, by: &str, group: Option<&str>) -> BarChart {
        let axes = self.axes(of);
        // One bar per cell: the factor of the axis first, then what it is compared within, then whatever else varies.
        let mut ordered: Vec<&FigureAxis> = Vec::new();
        for factor in [Some(by), group].into_iter().flatten() {
            ordered.extend(axes.iter().filter(|axis| axis.factor == factor));
        }
        ordered.extend(axes.iter().filter(|axis| axis.factor != by && Some(axis.factor.as_str()) != group));
        let bars = product(&ordered)
            .into_iter()
            .map(|levels| {
                let cell = self.cell(&of.phase, of.metric, &levels);
                let value = cell.figure.and_then(|index| self.figures[index].value);
                let shown: Vec<Level> = levels
                    .iter()
                    .filter(|level| {
                        Some(level.factor.as_str()) != group
                            && (level.factor == by
                                || axes.iter().any(|axis| axis.factor == level.factor && axis.levels.len() > 1))
                    })
                    .cloned()
                    .collect();
                Bar {
                    label: self.row_label(&of.phase, &shown),
                    group: levels
                        .iter()
                        .find(|level| Some(level.factor.as_str()) == group)
                        .map(|level| words::level(&level.factor, &level.level)),
                    points: self.points(&of.phase, of.metric, &levels),
                    cell,
                    value,
                }
            })
            .collect();
        BarChart {
            title: title.to_owned(),
            of: of.to_string(),
            about: self.about(of, &[of.metric]),
            unit: of.metric.unit().to_owned(),
            bars,
        }
    }

    fn lines(&self, title: &str, of: &MetricRef, by: &str, group: Option<&str>) -> LineChart {
        let axes = self.axes(of);
        let mut ordered: Vec<&FigureAxis> = Vec::new();
        for factor in [Some(by), group].into_iter().flatten() {
            ordered.extend(axes.iter().filter(|axis| axis.factor == factor));
        }
        ordered.extend(axes.iter().filter(|axis| axis.factor != by && Some(axis.factor.as_str()) != group));
        let lines = product(&ordered)
            .into_iter()
            .map(|levels| {
                let cell = self.cell(&of.phase, of.metric, &levels);
                let determined = cell.figure.is_some_and(|index| self.figures[index].value.is_some());
                let shown: Vec<Level> = levels
                    .iter()
                    .filter(|level| {
                        level.factor == by
                            || axes.iter().any(|axis| axis.factor == level.factor && axis.levels.len() > 1)
                    })
                    .cloned()
                    .collect();
                let repetitions = self.traces(&of.phase, of.metric, &levels);
                Line {
                    label: self.row_label(&of.phase, &shown),
                    points: if determined { medians(&repetitions) } else { Vec::new() },
                    repetitions,
                    cell,
                }
            })
            .collect();
        LineChart {
            title: title.to_owned(),
            of: of.to_string(),
            about: format!(
                "`{of}` over the window: {}; each line is the median of the cell's valid repetitions at each moment",
                words::definition(of.metric)
            ),
            unit: of.metric.unit().to_owned(),
            lines,
        }
    }

    /// The course of every repetition of the cells at these levels.
    fn traces(&self, phase: &str, metric: Metric, levels: &[Level]) -> Vec<Trace> {
        let Some(found) = self.plan.phase(phase) else { return Vec::new() };
        self.repetitions
            .iter()
            .filter(|repetition| repetition.phase == phase && is_at(found, repetition.cell, levels))
            .filter_map(|repetition| {
                Some(Trace {
                    repetition: repetition.id.clone(),
                    valid: repetition.valid,
                    points: repetition.course.get(metric.name())?.clone(),
                })
            })
            .collect()
    }

    /// The values of every repetition of the cells at these levels.
    fn points(&self, phase: &str, metric: Metric, levels: &[Level]) -> Vec<Point> {
        let Some(found) = self.plan.phase(phase) else { return Vec::new() };
        self.repetitions
            .iter()
            .filter(|repetition| repetition.phase == phase && is_at(found, repetition.cell, levels))
            .filter_map(|repetition| {
                Some(Point {
                    repetition: repetition.id.clone(),
                    value: *repetition.values.get(metric.name())?,
                    valid: repetition.valid,
                })
            })
            .collect()
    }

    fn choices(&self, title: &str, of: &MetricRef) -> ChoiceTable {
        let choices: Vec<usize> = (0..self.judgement.choices.len())
            .filter(|&index| self.judgement.choices[index].phase == of.phase)
            .collect();
        let phase = self.plan.phase(&of.phase);
        let factor = phase.and_then(|phase| phase.choose.as_ref()).map(|choice| choice.factor.clone());
        let missing = if !choices.is_empty() {
            None
        } else if factor.is_none() {
            Some(format!("phase {} chooses nothing", of.phase))
        } else {
            Some(format!("phase {} was not reached", of.phase))
        };
        ChoiceTable {
            title: title.to_owned(),
            phase: of.phase.clone(),
            factor: factor.unwrap_or_default(),
            choices,
            missing,
        }
    }

    fn capacity(&self, of: &str, cores: i64, targets: &[f64], not_possible: Option<&str>) -> CapacityPlan {
        let axes = self.axes(&MetricRef { phase: of.to_owned(), metric: Metric::Throughput });
        let has_cores = axes.iter().any(|axis| axis.factor == "cores");
        let wanted = cores.to_string();
        let cells = product(&axes.iter().collect::<Vec<_>>());
        let rows = if not_possible.is_some() {
            Vec::new()
        } else {
            cells
                .into_iter()
                .filter(|levels| {
                    !has_cores || levels.iter().any(|level| level.factor == "cores" && level.level == wanted)
                })
                .map(|levels| self.capacity_row(of, cores, targets, &levels))
                .collect()
        };
        CapacityPlan {
            title: format!("Capacity plan: instances of {} each", words::level("cores", &wanted)),
            of: of.to_owned(),
            cores,
            not_possible: not_possible.map(str::to_owned),
            formula: CAPACITY_FORMULA.to_owned(),
            targets: targets.to_vec(),
            rows,
        }
    }

    fn capacity_row(&self, of: &str, cores: i64, targets: &[f64], levels: &[Level]) -> CapacityRow {
        let cell = self.cell(of, Metric::Throughput, levels);
        let candidate = levels
            .iter()
            .find(|level| level.factor == "candidate")
            .map_or_else(|| of.to_owned(), |level| level.level.clone());
        let shown: Vec<Level> = levels.iter().filter(|level| level.factor != "cores").cloned().collect();
        let figure = cell.figure.map(|index| &self.figures[index]);
        let ceiling = figure.and_then(|figure| figure.value).filter(|&ceiling| ceiling > 0.0);
        let missing = match (figure, ceiling) {
            (_, Some(_)) => None,
            (Some(figure), None) => Some(words::figure_value(figure)),
            (None, None) => cell.missing,
        };
        CapacityRow {
            candidate,
            label: self.row_label(of, &shown),
            ceiling,
            upper_bound: figure.is_some_and(|figure| figure.bound.is_some()),
            missing,
            needs: ceiling.map_or(Vec::new(), |ceiling| {
                targets
                    .iter()
                    .map(|&target| Need {
                        target,
                        instances: (target / ceiling).ceil().max(0.0) as u64,
                        cores: target / ceiling * cores as f64,
                    })
                    .collect()
            }),
        }
    }
}

/// The median of the valid repetitions at each moment at which one of them has a value. Where another one was not looked at, it
/// counts with the value on the line between its neighbours.
fn medians(repetitions: &[Trace]) -> Vec<(f64, f64)> {
    let valid: Vec<&Trace> = repetitions.iter().filter(|trace| trace.valid && !trace.points.is_empty()).collect();
    let mut moments: Vec<f64> = valid.iter().flat_map(|trace| &trace.points).map(|(seconds, _)| *seconds).collect();
    moments.sort_by(f64::total_cmp);
    moments.dedup();
    let values =
        |seconds: f64| -> Vec<f64> { valid.iter().filter_map(|trace| between(&trace.points, seconds)).collect() };
    moments.into_iter().filter_map(|seconds| Some((seconds, stats::median(&values(seconds))?))).collect()
}

/// The value of a course at a moment: on the line between its neighbours; the first or last one's outside of them.
fn between(points: &[(f64, f64)], seconds: f64) -> Option<f64> {
    let after = points.partition_point(|(at, _)| *at < seconds);
    match (after.checked_sub(1).and_then(|before| points.get(before)), points.get(after)) {
        (Some((from, left)), Some((to, right))) if to > from => {
            Some(left + (right - left) * (seconds - from) / (to - from))
        }
        (left, right) => right.or(left).map(|(_, value)| *value),
    }
}

/// Whether a cell of a phase has all these levels.
fn is_at(phase: &Phase, cell: u32, levels: &[Level]) -> bool {
    let Some(cell) = phase.cells.get(cell as usize) else { return false };
    levels.iter().all(|wanted| {
        phase
            .axes
            .iter()
            .zip(&cell.levels)
            .any(|(axis, level)| axis.factor == wanted.factor && level.to_string() == wanted.level)
    })
}

/// Every combination of the axes' levels, the first axis varying slowest.
fn product(axes: &[&FigureAxis]) -> Vec<Vec<Level>> {
    let mut rows = vec![Vec::new()];
    for axis in axes {
        rows = rows
            .into_iter()
            .flat_map(|row: Vec<Level>| {
                axis.levels.iter().map(move |level| {
                    let mut longer = row.clone();
                    longer.push(Level { factor: axis.factor.clone(), level: level.clone() });
                    longer
                })
            })
            .collect();
    }
    rows
}
