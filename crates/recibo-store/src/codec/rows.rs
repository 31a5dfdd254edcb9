//! Stored rows other than events.

use bincode::{Decode, Encode};
use recibo_core::call::{Attempt, Fixed, OutcomeMark, Settled, Tip};
use recibo_core::effect::Effect;
use recibo_core::status::{OutcomeStatus, SettledBy};
use recibo_core::time::Time;

use super::event::{at_index, index_of};
use super::{CodecError, row};

/// Where the ledger stands. Rewritten by every commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Head {
    /// Number of events, and the next sequence number.
    pub(crate) size: u64,
    /// Ledger time of the last event, in milliseconds.
    pub(crate) last_at_ms: u64,
    /// Roots of the complete subtrees, largest first.
    pub(crate) frontier: Vec<[u8; 32]>,
    pub(crate) next_run_no: u64,
    pub(crate) next_namespace_no: u32,
    /// Key windows opened up to here count as over; 0 for none.
    pub(crate) key_windows_void_until_ms: u64,
}
row!(Head, "head");

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct NamespaceRow {
    pub(crate) no: u32,
    pub(crate) next_nseq: u64,
    /// The event that set its effect policy.
    pub(crate) policy_seq: Option<u64>,
}
row!(NamespaceRow, "namespace");

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ScopeRow {
    pub(crate) namespace_no: u32,
    pub(crate) opened_seq: u64,
    pub(crate) closed_seq: Option<u64>,
}
row!(ScopeRow, "scope");

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ApiKeyRow {
    /// Words joined by commas; of the first versions, one word.
    pub(crate) roles: String,
    pub(crate) namespace: String,
    /// SHA-256 of the secret part; the secret has 256 random bits.
    pub(crate) digest: [u8; 32],
    pub(crate) created_ms: u64,
    pub(crate) expires_ms: Option<u64>,
    pub(crate) revoked_ms: Option<u64>,
}
row!(ApiKeyRow, "api key");

/// A call that is open or unknown.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct OpenCallRow {
    pub(crate) namespace_no: u32,
    pub(crate) run_no: u64,
    pub(crate) tool_call_id: String,
    /// When the lease of its newest attempt ends, if that attempt is open: a start reads all
    /// leases, and should read no more than these rows.
    pub(crate) lease_end_ms: Option<u64>,
}
row!(OpenCallRow, "open call");

/// The tip of a call. Later numbers and times are kept as distances from the first.
#[derive(Encode, Decode)]
pub(crate) struct TipRow {
    effect: u8,
    flags: u8,
    first_seq: u64,
    recorded_ms: u64,
    key_window_back_ms: u64,
    version_after: u64,
    unsettled_older: u32,
    ok_attempt: Option<u32>,
    newest: StoredAttempt,
}
row!(TipRow, "call");

const ABANDONED: u8 = 1;
const CONFLICT: u8 = 2;
const FIXED_OK: u8 = 4;
const FIXED_TERMINAL: u8 = 8;

#[derive(Encode, Decode)]
struct StoredAttempt {
    number: u32,
    started_after: u64,
    lease_after_ms: Option<u64>,
    lease_expired: bool,
    outcomes: Vec<StoredMark>,
    /// Who, as what, and by which event.
    settled: Option<(u8, Option<u8>, u64)>,
}

#[derive(Encode, Decode)]
struct StoredMark {
    seq_after: u64,
    at_after_ms: u64,
    status: u8,
    late: bool,
}

/// An attempt that is no longer the newest.
#[derive(Encode, Decode)]
pub(crate) struct AttemptRow {
    attempt: StoredAttempt,
}
row!(AttemptRow, "attempt");

