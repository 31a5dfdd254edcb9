//! What people would use instead, with the same rows, the same lookups and the same durability.
//!
//! A row has what a receipt has: ids, tool, effect, attempt, status, times, both hashes, a token
//! of the same length and the idempotency key. Lookups: by call and attempt, by idempotency
//! key, by token. A call that is known already is noticed. Peers sign nothing, keep no log
//! tree, decide nothing, and find no twins.

pub mod fjall;
pub mod ledger;
pub mod postgres;
pub mod raw_redb;
pub mod sqlite;

use std::path::Path;

use crate::failure::Outcome;
use crate::workload::{Row, Samples, mix};

/// Memory for pages, the same for all.
pub const CACHE_BYTES: usize = 128 << 20;

/// An embedded store.
pub trait Peer {
    /// Its name in tables.
    fn name(&self) -> &'static str;
    /// Makes rows durable, in one write.
    fn insert(&mut self, rows: &[Row], samples: &Samples) -> Outcome<()>;
    /// Whether it holds the row; this is how the bench knows that a write happened.
    fn holds(&mut self, row: &Row) -> Outcome<bool>;
    /// The folder of its files.
    fn folder(&self) -> &Path;
    /// Closes it, so that its files are as they stay.
    fn close(self: Box<Self>) -> Outcome<()>;
}

/// A token as long as a receipt and as random.
pub fn token(row: &Row) -> String {
    let seed = mix(row.started_ms ^ (u64::from(row.run.0) << 48));
    let second = row.started_ms / 1000;
    let (a, b, c) = (mix(seed), mix(seed + 1), mix(seed + 2) & 0xFFF_FFFF_FFFF);
    format!("zc-receipt-{second}-{a:016x}{b:016x}{c:011x}")
}

/// The scope that every row names.
pub const SCOPE: &str = "sc_0000000000000000000000000000";

/// A row as bytes: each member with its length before it.
pub fn encode(row: &Row, samples: &Samples) -> Vec<u8> {
    let sample = row.sample(samples);
    let mut out = Vec::with_capacity(400);
    let mut put = |bytes: &[u8]| {
        out.push(bytes.len() as u8);
        out.extend_from_slice(bytes);
    };
    put(row.run_id().as_bytes());
    put(row.tool_call_id().as_bytes());
    put(&row.attempt.to_be_bytes());
    put(row.tool(samples).as_bytes());
    put(row.effect(samples).as_str().as_bytes());
    put(row.status().as_bytes());
    put(&row.started_ms.to_be_bytes());
    put(&row.duration_ms.to_be_bytes());
    put(&row.started_ms.to_be_bytes());
    put(sample.input_hash.as_bytes());
    put(sample.output_hash.as_bytes());
    put(token(row).as_bytes());
    put(SCOPE.as_bytes());
    put(&row.idempotency_key());
    out
}

/// The key of an attempt.
pub fn call_key(row: &Row) -> Vec<u8> {
    let mut key = row.run_id().into_bytes();
    key.push(b'/');
    key.extend_from_slice(row.tool_call_id().as_bytes());
    key.push(0);
    key.extend_from_slice(&row.attempt.to_be_bytes());
    key
}
