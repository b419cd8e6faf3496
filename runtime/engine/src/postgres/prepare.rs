//! What a clone goes through before it is measured: warmed, and written out by a checkpoint.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::session::Trouble;
use super::{MAINTENANCE, SCAN, Server};
use crate::error::StepError;

/// Relations that were read into shared buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prewarmed {
    /// Blocks read, by relation.
    pub blocks: BTreeMap<String, u64>,
    /// How long it took.
    pub took: Duration,
}

impl Server {
    /// Reads relations of a database into shared buffers, whole, in the order given. What does not fit pushes out what
    /// was read before, as PostgreSQL's `pg_prewarm` does.
    ///
    /// # Errors
    /// When a relation is missing, or the extension `pg_prewarm` is.
    pub async fn prewarm(&self, database: &str, relations: &[String]) -> Result<Prewarmed, StepError> {
        let begin = Instant::now();
        let what = |relation: &str| format!("`{relation}` of the database {database} could not be prewarmed");
        let session = self.session(database, SCAN, || what(&relations.join(" "))).await?;
        let mut blocks = BTreeMap::new();
        for relation in relations {
            let read = async {
                let read: i64 = session.one("SELECT pg_prewarm($1::text::regclass)", &[relation]).await?;
                u64::try_from(read).map_err(|_| Trouble::Unexpected(format!("{read} blocks were read")))
            };
            let read = read.await.map_err(|trouble| {
                trouble.step(what(relation), "correct the relation's name; the template makes the extension pg_prewarm")
            })?;
            blocks.insert(relation.clone(), read);
        }
        session.close().await;
        Ok(Prewarmed { blocks, took: begin.elapsed() })
    }

    /// Runs a checkpoint and waits for its end: every page that was changed so far is then on the disk.
    ///
    /// # Errors
    /// When the server refuses it or does not answer.
    pub async fn checkpoint(&self) -> Result<Duration, StepError> {
        let begin = Instant::now();
        let what = || "the checkpoint could not be made".to_owned();
        let session = self.session(MAINTENANCE, SCAN, what).await?;
        let made = session.run("CHECKPOINT").await;
        session.close().await;
        made.map_err(|trouble| trouble.step(what(), "see whether the disk is full, and read PostgreSQL's log"))?;
        Ok(begin.elapsed())
    }
}
