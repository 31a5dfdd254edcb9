//! Finished calls in one write, alone or in a batch.

use std::fmt;

use recibo_core::effect::{Policy, StatedTerms};
use recibo_core::id::{CallRef, OperationKey, RunId, ScopeId, ToolCallId, ToolName, Trace};
use recibo_core::limits;
use recibo_core::plan::OneShot;
use serde::de::{self, SeqAccess};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::outcome::OutcomeFields;
use super::twins::twin_hash;
use crate::member::{self, LabelPairs, Mask};
use crate::problem::Problem;
use crate::word::{EffectWord, OutcomeStatusWord, Timestamp};

/// Records a finished call. One of `input` and `input_hash` is needed; one of `output` and
/// `output_hash` for `ok`, `error_class` for all else.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OneShotRequest<'a> {
    /// The run.
    pub(crate) run_id: String,
    /// The call.
    pub(crate) tool_call_id: String,
    /// The attempt that this must be.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 4_294_967_295_i64)]
    pub(crate) attempt: Option<u32>,
    /// Whose key is to sign.
    pub(crate) scope_id: String,
    /// The tool.
    #[schema(max_length = 256)]
    pub(crate) tool: String,
    /// How it ended.
    pub(crate) status: OutcomeStatusWord,
    /// By the caller's clock.
    pub(crate) started_at: Timestamp,
    /// By the caller's monotonic clock.
    #[schema(maximum = 9_007_199_254_740_991_i64)]
    pub(crate) duration_ms: u64,
    /// A stricter effect than the policy's, or one where the policy has none.
    pub(crate) effect: Option<EffectWord>,
    /// As in a claim.
    #[schema(maximum = 9_007_199_254_740_991_i64)]
    pub(crate) key_window_ms: Option<u64>,
    /// As in a claim.
    #[schema(maximum = 9_007_199_254_740_991_i64)]
    pub(crate) settle_ms: Option<u64>,
    /// The arguments, any JSON value; null is the JSON null. Hashed and dropped.
    #[serde(borrow, default, deserialize_with = "member::given")]
    #[schema(value_type = Value, required = false)]
    pub(crate) input: Option<&'a RawValue>,
    /// Instead of `input`: the hash of its canonical form.
    pub(crate) input_hash: Option<String>,
    /// The result as the model sees it; null is the JSON null. Hashed and dropped.
    #[serde(borrow, default, deserialize_with = "member::given")]
    #[schema(value_type = Value, required = false)]
    pub(crate) output: Option<&'a RawValue>,
    /// Instead of `output`: the hash of its text.
    pub(crate) output_hash: Option<String>,
    /// At most 2 KiB; the shape of `output` when none is given.
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    pub(crate) output_summary: Option<&'a RawValue>,
    /// 1 to 64 of `A-Za-z0-9_.:-`
    #[schema(pattern = "^[A-Za-z0-9_.:-]{1,64}$")]
    pub(crate) error_class: Option<String>,
    /// A key of the caller's own that the outside service knows.
    pub(crate) operation_key: Option<String>,
    /// What the outside service calls the effect.
    pub(crate) provider_ref: Option<String>,
    /// Links to a message.
    pub(crate) message_id: Option<String>,
    /// At most 16, 2 KiB together.
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    pub(crate) labels: Option<LabelPairs>,
    /// W3C Trace Context.
    pub(crate) traceparent: Option<String>,
    /// With `input_hash`: what two calls share that do the same; else the service computes it.
    pub(crate) twin_hash: Option<String>,
    /// Whether the caller saw the outside service's answer.
    pub(crate) answered: Option<bool>,
}

impl OneShotRequest<'_> {
    /// Checks every member, as a claim does. Credentials in free text, labels and `message_id` are masked:
    /// what has happened is recorded.
    pub fn parse(self, policy: &Policy) -> Result<OneShot, Problem> {
        let input_hash = member::needed_input(self.input, self.input_hash.as_deref())?;
        let tool = ToolName::parse(&self.tool)?;
        let twin_hash = twin_hash(policy, &tool, self.input, self.twin_hash.as_deref())?;
        let mut mask = Mask::default();
        let labels = mask.labels(self.labels)?;
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
        Ok(OneShot {
            outcome: fields.check(mask)?,
            call: CallRef {
                run_id: RunId::parse(&self.run_id)?,
                tool_call_id: ToolCallId::parse(&self.tool_call_id)?,
            },
            attempt: member::attempt(self.attempt)?,
            scope_id: ScopeId::parse(&self.scope_id)?,
            tool,
            input_hash,
            terms: StatedTerms {
                effect: self.effect.map(|effect| effect.0),
                key_window_ms: member::number("key_window_ms", self.key_window_ms)?,
                settle_ms: member::number("settle_ms", self.settle_ms)?,
            },
            operation_key: self.operation_key.as_deref().map(OperationKey::parse).transpose()?,
            // The call is over, so this one is the outcome's, which is masked, not refused.
            message_id: None,
            labels,
            trace: self.traceparent.as_deref().map(Trace::parse).transpose()?,
            started_at: self.started_at.0,
            twin_hash,
        })
    }
}

/// Records up to 1000 finished calls, each on its own.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchRequest<'a> {
    /// The calls. Read each with [`crate::body::read`], so that a bad one fails alone.
    #[serde(borrow, deserialize_with = "items")]
    #[schema(value_type = Vec<OneShotRequest>, max_items = 1000)]
    pub receipts: Vec<&'a RawValue>,
}

impl BatchRequest<'_> {
    /// The checked calls, in order, or what is wrong with each.
    pub fn parse(&self, policy: &Policy) -> impl Iterator<Item = Result<OneShot, Problem>> {
        self.receipts.iter().map(|item| {
            crate::body::read::<OneShotRequest<'_>>(item.get().as_bytes())?.parse(policy)
        })
    }
}

/// Stops at the limit: a body of 16 MiB has room for millions of tiny items.
fn items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<&'de RawValue>, D::Error> {
    deserializer.deserialize_seq(ItemsVisitor)
}

struct ItemsVisitor;

impl<'de> de::Visitor<'de> for ItemsVisitor {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of at most {}", limits::BATCH_LEN_MAX)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            if items.len() == limits::BATCH_LEN_MAX {
                return Err(de::Error::invalid_length(items.len() + 1, &self));
            }
            items.push(item);
        }
        Ok(items)
    }
}
