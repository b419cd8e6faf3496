//! What is compared and where: machines, credentials, the database, the probe, candidates.

use super::{Count, Free, Kind, NODE, NodeSpec, Setting, Type, Variant, Word, argument, optional, setting, word};

/// `machine`.
pub static MACHINE: NodeSpec = NodeSpec {
    name: "machine",
    doc: "A CPU layout that the study can run on. `--machine` chooses; without it, the only one that fits the host.",
    example: "machine bench { cpus candidate=\"0-3\" database=\"4-7\" load=\"8-11\" }",
    count: Count::Some,
    arguments: &[argument("name", Type::Name, "The name that `--machine` takes.")],
    children: &[&CPUS, &GENERATOR, &ONLY],
    key: 1,
    defines: Some(Kind::Machine),
    ..NODE
};

static CPUS: NodeSpec = NodeSpec {
    name: "cpus",
    doc: "Which CPUs each role owns.",
    example: "cpus candidate=\"0\" database=\"1\" load=\"1\" sharing=accepted",
    count: Count::One,
    settings: &[
        setting("candidate", Type::Cpus, "\"0-3\"", "CPUs of the system under test, and of the probe in its place.")
            .required(),
        setting("database", Type::Cpus, "\"4-7\"", "CPUs of the database; needed where the study has one."),
        setting("load", Type::Cpus, "\"8-11\"", "CPUs of the load generator.").required(),
        setting(
            "sharing",
            Type::Word(&[word("accepted", "Roles share CPUs on purpose; the report says so and trusts figures less.")]),
            "accepted",
            "That roles share CPUs on purpose.",
        ),
    ],
    ..NODE
};

static GENERATOR: NodeSpec = NodeSpec {
    name: "generator",
    doc: "Where a load generator runs. Several send one load together, begun at one instant, and their histograms are merged. \
          Without any, one process on the CPUs of `load`.",
    example: "generator second on=container cpus=\"10-11\"",
    count: Count::Any,
    arguments: &[argument("name", Type::Name, "A name for people.")],
    key: 1,
    settings: &[
        setting(
            "on",
            Type::Word(&[
                word("process", "A process of this machine."),
                word("container", "A container on the Docker Engine that the run uses."),
                word("engine", "A container on another Docker Engine, which `address` names."),
            ]),
            "container",
            "Where.",
        )
        .default("process"),
        setting("cpus", Type::Cpus, "\"10-11\"", "Its CPUs, of those of `load`; with `engine`, of that engine's host."),
        setting("address", Type::Text, "\"tcp://10.0.0.7:2375\"", "Where the other engine answers."),
        setting(
            "target",
            Type::Text,
            "\"10.0.0.2\"",
            "The address of this machine as the other engine's host reaches it; the loopback address without it.",
        ),
    ],
    ..NODE
};

static ONLY: NodeSpec = NodeSpec {
    name: "only",
    doc: "Restricts a factor to these levels on this machine.",
    example: "only cores 1",
    count: Count::Any,
    arguments: &[argument("factor", Type::Reference(Kind::Factor), "The factor.")],
    rest: Some(argument("level", Type::Level, "A level that stays.")),
    key: 1,
    ..NODE
};

const RS256: Word = word("RS256", "RSA signature with SHA-256.");

const ALGORITHMS: &[Word] = &[
    RS256,
    word("HS256", "HMAC with the public key's text as secret, as the known attack does."),
    word("none", "No signature."),
];

/// `credentials`.
pub static CREDENTIALS: NodeSpec = NodeSpec {
    name: "credentials",
    doc: "An issuer of bearer tokens, with keys made for each run. Its variables: `${NAME.public-key}`, `${NAME.issuer}`, \
          `${NAME.audience}`.",
    example: "credentials oauth2 issuer=\"https://issuer.test\" audience=\"events\" { token reader scope=\"events:read\" }",
    count: Count::Any,
    arguments: &[argument("name", Type::Name, "Name, the first part of its variables.")],
    settings: &[
        setting("algorithm", Type::Word(&[RS256]), "RS256", "Signature of the tokens.").default("RS256"),
        setting("issuer", Type::Text, "\"https://issuer.test\"", "The `iss` claim.").required(),
        setting("audience", Type::Text, "\"events\"", "The `aud` claim.").required(),
        setting("subject", Type::Text, "\"client-bench\"", "The `sub` claim.").default("client-bench"),
    ],
    children: &[&TOKEN],
    key: 1,
    defines: Some(Kind::Credentials),
    ..NODE
};

