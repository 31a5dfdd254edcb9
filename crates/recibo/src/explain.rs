//! One page in plain words about one call, for whoever is woken up by it. Pure: the call, the
//! ledger's answer and the time are arguments.
//!
//! Where nobody knows whether something took effect, no sentence here may sound as if it had
//! not: that sentence would be acted upon.

mod answer;
mod class;
mod known;
mod next;
mod tried;

use recibo_api::answer::{Call, DecisionAnswer, Record, ResolutionEntry};
use recibo_core::status::{AttemptStatus, CallState, DecisionKind, SettledBy};

use crate::layout::{self, NO_BREAK, View, Width};
use crate::{duration, paint, words};

/// What a page is about.
struct Case<'a> {
    /// `None` for an absent call.
    call: Option<&'a Call>,
    decision: &'a DecisionAnswer,
    view: View,
}

impl<'a> Case<'a> {
    fn records(&self) -> &'a [Record] {
        self.call.map_or(&[], |call| &call.attempts)
    }

    fn state(&self) -> CallState {
        self.decision.state.0
    }

    fn is_conflict(&self) -> bool {
        self.call.is_some_and(|call| call.conflict)
    }

    /// Attempts that are over and may have taken effect: nobody has said.
    fn unsettled(&self) -> impl Iterator<Item = &'a Record> {
        let records = self.records().iter();
        records.filter(|record| record.status.0.is_indefinite() && record.settled_by.is_none())
    }

    /// The operator's word that the state seems to rest on alone. The ledger knows for certain.
    fn word(&self) -> Option<&'a ResolutionEntry> {
        let is_fixed =
            matches!(self.state(), CallState::Ok | CallState::Terminal | CallState::Abandoned);
        let is_evident = self.records().iter().any(|record| {
            record.status.0 == AttemptStatus::Ok
                && record.settled_by.map(|by| by.0) != Some(SettledBy::Resolution)
        });
        let newest = self.call.and_then(|call| call.resolutions.last());
        newest.filter(|_| is_fixed && !is_evident)
    }

    /// The key that the outside service knows the effect by, with its kind before it.
    fn outside_key(&self) -> String {
        match self.call.and_then(|call| call.operation_key.as_deref()) {
            Some(own) => format!("operation key {own}"),
            None => format!("idempotency key {}", self.decision.idempotency_key),
        }
    }
}

/// The page.
pub fn page(call: Option<&Call>, decision: &DecisionAnswer, view: View) -> String {
    let case = Case { call, decision, view };
    let tool = call.map(|call| format!(": {} ({})", call.tool, call.effect.0.as_str()));
    let title = format!(
        "{} of run {}{}",
        paint::strong(&decision.tool_call_id),
        decision.run_id,
        tool.unwrap_or_default(),
    );
    let mut text = layout::prose("", &title, view.width);
    text.push_str(&layout::prose("", &headline(&case), view.width));
    let sections = [
        ("What was tried", tried::sentences(&case)),
        ("What is known", known::known(&case)),
        ("What is not known", known::unknown(&case)),
        ("What the ledger answers now", answer::sentences(&case)),
        ("What you can do next", next::steps(&case)),
    ];
    let mut reader = words::Reader::default();
    for (title, sentences) in sections {
        text.push_str(&format!("\n{}\n", paint::strong(title)));
        for sentence in sentences {
            text.push_str(&item(&sentence, &mut reader, view.width));
        }
    }
    text.push_str(&format!("\n{}\n", paint::faint("Words that are new to you: recibo help words")));
    text
}

/// The one line to read if there is time for one.
fn headline(case: &Case<'_>) -> String {
    let repeats = case.decision.decision.0 == DecisionKind::Proceed;
    let line = match case.state() {
        CallState::Ok if case.is_conflict() => {
            return paint::bad("It took effect, but the evidence contradicts itself.");
        }
        CallState::Terminal if case.is_conflict() => {
            return paint::bad("It was closed as failed, but the evidence contradicts itself.");
        }
        _ if case.is_conflict() => return paint::bad("The evidence contradicts itself."),
        CallState::Absent => return paint::faint("The ledger knows nothing of this call."),
        CallState::Ok => return paint::good("It took effect. Do not run it again."),
        CallState::InFlight => return paint::live("An attempt is under way. Do not run it now."),
        CallState::Retryable if repeats => "It had no effect so far, and may be tried again.",
        CallState::Retryable => "It had no effect so far, but must not be tried again.",
        CallState::Unknown if repeats => {
            "Nobody knows whether it took effect; trying again does no harm."
        }
        CallState::Unknown => "Nobody knows whether it took effect. Do not run it again yet.",
        CallState::Terminal => return paint::bad("It failed for good. Do not run it again."),
        CallState::Abandoned => "An operator gave it up. Nobody knows whether it took effect.",
    };
    paint::open(line)
}

/// A sentence as a list item. What begins with four spaces is a command, to be copied.
fn item(sentence: &str, reader: &mut words::Reader, width: Width) -> String {
    match sentence.strip_prefix("    ") {
        Some(command) => layout::command("      ", command, width),
        None => layout::prose("  - ", &reader.told(sentence), width),
    }
}

/// A duration that stays on one line.
fn span(ms: u64) -> String {
    duration::in_words(ms).replace(' ', NO_BREAK)
}

/// `attempt 1`, `attempts 1 and 3`, `attempts 1, 2 and 3`.
fn numbers<'a>(records: impl Iterator<Item = &'a Record>) -> String {
    let numbers: Vec<_> = records.map(|record| record.attempt.to_string()).collect();
    match numbers.as_slice() {
        [] => "no attempt".to_owned(),
        [one] => format!("attempt {one}"),
        [most @ .., last] => format!("attempts {} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests;
