//! The tables and their keys. All keys are plain bytes, numbers big-endian, so that their
//! order is the order of their numbers.
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | name | format, head, the ledger's id, the fingerprint of its lease secret |
//! | `events` | seq | leaf hash and event |
//! | `nodes` | level, index | root of a complete subtree of 256^k leaves |
//! | `namespaces` | name | number, events so far, policy |
//! | `run_ids` | namespace number, run id | run number |
//! | `runs` | run number, kind, rest | everything of a run side by side (see [`RunKey`]) |
//! | `open_calls` | kind, namespace number, first seq of the call | calls with an open attempt, and unknown calls (see [`OpenKey`]) |
//! | `wide_twins` | namespace number, digest, first seq of the call | run number: calls whose twins are looked for in all runs |
//! | `operation_keys` | namespace number, key | first seq of the call |
//! | `hash_index` | run, block | calls by idempotency key (see `hash_index`) |
//! | `scopes` | scope id | when opened and closed |
//! | `api_keys` | id | role, namespace, digest |

use recibo_core::limits::ID_LEN_MAX;
use redb::TableDefinition;

type Bytes = TableDefinition<'static, &'static [u8], &'static [u8]>;

pub(crate) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
pub(crate) const HEAD_KEY: &str = "head";
/// The ledger's id: 16 bytes.
pub(crate) const LEDGER_ID_KEY: &str = "ledger_id";
/// Fingerprint of the lease secret: 32 bytes.
pub(crate) const LEASE_KEY_ID_KEY: &str = "lease_key_id";
pub(crate) const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");
pub(crate) const NODES: Bytes = Bytes::new("nodes");
pub(crate) const NAMESPACES: Bytes = Bytes::new("namespaces");
pub(crate) const RUN_IDS: Bytes = Bytes::new("run_ids");
pub(crate) const RUNS: Bytes = Bytes::new("runs");
pub(crate) const OPEN_CALLS: Bytes = Bytes::new("open_calls");
pub(crate) const WIDE_TWINS: Bytes = Bytes::new("wide_twins");
pub(crate) const OPERATION_KEYS: Bytes = Bytes::new("operation_keys");
pub(crate) const HASH_INDEX: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("hash_index");
pub(crate) const SCOPES: Bytes = Bytes::new("scopes");
pub(crate) const API_KEYS: Bytes = Bytes::new("api_keys");

/// Numbers of runs and events in keys of rows that every call has: five bytes hold 10^12, and a
/// ledger of so many events would be a file of 350 TB.
const NUMBER_LEN: usize = 5;
/// Largest number in such a key.
pub(crate) const NUMBER_MAX: u64 = (1 << (8 * NUMBER_LEN)) - 1;

fn number(number: u64) -> [u8; NUMBER_LEN] {
    let [_, _, _, bytes @ ..] = number.min(NUMBER_MAX).to_be_bytes();
    bytes
}

/// A key on the stack: keys are made for every look-up.
pub(crate) struct TableKey {
    bytes: [u8; Self::LEN_MAX],
    len: usize,
}

impl TableKey {
    /// The longest is that of an origin: run number, kind, id, 0, origin, attempt.
    const LEN_MAX: usize = NUMBER_LEN + 1 + ID_LEN_MAX + 1 + 8 + 4;

