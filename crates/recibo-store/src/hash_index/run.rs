//! One sorted run: how it is written, and what memory keeps of it.
//!
//! Rows of a run lie side by side: its blocks by number, then its summaries. A summary holds,
//! for ten blocks, the first prefix and the filter of each.

use redb::{ReadableTable, Table};

use super::block::{BLOCK_ENTRIES, Block, BlockBuilder, Entry, FILTER_LEN, Filter, VERSION};
use crate::codec::{CodecError, RunRow};
use crate::error::StorageError;

/// Blocks under one summary: 1 + 10 * 400 bytes fit into a page.
pub(super) const SUMMARY_BLOCKS: usize = 10;
const ITEM_LEN: usize = 8 + FILTER_LEN;
/// Set in the lower half of a summary's key. A run has at most 2^31 blocks.
const SUMMARY_BIT: u64 = 1 << 31;

pub(super) type Rows<'t> = Table<'t, u64, &'static [u8]>;

/// The rows of a run, in two ranges.
pub(super) fn block_key(run: u32, block: u32) -> u64 {
    u64::from(run) << 32 | u64::from(block)
}

pub(super) fn summary_key(run: u32, group: u32) -> u64 {
    u64::from(run) << 32 | SUMMARY_BIT | u64::from(group)
}

/// First key after those of a run.
pub(super) fn end_key(run: u32) -> u64 {
    (u64::from(run) + 1) << 32
}

/// Entries of a block and blocks of a summary at most; smaller only in tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) block_entries: usize,
    pub(super) summary_blocks: usize,
}

impl Shape {
    pub(super) const STORED: Self =
        Self { block_entries: BLOCK_ENTRIES, summary_blocks: SUMMARY_BLOCKS };
}

