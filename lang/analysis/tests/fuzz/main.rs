//! No input, however broken, panics: reader, formatter, checker and fixes, on studies generated from the schema and on
//! mutations of what is kept: this repository's studies and libraries, the examples of every diagnostic, and the corpus
//! (`tests/corpus`). An input that shows a combination of diagnostics that none showed before is mutated further.
//!
//! Bounded in time, the same inputs in the same order on every machine:
//!
//! - `FUZZ_SECONDS=600 cargo test --release -p analysis --test fuzz` takes longer (10 s where it is left out);
//! - `FUZZ_SEED=7` takes other inputs;
//! - `FUZZ_KEEP=1` writes inputs that show a diagnostic which none before them showed into the corpus, made small;
//! - `FUZZ_INPUT=FILE` tries that file alone. A failure prints this command, with the file that it wrote.
#![expect(clippy::disallowed_methods, reason = "a fuzzer reads its corpus and writes what fails")]
#![expect(clippy::disallowed_types, reason = "a fuzzer has a clock")]
#![expect(clippy::disallowed_macros, reason = "a fuzzer prints what it found")]

#[path = "../it/common.rs"]
#[expect(dead_code, reason = "shared with the tests beside this one, which use more of it")]
mod common;
mod generate;
mod promises;
mod random;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use analysis::codes::CODES;
use analysis::lint::LINTS;
use analysis::{Options, stdlib};
use common::{BASE, around, host, memory, repository};
use plan::ContentHash;
use promises::Shown;
use random::{Random, mutated, pool};
use syntax::SourceId;

/// Longer inputs are not mutated further: small ones show the same sooner.
const LONGEST: usize = 20_000;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Every promise about one input. `n` chooses host and profile, and which of the dearer promises are looked at.
fn keeps_its_promises(text: &str, n: u64) -> Shown {
    promises::reading(text);
    let mut sources = memory(text);
    // As a library of a right study too: what a library does wrong must not break its user.
    if n % 7 == 3 {
        sources = memory(&format!("{BASE}use \"./library.kdl\"\n"));
        sources.set("library.kdl", text);
    }
    let id = SourceId::new("study.kdl");
    let options = Options {
        profile: (n.is_multiple_of(5)).then(|| "smoke".to_owned()),
        host: (n % 4 != 1).then(host),
        machine: (n.is_multiple_of(11)).then(|| "bench".to_owned()),
        ..Options::default()
    };
    let shown = promises::checking(&sources, &id, &options);
    if n.is_multiple_of(3) {
        promises::fixing(&sources, &id, &options);
    }
    if n % 3 == 1 {
        promises::expanding(&sources, &id, &options);
    }
    if n.is_multiple_of(16) {
        promises::repeating(&sources, &id, &options);
    }
    shown
}

/// What an input showed, or what it broke.
fn attempt(text: &str, n: u64) -> Result<Shown, String> {
    catch_unwind(AssertUnwindSafe(|| keeps_its_promises(text, n))).map_err(|panic| said(panic.as_ref()))
}

/// What a panic says.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// A smaller input that fails too: tokens are taken out as long as it does, for some seconds.
fn smaller(text: &str, fails: impl Fn(&str) -> bool) -> String {
    let end = Instant::now() + Duration::from_secs(10);
    let mut pieces: Vec<String> = syntax::tokens(text).iter().map(|token| token.span.of(text).to_owned()).collect();
    let mut length = pieces.len().div_ceil(2).max(1);
    while Instant::now() < end {
        let mut at = 0;
        let before = pieces.len();
        while at < pieces.len() && Instant::now() < end {
            let mut fewer = pieces.clone();
            fewer.drain(at..(at + length).min(pieces.len()));
            match fails(&fewer.concat()) {
                true => pieces = fewer,
                false => at += length,
            }
        }
        match (length, pieces.len() < before) {
            (1, false) => break,
            (1, true) => {}
            _ => length = length.div_ceil(2),
        }
    }
    pieces.concat()
}

/// Writes the failing input, and ends with the command that repeats it.
fn failed(text: &str, n: u64, why: &str) -> ! {
    let text = smaller(text, |text| attempt(text, n).is_err());
    let folder = repository().join("target/fuzz");
    let path = folder.join(format!("{}-{n}.kdl", &ContentHash::of_bytes(text.as_bytes()).to_string()[..12]));
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, &text));
    let path = std::path::absolute(&path).unwrap_or(path);
    panic!(
        "{why}\nthe input ({}):\n{text}\nto repeat it:\n  FUZZ_INPUT={} cargo test -p analysis --test fuzz\nonce it is mended, keep it: copy it into \
         lang/analysis/tests/corpus",
        written.map_or_else(|error| format!("not written: {error}"), |()| "written".to_owned()),
        path.display()
    );
}

fn kdl_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target" && name != "results") {
            kdl_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "kdl") {
            found.push(path);
        }
    }
    found.sort();
}

fn corpus() -> PathBuf {
    repository().join("lang/analysis/tests/corpus")
}

