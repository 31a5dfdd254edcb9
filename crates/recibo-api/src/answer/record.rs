//! The record of one attempt.

use std::collections::BTreeMap;

use recibo_core::hash::hex;
use recibo_core::receipt::receipt_line;
use recibo_core::record::Record as CoreRecord;
use recibo_core::status::OutcomeStatus;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::word::words;
use crate::word::{
    AttemptStatusWord, CheckAnswerWord, EffectWord, OutcomeStatusWord, SettledByWord, Timestamp,
    Word,
};

/// What the ledger knows of one attempt.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Record {
    /// The run.
    pub run_id: String,
    /// The call.
    pub tool_call_id: String,
    /// The tool.
    pub tool: String,
    /// From 1 without gaps.
    pub attempt: u32,
    /// What it reads as now.
    pub status: AttemptStatusWord,
    /// Ledger time for a claim, the caller's for a one-shot.
    pub started_at: Timestamp,
    /// The caller's monotonic measure.
    #[schema(required)]
    pub duration_ms: Option<u64>,
    /// Ledger time of the outcome that decides.
    #[schema(required)]
    pub finished_at: Option<Timestamp>,
    /// Ledger time of the call's first event.
    pub recorded_at: Timestamp,
    /// Hash of the canonical arguments; null once swept.
    #[schema(required)]
    pub input_hash: Option<String>,
    /// Hash of the result text.
    #[schema(required)]
    pub output_hash: Option<String>,
    /// The shape of the result, or what the caller gave.
    #[schema(required, value_type = Option<Object>)]
    pub output_summary: Option<Box<RawValue>>,
    /// Class of the error.
    #[schema(required)]
    pub error_class: Option<String>,
    /// The receipt.
    #[schema(required)]
    pub token: Option<String>,
    /// The scope that signed, else the one that the attempt named.
    pub scope_id: String,
    /// Frozen by the call's first attempt.
    pub effect: EffectWord,
    /// Names the effect to the outside service.
    pub idempotency_key: String,
    /// The caller's own key.
    #[schema(required)]
    pub operation_key: Option<String>,
    /// A message that the call belongs to.
    #[schema(required)]
    pub message_id: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// 32 hex digits.
    #[schema(required)]
    pub trace_id: Option<String>,
    /// 16 hex digits.
    #[schema(required)]
    pub span_id: Option<String>,
    /// What the outside service calls the effect.
    #[schema(required)]
    pub provider_ref: Option<String>,
    /// When the lease ends or ended; null for a one-shot.
    #[schema(required)]
    pub lease_expires_at: Option<Timestamp>,
    /// All outcomes, in order.
    pub outcomes: Vec<OutcomeEntry>,
    /// Where it stands in the ledger.
    pub seq: RecordSeq,
    /// Whether a credential was masked.
    pub redacted: bool,
    /// Whether the outcome that decides came after another one or after the lease.
    pub late: bool,
    /// Who settled the status, if no definite outcome did.
    #[schema(required)]
    pub settled_by: Option<SettledByWord>,
    /// Status checks, in order; the newest 64.
    #[serde(default)]
    pub checks: Vec<CheckEntry>,
    /// What removed the details, if anything did.
    #[schema(required)]
    pub swept: Option<Swept>,
}

/// One outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutcomeEntry {
    /// What was reported.
    pub status: OutcomeStatusWord,
    /// Ledger time.
    pub at: Timestamp,
    /// Its event.
    pub seq: u64,
    /// Whether it came after another one or after the lease.
    pub late: bool,
}

/// A status check of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckEntry {
    /// What the outside service said.
    pub answer: CheckAnswerWord,
    /// Who was asked.
    pub source: String,
    /// Ledger time.
    pub at: Timestamp,
    /// Its event.
    pub seq: u64,
    /// Whether it settled the attempt.
    pub counted: bool,
}

/// The events of an attempt; the same one twice for a one-shot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordSeq {
    /// The event that opened it.
    pub started: u64,
    /// The event of the outcome that decides.
    #[schema(required)]
    pub finished: Option<u64>,
}

/// What a sweep removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Swept {
    /// When.
    pub at: Timestamp,
    /// The rule that it followed.
    pub policy: String,
    /// The event of the sweep.
    pub seq: u64,
}

