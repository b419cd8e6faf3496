//! PostgreSQL: a server of this machine, templates made once and locked, a clone for every cell, and what the server
//! did meanwhile.
//!
//! Whoever starts the server (a container, or [`LocalPostgres`]) hands a [`Server`] over; everything else is the same
//! for both. The server belongs to one run and is thrown away with it, therefore:
//! - one role, a superuser, does everything: `exp` makes and drops databases with it, and the candidates connect with it.
//!   No privilege is checked in the measured path that a real deployment would have to grant first, and a study's SQL may
//!   create extensions. Its password is made for the run and never written down by us.
//! - every database in it that carries our names may be dropped.
//!
//! Nothing waits without end: every session carries a statement and a lock time-out, and every call here a limit of its
//! own on top, for a server that does not answer at all.

mod binaries;
#[cfg(feature = "embedded")]
pub mod embedded;
mod facts;
mod local;
pub(crate) mod pinned;
mod prepare;
mod remains;
mod script;
mod session;
mod settle;
mod template;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use crate::error::StepError;
use session::{Session, Trouble};

pub use binaries::Binaries;
pub use facts::Reading;
pub use local::{Leftover, LocalPostgres, LocalSpec, default_scratch, leftovers, password, remove_leftover};
pub use prepare::Prewarmed;
pub use settle::SettleFacts;
pub use template::{CLONE_PREFIX, TemplateFacts, clone_name};

/// Small questions and commands: longer means that the server is in trouble.
const QUICK: Duration = Duration::from_secs(30);
/// Scans of a whole table, and checkpoints: they read or write everything once.
const SCAN: Duration = Duration::from_secs(10 * 60);
/// One statement of a template's SQL: loading and indexing big tables.
const LOADING: Duration = Duration::from_secs(2 * 60 * 60);
/// The database that always exists; databases are made and dropped from here.
const MAINTENANCE: &str = "postgres";
/// How our sessions call themselves in `pg_stat_activity`.
const APPLICATION: &str = "exp";

/// A running server, and how to get in.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// Its address: loopback, unless the study declares another host.
    pub host: IpAddr,
    /// Its TCP port.
    pub port: u16,
    /// The superuser, for `exp` and the candidates alike.
    pub user: String,
    /// The superuser's password.
    pub password: String,
}

/// The password stays out of logs and panics.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({}@{}:{})", self.user, self.host, self.port)
    }
}

/// A server's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// `17` of `17.5`.
    pub major: u32,
    /// As the server tells it: `17.5 (Debian 17.5-1.pgdg12+1)`.
    pub text: String,
}

impl Server {
    /// The oldest version whose statistics and commands this crate knows.
    pub const OLDEST_VERSION: u32 = 13;

    /// A server on 127.0.0.1.
    pub fn local(port: u16, user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { host: IpAddr::V4(Ipv4Addr::LOCALHOST), port, user: user.into(), password: password.into() }
    }

    /// The address of a database, as clients take it: `postgres://user:password@127.0.0.1:5432/name`.
    pub fn url(&self, database: &str) -> String {
        let host = match self.host {
            IpAddr::V4(host) => host.to_string(),
            IpAddr::V6(host) => format!("[{host}]"),
        };
        format!(
            "postgres://{}:{}@{host}:{}/{}",
            escaped(&self.user),
            escaped(&self.password),
            self.port,
            escaped(database)
        )
    }

