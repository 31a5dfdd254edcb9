//! From hashes to numbers of events, for keys that come in random order.
//!
//! A B-tree with random keys rewrites a page per entry and costs 3.5 times the throughput of
//! the whole ledger. Here new entries wait in memory and are written sorted:
//!
//! - Entries since the last flush are in a set in memory (a *generation*). They are not
//!   written, because the events say them again: a start reads the events since
//!   `flushed_to` and enters what is lost. A flush after [`Tuning::STORED`]'s 8,192 entries
//!   or 16,384 events bounds that.
//! - A flush writes the set as a *run* of tier 0: blocks of up to 291 sorted entries.
//! - Eight runs of a tier are merged into one of the next, oldest first, in small steps paid
//!   by new entries, so that no commit is slow. The output becomes visible, and the inputs
//!   invisible, in one transaction; the inputs' rows are then removed in small steps too.
//!   Every step can be resumed after a crash.
//! - A lookup asks the set, then the runs from new to old, each through a filter.
//!
//! | key | value |
//! |---|---|
//! | 0 | what there is: [`IndexRow`] |
//! | run number (from 1), block number, 32 bits each | a block |
//! | run number, 2^31 + group number | first prefixes and filters of ten blocks |
//!
//! Knows nothing of events: a value is confirmed by the caller, since 64 bits of a hash may
//! be shared. Nobody can remove an entry.
//!
//! **Memory** at 10 million entries: filters and first prefixes 14 MB (11 bits per entry;
//! loaded by the first lookup, never if nobody looks up). The set and the one before it: up to
//! 8,192 entries each and what one commit adds, about 24 bytes each: 0.5 MB. Each snapshot
//! held open across flushes keeps one more set. A merge under way: 45 KB, one per tier.
//!
//! **Runs** at n entries: up to 15 per tier, log8(n / 8,192) tiers: at 10 million 12 to 50.

mod block;
mod merge;
mod run;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;

use redb::{ReadableTable, WriteTransaction};

use crate::codec::{IndexRow, MergeRow, RunRow};
use crate::error::StorageError;
use crate::tables;
use block::Entry;
use merge::Merge;
use run::{Rows, RunWriter, Shape};
use view::{Generation, Shared};

pub(crate) use view::{Readers, View};

const ROW_KEY: u64 = 0;

/// What a hash is of. Numbers are stored, mixed into the key: never use one again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// An idempotency key; its value is the first event of the call.
    IdempotencyKey = 1,
}

/// What is looked up: the first 64 bits of a hash, set apart by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key(u64);

impl Key {
    /// `hash` must be of a cryptographic hash: runs are searched as if prefixes were random.
    pub(crate) fn new(kind: Kind, hash: &[u8; 32]) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *hash;
        let apart = u64::from(kind as u8).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self(u64::from_be_bytes([a, b, c, d, e, f, g, h]) ^ apart)
    }
}

/// Sizes of the index. Tests use smaller ones; a file may be opened with any.
#[derive(Clone, Copy, Debug)]
struct Tuning {
    /// Entries that are flushed together; twice as many events force a flush too.
    flush_entries: u64,
    /// Runs that are merged into one.
    fan_in: usize,
    /// Blocks that every merge may write while one flush's worth of entries comes in. A
    /// merge of a tier has to write as many blocks as were flushed since the last one of its
    /// tier: 8,192 / 291 = 29 per flush. 64 leaves half of the time without a merge.
    merge_blocks: u64,
    shape: Shape,
}

impl Tuning {
    const STORED: Self =
        Self { flush_entries: 8_192, fan_in: 8, merge_blocks: 64, shape: Shape::STORED };

    fn flush_events(&self) -> u64 {
        2 * self.flush_entries
    }
}

/// The writer's side. Follows what is committed: after a failed commit it is wrong, and the
/// writer stops. A transaction that is aborted must have called neither [`Self::insert`] nor
/// [`Self::maintain`].
pub(crate) struct HashIndex {
    tuning: Tuning,
    row: IndexRow,
    generation: Arc<Generation>,
    /// Merges that have begun in this process.
    merges: Vec<Merge>,
    /// Events and entries up to which merges were paid.
    paid: (u64, u64),
    /// What is left of it, in parts of a block.
    credit: u64,
    shared: Arc<Shared>,
}

impl HashIndex {
    /// Reads the index of a ledger of `size` events. `lost` must give the entries of all events
    /// from a number on: at most about 16,384 events and what one commit adds.
    pub(crate) fn open(
        rows: &impl ReadableTable<u64, &'static [u8]>,
        size: u64,
        lost: impl FnOnce(u64) -> Result<Vec<(Key, u64)>, StorageError>,
    ) -> Result<Self, StorageError> {
        Self::open_tuned(rows, size, lost, Tuning::STORED)
    }

    fn open_tuned(
        rows: &impl ReadableTable<u64, &'static [u8]>,
        size: u64,
        lost: impl FnOnce(u64) -> Result<Vec<(Key, u64)>, StorageError>,
        tuning: Tuning,
    ) -> Result<Self, StorageError> {
        let row = view::read_row(rows)?;
        if row.flushed_to > size {
            return Err(StorageError::Inconsistent("the hash index is ahead of the events"));
        }
        let lost = lost(row.flushed_to)?;
        let entries: BTreeSet<Entry> =
            lost.into_iter().map(|(key, value)| Entry { prefix: key.0, value }).collect();
        let paid = (size, entries.len() as u64);
        let generation = Generation::new(row.generation, entries);
        let shared = Shared::new(generation.clone());
        Ok(Self { tuning, row, generation, merges: Vec::new(), paid, credit: 0, shared })
    }

    /// For those who look up.
    pub(crate) fn readers(&self) -> Readers {
        Readers(self.shared.clone())
    }

