//! What the writer is asked.

use recibo_core::effect::Policy;
use recibo_core::id::{Namespace, ScopeId};
use recibo_core::plan::{Check, Claim, OneShot, Refusal, Renewal, Report, Resolution};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::answer::{CheckedAnswer, ClaimAnswer, OpenedScope, RecordAnswer, RenewedAnswer};
use crate::api_key::{ApiKeyDraft, ApiKeyInfo, Revoked};
use crate::error::WriteError;

pub(crate) type Reply<T> = oneshot::Sender<Result<T, WriteError>>;

/// One request to the writer.
pub(crate) struct Command {
    pub(crate) namespace: Namespace,
    pub(crate) op: WriteOp,
    /// The room that it takes in the queue, given back once it is served.
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

pub(crate) enum WriteOp {
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
    Renew {
        renewal: Box<Renewal>,
        lease_token: String,
        reply: Reply<RenewedAnswer>,
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
    /// Makes durable how late it is, and appends nothing: for a reader that is about to show a
    /// lease as over.
    Mark {
        reply: Reply<()>,
    },
    Close,
}
