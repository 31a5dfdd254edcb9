//! What was tried, a sentence per attempt.

use recibo_api::answer::{CheckEntry, Record, ResolutionEntry};
use recibo_core::status::{AttemptStatus, OutcomeStatus, SettledBy};
use recibo_core::time::Time;

use super::{Case, class, span};
use crate::timeline;

/// Attempts shown at either end; a call with a thousand of them still fits on a page.
const SHOWN_FIRST: usize = 3;
const SHOWN_LAST: usize = 5;

/// All attempts, in order.
pub(super) fn sentences(case: &Case<'_>) -> Vec<String> {
    let records = case.records();
    if records.is_empty() {
        return vec!["Nothing, as far as the ledger knows.".to_owned()];
    }
    let is_long = records.len() > SHOWN_FIRST + SHOWN_LAST;
    let skipped = if is_long { records.len() - SHOWN_FIRST - SHOWN_LAST } else { 0 };
    let mut sentences = Vec::new();
    for (i, record) in records.iter().enumerate() {
        if is_long && i == SHOWN_FIRST {
            sentences.push(format!("... {skipped} more attempts; `recibo call` shows them all."));
        }
        if !is_long || i < SHOWN_FIRST || i >= SHOWN_FIRST + skipped {
            sentences.push(sentence(record, case.view.now));
            sentences.extend(record.checks.iter().map(check));
        }
    }
    let resolutions = case.call.map(|call| call.resolutions.as_slice()).unwrap_or_default();
    sentences.extend(resolutions.iter().map(resolution));
    sentences
}

fn check(entry: &CheckEntry) -> String {
    let counted = if entry.counted { "that settled the attempt" } else { "that settled nothing" };
    format!(
        "A status check {} asked {} and heard {}: {counted}.",
        entry.at.0,
        entry.source,
        entry.answer.0.as_str()
    )
}

fn resolution(entry: &ResolutionEntry) -> String {
    format!("An operator resolved the call {}.", timeline::resolution(entry))
}

fn sentence(record: &Record, now: Time) -> String {
    let started = record.started_at.0;
    let ago = span(now.ms_since(started));
    let mut text = format!("Attempt {} began {started} ({ago} ago): ", record.attempt);
    text.push_str(&end(record, now));
    if record.late && record.outcomes.len() > 1 {
        let first = record.outcomes[0].status.0.as_str();
        text.push_str(&format!(" It had been reported as {first} first; this came late."));
    } else if record.late {
        text.push_str(" The report came after the lease had ended.");
    }
    let mut evidence = record.outcomes.iter().skip(1);
    if record.status.0 != AttemptStatus::Ok
        && evidence.any(|outcome| outcome.status.0 == OutcomeStatus::Ok)
    {
        text.push_str(" Later a success of the same attempt was reported, which contradicts this.");
    }
    if let Some(provider_ref) = &record.provider_ref {
        text.push_str(&format!(" The outside service calls it {provider_ref}."));
    }
    text
}

fn end(record: &Record, now: Time) -> String {
    let took = record.duration_ms.map(|ms| format!(" after {}", span(ms))).unwrap_or_default();
    let class = class::in_words(record.error_class.as_deref());
    let settled_by = record.settled_by.map(|by| by.0);
    match (record.status.0, settled_by) {
        (AttemptStatus::Started, _) => match record.lease_expires_at {
            Some(end) => format!(
                "it is under way. Its lease ends {} (in {}).",
                end.0,
                span(end.0.ms_since(now))
            ),
            None => "it is under way.".to_owned(),
        },
        (AttemptStatus::Ok, None) => format!("it succeeded{took}."),
        (AttemptStatus::Ok, Some(SettledBy::StatusCheck)) => {
            "no adapter saw its result, but the outside service says that it took effect."
                .to_owned()
        }
        (AttemptStatus::Ok, Some(SettledBy::Resolution)) => {
            "no adapter saw its result, but an operator says that it took effect.".to_owned()
        }
        (AttemptStatus::Timeout, _) => {
            format!("no answer came in time{took}. It may have taken effect.")
        }
        (AttemptStatus::Unknown, _) if record.outcomes.is_empty() => {
            match record.lease_expires_at {
                Some(end) => format!(
                    "nothing was reported before its lease ended {}. It may have taken effect.",
                    end.0
                ),
                None => "nothing was reported. It may have taken effect.".to_owned(),
            }
        }
        (AttemptStatus::Unknown, _) => format!(
            "its adapter could not tell how it ended{took} ({class}). It may have taken effect."
        ),
        (AttemptStatus::RetryableError, None) => {
            format!("it was reported as failed{took}, before it could take effect ({class}).")
        }
        (AttemptStatus::RetryableError, Some(SettledBy::StatusCheck)) => {
            "the outside service says, after its settle time, that it did not take effect."
                .to_owned()
        }
        (AttemptStatus::RetryableError, Some(SettledBy::Resolution)) => {
            "an operator says that it did not take effect and may be tried again.".to_owned()
        }
        (AttemptStatus::TerminalError, None) => {
            format!("it was reported as failed for good{took}, without effect ({class}).")
        }
        (AttemptStatus::TerminalError, Some(SettledBy::StatusCheck)) => {
            "the outside service says that it ran and failed for good.".to_owned()
        }
        (AttemptStatus::TerminalError, Some(SettledBy::Resolution)) => {
            "an operator says that it did not take effect and must not be tried again.".to_owned()
        }
    }
}
