//! The outcome of an attempt.

use recibo_core::event::Outcome;
use recibo_core::id::{CallRef, MessageId, ProviderRef, ScopeId};
use recibo_core::limits;
use recibo_core::plan::Report;
use recibo_core::status::OutcomeStatus;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::member::{self, Mask};
use crate::problem::Problem;
use crate::word::OutcomeStatusWord;

/// Reports how an attempt ended. One of `output` and `output_hash` is needed for `ok`,
/// `error_class` for all else.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeRequest<'a> {
    /// From the grant.
    pub lease_token: String,
    /// How it ended.
    pub status: OutcomeStatusWord,
    /// By the caller's monotonic clock.
    #[schema(maximum = 9_007_199_254_740_991_i64)]
    pub duration_ms: u64,
    /// The result as the model sees it, before the receipt line; null is the JSON null.
    /// Hashed and dropped.
    #[serde(borrow, default, deserialize_with = "member::given")]
    #[schema(value_type = Value, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<&'a RawValue>,
    /// Instead of `output`: the hash of its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_hash: Option<String>,
    /// At most 2 KiB; the shape of `output` when none is given.
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_summary: Option<&'a RawValue>,
    /// 1 to 64 of `A-Za-z0-9_.:-`
    #[schema(pattern = "^[A-Za-z0-9_.:-]{1,64}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_class: Option<String>,
    /// What the outside service calls the effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_ref: Option<String>,
    /// Links to a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// A living scope that signs if the attempt's own is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope_id: Option<String>,
    /// Whether the caller saw the outside service's answer, though it does not say what took
    /// effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<bool>,
}

/// An outcome, checked.
pub struct OutcomeParams {
    /// What is reported.
    pub report: Report,
    /// Shows that the reporter holds the lease.
    pub lease_token: String,
    /// Who signs if the attempt's own scope is gone.
    pub scope_id: Option<ScopeId>,
}

impl OutcomeRequest<'_> {
    /// Checks every member. Credentials in free text are masked, never refused: an outcome
    /// must not be lost.
    pub fn parse(self, call: CallRef, attempt: u32) -> Result<OutcomeParams, Problem> {
        let fields = OutcomeFields {
            status: self.status.0,
            duration_ms: self.duration_ms,
            output: self.output,
            output_hash: self.output_hash,
            output_summary: self.output_summary,
            error_class: self.error_class,
            provider_ref: self.provider_ref,
            message_id: self.message_id,
            answered: self.answered,
        };
        let outcome = fields.check(Mask::default())?;
        let scope_id = self.scope_id.as_deref().map(ScopeId::parse).transpose()?;
        Ok(OutcomeParams {
            report: Report { call, attempt, outcome },
            lease_token: self.lease_token,
            scope_id,
        })
    }
}

/// The members that an outcome and a one-shot share.
pub(super) struct OutcomeFields<'a> {
    pub(super) status: OutcomeStatus,
    pub(super) duration_ms: u64,
    pub(super) output: Option<&'a RawValue>,
    pub(super) output_hash: Option<String>,
    pub(super) output_summary: Option<&'a RawValue>,
    pub(super) error_class: Option<String>,
    pub(super) provider_ref: Option<String>,
    pub(super) message_id: Option<String>,
    pub(super) answered: Option<bool>,
}

impl OutcomeFields<'_> {
    /// Checks the members; `mask` brings what was masked before.
    pub(super) fn check(self, mut mask: Mask) -> Result<Outcome, Problem> {
        let output = member::output(self.output, self.output_hash.as_deref())?;
        let (output_hash, shape) = match output {
            Some(output) => (Some(output.hash), output.shape),
            None => (None, None),
        };
        let output_summary = mask.summary(self.output_summary, shape)?;
        let is_ok = self.status == OutcomeStatus::Ok;
        if is_ok && output_hash.is_none() {
            return Err(Problem::invalid("one of output and output_hash is needed for ok"));
        }
        if is_ok && self.error_class.is_some() {
            return Err(Problem::invalid("error_class is not for ok"));
        }
        if !is_ok && self.error_class.is_none() {
            return Err(Problem::invalid("error_class is needed for every status but ok"));
        }
        let error_class = self.error_class.as_deref().map(|c| mask.error_class(c)).transpose()?;
        let provider_ref = self.provider_ref.as_deref().map(ProviderRef::parse).transpose()?;
        let message_id = self.message_id.as_deref().map(MessageId::parse).transpose()?;
        let max = limits::NUMBER_MAX;
        Ok(Outcome {
            status: self.status,
            duration_ms: member::within("duration_ms", self.duration_ms, 0, max)?,
            output_hash,
            output_summary,
            error_class,
            provider_ref: provider_ref.map(|id| mask.text(id.as_str(), limits::ID_LEN_MAX)),
            message_id: message_id.map(|id| mask.text(id.as_str(), limits::ID_LEN_MAX)),
            redacted: mask.redacted,
            answered: self.answered.unwrap_or(false),
        })
    }
}
