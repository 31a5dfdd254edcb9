//! Decisions: permission with a lease, or advice.

use std::fmt;

use recibo_core::decision::Decision;
use recibo_core::effect::Effect;
use recibo_core::hash::InputHash;
use recibo_core::id::{CallRef, ToolCallId};
use recibo_core::receipt::IdempotencyKey;
use recibo_core::record::Record as CoreRecord;
use recibo_core::status::{CallState, DecisionKind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::Record;
use crate::word::{CallStateWord, DecisionKindWord, ReasonWord, Timestamp, Word};

const LOST_RESULT_HINT: &str = "the ledger holds no results; if this one was lost, read again \
     under a new tool_call_id";

/// Answer to a claim.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged, try_from = "Box<RawValue>")]
pub enum ClaimAnswer {
    /// Permission.
    Granted(Box<Granted>),
    /// No permission; what to do instead.
    Advice(Box<DecisionAnswer>),
}

/// Only permission has a lease.
impl TryFrom<Box<RawValue>> for ClaimAnswer {
    type Error = serde_json::Error;

    fn try_from(text: Box<RawValue>) -> Result<Self, Self::Error> {
        #[derive(Deserialize)]
        struct Kind {
            lease: Option<Lease>,
        }
        Ok(match super::part::<Kind>(&text)?.lease {
            Some(_) => Self::Granted(super::part(&text)?),
            None => Self::Advice(super::part(&text)?),
        })
    }
}

/// Permission to run an attempt.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Granted {
    /// Always `proceed`.
    pub decision: DecisionKindWord,
    /// Why.
    pub reason: ReasonWord,
    /// The run.
    pub run_id: String,
    /// The call.
    pub tool_call_id: String,
    /// The attempt.
    pub attempt: u32,
    /// Always `in_flight`.
    pub state: CallStateWord,
    /// Names the effect to the outside service.
    pub idempotency_key: String,
    /// Hash of the canonical arguments.
    pub input_hash: String,
    /// Ledger time.
    pub started_at: Timestamp,
    /// How long the attempt may stay open.
    pub lease: Lease,
    /// Whether the same claim was granted this before.
    pub replayed: bool,
    /// The newest other call of the run that asks for the same.
    #[schema(required)]
    pub twin: Option<Twin>,
}

/// Proof of the permission, and how long it holds.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    /// Needed to report the outcome.
    pub token: String,
    /// What is left of it.
    pub duration_ms: u64,
    /// When it ends, by ledger time.
    pub expires_at: Timestamp,
}

/// Without the token: who has it can report outcomes.
impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("duration_ms", &self.duration_ms)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// Another call of the run with the same tool and input. Advice only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Twin {
    /// That call.
    pub tool_call_id: String,
    /// Its deciding attempt.
    pub attempt: u32,
    /// `ok`, `in_flight` or `unknown`.
    pub state: CallStateWord,
}

impl Twin {
    /// From what the ledger found.
    pub fn from_core(tool_call_id: &ToolCallId, attempt: u32, state: CallState) -> Self {
        Self { tool_call_id: tool_call_id.to_string(), attempt, state: Word(state) }
    }
}

/// What to do about a call. Never permission.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DecisionAnswer {
    /// What to do. Read a word that you do not know as `stop`.
    pub decision: DecisionKindWord,
    /// Why.
    pub reason: ReasonWord,
    /// The run.
    pub run_id: String,
    /// The call.
    pub tool_call_id: String,
    /// The attempt that decides; null for an absent call.
    #[schema(required)]
    pub attempt: Option<u32>,
    /// Folded from the events.
    pub state: CallStateWord,
    /// Names the effect to the outside service.
    pub idempotency_key: String,
    /// Hash of the canonical arguments; null where nobody has named any.
    #[schema(required)]
    pub input_hash: Option<String>,
    /// When the deciding attempt began.
    #[schema(required)]
    pub started_at: Option<Timestamp>,
    /// Always false: only permission is repeated.
    pub replayed: bool,
    /// The newest other call of the run that asks for the same.
    #[schema(required)]
    pub twin: Option<Twin>,
    /// When to ask again, for `wait` and `check_status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// With `reuse`, always false: the ledger holds no results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_available: Option<bool>,
    /// What else to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The record that decides; null for an absent call.
    #[schema(required)]
    pub record: Option<Record>,
}

impl DecisionAnswer {
    /// A decision as it is shown. `record` is the attempt's that
    /// decides; `input_hash` is what a claim named, for a call that has no record.
    pub fn from_core(
        call: &CallRef,
        key: &IdempotencyKey,
        decision: &Decision,
        record: Option<&CoreRecord>,
        input_hash: Option<&InputHash>,
        twin: Option<Twin>,
    ) -> Self {
        let is_reuse = decision.kind == DecisionKind::Reuse;
        let is_read = record.is_some_and(|record| record.effect == Effect::ReadOnly);
        Self {
            decision: Word(decision.kind),
            reason: Word(decision.reason),
            run_id: call.run_id.to_string(),
            tool_call_id: call.tool_call_id.to_string(),
            attempt: record.map(|record| record.attempt),
            state: Word(decision.state),
            idempotency_key: key.to_string(),
            input_hash: record.map(|r| &r.input_hash).or(input_hash).map(ToString::to_string),
            started_at: record.map(|record| Timestamp(record.started_at)),
            replayed: false,
            twin,
            retry_after_ms: decision.retry_after_ms,
            result_available: is_reuse.then_some(false),
            hint: (is_reuse && is_read).then(|| LOST_RESULT_HINT.to_owned()),
            record: record.map(Record::from_core),
        }
    }
}
