//! Calls, a line or two each.

use recibo_api::answer::{Call, DecisionAnswer};
use recibo_core::time::Time;

use super::{Verdict, advice, plural, state};
use crate::{duration, paint};

/// A line per call.
pub fn of_calls(calls: &[Call]) -> String {
    let width = |of: fn(&Call) -> &str| {
        calls.iter().map(|call| of(call).chars().count()).max().unwrap_or(0)
    };
    let (run, id, tool) =
        (width(|call| &call.run_id), width(|call| &call.tool_call_id), width(|call| &call.tool));
    let mut text = String::new();
    for call in calls {
        let at = call.attempts.first().map(|record| record.recorded_at.0);
        let conflict = if call.conflict { paint::bad("  conflict") } else { String::new() };
        let word = call.state.0.as_str();
        text.push_str(&format!(
            "{}  {:run$}  {:id$}  {:tool$}  {}{:gap$}  {}{conflict}\n",
            paint::faint(&at.map(super::attempt::full_stamp).unwrap_or_default()),
            call.run_id,
            call.tool_call_id,
            call.tool,
            state(call.state.0),
            "",
            plural(call.attempts.len() as u64, "attempt"),
            gap = 9 - word.len(),
        ));
    }
    text
}

/// The operator's queue: each call with its age, and what to do next.
pub fn of_unknown(entries: &[(Call, DecisionAnswer)], now: Time) -> String {
    let mut text = format!("{}\n", plural(entries.len() as u64, "unknown call"));
    for (call, decision) in entries {
        // The oldest attempt that nobody knows the end of is what somebody waits for.
        let since = call.attempts.iter().find(|record| record.status.0.is_indefinite());
        let age = since.map(|record| duration::in_words(now.ms_since(record.started_at.0)));
        let provider_ref = since.and_then(|record| record.provider_ref.as_deref());
        text.push_str(&format!(
            "\n{}  {} {}  {}\n",
            paint::strong(&format!("{} {}", call.run_id, call.tool_call_id)),
            call.tool,
            paint::faint(&format!("({})", call.effect.0.as_str())),
            paint::open(&format!("for {}", age.unwrap_or_default())),
        ));
        text.push_str(&format!("  {}\n", advice(&Verdict::from(decision))));
        if let Some(provider_ref) = provider_ref {
            text.push_str(&format!("  provider's reference {provider_ref}\n"));
        }
        let (run, id) = (shell(&call.run_id), shell(&call.tool_call_id));
        text.push_str(&format!("  recibo explain {run} {id}\n"));
    }
    text
}

/// A word as a shell reads it: real ids hold `|`, `#` and `?`.
pub fn shell(word: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '=' | '%' | '+');
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_quoted_where_a_shell_would_read_them_otherwise() {
        assert_eq!(shell("call_17:x=1"), "call_17:x=1");
        assert_eq!(shell("a|b"), "'a|b'");
        assert_eq!(shell("it's"), "'it'\\''s'");
        assert_eq!(shell(""), "''");
    }
}
