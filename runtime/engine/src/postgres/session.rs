//! One session: opened with time-outs, closed in order, its troubles told in full.

use std::error::Error as _;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use futures_util::SinkExt as _;
use tokio::task::JoinHandle;
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::types::{FromSqlOwned, ToSql};
use tokio_postgres::{Client, Config, NoTls, Row};

use super::{APPLICATION, Server, Version};
use crate::error::StepError;

/// What can go wrong with a session.
#[derive(Debug)]
pub(super) enum Trouble {
    /// PostgreSQL or the connection to it.
    Postgres(tokio_postgres::Error),
    /// No answer within the limit.
    Silent(Duration),
    /// An answer that nobody expects.
    Unexpected(String),
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl Trouble {
    /// PostgreSQL's own error, if it is one.
    pub(super) fn database(&self) -> Option<&DbError> {
        match self {
            Self::Postgres(error) => error.as_db_error(),
            Self::Silent(_) | Self::Unexpected(_) => None,
        }
    }

    /// Whether PostgreSQL gave this error code.
    pub(super) fn is(&self, code: &SqlState) -> bool {
        self.database().is_some_and(|error| error.code() == code)
    }

    /// Whether the server is there and won't let us in, however long we wait.
    pub(super) fn is_refusal(&self) -> bool {
        [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION, SqlState::INVALID_CATALOG_NAME]
            .iter()
            .any(|code| self.is(code))
    }

    /// A step error with this trouble as its reason.
    pub(super) fn step(&self, what: impl Into<String>, next: impl Into<String>) -> StepError {
        StepError::step(what, self.to_string(), next)
    }
}

/// `ERROR 42P01: relation "x" does not exist; detail: …; hint: …`, or the connection's error with its causes.
impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = self.database() {
            write!(f, "{} {}: {}", error.severity(), error.code().code(), error.message())?;
            for (name, text) in [("detail", error.detail()), ("hint", error.hint()), ("context", error.where_())] {
                if let Some(text) = text {
                    write!(f, "; {name}: {}", text.replace('\n', " · "))?;
                }
            }
            return Ok(());
        }
        match self {
            Self::Postgres(error) => {
                write!(f, "{error}")?;
                let mut cause = error.source();
                while let Some(error) = cause {
                    write!(f, ": {error}")?;
                    cause = error.source();
                }
                Ok(())
            }
            Self::Silent(limit) => write!(f, "PostgreSQL did not answer within {limit:.1?}"),
            Self::Unexpected(what) => f.write_str(what),
        }
    }
}

/// An open session. Dropping it cuts the connection; [`Session::close`] says goodbye first.
pub(super) struct Session {
    client: Client,
    connection: Connection,
    limit: Duration,
    server_version: String,
}

/// The task that moves the session's bytes.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Session {
    /// Connects. `limit` is the time that one statement may take; waiting for locks is part of it.
    pub(super) async fn open(server: &Server, database: &str, limit: Duration) -> Result<Self, Trouble> {
        let connecting = Duration::from_secs(10).min(limit);
        let mut config = Config::new();
        config
            .host(server.host.to_string())
            .port(server.port)
            .user(&server.user)
            .password(&server.password)
            .dbname(database)
            .application_name(APPLICATION)
            .connect_timeout(connecting)
            .options(format!(
                "-c statement_timeout={0} -c lock_timeout={0} -c idle_in_transaction_session_timeout=60000 \
                 -c client_min_messages=error",
                limit.as_millis()
            ));
        let (client, connection) = match tokio::time::timeout(connecting, config.connect(NoTls)).await {
            Ok(connected) => connected?,
            Err(_) => return Err(Trouble::Silent(connecting)),
        };
        let server_version = connection.parameter("server_version").unwrap_or_default().to_owned();
        // An error of the connection comes to light in the call that waits for an answer.
        let connection = Connection(tokio::spawn(async move { drop(connection.await) }));
        Ok(Self { client, connection, limit, server_version })
    }

    /// Ends the session and waits, briefly, until its goodbye is sent: a session that lingers blocks `CREATE DATABASE`.
    pub(super) async fn close(self) {
        let Self { client, mut connection, .. } = self;
        drop(client);
        // Should it not end in time, dropping the connection cuts it.
        let _ended = tokio::time::timeout(Duration::from_secs(2), &mut connection.0).await;
    }

    /// The server's version, as it told when the session began.
    pub(super) fn version(&self) -> Result<Version, Trouble> {
        let text = self.server_version.clone();
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        match digits.parse() {
            Ok(major) => Ok(Version { major, text }),
            Err(_) => Err(Trouble::Unexpected(format!("the server's version is told as `{text}`"))),
        }
    }

    /// Runs statements that give no rows, as one simple query.
    pub(super) async fn run(&self, sql: &str) -> Result<(), Trouble> {
        self.within(self.client.batch_execute(sql)).await
    }

    /// The first column of the only row.
    pub(super) async fn one<T: FromSqlOwned>(
        &self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<T, Trouble> {
        let row = self.within(self.client.query_one(sql, parameters)).await?;
        Ok(row.try_get(0)?)
    }

    /// All rows.
    pub(super) async fn rows(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Trouble> {
        self.within(self.client.query(sql, parameters)).await
    }

    /// The name of a relation as PostgreSQL writes it, quoted where it has to be; fails where there is none.
    pub(super) async fn relation(&self, name: &str) -> Result<String, Trouble> {
        self.one("SELECT $1::text::regclass::text", &[&name]).await
    }

    /// `count(*)` of a table.
    pub(super) async fn count(&self, table: &str) -> Result<u64, Trouble> {
        let table = self.relation(table).await?;
        let rows: i64 = self.one(&format!("SELECT count(*) FROM {table}"), &[]).await?;
        u64::try_from(rows).map_err(|_| Trouble::Unexpected(format!("count(*) of {table} is {rows}")))
    }

    /// Runs `COPY … FROM STDIN` with these lines.
    pub(super) async fn copy_in(&self, sql: &str, lines: &str) -> Result<(), Trouble> {
        self.within(async {
            let sink = self.client.copy_in::<_, std::io::Cursor<Vec<u8>>>(sql).await?;
            let mut sink = std::pin::pin!(sink);
            sink.send(std::io::Cursor::new(lines.as_bytes().to_vec())).await?;
            sink.finish().await?;
            Ok(())
        })
        .await
    }

    /// The server ends a statement at the limit itself; a server that does not even do that is left two seconds later.
    async fn within<T>(&self, work: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Trouble> {
        match tokio::time::timeout(self.limit + Duration::from_secs(2), work).await {
            Ok(done) => Ok(done?),
            Err(_) => Err(Trouble::Silent(self.limit)),
        }
    }
}
