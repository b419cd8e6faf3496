//! What changes a hash and what doesn't: results are measured anew when, and only when, something changed that can
//! change them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::{Disk, file, line};
use analysis::{Host, Options, analyse};
use plan::{Level, Plan, StepKind};
use syntax::{Directory, Missing, SourceId, Sources};

const STUDY: &str = "experiments/capacity.kdl";

/// The repository with one text changed, and one directory.
struct Edited {
    path: &'static str,
    text: String,
    directory: &'static str,
}

impl Sources for Edited {
    fn text(&self, id: &SourceId) -> Result<Arc<str>, Missing> {
        if id.as_str() == self.path { Ok(Arc::from(self.text.as_str())) } else { Disk.text(id) }
    }

    fn resolve(&self, from: &SourceId, target: &str) -> Result<SourceId, Missing> {
        Disk.resolve(from, target)
    }

    fn directory(&self, from: &SourceId, target: &str) -> Result<Directory, Missing> {
        let mut directory = Disk.directory(from, target)?;
        if directory.path == self.directory {
            directory.digest.push_str(" changed");
        }
        Ok(directory)
    }
}

fn plan(sources: &dyn Sources) -> Plan {
    let host = Host { cpus: "0-11".parse().expect("a CPU set"), ..Host::default() };
    let options = Options { machine: Some("workstation-12".to_owned()), host: Some(host), ..Options::default() };
    let analysed = analyse(sources, &SourceId::new(STUDY), &options);
    let told: Vec<String> = analysed.diagnostics.iter().map(|diagnostic| line(diagnostic, sources)).collect();
    analysed.plan.unwrap_or_else(|| panic!("{}", told.join("\n")))
}

fn original() -> Plan {
    plan(&Disk)
}

fn edited(path: &'static str, from: &str, to: &str) -> Plan {
    let text = match path {
        "std/http" => file("stdlib/http.kdl"),
        _ => file(path),
    };
    assert!(text.contains(from), "{path} has `{from}`");
    plan(&WithStd(Edited { path, text: text.replacen(from, to, 1), directory: "" }))
}

/// The edited text wins over the library that the program carries.
struct WithStd(Edited);

impl Sources for WithStd {
    fn text(&self, id: &SourceId) -> Result<Arc<str>, Missing> {
        self.0.text(id)
    }

    fn resolve(&self, from: &SourceId, target: &str) -> Result<SourceId, Missing> {
        self.0.resolve(from, target)
    }

    fn directory(&self, from: &SourceId, target: &str) -> Result<Directory, Missing> {
        self.0.directory(from, target)
    }
}

/// A cell by its phase and levels.
fn cells(plan: &Plan) -> Vec<(String, Vec<Level>, String)> {
    plan.phases
        .iter()
        .flat_map(|phase| {
            phase.cells.iter().map(|cell| (phase.name.clone(), cell.levels.clone(), cell.hash.to_string()))
        })
        .collect()
}

/// Phases of which some cell that both plans have got another hash.
fn changed(old: &Plan, new: &Plan) -> Vec<String> {
    let old = cells(old);
    let mut phases = BTreeSet::new();
    for (phase, levels, hash) in cells(new) {
        let before = old.iter().find(|(name, other, _)| *name == phase && *other == levels);
        if before.is_some_and(|(_, _, old)| *old != hash) {
            phases.insert(phase);
        }
    }
    phases.into_iter().collect()
}

const ALL: &[&str] = &["ceiling", "database-ceiling", "fixed-rates", "pool-sweep"];
const LOADS: &[&str] = &["ceiling", "fixed-rates", "pool-sweep"];
const AFTER_SWEEP: &[&str] = &["ceiling", "fixed-rates"];
const NONE: &[&str] = &[];