static TOKEN: NodeSpec = NodeSpec {
    name: "token",
    doc: "A token, minted at the start of a run. What it leaves out comes from its issuer.",
    example: "token expired scope=\"events:read\" expires=\"-1h\"",
    count: Count::Some,
    arguments: &[argument("name", Type::Name, "The name that `bearer` takes.")],
    settings: &[
        setting("scope", Type::Text, "\"events:read\"", "The `scope` claim."),
        setting("expires", Type::SignedDuration, "\"-1h\"", "`exp`, from the moment of minting; may lie in the past.")
            .default("7d"),
        setting("not-before", Type::SignedDuration, "\"1h\"", "`nbf`, from the moment of minting."),
        setting("issuer", Type::Text, "\"https://other.test\"", "`iss`, where it differs."),
        setting("audience", Type::Text, "\"other\"", "`aud`, where it differs."),
        setting("subject", Type::Text, "\"someone-else\"", "`sub`, where it differs."),
        setting("algorithm", Type::Word(ALGORITHMS), "none", "Signature, where it differs."),
        setting(
            "key",
            Type::Word(&[word("foreign", "A key that the candidates don't know.")]),
            "foreign",
            "Whose key signs it, where that isn't the issuer's.",
        ),
        setting("raw", Type::Text, "\"garbage\"", "Sent as it stands, not minted at all."),
    ],
    key: 1,
    defines: Some(Kind::Token),
    ..NODE
};

const MEMORY: Setting = setting("memory", Type::Bytes, "\"1GiB\"", "Memory limit.");

static IMAGE: NodeSpec = NodeSpec {
    name: "image",
    doc: "How it runs on a Docker Engine: an image that is pulled, or built from a directory.",
    example: "image build=\"candidates/php\" dockerfile=\"Dockerfile.fpm\"",
    arguments: &[optional("reference", Type::Text, "An image to pull, such as \"postgres:17\".")],
    settings: &[
        setting("build", Type::Directory, "\"candidates/go\"", "Directory with a Dockerfile: the build context."),
        setting("dockerfile", Type::Text, "\"Dockerfile.fpm\"", "The Dockerfile inside the build context.")
            .default("Dockerfile"),
    ],
    ..NODE
};

static PROCESS: NodeSpec = NodeSpec {
    name: "process",
    doc: "How it runs without Docker: a command of the machine.",
    example: "process \"./server\" in=\"candidates/go\" { build \"go\" \"build\" \"-o\" \"server\" \".\"; needs go }",
    arguments: &[argument("command", Type::Text, "The program (or `builtin`, for the probe inside `exp` itself).")],
    rest: Some(optional("argument", Type::Text, "An argument of the program.")),
    settings: &[setting("in", Type::Directory, "\"candidates/go\"", "Directory in which it is built and run.")],
    children: &[&BUILD, &NEEDS],
    ..NODE
};

static BUILD: NodeSpec = NodeSpec {
    name: "build",
    doc: "A command that is run once, before anything is measured.",
    example: "build \"cargo\" \"build\" \"--release\" \"--locked\"",
    rest: Some(argument("command", Type::Text, "The program and its arguments.")),
    ..NODE
};

static NEEDS: NodeSpec = NodeSpec {
    name: "needs",
    doc: "Programs that must be on PATH.",
    example: "needs cargo",
    rest: Some(argument("program", Type::Text, "A program.")),
    ..NODE
};

static READY: NodeSpec = NodeSpec {
    name: "ready",
    doc: "How a server shows that it can serve: a request that answers 2xx.",
    example: "ready GET=\"/healthz\" within=\"15s\"",
    count: Count::One,
    settings: &[
        setting("GET", Type::Text, "\"/healthz\"", "Path of the request.").required(),
        setting("within", Type::Duration, "\"15s\"", "How long it may take.").default("30s"),
    ],
    ..NODE
};

static ENV: NodeSpec = NodeSpec {
    name: "env",
    doc: "Environment variables. Their texts may read factors, `cores`, `port`, `database.url` (`.host`, `.port`, \
          `.name`, `.user`, `.password`) and the variables of credentials.",
    example: "env POOL=\"${pool}\" DATABASE_URL=\"${database.url}\"",
    free: Some(Free { name: "VARIABLE", ty: Type::Template, doc: "An environment variable and its text." }),
    ..NODE
};

