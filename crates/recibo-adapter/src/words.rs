//! What the model is told when there is no result. Plain, complete, and without anything that
//! was sent: what is known, and what must not be assumed.

use recibo_api::answer::{DecisionAnswer, Twin};
use recibo_api::{Code, Problem};
use recibo_core::status::{CallState, DecisionKind, OutcomeStatus, Reason};

use crate::error::LedgerError;
use crate::tool::ToolError;

const ASSUME_NOTHING: &str =
    "Do not assume that it succeeded or that it failed, and do not try it another way.";

/// Appended to a result whose success the ledger did not take.
pub(crate) const NOT_RECORDED: &str =
    "[no receipt: the call succeeded, but its outcome could not be recorded]";
/// Appended to a result whose success was recorded, but could not be signed.
pub(crate) const NOT_SIGNED: &str =
    "[no receipt: the call succeeded and is recorded, but no key was there to sign it]";
/// Appended to a result of a call that the ledger knows nothing of.
pub(crate) const UNRECEIPTED: &str = "[no receipt: the ledger could not be reached]";
/// Appended where a status was asked for and could not be reported.
pub(crate) const CHECK_FORBIDDEN: &str =
    "The outside service was asked, but the adapter may not report its answer to the ledger.";

/// The paragraph for the system prompt.
pub(crate) const SYSTEM_PROMPT: &str = "Results of successful tool calls end with a line of the \
     form [receipt: zc-receipt-...]. It proves that the call was made and what it returned. When \
     you tell of a tool call, cite its receipt exactly as it stands, character by character. \
     Never write a receipt that you have not been given, and never claim a tool call that has \
     none: a call without a receipt failed, or nobody knows how it ended.";

/// Why a call was not run, by the ledger's decision.
pub(crate) fn advice(advice: &DecisionAnswer) -> String {
    match advice.decision.0 {
        DecisionKind::Wait => format!(
            "Not run: another attempt at this call is under way, and its outcome is not known \
             yet. {ASSUME_NOTHING} Ask for the same call again later."
        ),
        DecisionKind::Reuse => reuse(advice),
        DecisionKind::CheckStatus => check_status(),
        DecisionKind::Stop | DecisionKind::Proceed => stop(advice.reason.0),
    }
}

fn reuse(advice: &DecisionAnswer) -> String {
    let mut text = String::from(
        "Not run again: this call has succeeded before, so its effect is there. Its result is no \
         longer at hand. Do not repeat the effect, and do not invent the result.",
    );
    let token = advice.record.as_ref().and_then(|record| record.token.as_deref());
    if let Some(token) = token {
        text.push_str(&format!(" Its receipt is {token}."));
    }
    if let Some(hint) = &advice.hint {
        text.push_str(&format!(" Hint: {hint}."));
    }
    text
}

/// An earlier attempt of a queryable tool may have taken effect.
pub(crate) fn check_status() -> String {
    format!(
        "Not run: an earlier attempt at this call may have taken effect, and the outside service \
         has to be asked first. {ASSUME_NOTHING}"
    )
}

/// The ledger permits no attempt.
pub(crate) fn stop(reason: Reason) -> String {
    match reason {
        Reason::TerminalError => {
            "Not run: this call has failed for good before, without effect.".to_owned()
        }
        Reason::OutcomeUnknown | Reason::KeyWindowOver => format!(
            "Not run: an earlier attempt at this call may have taken effect, and nobody knows. \
             {ASSUME_NOTHING} A person has to look."
        ),
        Reason::AttemptsExhausted => format!(
            "Not run: all permitted attempts at this call are used, and none is known to have \
             succeeded. {ASSUME_NOTHING}"
        ),
        Reason::Abandoned => {
            format!("Not run: an operator has given this call up. {ASSUME_NOTHING}")
        }
        Reason::Conflict => format!(
            "Not run: what is known of this call contradicts itself. {ASSUME_NOTHING} A person \
             has to look."
        ),
        _ => format!("Not run: the ledger does not permit it. {ASSUME_NOTHING}"),
    }
}

/// How another call is named: with its run where that is not this one.
pub(crate) fn call_name(own_run_id: &str, run_id: &str, tool_call_id: &str) -> String {
    match run_id == own_run_id {
        true => tool_call_id.to_owned(),
        false => format!("{tool_call_id} (run {run_id})"),
    }
}

