//! What the server answered to a tool call: what it says of the call, and what is hashed of it.

use recibo_core::effect::{Effect, IsError};
use recibo_core::json::canonicalize;
use recibo_core::status::OutcomeStatus;

use super::message::{Members, elements, place, string};

/// What the codes of JSON-RPC errors say of a call: those of servers that refuse before they run
/// anything. All others may come in the middle of a tool. Sources: JSON-RPC 2.0, section 5.1, for
/// -32700 to -32600; the schema of MCP 2025-11-25 for -32042 (the user has to visit a page first,
/// then the same call is made again); the schema of MCP 2026-07-28 for -32020 (headers and body
/// differ), -32021 (the client lacks a capability) and -32022 (protocol version).
const CODES: &[(i64, OutcomeStatus)] = &[
    (-32700, OutcomeStatus::TerminalError),
    (-32600, OutcomeStatus::TerminalError),
    (-32601, OutcomeStatus::TerminalError),
    (-32602, OutcomeStatus::TerminalError),
    (-32042, OutcomeStatus::RetryableError),
    (-32020, OutcomeStatus::TerminalError),
    (-32021, OutcomeStatus::TerminalError),
    (-32022, OutcomeStatus::TerminalError),
];

/// Words in the message of an "invalid params" that is about the result: versions of the
/// TypeScript SDK check the result of a tool that has run, and answer with that code.
const ABOUT_RESULTS: [&str; 2] = ["structured content", "output schema"];

/// An answer, read.
#[derive(Debug, PartialEq, Eq)]
pub enum Reading {
    /// A result.
    Success(Success),
    /// A result with `isError: true`.
    ToolError,
    /// A JSON-RPC error.
    RpcError(RpcError),
    /// The call goes on: the host is asked for something and calls again with this state.
    InputRequired(Option<String>),
    /// The call goes on as a task.
    Task(String),
    /// The task goes on, or has ended with a result that is asked for later.
    TaskGoesOn,
    /// The task has ended, and nobody knows what it did.
    TaskEnded(&'static str),
    /// A result of a type that is not known here.
    UnknownType,
    /// No answer that this protocol knows.
    Unreadable,
}

/// A JSON-RPC error.
#[derive(Debug, PartialEq, Eq)]
pub struct RpcError {
    code: Option<i64>,
    is_about_result: bool,
}

/// A result.
#[derive(Debug, PartialEq, Eq)]
pub struct Success {
    /// What is hashed: the text of a result that is one text item and nothing else, otherwise
    /// the canonical JSON of the result; of one without canonical form, the JSON as it came.
    pub output: String,
    /// Where the result stands in the message.
    pub at: std::ops::Range<usize>,
}

impl Reading {
    /// Reads the members of the answer to a tool call that stands in `text`.
    pub fn of_call(text: &str, members: &Members<'_>) -> Self {
        match result_of(members) {
            Ok(raw) => of_result(text, raw),
            Err(reading) => reading,
        }
    }

    /// Reads the members of an answer to `tasks/get`.
    pub fn of_task(text: &str, members: &Members<'_>) -> Self {
        let raw = match result_of(members) {
            Ok(raw) => raw,
            Err(reading) => return reading,
        };
        Members::of(raw).map_or(Self::Unreadable, |result| task_state(text, &result))
    }

    /// Reads the members of a notice of the server about a task.
    pub fn of_notice(text: &str, members: &Members<'_>) -> Self {
        members.object("params").map_or(Self::TaskGoesOn, |params| task_state(text, &params))
    }

    /// What is recorded of an answer that is no success, and why. Anything ambiguous is
    /// `unknown`: a tool that failed may have done half of its work, unless it only reads, or the
    /// policy says that its errors mean no effect.
    pub fn failure(&self, effect: Effect, is_error: Option<IsError>) -> (OutcomeStatus, String) {
        match self {
            Self::ToolError => (tool_error(effect, is_error), "tool_error".into()),
            Self::RpcError(RpcError { code: Some(code), is_about_result }) => {
                let known = CODES.iter().find(|(known, _)| known == code);
                let status = match known {
                    Some((_, status)) if !is_about_result => *status,
                    _ => OutcomeStatus::Unknown,
                };
                (status, format!("rpc_{}", code.unsigned_abs()))
            }
            Self::RpcError(RpcError { code: None, .. }) => {
                (OutcomeStatus::Unknown, "rpc_error".into())
            }
            Self::TaskEnded(class) => (OutcomeStatus::Unknown, (*class).into()),
            Self::UnknownType => (OutcomeStatus::Unknown, "unknown_result_type".into()),
            _ => (OutcomeStatus::Unknown, "unreadable_answer".into()),
        }
    }
}

/// What `isError` says of a tool. The next try of an idempotent one is permitted all the same.
fn tool_error(effect: Effect, is_error: Option<IsError>) -> OutcomeStatus {
    match (effect, is_error) {
        (Effect::ReadOnly, _) => OutcomeStatus::RetryableError,
        (Effect::Keyed | Effect::Queryable | Effect::Opaque, Some(IsError::NoEffect)) => {
            OutcomeStatus::TerminalError
        }
        (Effect::Idempotent | Effect::Keyed | Effect::Queryable | Effect::Opaque, _) => {
            OutcomeStatus::Unknown
        }
    }
}

/// The result of an answer; else what the answer is.
fn result_of<'a>(members: &Members<'a>) -> Result<&'a str, Reading> {
    let present = |name| members.get(name).filter(|value| *value != "null");
    match (present("error"), members.get("result")) {
        (Some(error), None | Some("null")) => Err(Reading::RpcError(RpcError::of(error))),
        (None, Some(result)) => Ok(result),
        _ => Err(Reading::Unreadable),
    }
}

