//! What the writer answers.

use recibo_core::effect::Terms;
use recibo_core::hash::InputHash;
use recibo_core::id::{CallRef, ScopeId};
use recibo_core::plan::{ClaimedAs, Twin};
use recibo_core::receipt::IdempotencyKey;
use recibo_core::record::Record;
use recibo_core::status::CallState;
use recibo_core::time::Time;

/// A scope was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedScope {
    /// Its id.
    pub scope_id: ScopeId,
    /// The caller's name for it, masked.
    pub label: Option<String>,
    /// When, in ledger time.
    pub opened_at: Time,
    /// When its key will be wiped at the latest.
    pub expires_at: Time,
}

/// Answer to a claim.
#[derive(Clone, Debug)]
pub struct ClaimAnswer {
    /// Granted, or advice.
    pub claimed: ClaimedAs,
    /// The call.
    pub call: CallRef,
    /// Its state after the claim.
    pub state: CallState,
    /// Frozen by the first attempt, or what a first attempt would freeze.
    pub terms: Terms,
    /// Where the key window of a keyed call ends.
    pub key_window_ends_at: Option<Time>,
    /// Names the effect to the outside service.
    pub idempotency_key: IdempotencyKey,
    /// Hash of the canonical arguments.
    pub input_hash: InputHash,
    /// Ledger time of this answer.
    pub now: Time,
    /// With a grant: when the attempt started.
    pub started_at: Option<Time>,
    /// With a grant: permits reporting the outcome.
    pub lease_token: Option<String>,
    /// The other call that does the same and decided, else the one that matters most.
    pub twin: Option<Twin>,
    /// Without a grant: the attempt that decides.
    pub record: Option<Box<Record>>,
}

/// Answer to a reported outcome or a one-shot.
#[derive(Clone, Debug)]
pub struct RecordAnswer {
    /// The attempt as it is now.
    pub record: Box<Record>,
    /// Whether nothing new was said.
    pub replayed: bool,
}

/// Answer to a status check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedAnswer {
    /// For a "not executed" that came too early: when to ask again.
    pub retry_after_ms: Option<u64>,
}

/// Answer to a renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewedAnswer {
    /// Permits reporting the outcome, as before.
    pub lease_token: String,
    /// When the lease ends now.
    pub lease_expires_at: Time,
    /// Ledger time of this answer.
    pub now: Time,
}