/// What is mutated: everything that is kept and everything that the documentation shows.
fn seeds() -> Vec<String> {
    let mut paths = Vec::new();
    for folder in ["lang", "stdlib", "experiments", "runtime/exp/templates", "tests/studies"] {
        kdl_files(&repository().join(folder), &mut paths);
    }
    // A file that is no text is no seed.
    let mut seeds: Vec<String> = paths.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    let files = seeds.len();
    assert!(files >= 12, "only {files} files");
    for info in CODES {
        seeds.extend([around(info.bad), around(info.good)]);
    }
    for lint in LINTS {
        let blocks = lint.page.split("```kdl\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0));
        seeds.extend(blocks.map(around));
    }
    for problem in syntax::PROBLEMS.iter().filter(|problem| problem.bad.times == 1) {
        seeds.push(around(problem.bad.text));
    }
    seeds.extend(stdlib::FILES.iter().map(|(_, text)| format!("{BASE}{text}")));
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
        seeds.push(text.to_owned());
    }
    seeds
}

#[test]
fn no_input_breaks_a_promise() {
    // What a panic says comes back with its input; its trace would bury both.
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = catch_unwind(search);
    let _ = std::panic::take_hook();
    if let Err(panic) = outcome {
        // Once more, with the hook that prints it.
        panic!("{}", said(panic.as_ref()));
    }
}

fn search() {
    if let Some(path) = std::env::var_os("FUZZ_INPUT") {
        let text = std::fs::read_to_string(&path).expect("the input");
        // The number after the last `-` says how it was looked at; without one, in every way there is.
        let name = Path::new(&path).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let numbers = match name.rsplit_once('-').and_then(|(_, n)| n.parse().ok()) {
            Some(n) => n..n + 1,
            None => 0..1_000,
        };
        for n in numbers {
            if let Err(why) = attempt(&text, n) {
                failed(&text, n, &why);
            }
        }
        return;
    }
    let end = Instant::now() + Duration::from_secs(number("FUZZ_SECONDS", 10));
    let keep = std::env::var_os("FUZZ_KEEP").is_some();
    let mut random = Random::new(number("FUZZ_SEED", 1));
    let mut kept = seeds();
    let pool = pool(kept.iter().map(String::as_str));
    let (mut seen, mut codes, mut plans, mut inputs) = (BTreeSet::<Shown>::new(), BTreeSet::new(), 0_u64, 0_u64);
    // Every seed as it stands, whatever the time; then as much as the time allows.
    let first = kept.len();
    loop {
        let text = match kept.get(inputs as usize) {
            Some(seed) if (inputs as usize) < first => seed.clone(),
            _ if Instant::now() > end => break,
            _ => match random.below(10) {
                0..3 => around(&generate::study(&mut random)),
                3 => generate::study(&mut random),
                4 => {
                    let text = around(&generate::study(&mut random));
                    mutated(&text, &pool, &mut random)
                }
                _ => {
                    let text = random.choose(&kept).clone();
                    mutated(&text, &pool, &mut random)
                }
            },
        };
        let n = inputs;
        inputs += 1;
        let shown = attempt(&text, n).unwrap_or_else(|why| failed(&text, n, &why));
        plans += u64::from(shown.plan);
        let fresh: Vec<&str> = shown.codes.iter().copied().filter(|code| !codes.contains(code)).collect();
        codes.extend(shown.codes.iter().copied());
        if n as usize >= first && text.len() < LONGEST {
            if let (true, Some(code)) = (keep, fresh.first()) {
                // Alone, and in every way that an input is looked at.
                let shows = |text: &str| attempt(text, n).is_ok_and(|shown| shown.codes.contains(code));
                let small = smaller(&text, shows);
                std::fs::write(corpus().join(format!("shows-{code}-{n}.kdl")), small)
                    .expect("the corpus can be written");
            }
            if seen.insert(shown) {
                kept.push(text);
            }
        }
    }
    println!(
        "{inputs} inputs, {} kept beside {first}, {} codes shown, {plans} with a plan",
        kept.len() - first,
        codes.len()
    );
    let missed: Vec<&str> = CODES.iter().map(|info| info.code.0).filter(|code| !codes.contains(code)).collect();
    assert!(missed.len() < CODES.len() / 4, "the inputs never show {missed:?}");
    assert!(inputs > first as u64 && plans > 20, "{inputs} inputs, {plans} with a plan: the search tells little");
}

#[test]
fn what_fails_is_made_smaller() {
    let text = format!("{BASE}// a comment\nphase {{ load }}\n{BASE}");
    let fails = |text: &str| text.contains("load }") && text.contains("sweep");
    let small = smaller(&text, fails);
    assert!(fails(&small) && small.len() < 40, "{small}");
}

#[test]
fn a_chain_of_libraries_comes_to_an_end() {
    let mut sources = memory("use \"./f0.kdl\"\n");
    for index in 0..200 {
        sources.set(&format!("f{index}.kdl"), format!("use \"./f{}.kdl\"\n", index + 1));
    }
    let shown = promises::checking(&sources, &SourceId::new("study.kdl"), &Options::default());
    assert!(!shown.plan);
    let nothing = promises::checking(&syntax::MemorySources::new(), &SourceId::new("nothing.kdl"), &Options::default());
    assert!(!nothing.plan && !nothing.codes.is_empty());
}
