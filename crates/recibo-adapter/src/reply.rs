//! What a ledger answers, however it was asked.

use recibo_api::answer::{ClaimAnswer, DecisionAnswer, Twin};
use recibo_core::effect::{Effect, IsError};
use recibo_core::status::{CallState, DecisionKind, Reason};

/// A granted claim.
pub(crate) struct Granted {
    pub(crate) attempt: u32,
    pub(crate) lease_token: String,
    pub(crate) lease_ms: u64,
    pub(crate) idempotency_key: String,
    pub(crate) replayed: bool,
    pub(crate) twin: Option<Twin>,
    pub(crate) effect: Effect,
    pub(crate) is_error: Option<IsError>,
}

/// The answer to a claim.
pub(crate) enum Claimed {
    Granted(Granted),
    Advice(Box<DecisionAnswer>),
}

/// What a status check has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The call's state now.
    pub state: CallState,
    /// What to do.
    pub decision: DecisionKind,
    /// Why.
    pub reason: Reason,
    /// When it makes sense to ask the outside service again, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl From<ClaimAnswer> for Claimed {
    fn from(answer: ClaimAnswer) -> Self {
        match answer {
            ClaimAnswer::Granted(granted) => Self::Granted(Granted {
                attempt: granted.attempt,
                lease_token: granted.lease.token,
                lease_ms: granted.lease.duration_ms,
                idempotency_key: granted.idempotency_key,
                replayed: granted.replayed,
                twin: granted.twin,
                effect: granted.effect.0,
                is_error: granted.terms.is_error.map(|word| word.0),
            }),
            ClaimAnswer::Advice(advice) => Self::Advice(advice),
        }
    }
}
