//! What the ledger would answer now, and why.

use recibo_core::effect::Effect;
use recibo_core::status::{DecisionKind, Reason};

use super::{Case, span};
use crate::timeline::{self, Verdict};

/// The answer, and the rule behind it.
pub(super) fn sentences(case: &Case<'_>) -> Vec<String> {
    let verdict = Verdict { retry_after_ms: None, ..Verdict::from(case.decision) };
    let mut list = vec![format!("{}.", timeline::advice(&verdict))];
    list.push(format!("Why: {}", why(case)));
    if let Some(ms) = case.decision.retry_after_ms.filter(|ms| *ms > 0) {
        list.push(match case.decision.decision.0 {
            DecisionKind::CheckStatus => format!(
                "The settle time ends in {}; an earlier `not_executed` is kept but decides \
                 nothing.",
                span(ms)
            ),
            _ => format!("Ask again in {}.", span(ms)),
        });
    }
    if let Some(twin) = &case.decision.twin {
        list.push(format!(
            "Another call does the same (a twin): {} of run {}, which is {}.",
            twin.tool_call_id,
            twin.run_id,
            twin.state.0.as_str()
        ));
    }
    list
}

fn why(case: &Case<'_>) -> &'static str {
    let effect = case.call.map(|call| call.effect.0);
    match (case.decision.reason.0, effect) {
        (Reason::FirstAttempt, _) => "there is no earlier attempt that could have taken effect.",
        (Reason::LeaseLive, _) => {
            "two attempts at once could take effect twice, and the lease of one is still live."
        }
        (Reason::AlreadyOk, _) if case.word().is_some() => {
            "an operator says that it took effect; evidence of the opposite would be a conflict."
        }
        (Reason::TerminalError, _) if case.word().is_some() => {
            "an operator says that it had no effect and must not be tried again."
        }
        (Reason::AlreadyOk, _) => "it succeeded; a success never changes again.",
        (Reason::TerminalError, _) => {
            "it failed in a way that another try cannot mend; that never changes again."
        }
        (Reason::Abandoned, _) => "an operator closed it without knowing how it ended.",
        (Reason::AttemptsExhausted, _) => {
            "the policy's number of attempts, which the first attempt froze, is used."
        }
        (Reason::Conflict, _) => {
            "while the evidence contradicts itself, another try could be a second effect."
        }
        (Reason::KeyWindowOver, _) => {
            "an attempt may have taken effect, and the time for which the outside service \
             recognizes the key is over or not known: it could take a repeated request for a new one."
        }
        (Reason::OutcomeUnknown, Some(Effect::Queryable)) => {
            "an attempt may have taken effect, and the outside service can say."
        }
        (Reason::OutcomeUnknown, _) => {
            "an attempt may have taken effect, and nothing but a person's look can tell."
        }
        // Only claims are judged against twins.
        (Reason::TwinInFlight, _) => "another call that does the same is under way.",
        (Reason::TwinUnknown, _) => "another call that does the same may have taken effect.",
        (Reason::TwinOkLate, _) => {
            "another call that does the same took effect after its caller had given up."
        }
        (Reason::RetryAllowed, Some(Effect::ReadOnly)) => "running it again changes nothing.",
        (Reason::RetryAllowed, Some(Effect::Idempotent)) => {
            "running it again gives the same end state."
        }
        (Reason::RetryAllowed, Some(Effect::Keyed)) if case.unsettled().next().is_some() => {
            "the outside service still recognizes the key, so a second request has no second effect."
        }
        (Reason::RetryAllowed, _) => "what was tried is known to have had no effect.",
    }
}
