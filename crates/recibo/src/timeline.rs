//! Calls as timelines of attempts, for a terminal. Pure: what is shown and the time are
//! arguments.

mod attempt;
pub mod list;

use recibo_api::answer::{Call, DecisionAnswer, ResolutionEntry, RunSummary};
use recibo_core::status::{CallState, DecisionKind, Reason};

use crate::layout::{self, View};
use crate::{duration, paint, words};

/// What the ledger would answer about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What to do.
    pub decision: DecisionKind,
    /// Why.
    pub reason: Reason,
    /// When to ask again.
    pub retry_after_ms: Option<u64>,
}

impl Verdict {
    /// Of a state that decides alone.
    pub fn of_fixed_state(state: CallState) -> Self {
        let (decision, reason) = match state {
            CallState::Ok => (DecisionKind::Reuse, Reason::AlreadyOk),
            CallState::Terminal => (DecisionKind::Stop, Reason::TerminalError),
            CallState::Abandoned => (DecisionKind::Stop, Reason::Abandoned),
            _ => unreachable!("only fixed states decide alone"),
        };
        Self { decision, reason, retry_after_ms: None }
    }
}

impl From<&DecisionAnswer> for Verdict {
    fn from(answer: &DecisionAnswer) -> Self {
        Self {
            decision: answer.decision.0,
            reason: answer.reason.0,
            retry_after_ms: answer.retry_after_ms,
        }
    }
}

/// A call and what the ledger would answer about it.
pub struct Shown {
    /// The call.
    pub call: Call,
    /// The answer.
    pub verdict: Verdict,
}

/// A run with all its calls.
pub fn of_run(summary: &RunSummary, shown: &[Shown], view: View) -> String {
    let by = &summary.by_state;
    let counts = [
        (by.ok, "ok"),
        (by.in_flight, "in flight"),
        (by.unknown, "unknown"),
        (by.retryable, "retryable"),
        (by.terminal, "terminal"),
        (by.abandoned, "abandoned"),
        (summary.conflicts, "in conflict"),
    ];
    let counts: Vec<_> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let title = [
        format!("run {}", paint::strong(&summary.run_id)),
        format!("{}, {}", plural(summary.calls, "call"), plural(summary.attempts, "attempt")),
        counts.join(", "),
    ];
    let span = format!(
        "{} to {}, times are UTC",
        attempt::full_stamp(summary.first_at.0),
        attempt::full_stamp(summary.last_at.0)
    );
    let mut text = layout::flow(&title, "  ", view.width);
    text.push_str(&layout::prose("", &paint::faint(&span), view.width));
    let longest_ms = longest_ms(shown);
    for shown in shown {
        text.push('\n');
        text.push_str(&block(shown, longest_ms, view));
    }
    text.push_str(&words::notes(&text, view.width));
    text
}

/// One call, with the ids that a single call has room for.
pub fn of_call(shown: &Shown, view: View) -> String {
    let call = &shown.call;
    let mut text = block(shown, longest_ms(std::slice::from_ref(shown)), view);
    let first = call.attempts.first();
    let rows = [
        ("run", Some(call.run_id.as_str())),
        ("idempotency key", Some(call.idempotency_key.as_str())),
        ("operation key", call.operation_key.as_deref()),
        ("input", call.input_hash.as_deref()),
        ("trace", first.and_then(|record| record.trace_id.as_deref())),
    ];
    let rows = rows.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned())));
    let labels = first.map(|record| &record.labels).into_iter().flatten();
    let labels = labels.map(|(name, value)| ("label", format!("{name}={value}")));
    let rows: Vec<_> = rows.chain(labels).collect();
    text.push_str(&format!("\n{}", layout::facts("  ", &rows, view.width)));
    text.push_str(&words::notes(&text, view.width));
    text
}

/// All bars of a view have one scale.
fn longest_ms(shown: &[Shown]) -> u64 {
    let records = shown.iter().flat_map(|shown| &shown.call.attempts);
    records.filter_map(|record| record.duration_ms).max().unwrap_or(0)
}

