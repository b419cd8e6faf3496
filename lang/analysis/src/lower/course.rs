//! Lowering of an open loop's rate: a constant, ramps and steps, or the streams' own rates; exactly one of them.

use plan::Leg;
use syntax::Location;

use super::phase::own;
use crate::codes;
use crate::names;
use crate::problems::{Problems, problem};
use crate::resolve::{Item, Study};
use crate::schema::{RAMP, STEP};
use crate::value::units::as_duration;
use crate::value::{Value, Valued};

/// The ramps and steps of a load, in the order of the study.
pub fn nodes(load: &Item) -> Vec<&Item> {
    load.children.iter().filter(|child| [RAMP.name, STEP.name].contains(&child.kind())).collect()
}

/// The legs of a load's course. Those that can't be read are left out; they have a diagnostic.
pub fn legs(load: &Item, problems: &mut Problems) -> Vec<Leg> {
    let mut legs = Vec::new();
    for node in nodes(load) {
        let (from, to, length) = if node.kind() == RAMP.name {
            (node.setting("from"), node.setting("to"), node.setting("over"))
        } else {
            (node.setting("rate"), node.setting("rate"), node.setting("for"))
        };
        let mut rate = |valued: Option<&Valued>| match valued.map(|valued| (&valued.value, &valued.at)) {
            Some((Value::Rate(rate), _)) => Some(*rate),
            Some((Value::Reference { name, .. }, at)) => {
                let message = format!(
                    "`{} {}` has the rate `${{{name}}}`, and a leg is the same in every cell",
                    node.kind(),
                    node.key
                );
                let help = "write a rate such as \"500/s\"; `load open rate=\"${…}\"` varies a constant rate";
                problems.push(problem(&codes::WRONG_TYPE, at, message).help(help));
                None
            }
            _ => None,
        };
        let (Some(from), Some(to)) = (rate(from), rate(to)) else { continue };
        match length.map(|valued| (&valued.value, &valued.at)) {
            Some((Value::Duration(0), at)) => {
                let message = format!("`{} {}` takes no time", node.kind(), node.key);
                problems.push(problem(&codes::OUT_OF_RANGE, at, message).help("give it a length, or remove it"));
            }
            Some((Value::Duration(ns), _)) => legs.push(Leg { from, to, for_ns: ns.unsigned_abs() }),
            _ => {}
        }
    }
    legs
}

/// The streams of a workload that have rates of their own: name, rate per second, and where it stands.
pub fn own_rates<'a>(study: &'a Study, workload: &str) -> Vec<(&'a str, f64, &'a Location)> {
    let Some(workload) = study.find("workload", workload) else { return Vec::new() };
    workload
        .each("stream")
        .filter_map(|stream| match stream.setting("rate").map(|valued| (&valued.value, &valued.at)) {
            Some((Value::Rate(rate), at)) => Some((stream.key.as_str(), *rate, at)),
            _ => None,
        })
        .collect()
}

/// What says how fast a load goes.
pub struct Sources<'a> {
    /// Whether the loop is open.
    pub open: bool,
    /// The load's rate.
    pub rate: Option<&'a Valued>,
    /// Its ramps and steps.
    pub legs: Vec<&'a Item>,
    /// Its streams' own rates.
    pub own: &'a [(&'a str, f64, &'a Location)],
}

