//! A read transaction and its tables, shared by all who read between two commits: to begin one
//! costs more than a point read.
//!
//! The writer forgets the shared one with every commit, before it answers. So whoever reads
//! after an answer sees what was answered, and pages that nobody reads any more are not held.

use std::sync::{Arc, RwLock};

use redb::{Database, ReadOnlyTable, ReadTransaction};

use crate::codec::Head;
use crate::error::StorageError;
use crate::hash_index::{Readers, View};
use crate::tables;

pub(super) type Bytes = ReadOnlyTable<&'static [u8], &'static [u8]>;
pub(super) type Seqs = ReadOnlyTable<u64, &'static [u8]>;

/// What a snapshot reads.
pub(crate) struct Reading {
    pub(super) txn: ReadTransaction,
    pub(super) hash_index: View,
    pub(super) namespaces: Bytes,
    pub(super) run_ids: Bytes,
    pub(super) runs: Bytes,
    pub(super) events: Seqs,
    pub(super) wide_twins: Bytes,
    pub(super) head: Head,
}

impl Reading {
    fn begin(db: &Database, hash_index: &Readers) -> Result<Self, StorageError> {
        let (txn, hash_index) = hash_index.begin(db)?;
        let head = match txn.open_table(tables::META)?.get(tables::HEAD_KEY)? {
            Some(value) => Head::decode(value.value())?,
            None => Head::default(),
        };
        Ok(Self {
            namespaces: txn.open_table(tables::NAMESPACES)?,
            run_ids: txn.open_table(tables::RUN_IDS)?,
            runs: txn.open_table(tables::RUNS)?,
            events: txn.open_table(tables::EVENTS)?,
            wide_twins: txn.open_table(tables::WIDE_TWINS)?,
            txn,
            hash_index,
            head,
        })
    }
}

/// The reading of the newest commit, if somebody has begun one.
#[derive(Default)]
pub(crate) struct Latest(RwLock<Option<Arc<Reading>>>);

impl Latest {
    /// A reading that holds the first `size` events at least.
    pub(crate) fn get(
        &self,
        size: u64,
        db: &Database,
        hash_index: &Readers,
    ) -> Result<Arc<Reading>, StorageError> {
        let shared = self.0.read().expect("no holder panics").clone();
        if let Some(reading) = shared.filter(|reading| reading.head.size >= size) {
            return Ok(reading);
        }
        let reading = Arc::new(Reading::begin(db, hash_index)?);
        let mut shared = self.0.write().expect("no holder panics");
        // Another reader may have put a newer one there.
        if shared.as_ref().is_none_or(|other| other.head.size < reading.head.size) {
            *shared = Some(reading.clone());
        }
        Ok(reading)
    }

    /// For the writer: another commit is durable.
    pub(crate) fn forget(&self) {
        *self.0.write().expect("no holder panics") = None;
    }
}
