//! The claim of an attempt.

use recibo_core::effect::{Policy, StatedTerms};
use recibo_core::id::{CallRef, ClaimId, MessageId, OperationKey, ScopeId, ToolName, Trace};
use recibo_core::limits;
use recibo_core::plan::Claim;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::twins::{OnTwinWord, TwinMembers, twin_hash};
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
    /// How long the outside service honours an idempotency key, from the start of attempt 1.
    /// Holds where the policy has no rule for the tool.
    #[schema(maximum = 9_007_199_254_740_991_i64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_window_ms: Option<u64>,
    /// How long after an attempt's end the outside service's answer is final. Holds where the
    /// policy has no rule for the tool.
    #[schema(maximum = 9_007_199_254_740_991_i64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle_ms: Option<u64>,
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
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 4_294_967_295_i64)]
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
    /// `stop`: hold the claim back while another call that does the same may have taken effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twins: Option<OnTwinWord>,
    /// How long such a call holds the claim back.
    #[schema(maximum = 9_007_199_254_740_991_i64, default = 3_600_000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twin_window_ms: Option<u64>,
    /// With `input_hash`: what two calls share that do the same; else the service computes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twin_hash: Option<String>,
    /// Late successes that the caller knows of: `tool_call_id` or `run_id/tool_call_id`.
    #[schema(max_items = 64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knows: Option<Vec<String>>,
}

impl ClaimRequest<'_> {
    /// Checks every member; `policy` names the members that make two calls the same. Credentials in labels are masked; refusing them is for
    /// [`crate::secrets::refuse_claim`], after the role.
    pub fn parse(self, call: CallRef, policy: &Policy) -> Result<Claim, Problem> {
        let input_hash = member::needed_input(self.input, self.input_hash.as_deref())?;
        let tool = ToolName::parse(&self.tool)?;
        let hash = twin_hash(policy, &tool, self.input, self.twin_hash.as_deref())?;
        let twins = TwinMembers {
            on_twin: self.twins,
            window_ms: self.twin_window_ms,
            knows: self.knows.as_deref(),
            hash,
        };
        let mut mask = Mask::default();
        let lease_ms = self.lease_ms.unwrap_or(limits::LEASE_MS_DEFAULT);
        Ok(Claim {
            call,
            claim_id: ClaimId::parse(&self.claim_id)?,
            scope_id: ScopeId::parse(&self.scope_id)?,
            tool,
            input_hash,
            terms: StatedTerms {
                effect: self.effect.map(|effect| effect.0),
                key_window_ms: member::number("key_window_ms", self.key_window_ms)?,
                settle_ms: member::number("settle_ms", self.settle_ms)?,
            },
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
            twins: twins.parse()?,
        })
    }
}
