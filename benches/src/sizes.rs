//! How much of everything is measured, in the short and in the full form.

/// Counts of rows.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Slices of a figure that is measured in turns.
    pub slices: usize,
    /// Calls in a slice of claims and outcomes.
    pub claims: usize,
    /// Batches of 100 in a slice.
    pub batches: usize,
    /// Records in the embedded peers at the end.
    pub embedded: usize,
    /// Records where the window to compare with ends.
    pub growth_base: usize,
    /// Records where the ledger stops growing; also those of `reopen` and `memory`.
    pub growth_top: usize,
    /// Records to look calls up in.
    pub lookup_records: usize,
    /// Look-ups in a slice.
    pub lookups: usize,
    /// Seconds at each load.
    pub latency_s: f64,
    /// Records of a slice without a disk.
    pub overhead: usize,
    /// Tool calls in a slice, one after the other.
    pub mcp_calls: usize,
}

/// Under five minutes.
pub const SHORT: Sizes = Sizes {
    slices: 5,
    claims: 10_000,
    batches: 200,
    embedded: 200_000,
    growth_base: 200_000,
    growth_top: 600_000,
    lookup_records: 200_000,
    lookups: 40_000,
    latency_s: 2.5,
    overhead: 50_000,
    mcp_calls: 500,
};

/// The sizes of the goals.
pub const FULL: Sizes = Sizes {
    slices: 9,
    claims: 30_000,
    batches: 500,
    embedded: 3_000_000,
    growth_base: 1_000_000,
    growth_top: 10_000_000,
    lookup_records: 3_000_000,
    lookups: 200_000,
    latency_s: 8.0,
    overhead: 100_000,
    mcp_calls: 2_000,
};

impl Sizes {
    /// Makes every ledger end at this many records.
    pub fn limit_to(&mut self, records: usize) {
        self.embedded = records;
        self.growth_top = records;
        self.growth_base = self.growth_base.min(records / 5);
        self.lookup_records = records;
    }
}