static TLS: NodeSpec = NodeSpec {
    name: "tls",
    doc: "That it speaks TLS on its port, and how its certificate is checked.",
    example: "tls ca=\"certificates/ca.pem\" name=\"bench.test\"",
    settings: &[
        setting(
            "ca",
            Type::File,
            "\"certificates/ca.pem\"",
            "Certificates in PEM that are trusted; the system's where left out.",
        ),
        setting(
            "name",
            Type::Text,
            "\"bench.test\"",
            "The name that the certificate must have; 127.0.0.1 where left out.",
        ),
        setting(
            "certificate",
            Type::Word(&[word("unchecked", "Any certificate is taken, of whoever it is; the report says so.")]),
            "unchecked",
            "That the certificate is not checked.",
        ),
    ],
    ..NODE
};

const LISTEN: Setting =
    setting("listen", Type::Integer(1, 65_535), "8080", "The TCP port it listens on, on 127.0.0.1; `${port}`.");

/// `database`.
pub static DATABASE: NodeSpec = NodeSpec {
    name: "database",
    doc: "The database under the candidates. At most one. Without Docker the machine's own PostgreSQL serves.",
    example: "database events engine=postgres { image \"postgres:17\"; template { sql \"sql/schema.sql\" } }",
    arguments: &[argument("name", Type::Name, "Name, also of the template database.")],
    settings: &[
        setting("engine", Type::Word(&[word("postgres", "PostgreSQL 15 or later.")]), "postgres", "The server.")
            .default("postgres"),
        MEMORY,
        setting("like", Type::Reference(Kind::Definition), "bench", "The definition that this one amends."),
    ],
    children: &[&IMAGE, &SET, &TEMPLATE, &EACH],
    key: 1,
    defines: Some(Kind::Database),
    ..NODE
};

static SET: NodeSpec = NodeSpec {
    name: "set",
    doc: "Settings of the server, as PostgreSQL names them.",
    example: "set synchronous_commit=on shared_buffers=\"1GB\" max_connections=200",
    free: Some(Free { name: "setting", ty: Type::Text, doc: "A setting of the server and its value." }),
    ..NODE
};

static TEMPLATE: NodeSpec = NodeSpec {
    name: "template",
    doc: "The database that every cell gets a clone of. Made once, then locked.",
    example: "template { sql \"sql/schema.sql\"; sql \"sql/seed.sql\"; holds table=events rows=1_000_000 }",
    children: &[&SQL, &HOLDS],
    ..NODE
};

static SQL: NodeSpec = NodeSpec {
    name: "sql",
    doc: "A file of SQL, run statement by statement.",
    example: "sql \"sql/schema.sql\"",
    count: Count::Some,
    arguments: &[argument("file", Type::File, "Relative to this file.")],
    key: 1,
    ..NODE
};

static HOLDS: NodeSpec = NodeSpec {
    name: "holds",
    doc: "Rows that a table of the template must hold.",
    example: "holds table=events rows=1_000_000",
    count: Count::Any,
    settings: &[
        setting("table", Type::Text, "events", "The table.").required(),
        setting("rows", Type::Integer(0, i64::MAX), "1_000_000", "Its rows, exactly.").required(),
    ],
    key_setting: Some("table"),
    ..NODE
};

static EACH: NodeSpec = NodeSpec {
    name: "each",
    doc: "What happens to the database before each repetition.",
    example: "each cell { clone; prewarm events events_pkey; checkpoint settled=writeback }",
    arguments: &[argument(
        "what",
        Type::Word(&[word("cell", "Before each repetition of a cell.")]),
        "`cell`: before each repetition of a cell.",
    )],
    children: &[&CLONE, &PREWARM, &CHECKPOINT],
    ..NODE
};

static CLONE: NodeSpec = NodeSpec { name: "clone", doc: "A fresh clone of the template.", example: "clone", ..NODE };

static PREWARM: NodeSpec = NodeSpec {
    name: "prewarm",
    doc: "Relations that are read into shared buffers.",
    example: "prewarm events events_pkey",
    rest: Some(argument("relation", Type::Text, "A table or an index.")),
    ..NODE
};

