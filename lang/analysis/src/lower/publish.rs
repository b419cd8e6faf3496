//! Lowering of agreements and the report, whose figures must be measured and laid out without ambiguity.

use plan::{Agreement, Level, Metric, MetricRef, Phase, Plan, ReportItem};

use super::figures;
use super::phase::figure;
use super::{Faulty, check_figure};
use crate::codes;
use crate::names;
use crate::problems::{Problems, problem};
use crate::resolve::{Item, Study};
use crate::value::{Value, Valued};

fn reason<'a>(phase: &str, dropped: &'a [(String, String)]) -> Option<&'a str> {
    dropped.iter().find(|(name, _)| name == phase).map(|(_, why)| why.as_str())
}

/// The agreements. One whose phase fell away is kept and says that it is not checked.
pub fn agreements(
    study: &Study,
    plan: &mut Plan,
    dropped: &[(String, String)],
    faulty: &Faulty,
    problems: &mut Problems,
) {
    let mut lowered = Vec::new();
    for item in study.each("agreement") {
        let Some(between) = item.child("between") else { continue };
        let (Some(left), Some(right)) = (figure(between.args.first()), figure(between.args.get(1))) else { continue };
        let Some(within) = between.ratio("within") else { continue };
        let not_checked = [&left, &right].into_iter().find_map(|of| reason(&of.phase, dropped)).map(str::to_owned);
        if not_checked.is_none() && !faulty.is(&left.phase) && !faulty.is(&right.phase) {
            check_agreement(between, &left, &right, plan, problems);
        }
        lowered.push(Agreement { name: item.key.clone(), left, right, within, not_checked });
    }
    plan.agreements = lowered;
}

fn check_agreement(between: &Item, left: &MetricRef, right: &MetricRef, plan: &Plan, problems: &mut Problems) {
    let has_database = plan.database.is_some();
    let places: Vec<&Valued> = between.args.iter().take(2).collect();
    let (Some(left_phase), Some(right_phase)) = (plan.phase(&left.phase), plan.phase(&right.phase)) else { return };
    let measured = check_figure(left, left_phase, has_database, &places[0].at, problems)
        & check_figure(right, right_phase, has_database, &places[1].at, problems);
    if !measured {
        return;
    }
    if left == right {
        problems.push(problem(&codes::CONTRADICTION, &places[1].at, format!("`{left}` always agrees with itself")));
        return;
    }
    if left.metric.unit() != right.metric.unit() || left.metric.unit().is_empty() {
        problems.push(problem(
            &codes::CONTRADICTION,
            &places[1].at,
            format!(
                "`{left}` and `{right}` can't be compared: one is measured in {}, the other in {}",
                super::unit(left),
                super::unit(right)
            ),
        ));
        return;
    }
    // Each figure's axes are the other's too, or are chosen.
    for (of, source, other_of, other, valued) in
        [(left, left_phase, right, right_phase, places[0]), (right, right_phase, left, left_phase, places[1])]
    {
        let own = figures::axes(other, other_of.metric);
        super::check_maps(of, source, other, &own, &valued.at, problems);
    }
}

/// The report. Items whose phase fell away are dropped; the limits say so.
pub fn report(study: &Study, plan: &mut Plan, dropped: &[(String, String)], faulty: &Faulty, problems: &mut Problems) {
    let Some(report) = study.only("report") else { return };
    let mut items = Vec::new();
    for item in &report.children {
        let reads = figure(item.setting("of")).map(|of| of.phase).or_else(|| item.text("of").map(str::to_owned));
        if item.broken || crate::schema::level(item.kind()).is_some() || reads.is_some_and(|phase| faulty.is(&phase)) {
            continue;
        }
        let lowered = match item.kind() {
            "capacity-plan" => capacity_plan(study, item, plan, dropped, problems),
            _ => laid_out(study, item, plan, dropped, problems),
        };
        match lowered {
            Laid::Item(item) => items.push(item),
            Laid::Dropped(why) => plan.limits.push(plan::Limit {
                name: "not-reported".to_owned(),
                text: format!("{} is left out of the report: {why}.", heading(item)),
                lowers_confidence: false,
            }),
            Laid::Refused => {}
        }
    }
    plan.report.items = items;
}

enum Laid {
    Item(ReportItem),
    Dropped(String),
    Refused,
}

fn heading(item: &Item) -> String {
    match item.kind() {
        "capacity-plan" => "The capacity plan".to_owned(),
        "chart" => format!("The chart “{}”", item.args.get(1).and_then(Valued::text).unwrap_or_default()),
        _ => format!("The table “{}”", item.key),
    }
}