    /// Waits until the server answers a query, and tells how long that took.
    ///
    /// # Errors
    /// When it does not within the limit, or refuses us; class environment.
    pub async fn wait_ready(&self, within: Duration) -> Result<Duration, StepError> {
        let begin = Instant::now();
        loop {
            let trouble = match self.answers().await {
                Ok(()) => return Ok(begin.elapsed()),
                Err(trouble) => trouble,
            };
            if trouble.is_refusal() || begin.elapsed() >= within {
                return Err(StepError::environment(
                    format!("PostgreSQL on {}:{} was not ready within {within:.1?}", self.host, self.port),
                    trouble.to_string(),
                    "read the server's log; if it only needs longer, give its CPUs less other work",
                ));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn answers(&self) -> Result<(), Trouble> {
        let session = Session::open(self, MAINTENANCE, Duration::from_secs(5)).await?;
        session.run("SELECT 1").await?;
        session.close().await;
        Ok(())
    }

    /// The server's version.
    ///
    /// # Errors
    /// When the server can't be asked, or is older than [`Server::OLDEST_VERSION`].
    pub async fn version(&self) -> Result<Version, StepError> {
        let what = || format!("the version of PostgreSQL on {}:{} could not be read", self.host, self.port);
        let session = self.session(MAINTENANCE, QUICK, what).await?;
        let version = session.version().map_err(|trouble| trouble.step(what(), "use a PostgreSQL server of this age"));
        session.close().await;
        let version = version?;
        if version.major < Self::OLDEST_VERSION {
            return Err(StepError::environment(
                format!("PostgreSQL {} is too old", version.text),
                format!("its statistics differ from those of {} and later", Self::OLDEST_VERSION),
                "use a newer image, or install a newer PostgreSQL",
            ));
        }
        Ok(version)
    }

    /// The value of a server setting, with its unit: `200`, `1GB`, `on`.
    ///
    /// # Errors
    /// When there is no such setting or the server can't be asked.
    pub async fn setting(&self, name: &str) -> Result<String, StepError> {
        let what = || format!("the setting `{name}` of PostgreSQL could not be read");
        let session = self.session(MAINTENANCE, QUICK, what).await?;
        let value = session
            .one::<String>("SELECT current_setting($1)", &[&name])
            .await
            .map_err(|trouble| trouble.step(what(), "check the setting's name against the version of the server"));
        session.close().await;
        value
    }

    /// The exact number of rows of a table (`count(*)`). The name is taken as SQL takes it: `events`, `app.events`,
    /// `"Events"`.
    ///
    /// # Errors
    /// When the table does not exist or can't be read.
    pub async fn count(&self, database: &str, table: &str) -> Result<u64, StepError> {
        let what = || format!("the rows of `{table}` in the database {database} could not be counted");
        let session = self.session(database, SCAN, what).await?;
        let counted = session.count(table).await;
        session.close().await;
        counted.map_err(|trouble| trouble.step(what(), "check the table's name against the SQL of the template"))
    }

    /// A session, or an error that says what it was for.
    async fn session(
        &self,
        database: &str,
        limit: Duration,
        what: impl FnOnce() -> String,
    ) -> Result<Session, StepError> {
        Session::open(self, database, limit).await.map_err(|trouble| {
            trouble.step(what(), "see whether the server still runs and takes connections (its log tells)")
        })
    }
}

/// An identifier for SQL text: quoted, so that it is taken as it stands.
fn quoted(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

/// Percent-encodes what a URL does not take as it stands (RFC 3986 §2.3: unreserved characters stay).
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for &byte in text.as_bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_survives_any_name_and_password() {
        let server = Server::local(5432, "exp", "a/b@c d");
        assert_eq!(server.url("exp_cell é"), "postgres://exp:a%2Fb%40c%20d@127.0.0.1:5432/exp_cell%20%C3%A9");
        let parsed: tokio_postgres::Config = server.url("exp_cell é").parse().expect("a URL");
        assert_eq!(parsed.get_password(), Some(b"a/b@c d".as_slice()));
        assert_eq!(parsed.get_dbname(), Some("exp_cell é"));
        assert!(!format!("{server:?}").contains("a/b"), "the password stays hidden");
    }

    #[test]
    fn identifiers_are_taken_as_they_stand() {
        assert_eq!(quoted("events_0a"), "\"events_0a\"");
        assert_eq!(quoted("a\"; DROP"), "\"a\"\"; DROP\"");
    }
}
