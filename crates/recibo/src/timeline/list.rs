//! Calls, a line or two each.

use recibo_api::answer::{Call, DecisionAnswer};

use super::{Verdict, advice, plural, state};
use crate::layout::{self, View, Width};
use crate::{duration, paint, words};

/// A line per call.
pub fn of_calls(calls: &[Call], width: Width) -> String {
    let row = |call: &Call| {
        let at = call.attempts.first().map(|record| record.recorded_at.0);
        let conflict = if call.conflict { paint::bad("conflict") } else { String::new() };
        vec![
            paint::faint(&at.map(super::attempt::full_stamp).unwrap_or_default()),
            call.run_id.clone(),
            call.tool_call_id.clone(),
            call.tool.clone(),
            state(call.state.0),
            plural(call.attempts.len() as u64, "attempt"),
            conflict,
        ]
    };
    let heads = ["since (UTC)", "run", "call", "tool", "state"].map(paint::faint);
    let rows: Vec<_> = std::iter::once(heads.to_vec()).chain(calls.iter().map(row)).collect();
    layout::table(&rows, width)
}

/// The operator's queue: each call with its age, and what to do next.
pub fn of_unknown(entries: &[(Call, DecisionAnswer)], view: View) -> String {
    let mut text = format!("{}\n", plural(entries.len() as u64, "unknown call"));
    for (call, decision) in entries {
        // The oldest attempt that nobody knows the end of is what somebody waits for.
        let since = call.attempts.iter().find(|record| record.status.0.is_indefinite());
        let age = since.map(|record| duration::in_words(view.now.ms_since(record.started_at.0)));
        let title = [
            paint::strong(&call.run_id),
            paint::strong(&call.tool_call_id),
            format!("{} {}", call.tool, paint::faint(&format!("({})", call.effect.0.as_str()))),
            paint::open(&format!("for {}", age.unwrap_or_default())),
        ];
        text.push_str(&format!("\n{}", layout::flow(&title, "  ", view.width)));
        let mut facts = vec![("now", advice(&Verdict::from(decision)))];
        if let Some(provider_ref) = since.and_then(|record| record.provider_ref.clone()) {
            facts.push(("provider's reference", provider_ref));
        }
        text.push_str(&layout::facts("  ", &facts, view.width));
        let (run, id) = (shell(&call.run_id), shell(&call.tool_call_id));
        text.push_str(&layout::command("  ", &format!("recibo explain {run} {id}"), view.width));
    }
    text.push_str(&words::notes(&text, view.width));
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