impl TipRow {
    pub(crate) fn of(tip: &Tip) -> Self {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        Self {
            effect: index_of(&Effect::ALL, &tip.effect),
            flags: flag(tip.abandoned, ABANDONED)
                | flag(tip.conflict, CONFLICT)
                | flag(tip.fixed == Some(Fixed::Ok), FIXED_OK)
                | flag(tip.fixed == Some(Fixed::Terminal), FIXED_TERMINAL),
            first_seq: tip.first_seq,
            recorded_ms: tip.recorded_at.ms(),
            key_window_back_ms: tip.recorded_at.ms_since(tip.key_window_from),
            version_after: tip.version - tip.first_seq,
            unsettled_older: tip.unsettled_older,
            ok_attempt: tip.ok_attempt,
            newest: StoredAttempt::of(&tip.newest, tip.first_seq, tip.recorded_at),
        }
    }

    pub(crate) fn tip(self) -> Result<Tip, CodecError> {
        let recorded_at = Time::from_ms(self.recorded_ms);
        let newest = self.newest.attempt(self.first_seq, recorded_at);
        let effect = at_index(&Effect::ALL, self.effect);
        let (Some(newest), Some(effect)) = (newest, effect) else {
            return Err(CodecError { what: "call" });
        };
        Ok(Tip {
            effect,
            first_seq: self.first_seq,
            recorded_at,
            key_window_from: Time::from_ms(self.recorded_ms - self.key_window_back_ms),
            version: self.first_seq + self.version_after,
            unsettled_older: self.unsettled_older,
            ok_attempt: self.ok_attempt,
            fixed: match self.flags & (FIXED_OK | FIXED_TERMINAL) {
                0 => None,
                FIXED_OK => Some(Fixed::Ok),
                _ => Some(Fixed::Terminal),
            },
            abandoned: self.flags & ABANDONED != 0,
            conflict: self.flags & CONFLICT != 0,
            newest,
        })
    }
}

impl AttemptRow {
    pub(crate) fn of(attempt: &Attempt, tip: &Tip) -> Self {
        Self { attempt: StoredAttempt::of(attempt, tip.first_seq, tip.recorded_at) }
    }

    pub(crate) fn attempt(self, tip: &Tip) -> Result<Attempt, CodecError> {
        self.attempt.attempt(tip.first_seq, tip.recorded_at).ok_or(CodecError { what: "attempt" })
    }
}

impl StoredAttempt {
    fn of(attempt: &Attempt, first_seq: u64, recorded_at: Time) -> Self {
        let after_ms = |time: Time| time.ms_since(recorded_at);
        Self {
            number: attempt.number,
            started_after: attempt.started_seq - first_seq,
            lease_after_ms: attempt.lease_expires_at.map(after_ms),
            lease_expired: attempt.lease_expired,
            outcomes: attempt
                .outcomes
                .iter()
                .map(|mark| StoredMark {
                    seq_after: mark.seq - first_seq,
                    at_after_ms: after_ms(mark.at),
                    status: index_of(OutcomeStatus::ALL, &mark.status),
                    late: mark.late,
                })
                .collect(),
            settled: attempt.settled.map(|settled| {
                let status = settled.status.map(|status| index_of(OutcomeStatus::ALL, &status));
                (index_of(SettledBy::ALL, &settled.by), status, settled.seq - first_seq)
            }),
        }
    }

    fn attempt(self, first_seq: u64, recorded_at: Time) -> Option<Attempt> {
        let outcomes = self
            .outcomes
            .into_iter()
            .map(|mark| {
                Some(OutcomeMark {
                    seq: first_seq + mark.seq_after,
                    at: recorded_at.plus_ms(mark.at_after_ms),
                    status: at_index(OutcomeStatus::ALL, mark.status)?,
                    late: mark.late,
                })
            })
            .collect::<Option<Vec<_>>>()?;
        let settled = match self.settled {
            None => None,
            Some((by, status, seq_after)) => Some(Settled {
                seq: first_seq + seq_after,
                by: at_index(SettledBy::ALL, by)?,
                status: match status {
                    Some(status) => Some(at_index(OutcomeStatus::ALL, status)?),
                    None => None,
                },
            }),
        };
        Some(Attempt {
            number: self.number,
            started_seq: first_seq + self.started_after,
            lease_expires_at: self.lease_after_ms.map(|ms| recorded_at.plus_ms(ms)),
            lease_expired: self.lease_expired,
            outcomes,
            settled,
        })
    }
}
