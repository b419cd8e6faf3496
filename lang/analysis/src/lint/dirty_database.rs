//! `dirty-database`: repetitions that inherit what earlier ones left in the database.

use syntax::{Applicability, Severity};

use super::{Findings, Lint, Look, info, mend, writer};

/// The lint.
pub const LINT: Lint = Lint {
    info: info(
        "W0708",
        "dirty-database",
        Severity::Warning,
        "A phase that writes has no fresh clone per cell, or a checkpoint whose writeback spoils the window.",
    ),
    page: include_str!("../../../../docs/lints/dirty-database.md"),
    check,
};

fn check(look: &Look<'_>, findings: &mut Findings) {
    let Some(database) = &look.plan.database else { return };
    let Some(item) = look.study.only("database").filter(|item| !item.broken) else { return };
    let each = &database.each_cell;
    let writes = look.phases().find_map(|(phase, _)| Some((phase.name.as_str(), writer(look, phase)?)));
    let at = item.child("each").map_or(&item.name_at, |each| &each.name_at);
    if let Some((phase, writer)) = writes
        && !each.clone
    {
        findings
            .add(
                at,
                &[item],
                format!("phase `{phase}` writes ({writer}), and its cells don't get a fresh clone of the database"),
            )
            .help("write `each cell { clone; … }`: rows that one repetition adds slow the next one down")
            .fix(item.child("each").and_then(|each| mend::add_child(look, each, "clone", Applicability::Unsafe)));
    }
    if each.checkpoint && !each.settle_writeback {
        let at = item.child("each").and_then(|each| each.child("checkpoint")).map_or(at, |node| &node.name_at);
        findings
            .add(at, &[item], "the checkpoint's writeback falls into the window: nothing waits until it has settled")
            .help("write `checkpoint settled=writeback`")
            .fix(
                item.child("each")
                    .and_then(|each| each.child("checkpoint"))
                    .and_then(|checkpoint| mend::set(checkpoint, "settled", "writeback", Applicability::Safe)),
            );
    }
}
