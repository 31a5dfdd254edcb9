//! What a person can do next: concrete, in order, with commands to copy.

use recibo_core::effect::Effect;
use recibo_core::status::{CallState, DecisionKind, Reason};

use super::{Case, numbers, span};
use crate::ledger::Request;
use crate::timeline::list::shell;

/// The steps.
pub(super) fn steps(case: &Case<'_>) -> Vec<String> {
    let Some(call) = case.call else { return absent(case) };
    let effect = call.effect.0;
    let reason = case.decision.reason.0;
    if case.is_conflict() {
        return conflict(case);
    }
    let mut steps = match (case.state(), case.decision.decision.0) {
        (CallState::Absent, _) => absent(case),
        (CallState::InFlight, _) => in_flight(case, effect),
        (CallState::Ok, _) => ok(case, effect),
        (CallState::Terminal, _) => terminal(case),
        (CallState::Abandoned, _) => abandoned(case),
        (_, DecisionKind::Proceed) => proceed(case, effect),
        (_, DecisionKind::CheckStatus) => check(case),
        (state, _) if reason == Reason::AttemptsExhausted => exhausted(case, state, effect),
        (_, _) => look(case, effect),
    };
    steps.extend(correction(case));
    steps
}

/// How to take a word back that the state may rest on alone. The ledger decides whether it does.
fn correction(case: &Case<'_>) -> Vec<String> {
    let Some(newest) = case.word() else { return Vec::new() };
    vec![
        "If the operator's word was wrong, correct it:".to_owned(),
        command(case, "resolve", &format!(" --as ... --corrects {} --reason '...'", newest.seq)),
    ]
}

fn command(case: &Case<'_>, verb: &str, rest: &str) -> String {
    let (run, call) = (shell(&case.decision.run_id), shell(&case.decision.tool_call_id));
    format!("    recibo {verb} {run} {call}{rest}")
}

fn absent(case: &Case<'_>) -> Vec<String> {
    // A ledger that is opened with its own key has nothing that this key does not see.
    let namespace = if case.view.is_key_given { " and the namespace of the API key" } else { "" };
    vec![
        format!("If you expected something here, check the spelling of both ids{namespace}:"),
        format!("    recibo run {}", shell(&case.decision.run_id)),
        "If nothing was tried, the call's adapter may ask the ledger for its first attempt."
            .to_owned(),
    ]
}

fn in_flight(case: &Case<'_>, effect: Effect) -> Vec<String> {
    let left = case.decision.retry_after_ms.unwrap_or(0);
    let then = match effect {
        Effect::ReadOnly | Effect::Idempotent => "the ledger permits another try",
        Effect::Keyed => {
            "the ledger permits another try with the same key while the outside service \
             recognizes it"
        }
        Effect::Queryable => "the ledger wants the outside service to be asked",
        Effect::Opaque => "a person must look",
    };
    vec![
        format!("Wait: the attempt reports, or its lease ends in {}.", span(left)),
        format!(
            "If you know that its process is dead, still wait: what it sent may be on its way, \
             and nothing shortens a lease. If no report comes by then, {then}."
        ),
        command(case, "explain", ""),
    ]
}

fn ok(case: &Case<'_>, effect: Effect) -> Vec<String> {
    let mut steps = Vec::new();
    let token = case.records().iter().find_map(|record| record.token.as_deref());
    if let Some(token) = token {
        steps.push("If somebody doubts it, verify the receipt:".to_owned());
        steps.push(format!("    recibo receipt verify {token}"));
    }
    steps.push(match effect {
        Effect::ReadOnly => {
            "If the result was lost, read again under a new tool_call_id.".to_owned()
        }
        _ => format!(
            "If the result was lost, fetch it from the outside service, where it has the {}. Do \
             not run the tool under a new tool_call_id: that would be a second effect.",
            case.outside_key()
        ),
    });
    steps
}

fn terminal(case: &Case<'_>) -> Vec<String> {
    let class = case.records().last().and_then(|record| record.error_class.as_deref());
    let cause = class.map(|class| format!(" ({class})")).unwrap_or_default();
    vec![
        format!("Find the cause{cause} and mend it."),
        "If the work must still be done, start a new call with a tool_call_id of its own; this \
         one stays closed."
            .to_owned(),
    ]
}

fn abandoned(case: &Case<'_>) -> Vec<String> {
    vec![
        "Nothing here, unless evidence turns up: a late report of success is still taken."
            .to_owned(),
        format!(
            "If the work must still be done, first look where its effect would show (by the {}). \
             Only if it is not there, start a new call with a tool_call_id of its own.",
            case.outside_key()
        ),
    ]
}

