//! The facts that the ledger appends. Everything it answers is folded from these.

use crate::effect::{Policy, Terms, TwinScope};
use crate::hash::{InputHash, OutputHash};
use crate::id::{
    CallRef, ClaimId, ErrorClass, Labels, MessageId, Namespace, OperationKey, ScopeId, ToolName,
    Trace,
};
use crate::receipt::Token;
use crate::status::{CheckAnswer, OutcomeStatus, ResolvedAs, ScopeEnd};
use crate::time::Time;

/// One appended fact, with its place in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Place in the ledger, from 0 without gaps; also the leaf index.
    pub seq: u64,
    /// Ledger time.
    pub at: Time,
    /// Whose event it is; `None` for an event of the whole ledger.
    pub owner: Option<Owner>,
    /// Makes a leaf hash say nothing about its line once the line is deleted.
    pub salt: [u8; 16],
    /// What happened.
    pub body: Body,
}

/// Whose an event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The namespace.
    pub namespace: Namespace,
    /// Place among the events of the namespace, from 0 without gaps.
    pub nseq: u64,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A signing key was made.
    ScopeOpened(ScopeOpened),
    /// A signing key was wiped.
    ScopeClosed {
        /// Its scope.
        scope_id: ScopeId,
        /// Why.
        end: ScopeEnd,
    },
    /// An attempt was granted.
    Started(Started),
    /// An outcome of a granted attempt was reported.
    Finished(Finished),
    /// A finished attempt was reported in one write.
    Recorded(Recorded),
    /// A lease ended without an outcome.
    LeaseExpired {
        /// The call.
        call: CallRef,
        /// The attempt.
        attempt: u32,
    },
    /// A lease got another end: its holder renewed it. Lines of version 1 hold this also for
    /// leases that lived over a restart.
    LeaseExtended {
        /// The call.
        call: CallRef,
        /// The attempt.
        attempt: u32,
        /// Where it ends now.
        lease_expires_at: Time,
    },
    /// The outside service was asked what happened.
    StatusChecked(StatusChecked),
    /// An operator said what happened.
    Resolved(Resolved),
    /// The effect policy of the namespace was replaced.
    PolicySet {
        /// The new policy.
        policy: Policy,
    },
    /// The ledger began on another boot of the machine. Of the whole ledger: it is about every
    /// lease that lived.
    Restarted(Restarted),
}

/// An operator said what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The call.
    pub call: CallRef,
    /// The operator's word.
    pub state: ResolvedAs,
    /// In the operator's words, masked.
    pub reason: String,
    /// Whether something in the reason was masked.
    pub redacted: bool,
    /// Id of the API key that said so; `None` in lines of version 1, which did not keep it.
    pub by: Option<String>,
    /// The resolution that this one corrects.
    pub corrects: Option<u64>,
}

/// The ledger began on another boot of the machine. Leases that lived at `last_at` have the time
/// that remained then, counted from this event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restarted {
    /// Ledger time of the last event or clock mark before.
    pub last_at: Time,
    /// Whether the wall clock lay behind the last event, so that key windows opened before
    /// count as over.
    pub key_windows_void: bool,
}

/// A signing key was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeOpened {
    /// Its scope.
    pub scope_id: ScopeId,
    /// The caller's name for it, masked.
    pub label: Option<String>,
    /// When the key will be wiped at the latest.
    pub expires_at: Time,
}

/// What a call is, as its first attempt froze it, and what every attempt says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The tool.
    pub tool: ToolName,
    /// Hash of the canonical arguments.
    pub input_hash: InputHash,
    /// Effect and its numbers.
    pub terms: Terms,
    /// The caller's own key, if it has one.
    pub operation_key: Option<OperationKey>,
    /// A message that the call belongs to.
    pub message_id: Option<MessageId>,
    /// Free labels, masked.
    pub labels: Labels,
    /// The caller's trace.
    pub trace: Option<Trace>,
    /// Whether something in the labels was masked.
    pub redacted: bool,
    /// What two calls share that do the same, where it is not the input hash.
    pub twin_hash: Option<InputHash>,
    /// Where twins of this call are looked for.
    pub twin_scope: TwinScope,
}

impl Facts {
    /// What two calls of a tool share that do the same.
    pub fn twin_hash(&self) -> &InputHash {
        self.twin_hash.as_ref().unwrap_or(&self.input_hash)
    }
}

/// An attempt was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The call.
    pub call: CallRef,
    /// The attempt, from 1 without gaps.
    pub attempt: u32,
    /// What the call is.
    pub facts: Facts,
    /// Drawn by the process that sends.
    pub claim_id: ClaimId,
    /// Whose key will sign.
    pub scope_id: ScopeId,
    /// When the ledger stops believing in the attempt.
    pub lease_expires_at: Time,
}

