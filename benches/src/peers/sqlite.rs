//! SQLite: one table, three indexes, write-ahead log, synced at every commit.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};

use super::{CACHE_BYTES, Peer, SCOPE, token};
use crate::failure::Outcome;
use crate::workload::{Row, Samples};

const SCHEMA: &str = "
create table receipts (
    seq integer primary key, run_id text not null, tool_call_id text not null,
    attempt integer not null, tool text not null, effect text not null, status text not null,
    started_at integer not null, duration_ms integer not null, recorded_at integer not null,
    input_hash blob not null, output_hash blob not null, token text not null,
    scope_id text not null, idempotency_key blob not null
) strict;
create unique index by_call on receipts (run_id, tool_call_id, attempt);
create index by_key on receipts (idempotency_key);
create index by_token on receipts (token);
";

/// A database.
pub struct Sqlite {
    db: Connection,
    folder: PathBuf,
}

impl Sqlite {
    /// An empty one.
    pub fn create(folder: &Path) -> Outcome<Self> {
        std::fs::create_dir_all(folder)?;
        let db = Connection::open(folder.join("ledger.sqlite"))?;
        db.pragma_update(None, "journal_mode", "wal")?;
        db.pragma_update(None, "synchronous", "full")?;
        db.pragma_update(None, "cache_size", -((CACHE_BYTES >> 10) as i64))?;
        db.execute_batch(SCHEMA)?;
        Ok(Self { db, folder: folder.to_owned() })
    }
}

impl Peer for Sqlite {
    fn name(&self) -> &'static str {
        "SQLite"
    }

    fn insert(&mut self, rows: &[Row], samples: &Samples) -> Outcome<()> {
        let txn = self.db.transaction()?;
        let mut insert = txn.prepare_cached(
            "insert into receipts values (null, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?;
        for row in rows {
            let sample = row.sample(samples);
            insert.execute(params![
                row.run_id(),
                row.tool_call_id(),
                row.attempt,
                row.tool(samples),
                row.effect(samples).as_str(),
                row.status(),
                row.started_ms as i64,
                row.duration_ms as i64,
                row.started_ms as i64,
                sample.input_hash.as_bytes().as_slice(),
                sample.output_hash.as_bytes().as_slice(),
                token(row),
                SCOPE,
                row.idempotency_key().as_slice(),
            ])?;
        }
        drop(insert);
        Ok(txn.commit()?)
    }

    fn holds(&mut self, row: &Row) -> Outcome<bool> {
        let mut find = self.db.prepare_cached(
            "select 1 from receipts where run_id = ? and tool_call_id = ? and attempt = ?",
        )?;
        Ok(find.exists(params![row.run_id(), row.tool_call_id(), row.attempt])?)
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        self.db.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))?;
        Ok(())
    }
}