fn proceed(case: &Case<'_>, effect: Effect) -> Vec<String> {
    let next = case.records().len() + 1;
    let mut steps = vec![format!(
        "Let the call's adapter ask for attempt {next}; nothing needs to be looked up first."
    )];
    if effect == Effect::Keyed && case.unsettled().next().is_some() {
        steps = vec![
            format!(
                "Let the call's adapter ask for attempt {next} soon, and send the same {} again.",
                case.outside_key()
            ),
            "Later the outside service no longer recognizes the key, and the ledger answers stop."
                .to_owned(),
        ];
    }
    steps.push("If it must not be tried again, close it:".to_owned());
    steps.push(close(case));
    steps
}

/// Closes the call without saying more than is known.
fn close(case: &Case<'_>) -> String {
    match case.unsettled().next() {
        None => command(case, "resolve", " --as terminal --reason '...'"),
        // `terminal` would say that it certainly had no effect.
        Some(_) => command(case, "resolve", " --as abandoned --reason '...'"),
    }
}

fn check(case: &Case<'_>) -> Vec<String> {
    let when = case.decision.retry_after_ms.filter(|ms| *ms > 0);
    let when = when.map(|ms| format!(", in {} or later", span(ms))).unwrap_or_default();
    let mut steps = vec![format!(
        "Ask the outside service what became of {}{when}. A reconciler does this, if one runs.",
        numbers(case.unsettled())
    )];
    steps.push(where_to_look(case));
    let oldest = case.unsettled().next().map_or(1, |record| record.attempt).to_string();
    let (run, call) = (&case.decision.run_id, &case.decision.tool_call_id);
    let path = ["runs", run, "calls", call, "attempts", &oldest, "status-checks"];
    steps.push(
        "Report its answer: executed_ok, executed_failed, not_executed, pending, indeterminate \
         or unsupported."
            .to_owned(),
    );
    steps.push(format!("    POST {}", Request::get(&path).path));
    steps.push("    {\"answer\": \"executed_ok\", \"source\": \"who was asked\"}".to_owned());
    steps.push("If it cannot be asked, look by hand and say what you found:".to_owned());
    steps.extend(words(case));
    steps
}

fn look(case: &Case<'_>, effect: Effect) -> Vec<String> {
    let mut steps = vec!["Do not run it again, and do not start it under another id.".to_owned()];
    if effect == Effect::Keyed {
        steps.push("Do not send the key again either: it may count as new by now.".to_owned());
    }
    steps.push(where_to_look(case));
    steps.push("Then say what you found; the ledger answers accordingly from then on:".to_owned());
    steps.extend(words(case));
    steps
}

fn exhausted(case: &Case<'_>, state: CallState, effect: Effect) -> Vec<String> {
    let mut steps = vec!["Find out why the attempts failed before anything is tried again.".into()];
    if state == CallState::Retryable || effect.is_repeatable() {
        steps.push(
            "If the work must still be done, start a new call with a tool_call_id of its own."
                .to_owned(),
        );
        steps.push("Close this one, so that nobody waits for it:".to_owned());
        steps.push(close(case));
    } else {
        steps.push(where_to_look(case));
        steps.push("Then say what you found:".to_owned());
        steps.extend(words(case));
    }
    steps
}

fn conflict(case: &Case<'_>) -> Vec<String> {
    let mut steps = vec![
        "Do not run it again, and do not start it under another id.".to_owned(),
        where_to_look(case),
        "It may have taken effect although it was reported as failed, or twice. If there is \
         something to undo, undo it there."
            .to_owned(),
        "Then say what you found; that clears the conflict:".to_owned(),
    ];
    steps.extend(words(case));
    steps
}

/// Where the effect would show, and by what it is recognized.
fn where_to_look(case: &Case<'_>) -> String {
    let first = case.records().first().map(|record| record.started_at.0);
    let refs: Vec<_> =
        case.records().iter().filter_map(|record| record.provider_ref.as_deref()).collect();
    let refs = match refs.as_slice() {
        [] => String::new(),
        refs => format!(", or by its own reference {}", refs.join(", ")),
    };
    let since = first.map(|first| format!(" since {first}")).unwrap_or_default();
    format!(
        "Look where the effect would show: everything{since}, by the {}{refs}.",
        case.outside_key()
    )
}

/// The four words of an operator.
fn words(case: &Case<'_>) -> Vec<String> {
    [
        ("ok", "it took effect"),
        ("retryable", "it certainly did not, and may be tried again"),
        ("terminal", "it certainly did not, and must not be tried again"),
        ("abandoned", "nobody will find out"),
    ]
    .iter()
    .map(|(word, meaning)| {
        let rest = format!(" --as {word:<9} --reason '...'   # {meaning}");
        command(case, "resolve", &rest)
    })
    .collect()
}
