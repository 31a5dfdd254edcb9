//! The shapes that bincode writes: fields in order, without names. Only ever extended at the end
//! of an enum, or by a new version.

use bincode::{BorrowDecode, Encode};

#[derive(Encode, BorrowDecode)]
pub(super) enum StoredBody<'a> {
    ScopeOpened {
        scope: StoredScope<'a>,
        label: Option<&'a str>,
        expires_ms: u64,
    },
    ScopeClosed {
        scope: StoredScope<'a>,
        end: u8,
    },
    Started {
        at: StoredAttempt<'a>,
        facts: StoredFacts<'a>,
        claim: &'a str,
        scope: StoredScope<'a>,
        lease_ms: u64,
    },
    Finished {
        at: StoredAttempt<'a>,
        outcome: StoredOutcome<'a>,
        late: bool,
        receipt: Option<StoredReceipt<'a>>,
    },
    Recorded {
        at: StoredAttempt<'a>,
        facts: StoredFacts<'a>,
        scope: StoredScope<'a>,
        started_ms: u64,
        outcome: StoredOutcome<'a>,
        digest: Option<[u8; 32]>,
    },
    LeaseExpired {
        at: StoredAttempt<'a>,
    },
    LeaseExtended {
        at: StoredAttempt<'a>,
        lease_ms: u64,
    },
    StatusChecked {
        at: StoredAttempt<'a>,
        answer: u8,
        source: &'a str,
        age_ms: u64,
        provider_ref: Option<&'a str>,
        settles: bool,
        redacted: bool,
    },
    Resolved {
        at: StoredAttempt<'a>,
        state: u8,
        reason: &'a str,
        redacted: bool,
    },
    PolicySet {
        rules: Vec<StoredRule<'a>>,
    },
    Restarted {
        last_ms: u64,
        key_windows_void: bool,
    },
}

/// What version 2 adds. Members that an event does not have are `None`, `false` or empty.
#[derive(Default, PartialEq, Encode, BorrowDecode)]
pub(super) struct Added<'a> {
    pub(super) answered: bool,
    pub(super) is_error: Option<u8>,
    pub(super) twin_hash: Option<[u8; 32]>,
    pub(super) twin_scope: u8,
    pub(super) by: Option<&'a str>,
    pub(super) corrects: Option<u64>,
    /// One per rule of a policy; none at all if no rule has anything.
    pub(super) rules: Vec<AddedRule<'a>>,
}

#[derive(Default, PartialEq, Encode, BorrowDecode)]
pub(super) struct AddedRule<'a> {
    pub(super) is_error: Option<u8>,
    pub(super) twin_by: Vec<&'a str>,
    pub(super) twin_scope: u8,
}

/// Scope ids are made here, so nearly all are 16 bytes; a caller may name another.
#[derive(Encode, BorrowDecode)]
pub(super) enum StoredScope<'a> {
    Made([u8; 16]),
    Other(&'a str),
}

#[derive(Encode, BorrowDecode)]
pub(super) struct StoredAttempt<'a> {
    pub(super) run_id: &'a str,
    pub(super) tool_call_id: &'a str,
    pub(super) attempt: u32,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct StoredFacts<'a> {
    pub(super) tool: &'a str,
    pub(super) input_hash: [u8; 32],
    pub(super) terms: StoredTerms,
    pub(super) operation_key: Option<&'a str>,
    pub(super) message_id: Option<&'a str>,
    pub(super) labels: Vec<(&'a str, &'a str)>,
    pub(super) trace: Option<([u8; 16], [u8; 8])>,
    pub(super) redacted: bool,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct StoredTerms {
    pub(super) effect: u8,
    pub(super) key_window_ms: Option<u64>,
    pub(super) settle_ms: Option<u64>,
    pub(super) max_attempts: Option<u32>,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct StoredOutcome<'a> {
    pub(super) status: u8,
    pub(super) duration_ms: u64,
    pub(super) output_hash: Option<[u8; 32]>,
    pub(super) output_summary: Option<&'a str>,
    pub(super) error_class: Option<&'a str>,
    pub(super) provider_ref: Option<&'a str>,
    pub(super) message_id: Option<&'a str>,
    pub(super) redacted: bool,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct StoredReceipt<'a> {
    pub(super) scope: StoredScope<'a>,
    pub(super) digest: [u8; 32],
}

#[derive(Encode, BorrowDecode)]
pub(super) struct StoredRule<'a> {
    pub(super) pattern: &'a str,
    pub(super) terms: StoredTerms,
}
