//! What goes into a tool and what comes out of it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use recibo_api::answer::Twin;
use recibo_core::id::ErrorClass;
use recibo_core::status::OutcomeStatus;

/// A call as the model asked for it.
#[derive(Clone, Default)]
pub struct ToolCall {
    /// The provider's id of the call. Providers use some again in a later turn, so the turn goes
    /// before it. Without one, an id is made.
    pub provider_call_id: Option<String>,
    /// The arguments as the provider wrote them.
    pub arguments: String,
    /// A key of your own that the outside service knows.
    pub operation_key: Option<String>,
    /// A message that the call belongs to.
    pub message_id: Option<String>,
    /// At most 16, 2 KiB together.
    pub labels: BTreeMap<String, String>,
    /// W3C Trace Context.
    pub traceparent: Option<String>,
}

impl ToolCall {
    /// A call by its provider id and its argument text.
    pub fn new(provider_call_id: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            provider_call_id: Some(provider_call_id.into()),
            arguments: arguments.into(),
            ..Self::default()
        }
    }
}

/// Without the arguments.
impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall")
            .field("provider_call_id", &self.provider_call_id)
            .finish_non_exhaustive()
    }
}

/// One try, as the tool gets it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// The run.
    pub run_id: String,
    /// The call.
    pub tool_call_id: String,
    /// From 1.
    pub number: u32,
    /// For the outside service: the caller's own key, else the ledger's, the same on every
    /// attempt. `None` if neither is there.
    pub idempotency_key: Option<String>,
    /// How long it may take, where its lease need not be renewed or can be: the future is
    /// dropped when its time or its lease is over.
    pub time_left: Duration,
    /// Another call of the run that asks for the same. Advice only.
    pub twin: Option<Twin>,
}

/// What a tool gives back.
#[derive(Clone)]
pub struct ToolOutput {
    pub(crate) text: String,
    pub(crate) is_json: bool,
    pub(crate) provider_ref: Option<String>,
    pub(crate) message_id: Option<String>,
}

impl ToolOutput {
    /// A text, which the model sees as it is, if the contract shows everything.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_json: false, provider_ref: None, message_id: None }
    }

    /// JSON text. The model sees it in canonical form.
    pub fn json(text: impl Into<String>) -> Self {
        Self { is_json: true, ..Self::text(text) }
    }

    /// What the outside service calls the effect; recorded.
    #[must_use]
    pub fn with_provider_ref(mut self, id: impl Into<String>) -> Self {
        self.provider_ref = Some(id.into());
        self
    }

    /// A message that was sent; recorded.
    #[must_use]
    pub fn with_message_id(mut self, id: impl Into<String>) -> Self {
        self.message_id = Some(id.into());
        self
    }
}

/// Without the result.
impl fmt::Debug for ToolOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolOutput").field("bytes", &self.text.len()).finish_non_exhaustive()
    }
}

/// Why a tool gives nothing back, and what that says of its effect. The message goes to the
/// model and nowhere else; the class is recorded.
///
/// Any error that `?` turns into this one is ambiguous and brings no message: nobody has said
/// that it had no effect, or that its text may be seen.
#[derive(Clone, PartialEq, Eq)]
pub struct ToolError {
    pub(crate) status: OutcomeStatus,
    pub(crate) class: String,
    pub(crate) message: String,
    pub(crate) is_answered: bool,
}

impl ToolError {
    /// A person or a policy refused it before it ran.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(OutcomeStatus::TerminalError, "denied", message)
    }

    /// It certainly had no effect and may be tried again: refused before processing, a 429.
    pub fn retryable(class: &str, message: impl Into<String>) -> Self {
        Self::new(OutcomeStatus::RetryableError, class, message)
    }

    /// It certainly had no effect and never will: bad arguments, no such thing.
    pub fn terminal(class: &str, message: impl Into<String>) -> Self {
        Self::new(OutcomeStatus::TerminalError, class, message)
    }

    /// It was sent, and nobody knows whether it took effect: a connection that broke off, a 500.
    pub fn ambiguous(class: &str, message: impl Into<String>) -> Self {
        Self::new(OutcomeStatus::Unknown, class, message)
    }

    /// After [`ToolError::ambiguous`]: the outside service has answered, with an error that does
    /// not say whether anything took effect, and the model may see it. Then another call that
    /// does the same is not held back: whoever asks for it knows of this one.
    #[must_use]
    pub fn answered(mut self) -> Self {
        self.is_answered = self.status == OutcomeStatus::Unknown;
        self
    }

    /// Its time was over.
    pub(crate) fn timeout() -> Self {
        Self::new(OutcomeStatus::Timeout, "timeout", "")
    }

    /// A class that the ledger would refuse becomes `tool_error`: an outcome must not be lost.
    fn new(status: OutcomeStatus, class: &str, message: impl Into<String>) -> Self {
        let class = if ErrorClass::parse(class).is_ok() { class } else { "tool_error" };
        Self { status, class: class.to_owned(), message: message.into(), is_answered: false }
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    fn from(_: E) -> Self {
        Self::ambiguous("tool_error", "")
    }
}

/// Without the message.
impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError")
            .field("status", &self.status)
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_says_nothing_of_its_effect_is_ambiguous_and_mute() {
        fn tool() -> Result<ToolOutput, ToolError> {
            Ok(ToolOutput::text("MARK".parse::<u8>()?.to_string()))
        }
        let error = tool().unwrap_err();
        assert_eq!(error, ToolError::ambiguous("tool_error", ""));
        assert_eq!(ToolError::terminal("Bad Class", "x").class, "tool_error");
    }

    #[test]
    fn no_debug_shows_arguments_results_or_messages() {
        let shown = format!(
            "{:?} {:?} {:?}",
            ToolCall::new("id", "MARK"),
            ToolOutput::text("MARK"),
            ToolError::denied("MARK")
        );
        assert!(!shown.contains("MARK"), "{shown}");
    }
}
