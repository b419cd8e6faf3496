//! `unbracketed-optimum`: a choice among levels that can't show that it is the best.

use plan::{Level, MetricRef, Phase};
use syntax::{Applicability, Fix, Severity};

use super::{Findings, Lint, Look, info, mend};
use crate::lower::figures::rate_factor;
use crate::resolve::Item;
use crate::value::units::as_percent;

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0707",
        "unbracketed-optimum",
        Severity::Warning,
        "A sweep's levels leave room for the optimum to lie outside.",
    ),
    page: include_str!("../../../../docs/lints/unbracketed-optimum.md"),
    check,
};

fn check(look: &Look<'_>, findings: &mut Findings) {
    for (phase, item) in look.phases() {
        grid(phase, item, findings);
        let Some(choice) = &phase.choose else { continue };
        let Some(axis) = phase.axes.iter().find(|axis| axis.factor == choice.factor) else { continue };
        if axis.levels.len() >= 3 {
            continue;
        }
        let at = item.child("choose").map_or(&item.name_at, |choose| &choose.name_at);
        let levels: Vec<String> = axis.levels.iter().map(ToString::to_string).collect();
        findings
            .add(
                at,
                &[item],
                format!(
                    "phase `{}` chooses `{}` among {}: whichever wins lies at an edge, and a better one may lie beyond",
                    phase.name,
                    choice.factor,
                    levels.join(" and ")
                ),
            )
            .help("give the factor at least three levels, so that the winner can have neighbours on both sides");
    }
}

/// A grid of rates whose highest lies below the ceiling: where all are carried, the boundary lies beyond the grid.
fn grid(phase: &Phase, item: &Item, findings: &mut Findings) {
    let Some(axis) = rate_factor(phase).filter(|_| phase.relevant_lower_bound) else { return };
    let Some(axis) = phase.axes.iter().find(|known| known.factor == axis) else { return };
    let mut highest: Option<(f64, &MetricRef)> = None;
    for level in &axis.levels {
        let Level::ShareOf { share, of } = level else { return };
        if highest.is_none_or(|(known, _)| *share > known) {
            highest = Some((*share, of));
        }
    }
    let Some((share, of)) = highest.filter(|(share, _)| *share <= 1.0) else { return };
    let Some(node) = item.keyed("factor", &axis.factor) else { return };
    findings
        .add(
            &node.name_at,
            &[item],
            format!(
                "the rates of phase `{}` end at {} of `{of}`: where all are carried, the boundary lies beyond them",
                phase.name,
                as_percent(share)
            ),
        )
        .help("add a rate above the ceiling, such as \"105%\", which is not carried")
        .fix(mend::after_arguments(node, " \"105%\"").map(|edit| Fix {
            title: "add \"105%\"".to_owned(),
            edits: vec![edit],
            applicability: Applicability::Unsafe,
        }));
}
