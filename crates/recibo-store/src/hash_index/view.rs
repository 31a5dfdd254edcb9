//! What readers use: the index as one snapshot sees it.
//!
//! # Why a reader misses nothing
//!
//! A generation is the set of entries made between two flushes, in memory. The row of the
//! index in a snapshot names its generation: the one that was being filled when the snapshot
//! was taken. Every entry that the snapshot may need is either in a run of that row, or was
//! made after the flush that began this generation, and then it is in the generation's set:
//! entries go into the set before their commit, and nothing ever leaves it. So a view needs
//! exactly two things, the row and that one set, and it holds on to both; later flushes do
//! not touch either, however long the snapshot lives.
//!
//! The set may already be out of reach if two flushes happened between the start of the
//! read transaction and the look at [`Shared`]; then the transaction is begun anew. After one
//! flush it is still there, which also covers the flush of a commit that is under way or
//! that failed: readers still see the row before it.
//!
//! The set also holds entries newer than the snapshot, and after a failed commit entries of
//! events that never were. Both name events that the snapshot does not have, so the caller
//! who confirms a value against the events tells them apart.
//!
//! Rows of merged runs are removed in later transactions; a snapshot keeps the pages it sees.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable};

use super::Key;
use super::block::Entry;
use super::run::Summary;
use crate::codec::{IndexRow, RunRow};
use crate::error::StorageError;
use crate::tables;

/// Two flushes in the microsecond between two lines are rare; so many in a row are a bug.
const TRIES_MAX: usize = 100;

/// Entries that no run holds yet.
pub(super) struct Generation {
    no: u64,
    entries: RwLock<BTreeSet<Entry>>,
}

impl Generation {
    pub(super) fn new(no: u64, entries: BTreeSet<Entry>) -> Arc<Self> {
        Arc::new(Self { no, entries: RwLock::new(entries) })
    }

    pub(super) fn insert(&self, entry: Entry) {
        self.entries.write().expect("no holder panics").insert(entry);
    }

    pub(super) fn len(&self) -> usize {
        self.entries.read().expect("no holder panics").len()
    }

    /// All entries, in order.
    pub(super) fn sorted(&self) -> Vec<Entry> {
        self.entries.read().expect("no holder panics").iter().copied().collect()
    }

    /// The values of a prefix, newest first.
    fn values(&self, prefix: u64) -> Vec<u64> {
        let (from, to) = (Entry { prefix, value: 0 }, Entry { prefix, value: u64::MAX });
        let entries = self.entries.read().expect("no holder panics");
        entries.range(from..=to).rev().map(|entry| entry.value).collect()
    }
}

/// What the writer and the readers share.
pub(super) struct Shared {
    /// The generation being filled, and the one before it.
    generations: Mutex<(Arc<Generation>, Option<Arc<Generation>>)>,
    /// Summaries by run number, loaded when a lookup first needs them.
    summaries: RwLock<HashMap<u32, Arc<Summary>>>,
}

impl Shared {
    pub(super) fn new(generation: Arc<Generation>) -> Arc<Self> {
        let generations = Mutex::new((generation, None));
        Arc::new(Self { generations, summaries: RwLock::default() })
    }

    /// Begins a generation. To be called before the commit that makes readers ask for it.
    pub(super) fn begin(&self, generation: Arc<Generation>) {
        let mut generations = self.generations.lock().expect("no holder panics");
        let before = std::mem::replace(&mut generations.0, generation);
        generations.1 = Some(before);
    }

    fn generation(&self, no: u64) -> Option<Arc<Generation>> {
        let generations = self.generations.lock().expect("no holder panics");
        let (newest, before) = &*generations;
        [Some(newest), before.as_ref()].into_iter().flatten().find(|it| it.no == no).cloned()
    }

    /// Forgets the summaries of runs that are no more. A reader of an old snapshot may put one
    /// back; it goes with the next call.
    pub(super) fn retain(&self, runs: &[RunRow]) {
        let mut summaries = self.summaries.write().expect("no holder panics");
        summaries.retain(|no, _| runs.iter().any(|run| run.no == *no));
    }

    fn summaries_of(
        &self,
        rows: &impl ReadableTable<u64, &'static [u8]>,
        runs: &[RunRow],
    ) -> Result<Vec<Arc<Summary>>, StorageError> {
        let known: Vec<Option<Arc<Summary>>> = {
            let summaries = self.summaries.read().expect("no holder panics");
            runs.iter().map(|run| summaries.get(&run.no).cloned()).collect()
        };
        let mut all = Vec::with_capacity(runs.len());
        for (run, known) in runs.iter().zip(known) {
            let summary = match known {
                Some(summary) => summary,
                None => {
                    // Read without the lock: two readers may both load it, to the same end.
                    let loaded = Arc::new(Summary::load(rows, run)?);
                    let mut summaries = self.summaries.write().expect("no holder panics");
                    summaries.insert(run.no, loaded.clone());
                    loaded
                }
            };
            all.push(summary);
        }
        Ok(all)
    }
}

/// Opens views. Clones share one index.
#[derive(Clone)]
pub(crate) struct Readers(pub(super) Arc<Shared>);

impl Readers {
    /// Begins a read transaction together with its view of the index.
    pub(crate) fn begin(&self, db: &Database) -> Result<(ReadTransaction, View), StorageError> {
        for _ in 0..TRIES_MAX {
            let txn = db.begin_read()?;
            let row = read_row(&txn.open_table(tables::HASH_INDEX)?)?;
            if let Some(generation) = self.0.generation(row.generation) {
                let (shared, summaries) = (self.0.clone(), OnceLock::new());
                return Ok((txn, View { row, generation, shared, summaries }));
            }
        }
        Err(StorageError::Inconsistent("the hash index has no such generation"))
    }
}

/// The index as a transaction sees it.
pub(crate) struct View {
    row: IndexRow,
    generation: Arc<Generation>,
    shared: Arc<Shared>,
    summaries: OnceLock<Vec<Arc<Summary>>>,
}

impl View {
    /// Hands candidates to `confirm`, newest first, until it gives something. Candidates are
    /// all values entered for this key, each once, and rarely others: of keys that share 64
    /// bits, and of events that the transaction does not have.
    ///
    /// `rows` is the index's table in the transaction of this view. The first lookup after a
    /// start loads the summaries of all runs.
    pub(crate) fn find_map<T>(
        &self,
        rows: &impl ReadableTable<u64, &'static [u8]>,
        key: Key,
        mut confirm: impl FnMut(u64) -> Result<Option<T>, StorageError>,
    ) -> Result<Option<T>, StorageError> {
        for value in self.generation.values(key.0) {
            if let Some(found) = confirm(value)? {
                return Ok(Some(found));
            }
        }
        for summary in self.summaries(rows)?.iter().rev() {
            if let Some(found) = summary.find_map(rows, key.0, &mut confirm)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn summaries(
        &self,
        rows: &impl ReadableTable<u64, &'static [u8]>,
    ) -> Result<&[Arc<Summary>], StorageError> {
        if let Some(summaries) = self.summaries.get() {
            return Ok(summaries);
        }
        let loaded = self.shared.summaries_of(rows, &self.row.runs)?;
        Ok(self.summaries.get_or_init(|| loaded))
    }
}

/// The row of the index; a new ledger has none.
pub(super) fn read_row(
    rows: &impl ReadableTable<u64, &'static [u8]>,
) -> Result<IndexRow, StorageError> {
    match rows.get(super::ROW_KEY)? {
        Some(value) => Ok(IndexRow::decode(value.value())?),
        None => Ok(IndexRow::default()),
    }
}