/// Another call that does the same may have taken effect.
pub(crate) fn twin_unknown(name: &str, run_id: &str, twin: &Twin, since: Option<&str>) -> String {
    let known = match (twin.state.0, since) {
        (CallState::Unknown, Some(since)) => {
            format!("may have taken effect, and since {since} nobody knows")
        }
        (CallState::Unknown, None) => "may have taken effect, and nobody knows".to_owned(),
        _ => "may have taken effect: what is known of it contradicts itself".to_owned(),
    };
    let (run, call) = (shell(run_id), shell(&twin.tool_call_id));
    format!(
        "Not run: another call that does the same, {name}, {known}. {ASSUME_NOTHING} A status \
         check at the outside service can settle it, or a person with: recibo resolve {run} \
         {call}"
    )
}

/// Another call that does the same is under way.
pub(crate) fn twin_in_flight(name: &str) -> String {
    format!(
        "Not run: another call that does the same, {name}, is under way, and its outcome is not \
         known yet. {ASSUME_NOTHING} Ask again later."
    )
}

/// Another call that does the same has succeeded, and the model has not seen it.
pub(crate) fn twin_ok(name: &str, result: Option<&str>, line: Option<&str>) -> String {
    let mut text = format!(
        "Not run: another call that does the same, {name}, has succeeded in the meantime, so the \
         effect is there. Ask again only if it has to happen once more."
    );
    match result {
        Some(result) => text.push_str(&format!(" This is its result:\n{result}")),
        None => text.push_str(" Its result is not at hand; do not invent it."),
    }
    if let Some(line) = line {
        text.push('\n');
        text.push_str(line);
    }
    text
}

/// An id as a word of a command line.
fn shell(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.:=@%+,-".contains(c);
    match id.chars().all(is_plain) {
        true => id.to_owned(),
        false => format!("'{}'", id.replace('\'', r"'\''")),
    }
}

/// The ledger gave no decision.
pub(crate) fn no_decision(error: &LedgerError) -> String {
    match error {
        LedgerError::Refused(problem) if !problem.code.is_transient() => refused(problem),
        error if error.is_transient() => {
            "Not run: the ledger of tool calls cannot be reached. This call had no effect now; \
             whether an earlier attempt had one is not known."
                .to_owned()
        }
        _ => format!("Not run: the ledger's answer is not understood. {ASSUME_NOTHING}"),
    }
}

fn refused(problem: &Problem) -> String {
    let code = problem.code;
    let pointer = problem.extra.get("pointer").and_then(|pointer| pointer.as_str());
    let advice = match (code, pointer) {
        (Code::InputMismatch, _) => {
            " The id of this call is another call's: ask for it again under a new id.".to_owned()
        }
        (_, Some(pointer)) => {
            format!(" The fault is in the arguments, at {pointer}: mend them and call again.")
        }
        _ => String::new(),
    };
    format!("Not run: the ledger refuses this call ({code}). It had no effect now.{advice}")
}

/// How an attempt failed, for the last time.
pub(crate) fn failed(error: &ToolError) -> String {
    let (class, message) = (error.class.as_str(), error.message.as_str());
    let text = match error.status {
        OutcomeStatus::Timeout => format!(
            "No answer came in time. The call may have taken effect, or may still. \
             {ASSUME_NOTHING}"
        ),
        OutcomeStatus::Unknown if error.is_answered => format!(
            "The outside service answered with an error ({class}), which does not say whether \
             anything took effect. {ASSUME_NOTHING}"
        ),
        OutcomeStatus::Unknown => format!(
            "The call broke off ({class}), and nobody knows whether it took effect. \
             {ASSUME_NOTHING}"
        ),
        OutcomeStatus::RetryableError => {
            format!("The call failed without effect ({class}). It may be tried again later.")
        }
        OutcomeStatus::TerminalError if class == "denied" => {
            "The call was denied before it ran. It had no effect.".to_owned()
        }
        OutcomeStatus::TerminalError => {
            format!("The call failed for good, without effect ({class}).")
        }
        OutcomeStatus::Ok => unreachable!("a success has a result"),
    };
    if message.is_empty() { text } else { format!("{text} The tool says: {message}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_one_word_of_a_command_line() {
        for (id, word) in
            [("t:call_17", "t:call_17"), ("a|b", "'a|b'"), ("$(x)", "'$(x)'"), ("a'b", r"'a'\''b'")]
        {
            assert_eq!(shell(id), word);
        }
    }
}
