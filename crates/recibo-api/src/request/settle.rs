//! What outside services and operators say of attempts whose outcome nobody reported.

use recibo_core::id::{CallRef, ProviderRef};
use recibo_core::limits;
use recibo_core::plan::{Check, Resolution};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::member::{self, Mask};
use crate::problem::Problem;
use crate::word::{CheckAnswerWord, ResolvedAsWord};

/// Reports what the outside service said when it was asked.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// What it said.
    pub answer: CheckAnswerWord,
    /// Who was asked.
    #[schema(min_length = 1, max_length = 1024)]
    pub source: String,
    /// How long ago it was asked.
    #[schema(maximum = 9_007_199_254_740_991_i64, default = 0)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// What the outside service calls the effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_ref: Option<String>,
}

impl CheckRequest {
    /// Checks every member and masks free text.
    pub fn parse(self, call: CallRef, attempt: u32) -> Result<Check, Problem> {
        member::sentence("source", &self.source)?;
        let age_ms = self.age_ms.unwrap_or(0);
        let provider_ref = self.provider_ref.as_deref().map(ProviderRef::parse).transpose()?;
        let mut mask = Mask::default();
        Ok(Check {
            call,
            attempt,
            answer: self.answer.0,
            source: mask.text(&self.source, limits::REASON_BYTES_MAX),
            age_ms: member::within("age_ms", age_ms, 0, limits::NUMBER_MAX)?,
            provider_ref: provider_ref.map(|id| mask.text(id.as_str(), limits::ID_LEN_MAX)),
            redacted: mask.redacted,
        })
    }
}

/// Says what became of a call.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolutionRequest {
    /// The operator's word.
    pub(crate) state: ResolvedAsWord,
    /// In the operator's words.
    #[schema(min_length = 1, max_length = 1024)]
    pub(crate) reason: String,
    /// The seq of the resolution that this one corrects, where the state rests on it alone.
    #[schema(maximum = 9_007_199_254_740_991_i64)]
    pub(crate) corrects: Option<u64>,
}

impl ResolutionRequest {
    /// Checks every member and masks free text. `by` is the id of the API key that says so.
    pub fn parse(self, call: CallRef, by: &str) -> Result<Resolution, Problem> {
        member::sentence("reason", &self.reason)?;
        let mut mask = Mask::default();
        Ok(Resolution {
            call,
            state: self.state.0,
            reason: mask.text(&self.reason, limits::REASON_BYTES_MAX),
            redacted: mask.redacted,
            by: by.to_owned(),
            corrects: member::number("corrects", self.corrects)?,
        })
    }
}
