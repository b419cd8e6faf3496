//! The study's verdict and confidence: derived from what was determined, never typed.

use journal::RunEnd;
use plan::{Metric, Plan, Procedure};

use crate::carried::INVERTED;
use crate::evidence::Evidence;
use crate::judgement::{
    AgreementCheck, AgreementOutcome, Chosen, Confidence, ConfidenceLevel, Figure, Judgement, Outcome, Verdict,
    VerdictKind,
};
use crate::mapping::show;
use crate::repetition::unequal_quiet_times;
use crate::words::{percent, several};

/// An interval wider than this half-width, as a ratio, lowers the confidence.
const NARROW: f64 = 0.05;

/// Fewer valid repetitions lower the confidence: they give no 95 % interval of a median.
const ENOUGH: u32 = 6;

/// The figures that the verdict is about: those that the study publishes, or all where it publishes none by name.
fn published(figures: &[Figure]) -> Vec<&Figure> {
    let named: Vec<&Figure> = figures.iter().filter(|figure| figure.published).collect();
    if named.is_empty() { figures.iter().collect() } else { named }
}

/// Whether the figures may be published, and why.
pub(crate) fn verdict(plan: &Plan, evidence: &Evidence, judgement: &Judgement) -> Verdict {
    let Judgement { figures, choices, agreements, limits, .. } = judgement;
    let mut void = Vec::new();
    let mut reasons = Vec::new();
    let published = published(figures);
    // The study asks about its candidates: a figure of the database alone does not answer it.
    let answers: Vec<&Figure> = figures.iter().filter(|figure| crate::figure::answers(plan, figure)).collect();
    let decisive = if answers.is_empty() { &published } else { &answers };
    if !decisive.iter().any(|figure| figure.value().is_some()) {
        let paced = figures
            .iter()
            .filter(|figure| figure.metric == Metric::PacedCpuPerRequest && figure.value().is_some())
            .count();
        let beside = if paced > 0 {
            format!("; {}", several(paced, "estimate", "at quiet pace stands beside", "at quiet pace stand beside"))
        } else {
            String::new()
        };
        let whose = if answers.is_empty() { "" } else { " of a candidate that the report shows" };
        void.push(format!("no figure{whose} is determined{beside}"));
    }
    match &evidence.end {
        Some(RunEnd::Completed) => {}
        Some(RunEnd::Interrupted) => reasons.push("the run was interrupted before its end".to_owned()),
        Some(RunEnd::Failed(failure)) => reasons.push(format!("the run failed: {}", failure.what)),
        None => reasons.push("the run has not ended: it was killed, or goes on".to_owned()),
    }

    let excluded: Vec<String> =
        plan.candidates.iter().filter_map(|candidate| evidence.excluded(plan, &candidate.name)).collect();
    if !plan.candidates.is_empty() && excluded.len() == plan.candidates.len() {
        void.push("no candidate could be judged".to_owned());
    }
    // What is excluded has nothing determined, chosen or checked; that goes without repeating.
    let is_told = |why: &str| excluded.iter().any(|told| why.contains(told.as_str()));

    for agreement in agreements {
        if let Some(why) = &agreement.not_checked {
            reasons.push(format!("{}: not checked: {why}", agreement.name));
        }
        let mut not_checked: Groups<&str> = Vec::new();
        for pair in &agreement.cells {
            match &pair.check {
                AgreementCheck::Agrees => {}
                AgreementCheck::Disagrees { why } => void.push(format!("{} ({})", why, show(&pair.cell))),
                AgreementCheck::NotChecked { why } if is_told(why) => {}
                AgreementCheck::NotChecked { why } => {
                    // The figure's own reason follows with the figure.
                    gather(&mut not_checked, why.split(": ").next().unwrap_or(why), show(&pair.cell));
                }
            }
        }
        for (why, cells) in not_checked {
            reasons.push(format!("{}: not checked for {}: {why}", agreement.name, list(&cells)));
        }
    }
    reasons.extend(not_determined(&published).into_iter().filter(|reason| !is_told(reason)));
    for figure in &published {
        if let (Some(_), Some(bound)) = (figure.value(), &figure.bound) {
            reasons.push(format!("{} for {} is {bound}", figure.name, show(&figure.cell)));
        }
    }
    for choice in choices {
        if let Chosen::None { why } = &choice.outcome
            && !is_told(why)
        {
            reasons.push(format!("{}: no {} for {}: {why}", choice.phase, choice.factor, show(&choice.for_each)));
        }
    }
    let mut reasons = [excluded, reasons].concat();
    match limits.len() {
        0 => {}
        1 => reasons.push("a limit weakens what may be claimed".to_owned()),
        count => reasons.push(format!("{count} limits weaken what may be claimed")),
    }
    let kind = match (void.is_empty(), reasons.is_empty()) {
        (false, _) => VerdictKind::Void,
        (true, false) => VerdictKind::PublishedWithLimits,
        (true, true) => VerdictKind::Published,
    };
    void.extend(reasons);
    Verdict { kind, reasons: void }
}

/// Members by key, in the order of their first appearance.
type Groups<K> = Vec<(K, Vec<String>)>;

/// Adds a member to the group of this key, making the group where there is none.
fn gather<K: PartialEq>(groups: &mut Groups<K>, key: K, member: String) {
    match groups.iter_mut().find(|(other, _)| *other == key) {
        Some((_, members)) => members.push(member),
        None => groups.push((key, vec![member])),
    }
}

/// Cells in a sentence; a long list is cut.
fn list(cells: &[String]) -> String {
    match cells.len() {
        0..=4 => cells.join("; "),
        count => format!("{}; and {} more", cells[..3].join("; "), count - 3),
    }
}

