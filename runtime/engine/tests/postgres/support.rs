//! A PostgreSQL of this machine for one test, and a small database to make in it.

use std::path::PathBuf;

use engine::postgres::{Binaries, LocalPostgres, LocalSpec, Server, default_scratch};
use journal::RunId;
use plan::{CellDatabase, ContentHash, Database, SqlFile, Table};

/// A server that ends, and whose directory goes, with the test.
pub struct Cluster {
    pub local: LocalPostgres,
    pub server: Server,
    pub binaries: Binaries,
    pub spec: LocalSpec,
    _logs: tempfile::TempDir,
}

/// How to start a server for the test of this name.
pub fn spec(test: &str, logs: &tempfile::TempDir) -> LocalSpec {
    LocalSpec {
        run: RunId(format!("test-{test}-{}", std::process::id())),
        cpus: "0".parse().expect("a set"),
        memory_bytes: None,
        port: None,
        settings: [("max_connections", "20"), ("shared_buffers", "64MB")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        scratch: default_scratch(),
        log: logs.path().join("database.log"),
    }
}

pub async fn cluster(test: &str) -> Cluster {
    let logs = tempfile::tempdir().expect("a directory");
    let binaries = Binaries::find().expect("PostgreSQL is installed");
    let spec = spec(test, &logs);
    let local = LocalPostgres::start(&binaries, &spec).await.expect("started");
    Cluster { server: local.access().clone(), local, binaries, spec, _logs: logs }
}

impl Cluster {
    /// The directory of the server's files.
    pub fn directory(&self) -> PathBuf {
        self.spec.scratch.join(format!("exp-postgres-{}", self.spec.run))
    }

    /// Runs SQL as anybody could, in one session.
    pub async fn sql(&self, database: &str, sql: &str) {
        let session = connect(&self.server, database, "a test").await;
        session.batch_execute(sql).await.expect(sql);
    }
}

/// A session of somebody else.
pub async fn connect(server: &Server, database: &str, application: &str) -> tokio_postgres::Client {
    let mut config: tokio_postgres::Config = server.url(database).parse().expect("a URL");
    config.application_name(application);
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.expect("connected");
    tokio::spawn(connection);
    client
}

pub const ROWS: u64 = 5_000;

pub const SCHEMA: &str = "-- A table.\nCREATE TABLE events (\n    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,\n    kind text NOT NULL\n);\n";
pub const SEED: &str =
    "INSERT INTO events (kind) SELECT 'a;b' FROM generate_series(1, 5000);\nVACUUM (FREEZE, ANALYZE) events;\n";

/// A database of these files that must hold `rows`.
pub fn database(files: &[(&str, &str)], rows: u64) -> Database {
    let template: Vec<SqlFile> =
        files.iter().map(|&(path, text)| SqlFile { path: path.to_owned(), text: text.to_owned() }).collect();
    let holds = vec![Table { table: "events".to_owned(), rows }];
    Database {
        name: "events".to_owned(),
        image: None,
        memory_bytes: None,
        settings: Vec::new(),
        template_hash: ContentHash::of(&(&template, &holds)),
        template,
        holds,
        each_cell: CellDatabase {
            clone: true,
            prewarm: vec!["events".to_owned(), "events_pkey".to_owned()],
            checkpoint: true,
            settle_writeback: true,
        },
    }
}

pub fn events() -> Database {
    database(&[("sql/schema.sql", SCHEMA), ("sql/seed.sql", SEED)], ROWS)
}
