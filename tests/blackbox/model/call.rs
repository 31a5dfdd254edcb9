//! A call: what its first attempt froze, and what happened to it since.

use super::words::{Answer, Effect, Resolved, Status};

/// Run and id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallKey {
    pub run: String,
    pub id: String,
}

/// What the first attempt froze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    pub effect: Effect,
    pub key_window_ms: Option<u64>,
    pub settle_ms: Option<u64>,
    pub max_attempts: Option<u32>,
}

/// What an outcome says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub status: Status,
    pub duration_ms: u64,
    pub output_hash: Option<String>,
    pub error_class: Option<String>,
    /// The caller saw the service's answer.
    pub answered: bool,
    /// The receipt that the service gave for it.
    pub token: Option<String>,
    /// The scope that signed it.
    pub signer: Option<String>,
}

impl Outcome {
    /// The identical outcome: status, output hash and error class.
    pub fn is_same(&self, other: &Self) -> bool {
        self.status == other.status
            && self.output_hash == other.output_hash
            && self.error_class == other.error_class
    }
}

/// What happened to a call, in order.
#[derive(Clone, Debug)]
pub enum Event {
    /// A grant.
    Started {
        at: u64,
        claim_id: String,
        scope: String,
        lease_ms: u64,
        lease_end: u64,
        lease_token: String,
    },
    /// A one-shot.
    Recorded { at: u64, started_at: u64, scope: String, outcome: Outcome },
    /// An outcome of a granted attempt.
    Finished { at: u64, attempt: u32, late: bool, outcome: Outcome },
    /// A status check.
    Checked { at: u64, attempt: u32, answer: Answer, source: String, counted: bool },
    /// An operator's word, and the seq that the service gave it.
    Resolved { at: u64, state: Resolved, reason: String, corrects: Option<u64>, seq: u64 },
    /// A renewal.
    Renewed { at: u64, attempt: u32, lease_end: u64 },
    /// What a start on another boot made of a lease; no event of the call.
    Restarted { attempt: u32, began: u64, lease_end: u64, is_over: bool },
    /// Somebody read the lease as over; no event of the ledger.
    ReadAsOver { attempt: u32 },
}

/// A call that the ledger knows.
#[derive(Clone, Debug)]
pub struct Call {
    pub key: CallKey,
    pub tool: String,
    pub input_hash: String,
    /// Two calls with the same tool and twin hash are twins.
    pub twin_hash: String,
    pub terms: Terms,
    pub operation_key: Option<String>,
    /// Ledger time of the first event.
    pub recorded_at: u64,
    /// From when the key window counts.
    pub window_from: u64,
    pub events: Vec<Event>,
}

impl Call {
    /// Where its key window ends; only a keyed call with a window has one.
    pub fn window_end(&self) -> Option<u64> {
        (self.terms.effect == Effect::Keyed)
            .then_some(self.terms.key_window_ms)?
            .map(|ms| self.window_from + ms)
    }
}
