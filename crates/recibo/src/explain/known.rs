//! What is known, and what is not. The second list is the more important one.

use recibo_api::answer::Record;
use recibo_core::status::{AttemptStatus, CallState, SettledBy};

use super::{Case, class, numbers};
use crate::words;

/// What the ledger has evidence for.
pub(super) fn known(case: &Case<'_>) -> Vec<String> {
    let Some(call) = case.call else {
        return vec!["No attempt of this call was ever granted or recorded here.".to_owned()];
    };
    let mut list = Vec::new();
    let succeeded: Vec<&Record> =
        case.records().iter().filter(|r| r.status.0 == AttemptStatus::Ok).collect();
    if !succeeded.is_empty() {
        list.push(format!("It took effect in {}.", numbers(succeeded.iter().copied())));
    }
    for record in &succeeded {
        list.push(match (&record.token, record.settled_by.map(|by| by.0)) {
            (Some(token), _) => format!("The receipt of attempt {}: {token}", record.attempt),
            (None, Some(SettledBy::StatusCheck | SettledBy::Resolution)) => {
                format!("Attempt {} has no receipt: nobody here saw its result.", record.attempt)
            }
            (None, None) => format!(
                "Attempt {} has no receipt: the key that should have signed it was gone.",
                record.attempt
            ),
        });
    }
    match case.state() {
        // Where the evidence contradicts itself, one side of it must not be told as a fact.
        _ if case.is_conflict() => {}
        CallState::Retryable => {
            list.push("No attempt so far had an effect; each failed before it could.".to_owned());
        }
        CallState::Terminal => list.push(match case.unsettled().next() {
            None => "No attempt had an effect, and another one would not help.".to_owned(),
            Some(_) => "The newest attempt had no effect, and another one would not help.".into(),
        }),
        CallState::Abandoned => {
            list.push("An operator decided that nobody will find out.".to_owned());
        }
        CallState::InFlight => {
            let newest = case.records().last();
            list.push(format!(
                "Only the process that holds the lease of {} may run the tool now.",
                numbers(newest.into_iter())
            ));
        }
        CallState::Unknown => list.push(format!(
            "Permission was given for {}, so the request may have left.",
            numbers(case.unsettled())
        )),
        CallState::Absent | CallState::Ok => {}
    }
    list.push(format!(
        "The tool is {}: {}.",
        call.effect.0.as_str(),
        words::of_effect(call.effect.0)
    ));
    if case.is_conflict() {
        list.push(
            "There is evidence for an effect and evidence against it, or for two effects."
                .to_owned(),
        );
    }
    list
}

/// What nobody knows.
pub(super) fn unknown(case: &Case<'_>) -> Vec<String> {
    let mut list = Vec::new();
    let unsettled = numbers(case.unsettled());
    let has_unsettled = case.unsettled().next().is_some();
    match case.state() {
        CallState::Absent => {
            list.push("Whether somebody ran the tool without asking the ledger.".to_owned());
        }
        CallState::InFlight => {
            list.push(
                "How the attempt under way will end. It may take effect at any moment.".to_owned(),
            );
        }
        CallState::Ok => {
            list.push("The result itself: the ledger keeps its hash, not its text.".to_owned());
        }
        CallState::Abandoned if !has_unsettled => {
            list.push("Whether it took effect.".to_owned());
        }
        CallState::Unknown | CallState::Retryable | CallState::Terminal | CallState::Abandoned => {}
    }
    if has_unsettled {
        let too = if case.state() == CallState::Ok { " too" } else { "" };
        let is_answered = case.unsettled().any(class::is_answer);
        let is_silent = !case.unsettled().all(class::is_answer);
        let mut text = format!("Whether {unsettled} took effect{too}.");
        if is_silent {
            text.push_str(
                " That no answer came is no evidence either way: the request may have arrived and \
                 only its answer been lost.",
            );
        }
        if is_answered {
            text.push_str(
                " The answer that came is no evidence either way: half of the work may have been \
                 done before.",
            );
        }
        list.push(text);
    }
    if case.is_conflict() {
        list.push("Which of the contradicting reports is true.".to_owned());
    }
    if list.is_empty() {
        list.push("Nothing that matters for what to do next.".to_owned());
    }
    list
}
