//! Studies that are being typed, or typed by a cat: tokens deleted, doubled, swapped, replaced. The analysis never panics,
//! gives a plan if and only if there is no error, and points only at places that exist. Seeded and bounded.

use crate::common::{BASE, Disk, file, host, memory};
use analysis::{Options, analyse, stdlib};
use syntax::{MemorySources, SourceId, Sources, Token, tokens};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        // xorshift64*: any generator will do, as long as a failure can be repeated.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound.max(1)
    }
}

/// The text with some tokens changed.
fn mutated(text: &str, pool: &[String], random: &mut Random) -> String {
    let mut pieces: Vec<String> = tokens(text).into_iter().map(|token: Token| token.span.of(text).to_owned()).collect();
    for _ in 0..1 + random.below(4) {
        let at = random.below(pieces.len());
        match random.below(6) {
            0 => {
                pieces.remove(at);
            }
            1 => pieces.insert(at, pieces[at].clone()),
            2 => {
                let other = random.below(pieces.len());
                pieces.swap(at, other);
            }
            3 => pieces[at] = pool[random.below(pool.len())].clone(),
            4 => pieces.insert(
                at,
                ["{", "}", "\"", ";", "\n", " ", "(remove)", "=", "é", "/-", "${"][random.below(11)].to_owned(),
            ),
            _ => {
                let length = (1 + random.below(12)).min(pieces.len() - at);
                let part: Vec<String> = pieces.drain(at..at + length).collect();
                let to = random.below(pieces.len());
                for piece in part.into_iter().rev() {
                    pieces.insert(to, piece);
                }
            }
        }
        if pieces.is_empty() {
            pieces.push(String::new());
        }
    }
    pieces.concat()
}

fn check(sources: &dyn Sources, study: &str, options: &Options, seed: &str) {
    let id = SourceId::new(study);
    let analysed = analyse(sources, &id, options);
    // With a host, no plan without an error: the only machine that fits is the one that the study has.
    assert!(!(analysed.plan.is_some() && analysed.has_errors()), "{seed}: a plan with errors");
    for diagnostic in &analysed.diagnostics {
        let edits = diagnostic.fixes.iter().flat_map(|fix| &fix.edits).map(|edit| &edit.at);
        let places = [&diagnostic.primary.at].into_iter();
        let places =
            places.chain(diagnostic.secondary.iter().chain(&diagnostic.chain).map(|label| &label.at)).chain(edits);
        for at in places {
            let text = sources.text(&at.source).unwrap_or_else(|_| "".into());
            let range = at.span.start as usize..at.span.end as usize;
            assert!(
                text.get(range).is_some(),
                "{seed}: {} points at {:?}: {}",
                diagnostic.code,
                at,
                diagnostic.message
            );
        }
        assert!(!diagnostic.message.is_empty(), "{seed}: {} says nothing", diagnostic.code);
    }
    if let Some(plan) = analysed.plan {
        assert!(plan::graph::topological_order(&plan.steps).is_ok(), "{seed}: the steps are a graph");
        for phase in &plan.phases {
            assert!(
                phase.slots.iter().all(|slot| (slot.cell as usize) < phase.cells.len()),
                "{seed}: slots have cells"
            );
        }
    }
}

fn pool(texts: &[&str]) -> Vec<String> {
    let mut pool: Vec<String> = texts
        .iter()
        .flat_map(|text| tokens(text).into_iter().map(|token| token.span.of(text).to_owned()).collect::<Vec<_>>())
        .filter(|piece| !piece.trim().is_empty())
        .collect();
    pool.sort();
    pool.dedup();
    pool
}

#[test]
fn mutated_small_studies_never_panic() {
    let capacity = file("experiments/capacity.kdl");
    let suites = ["names", "values", "amend", "graph", "machines", "lints"]
        .map(|name| file(&format!("lang/analysis/tests/suite/{name}.kdl")));
    let mut texts: Vec<&str> = vec![BASE, &capacity];
    texts.extend(suites.iter().map(String::as_str));
    let pool = pool(&texts);
    for seed in 0..1_500_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let profile = (seed % 5 == 0).then(|| "smoke".to_owned());
        let base = format!(
            "{BASE}profile smoke {{ phase ceiling {{ repeat 3; without gate steal }}; without phase sweep }}\n"
        );
        let study = mutated(&base, &pool, &mut random);
        let options = Options { profile, host: (seed % 2 == 0).then(host), ..Options::default() };
        check(&memory(&study), "study.kdl", &options, &format!("seed {seed}:\n{study}\n"));
    }
}

#[test]
fn mutated_suites_never_panic() {
    let suites = ["names", "values", "amend", "graph", "machines", "lints"]
        .map(|name| file(&format!("lang/analysis/tests/suite/{name}.kdl")));
    let pool = pool(&[BASE]);
    for seed in 0..300_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let study = mutated(&suites[random.below(suites.len())], &pool, &mut random);
        check(&memory(&study), "study.kdl", &Options::default(), &format!("suite, seed {seed}"));
    }
}

/// The repository with another capacity study.
struct Mutated(MemorySources);

impl Sources for Mutated {
    fn text(&self, id: &SourceId) -> Result<std::sync::Arc<str>, syntax::Missing> {
        self.0.text(id).or_else(|_| Disk.text(id))
    }

    fn resolve(&self, from: &SourceId, target: &str) -> Result<SourceId, syntax::Missing> {
        Disk.resolve(from, target)
    }

    fn directory(&self, from: &SourceId, target: &str) -> Result<syntax::Directory, syntax::Missing> {
        Disk.directory(from, target)
    }
}

#[test]
fn mutated_capacity_studies_never_panic() {
    let (capacity, library) = (file("experiments/capacity.kdl"), file("stdlib/http.kdl"));
    let pool = pool(&[&capacity]);
    for seed in 0..300_u64 {
        let mut random = Random(seed.wrapping_mul(0xd134_2543_de82_ef95) | 1);
        let mut sources = MemorySources::new();
        sources.set("experiments/capacity.kdl", mutated(&capacity, &pool, &mut random));
        if seed % 3 == 0 {
            sources.set("std/http", mutated(&library, &pool, &mut random));
        }
        let profile = [None, Some("smoke"), Some("short")][random.below(3)].map(str::to_owned);
        let options =
            Options { profile, host: Some(host()), machine: Some("two-cores".to_owned()), ..Options::default() };
        check(&Mutated(sources), "experiments/capacity.kdl", &options, &format!("capacity, seed {seed}"));
    }
    assert!(stdlib::text("std/http").is_some());
}

#[test]
fn sources_that_are_no_studies_never_panic() {
    for text in [
        "",
        "\u{feff}",
        "}",
        "{",
        "\"",
        "study",
        "/-",
        "#",
        "phase phase phase",
        "use \"study.kdl\"",
        "\u{0}",
        "𝄞 é=\"𝄞\"",
    ] {
        check(&memory(text), "study.kdl", &Options::default(), text);
    }
    let analysed = analyse(&MemorySources::new(), &SourceId::new("nothing.kdl"), &Options::default());
    assert!(analysed.has_errors() && analysed.plan.is_none());
    // Every file of a long chain of `use` is read, and a longer one is refused.
    let mut sources = memory("use \"./f0.kdl\"\n");
    for index in 0..200 {
        sources.set(&format!("f{index}.kdl"), format!("use \"./f{}.kdl\"\n", index + 1));
    }
    check(&sources, "study.kdl", &Options::default(), "a long chain");
}
