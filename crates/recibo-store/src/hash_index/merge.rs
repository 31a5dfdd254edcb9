//! A merge of some runs into one, a few blocks at a time.
//!
//! After a restart it goes on: the blocks of the output that are in the table are full and
//! in order, so their last entry says how far each input was read.

use redb::ReadableTable;

use super::block::{Block, Entry};
use super::run::{Rows, RunWriter, Shape, block_key, with_block};
use crate::codec::{MergeRow, RunRow};
use crate::error::StorageError;

pub(super) struct Merge {
    tier: u8,
    output: u32,
    writer: RunWriter,
    inputs: Vec<Cursor>,
}

impl Merge {
    /// Begins a merge, or goes on with one of an earlier process.
    pub(super) fn resume(
        rows: &Rows<'_>,
        row: &MergeRow,
        runs: &[RunRow],
        shape: Shape,
    ) -> Result<Self, StorageError> {
        let writer = RunWriter::resume(rows, row.output, shape)?;
        let inputs: Vec<Cursor> = runs
            .iter()
            .filter(|run| row.inputs.contains(&run.no))
            .map(|run| Cursor::open(rows, *run, writer.last()))
            .collect::<Result<_, _>>()?;
        if inputs.len() != row.inputs.len() {
            return Err(StorageError::Inconsistent("a run to merge is missing"));
        }
        Ok(Self { tier: row.tier, output: row.output, writer, inputs })
    }

    /// Number of the run that it writes.
    pub(super) fn output(&self) -> u32 {
        self.output
    }

    /// Writes at most so many blocks; says whether the inputs are used up.
    pub(super) fn advance(
        &mut self,
        rows: &mut Rows<'_>,
        blocks_max: u64,
    ) -> Result<bool, StorageError> {
        let mut blocks = 0;
        while blocks < blocks_max {
            let least = self.inputs.iter_mut().filter(|input| input.head.is_some());
            let Some(input) = least.min_by_key(|input| input.head) else {
                return Ok(true);
            };
            if let Some(entry) = input.next(rows)? {
                blocks += u64::from(self.writer.push(rows, entry)?);
            }
        }
        Ok(false)
    }

    /// Writes the rest of the output, which is then whole.
    pub(super) fn finish(self, rows: &mut Rows<'_>) -> Result<RunRow, StorageError> {
        let blocks = self.writer.finish(rows)?;
        Ok(RunRow { no: self.output, tier: self.tier + 1, blocks })
    }
}

/// A place in a run.
struct Cursor {
    run: RunRow,
    /// The block in `bytes`.
    block: u32,
    bytes: Vec<u8>,
    index: usize,
    head: Option<Entry>,
}

impl Cursor {
    /// Before the first entry, or before the first one after an entry.
    fn open(rows: &Rows<'_>, run: RunRow, after: Option<Entry>) -> Result<Self, StorageError> {
        let mut cursor = Self { run, block: 0, bytes: Vec::new(), index: 0, head: None };
        if let Some(after) = after {
            let (mut low, mut high) = (0, run.blocks);
            while low < high {
                let middle = low + (high - low) / 2;
                if with_block(rows, run.no, middle, |block| block.last() <= after)? {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            cursor.block = low;
        }
        cursor.load(rows)?;
        if let Some(after) = after
            && cursor.head.is_some()
        {
            let block = Block::parse(&cursor.bytes)?;
            cursor.index = block.after(after);
            cursor.head = block.get(cursor.index);
        }
        Ok(cursor)
    }

    fn load(&mut self, rows: &Rows<'_>) -> Result<(), StorageError> {
        self.index = 0;
        self.head = None;
        if self.block < self.run.blocks {
            let row = rows.get(block_key(self.run.no, self.block))?;
            let row =
                row.ok_or(StorageError::Inconsistent("a block of the hash index is missing"))?;
            self.bytes.clear();
            self.bytes.extend_from_slice(row.value());
            self.head = Block::parse(&self.bytes)?.get(0);
        }
        Ok(())
    }

    fn next(&mut self, rows: &Rows<'_>) -> Result<Option<Entry>, StorageError> {
        let entry = self.head;
        self.index += 1;
        let block = Block::parse(&self.bytes)?;
        if self.index < block.len() {
            self.head = block.get(self.index);
        } else {
            self.block += 1;
            self.load(rows)?;
        }
        Ok(entry)
    }
}
