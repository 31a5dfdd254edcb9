//! What the server answered to a tool call: what is hashed of it, what it says of the call, and
//! where the receipt goes.

use recibo_core::effect::Effect;
use recibo_core::json::{canonicalize, write_string};
use recibo_core::status::OutcomeStatus;

use super::message::{Members, elements, place, string};

/// An answer, read.
#[derive(Debug, PartialEq, Eq)]
pub enum Reading {
    /// A result.
    Success(Success),
    /// A result with `isError: true`.
    ToolError,
    /// A JSON-RPC error with its code.
    RpcError(Option<i64>),
    /// The call goes on: the host is asked for something and calls again with this state.
    InputRequired(Option<String>),
    /// The call goes on as a task; its result is asked for later.
    Task(String),
    /// No answer that this protocol knows.
    Unreadable,
}

/// A result.
#[derive(Debug, PartialEq, Eq)]
pub struct Success {
    /// What is hashed: the text of a result that is one text item, else the canonical JSON of
    /// the result; of one without canonical form, the JSON as it came.
    pub output: String,
    /// Where the receipt item goes: a place in the message, and what comes before and after.
    slot: Option<(usize, &'static str, &'static str)>,
}

impl Reading {
    /// Reads the members of a response that stands in `text`.
    pub fn of(text: &str, members: &Members<'_>) -> Self {
        if let Some(error) = members.get("error").filter(|error| *error != "null") {
            let code = Members::of(error).and_then(|error| error.get("code")?.parse().ok());
            return Self::RpcError(code);
        }
        let Some(raw) = members.get("result") else { return Self::Unreadable };
        let Some(result) = Members::of(raw) else { return Self::Unreadable };
        if result.text("resultType").is_some_and(|kind| kind == "input_required") {
            return Self::InputRequired(result.text("requestState").map(Into::into));
        }
        let content = result.get("content");
        let task = result.object("task").and_then(|task| task.text("taskId").map(Into::into));
        if let (None, Some(task)) = (content, task) {
            return Self::Task(task);
        }
        if result.is_true("isError") {
            return Self::ToolError;
        }
        let items = content.and_then(elements);
        let output = items
            .as_deref()
            .and_then(only_text)
            .unwrap_or_else(|| canonicalize(raw.as_bytes()).unwrap_or_else(|_| raw.to_owned()));
        let slot = match (content, items) {
            (Some(content), Some(items)) => {
                let comma = if items.is_empty() { "" } else { "," };
                Some((place(text, content).end - 1, comma, ""))
            }
            (None, _) => {
                let start = place(text, raw).start + 1;
                Some((start, r#""content":["#, if result.is_empty() { "]" } else { "]," }))
            }
            // What is no list of items takes none.
            (Some(_), None) => None,
        };
        Self::Success(Success { output, slot })
    }

    /// What is recorded of an answer that is no success, and why. Anything ambiguous is
    /// `unknown`: a tool that failed may have done half of its work, unless that does no harm.
    pub fn failure(&self, effect: Effect) -> (OutcomeStatus, String) {
        match self {
            Self::ToolError => {
                let is_harmless = matches!(effect, Effect::ReadOnly | Effect::Idempotent);
                let status =
                    if is_harmless { OutcomeStatus::TerminalError } else { OutcomeStatus::Unknown };
                (status, "tool_error".into())
            }
            Self::RpcError(Some(code @ (-32700 | -32600 | -32601 | -32602))) => {
                (OutcomeStatus::TerminalError, format!("rpc_{}", code.unsigned_abs()))
            }
            Self::RpcError(Some(code)) => {
                (OutcomeStatus::Unknown, format!("rpc_{}", code.unsigned_abs()))
            }
            Self::RpcError(None) => (OutcomeStatus::Unknown, "rpc_error".into()),
            _ => (OutcomeStatus::Unknown, "unreadable_answer".into()),
        }
    }
}

impl Success {
    /// The message with the receipt as one more item of the result; `None` where it takes none.
    pub fn with_receipt(&self, text: &str, receipt_line: &str) -> Option<String> {
        let (at, before, after) = self.slot?;
        let mut with = String::with_capacity(text.len() + receipt_line.len() + 48);
        with.push_str(&text[..at]);
        with.push_str(before);
        with.push_str(r#"{"type":"text","text":"#);
        write_string(&mut with, receipt_line);
        with.push('}');
        with.push_str(after);
        with.push_str(&text[at..]);
        Some(with)
    }
}

/// The text of a list that is one text item.
fn only_text(items: &[&str]) -> Option<String> {
    let [item] = items else { return None };
    let item = Members::of(item)?;
    if item.text("type")? != "text" {
        return None;
    }
    string(item.get("text")?).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Reading {
        Reading::of(text, &Members::of(text).unwrap())
    }

    fn success(text: &str) -> Success {
        match read(text) {
            Reading::Success(success) => success,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn one_text_item_is_hashed_as_its_text_and_all_else_as_canonical_json() {
        for (result, output) in [
            (r#"{"content":[{"type":"text","text":"a\n\u00e9"}]}"#, "a\né"),
            (r#"{"content":[{"text":"a","type":"text"}],"structuredContent":{"x":1}}"#, "a"),
            (r#"{"content":[ ]}"#, r#"{"content":[]}"#),
            (
                r#"{"b":1.0,"content":[{"type":"image","data":"AA=="}]}"#,
                r#"{"b":1,"content":[{"data":"AA==","type":"image"}]}"#,
            ),
            (
                r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
                r#"{"content":[{"text":"a","type":"text"},{"text":"b","type":"text"}]}"#,
            ),
            // These have no canonical form.
            (r#"{"content":[],"n":1e999}"#, r#"{"content":[],"n":1e999}"#),
            (
                r#"{"content":[{"type":"text","text":"\ud800"}]}"#,
                r#"{"content":[{"type":"text","text":"\ud800"}]}"#,
            ),
        ] {
            let text = format!(r#"{{"id":1,"result":{result}}}"#);
            assert_eq!(success(&text).output, output, "{text}");
        }
    }

    #[test]
    fn the_receipt_is_one_more_item_and_nothing_else_changes() {
        const ITEM: &str = r#"{"type":"text","text":"[receipt: r]"}"#;
        for (before, after) in [
            (
                r#"{"id":1, "result":{"content":[{"a":1e0} ],"z":2}} "#,
                r#"{"id":1, "result":{"content":[{"a":1e0} ,ITEM],"z":2}} "#,
            ),
            (r#"{"result":{"content":[]},"id":1}"#, r#"{"result":{"content":[ITEM]},"id":1}"#),
            (r#"{"id":1,"result":{ "x":1}}"#, r#"{"id":1,"result":{"content":[ITEM], "x":1}}"#),
            (r#"{"id":1,"result":{}}"#, r#"{"id":1,"result":{"content":[ITEM]}}"#),
        ] {
            let with = success(before).with_receipt(before, "[receipt: r]").unwrap();
            assert_eq!(with, after.replace("ITEM", ITEM));
        }
        let odd = r#"{"id":1,"result":{"content":"text"}}"#;
        assert_eq!(success(odd).with_receipt(odd, "x"), None);
    }

    #[test]
    fn answers_that_are_no_success_are_classified() {
        use Effect::{Idempotent, Keyed, Opaque, Queryable, ReadOnly};
        use OutcomeStatus::{TerminalError, Unknown};
        let tool_error = r#"{"result":{"isError":true,"content":[]}}"#;
        let error = |code: &str| format!(r#"{{"error":{{"code":{code},"message":"m"}}}}"#);
        for (text, effect, status, class) in [
            (tool_error, ReadOnly, TerminalError, "tool_error"),
            (tool_error, Idempotent, TerminalError, "tool_error"),
            (tool_error, Keyed, Unknown, "tool_error"),
            (tool_error, Queryable, Unknown, "tool_error"),
            (tool_error, Opaque, Unknown, "tool_error"),
            (&error("-32700"), Opaque, TerminalError, "rpc_32700"),
            (&error("-32600"), Opaque, TerminalError, "rpc_32600"),
            (&error("-32601"), Opaque, TerminalError, "rpc_32601"),
            (&error("-32602"), Opaque, TerminalError, "rpc_32602"),
            (&error("-32603"), Opaque, Unknown, "rpc_32603"),
            (&error("-32603"), ReadOnly, Unknown, "rpc_32603"),
            (&error("7"), Opaque, Unknown, "rpc_7"),
            (&error("1.5"), Opaque, Unknown, "rpc_error"),
            (r#"{"error":"x"}"#, Opaque, Unknown, "rpc_error"),
            (r#"{"result":17}"#, Opaque, Unknown, "unreadable_answer"),
            (r#"{"id":1}"#, ReadOnly, Unknown, "unreadable_answer"),
        ] {
            let (is_status, is_class) = read(text).failure(effect);
            assert_eq!((is_status, is_class.as_str()), (status, class), "{text} {effect:?}");
        }
    }

    #[test]
    fn a_call_that_goes_on_is_no_outcome() {
        let task = r#"{"id":1,"result":{"task":{"taskId":"t-1","status":"working"}}}"#;
        assert_eq!(read(task), Reading::Task("t-1".into()));
        let input = r#"{"id":1,"result":{"resultType":"input_required","requestState":"s"}}"#;
        assert_eq!(read(input), Reading::InputRequired(Some("s".into())));
        // A result may be called anything.
        let named = r#"{"id":1,"result":{"task":{"taskId":"t-1"},"content":[]}}"#;
        assert!(matches!(read(named), Reading::Success(_)));
    }
}
