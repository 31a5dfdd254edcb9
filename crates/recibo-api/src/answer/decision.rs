//! Decisions: permission with a lease, or advice.

use std::fmt;

use recibo_core::decision::Decision;
use recibo_core::effect::Effect;
use recibo_core::hash::InputHash;
use recibo_core::id::CallRef;
use recibo_core::plan::Twin as CoreTwin;
use recibo_core::receipt::IdempotencyKey;
use recibo_core::record::Record as CoreRecord;
use recibo_core::status::{DecisionKind, Reason};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{Record, Terms};
use crate::word::{CallStateWord, DecisionKindWord, EffectWord, ReasonWord, Timestamp, Word};

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
    /// Frozen by the first attempt.
    #[serde(default = "strictest")]
    pub effect: EffectWord,
    /// Frozen by the first attempt.
    #[serde(default)]
    pub terms: Terms,
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
    /// The other call that does the same and matters most.
    #[schema(required)]
    pub twin: Option<Twin>,
}

/// What an effect reads as that an older service does not write.
fn strictest() -> EffectWord {
    Word(Effect::Opaque)
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

/// Answer to a renewal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RenewalAnswer {
    /// The run.
    pub run_id: String,
    /// The call.
    pub tool_call_id: String,
    /// The attempt.
    pub attempt: u32,
    /// The lease as it is now, with the same token.
    pub lease: Lease,
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

/// Another call that does the same: of the run, or of the namespace where the policy says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Twin {
    /// Its run; empty from an older service, which knew only twins of the same run.
    #[serde(default)]
    pub run_id: String,
    /// That call.
    pub tool_call_id: String,
    /// Its deciding attempt.
    pub attempt: u32,
    /// `ok`, `in_flight` or `unknown`; another one of a call whose evidence contradicts itself.
    pub state: CallStateWord,
}

impl Twin {
    /// From what the ledger found.
    pub fn from_core(twin: &CoreTwin) -> Self {
        Self {
            run_id: twin.call.run_id.to_string(),
            tool_call_id: twin.call.tool_call_id.to_string(),
            attempt: twin.attempt,
            state: Word(twin.state),
        }
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
    /// Frozen by the first attempt, or what a claim would freeze; null where nobody has claimed.
    #[schema(required)]
    pub effect: Option<EffectWord>,
    /// As `effect`.
    #[schema(required)]
    pub terms: Option<Terms>,
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
    /// The other call that does the same and decided, else the one that matters most.
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

/// What a decision is made of, as the ledger found it.
pub struct Decided<'a> {
    /// The call.
    pub call: &'a CallRef,
    /// Names the effect to the outside service.
    pub key: &'a IdempotencyKey,
    /// What the table, or a twin, says.
    pub decision: &'a Decision,
    /// Effect and numbers, where they are known.
    pub terms: Option<(Effect, Terms)>,
    /// The record of the attempt that decides.
    pub record: Option<&'a CoreRecord>,
    /// What a claim named, for a call that has no record.
    pub input_hash: Option<&'a InputHash>,
    /// Another call that does the same.
    pub twin: Option<&'a CoreTwin>,
}

impl DecisionAnswer {
    /// A decision as it is shown.
    pub fn from_core(decided: &Decided<'_>) -> Self {
        let Decided { call, key, decision, terms, record, input_hash, twin } = decided;
        let is_reuse = decision.kind == DecisionKind::Reuse;
        let is_own = decision.reason == Reason::AlreadyOk;
        let is_read = record.is_some_and(|record| record.effect == Effect::ReadOnly);
        Self {
            decision: Word(decision.kind),
            reason: Word(decision.reason),
            run_id: call.run_id.to_string(),
            tool_call_id: call.tool_call_id.to_string(),
            attempt: record.map(|record| record.attempt),
            state: Word(decision.state),
            effect: terms.map(|(effect, _)| Word(effect)),
            terms: terms.map(|(_, terms)| terms),
            idempotency_key: key.to_string(),
            input_hash: record.map(|r| &r.input_hash).or(*input_hash).map(ToString::to_string),
            started_at: record.map(|record| Timestamp(record.started_at)),
            replayed: false,
            twin: twin.map(Twin::from_core),
            retry_after_ms: decision.retry_after_ms,
            result_available: is_reuse.then_some(false),
            hint: (is_reuse && is_own && is_read).then(|| LOST_RESULT_HINT.to_owned()),
            record: record.map(Record::from_core),
        }
    }
}