fn of_result(text: &str, raw: &str) -> Reading {
    const NAMES: [&str; 4] = ["resultType", "content", "structuredContent", "isError"];
    let Some(result) = Members::of(raw) else { return Reading::Unreadable };
    if result.ambiguous(&NAMES).is_some() {
        return Reading::Unreadable;
    }
    match result.get("resultType").map(string) {
        None => {}
        Some(Some(kind)) if kind == "complete" => {}
        Some(Some(kind)) if kind == "input_required" => {
            return Reading::InputRequired(result.text("requestState").map(Into::into));
        }
        Some(Some(kind)) if kind == "task" => return accepted(text, &result),
        Some(_) => return Reading::UnknownType,
    }
    if result.get("content").is_none() && task_id(&result).is_some() {
        return accepted(text, &result);
    }
    match result.get("isError") {
        None | Some("false" | "null") => {}
        Some("true") => return Reading::ToolError,
        Some(_) => return Reading::Unreadable,
    }
    let only_text = only_text(&result);
    let output = only_text
        .unwrap_or_else(|| canonicalize(raw.as_bytes()).unwrap_or_else(|_| raw.to_owned()));
    Reading::Success(Success { output, at: place(text, raw) })
}

/// The id of a task, in the shape of 2026-07-28 or nested as in 2025-11-25.
fn task_id(result: &Members<'_>) -> Option<String> {
    let nested = || result.object("task")?.text("taskId").map(Into::into);
    let is_task = result.text("resultType").is_some_and(|kind| kind == "task");
    let flat = is_task.then(|| result.text("taskId").map(Into::into)).flatten();
    flat.or_else(nested)
}

/// A task was made for the call. It may have ended already.
fn accepted(text: &str, result: &Members<'_>) -> Reading {
    let Some(task) = task_id(result) else { return Reading::Unreadable };
    match task_state(text, result) {
        Reading::TaskGoesOn => Reading::Task(task),
        ended => ended,
    }
}

/// What a description of a task says of its call. A task that has ended without its result or
/// error is asked for that later.
fn task_state(text: &str, task: &Members<'_>) -> Reading {
    const NAMES: [&str; 4] = ["status", "result", "error", "task"];
    if task.ambiguous(&NAMES).is_some() {
        return Reading::Unreadable;
    }
    let nested = task.object("task");
    let find = |name| task.get(name).or_else(|| nested.as_ref()?.get(name));
    let (result, error) = (find("result"), find("error"));
    match find("status").and_then(string).as_deref() {
        Some("completed") => match result.map(|raw| of_result(text, raw)) {
            None => Reading::TaskGoesOn,
            Some(ended @ (Reading::Success(_) | Reading::ToolError)) => ended,
            Some(Reading::UnknownType) => Reading::UnknownType,
            Some(_) => Reading::Unreadable,
        },
        Some("failed") => match (error, result.map(|raw| of_result(text, raw))) {
            (Some(error), None) => Reading::RpcError(RpcError::of(error)),
            (None, Some(Reading::ToolError)) => Reading::ToolError,
            _ => Reading::TaskEnded("task_failed"),
        },
        Some("cancelled") => Reading::TaskEnded("cancelled"),
        _ => Reading::TaskGoesOn,
    }
}

impl RpcError {
    fn of(error: &str) -> Self {
        let Some(error) = Members::of(error) else {
            return Self { code: None, is_about_result: false };
        };
        let message = error.text("message").unwrap_or_default().to_lowercase();
        Self {
            code: error.get("code").and_then(|code| code.parse().ok()),
            is_about_result: ABOUT_RESULTS.iter().any(|words| message.contains(words)),
        }
    }
}

/// The text of a result that is one text item and nothing else that a model would see.
fn only_text(result: &Members<'_>) -> Option<String> {
    let items = elements(result.get("content")?)?;
    let is_beside = |(name, value): (&str, &str)| {
        !matches!(
            (name, value),
            ("content" | "_meta" | "resultType", _) | ("isError", "false") | (_, "null")
        )
    };
    let ([item], false) = (items.as_slice(), result.iter().any(is_beside)) else { return None };
    let item = Members::of(item)?;
    if item.ambiguous(&["type", "text"]).is_some() || item.text("type")? != "text" {
        return None;
    }
    string(item.get("text")?).map(Into::into)
}

#[cfg(test)]
mod tests;