/// Tables and charts.
fn laid_out(study: &Study, item: &Item, plan: &Plan, dropped: &[(String, String)], problems: &mut Problems) -> Laid {
    let Some(of) = figure(item.setting("of")) else { return Laid::Refused };
    if let Some(why) = reason(&of.phase, dropped) {
        return Laid::Dropped(why.to_owned());
    }
    let Some(phase) = plan.phase(&of.phase) else { return Laid::Refused };
    let Some(valued) = item.setting("of") else { return Laid::Refused };
    if !check_figure(&of, phase, plan.database.is_some(), &valued.at, problems) {
        return Laid::Refused;
    }
    let is_chart = item.kind() == "chart";
    let names: [&str; 2] = if is_chart { ["by", "group"] } else { ["rows", "columns"] };
    let axes = figures::axes(phase, of.metric);
    let mut laid = Vec::new();
    for name in names {
        let Some(valued) = item.setting(name) else { continue };
        let Some(factor) = valued.text() else { continue };
        if !axes.contains(&factor) {
            // A factor that does not exist has its own diagnostic.
            let local = study.each("phase").flat_map(|phase| phase.each("factor"));
            let known = factor == "candidate" || study.each("factor").chain(local).any(|item| item.key == factor);
            if !known {
                return Laid::Refused;
            }
            let message = format!("`{of}` does not vary with `{factor}`");
            problems.push(
                problem(&codes::NOT_AN_AXIS, &valued.at, message)
                    .help(format!("it varies with {}", names::listed(axes.iter().copied()))),
            );
            return Laid::Refused;
        }
        if laid.contains(&factor) {
            let message = format!("`{factor}` is both `{}` and `{}`", names[0], names[1]);
            problems.push(problem(&codes::CONTRADICTION, &valued.at, message));
            return Laid::Refused;
        }
        laid.push(factor);
    }
    // A table has a row for each combination of what is left; a bar has one height.
    let open: Vec<&str> = match is_chart {
        true => axes.iter().copied().filter(|axis| !laid.contains(axis)).collect(),
        false => Vec::new(),
    };
    if !open.is_empty() {
        let message = format!(
            "`{of}` varies with {} too, so several values would share one place",
            names::listed(open.iter().copied())
        );
        problems.push(
            problem(&codes::NOT_AN_AXIS, &item.name_at, message).help(format!("write `{}={}`", names[1], open[0])),
        );
        return Laid::Refused;
    }
    let setting = |name: &str| item.text(name).map(str::to_owned);
    Laid::Item(if is_chart {
        let title = item.args.get(1).and_then(Valued::text).unwrap_or_default().to_owned();
        let (by, group) = (setting("by").unwrap_or_default(), setting("group"));
        if item.variant.is_some_and(|variant| variant.name == "line") {
            if !matches!(of.metric, Metric::Memory | Metric::Throughput) || !is_under_load(phase) {
                let message = format!("`{of}` has one value per repetition, and no course over the window");
                problems.push(
                    problem(&codes::NOT_AN_AXIS, &valued.at, message)
                        .help("`memory` and `throughput` of a load have one; write `chart bar`, or a table"),
                );
                return Laid::Refused;
            }
            ReportItem::LineChart { title, of, by, group }
        } else {
            ReportItem::BarChart { title, of, by, group }
        }
    } else {
        ReportItem::Table {
            title: item.key.clone(),
            of,
            rows: setting("rows").unwrap_or_default(),
            columns: setting("columns"),
        }
    })
}

/// Whether a candidate gets load: only then is anything recorded over the window.
fn is_under_load(phase: &Phase) -> bool {
    matches!(phase.procedure, plan::Procedure::Load(_))
}

fn capacity_plan(
    study: &Study,
    item: &Item,
    plan: &Plan,
    dropped: &[(String, String)],
    problems: &mut Problems,
) -> Laid {
    let (Some(of), Some(cores)) = (item.text("of"), item.integer("cores")) else { return Laid::Refused };
    if let Some(why) = reason(of, dropped) {
        return Laid::Dropped(why.to_owned());
    }
    let Some(phase) = plan.phase(of) else { return Laid::Refused };
    let Some(valued) = item.setting("of") else { return Laid::Refused };
    let ceiling = MetricRef { phase: of.to_owned(), metric: Metric::Throughput };
    if !check_figure(&ceiling, phase, plan.database.is_some(), &valued.at, problems) {
        return Laid::Refused;
    }
    let Some(axis) = phase.axes.iter().find(|axis| axis.factor == "cores") else {
        let message = format!("phase `{of}` does not vary `cores`, which a capacity plan counts in");
        problems.push(problem(&codes::NOT_AN_AXIS, &valued.at, message).help("write `over candidate cores` there"));
        return Laid::Refused;
    };
    let other: Vec<&str> = phase
        .axes
        .iter()
        .map(|axis| axis.factor.as_str())
        .filter(|factor| !matches!(*factor, "candidate" | "cores"))
        .collect();
    if !other.is_empty() {
        let message = format!("phase `{of}` also varies {}, so it has several ceilings", names::listed(other));
        problems.push(problem(&codes::NOT_AN_AXIS, &valued.at, message));
        return Laid::Refused;
    }
    let targets = match item.setting("targets").map(|valued| &valued.value) {
        Some(Value::List(list)) => list
            .iter()
            .filter_map(|valued| match valued.value {
                Value::Number(number) => Some(number),
                _ => None,
            })
            .collect(),
        _ => return Laid::Refused,
    };
    let mut not_possible = None;
    if !axis.levels.contains(&Level::Integer(cores)) {
        if declares(study, phase, cores) {
            not_possible = Some(format!("{cores} cores are not measured on machine `{}`", plan.machine.name));
        } else if let Some(valued) = item.setting("cores") {
            let levels: Vec<String> = axis.levels.iter().map(ToString::to_string).collect();
            let message = format!("phase `{of}` never measures {cores} cores");
            problems.push(
                problem(&codes::LEVEL_OUT_OF_REACH, &valued.at, message)
                    .help(format!("it measures {}", names::listed(levels.iter().map(String::as_str)))),
            );
            return Laid::Refused;
        }
    }
    Laid::Item(ReportItem::CapacityPlan { of: of.to_owned(), cores, targets, not_possible })
}

/// Whether the study's factor has that many cores, though the machine may leave them out.
fn declares(study: &Study, phase: &Phase, cores: i64) -> bool {
    let local = study.find("phase", &phase.name).and_then(|item| item.keyed("factor", "cores"));
    local
        .or_else(|| study.find("factor", "cores"))
        .is_some_and(|factor| factor.args.iter().any(|valued| valued.value == Value::Integer(cores)))
}
