//! What the error classes mean that this program writes. Others are an adapter's own.

use recibo_api::answer::Record;

/// A class of this program.
struct Class {
    /// The meaning, as a clause.
    meaning: &'static str,
    /// Whether an answer came, which leaves open whether the call took effect.
    is_answer: bool,
}

fn known(class: &str) -> Option<Class> {
    let silent = |meaning| Some(Class { meaning, is_answer: false });
    let answered = |meaning| Some(Class { meaning, is_answer: true });
    let numbered = |prefix: &str| {
        let digits = class.strip_prefix(prefix)?;
        (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(())
    };
    match class {
        "cancelled" => silent("who asked for it gave it up"),
        "host_gone" => silent("the host ended the session before the answer came"),
        "server_gone" => silent("the MCP server ended before it answered"),
        "sent_in_part" => silent("the MCP server stopped reading in the middle of the call"),
        "not_sent" => silent("the MCP server took no more calls"),
        "lease_over" => silent("its lease was over before it could be sent"),
        "interrupted" => silent("it was interrupted before it began"),
        "lost" => silent("the end of the command could not be seen"),
        "spawn_failed" => silent("the command could not be started"),
        "tool_error" => answered("the tool answered that it failed"),
        "task_failed" => answered("the task that the tool began has failed"),
        "unreadable_answer" => answered("the answer could not be read"),
        "unknown_result_type" => answered("the answer was a result of a type that is not known"),
        "rpc_error" => answered("the MCP server answered with a JSON-RPC error"),
        _ if numbered("rpc_").is_some() => {
            answered("the MCP server answered with this JSON-RPC error")
        }
        _ if numbered("exit_").is_some() => answered("the command ended with this exit code"),
        _ if numbered("signal_").is_some() => silent("the command was ended by this signal"),
        _ => None,
    }
}

/// A class with its meaning, for a place between parentheses.
pub(super) fn in_words(class: Option<&str>) -> String {
    let Some(class) = class else { return "no class given".to_owned() };
    match known(class) {
        Some(Class { meaning, .. }) => format!("{class}: {meaning}"),
        None => class.to_owned(),
    }
}

/// Whether an answer came.
pub(super) fn is_answer(record: &Record) -> bool {
    let class = record.error_class.as_deref().and_then(known);
    class.is_some_and(|class| class.is_answer)
}
