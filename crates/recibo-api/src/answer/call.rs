//! Calls, pages of calls, runs and batches.

use recibo_core::decision::Decision;
use recibo_core::effect::Terms as CoreTerms;
use recibo_core::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{OutcomeAnswer, Record};
use crate::problem::Problem;
use crate::word::{
    CallStateWord, DecisionKindWord, EffectWord, IsErrorWord, ReasonWord, ResolvedAsWord,
    Timestamp, Word,
};

/// A call with all its attempts.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Call {
    /// The run.
    pub run_id: String,
    /// The call.
    pub tool_call_id: String,
    /// The tool.
    pub tool: String,
    /// Frozen by the first attempt.
    pub effect: EffectWord,
    /// Folded from the events.
    pub state: CallStateWord,
    /// Whether effect and no-effect evidence contradict each other.
    pub conflict: bool,
    /// Names the effect to the outside service.
    pub idempotency_key: String,
    /// The caller's own key.
    #[schema(required)]
    pub operation_key: Option<String>,
    /// Hash of the canonical arguments; null once swept.
    #[schema(required)]
    pub input_hash: Option<String>,
    /// Frozen by the first attempt.
    #[serde(default)]
    pub terms: Terms,
    /// In order.
    pub attempts: Vec<Record>,
    /// An operator's words, in order; the newest 64.
    #[serde(default)]
    pub resolutions: Vec<ResolutionEntry>,
    /// The seq of the call's last event.
    pub version: u64,
}

/// The numbers that a call's first attempt froze. Each is null where it froze none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Terms {
    /// How long the outside service honours the idempotency key, from the start of attempt 1.
    #[schema(required)]
    pub key_window_ms: Option<u64>,
    /// When that is over.
    #[schema(required)]
    pub key_window_ends_at: Option<Timestamp>,
    /// How long after an attempt's end the outside service's answer is final.
    #[schema(required)]
    pub settle_ms: Option<u64>,
    /// Attempts that are granted.
    #[schema(required)]
    pub max_attempts: Option<u32>,
    /// What the tool's own error says of the effect.
    #[schema(required)]
    pub is_error: Option<IsErrorWord>,
}

impl Terms {
    /// From what the ledger found.
    pub fn from_core(terms: &CoreTerms, key_window_ends_at: Option<Time>) -> Self {
        Self {
            key_window_ms: terms.key_window_ms,
            key_window_ends_at: key_window_ends_at.map(Timestamp),
            settle_ms: terms.settle_ms,
            max_attempts: terms.max_attempts,
            is_error: terms.is_error.map(Word),
        }
    }
}

/// An operator's word on a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResolutionEntry {
    /// As what.
    pub state: ResolvedAsWord,
    /// In the operator's words.
    pub reason: String,
    /// Ledger time.
    pub at: Timestamp,
    /// Id of the API key that said so, `local` without one; null in ledgers of earlier versions,
    /// which did not keep it.
    #[schema(required)]
    pub by: Option<String>,
    /// Its event.
    pub seq: u64,
    /// The seq of the resolution that it corrects.
    #[schema(required)]
    pub corrects: Option<u64>,
}

/// A call and what to do about it: answer to a status check, a resolution, and to the search
/// by an idempotency or operation key.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "Box<RawValue>")]
pub struct CallAnswer {
    /// The call.
    #[serde(flatten)]
    pub call: Call,
    /// What to do.
    pub decision: DecisionKindWord,
    /// Why.
    pub reason: ReasonWord,
    /// When to ask again, where that makes sense.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl CallAnswer {
    /// The answer over a call. `ask_again_ms` is a status check's own delay and goes before
    /// the decision's.
    pub fn from_core(call: Call, decision: &Decision, ask_again_ms: Option<u64>) -> Self {
        Self {
            call,
            decision: Word(decision.kind),
            reason: Word(decision.reason),
            retry_after_ms: ask_again_ms.or(decision.retry_after_ms),
        }
    }
}

impl TryFrom<Box<RawValue>> for CallAnswer {
    type Error = serde_json::Error;

    fn try_from(text: Box<RawValue>) -> Result<Self, Self::Error> {
        #[derive(Deserialize)]
        struct Rest {
            decision: DecisionKindWord,
            reason: ReasonWord,
            retry_after_ms: Option<u64>,
        }
        let Rest { decision, reason, retry_after_ms } = super::part(&text)?;
        Ok(Self { call: super::part(&text)?, decision, reason, retry_after_ms })
    }
}

/// A page of calls, in ledger order.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Page {
    /// The calls.
    pub calls: Vec<Call>,
    /// Names the next page; null on the last one.
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// What became of a run's calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    /// The run.
    pub run_id: String,
    /// How many calls.
    pub calls: u64,
    /// How many attempts at them.
    pub attempts: u64,
    /// How many calls are in which state.
    pub by_state: ByState,
    /// How many calls have contradicting evidence.
    pub conflicts: u64,
    /// Ledger time of the first event.
    pub first_at: Timestamp,
    /// Ledger time of the last event.
    pub last_at: Timestamp,
}

/// How many calls are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ByState {
    /// An attempt is open.
    pub in_flight: u64,
    /// An earlier attempt may have taken effect.
    pub unknown: u64,
    /// No effect; may be tried again.
    pub retryable: u64,
    /// Took effect.
    pub ok: u64,
    /// No effect; final.
    pub terminal: u64,
    /// Given up by an operator.
    pub abandoned: u64,
}

/// Answer to a batch: one result per item, in order.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchAnswer {
    /// The results.
    pub results: Vec<BatchResult>,
}

/// What became of one item. It has either a record or a problem.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchResult {
    /// The HTTP status that the item would have got alone.
    pub status: u16,
    /// The record, as a one-shot alone is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<OutcomeAnswer>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

impl BatchResult {
    /// An item that was recorded now (201) or before (200).
    pub fn recorded(answer: OutcomeAnswer) -> Self {
        let status = if answer.replayed { 200 } else { 201 };
        Self { status, record: Some(answer), problem: None }
    }
}

impl From<Problem> for BatchResult {
    fn from(problem: Problem) -> Self {
        Self { status: problem.status(), record: None, problem: Some(problem) }
    }
}
