//! Templates and clones: the data are made once, locked, and copied for every cell.
//!
//! A template is called `<name>_<first twelve digits of its hash>`. It is finished when its comment says so (the comment
//! is written last and holds the whole hash and the counted rows) and it is locked: marked as a template and closed to
//! connections. Anything else under that name is half made and is made anew.
//!
//! Clones are called `exp_cell_…`, so that [`Server::drop_clones`] finds every one of them after any ending.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plan::{Database, SqlFile};
use serde::{Deserialize, Serialize};
use tokio_postgres::error::{ErrorPosition, SqlState};

use super::script::{self, Statement};
use super::session::{Session, Trouble};
use super::{LOADING, MAINTENANCE, SCAN, Server, quoted};
use crate::error::StepError;

/// What the name of every clone begins with.
pub const CLONE_PREFIX: &str = "exp_cell_";
/// PostgreSQL cuts longer names off.
const MAX_NAME_BYTES: usize = 63;
/// How often a clone is tried while somebody holds the template. Each try waits five seconds inside PostgreSQL, which
/// looks every 100 ms whether the others are gone, so three tries and the pauses between them are about 16 seconds.
const CLONE_PAUSES: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(700)];

/// A template that is ready to be cloned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFacts {
    /// The database.
    pub database: String,
    /// The counted rows of each table that the study says something about.
    pub rows: BTreeMap<String, u64>,
    /// Size of the database, bytes.
    pub bytes: u64,
    /// How long it took to make, or to find that it was there.
    pub took: Duration,
    /// Whether it was there already.
    pub reused: bool,
}

/// The comment of a finished template.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Finished {
    #[serde(rename = "exp.template")]
    hash: String,
    rows: BTreeMap<String, u64>,
}

/// The name of a clone for this label (such as `ceiling-3-2`): prefixed, in characters that need no quoting, short enough.
pub fn clone_name(label: &str) -> String {
    let plain = label.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    CLONE_PREFIX.chars().chain(plain).take(MAX_NAME_BYTES).collect()
}

/// The name of a database's template.
fn template_name(database: &Database) -> String {
    let suffix = format!("_{}", database.template_hash.short());
    let mut name = database.name.clone();
    while name.len() + suffix.len() > MAX_NAME_BYTES {
        name.pop();
    }
    name + &suffix
}

impl Server {
    /// Makes the template of a database, or finds it there: runs its SQL files statement by statement (each in a
    /// transaction of its own, unless the file says `BEGIN`), counts the rows it must hold, and locks it. Where cells
    /// prewarm, the extension `pg_prewarm` is made too and the relations are looked up, so that a wrong name is known now.
    ///
    /// `progress` is told the file that is being run, the statements that are done and all statements.
    ///
    /// # Errors
    /// An SQL error, with file, line and PostgreSQL's message, detail and hint; rows that are not as declared; a server
    /// that does not answer. The half-made database is dropped.
    pub async fn make_template(
        &self,
        database: &Database,
        progress: &mut (dyn FnMut(&str, u64, u64) + Send),
    ) -> Result<TemplateFacts, StepError> {
        let begin = Instant::now();
        let name = template_name(database);
        let mut files = Vec::new();
        for file in &database.template {
            let statements = script::statements(&file.text).map_err(|wrong| {
                StepError::step(
                    format!("{}:{}: {}", file.path, wrong.line, wrong.what),
                    "a template's files are plain SQL, run statement by statement",
                    "correct the file",
                )
            })?;
            files.push((file, statements));
        }
        let what = || format!("the template {name} could not be made");
        let session = self.session(MAINTENANCE, SCAN, what).await?;
        let made = async {
            if let Some((rows, bytes)) = find_finished(&session, &name, database).await? {
                return Ok(TemplateFacts { database: name.clone(), rows, bytes, took: begin.elapsed(), reused: true });
            }
            drop_in(&session, &name).await?;
            session.run(&format!("CREATE DATABASE {}", quoted(&name))).await?;
            Ok(TemplateFacts {
                database: name.clone(),
                rows: BTreeMap::new(),
                bytes: 0,
                took: Duration::ZERO,
                reused: false,
            })
        }
        .await
        .map_err(|trouble: Trouble| trouble.step(what(), "read PostgreSQL's log"));
        let mut facts = match made {
            Ok(facts) if !facts.reused => facts,
            other => {
                session.close().await;
                return other;
            }
        };
        let filled = match self.fill(&name, database, &files, progress).await {
            Ok(rows) => lock(&session, &name, database, rows)
                .await
                .map_err(|trouble| trouble.step(what(), "read PostgreSQL's log")),
            Err(error) => Err(error),
        };
        if filled.is_err() {
            // What failed is told; that its remains could not be dropped too adds nothing: they are dropped at the next
            // attempt, or with the server.
            drop(drop_in(&session, &name).await);
        }
        session.close().await;
        (facts.rows, facts.bytes) = filled?;
        facts.took = begin.elapsed();
        Ok(facts)
    }

