//! Every diagnostic of the analysis, as data: its code, what it means, an example that has it and one that doesn't. Tests
//! run the examples; `exp explain CODE` prints them. Codes are never used again for something else.
//!
//! `E02xx` imports, `E03xx` names, `E04xx` types and units, `E05xx` constraints, `E06xx` the graph, `W07xx` method (those
//! are the lints', in `lint/`). `E01xx` is the reader's.
//!
//! Examples show what matters; what else a study needs (a machine, a candidate …) stands in the tests' own base study.

use syntax::{Code, Severity};

use crate::lint::LINTS;

/// A kind of diagnostic.
#[derive(Debug)]
pub struct CodeInfo {
    /// The code, such as `E0301`.
    pub code: Code,
    /// Its name in kebab case.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What it means, and what to do.
    pub explanation: &'static str,
    /// A part of a study that has it.
    pub bad: &'static str,
    /// The same part without it.
    pub good: &'static str,
}

macro_rules! codes {
    ($($ident:ident $code:literal $name:literal $severity:ident $explanation:literal bad $bad:literal good $good:literal)*) => {
        $(
            #[doc = $explanation]
            pub static $ident: CodeInfo = CodeInfo {
                code: Code($code),
                name: $name,
                severity: Severity::$severity,
                explanation: $explanation,
                bad: $bad,
                good: $good,
            };
        )*
        /// Every code of the analysis but the lints'.
        pub static CODES: &[&CodeInfo] = &[$(&$ident),*];
    };
}