/// An open loop has exactly one of a rate, legs and streams' own rates; a closed loop has none.
pub fn check_sources(item: &Item, load: &Item, sources: &Sources<'_>, problems: &mut Problems) {
    if load.broken || load.args.is_empty() {
        return;
    }
    let legs: Vec<&str> = sources.legs.iter().map(|leg| leg.key.as_str()).collect();
    let own_rates: Vec<String> = sources.own.iter().map(|(name, rate, _)| format!("`{name}` {rate}/s")).collect();
    if !sources.open {
        if let Some(valued) = sources.rate {
            problems.push(
                problem(
                    &codes::CONTRADICTION,
                    &valued.at,
                    "a closed loop has no rate: its requests follow the answers",
                )
                .help("remove `rate`, or write `load open`"),
            );
        }
        if let Some(leg) = sources.legs.first() {
            let message = format!("a closed loop has no rate, and `{} {}` is one", leg.kind(), leg.key);
            problems
                .push(problem(&codes::CONTRADICTION, &leg.name_at, message).help("remove it, or write `load open`"));
        }
        if let Some((_, _, at)) = sources.own.first() {
            let message = format!(
                "the closed loop of phase `{}` has no rate, and its streams have rates of their own ({})",
                item.key,
                own_rates.join(", ")
            );
            problems.push(
                problem(&codes::CONTRADICTION, own(item, load), message)
                    .also((*at).clone(), "the first of them")
                    .help("write `load open`, or give the streams shares"),
            );
        }
        return;
    }
    if let (Some(rate), Some(leg)) = (sources.rate, sources.legs.first()) {
        let message = format!(
            "phase `{}` has the rate {}, and legs that say how it goes: {}",
            item.key,
            rate.written,
            names::listed(legs.iter().copied())
        );
        problems.push(
            problem(&codes::CONTRADICTION, &rate.at, message)
                .also(leg.name_at.clone(), "the first leg")
                .help("keep the rate, or the ramps and steps"),
        );
    }
    if let Some((_, _, at)) = sources.own.first() {
        let also = |what: &str, place: &Location, problems: &mut Problems| {
            let message = format!(
                "phase `{}` has {what}, and its streams have rates of their own ({})",
                item.key,
                own_rates.join(", ")
            );
            problems.push(
                problem(&codes::CONTRADICTION, place, message)
                    .also((*at).clone(), "the first of them")
                    .help("keep the streams' rates, or give the streams shares"),
            );
        };
        if let Some(rate) = sources.rate {
            also(&format!("the rate {}", rate.written), &rate.at, problems);
        } else if let Some(leg) = sources.legs.first() {
            also(&format!("the {} {}", leg.kind(), leg.key), &leg.name_at, problems);
        }
    }
    if sources.rate.is_none() && sources.legs.is_empty() && sources.own.is_empty() {
        problems.push(
            problem(&codes::CONTRADICTION, &load.name_at, format!("the open loop of phase `{}` has no rate", item.key))
                .help("write `rate=\"500/s\"`, or `rate=\"${rate}\"` with a factor"),
        );
    }
}

/// The window, ns: `for`, or the legs' lengths together.
pub fn window(item: &Item, load: &Item, legs: &[Leg], problems: &mut Problems) -> u64 {
    let together = legs.iter().fold(0u64, |sum, leg| sum.saturating_add(leg.for_ns));
    let shown = |ns: u64| as_duration(i64::try_from(ns).unwrap_or(i64::MAX));
    let Some(valued) = load.setting("for") else {
        if legs.is_empty() && !load.broken && nodes(load).is_empty() {
            let message = format!("{} has no `for`", load.described());
            let mut diagnostic = problem(&codes::MISSING, own(item, load), message).help("write it like `for \"20s\"`");
            if let Some(via) = load.via.first() {
                diagnostic = diagnostic.through(via.at.clone(), via.text.clone());
            }
            problems.push(diagnostic);
        }
        return together;
    };
    let Value::Duration(written) = valued.value else { return together };
    let written = written.unsigned_abs();
    if written == 0 {
        problems.push(problem(&codes::OUT_OF_RANGE, &valued.at, "a window of no time measures nothing"));
    } else if !legs.is_empty() && written != together {
        let lengths: Vec<String> = legs.iter().map(|leg| shown(leg.for_ns)).collect();
        let message = format!(
            "the window is {}, and its ramps and steps take {} ({})",
            shown(written),
            shown(together),
            lengths.join(" + ")
        );
        problems.push(
            problem(&codes::CONTRADICTION, &valued.at, message)
                .help("leave `for` out: the ramps and steps make the window"),
        );
    }
    if legs.is_empty() { written } else { together }
}
