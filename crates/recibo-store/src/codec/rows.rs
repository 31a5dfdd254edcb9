//! Stored rows other than events, calls and attempts.

use bincode::{Decode, Encode};

use super::{CodecError, VERSION, VERSION_2, append, row, take_rest};

/// Where the ledger stands. Rewritten by every commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Head {
    /// Number of events, and the next sequence number.
    pub(crate) size: u64,
    /// Ledger time of the last event, in milliseconds.
    pub(crate) last_at_ms: u64,
    /// Roots of the complete subtrees, largest first.
    pub(crate) frontier: Vec<[u8; 32]>,
    pub(crate) next_run_no: u64,
    pub(crate) next_namespace_no: u32,
    /// Key windows opened up to here count as over; 0 for none.
    pub(crate) key_windows_void_until_ms: u64,
    /// When the ledger was last seen; `None` in a file of the first format.
    pub(crate) mark: Option<ClockMark>,
}

/// Ledger time beside the clock of the machine's boot: from it a start on the same boot goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ClockMark {
    /// Ledger time, in milliseconds.
    pub(crate) at_ms: u64,
    /// The boot; `None` where the system does not say, so that no other one is equal.
    pub(crate) boot_id: Option<[u8; 16]>,
    /// The boot-time clock, in milliseconds.
    pub(crate) boot_ms: u64,
}

/// The head as the first format has it.
#[derive(Decode)]
struct FirstHead {
    size: u64,
    last_at_ms: u64,
    frontier: Vec<[u8; 32]>,
    next_run_no: u64,
    next_namespace_no: u32,
    key_windows_void_until_ms: u64,
}

impl Head {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION_2];
        append(&mut bytes, self);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        match bytes.split_first() {
            Some((&VERSION_2, rest)) => take_rest(rest, "head"),
            Some((&VERSION, rest)) => {
                let first: FirstHead = take_rest(rest, "head")?;
                Ok(Self {
                    size: first.size,
                    last_at_ms: first.last_at_ms,
                    frontier: first.frontier,
                    next_run_no: first.next_run_no,
                    next_namespace_no: first.next_namespace_no,
                    key_windows_void_until_ms: first.key_windows_void_until_ms,
                    mark: None,
                })
            }
            _ => Err(CodecError { what: "head" }),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct NamespaceRow {
    pub(crate) no: u32,
    pub(crate) next_nseq: u64,
    /// The event that set its effect policy.
    pub(crate) policy_seq: Option<u64>,
}
row!(NamespaceRow, "namespace");

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ScopeRow {
    pub(crate) namespace_no: u32,
    pub(crate) opened_seq: u64,
    pub(crate) closed_seq: Option<u64>,
}
row!(ScopeRow, "scope");

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ApiKeyRow {
    /// Words joined by commas; of the first versions, one word.
    pub(crate) roles: String,
    pub(crate) namespace: String,
    /// SHA-256 of the secret part; the secret has 256 random bits.
    pub(crate) digest: [u8; 32],
    pub(crate) created_ms: u64,
    pub(crate) expires_ms: Option<u64>,
    pub(crate) revoked_ms: Option<u64>,
}
row!(ApiKeyRow, "api key");

/// A call that is open or unknown.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct OpenCallRow {
    pub(crate) namespace_no: u32,
    pub(crate) run_no: u64,
    pub(crate) tool_call_id: String,
    /// When the lease of its newest attempt ends, if that attempt is open: a start reads all
    /// leases, and should read no more than these rows.
    pub(crate) lease_end_ms: Option<u64>,
}
row!(OpenCallRow, "open call");