impl Record {
    /// A record of the core as it is shown.
    pub fn from_core(record: &CoreRecord) -> Self {
        let text = |value: Option<&str>| value.map(str::to_owned);
        let labels = record.labels.iter().map(|(k, v)| (k.to_owned(), v.to_owned()));
        Self {
            run_id: record.call.run_id.to_string(),
            tool_call_id: record.call.tool_call_id.to_string(),
            tool: record.tool.to_string(),
            attempt: record.attempt,
            status: Word(record.status),
            started_at: Timestamp(record.started_at),
            duration_ms: record.duration_ms,
            finished_at: record.finished_at.map(Timestamp),
            recorded_at: Timestamp(record.recorded_at),
            input_hash: Some(record.input_hash.to_string()),
            output_hash: record.output_hash.map(|hash| hash.to_string()),
            output_summary: record.output_summary.as_ref().map(|summary| {
                RawValue::from_string(summary.clone()).expect("a stored summary is canonical JSON")
            }),
            error_class: record.error_class.clone(),
            token: record.token.map(|token| token.to_string()),
            scope_id: record.scope_id.to_string(),
            effect: Word(record.effect),
            idempotency_key: record.idempotency_key.to_string(),
            operation_key: text(record.operation_key.as_ref().map(|key| key.as_str())),
            message_id: record.message_id.clone(),
            labels: labels.collect(),
            trace_id: record.trace.map(|trace| hex(&trace.trace_id)),
            span_id: record.trace.map(|trace| hex(&trace.span_id)),
            provider_ref: record.provider_ref.clone(),
            lease_expires_at: record.lease_expires_at.map(Timestamp),
            outcomes: record
                .outcomes
                .iter()
                .map(|mark| OutcomeEntry {
                    status: Word(mark.status),
                    at: Timestamp(mark.at),
                    seq: mark.seq,
                    late: mark.late,
                })
                .collect(),
            seq: RecordSeq { started: record.started_seq, finished: record.finished_seq },
            redacted: record.redacted,
            late: record.late,
            settled_by: record.settled_by.map(Word),
            checks: record
                .checks
                .iter()
                .map(|mark| CheckEntry {
                    answer: Word(mark.answer),
                    source: mark.source.clone(),
                    at: Timestamp(mark.at),
                    seq: mark.seq,
                    counted: mark.counted,
                })
                .collect(),
            swept: None,
        }
    }
}

/// Answer to an outcome or a one-shot: the record, whether it was there before, and what the
/// adapter appends to the result.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "Box<RawValue>")]
pub struct OutcomeAnswer {
    /// The record.
    #[serde(flatten)]
    pub record: Record,
    /// Whether this was reported before.
    pub replayed: bool,
    /// `[receipt: <token>]`; null without a token.
    #[schema(required)]
    pub receipt_line: Option<String>,
    /// Why a success has no token.
    #[schema(required)]
    pub no_token_reason: Option<NoTokenReasonWord>,
}

words! {
    NoTokenReason, NoTokenReasonWord = NoTokenReason::ALL, unknown is ScopeGone;
}

/// Why a success has no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTokenReason {
    /// The key that was to sign is gone, and no other scope was named that lives.
    ScopeGone,
}

impl NoTokenReason {
    const ALL: &'static [Self] = &[Self::ScopeGone];

    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        "scope_gone"
    }

    /// Only a success that was reported can have had a token.
    fn of(record: &CoreRecord) -> Option<Self> {
        let deciding = record.outcomes.iter().find(|mark| Some(mark.seq) == record.finished_seq)?;
        let is_unsigned = deciding.status == OutcomeStatus::Ok && record.token.is_none();
        is_unsigned.then_some(Self::ScopeGone)
    }
}

impl OutcomeAnswer {
    /// The answer over a record.
    pub fn from_core(record: &CoreRecord, replayed: bool) -> Self {
        Self {
            receipt_line: record.token.as_ref().map(receipt_line),
            no_token_reason: NoTokenReason::of(record).map(Word),
            record: Record::from_core(record),
            replayed,
        }
    }
}

impl TryFrom<Box<RawValue>> for OutcomeAnswer {
    type Error = serde_json::Error;

    fn try_from(text: Box<RawValue>) -> Result<Self, Self::Error> {
        #[derive(Deserialize)]
        struct Rest {
            replayed: bool,
            receipt_line: Option<String>,
            no_token_reason: Option<NoTokenReasonWord>,
        }
        let Rest { replayed, receipt_line, no_token_reason } = super::part(&text)?;
        Ok(Self { record: super::part(&text)?, replayed, receipt_line, no_token_reason })
    }
}