/// What an adapter says of an attempt's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status.
    pub status: OutcomeStatus,
    /// The caller's monotonic measure, in milliseconds.
    pub duration_ms: u64,
    /// Hash of the result text.
    pub output_hash: Option<OutputHash>,
    /// Canonical JSON object of at most 2 KiB, masked.
    pub output_summary: Option<String>,
    /// Class of the error.
    pub error_class: Option<ErrorClass>,
    /// What the outside service calls the effect, masked.
    pub provider_ref: Option<String>,
    /// A message that the call belongs to, masked.
    pub message_id: Option<String>,
    /// Whether something here was masked.
    pub redacted: bool,
    /// Whether the caller saw the service's answer, though it does not say what took effect.
    pub answered: bool,
}

impl Outcome {
    /// Whether two outcomes say the same: status, result and error class.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.status == other.status
            && self.output_hash == other.output_hash
            && self.error_class == other.error_class
    }
}

/// Who signed a success, and the receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The scope whose key signed.
    pub scope_id: ScopeId,
    /// The receipt.
    pub token: Token,
}

/// An outcome of a granted attempt was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The call.
    pub call: CallRef,
    /// The attempt.
    pub attempt: u32,
    /// What was reported.
    pub outcome: Outcome,
    /// Whether it came after another outcome or after the lease.
    pub late: bool,
    /// The receipt, if it is a success whose scope, or the one it named, was alive.
    pub receipt: Option<Receipt>,
}

/// A finished attempt was reported in one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The call.
    pub call: CallRef,
    /// The attempt, from 1 without gaps.
    pub attempt: u32,
    /// What the call is.
    pub facts: Facts,
    /// The scope that the caller named.
    pub scope_id: ScopeId,
    /// By the caller's clock.
    pub started_at: Time,
    /// What was reported.
    pub outcome: Outcome,
    /// The receipt, if it is a success whose scope was alive.
    pub token: Option<Token>,
}

/// The outside service was asked what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusChecked {
    /// The call.
    pub call: CallRef,
    /// The attempt.
    pub attempt: u32,
    /// What it said.
    pub answer: CheckAnswer,
    /// Who was asked, masked.
    pub source: String,
    /// How long ago it was asked, in milliseconds.
    pub age_ms: u64,
    /// What the outside service calls the effect, masked.
    pub provider_ref: Option<String>,
    /// Whether the answer settles the attempt. "Not executed" does so only once the outside
    /// service's answer is final.
    pub settles: bool,
    /// Whether something here was masked.
    pub redacted: bool,
}

impl Body {
    /// The call and the attempt that the event is about; attempt 0 for the call as a whole.
    pub fn call(&self) -> Option<(&CallRef, u32)> {
        match self {
            Self::Started(e) => Some((&e.call, e.attempt)),
            Self::Finished(e) => Some((&e.call, e.attempt)),
            Self::Recorded(e) => Some((&e.call, e.attempt)),
            Self::LeaseExpired { call, attempt } | Self::LeaseExtended { call, attempt, .. } => {
                Some((call, *attempt))
            }
            Self::StatusChecked(e) => Some((&e.call, e.attempt)),
            Self::Resolved(e) => Some((&e.call, 0)),
            Self::ScopeOpened(_)
            | Self::ScopeClosed { .. }
            | Self::PolicySet { .. }
            | Self::Restarted(_) => None,
        }
    }

    /// What the call is, if the event opens an attempt.
    pub fn facts(&self) -> Option<&Facts> {
        match self {
            Self::Started(e) => Some(&e.facts),
            Self::Recorded(e) => Some(&e.facts),
            _ => None,
        }
    }

    /// The outcome that the event reports, if it does.
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Finished(e) => Some(&e.outcome),
            Self::Recorded(e) => Some(&e.outcome),
            _ => None,
        }
    }

    /// The receipt that the event holds, if it does.
    pub fn token(&self) -> Option<&Token> {
        match self {
            Self::Finished(e) => e.receipt.as_ref().map(|receipt| &receipt.token),
            Self::Recorded(e) => e.token.as_ref(),
            _ => None,
        }
    }

    /// The word of the contract for the event's type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::ScopeOpened(_) => "scope_opened",
            Self::ScopeClosed { .. } => "scope_closed",
            Self::Started(_) => "started",
            Self::Finished(_) => "finished",
            Self::Recorded(_) => "recorded",
            Self::LeaseExpired { .. } => "lease_expired",
            Self::LeaseExtended { .. } => "lease_extended",
            Self::StatusChecked(_) => "status_checked",
            Self::Resolved(_) => "resolved",
            Self::PolicySet { .. } => "policy_set",
            Self::Restarted(_) => "restarted",
        }
    }
}
