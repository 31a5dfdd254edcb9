//! The storage limit: redb with one table in ascending order and no index. It finds nothing
//! but a sequence number.

use std::path::{Path, PathBuf};

use redb::{Database, Durability, ReadableDatabase, TableDefinition};

use super::{CACHE_BYTES, Peer, encode};
use crate::failure::Outcome;
use crate::workload::{Row, Samples};

const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");

/// One table.
pub struct RawRedb {
    db: Database,
    folder: PathBuf,
    size: u64,
}

impl RawRedb {
    /// An empty one.
    pub fn create(folder: &Path) -> Outcome<Self> {
        std::fs::create_dir_all(folder)?;
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE_BYTES);
        let db = builder.create(folder.join("raw.redb"))?;
        Ok(Self { db, folder: folder.to_owned(), size: 0 })
    }
}

impl Peer for RawRedb {
    fn name(&self) -> &'static str {
        "raw redb"
    }

    fn insert(&mut self, rows: &[Row], samples: &Samples) -> Outcome<()> {
        let mut txn = self.db.begin_write()?;
        txn.set_durability(Durability::Immediate)?;
        txn.set_two_phase_commit(true);
        txn.set_quick_repair(true);
        let mut table = txn.open_table(ROWS)?;
        for row in rows {
            table.insert(self.size, encode(row, samples).as_slice())?;
            self.size += 1;
        }
        drop(table);
        Ok(txn.commit()?)
    }

    fn holds(&mut self, _: &Row) -> Outcome<bool> {
        let txn = self.db.begin_read()?;
        Ok(txn.open_table(ROWS)?.get(self.size - 1)?.is_some())
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(())
    }
}
