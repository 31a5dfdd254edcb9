//! What the model is told when a call is not run, or when nobody knows how it ended: what is
//! known, and what it must not assume.

use recibo_adapter::{DecisionAnswer, DecisionKind, LedgerError, Reason};
use recibo_core::json::{Fault, write_string};

use crate::timeline::in_words;

/// Why a call is not run.
pub struct Refusal {
    /// What the model is told.
    pub text: String,
    /// The late success that the text tells of: run and call.
    pub success: Option<(String, String)>,
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self { text, success: None }
    }
}

/// A tool result that says why there is none.
pub fn answer(raw_id: &str, text: &str) -> String {
    let mut answer =
        format!(r#"{{"jsonrpc":"2.0","id":{raw_id},"result":{{"content":[{{"type":"text","text":"#);
    write_string(&mut answer, text);
    answer.push_str(r#"}],"isError":true}}"#);
    answer
}

/// For a decision that is no permission.
pub fn of_decision(decision: &DecisionAnswer) -> String {
    let (kind, reason) = (decision.decision.0, decision.reason.0);
    let call = format!("call {} of run {}", decision.tool_call_id, decision.run_id);
    let rest = match kind {
        DecisionKind::Reuse => {
            let token = decision.record.as_ref().and_then(|record| record.token.as_deref());
            let receipt = token.map(|token| format!(" Its receipt: [receipt: {token}]."));
            format!(
                "It has succeeded before, so it was not run a second time.{} Its result is not \
                 kept here: do not guess it, and do not call the tool again for the same effect. \
                 If you need the result, read it in another way.",
                receipt.unwrap_or_default()
            )
        }
        DecisionKind::Wait => "Another attempt at it is still under way. Do not assume that it \
             succeeded or failed, and do not start the same under another name. Look again later."
            .into(),
        DecisionKind::CheckStatus => "An earlier attempt may or may not have taken effect; \
             nobody knows yet. Do not assume either. Find out from the outside service, or ask \
             the user, before you try anything that would repeat it."
            .into(),
        DecisionKind::Stop | DecisionKind::Proceed => match reason {
            Reason::TerminalError => "It failed before, without effect, in a way that another \
                 try cannot mend. Do not repeat it unchanged."
                .into(),
            Reason::OutcomeUnknown | Reason::KeyWindowOver | Reason::Conflict => format!(
                "An earlier attempt may or may not have taken effect ({}). Do not assume \
                 either, and do not repeat it in any form. Tell the user that its outcome is not \
                 known.",
                in_words(kind, reason)
            ),
            _ => format!(
                "The ledger does not permit it ({}). Do not assume that it ever took effect or \
                 that it did not.",
                in_words(kind, reason)
            ),
        },
    };
    format!(
        "recibo: the tool was not run now ({}: {}, {call}). {rest}",
        kind.as_str(),
        reason.as_str()
    )
}

/// For a call that another one holds back.
pub fn of_twin(text: &str) -> String {
    format!("recibo: {text}")
}

/// For a ledger that refuses the request itself.
pub fn of_error(error: &LedgerError) -> String {
    let why = match error.code() {
        Some(_) if !error.is_transient() => {
            format!("the receipt ledger does not take this call: {error}")
        }
        _ => return unreachable(),
    };
    format!(
        "recibo: the tool was not run: {why}. Nothing was sent to it, so this call had no effect. \
         Do not report it as done."
    )
}

/// For a ledger that cannot be reached.
pub fn unreachable() -> String {
    "recibo: the tool was not run: the receipt ledger cannot be reached, and a call that cannot \
     be recorded is not made. Nothing was sent to the tool, so this call had no effect. Do not \
     report it as done; it may be tried again once the ledger is back."
        .into()
}

/// For a call whose time to be sent is over.
pub fn too_late() -> String {
    "recibo: the tool was not run: permission came too late. Nothing was sent to it, so this call \
     had no effect. It may be tried again."
        .into()
}

/// For a call to a server whose input has ended.
pub fn closed() -> String {
    "recibo: the tool was not run: its server takes no more calls. Nothing was sent to it, so this \
     call had no effect."
        .into()
}

/// For a call whose answer did not come in time.
pub fn timed_out(timeout_ms: u64) -> String {
    format!(
        "recibo: the tool did not answer within {}. It may or may not have taken effect, and may \
         still do so; nobody knows. Do not assume either, and do not repeat it before that is \
         clear.",
        crate::duration::in_words(timeout_ms)
    )
}

/// For arguments that have no canonical form.
pub fn of_arguments(fault: &Fault) -> String {
    let cause = fault.cause.unwrap_or("no readable JSON");
    let place = fault.pointer.as_deref().unwrap_or("a place that is too long to name");
    format!(
        "recibo: the tool was not run: its arguments hold {cause}, at {place}. Nothing was sent to \
         it, so this call had no effect. Mend the arguments and call again."
    )
}

/// For a second request with the id of one that is under way.
pub const SAME_ID: &str = "recibo: not sent: a request with this id is under way. Nothing was \
     sent for this one.";

/// For a request while too many have no answer.
pub const TOO_MANY: &str = "recibo: not sent: too many requests are without an answer. Nothing \
     was sent for this one.";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn decision(kind: &str, reason: &str, state: &str) -> DecisionAnswer {
        let value = json!({
            "decision": kind, "reason": reason, "run_id": "r", "tool_call_id": "c", "attempt": 1,
            "state": state, "replayed": false, "idempotency_key": "rk1_x", "input_hash": null, "record": null,
            "retry_after_ms": null, "twin": null, "hint": null,
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn every_refusal_says_that_it_was_not_run_and_never_that_an_unknown_one_had_no_effect() {
        for (kind, reason, state, said) in [
            ("reuse", "already_ok", "ok", "do not guess it"),
            ("wait", "lease_live", "in_flight", "still under way"),
            ("check_status", "outcome_unknown", "unknown", "may or may not"),
            ("stop", "outcome_unknown", "unknown", "may or may not"),
            ("stop", "key_window_over", "unknown", "may or may not"),
            ("stop", "conflict", "ok", "may or may not"),
            ("stop", "terminal_error", "terminal", "without effect"),
            ("stop", "attempts_exhausted", "retryable", "does not permit"),
            ("stop", "abandoned", "abandoned", "does not permit"),
            ("proceed", "retry_allowed", "retryable", "does not permit"),
        ] {
            let text = of_decision(&decision(kind, reason, state));
            assert!(text.contains("not run now") && text.contains(said), "{kind} {reason}: {text}");
            let may_deny = matches!(reason, "terminal_error");
            assert_eq!(text.contains("without effect"), may_deny, "{kind} {reason}: {text}");
        }
    }

    #[test]
    fn an_answer_is_a_tool_result_with_the_id_as_it_came() {
        let text = answer("\"a\\u0031\"", "say \"no\"\n");
        assert!(text.starts_with(r#"{"jsonrpc":"2.0","id":"a\u0031","#));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["result"]["isError"], true);
        assert_eq!(value["result"]["content"][0]["text"], "say \"no\"\n");
    }
}
