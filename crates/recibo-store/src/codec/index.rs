//! The row that says what the hash index holds. Its blocks are no rows: see `hash_index`.

use bincode::{Decode, Encode};

use super::row;

/// What a transaction sees of the index. Written only when something in it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct IndexRow {
    /// Number of flushes so far: names the generation of entries that no run holds yet.
    pub(crate) generation: u64,
    /// The entries of all events before this one are in runs.
    pub(crate) flushed_to: u64,
    /// The highest run number in use.
    pub(crate) last_run: u32,
    /// From the oldest entries to the newest.
    pub(crate) runs: Vec<RunRow>,
    /// At most one per tier.
    pub(crate) merges: Vec<MergeRow>,
    /// Runs whose rows are being removed.
    pub(crate) trash: Vec<u32>,
}
row!(IndexRow, "hash index");

/// A sorted run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct RunRow {
    pub(crate) no: u32,
    pub(crate) tier: u8,
    pub(crate) blocks: u32,
}

/// A merge under way. How far it is, its output's blocks say.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct MergeRow {
    pub(crate) output: u32,
    pub(crate) tier: u8,
    /// Numbers of the runs to merge; they stay visible until the output is whole.
    pub(crate) inputs: Vec<u32>,
}