    fn of(parts: &[&[u8]]) -> Self {
        let mut key = Self { bytes: [0; Self::LEN_MAX], len: 0 };
        for part in parts {
            key.bytes[key.len..key.len + part.len()].copy_from_slice(part);
            key.len += part.len();
        }
        key
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Keys of the `runs` table. A run's rows share a prefix, so they fall on few pages.
pub(crate) struct RunKey;

impl RunKey {
    const ATTEMPT: &[u8] = b"a";
    const CALL: &[u8] = b"c";
    const ORIGIN: &[u8] = b"i";
    const ORDER: &[u8] = b"o";
    const TWIN: &[u8] = b"t";

    /// Tip of a call.
    pub(crate) fn call(run_no: u64, tool_call_id: &str) -> TableKey {
        TableKey::of(&[&number(run_no), Self::CALL, tool_call_id.as_bytes()])
    }

    /// An attempt that is no longer the newest. Ids hold no byte 0, so it ends the id.
    pub(crate) fn attempt(run_no: u64, tool_call_id: &str, attempt: u32) -> TableKey {
        let (run, attempt) = (number(run_no), attempt.to_be_bytes());
        TableKey::of(&[&run, Self::ATTEMPT, tool_call_id.as_bytes(), &[0], &attempt])
    }

    /// An attempt that is no longer the newest, by the claim or the one-shot that opened it: a
    /// filter for "has this been here before?". The value is empty.
    pub(crate) fn origin(run_no: u64, tool_call_id: &str, origin: u64, attempt: u32) -> TableKey {
        let (run, origin, attempt) = (number(run_no), origin.to_be_bytes(), attempt.to_be_bytes());
        TableKey::of(&[&run, Self::ORIGIN, tool_call_id.as_bytes(), &[0], &origin, &attempt])
    }

    /// The number at the end of an origin key.
    pub(crate) fn number_of(key: &[u8]) -> Option<u32> {
        key.last_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// A call by its first event. The value is a digest of what the call does for the first
    /// [`EARLY_CALLS`] calls of a run; later ones have a twin row instead.
    pub(crate) fn order(run_no: u64, first_seq: u64) -> TableKey {
        TableKey::of(&[&number(run_no), Self::ORDER, &number(first_seq)])
    }

    /// A later call by what it does; the value is empty.
    pub(crate) fn twin(run_no: u64, digest: &[u8; 8], first_seq: u64) -> TableKey {
        TableKey::of(&[&number(run_no), Self::TWIN, digest, &number(first_seq)])
    }

    /// The number at the end of an order or twin key, or of a wide twin's.
    pub(crate) fn first_seq_of(key: &[u8]) -> Option<u64> {
        let [a, b, c, d, e] = *key.last_chunk::<NUMBER_LEN>()?;
        Some(u64::from_be_bytes([0, 0, 0, a, b, c, d, e]))
    }
}

/// Calls of a run whose twins are found by going through all of them: it costs about 50 ns each,
/// and most runs are shorter. A row for every call would cost all runs a tenth of the
/// throughput.
pub(crate) const EARLY_CALLS: usize = 256;

/// Keys of the `open_calls` table. Calls with an open attempt stand apart, since a start
/// reads all of them, and there may be many unknown ones. Those of a namespace stand together:
/// one namespace's backlog never slows another's pages.
pub(crate) struct OpenKey;

impl OpenKey {
    const OPEN: &[u8] = b"o";
    const UNKNOWN: &[u8] = b"u";

    /// A call whose newest attempt is open.
    pub(crate) fn open(namespace_no: u32, first_seq: u64) -> TableKey {
        TableKey::of(&[Self::OPEN, &namespace_no.to_be_bytes(), &first_seq.to_be_bytes()])
    }

    /// An unknown call whose newest attempt is over.
    pub(crate) fn unknown(namespace_no: u32, first_seq: u64) -> TableKey {
        TableKey::of(&[Self::UNKNOWN, &namespace_no.to_be_bytes(), &first_seq.to_be_bytes()])
    }

    /// The first seq in a key.
    pub(crate) fn first_seq_of(key: &[u8]) -> Option<u64> {
        key.last_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes))
    }
}

/// A call whose twins are looked for in all runs of its namespace.
pub(crate) fn wide_twin(namespace_no: u32, digest: &[u8; 8], first_seq: u64) -> TableKey {
    TableKey::of(&[&namespace_no.to_be_bytes(), digest, &number(first_seq)])
}

/// A name under a namespace number.
pub(crate) fn under(namespace_no: u32, name: &str) -> TableKey {
    TableKey::of(&[&namespace_no.to_be_bytes(), name.as_bytes()])
}

/// A complete subtree.
pub(crate) fn node(level: u32, index: u64) -> [u8; 9] {
    let mut key = [0; 9];
    key[0] = u8::try_from(level).unwrap_or(u8::MAX);
    key[1..].copy_from_slice(&index.to_be_bytes());
    key
}