static CHECKPOINT: NodeSpec = NodeSpec {
    name: "checkpoint",
    doc: "A checkpoint, so that none falls into the window.",
    example: "checkpoint settled=writeback",
    settings: &[setting(
        "settled",
        Type::Word(&[word("writeback", "Wait, by counters, until the checkpoint's writes have left the page cache.")]),
        "writeback",
        "What to wait for after it.",
    )],
    ..NODE
};

/// `probe`.
pub static PROBE: NodeSpec = NodeSpec {
    name: "probe",
    doc: "A server without application code. `gate generator-probe` drives it on the candidate's CPUs to see what \
          generator and host can do. At most one.",
    example: "probe nginx { process builtin; listen 8090; ready GET=\"/\" within=\"10s\" }",
    arguments: &[argument("name", Type::Name, "Name, for people.")],
    settings: &[Setting { required: true, ..LISTEN }],
    children: &[&IMAGE, &PROCESS, &ENV, &READY, &TLS],
    key: 1,
    defines: Some(Kind::Probe),
    ..NODE
};

/// `candidate`.
pub static CANDIDATE: NodeSpec = NodeSpec {
    name: "candidate",
    doc: "A system under test. Candidates are the levels of the built-in factor `candidate`.",
    example: "candidate go { image build=\"candidates/go\"; listen 8080; ready GET=\"/healthz\" }",
    count: Count::Any,
    arguments: &[argument("name", Type::Name, "Name, the level of the factor `candidate`.")],
    settings: &[
        setting("label", Type::Text, "\"Go · net/http · pgx\"", "One line for people; the name where it is left out."),
        Setting { required: true, ..LISTEN },
        MEMORY,
        setting("open-files", Type::Integer(64, 1_048_576), "65_536", "Limit of open files.").default("65536"),
        setting("like", Type::Reference(Kind::Definition), "php", "The definition that this one amends."),
    ],
    children: &[&IMAGE, &PROCESS, &ENV, &READY, &TLS],
    key: 1,
    defines: Some(Kind::Candidate),
    ..NODE
};

/// How parameters of a stream are drawn.
pub(super) const PARAMETERS: &[Variant] = &[
    Variant {
        name: "uniform",
        doc: "An integer from `from` to `to`, both included, each as likely.",
        settings: &[
            setting("from", Type::Integer(i64::MIN, i64::MAX), "1", "Smallest value.").required(),
            setting("to", Type::Integer(i64::MIN, i64::MAX), "1_000_000", "Largest value.").required(),
        ],
        rest: None,
    },
    Variant {
        name: "zipf",
        doc: "An integer from `from` to `to`; the k-th of them with a probability ∝ k^−exponent: a few are asked for often, \
              most rarely.",
        settings: &[
            setting("from", Type::Integer(i64::MIN, i64::MAX), "1", "The most frequent value.").required(),
            setting("to", Type::Integer(i64::MIN, i64::MAX), "1_000_000", "The least frequent value.").required(),
            setting("exponent", Type::Decimal(0.0, 10.0), "1.1", "How uneven: 0 is uniform.").default("1"),
        ],
        rest: None,
    },
    Variant {
        name: "csv",
        doc: "A column of a CSV file whose first line names the columns. Parameters of one stream that read the same file take \
              the same row in one request.",
        settings: &[
            setting("file", Type::File, "\"data/users.csv\"", "The file.").required(),
            setting("column", Type::Text, "name", "The column.").required(),
            setting(
                "order",
                Type::Word(&[
                    word("random", "Each row as likely."),
                    word("listed", "One after the other; back to the first after the last."),
                ]),
                "listed",
                "How rows are taken.",
            )
            .default("random"),
        ],
        rest: None,
    },
    Variant {
        name: "sequence",
        doc: "Integers from `from` on, one after the other; back to `from` after `to`.",
        settings: &[
            setting("from", Type::Integer(i64::MIN, i64::MAX), "1", "First value.").required(),
            setting("to", Type::Integer(i64::MIN, i64::MAX), "1_000", "Last value.").required(),
        ],
        rest: None,
    },
    Variant {
        name: "choice",
        doc: "One of these texts, each as likely.",
        settings: &[],
        rest: Some(argument("text", Type::Text, "A text.")),
    },
    Variant { name: "uuid", doc: "A random (version 4) UUID.", settings: &[], rest: None },
];