fn block(shown: &Shown, longest_ms: u64, view: View) -> String {
    let call = &shown.call;
    let conflict = if call.conflict { paint::bad("conflict") } else { String::new() };
    let title = [
        paint::strong(&call.tool_call_id),
        format!("{} {}", call.tool, paint::faint(&format!("({})", call.effect.0.as_str()))),
        state(call.state.0),
        conflict,
    ];
    let mut text = layout::flow(&title, "  ", view.width);
    text.push_str(&attempt::rows(&call.attempts, longest_ms, view));
    let mut facts: Vec<_> =
        call.resolutions.iter().map(|entry| ("resolved", resolution(entry))).collect();
    facts.push(("now", advice(&shown.verdict)));
    text.push_str(&layout::facts("  ", &facts, view.width));
    text
}

/// `as ok 2026-09-13 02:05:00.000 by API key 4c9h (event 17): it is in the ledger of the bank`.
pub fn resolution(entry: &ResolutionEntry) -> String {
    let by = match entry.by.as_deref() {
        Some("local") => "without an API key".to_owned(),
        Some(id) => format!("by API key {id}"),
        None => "by an operator".to_owned(),
    };
    let corrects = entry.corrects.map(|seq| format!(", corrects event {seq}"));
    format!(
        "as {} {} {by} (event {}{}): {}",
        entry.state.0.as_str(),
        attempt::full_stamp(entry.at.0),
        entry.seq,
        corrects.unwrap_or_default(),
        entry.reason
    )
}

/// `reuse (already_ok): it is done, do not run it again`.
pub fn advice(verdict: &Verdict) -> String {
    let Verdict { decision, reason, retry_after_ms } = verdict;
    let word = match decision {
        DecisionKind::Proceed => paint::good(decision.as_str()),
        DecisionKind::Reuse => paint::good(decision.as_str()),
        DecisionKind::Wait => paint::live(decision.as_str()),
        DecisionKind::CheckStatus => paint::open(decision.as_str()),
        DecisionKind::Stop => paint::bad(decision.as_str()),
    };
    let again = match retry_after_ms {
        Some(ms) if *ms > 0 => format!("; ask again in {}", duration::in_words(*ms)),
        _ => String::new(),
    };
    format!("{word} ({}): {}{again}", reason.as_str(), in_words(*decision, *reason))
}

/// What a decision means, in a few words.
pub fn in_words(decision: DecisionKind, reason: Reason) -> &'static str {
    match (decision, reason) {
        (DecisionKind::Proceed, Reason::FirstAttempt) => "nothing was tried yet",
        (DecisionKind::Proceed, _) => "it may be tried again",
        (DecisionKind::Wait, _) => "an attempt is under way",
        (DecisionKind::Reuse, _) => "it is done, do not run it again",
        (DecisionKind::CheckStatus, _) => "ask the outside service what happened",
        (DecisionKind::Stop, Reason::TerminalError) => "it failed for good",
        (DecisionKind::Stop, Reason::Abandoned) => "an operator gave it up",
        (DecisionKind::Stop, Reason::KeyWindowOver) => {
            "it may have taken effect, and the outside service no longer recognizes the key"
        }
        (DecisionKind::Stop, Reason::OutcomeUnknown) => {
            "it may have taken effect, a person must look"
        }
        (DecisionKind::Stop, Reason::AttemptsExhausted) => "all permitted attempts are used",
        (DecisionKind::Stop, Reason::Conflict) => "the evidence contradicts itself",
        (DecisionKind::Stop, _) => "do not run it",
    }
}

/// A state in its colour.
pub fn state(state: CallState) -> String {
    let word = state.as_str();
    match state {
        CallState::Ok => paint::good(word),
        CallState::InFlight => paint::live(word),
        CallState::Unknown | CallState::Retryable => paint::open(word),
        CallState::Terminal => paint::bad(word),
        CallState::Absent | CallState::Abandoned => paint::faint(word),
    }
}

/// `1 call`, `2 calls`.
pub fn plural(n: u64, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