/// One sentence for all figures of a phase that are not determined for the same reason: metrics of a cell first, then cells.
fn not_determined(published: &[&Figure]) -> Vec<String> {
    let mut of_cell: Groups<(&Figure, &str)> = Vec::new();
    for figure in published {
        let Outcome::NotDetermined { why } = &figure.outcome else {
            continue;
        };
        let metric = figure.metric.name().to_owned();
        let group = of_cell
            .iter_mut()
            .find(|((first, reason), _)| first.phase == figure.phase && first.cell == figure.cell && reason == why);
        match group {
            Some((_, metrics)) => metrics.push(metric),
            None => of_cell.push(((figure, why), vec![metric])),
        }
    }
    let mut groups: Groups<(&str, Vec<String>, &str)> = Vec::new();
    for ((first, why), metrics) in of_cell {
        gather(&mut groups, (first.phase.as_str(), metrics, why), show(&first.cell));
    }
    groups
        .into_iter()
        .map(|((phase, metrics, why), cells)| {
            let others = metrics.get(1..).filter(|others| !others.is_empty());
            let others = others.map_or_else(String::new, |others| format!(" (and {})", others.join(", ")));
            let verb = if metrics.len() == 1 { "is" } else { "are" };
            let first = metrics.first().map_or("", String::as_str);
            format!("{phase}.{first}{others} {verb} not determined for {}: {why}", list(&cells))
        })
        .collect()
}

/// How far the figures may be trusted, and what lowers it.
pub(crate) fn confidence(plan: &Plan, evidence: &Evidence, judgement: &Judgement) -> Confidence {
    let Judgement { figures, choices, agreements, verdict, quiet, .. } = judgement;
    let mut weighty = Vec::new();
    let mut light = Vec::new();
    if verdict.kind == VerdictKind::Void {
        weighty.push("the verdict is void".to_owned());
    }
    light.extend(plan.limits.iter().filter(|limit| limit.lowers_confidence).map(|limit| limit.text.clone()));
    let machine = &plan.machine;
    let shared = machine
        .candidate
        .shared_with(&machine.database.union(&machine.load))
        .union(&machine.database.shared_with(&machine.load));
    if !shared.is_empty() && !plan.limits.iter().any(|limit| limit.name == "cpus-shared" && limit.lowers_confidence) {
        light.push(format!("roles share CPU {shared}"));
    }
    match &evidence.environment {
        Some(environment) if environment.virtual_machine => {
            light.push("a hypervisor is beneath: neighbours on its cores are not visible from inside".to_owned());
        }
        Some(_) => {}
        None => light.push("nobody recorded where it ran".to_owned()),
    }

    light.extend(unequal_quiet_times(quiet));
    let determined: Vec<&Figure> = published(figures).into_iter().filter(|figure| figure.value().is_some()).collect();
    let few = determined.iter().filter(|figure| figure.valid < ENOUGH).map(|figure| figure.valid).min();
    if let Some(few) = few {
        light.push(format!(
            "some figure rests on {} only; {ENOUGH} give a 95 % interval of a median",
            several(few as usize, "repetition", "", "").trim_end()
        ));
    }
    let widest = determined.iter().filter_map(|figure| half_width(figure)).fold(0.0, f64::max);
    if widest > NARROW {
        light.push(format!("the widest interval is ± {}, more than {}", percent(widest), percent(NARROW)));
    }
    let alone = determined.iter().filter(|figure| figure.not_reproduced).count();
    if alone > 0 {
        light.push(several(alone, "best value", "was not reproduced within 2 %", "were not reproduced within 2 %"));
    }
    let inverted =
        determined.iter().filter(|figure| figure.notes.iter().any(|note| note.starts_with(INVERTED))).count();
    if inverted > 0 {
        light.push(several(inverted, "grid", "of rates is inverted somewhere", "of rates are inverted somewhere"));
    }
    let provisional = choices.iter().filter(|choice| choice.provisional.is_some()).count();
    if provisional > 0 {
        weighty.push(several(provisional, "choice", "is provisional", "are provisional"));
    }
    let floors = determined.iter().filter(|figure| figure.bound.is_some()).count();
    if floors > 0 {
        light.push(several(floors, "figure", "is a floor only", "are floors only"));
    }
    if determined.iter().any(|figure| matches!(figure.metric, Metric::Throughput | Metric::Carried))
        && !another_loop_agrees(plan, agreements)
    {
        light.push("a single kind of loop: no closed and open loop were held against each other".to_owned());
    }

    let level = match (weighty.len(), light.len()) {
        (0, 0) => ConfidenceLevel::High,
        (0, 1..=2) => ConfidenceLevel::Medium,
        _ => ConfidenceLevel::Low,
    };
    weighty.extend(light);
    Confidence { level, reasons: weighty }
}

/// Half the interval ÷ the value. The bracket of a carried rate has no coverage: it is the grid's step, not an uncertainty.
fn half_width(figure: &Figure) -> Option<f64> {
    match figure.outcome {
        Outcome::Determined { value, interval: Some((low, high)), coverage: Some(_) } => {
            let width = (high - low) / 2.0 / value;
            width.is_finite().then_some(width)
        }
        _ => None,
    }
}

fn another_loop_agrees(plan: &Plan, agreements: &[AgreementOutcome]) -> bool {
    let is_open = |name: &str| {
        plan.phase(name).is_some_and(|phase| matches!(&phase.procedure, Procedure::Load(load) if load.rate.is_some()))
    };
    agreements.iter().any(|agreement| {
        is_open(&agreement.left.phase) != is_open(&agreement.right.phase)
            && agreement.cells.iter().any(|pair| pair.check == AgreementCheck::Agrees)
            && agreement.cells.iter().all(|pair| !matches!(pair.check, AgreementCheck::Disagrees { .. }))
    })
}