/// Reads one block.
pub(super) fn with_block<T>(
    rows: &impl ReadableTable<u64, &'static [u8]>,
    run: u32,
    block: u32,
    read: impl FnOnce(Block<'_>) -> T,
) -> Result<T, StorageError> {
    let row = rows.get(block_key(run, block))?;
    let row = row.ok_or(StorageError::Inconsistent("a block of the hash index is missing"))?;
    Ok(read(Block::parse(row.value())?))
}

/// Writes a run, block by block. Takes entries in order.
pub(super) struct RunWriter {
    run: u32,
    shape: Shape,
    /// Blocks in the table.
    blocks: u32,
    last: Option<Entry>,
    block: BlockBuilder,
    /// Of the block being filled.
    first_prefix: Option<u64>,
    filter: Filter,
    summary: Vec<u8>,
}

impl RunWriter {
    /// Goes on where the table's rows of this run end; a new run has none.
    pub(super) fn resume(rows: &Rows<'_>, run: u32, shape: Shape) -> Result<Self, StorageError> {
        let mut writer = Self {
            run,
            shape,
            blocks: 0,
            last: None,
            block: BlockBuilder::new(),
            first_prefix: None,
            filter: Filter::EMPTY,
            summary: vec![VERSION],
        };
        let Some(last) = rows.range(block_key(run, 0)..summary_key(run, 0))?.next_back() else {
            return Ok(writer);
        };
        let (key, value) = last?;
        writer.last = Some(Block::parse(value.value())?.last());
        writer.blocks = (key.value() - block_key(run, 0)) as u32 + 1;
        let of_group = writer.blocks % shape.summary_blocks as u32;
        for block in writer.blocks - of_group..writer.blocks {
            with_block(rows, run, block, |block| {
                block.entries().for_each(|entry| writer.note(entry));
            })?;
            writer.summarize();
        }
        Ok(writer)
    }

    /// The last entry in the table. The entries of a block not yet full are only in memory.
    pub(super) fn last(&self) -> Option<Entry> {
        self.last
    }

    /// Takes an entry; says whether a block was written.
    pub(super) fn push(&mut self, rows: &mut Rows<'_>, entry: Entry) -> Result<bool, StorageError> {
        self.note(entry);
        self.block.push(entry);
        if self.block.len() < self.shape.block_entries {
            return Ok(false);
        }
        self.end_block(rows)?;
        self.last = Some(entry);
        Ok(true)
    }

    /// Writes what is left, and gives the number of blocks.
    pub(super) fn finish(mut self, rows: &mut Rows<'_>) -> Result<u32, StorageError> {
        if self.block.len() > 0 {
            self.end_block(rows)?;
        }
        if self.summary.len() > 1 {
            self.write_summary(rows)?;
        }
        Ok(self.blocks)
    }

    fn end_block(&mut self, rows: &mut Rows<'_>) -> Result<(), StorageError> {
        rows.insert(block_key(self.run, self.blocks), self.block.bytes())?;
        self.block.clear();
        self.blocks += 1;
        assert!(u64::from(self.blocks) < SUMMARY_BIT, "2^31 blocks hold more than 2^38 entries");
        self.summarize();
        if (self.blocks as usize).is_multiple_of(self.shape.summary_blocks) {
            self.write_summary(rows)?;
        }
        Ok(())
    }

    fn note(&mut self, entry: Entry) {
        self.first_prefix.get_or_insert(entry.prefix);
        self.filter.add(entry.prefix);
    }

    fn summarize(&mut self) {
        let first_prefix = self.first_prefix.take().expect("a block has entries");
        self.summary.extend_from_slice(&first_prefix.to_be_bytes());
        self.filter.write(&mut self.summary);
        self.filter = Filter::EMPTY;
    }

    fn write_summary(&mut self, rows: &mut Rows<'_>) -> Result<(), StorageError> {
        let group = (self.blocks - 1) / self.shape.summary_blocks as u32;
        rows.insert(summary_key(self.run, group), self.summary.as_slice())?;
        self.summary.truncate(1);
        Ok(())
    }
}

/// What memory keeps of a run: 400 bytes per block, that is 11 bits per entry.
pub(super) struct Summary {
    run: u32,
    first_prefixes: Vec<u64>,
    filters: Vec<Filter>,
}

impl Summary {
    pub(super) fn load(
        rows: &impl ReadableTable<u64, &'static [u8]>,
        run: &RunRow,
    ) -> Result<Self, StorageError> {
        let broken = CodecError { what: "summary of the hash index" };
        let mut summary = Self { run: run.no, first_prefixes: Vec::new(), filters: Vec::new() };
        for row in rows.range(summary_key(run.no, 0)..end_key(run.no))? {
            let (_, value) = row?;
            let [VERSION, items @ ..] = value.value() else { return Err(broken.into()) };
            let (items, []) = items.as_chunks::<ITEM_LEN>() else { return Err(broken.into()) };
            for item in items {
                let (prefix, filter) = item.split_first_chunk().ok_or(broken)?;
                summary.first_prefixes.push(u64::from_be_bytes(*prefix));
                summary.filters.push(Filter::read(filter.first_chunk().ok_or(broken)?));
            }
        }
        if summary.filters.len() != run.blocks as usize {
            return Err(StorageError::Inconsistent("a run of the hash index is not whole"));
        }
        Ok(summary)
    }

    /// Hands the values of a prefix to `confirm`, newest first, until it gives something.
    pub(super) fn find_map<T>(
        &self,
        rows: &impl ReadableTable<u64, &'static [u8]>,
        prefix: u64,
        confirm: &mut impl FnMut(u64) -> Result<Option<T>, StorageError>,
    ) -> Result<Option<T>, StorageError> {
        // The entries of a prefix may begin at the end of the block before the one that it
        // is first in, so the walk goes back until a block begins with a lesser prefix.
        let end = self.first_prefixes.partition_point(|first| *first <= prefix);
        for block in (0..end).rev() {
            if self.filters[block].may_hold(prefix) {
                let values = with_block(rows, self.run, block as u32, |it| it.values(prefix))?;
                for value in values {
                    if let Some(found) = confirm(value)? {
                        return Ok(Some(found));
                    }
                }
            }
            if self.first_prefixes[block] < prefix {
                break;
            }
        }
        Ok(None)
    }
}
