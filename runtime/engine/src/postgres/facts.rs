//! What PostgreSQL did across a window: its own counters, read before and after.
//!
//! - WAL is the distance between two insert positions of the log (`pg_current_wal_insert_lsn`): exact at the moment of
//!   asking, whereas `pg_stat_wal` lags behind. What is inserted within a window is what the window's work wrote, also
//!   where it reaches the disk later.
//! - Commits and inserted rows come from `pg_stat_database`. A session reports them when it is idle or ends, and at most
//!   once a second; one that stays busy or idles lags by up to a second (by ten seconds where it fell idle right after a
//!   report). They describe what the database did meanwhile and are not compared with the acknowledged writes: rows are
//!   counted for that.
//! - Checkpoints are counted when they begin, by `pg_stat_bgwriter`, since version 17 by `pg_stat_checkpointer`.

use journal::DatabaseFacts;

use super::session::Trouble;
use super::{MAINTENANCE, QUICK, Server};
use crate::error::StepError;

/// Counters since the server's statistics began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Checkpoints that were timed.
    pub checkpoints_timed: u64,
    /// Checkpoints that were requested, by WAL volume or command.
    pub checkpoints_requested: u64,
    /// WAL inserted, bytes.
    pub wal_bytes: u64,
    /// Committed transactions of the database.
    pub commits: u64,
    /// Rows inserted into the database.
    pub inserted: u64,
}

impl Reading {
    /// What happened from this reading to a later one.
    ///
    /// # Errors
    /// When a counter ran backwards, which a restart or a reset of the statistics does: the difference means nothing.
    pub fn until(&self, end: &Self) -> Result<DatabaseFacts, String> {
        let difference = |name: &str, start: u64, end: u64| {
            end.checked_sub(start).ok_or_else(|| {
                format!(
                    "PostgreSQL's counter of {name} ran backwards, from {start} to {end}: it was restarted or reset"
                )
            })
        };
        Ok(DatabaseFacts {
            checkpoints_timed: difference("timed checkpoints", self.checkpoints_timed, end.checkpoints_timed)?,
            checkpoints_requested: difference(
                "requested checkpoints",
                self.checkpoints_requested,
                end.checkpoints_requested,
            )?,
            wal_bytes: difference("WAL bytes", self.wal_bytes, end.wal_bytes)?,
            commits: difference("commits", self.commits, end.commits)?,
            inserted: difference("inserted rows", self.inserted, end.inserted)?,
        })
    }
}

impl Server {
    /// The counters of the server and of one of its databases, now. It asks from another database, so that asking is not
    /// counted.
    ///
    /// # Errors
    /// When the server can't be asked or there is no such database.
    pub async fn reading(&self, database: &str) -> Result<Reading, StepError> {
        let what = || format!("PostgreSQL's counters of the database {database} could not be read");
        let session = self.session(MAINTENANCE, QUICK, what).await?;
        let read = async {
            let checkpoints = if session.version()?.major >= 17 {
                "num_timed, num_requested FROM pg_stat_checkpointer"
            } else {
                "checkpoints_timed, checkpoints_req FROM pg_stat_bgwriter"
            };
            let sql = format!(
                "SELECT c.timed, c.requested, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, \
                   d.xact_commit, d.tup_inserted \
                 FROM (SELECT {checkpoints}) AS c (timed, requested), pg_stat_database AS d WHERE d.datname = $1"
            );
            let Some(row) = session.rows(&sql, &[&database]).await?.pop() else {
                return Err(Trouble::Unexpected(format!("there is no database {database}")));
            };
            let counter = |index: usize| -> Result<u64, Trouble> {
                let value: i64 = row.try_get(index)?;
                u64::try_from(value).map_err(|_| Trouble::Unexpected(format!("a counter is negative: {value}")))
            };
            Ok(Reading {
                checkpoints_timed: counter(0)?,
                checkpoints_requested: counter(1)?,
                wal_bytes: counter(2)?,
                commits: counter(3)?,
                inserted: counter(4)?,
            })
        }
        .await;
        session.close().await;
        read.map_err(|trouble| trouble.step(what(), "see whether the server still runs (its log tells)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_of_two_readings_or_none() {
        let start =
            Reading { checkpoints_timed: 1, checkpoints_requested: 2, wal_bytes: 1_000, commits: 5, inserted: 70 };
        let end =
            Reading { checkpoints_timed: 1, checkpoints_requested: 3, wal_bytes: 5_000, commits: 9, inserted: 170 };
        let facts = DatabaseFacts {
            checkpoints_timed: 0,
            checkpoints_requested: 1,
            wal_bytes: 4_000,
            commits: 4,
            inserted: 100,
        };
        assert_eq!(start.until(&end), Ok(facts));
        let told = end.until(&start).expect_err("backwards");
        assert!(told.contains("requested checkpoints ran backwards, from 3 to 2"), "{told}");
    }
}
