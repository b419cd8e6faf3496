//! Applies fixes until nothing changes: the texts that a study has after its mistakes were mended, without touching a disk.
//!
//! A fix is applied whole or not at all. Of two that overlap, the later one waits for the next round, in which it is found
//! again (or not) in what the first one left.

use std::collections::BTreeMap;
use std::sync::Arc;

use syntax::{Applicability, Diagnostic, Directory, Edit, Fix, Missing, SourceId, Sources, Span, apply_edits};

use crate::{Analysed, Options, analyse};

/// After so many rounds it is over, whatever is left: a fix that brings its own problem back must not run forever. The
/// reader keeps 1,000 problems of a text at a time, so a round mends at least that many where all have a fix.
pub const MAX_ROUNDS: usize = 32;

/// Which fixes are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Those that say what the author plainly meant.
    Safe,
    /// Guesses too.
    All,
}

/// What came out.
#[derive(Debug)]
pub struct Fixed {
    /// The sources that changed, with their new texts. Never one of the standard library.
    pub texts: BTreeMap<SourceId, Arc<str>>,
    /// How many fixes were applied.
    pub applied: usize,
    /// Whether nothing was left to apply; `false` after [`MAX_ROUNDS`].
    pub settled: bool,
    /// The analysis of the new texts.
    pub analysed: Analysed,
}

/// Mends the study `id` and what it uses, as far as fixes go.
pub fn fix(sources: &dyn Sources, id: &SourceId, options: &Options, which: Which) -> Fixed {
    let mut over = Over { below: sources, texts: BTreeMap::new() };
    let mut applied = 0;
    let mut rounds = 0;
    loop {
        let analysed = analyse(&over, id, options);
        let chosen = chosen(&analysed.diagnostics, which);
        if chosen.is_empty() || rounds == MAX_ROUNDS {
            let settled = chosen.is_empty();
            return Fixed { texts: over.texts, applied, settled, analysed };
        }
        applied += chosen.len();
        rounds += 1;
        let edits: Vec<&Edit> = chosen.iter().flat_map(|fix| &fix.edits).collect();
        let mut changed: Vec<&SourceId> = edits.iter().map(|edit| &edit.at.source).collect();
        changed.sort();
        changed.dedup();
        for source in changed {
            let Ok(text) = over.text(source) else { continue };
            let text = apply_edits(&text, source, edits.iter().copied());
            over.texts.insert(source.clone(), Arc::from(text));
        }
    }
}

/// Fixes that can be applied together: the first fitting one of each diagnostic, none overlapping an earlier one.
pub fn chosen(diagnostics: &[Diagnostic], which: Which) -> Vec<&Fix> {
    let mut taken: BTreeMap<&SourceId, BTreeMap<u32, Span>> = BTreeMap::new();
    let mut chosen = Vec::new();
    for diagnostic in diagnostics {
        let fits = |fix: &&Fix| which == Which::All || fix.applicability == Applicability::Safe;
        let Some(fix) = diagnostic.fixes.iter().find(fits) else { continue };
        let may = !fix.edits.is_empty()
            && fix.edits.iter().all(|edit| {
                let near = taken.get(&edit.at.source);
                !edit.at.source.is_std() && !near.is_some_and(|spans| meets(spans, edit.at.span))
            });
        if may {
            for edit in &fix.edits {
                taken.entry(&edit.at.source).or_default().insert(edit.at.span.start, edit.at.span);
            }
            chosen.push(fix);
        }
    }
    chosen
}

/// Whether `span` shares a byte or an end with one of `spans`, which don't overlap.
fn meets(spans: &BTreeMap<u32, Span>, span: Span) -> bool {
    spans.range(..=span.end).next_back().is_some_and(|(_, before)| before.end >= span.start)
}

/// Sources of which some have another text.
struct Over<'a> {
    below: &'a dyn Sources,
    texts: BTreeMap<SourceId, Arc<str>>,
}

impl Sources for Over<'_> {
    fn text(&self, id: &SourceId) -> Result<Arc<str>, Missing> {
        self.texts.get(id).map_or_else(|| self.below.text(id), |text| Ok(Arc::clone(text)))
    }

    fn bytes(&self, id: &SourceId) -> Result<Arc<[u8]>, Missing> {
        self.texts.get(id).map_or_else(|| self.below.bytes(id), |text| Ok(Arc::from(text.as_bytes())))
    }

    fn resolve(&self, from: &SourceId, target: &str) -> Result<SourceId, Missing> {
        self.below.resolve(from, target)
    }

    fn directory(&self, from: &SourceId, target: &str) -> Result<Directory, Missing> {
        self.below.directory(from, target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syntax::{Code, Location, MemorySources};

    fn found(edits: &[(u32, u32, &str)], applicability: Applicability) -> Diagnostic {
        let id = SourceId::new("study.kdl");
        let edits: Vec<Edit> = edits
            .iter()
            .map(|(start, end, text)| Edit {
                at: Location::new(&id, Span::new(*start, *end)),
                text: (*text).to_owned(),
            })
            .collect();
        let at = edits[0].at.clone();
        Diagnostic::error(Code("E0000"), "x", at, "x").fix(Fix { title: "x".to_owned(), edits, applicability })
    }

    #[test]
    fn fixes_are_applied_whole_or_wait() {
        let safe = Applicability::Safe;
        let all = [
            found(&[(4, 5, "a"), (10, 11, "b")], safe),
            // Overlaps the second half of the first one.
            found(&[(7, 8, "c"), (10, 12, "d")], safe),
            // A guess.
            found(&[(20, 21, "e")], Applicability::Unsafe),
            // Inserts where the first one replaces.
            found(&[(5, 5, "f")], safe),
            found(&[(6, 7, "g")], safe),
        ];
        let edits = |which| -> Vec<&str> { chosen(&all, which).iter().map(|fix| fix.edits[0].text.as_str()).collect() };
        assert_eq!(edits(Which::Safe), ["a", "g"]);
        assert_eq!(edits(Which::All), ["a", "e", "g"]);
    }

    #[test]
    fn the_standard_library_is_never_changed() {
        let std = Location::new(&SourceId::new("std/http"), Span::new(0, 1));
        let fix = Fix::replace("x", std.clone(), "y", Applicability::Safe);
        assert!(chosen(&[Diagnostic::error(Code("E0000"), "x", std, "x").fix(fix)], Which::All).is_empty());
    }

    #[test]
    fn rounds_go_on_until_nothing_changes() {
        // More than the reader keeps problems of one text.
        let text = "a 10s ${b}/c 5%\n".repeat(900);
        let sources = MemorySources::new().with("study.kdl", text.as_str());
        let fixed = fix(&sources, &SourceId::new("study.kdl"), &Options::default(), Which::Safe);
        assert!(fixed.settled && fixed.applied >= 2_700, "{} applied", fixed.applied);
        let text = &fixed.texts[&SourceId::new("study.kdl")];
        assert_eq!(&**text, "a \"10s\" \"${b}/c\" \"5%\"\n".repeat(900));
        assert!(fixed.analysed.diagnostics.iter().all(|diagnostic| !diagnostic.code.0.starts_with("E01")));
    }
}
