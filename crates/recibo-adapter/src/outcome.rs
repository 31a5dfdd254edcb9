//! How an attempt ended, as the adapter says it.

use std::fmt;
use std::time::Duration;

use recibo_core::hash::OutputHash;
use recibo_core::status::OutcomeStatus;
use serde_json::value::RawValue;

/// How an attempt ended.
#[derive(Clone)]
pub struct Outcome {
    /// How. The two errors are positive statements that no effect took place; anything
    /// ambiguous is `Timeout` or `Unknown`.
    pub status: OutcomeStatus,
    /// How long it took, by a clock that never steps back.
    pub duration: Duration,
    /// What the model will see, before the receipt line. Needed for `Ok`; hashed, never kept.
    pub output: Option<Output>,
    /// A JSON object of at most 2 KiB; without one, the shape of the output.
    pub summary: Option<Box<RawValue>>,
    /// 1 to 64 of `A-Za-z0-9_.:-`; needed for all but `Ok`.
    pub error_class: Option<String>,
    /// What the outside service calls the effect.
    pub provider_ref: Option<String>,
    /// Links to a message, for instance one that was sent.
    pub message_id: Option<String>,
    /// With `Unknown`: the outside service has answered, and the model has seen it, but it does
    /// not say whether anything took effect. Such an attempt holds back no call that does the
    /// same.
    pub answered: bool,
}

/// A result.
#[derive(Clone)]
pub enum Output {
    /// Exactly the text that the model will see.
    Text(String),
    /// The hash of a result that is no text or that is not here.
    Hash(OutputHash),
}

impl Output {
    /// The hash of the result.
    pub fn hash(&self) -> OutputHash {
        match self {
            Self::Text(text) => OutputHash::of_text(text),
            Self::Hash(hash) => *hash,
        }
    }
}

impl Outcome {
    /// A success.
    pub fn ok(duration: Duration, output: Output) -> Self {
        Self { output: Some(output), ..Self::bare(OutcomeStatus::Ok, duration) }
    }

    /// Anything else. `error_class` is 1 to 64 of `A-Za-z0-9_.:-`
    pub fn failed(
        status: OutcomeStatus,
        duration: Duration,
        error_class: impl Into<String>,
    ) -> Self {
        Self { error_class: Some(error_class.into()), ..Self::bare(status, duration) }
    }

    fn bare(status: OutcomeStatus, duration: Duration) -> Self {
        Self {
            status,
            duration,
            output: None,
            summary: None,
            error_class: None,
            provider_ref: None,
            message_id: None,
            answered: false,
        }
    }
}

/// Without the result.
impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("status", &self.status)
            .field("duration", &self.duration)
            .field("error_class", &self.error_class)
            .finish_non_exhaustive()
    }
}