#[test]
fn what_can_change_a_result_changes_its_cells_and_nothing_else_does() {
    let old = original();
    let cases: &[(&str, &str, &str, &[&str])] = &[
        // Nothing that is only said.
        (STUDY, "study capacity {", "// another comment\n\n\nstudy capacity {", NONE),
        (STUDY, "    repeat 6\n", "    /* six */ repeat 6 // really\n\n", NONE),
        (STUDY, "title \"OAuth2", "title \"OpenID", NONE),
        (STUDY, "question \"On one", "question \"Really, on one", NONE),
        (STUDY, "label \"Go · net/http", "label \"Golang · net/http", NONE),
        (STUDY, "table \"CPU per request\"", "table \"Cost per request\"", NONE),
        // Nothing that is derived anew from the journal.
        (STUDY, "repeat 6", "repeat 8 at-most=20", NONE),
        (STUDY, "gate generator-probe at=\"115%\"", "gate steal max=\"2%\"; gate generator-probe at=\"115%\"", NONE),
        (
            STUDY,
            "between ceiling.throughput pool-sweep.throughput within=\"5%\"",
            "between ceiling.throughput pool-sweep.throughput within=\"6%\"",
            NONE,
        ),
        ("std/http", "gate service-demand rise=\"6%\"", "gate service-demand rise=\"7%\"", NONE),
        ("std/http", "estimate cores-used by=median", "estimate cores-used by=mean", NONE),
        (STUDY, "\"corrected.p99 < 10ms\"", "\"corrected.p99 < 12ms\"", NONE),
        // Nothing that is checked before anything is measured.
        (STUDY, "case \"expired\"", "case \"too old\"", NONE),
        (STUDY, "expires=\"-1h\"", "expires=\"-2h\"", NONE),
        // The traffic.
        (STUDY, "\"ms\":182", "\"ms\":183", LOADS),
        (STUDY, "from=1 to=1_000_000", "from=1 to=999_999", LOADS),
        (STUDY, "token reader scope=\"events:read\"", "token reader scope=\"events:read x\"", LOADS),
        (STUDY, "issuer=\"https://issuer.test\"", "issuer=\"https://issuer.example\"", LOADS),
        (STUDY, "json \"$.id\" equals=\"${id}\"", "json \"$.id\" type=integer", LOADS),
        ("std/http", "connections 64", "connections 65", LOADS),
        ("std/http", "warm-up \"10s\"", "warm-up \"11s\"", LOADS),
        ("std/http", "connections 256", "connections 255", &["fixed-rates"]),
        (STUDY, "\"97%\" \"105%\"", "\"97%\" \"106%\"", NONE),
        // What a phase reads.
        (STUDY, "at=\"115%\"", "at=\"120%\"", AFTER_SWEEP),
        (STUDY, "maximising=throughput", "maximising=errors", AFTER_SWEEP),
        (STUDY, "factor pool 8 16 32 64", "factor pool 8 16 32 64 128", AFTER_SWEEP),
        // The database.
        ("experiments/sql/insert.sql", "INSERT", "insert", &["database-ceiling"]),
        ("experiments/sql/seed.sql", "1000000", "1000000 /* rows */", ALL),
        ("experiments/sql/schema.sql", "CREATE TABLE", "CREATE UNLOGGED TABLE", ALL),
        (STUDY, "prewarm events events_pkey", "prewarm events", ALL),
        (STUDY, "database events like=bench {", "database events like=bench {\n    set work_mem=\"8MB\"", ALL),
        (
            STUDY,
            "pgbench script=\"sql/insert.sql\"",
            "pgbench script=\"sql/insert.sql\" clients=32",
            &["database-ceiling"],
        ),
        // The machine and chance.
        (STUDY, "candidate=\"0-3\" database=\"4-7\"", "candidate=\"0-3\" database=\"4-6\"", ALL),
        (STUDY, "title \"OAuth2", "seed 2; title \"OAuth2", ALL),
        // The candidates.
        (STUDY, "memory \"1GiB\"", "memory \"2GiB\"", LOADS),
        (STUDY, "POOL \"${pool}\"", "POOL \"0${pool}\"", LOADS),
        (STUDY, "listen 8090", "listen 8091", AFTER_SWEEP),
    ];
    let mut wrong = Vec::new();
    for (path, from, to, expected) in cases {
        let new = edited(if *path == STUDY { STUDY } else { path }, from, to);
        let found = changed(&old, &new);
        if found != *expected {
            wrong.push(format!("`{from}` → `{to}`: {found:?} changed, {expected:?} should"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_image_changes_its_own_candidate_only() {
    let old = original();
    let sources = Edited { path: STUDY, text: file(STUDY), directory: "experiments/candidates/go" };
    let new = plan(&sources);
    for (before, after) in cells(&old).iter().zip(cells(&new)) {
        let of_go = after.1.contains(&Level::Word("go".to_owned()));
        assert_eq!(before.2 != after.2, of_go, "{} {:?}", after.0, after.1);
    }
}

#[test]
fn another_candidate_leaves_the_others_alone() {
    let old = original();
    let extra = "candidate extra like=service { label \"Extra\"; image \"extra:1\" }\n\n// Every candidate answers";
    let new = edited(STUDY, "// Every candidate answers", extra);
    assert_eq!(new.candidates.len(), old.candidates.len() + 1);
    assert_eq!(changed(&old, &new), NONE);
}

#[test]
fn a_contract_is_verified_anew_when_it_changes() {
    let old = original();
    let new = edited(STUDY, "json \"$.kind\" equals=\"click\"", "json \"$.kind\" equals=\"purchase\"");
    let verify = |plan: &Plan| -> Vec<String> {
        plan.steps
            .iter()
            .filter(|step| matches!(step.kind, StepKind::VerifyContract { .. }))
            .map(|step| step.hash.to_string())
            .collect()
    };
    assert_eq!(verify(&old).len(), 4);
    assert!(verify(&old).iter().zip(verify(&new)).all(|(old, new)| *old != new));
}

#[test]
fn the_same_sources_give_the_same_bytes() {
    let bytes = |plan: &Plan| serde_json::to_string(plan).expect("a plan");
    let (one, other) = (original(), original());
    assert_eq!(bytes(&one), bytes(&other));
    let read: Plan = serde_json::from_str(&bytes(&one)).expect("a plan");
    assert_eq!(read, one);
}

#[test]
fn blocks_are_complete_shuffled_and_seeded() {
    let old = original();
    for phase in &old.phases {
        let cells = phase.cells.len();
        for block in phase.slots.chunks(cells) {
            let mut seen: Vec<u32> = block.iter().map(|slot| slot.cell).collect();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..cells as u32), "{} has complete blocks", phase.name);
        }
    }
    let order = |plan: &Plan| -> Vec<u32> {
        plan.phase("pool-sweep").expect("a phase").slots.iter().map(|slot| slot.cell).collect()
    };
    let listed: Vec<u32> = (0..48).chain(0..48).collect();
    assert_ne!(order(&old), listed);
    assert_ne!(order(&old)[..48], order(&old)[48..], "blocks differ");
    assert_ne!(order(&old), order(&edited(STUDY, "title \"OAuth2", "seed 2; title \"OAuth2")));
}
