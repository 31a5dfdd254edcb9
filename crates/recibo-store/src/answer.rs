//! What the writer is asked, and what it answers.

use recibo_core::effect::Policy;
use recibo_core::hash::InputHash;
use recibo_core::id::{CallRef, Namespace, ScopeId, ToolCallId};
use recibo_core::plan::{Check, Claim, ClaimedAs, OneShot, Refusal, Report, Resolution};
use recibo_core::receipt::IdempotencyKey;
use recibo_core::record::Record;
use recibo_core::status::CallState;
use recibo_core::time::Time;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::api_key::{ApiKeyDraft, ApiKeyInfo, Revoked};
use crate::error::WriteError;

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

/// Another call of the run with the same tool and input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twin {
    /// That call.
    pub tool_call_id: ToolCallId,
    /// Its attempt that decides.
    pub attempt: u32,
    /// Its state: `ok`, `in_flight` or `unknown`.
    pub state: CallState,
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
    /// The newest other call of the run that does the same.
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

pub(crate) type Reply<T> = oneshot::Sender<Result<T, WriteError>>;

/// One request to the writer.
pub(crate) struct Command {
    pub(crate) namespace: Namespace,
    pub(crate) ask: Ask,
    /// The room that it takes in the queue, given back once it is served.
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

pub(crate) enum Ask {
    OpenScope {
        label: Option<String>,
        ttl_ms: u64,
        reply: Reply<OpenedScope>,
    },
    /// Answers whether there is such a scope.
    CloseScope {
        scope_id: ScopeId,
        reply: Reply<bool>,
    },
    Claim {
        claim: Box<Claim>,
        reply: Reply<ClaimAnswer>,
    },
    Report {
        report: Box<Report>,
        lease_token: String,
        scope_id: Option<ScopeId>,
        reply: Reply<RecordAnswer>,
    },
    Record {
        shots: Vec<OneShot>,
        reply: Reply<Vec<Result<RecordAnswer, Refusal>>>,
    },
    Check {
        check: Box<Check>,
        reply: Reply<CheckedAnswer>,
    },
    Resolve {
        resolution: Box<Resolution>,
        etag: String,
        reply: Reply<()>,
    },
    SetPolicy {
        policy: Policy,
        reply: Reply<u64>,
    },
    CreateApiKey {
        draft: ApiKeyDraft,
        reply: Reply<ApiKeyInfo>,
    },
    RevokeApiKey {
        id: String,
        /// The last key that is good for ever in this role stays.
        kept_role: &'static str,
        reply: Reply<Revoked>,
    },
    /// Appends what time alone has caused: ends of leases and of scopes.
    Tick {
        reply: Reply<()>,
    },
    Close,
}
