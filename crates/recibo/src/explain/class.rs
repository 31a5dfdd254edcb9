//! What the error classes mean that this program writes. Others are an adapter's own.

use recibo_api::answer::Record;

/// The meaning, as a clause.
fn meaning(class: &str) -> Option<&'static str> {
    Some(match class {
        "cancelled" => "who asked for it gave it up",
        "host_gone" => "the host ended the session before the answer came",
        "server_gone" => "the MCP server ended before it answered",
        "sent_in_part" => "the MCP server stopped reading in the middle of the call",
        "not_sent" => "the MCP server took no more calls",
        "lease_over" => "its lease was over before it could be sent",
        "tool_error" => "the tool answered that it failed",
        "task_failed" => "the task that the tool began has failed",
        "unreadable_answer" => "the answer could not be read",
        "unknown_result_type" => "the answer was a result of a type that is not known",
        "spawn_failed" => "the command could not be started",
        _ if class.starts_with("rpc_") => "the MCP server answered with a JSON-RPC error",
        "interrupted" => "it was interrupted before it began",
        "lost" => "the end of the command could not be seen",
        _ if class.starts_with("signal_") => "the command was ended by this signal",
        _ if class.starts_with("exit_") => "the command ended with this exit code",
        _ => return None,
    })
}

/// A class with its meaning, for a place between parentheses.
pub(super) fn in_words(class: Option<&str>) -> String {
    let Some(class) = class else { return "no class given".to_owned() };
    match meaning(class) {
        Some(meaning) => format!("{class}: {meaning}"),
        None => class.to_owned(),
    }
}

/// Whether an answer of the tool was seen, which left open whether it took effect.
pub(super) fn is_answer(record: &Record) -> bool {
    let class = record.error_class.as_deref().unwrap_or_default();
    class == "tool_error" || class.starts_with("rpc_") || class.starts_with("exit_")
}