    /// Enters a value. Readers may meet it before its event is committed.
    pub(crate) fn insert(&self, key: Key, value: u64) {
        self.generation.insert(Entry { prefix: key.0, value });
    }

    /// Flushes if it is time, and does a share of merging and clearing that is proportional
    /// to the entries and events since the last call. `size` is the number of events with
    /// those of this transaction. To be called once per transaction, before its commit.
    pub(crate) fn maintain(
        &mut self,
        txn: &WriteTransaction,
        size: u64,
    ) -> Result<(), StorageError> {
        let entries = self.generation.len() as u64;
        let blocks = self.earn(entries, size);
        let is_due = entries >= self.tuning.flush_entries
            || size - self.row.flushed_to >= self.tuning.flush_events();
        let is_idle = self.row.merges.is_empty() && self.row.trash.is_empty();
        if !is_due && (blocks == 0 || is_idle) {
            return Ok(());
        }
        let mut rows = txn.open_table(tables::HASH_INDEX)?;
        let mut is_changed = is_due;
        if is_due {
            self.flush(&mut rows, size)?;
        }
        is_changed |= self.merge(&mut rows, blocks)?;
        // A merged block is a block to remove: twice as many per merge leave no backlog.
        let rows_max = 2 * blocks * (1 + self.row.merges.len() as u64);
        is_changed |= self.clear(&mut rows, rows_max)?;
        if is_changed {
            rows.insert(ROW_KEY, self.row.encode().as_slice())?;
        }
        Ok(())
    }

    /// Blocks that each merge may write now.
    fn earn(&mut self, entries: u64, size: u64) -> u64 {
        let (paid_size, paid_entries) = self.paid;
        self.paid = (size, entries);
        let events = (size - paid_size).max(2 * (entries - paid_entries));
        self.credit += events * self.tuning.merge_blocks;
        let blocks = self.credit / self.tuning.flush_events();
        self.credit %= self.tuning.flush_events();
        blocks
    }

    fn flush(&mut self, rows: &mut Rows<'_>, size: u64) -> Result<(), StorageError> {
        self.row.flushed_to = size;
        let entries = self.generation.sorted();
        if entries.is_empty() {
            return Ok(());
        }
        let no = self.next_run();
        let mut writer = RunWriter::resume(rows, no, self.tuning.shape)?;
        for entry in entries {
            writer.push(rows, entry)?;
        }
        self.row.runs.push(RunRow { no, tier: 0, blocks: writer.finish(rows)? });
        self.row.generation += 1;
        self.generation = Generation::new(self.row.generation, BTreeSet::new());
        self.paid.1 = 0;
        self.shared.begin(self.generation.clone());
        Ok(())
    }

    fn next_run(&mut self) -> u32 {
        self.row.last_run += 1;
        self.row.last_run
    }

    /// Says whether the row changed.
    fn merge(&mut self, rows: &mut Rows<'_>, blocks_max: u64) -> Result<bool, StorageError> {
        let mut is_changed = self.begin_merges();
        if blocks_max == 0 {
            return Ok(is_changed);
        }
        for row in self.row.merges.clone() {
            let known = self.merges.iter().position(|merge| merge.output() == row.output);
            let mut merge = match known {
                Some(index) => self.merges.swap_remove(index),
                None => Merge::resume(rows, &row, &self.row.runs, self.tuning.shape)?,
            };
            if merge.advance(rows, blocks_max)? {
                let output = merge.finish(rows)?;
                self.replace(&row, output);
                is_changed = true;
            } else {
                self.merges.push(merge);
            }
        }
        Ok(is_changed)
    }

    /// Begins a merge of the oldest runs in every tier that has enough and no merge yet.
    fn begin_merges(&mut self) -> bool {
        let before = self.row.merges.len();
        let tiers: BTreeSet<u8> = self.row.runs.iter().map(|run| run.tier).collect();
        for tier in tiers {
            let of_tier = self.row.runs.iter().filter(|run| run.tier == tier);
            let inputs: Vec<u32> = of_tier.take(self.tuning.fan_in).map(|run| run.no).collect();
            let is_under_way = self.row.merges.iter().any(|merge| merge.tier == tier);
            if !is_under_way && inputs.len() == self.tuning.fan_in {
                let output = self.next_run();
                self.row.merges.push(MergeRow { output, tier, inputs });
            }
        }
        self.row.merges.len() != before
    }

    /// Puts the output where its inputs were, so that the order by age is kept.
    fn replace(&mut self, merge: &MergeRow, output: RunRow) {
        let is_input = |run: &RunRow| merge.inputs.contains(&run.no);
        let place = self.row.runs.iter().position(is_input).expect("a merge has inputs");
        self.row.runs.retain(|run| !is_input(run));
        self.row.runs.insert(place, output);
        self.row.merges.retain(|row| row.output != merge.output);
        self.row.trash.extend(&merge.inputs);
        self.shared.retain(&self.row.runs);
    }

    /// Removes about so many rows of merged runs. The rows that are left say where to go on.
    fn clear(&mut self, rows: &mut Rows<'_>, rows_max: u64) -> Result<bool, StorageError> {
        let before = self.row.trash.len();
        let mut left = rows_max;
        while left > 0
            && let Some(run) = self.row.trash.first().copied()
        {
            let (start, end) = (run::block_key(run, 0), run::end_key(run));
            let first = rows.range(start..end)?.next().transpose()?.map(|(key, _)| key.value());
            let Some(first) = first else {
                self.row.trash.remove(0);
                continue;
            };
            let mut removed = 0;
            rows.retain_in(first..end.min(first + left), |_, _| {
                removed += 1;
                false
            })?;
            left -= removed;
        }
        Ok(self.row.trash.len() != before)
    }
}
