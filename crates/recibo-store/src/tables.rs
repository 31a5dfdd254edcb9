//! The tables and their keys. All keys are plain bytes, numbers big-endian, so that their
//! order is the order of their numbers.
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | name | format, head |
//! | `events` | seq | leaf hash and event |
//! | `nodes` | level, index | root of a complete subtree of 256^k leaves |
//! | `namespaces` | name | number, events so far, policy |
//! | `run_ids` | namespace number, run id | run number |
//! | `runs` | run number, kind, rest | everything of a run side by side (see [`RunKey`]) |
//! | `open_calls` | first seq of the call | calls that are open or unknown |
//! | `operation_keys` | namespace number, key | first seq of the call |
//! | `hash_index` | run, block | calls by idempotency key (see `hash_index`) |
//! | `scopes` | scope id | when opened and closed |
//! | `api_keys` | id | role, namespace, digest |

use redb::TableDefinition;

type Bytes = TableDefinition<'static, &'static [u8], &'static [u8]>;

pub(crate) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
pub(crate) const HEAD_KEY: &str = "head";
pub(crate) const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");
pub(crate) const NODES: Bytes = Bytes::new("nodes");
pub(crate) const NAMESPACES: Bytes = Bytes::new("namespaces");
pub(crate) const RUN_IDS: Bytes = Bytes::new("run_ids");
pub(crate) const RUNS: Bytes = Bytes::new("runs");
pub(crate) const OPEN_CALLS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("open_calls");
pub(crate) const OPERATION_KEYS: Bytes = Bytes::new("operation_keys");
pub(crate) const HASH_INDEX: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("hash_index");
pub(crate) const SCOPES: Bytes = Bytes::new("scopes");
pub(crate) const API_KEYS: Bytes = Bytes::new("api_keys");

/// Keys of the `runs` table. A run's rows share a prefix, so they fall on few pages.
pub(crate) struct RunKey;

impl RunKey {
    const ATTEMPT: u8 = b'a';
    const CALL: u8 = b'c';
    const ORIGIN: u8 = b'i';
    const ORDER: u8 = b'o';
    const TWIN: u8 = b't';

    fn start(run_no: u64, kind: u8) -> Vec<u8> {
        let mut key = Vec::with_capacity(48);
        key.extend_from_slice(&run_no.to_be_bytes());
        key.push(kind);
        key
    }

    /// Tip of a call.
    pub(crate) fn call(run_no: u64, tool_call_id: &str) -> Vec<u8> {
        let mut key = Self::start(run_no, Self::CALL);
        key.extend_from_slice(tool_call_id.as_bytes());
        key
    }

    /// An attempt that is no longer the newest. Ids hold no byte 0, so it ends the id.
    pub(crate) fn attempt(run_no: u64, tool_call_id: &str, number: u32) -> Vec<u8> {
        let mut key = Self::start(run_no, Self::ATTEMPT);
        key.extend_from_slice(tool_call_id.as_bytes());
        key.push(0);
        key.extend_from_slice(&number.to_be_bytes());
        key
    }

    /// An attempt that is no longer the newest, by the claim or the one-shot that opened it: a
    /// filter for "has this been here before?". The value is empty.
    pub(crate) fn origin(run_no: u64, tool_call_id: &str, origin: u64, number: u32) -> Vec<u8> {
        let mut key = Self::start(run_no, Self::ORIGIN);
        key.extend_from_slice(tool_call_id.as_bytes());
        key.push(0);
        key.extend_from_slice(&origin.to_be_bytes());
        key.extend_from_slice(&number.to_be_bytes());
        key
    }

    /// The number at the end of an origin key.
    pub(crate) fn number_of(key: &[u8]) -> Option<u32> {
        key.last_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// A call by its first event; the value is its id.
    pub(crate) fn order(run_no: u64, first_seq: u64) -> Vec<u8> {
        let mut key = Self::start(run_no, Self::ORDER);
        key.extend_from_slice(&first_seq.to_be_bytes());
        key
    }

    /// A call by what it does; the value is empty.
    pub(crate) fn twin(run_no: u64, digest: &[u8; 8], first_seq: u64) -> Vec<u8> {
        let mut key = Self::start(run_no, Self::TWIN);
        key.extend_from_slice(digest);
        key.extend_from_slice(&first_seq.to_be_bytes());
        key
    }

    /// The last eight bytes of an order or twin key.
    pub(crate) fn first_seq_of(key: &[u8]) -> Option<u64> {
        key.last_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes))
    }
}

/// A name under a namespace number.
pub(crate) fn under(namespace_no: u32, name: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(4 + name.len());
    key.extend_from_slice(&namespace_no.to_be_bytes());
    key.extend_from_slice(name.as_bytes());
    key
}

/// A complete subtree.
pub(crate) fn node(level: u32, index: u64) -> [u8; 9] {
    let mut key = [0; 9];
    key[0] = u8::try_from(level).unwrap_or(u8::MAX);
    key[1..].copy_from_slice(&index.to_be_bytes());
    key
}
