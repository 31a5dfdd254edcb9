//! fjall: an LSM tree. Rows by sequence number, three keyspaces that lead to it.

use std::path::{Path, PathBuf};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{CACHE_BYTES, Peer, call_key, encode, token};
use crate::failure::{Failure, Outcome, check};
use crate::workload::{Row, Samples};

/// A database.
pub struct Fjall {
    db: Database,
    rows: Keyspace,
    by_call: Keyspace,
    by_key: Keyspace,
    by_token: Keyspace,
    folder: PathBuf,
    size: u64,
}

impl Fjall {
    /// An empty one.
    pub fn create(folder: &Path) -> Outcome<Self> {
        let db = Database::builder(folder).cache_size(CACHE_BYTES as u64).open()?;
        let keyspace =
            |name: &str| db.keyspace(name, KeyspaceCreateOptions::default).map_err(Failure::of);
        let (rows, by_call) = (keyspace("rows")?, keyspace("by_call")?);
        let (by_key, by_token) = (keyspace("by_key")?, keyspace("by_token")?);
        Ok(Self { db, rows, by_call, by_key, by_token, folder: folder.to_owned(), size: 0 })
    }
}

impl Peer for Fjall {
    fn name(&self) -> &'static str {
        "fjall"
    }

    fn insert(&mut self, rows: &[Row], samples: &Samples) -> Outcome<()> {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncAll));
        for row in rows {
            let (seq, call) = (self.size.to_be_bytes(), call_key(row));
            check(!self.by_call.contains_key(&call)?, || "a call twice".into())?;
            batch.insert(&self.rows, seq, encode(row, samples));
            batch.insert(&self.by_call, call, seq);
            // A retry has the key of its first attempt.
            if row.attempt == 1 {
                batch.insert(&self.by_key, row.idempotency_key(), seq);
            }
            batch.insert(&self.by_token, token(row), seq);
            self.size += 1;
        }
        Ok(batch.commit()?)
    }

    fn holds(&mut self, row: &Row) -> Outcome<bool> {
        let Some(seq) = self.by_call.get(call_key(row))? else { return Ok(false) };
        Ok(self.rows.contains_key(seq)?)
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(self.db.persist(PersistMode::SyncAll)?)
    }
}
