//! The claim of an attempt.

use recibo_core::id::{CallRef, ClaimId, MessageId, OperationKey, ScopeId, ToolName, Trace};
use recibo_core::limits;
use recibo_core::plan::Claim;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::member::{self, LabelPairs, Mask};
use crate::problem::Problem;
use crate::word::EffectWord;

/// Asks for permission to run a call. One of `input` and `input_hash` is needed.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest<'a> {
    /// Whose key is to sign.
    pub scope_id: String,
    /// Drawn fresh by the process that will send, and never persisted.
    pub claim_id: String,
    /// The tool.
    #[schema(max_length = 256)]
    pub tool: String,
    /// A stricter effect than the policy's, or one where the policy has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectWord>,
    /// The arguments, any JSON value; null is the JSON null. Hashed and dropped.
    #[serde(borrow, default, deserialize_with = "member::given")]
    #[schema(value_type = Value, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<&'a RawValue>,
    /// Instead of `input`: the hash of its canonical form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_hash: Option<String>,
    /// How long the attempt may stay open.
    #[schema(minimum = 1000, maximum = 86_400_000, default = 60_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// The attempt that a grant must be.
    #[schema(minimum = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// A key of the caller's own that the outside service knows; the same on every attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_key: Option<String>,
    /// Links to a message; never compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// At most 16, 2 KiB together.
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<LabelPairs>,
    /// W3C Trace Context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl ClaimRequest<'_> {
    /// Checks every member. Credentials in labels are masked; refusing them is for
    /// [`crate::secrets::refuse_claim`], after the role.
    pub fn parse(self, call: CallRef) -> Result<Claim, Problem> {
        let input_hash = member::needed_input(self.input, self.input_hash.as_deref())?;
        let mut mask = Mask::default();
        let lease_ms = self.lease_ms.unwrap_or(limits::LEASE_MS_DEFAULT);
        Ok(Claim {
            call,
            claim_id: ClaimId::parse(&self.claim_id)?,
            scope_id: ScopeId::parse(&self.scope_id)?,
            tool: ToolName::parse(&self.tool)?,
            input_hash,
            effect: self.effect.map(|effect| effect.0),
            lease_ms: member::within(
                "lease_ms",
                lease_ms,
                limits::LEASE_MS_MIN,
                limits::LEASE_MS_MAX,
            )?,
            attempt: member::attempt(self.attempt)?,
            operation_key: self.operation_key.as_deref().map(OperationKey::parse).transpose()?,
            message_id: self.message_id.as_deref().map(MessageId::parse).transpose()?,
            labels: mask.labels(self.labels)?,
            trace: self.traceparent.as_deref().map(Trace::parse).transpose()?,
            redacted: mask.redacted,
        })
    }
}