    /// Runs the files and counts the rows.
    async fn fill(
        &self,
        name: &str,
        database: &Database,
        files: &[(&SqlFile, Vec<Statement<'_>>)],
        progress: &mut (dyn FnMut(&str, u64, u64) + Send),
    ) -> Result<BTreeMap<String, u64>, StepError> {
        let session = self.session(name, LOADING, || format!("the template {name} could not be filled")).await?;
        let all = files.iter().map(|(_, statements)| statements.len() as u64).sum();
        let mut done = 0;
        for (file, statements) in files {
            for statement in statements {
                progress(&file.path, done, all);
                let ran = match statement.copied {
                    Some(lines) => session.copy_in(statement.text, lines).await,
                    None => session.run(statement.text).await,
                };
                ran.map_err(|trouble| sql_failed(file, statement, &trouble))?;
                done += 1;
            }
        }
        progress("counting rows", done, all);
        let mut rows = BTreeMap::new();
        for table in &database.holds {
            let what = || format!("the rows of `{}` in the template {name} could not be counted", table.table);
            let counted = session.count(&table.table).await.map_err(|trouble| {
                trouble.step(what(), format!("correct `holds table={}`, or the SQL of the template", table.table))
            })?;
            if counted != table.rows {
                return Err(StepError::step(
                    format!("the template {name} holds {counted} rows in `{}`, not {}", table.table, table.rows),
                    format!("the study says `holds table={} rows={}`", table.table, table.rows),
                    "correct the SQL of the template, or what the study says about it",
                ));
            }
            rows.insert(table.table.clone(), counted);
        }
        prepare_prewarm(&session, name, &database.each_cell.prewarm).await?;
        session.close().await;
        Ok(rows)
    }

    /// Makes a database from a template, and tells how long that took. The name comes from [`clone_name`]; a database
    /// that has it already is dropped first.
    ///
    /// The files are copied (`STRATEGY FILE_COPY`, which servers before 15 know alone) rather than passed through the WAL:
    /// measured, that writes half as much to the disk and leaves a fifth of it dirty; see the decision record on cloning.
    /// The clone's pages are not in shared buffers then, which prewarming is for.
    ///
    /// # Errors
    /// When somebody holds the template (error 55006): the sessions that do are named, and it is tried three times.
    pub async fn clone_template(&self, template: &str, name: &str) -> Result<Duration, StepError> {
        let begin = Instant::now();
        let what = || format!("the database {name} could not be cloned from the template {template}");
        if !name.starts_with(CLONE_PREFIX) || name.len() > MAX_NAME_BYTES {
            let why = format!("`{name}` is not the name of a clone: {CLONE_PREFIX}…, at most {MAX_NAME_BYTES} bytes");
            return Err(StepError::step(what(), why, "make the name from a label by `clone_name`"));
        }
        let session = self.session(MAINTENANCE, SCAN, what).await?;
        let cloned = clone_in(&session, template, name).await;
        let blocked = match &cloned {
            Err(trouble) if trouble.is(&SqlState::OBJECT_IN_USE) => blockers(&session, template).await,
            _ => Vec::new(),
        };
        session.close().await;
        match cloned {
            Ok(()) => Ok(begin.elapsed()),
            Err(trouble) if trouble.is(&SqlState::OBJECT_IN_USE) => {
                let (who, next) = match blocked.first() {
                    Some(first) => (
                        blocked.iter().map(|blocker| blocker.told.as_str()).collect::<Vec<_>>().join("; "),
                        format!("end the session (`SELECT pg_terminate_backend({})`) and run again", first.pid),
                    ),
                    None => (
                        "whoever held it has left meanwhile".to_owned(),
                        "run again: finished repetitions are kept".to_owned(),
                    ),
                };
                let tries = CLONE_PAUSES.len() + 1;
                Err(StepError::step(
                    format!("{}: somebody is connected to the template", what()),
                    format!("{trouble}; tried {tries} times in {:.0?}; {who}", begin.elapsed()),
                    next,
                ))
            }
            Err(trouble) => Err(trouble.step(what(), "see whether the disk is full, and read PostgreSQL's log")),
        }
    }

    /// Drops a database, ending the sessions in it; a template is unlocked first. It is no error when it is not there.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn drop_database(&self, name: &str) -> Result<(), StepError> {
        let what = || format!("the database {name} could not be dropped");
        let session = self.session(MAINTENANCE, SCAN, what).await?;
        let dropped = drop_in(&session, name).await;
        session.close().await;
        dropped.map_err(|trouble| trouble.step(what(), "read PostgreSQL's log"))
    }

    /// Drops every clone, whoever made it, and tells their names: what an interrupted run left in the server.
    ///
    /// # Errors
    /// When the server can't be asked or refuses one.
    pub async fn drop_clones(&self) -> Result<Vec<String>, StepError> {
        let what = || "the clones could not be dropped".to_owned();
        let session = self.session(MAINTENANCE, SCAN, what).await?;
        let dropped = async {
            let sql = "SELECT datname::text FROM pg_database WHERE starts_with(datname, $1) ORDER BY datname";
            let mut names = Vec::new();
            for row in session.rows(sql, &[&CLONE_PREFIX]).await? {
                names.push(row.try_get::<_, String>(0)?);
            }
            for name in &names {
                drop_in(&session, name).await?;
            }
            Ok(names)
        }
        .await;
        session.close().await;
        dropped.map_err(|trouble: Trouble| trouble.step(what(), "read PostgreSQL's log"))
    }
}

/// Rows and size of the finished template of this name and hash.
async fn find_finished(
    session: &Session,
    name: &str,
    database: &Database,
) -> Result<Option<(BTreeMap<String, u64>, u64)>, Trouble> {
    let sql = "SELECT datistemplate AND NOT datallowconn, shobj_description(oid, 'pg_database'), pg_database_size(oid) \
               FROM pg_database WHERE datname = $1";
    let Some(row) = session.rows(sql, &[&name]).await?.pop() else { return Ok(None) };
    let (locked, comment): (bool, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
    let Some(finished) = comment.and_then(|comment| serde_json::from_str::<Finished>(&comment).ok()) else {
        return Ok(None);
    };
    let is_ours = locked && finished.hash == database.template_hash.as_str();
    Ok(is_ours.then_some((finished.rows, size(row.try_get(2)?)?)))
}

/// Locks a filled template, then marks it as finished.
async fn lock(
    session: &Session,
    name: &str,
    database: &Database,
    rows: BTreeMap<String, u64>,
) -> Result<(BTreeMap<String, u64>, u64), Trouble> {
    let finished = Finished { hash: database.template_hash.as_str().to_owned(), rows };
    let comment = serde_json::to_string(&finished).map_err(|error| Trouble::Unexpected(error.to_string()))?;
    let name_in_sql = quoted(name);
    session.run(&format!("ALTER DATABASE {name_in_sql} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false")).await?;
    session.run(&format!("COMMENT ON DATABASE {name_in_sql} IS '{}'", comment.replace('\'', "''"))).await?;
    // Everything that was loaded is on the disk before the first clone reads it.
    session.run("CHECKPOINT").await?;
    let bytes = session.one("SELECT pg_database_size($1::text::name)", &[&name]).await?;
    Ok((finished.rows, size(bytes)?))
}

fn size(bytes: i64) -> Result<u64, Trouble> {
    u64::try_from(bytes).map_err(|_| Trouble::Unexpected(format!("the size of the database is {bytes} bytes")))
}

/// Makes the extension that warms relations and looks for them.
async fn prepare_prewarm(session: &Session, name: &str, relations: &[String]) -> Result<(), StepError> {
    if relations.is_empty() {
        return Ok(());
    }
    session.run("CREATE EXTENSION IF NOT EXISTS pg_prewarm").await.map_err(|trouble| {
        trouble.step(
            format!("the extension pg_prewarm, which warms the relations of each cell, is missing in {name}"),
            "use an image with PostgreSQL's contrib modules, or install them (Debian: part of postgresql-NN)",
        )
    })?;
    for relation in relations {
        session.relation(relation).await.map_err(|trouble| {
            trouble.step(
                format!("`prewarm` names `{relation}`, which the template {name} does not have"),
                "correct the name: relations are tables and indexes, such as `events events_pkey`",
            )
        })?;
    }
    Ok(())
}

fn sql_failed(file: &SqlFile, statement: &Statement<'_>, trouble: &Trouble) -> StepError {
    let position = match trouble.database().and_then(|error| error.position()) {
        Some(ErrorPosition::Original(position)) => *position,
        Some(ErrorPosition::Internal { .. }) | None => 1,
    };
    let line = statement.line_of(position);
    let first = statement.text.lines().next().unwrap_or_default();
    let shown: String = first.chars().take(80).collect();
    let cut = if statement.text.len() > shown.len() { " …" } else { "" };
    StepError::step(
        format!("{}:{line}: {trouble}", file.path),
        format!("PostgreSQL refused the statement of line {}: `{shown}{cut}`", statement.line),
        "correct the file",
    )
}

async fn drop_in(session: &Session, name: &str) -> Result<(), Trouble> {
    let sql = "SELECT datistemplate FROM pg_database WHERE datname = $1";
    let Some(row) = session.rows(sql, &[&name]).await?.pop() else { return Ok(()) };
    if row.try_get(0)? {
        session.run(&format!("ALTER DATABASE {} WITH IS_TEMPLATE false", quoted(name))).await?;
    }
    session.run(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quoted(name))).await
}

async fn clone_in(session: &Session, template: &str, name: &str) -> Result<(), Trouble> {
    drop_in(session, name).await?;
    let strategy = if session.version()?.major >= 15 { " STRATEGY file_copy" } else { "" };
    let sql = format!("CREATE DATABASE {} TEMPLATE {}{strategy}", quoted(name), quoted(template));
    let mut pauses = CLONE_PAUSES.iter();
    loop {
        match session.run(&sql).await {
            Err(trouble) if trouble.is(&SqlState::OBJECT_IN_USE) => match pauses.next() {
                Some(pause) => tokio::time::sleep(*pause).await,
                None => return Err(trouble),
            },
            done => return done,
        }
    }
}

/// A session that holds a template.
struct Blocker {
    pid: i32,
    told: String,
}

/// The sessions in a database, as far as the server tells.
async fn blockers(session: &Session, template: &str) -> Vec<Blocker> {
    let sql = "SELECT pid, format('session %s (%s, application \"%s\", user %s%s, %s, since %s): %s', \
                 pid, backend_type, application_name, coalesce(usename, 'none'), \
                 coalesce(', from ' || host(client_addr), ''), coalesce(state, 'running'), \
                 to_char(coalesce(state_change, backend_start), 'HH24:MI:SS'), \
                 coalesce(nullif(left(regexp_replace(query, '\\s+', ' ', 'g'), 120), ''), 'no query yet')) \
               FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid() ORDER BY backend_start LIMIT 5";
    let Ok(rows) = session.rows(sql, &[&template]).await else { return Vec::new() };
    let blocker = |row: &tokio_postgres::Row| Some(Blocker { pid: row.try_get(0).ok()?, told: row.try_get(1).ok()? });
    rows.iter().filter_map(blocker).collect()
}
