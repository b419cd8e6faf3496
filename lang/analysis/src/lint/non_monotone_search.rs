//! `non-monotone-search`: a search for the boundary between carried and not carried, which is no boundary on a real bench.

use plan::Phase;
use syntax::{Applicability, Fix, Severity};

use super::{Findings, Lint, Look, info, is_closed, mend};
use crate::resolve::Item;

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0717",
        "non-monotone-search",
        Severity::Error,
        "A phase searches for the highest rate that is carried: one unlucky window turns the search round.",
    ),
    page: include_str!("../../../../docs/lints/non-monotone-search.md"),
    check,
};

/// Shares of the ceiling that bracket the boundary: the highest lies above it. Source: simulations of seven rates in
/// blocks against searches of the same length, over stalls of four kinds.
const GRID: &str = "\"30%\" \"45%\" \"60%\" \"75%\" \"87%\" \"97%\" \"105%\"";

fn check(look: &Look<'_>, findings: &mut Findings) {
    for item in look.study.each("phase").filter(|item| !item.broken) {
        let Some(search) = item.child("search") else { continue };
        let how = match search.args.first().and_then(crate::value::Valued::text).unwrap_or_default() {
            "ladder" => "up a ladder",
            "exponential" => "by doubling it",
            _ => "by bisection",
        };
        let grid = closed(look, item).map(|phase| format!("factor rate of={}.throughput {GRID}", phase.name));
        let shown = grid.clone().unwrap_or_else(|| format!("factor rate of=PHASE.throughput {GRID}"));
        findings
            .add(
                &search.name_at,
                &[item],
                format!(
                    "phase `{}` searches its rate {how}, which takes every window's word: one disturbed window sends it the wrong way, and it never comes back",
                    item.key
                ),
            )
            .help(format!("measure fixed rates in blocks instead: `{shown}`, `rate=\"${{rate}}\"`, `repeat 5`"))
            .never_allowed("no search is run, because its result would be a matter of chance")
            .fix(grid.and_then(|grid| to_grid(item, search, grid)));
    }
}

/// A phase in a closed loop, whose throughput is a ceiling.
fn closed<'a>(look: &Look<'a>, reader: &Item) -> Option<&'a Phase> {
    look.plan.phases.iter().find(|phase| {
        is_closed(phase)
            && phase.name != reader.key
            && phase.axes.iter().any(|axis| axis.factor == "candidate")
            // A ceiling for each level of what the reader does not vary would be several ceilings.
            && phase.axes.iter().all(|axis| {
                reader.child("over").is_some_and(|over| over.args.iter().any(|valued| valued.text() == Some(&axis.factor)))
            })
    })
}

/// The search becomes a factor of rates that the phase varies.
fn to_grid(item: &Item, search: &Item, grid: String) -> Option<Fix> {
    if item.keyed("factor", "rate").is_some() {
        return None;
    }
    let (over, load) = (item.child("over")?, item.child("load")?);
    // A rate that is looked at once is a vote of one.
    let grid = if item.child("repeat").is_none() { format!("{grid}; repeat 5") } else { grid };
    let mut edits = vec![syntax::Edit { at: search.at.clone(), text: grid }];
    edits.push(mend::after_arguments(over, " rate")?);
    edits.extend(mend::set(load, "rate", "\"${rate}\"", Applicability::Unsafe)?.edits);
    Some(Fix { title: "measure fixed rates instead".to_owned(), edits, applicability: Applicability::Unsafe })
}