codes! {
    MISSING_IMPORT "E0201" "missing-import" Error
        "A `use` names a source that can't be read: it does not exist, or lies outside the study's root and the standard library."
        bad r#"use "std/htp""# good r#"use "std/http""#
    IMPORT_CYCLE "E0202" "import-cycle" Error
        "Files use each other in a circle. Move what both need into a third file."
        bad r#"use "./study.kdl""# good r#"use "./library.kdl""#
    MISSING_FILE "E0203" "missing-file" Error
        "A SQL file or script can't be read. Paths are relative to the file that names them, and never leave the study's root."
        bad r#"database events { image "postgres:17"; template { sql "sql/missing.sql" } }"#
        good r#"database events { image "postgres:17"; template { sql "sql/schema.sql" } }"#
    MISSING_DIRECTORY "E0204" "missing-directory" Error
        "A build context or working directory can't be read."
        bad r#"candidate app { image build="candidates/nothing"; listen 8080; ready GET="/" }"#
        good r#"candidate app { image build="candidates/app"; listen 8080; ready GET="/" }"#
    STUDY_IN_LIBRARY "E0205" "study-in-library" Error
        "A file that another one uses holds a `study`. A library has definitions, not a question of its own."
        bad r#"use "./other-study.kdl""# good r#"use "./library.kdl""#

    UNKNOWN_NODE "E0301" "unknown-node" Error
        "A node has a name that this place does not know. Nothing is ever ignored: a misspelt gate would be no gate."
        bad r#"agreement a { betwen ceiling.throughput sweep.throughput within="5%" }"#
        good r#"agreement a { between ceiling.throughput sweep.throughput within="5%" }"#
    UNKNOWN_PROPERTY "E0302" "unknown-property" Error
        "A property (or setting) has a name that this node does not know."
        bad r#"machine bench { cpus candidate="0" database="1" lod="2" }"#
        good r#"machine bench { cpus candidate="0" database="1" load="2" }"#
    UNKNOWN_NAME "E0303" "unknown-name" Error
        "Something is referred to that is not defined: a phase, a factor, a token, a workload, a metric, a definition."
        bad r#"agreement a { between cieling.throughput sweep.throughput within="5%" }"#
        good r#"agreement a { between ceiling.throughput sweep.throughput within="5%" }"#
    UNKNOWN_VARIABLE "E0304" "unknown-variable" Error
        "A text reads a variable that has no value there. `$${` stands for the characters `${` themselves."
        bad r#"candidate app { image "app:1"; listen 8080; env PORT="${prt}"; ready GET="/" }"#
        good r#"candidate app { image "app:1"; listen 8080; env PORT="${port}"; ready GET="/" }"#
    DEFINED_TWICE "E0305" "defined-twice" Error
        "Two nodes of the same kind have the same name, or a node that can stand only once stands twice."
        bad "candidate app { image \"app:1\"; listen 8080; ready GET=\"/\" }\ncandidate app { image \"app:2\"; listen 8080; ready GET=\"/\" }"
        good r#"candidate app { image "app:1"; listen 8080; ready GET="/" }"#
    PROPERTY_TWICE "E0306" "property-twice" Error
        "A property is given twice; only one of them could count."
        bad r#"machine bench { cpus candidate="0" candidate="1" database="1" load="2" }"#
        good r#"machine bench { cpus candidate="0" database="1" load="2" }"#
    UNKNOWN_WORD "E0307" "unknown-word" Error
        "A word is none of those that are possible here."
        bad r#"machine bench { cpus candidate="0" database="1" load="1" sharing=acepted }"#
        good r#"machine bench { cpus candidate="0" database="1" load="1" sharing=accepted }"#
    TOO_MANY "E0308" "too-many-values" Error
        "A node has more arguments than it takes, or a setting more than one value."
        bad r#"study demo extra { title "t"; question "q" }"# good r#"study demo { title "t"; question "q" }"#
    UNKNOWN_ANNOTATION "E0309" "unknown-annotation" Error
        "An annotation in parentheses means nothing here. Types come from the schema; only `(replace)` and `(remove)` exist, in amendments."
        bad r#"study demo { title (text)"t"; question "q" }"# good r#"study demo { title "t"; question "q" }"#
    NOTHING_TO_AMEND "E0310" "nothing-to-amend" Error
        "A profile, `without` or `(remove)` names something that the amended node does not have."
        bad r#"profile smoke { phase cieling { repeat 5 } }"# good r#"profile smoke { phase ceiling { repeat 5 } }"#
    UNUSED_DEFINITION "W0311" "unused-definition" Warning
        "Something is defined and nothing uses it: perhaps its name is misspelt where it should be used."
        bad r#"define phase slow { repeat 5 }"# good r#"use "std/http""#
    UNUSED_FACTOR "E0312" "unused-factor" Error
        "A factor that no phase varies changes nothing."
        bad r#"factor size 1 2 4"# good "factor cores 1"
    SECRET_EXPOSED "E0313" "secret-exposed" Error
        "A secret is read where its value would have to be written down: into the plan, an image's name, a title. Secrets are filled in at use only, in a server's `env` and in requests."
        bad "secret TOKEN\ncandidate app { image \"app:${env:TOKEN}\"; listen 8080; env TOKEN=\"${env:TOKEN}\"; ready GET=\"/\" }"
        good "secret TOKEN\ncandidate app { image \"app:1\"; listen 8080; env TOKEN=\"${env:TOKEN}\"; ready GET=\"/\" }"

    WRONG_TYPE "E0401" "wrong-type" Error
        "A value is of another type than the one that is due."
        bad r#"candidate app { image "app:1"; listen "8080"; ready GET="/" }"#
        good r#"candidate app { image "app:1"; listen 8080; ready GET="/" }"#
    WRONG_UNIT "E0402" "wrong-unit" Error
        "A quantity has no unit, or one that does not fit."
        bad r#"candidate app { image "app:1"; listen 8080; memory "1s"; ready GET="/" }"#
        good r#"candidate app { image "app:1"; listen 8080; memory "1GiB"; ready GET="/" }"#
    OUT_OF_RANGE "E0403" "out-of-range" Error
        "A number is outside the range that makes sense here."
        bad r#"candidate app { image "app:1"; listen 80800; ready GET="/" }"#
        good r#"candidate app { image "app:1"; listen 8080; ready GET="/" }"#
    MALFORMED "E0404" "malformed" Error
        "A text does not have the form that is due: a CPU set, a condition, JSON, a name, a place in a JSON document."
        bad r#"machine bench { cpus candidate="0-" database="1" load="2" }"#
        good r#"machine bench { cpus candidate="0" database="1" load="2" }"#
    MISSING "E0405" "missing" Error
        "Something that a node needs is missing."
        bad r#"candidate app { image "app:1"; ready GET="/" }"#
        good r#"candidate app { image "app:1"; listen 8080; ready GET="/" }"#
    MIXED_LEVELS "E0406" "mixed-levels" Error
        "The levels of a factor are of different types, so they can't be compared."
        bad r#"factor cores 1 two"# good "factor cores 1"

    SHARES "E0501" "shares" Error
        "The shares of a workload's streams add up to something other than 100 %."
        bad "workload mixed {\n    stream read share=\"60%\" { GET \"/a\"; expect 200 { body \"a\" } }\n    stream other share=\"50%\" { GET \"/b\"; expect 200 { body \"b\" } }\n}"
        good "workload mixed {\n    stream read share=\"50%\" { GET \"/a\"; expect 200 { body \"a\" } }\n    stream other share=\"50%\" { GET \"/b\"; expect 200 { body \"b\" } }\n}"
    LEVEL_OUT_OF_REACH "E0502" "level-out-of-reach" Error
        "A factor has a level that the machine can't give: more cores than the candidate owns, or a level that `only` names and the factor lacks."
        bad "factor cores 1 2" good "factor cores 1"
    NO_MACHINE "E0503" "no-machine" Error
        "No machine of the study fits this host, or several do and none was named. `--machine NAME` chooses."
        bad "machine one { cpus candidate=\"0\" database=\"1\" load=\"2\" }\nmachine other { cpus candidate=\"1\" database=\"0\" load=\"2\" }"
        good "machine bench { cpus candidate=\"0\" database=\"1\" load=\"2\" }"
    CPUS_MISSING "E0504" "cpus-missing" Error
        "The machine that was named needs CPUs that this host does not have online."
        bad "machine bench { cpus candidate=\"90\" database=\"1\" load=\"2\" }"
        good "machine bench { cpus candidate=\"0\" database=\"1\" load=\"2\" }"
    MEMORY_EXCEEDED "E0505" "memory-exceeded" Error
        "Candidate and database together may use more memory than the host has."
        bad r#"candidate app { image "app:1"; listen 8080; memory "1TiB"; ready GET="/" }"#
        good r#"candidate app { image "app:1"; listen 8080; memory "1GiB"; ready GET="/" }"#
    PORT_IN_USE "E0506" "port-in-use" Error
        "Something on this host listens on a port that the study needs."
        bad r#"candidate app { image "app:1"; listen 22; ready GET="/" }"#
        good r#"candidate app { image "app:1"; listen 8080; ready GET="/" }"#
    CONTRADICTION "E0507" "contradiction" Error
        "Two settings exclude each other, or one is needed because of another."
        bad r#"phase sweep like=saturation { over candidate cores; load { rate "500/s" } }"#
        good r#"phase sweep like=saturation { over candidate cores }"#
    MEASURES_NOTHING "E0508" "measures-nothing" Error
        "A phase has no procedure (`load` or `pgbench`), two of them, no candidate, or no cells."
        bad r#"phase sweep { over candidate cores; repeat 5 }"#
        good r#"phase sweep like=saturation { over candidate cores }"#
    AT_MOST_BELOW_VALID "E0509" "at-most-below-valid" Error
        "Fewer repetitions are allowed than valid ones wanted, so no cell could ever be determined."
        bad r#"phase sweep like=saturation { over candidate cores; repeat 5 at-most=3 }"#
        good r#"phase sweep like=saturation { over candidate cores; repeat 5 at-most=8 }"#
    LEVEL_TWICE "E0510" "level-twice" Error
        "A factor lists the same level twice, or a phase varies the same factor twice."
        bad "factor cores 1 1" good "factor cores 1"
    CANNOT_RUN "E0511" "cannot-run" Error
        "A candidate, probe or database can't be started: it has neither an image nor a process, or an image that is both built and pulled."
        bad r#"candidate app { listen 8080; ready GET="/" }"#
        good r#"candidate app { image "app:1"; listen 8080; ready GET="/" }"#
    EMPTY_RANGE "E0512" "empty-range" Error
        "A parameter's range runs backwards, so it has no values."
        bad "workload mixed { stream read { vary id uniform from=9 to=1; GET \"/${id}\"; expect 200 { body \"a\" } } }"
        good "workload mixed { stream read { vary id uniform from=1 to=9; GET \"/${id}\"; expect 200 { body \"a\" } } }"
    TOO_MANY_CELLS "E0513" "too-many-cells" Error
        "The factors of a phase multiply to more cells than a run could ever measure."
        bad "factor big 1 2 3 4 5 6 7 8 9 10 11 12\nfactor b 1 2 3 4 5 6 7 8 9 10 11 12\nfactor c 1 2 3 4 5 6 7 8 9 10 11 12\nfactor d 1 2 3 4 5 6 7 8 9 10 11 12\nfactor e 1 2 3 4 5 6 7 8 9 10 11 12\nfactor f 1 2 3 4 5 6 7 8 9 10 11 12\nphase wide like=saturation { over candidate cores big b c d e f }"
        good "phase sweep like=saturation { over candidate cores }"

    TOOL_CANNOT "E0520" "tool-cannot" Error
        "The tool that is to send the load (`load with=`) can't send it, or can't account for what a gate or condition needs."
        bad r#"phase sweep like=saturation { over candidate cores; load with=vegeta }"#
        good r#"phase sweep like=saturation { over candidate cores; load with=exp }"#
    DISK_EXCEEDED "E0530" "disk-exceeded" Error
        "The database's template, its clone and their WAL need more room than any disk of the host has. Rows are counted at 150 bytes, indexes included; a warning where only the WAL might not fit."
        bad "database events { image \"postgres:17\"; template { sql \"sql/schema.sql\"; holds table=events rows=900_000_000 }; each cell { clone } }"
        good "database events { image \"postgres:17\"; template { sql \"sql/schema.sql\"; holds table=events rows=1_000_000 }; each cell { clone } }"
    FILES_EXCEEDED "E0531" "files-exceeded" Error
        "A candidate gets more connections than its `open-files` allow. What the host allows is the lint `generator-fails-first`'s matter."
        bad r#"candidate app { image "app:1"; listen 8080; open-files 64; ready GET="/" }
phase sweep like=saturation { over candidate cores; load { connections 256 } }"#
        good r#"candidate app { image "app:1"; listen 8080; open-files 1024; ready GET="/" }
phase sweep like=saturation { over candidate cores; load { connections 256 } }"#
    PORT_IS_EPHEMERAL "W0532" "port-is-ephemeral" Warning
        "A server's port lies in the range from which the kernel takes ports for outgoing connections: one of them may hold it just when the server starts."
        bad r#"candidate app { image "app:1"; listen 40000; ready GET="/" }"#
        good r#"candidate app { image "app:1"; listen 8080; ready GET="/" }"#

    CYCLE "E0601" "cycle" Error
        "Phases (or definitions) read each other in a circle, so none of them can be the first."
        bad r#"phase sweep like=saturation { over candidate cores; gate generator-probe of=ceiling.throughput }"#
        good "phase sweep like=saturation { over candidate cores }"
    NEVER_MEASURED "E0602" "never-measured" Error
        "A figure is read that its phase never measures."
        bad r#"agreement a { between ceiling.tps sweep.throughput within="5%" }"#
        good r#"agreement a { between ceiling.throughput sweep.throughput within="5%" }"#
    CELLS_DO_NOT_MAP "E0603" "cells-do-not-map" Error
        "The cells of one phase don't say which cell of the other one is meant: a factor has several levels there and none here."
        bad "factor pool 8 16 32\nphase sweep like=saturation { over candidate cores pool }"
        good "phase sweep like=saturation { over candidate cores }"
    NOT_AN_AXIS "E0604" "not-an-axis" Error
        "A report's item is laid out by a factor that the figure does not vary with, a chart leaves out one that it does (several values would share one bar), or a choice leaves a factor open."
        bad r#"report { chart bar "Ceiling" of=ceiling.throughput by=candidate }"#
        good r#"report { chart bar "Ceiling" of=ceiling.throughput by=candidate group=cores }"#
    NO_VALUE_HERE "E0605" "no-value-here" Error
        "A phase runs something that reads a factor, and the phase neither varies that factor nor takes it from another phase."
        bad "factor pool 8 16 32\ncandidate app { image \"app:1\"; listen 8080; env POOL=\"${pool}\"; ready GET=\"/\" }\nphase sweep like=saturation { over candidate cores pool; choose pool maximising=throughput for-each=\"candidate cores\" }"
        good r#"candidate app { image "app:1"; listen 8080; env CORES="${cores}"; ready GET="/" }"#
    NOT_CHOSEN "E0606" "not-chosen" Error
        "A phase takes a factor's level from a phase that does not choose it."
        bad "factor pool 8 16 32\nphase other like=saturation { over candidate cores pool }\nphase ceiling like=saturation { over candidate cores; with pool from=other; gate generator-probe of=sweep.throughput; repeat 6 }"
        good "phase ceiling like=saturation { over candidate cores; gate generator-probe of=sweep.throughput; repeat 6 }"
}

