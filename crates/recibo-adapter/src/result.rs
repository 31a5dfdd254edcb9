//! What the model reads of a call, and what a program may want to know of it.

use recibo_api::Word;
use recibo_api::answer::{DecisionAnswer, NoTokenReason, OutcomeAnswer, Twin};
use recibo_core::receipt::receipt_line;
use recibo_core::status::{DecisionKind, OutcomeStatus};

use crate::context::Context;
use crate::error::LedgerError;
use crate::seen::Seen;
use crate::words;

/// What the model may be told of a call, and what a program may want to know.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolResult {
    /// For the model: the result and, after a line feed, its receipt line; or what is known.
    pub text: String,
    /// Whether `text` is no result of the tool.
    pub is_error: bool,
    /// How it ended.
    pub ended: Ended,
    /// The call's id in the ledger.
    pub tool_call_id: String,
    /// Attempts that were made now.
    pub attempts: u32,
    /// The receipt.
    pub token: Option<String>,
    /// Why a success that is recorded has no receipt.
    pub no_token_reason: Option<NoTokenReason>,
    /// Another call that does the same, and is done, under way or unknown: the one that this
    /// call was held back for, else advice.
    pub twin: Option<Twin>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It succeeded, now or before.
    Ok,
    /// Its last attempt ended otherwise.
    Failed(OutcomeStatus),
    /// The ledger did not permit it.
    NotRun(DecisionKind),
    /// The ledger refused the request, or was not to be reached.
    NoDecision,
}

/// Without the text, which holds the result.
impl std::fmt::Debug for ToolResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolResult")
            .field("tool_call_id", &self.tool_call_id)
            .field("ended", &self.ended)
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}

impl ToolResult {
    pub(crate) fn new(text: String, ended: Ended, tool_call_id: String) -> Self {
        Self {
            text,
            is_error: ended != Ended::Ok,
            ended,
            tool_call_id,
            attempts: 0,
            token: None,
            no_token_reason: None,
            twin: None,
        }
    }

    pub(crate) fn after(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    pub(crate) fn with_twin(mut self, twin: Option<Twin>) -> Self {
        self.twin = twin;
        self
    }

    /// Appends a line, as receipts are.
    pub(crate) fn with_line(mut self, line: Option<&str>) -> Self {
        if let Some(line) = line {
            self.text.push('\n');
            self.text.push_str(line);
        }
        self
    }
}

/// A success: the text that was hashed, then its receipt, or why there is none.
pub(crate) fn succeeded(
    context: &Context,
    seen: Seen,
    recorded: Result<OutcomeAnswer, LedgerError>,
    tool_call_id: String,
) -> ToolResult {
    let (line, token, no_token_reason) = match recorded {
        Ok(answer) => {
            context.kept.keep(&answer, Some(&seen.text));
            let reason = answer.no_token_reason.map(|Word(reason)| reason);
            let missing = reason.map(|_| words::NOT_SIGNED.to_owned());
            (answer.receipt_line.or(missing), answer.record.token, reason)
        }
        Err(error) => {
            tracing::warn!(%error, tool_call_id, "a success could not be recorded");
            (Some(words::NOT_RECORDED.to_owned()), None, None)
        }
    };
    let result = ToolResult::new(seen.text, Ended::Ok, tool_call_id);
    ToolResult { token, no_token_reason, ..result.with_line(line.as_deref()) }
}

/// Advice: the result of before if it is here, else what is known.
pub(crate) fn refused(context: &Context, advice: &DecisionAnswer) -> ToolResult {
    let record = advice.record.as_ref().filter(|_| advice.decision.0 == DecisionKind::Reuse);
    if record.is_some() {
        context.run.told.note(&advice.run_id, &advice.tool_call_id);
    }
    let Some((text, record)) =
        record.and_then(|record| Some((context.kept.result(record)?, record)))
    else {
        return not_run(advice, words::advice(advice));
    };
    let line = record.token.as_deref().map(line_of);
    let result = ToolResult::new(text, Ended::Ok, advice.tool_call_id.clone());
    let token = record.token.clone();
    ToolResult { token, ..result.with_line(line.as_deref()).with_twin(advice.twin.clone()) }
}

/// A token that the ledger gave is well formed; any other is shown as it is.
pub(crate) fn line_of(token: &str) -> String {
    match token.parse() {
        Ok(token) => receipt_line(&token),
        Err(_) => format!("[receipt: {token}]"),
    }
}

pub(crate) fn not_run(advice: &DecisionAnswer, text: String) -> ToolResult {
    let ended = Ended::NotRun(advice.decision.0);
    ToolResult::new(text, ended, advice.tool_call_id.clone()).with_twin(advice.twin.clone())
}

pub(crate) fn no_decision(tool_call_id: String, error: &LedgerError) -> ToolResult {
    tracing::warn!(%error, tool_call_id, "a call was not run");
    ToolResult::new(words::no_decision(error), Ended::NoDecision, tool_call_id)
}
