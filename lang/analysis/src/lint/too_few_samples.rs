//! `too-few-samples`: a percentile that the expected number of requests can't support.

use plan::{Level, LoadProcedure, Metric, Phase, Procedure, Rate};
use syntax::{Applicability, Severity};

use super::{Findings, Lint, Look, info, mend};

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0711",
        "too-few-samples",
        Severity::Warning,
        "A percentile is judged or published from fewer requests than it needs.",
    ),
    page: include_str!("../../../../docs/lints/too-few-samples.md"),
    check,
};

/// Requests that should lie beyond the percentile. With ten the percentile's own order statistics have a standard error
/// of about a third of the tail: √(n·q·(1−q)) / (n·(1−q)) ≈ 1/√10.
const BEYOND: f64 = 10.0;

/// The percentile of a metric.
fn quantile(metric: Metric) -> Option<f64> {
    match metric {
        Metric::ServiceP99 | Metric::TtfbP99 | Metric::CorrectedP99 => Some(0.99),
        Metric::CorrectedP999 => Some(0.999),
        _ => None,
    }
}

/// The lowest rate of the phase, where it is known before the run.
fn lowest_rate(phase: &Phase, load: &LoadProcedure) -> Option<f64> {
    match load.rate.as_ref()? {
        Rate::PerSecond(rate) => Some(*rate),
        Rate::Factor(factor) => phase
            .axes
            .iter()
            .filter(|axis| axis.factor == *factor)
            .flat_map(|axis| &axis.levels)
            .filter_map(|level| match level {
                Level::PerSecond(rate) => Some(*rate),
                Level::Integer(rate) => Some(*rate as f64),
                _ => None,
            })
            .min_by(f64::total_cmp),
    }
}

fn check(look: &Look<'_>, findings: &mut Findings) {
    for (phase, item) in look.phases() {
        let Procedure::Load(load) = &phase.procedure else { continue };
        let Some(rate) = lowest_rate(phase, load) else { continue };
        let expected = rate * load.window_ns as f64 / 1e9;
        let judged = phase.carried.iter().map(|condition| condition.metric);
        let published = look.reported().filter(|of| of.phase == phase.name).map(|of| of.metric);
        let Some((metric, quantile)) = judged
            .chain(published)
            .filter_map(|metric| Some((metric, quantile(metric)?)))
            .max_by(|left, right| left.1.total_cmp(&right.1))
        else {
            continue;
        };
        let needed = BEYOND / (1.0 - quantile);
        if expected < needed {
            let at = item.child("load").and_then(|load| load.setting("for")).map_or(&item.name_at, |valued| &valued.at);
            findings
                .add(
                    at,
                    &[item],
                    format!(
                        "`{}` of phase `{}` rests on {:.0} requests ({rate}/s × {}), and needs {needed:.0}",
                        metric.name(),
                        phase.name,
                        expected.floor(),
                        crate::value::units::as_duration(i64::try_from(load.window_ns).unwrap_or(i64::MAX))
                    ),
                )
                .help(format!("lengthen the window to {:.0}s, or judge a lower percentile", (needed / rate).ceil()))
                .fix(item.child("load").filter(|load| load.setting("for").is_some()).and_then(|load| {
                    mend::set(load, "for", &format!("\"{:.0}s\"", (needed / rate).ceil()), Applicability::Unsafe)
                }));
        }
    }
}