/// What `exp explain` prints for a code (`E0301`, `W0704`) or a name (`unknown-node`, `single-repetition`).
pub fn explain(wanted: &str) -> Option<String> {
    let same = |code: &str, name: &str| code.eq_ignore_ascii_case(wanted) || name == wanted;
    if let Some(info) = CODES.iter().find(|info| same(info.code.0, info.name)) {
        return Some(page(info.code.0, info.name, info.explanation, info.bad, info.good));
    }
    if let Some(lint) = LINTS.iter().find(|lint| same(lint.info.code.0, lint.info.name)) {
        return Some(lint.page.to_owned());
    }
    let kind = syntax::PROBLEMS.iter().find(|kind| same(kind.code.0, kind.name))?;
    let short = |example: &syntax::Example| match example.times {
        0 | 1 => example.text.to_owned(),
        times => format!("{} … ({times} times)", example.text),
    };
    Some(page(kind.code.0, kind.name, kind.explanation, &short(&kind.bad), &short(&kind.good)))
}

/// Every code and name that can be explained, for suggestions.
pub fn explainable() -> impl Iterator<Item = (&'static str, &'static str)> {
    kinds().map(|kind| (kind.code.0, kind.name))
}

/// What every kind of diagnostic is, whoever finds it: code, name, usual severity, explanation in a sentence or two.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The code, such as `E0301`.
    pub code: Code,
    /// Its name in kebab case.
    pub name: &'static str,
    /// How bad it usually is.
    pub severity: Severity,
    /// What it means.
    pub explanation: &'static str,
}

/// Every kind of diagnostic: the reader's, the analysis's, the lints'.
pub fn kinds() -> impl Iterator<Item = Kind> {
    let reader = syntax::PROBLEMS.iter().map(|kind| Kind {
        code: kind.code,
        name: kind.name,
        severity: Severity::Error,
        explanation: kind.explanation,
    });
    let own = CODES.iter().copied().chain(LINTS.iter().map(|lint| &lint.info)).map(|info| Kind {
        code: info.code,
        name: info.name,
        severity: info.severity,
        explanation: info.explanation,
    });
    reader.chain(own)
}

fn page(code: &str, name: &str, explanation: &str, bad: &str, good: &str) -> String {
    format!(
        "# {code}: {name}\n\n{explanation}\n\nWrong:\n\n```kdl\n{}\n```\n\nRight:\n\n```kdl\n{}\n```\n",
        bad.trim_end(),
        good.trim_end()
    )
}
