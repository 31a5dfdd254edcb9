//! The decision table: may this call be run again?

use crate::call::Tip;
use crate::effect::{Effect, Terms};
use crate::status::{CallState, DecisionKind, Reason};
use crate::time::Time;

/// When a decision is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Ledger time.
    pub now: Time,
    /// Key windows opened at or before this point count as over: the wall clock was found
    /// behind the ledger at a start, so nobody knows how much of them has passed.
    pub key_windows_void_until: Option<Time>,
}

/// Advice, until a grant with a lease makes it a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub kind: DecisionKind,
    /// Why.
    pub reason: Reason,
    /// The state that it was made from.
    pub state: CallState,
    /// For `wait` and `check_status`: when it makes sense to ask again, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// Decides over a call, or over one that the ledger does not know.
pub fn decide(call: Option<(&Tip, &Terms)>, moment: &Moment) -> Decision {
    let Some((tip, terms)) = call else {
        return Decision {
            kind: DecisionKind::Proceed,
            reason: Reason::FirstAttempt,
            state: CallState::Absent,
            retry_after_ms: None,
        };
    };
    let state = tip.state(moment.now);
    let (kind, reason) = by_state(state, tip, terms, moment);
    let (kind, reason) = match kind {
        DecisionKind::Proceed if tip.conflict => (DecisionKind::Stop, Reason::Conflict),
        DecisionKind::Proceed if terms.max_attempts.is_some_and(|max| tip.attempts() >= max) => {
            (DecisionKind::Stop, Reason::AttemptsExhausted)
        }
        _ => (kind, reason),
    };
    let retry_after_ms = match kind {
        DecisionKind::Wait => tip.newest.lease_expires_at().map(|end| end.ms_since(moment.now)),
        DecisionKind::CheckStatus => Some(settle_left_ms(tip, terms, moment.now)),
        DecisionKind::Proceed | DecisionKind::Reuse | DecisionKind::Stop => None,
    };
    Decision { kind, reason, state, retry_after_ms }
}

fn by_state(state: CallState, tip: &Tip, terms: &Terms, moment: &Moment) -> (DecisionKind, Reason) {
    match state {
        CallState::Absent => (DecisionKind::Proceed, Reason::FirstAttempt),
        CallState::InFlight => (DecisionKind::Wait, Reason::LeaseLive),
        CallState::Ok => (DecisionKind::Reuse, Reason::AlreadyOk),
        CallState::Terminal => (DecisionKind::Stop, Reason::TerminalError),
        CallState::Abandoned => (DecisionKind::Stop, Reason::Abandoned),
        CallState::Retryable => (DecisionKind::Proceed, Reason::RetryAllowed),
        CallState::Unknown => match terms.effect {
            Effect::ReadOnly | Effect::Idempotent => (DecisionKind::Proceed, Reason::RetryAllowed),
            Effect::Keyed if is_inside_key_window(tip, moment) => {
                (DecisionKind::Proceed, Reason::RetryAllowed)
            }
            Effect::Keyed => (DecisionKind::Stop, Reason::KeyWindowOver),
            Effect::Queryable => (DecisionKind::CheckStatus, Reason::OutcomeUnknown),
            Effect::Opaque => (DecisionKind::Stop, Reason::OutcomeUnknown),
        },
    }
}

fn is_inside_key_window(tip: &Tip, moment: &Moment) -> bool {
    let void = moment.key_windows_void_until.is_some_and(|until| tip.key_window_from <= until);
    !void && tip.key_window_end().is_some_and(|end| moment.now < end)
}

/// How long until the outside service's answer about the newest attempt is final.
fn settle_left_ms(tip: &Tip, terms: &Terms, now: Time) -> u64 {
    let end = tip.newest.ended_at().unwrap_or(now);
    end.plus_ms(terms.settle_ms.unwrap_or(0)).ms_since(now)
}
