//! Rows of calls and attempts. Later numbers and times are kept as distances from the call's first
//! event; a distance that leads nowhere is a damaged row.
//!
//! A row of the first version lacks what later rules need. It says only which event is the
//! call's last: from there the call is folded again.

use bincode::{Decode, Encode};
use recibo_core::call::{Attempt, Fixed, Lease, Listed, OutcomeMark, Settled, Tip};
use recibo_core::effect::Effect;
use recibo_core::status::{OutcomeStatus, SettledBy};
use recibo_core::time::Time;

use super::event::{at_index, index_of};
use super::{CONFIG, CodecError, VERSION, VERSION_2, append, take_rest};

const BROKEN_CALL: CodecError = CodecError { what: "call" };
const BROKEN_ATTEMPT: CodecError = CodecError { what: "attempt" };

/// The row of a call.
#[derive(Encode, Decode)]
pub(crate) struct TipRow {
    effect: u8,
    flags: u8,
    first_seq: u64,
    recorded_ms: u64,
    key_window_back_ms: u64,
    version_after: u64,
    aged_after_ms: u64,
    ok_attempt: Option<u32>,
    ok_count: u32,
    /// What most calls do not have.
    rare: Option<Rare>,
    newest: StoredAttempt,
}

#[derive(Default, PartialEq, Encode, Decode)]
struct Rare {
    key_window_ms: Option<u64>,
    unsettled_older: u32,
    unanswered_older: u32,
    ok_late_after_ms: Option<u64>,
    rests_on_after: Option<u64>,
    resolutions: StoredList,
}

/// What the first version of the row begins with.
#[derive(Decode)]
struct FirstTipStart {
    _effect: u8,
    _flags: u8,
    first_seq: u64,
    _recorded_ms: u64,
    _key_window_back_ms: u64,
    version_after: u64,
}

const ABANDONED: u8 = 1;
const CONFLICT: u8 = 2;
const FIXED_OK: u8 = 4;
const FIXED_TERMINAL: u8 = 8;

#[derive(Encode, Decode)]
struct StoredAttempt {
    number: u32,
    started_after: u64,
    lease: Option<StoredLease>,
    lease_expired: bool,
    outcomes: Vec<StoredMark>,
    /// Who, as what, and by which event.
    settled: Option<(u8, Option<u8>, u64)>,
    checks: Option<StoredList>,
}

#[derive(Encode, Decode)]
struct StoredLease {
    after_ms: u64,
    granted_ms: u64,
    added_ms: u64,
}

#[derive(Encode, Decode)]
struct StoredMark {
    seq_after: u64,
    at_after_ms: u64,
    status: u8,
    flags: u8,
}

const LATE: u8 = 1;
const ANSWERED: u8 = 2;

#[derive(Default, PartialEq, Encode, Decode)]
struct StoredList {
    count: u32,
    newest_after: Option<u64>,
}

/// The row of an attempt that is no longer the newest.
#[derive(Encode, Decode)]
pub(crate) struct AttemptRow {
    attempt: StoredAttempt,
}

/// The row of a call, read.
pub(crate) enum ReadTip {
    /// The call.
    Tip(Box<Tip>),
    /// A row of the first version: the call's last event.
    LastEvent(u64),
}

/// The row of an attempt, read.
pub(crate) enum ReadAttempt {
    /// The attempt.
    Attempt(Attempt),
    /// A row of the first version.
    First,
}

impl TipRow {
    pub(crate) fn encode(tip: &Tip) -> Vec<u8> {
        let origin = Origin::of(tip);
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let rare = Rare {
            key_window_ms: tip.key_window_ms,
            unsettled_older: tip.unsettled_older,
            unanswered_older: tip.unanswered_older,
            ok_late_after_ms: tip.ok_late_at.map(|at| at.ms_since(origin.at)),
            rests_on_after: tip.rests_on.map(|seq| seq - origin.seq),
            resolutions: origin.stored_list(&tip.resolutions),
        };
        put(&Self {
            effect: index_of(&Effect::ALL, &tip.effect),
            flags: flag(tip.abandoned, ABANDONED)
                | flag(tip.conflict, CONFLICT)
                | flag(tip.fixed == Some(Fixed::Ok), FIXED_OK)
                | flag(tip.fixed == Some(Fixed::Terminal), FIXED_TERMINAL),
            first_seq: tip.first_seq,
            recorded_ms: tip.recorded_at.ms(),
            key_window_back_ms: tip.recorded_at.ms_since(tip.key_window_from),
            version_after: tip.version - origin.seq,
            aged_after_ms: tip.aged_from.ms_since(origin.at),
            ok_attempt: tip.ok_attempt,
            ok_count: tip.ok_count,
            rare: (rare != Rare::default()).then_some(rare),
            newest: origin.stored_attempt(&tip.newest),
        })
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<ReadTip, CodecError> {
        match bytes.split_first() {
            Some((&VERSION_2, rest)) => {
                let row: Self = take_rest(rest, BROKEN_CALL.what)?;
                Ok(ReadTip::Tip(Box::new(row.tip().ok_or(BROKEN_CALL)?)))
            }
            Some((&VERSION, rest)) => {
                let start = bincode::decode_from_slice::<FirstTipStart, _>(rest, CONFIG);
                let (start, _) = start.map_err(|_| BROKEN_CALL)?;
                let last = start.first_seq.checked_add(start.version_after);
                last.map(ReadTip::LastEvent).ok_or(BROKEN_CALL)
            }
            _ => Err(BROKEN_CALL),
        }
    }

    /// `None` for a damaged row.
    fn tip(self) -> Option<Tip> {
        let origin = Origin { seq: self.first_seq, at: time(self.recorded_ms)? };
        let rare = self.rare.unwrap_or_default();
        Some(Tip {
            effect: at_index(&Effect::ALL, self.effect)?,
            key_window_ms: rare.key_window_ms,
            first_seq: self.first_seq,
            recorded_at: origin.at,
            key_window_from: time(self.recorded_ms.checked_sub(self.key_window_back_ms)?)?,
            version: origin.seq(self.version_after)?,
            aged_from: origin.at(self.aged_after_ms)?,
            unsettled_older: rare.unsettled_older,
            unanswered_older: rare.unanswered_older,
            ok_attempt: self.ok_attempt,
            ok_count: self.ok_count,
            ok_late_at: origin.maybe_at(rare.ok_late_after_ms)?,
            fixed: match self.flags & (FIXED_OK | FIXED_TERMINAL) {
                0 => None,
                FIXED_OK => Some(Fixed::Ok),
                FIXED_TERMINAL => Some(Fixed::Terminal),
                _ => return None,
            },
            rests_on: origin.maybe_seq(rare.rests_on_after)?,
            abandoned: self.flags & ABANDONED != 0,
            conflict: self.flags & CONFLICT != 0,
            resolutions: origin.list(&rare.resolutions)?,
            newest: origin.attempt(self.newest)?,
        })
    }
}

impl AttemptRow {
    pub(crate) fn encode(attempt: &Attempt, tip: &Tip) -> Vec<u8> {
        put(&Self { attempt: Origin::of(tip).stored_attempt(attempt) })
    }

    pub(crate) fn decode(bytes: &[u8], tip: &Tip) -> Result<ReadAttempt, CodecError> {
        match bytes.split_first() {
            Some((&VERSION_2, rest)) => {
                let row: Self = take_rest(rest, BROKEN_ATTEMPT.what)?;
                let attempt = Origin::of(tip).attempt(row.attempt).ok_or(BROKEN_ATTEMPT)?;
                Ok(ReadAttempt::Attempt(attempt))
            }
            Some((&VERSION, _)) => Ok(ReadAttempt::First),
            _ => Err(BROKEN_ATTEMPT),
        }
    }
}

fn put<T: Encode>(row: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(96);
    bytes.push(VERSION_2);
    append(&mut bytes, row);
    bytes
}

/// A time that is one: later ones than year 9999 are damage, not cut.
fn time(ms: u64) -> Option<Time> {
    Some(Time::from_ms(ms)).filter(|time| time.ms() == ms)
}

/// Where a call begins: distances are counted from here.
#[derive(Clone, Copy)]
struct Origin {
    seq: u64,
    at: Time,
}

impl Origin {
    fn of(tip: &Tip) -> Self {
        Self { seq: tip.first_seq, at: tip.recorded_at }
    }

    fn seq(self, after: u64) -> Option<u64> {
        self.seq.checked_add(after)
    }

    fn at(self, after_ms: u64) -> Option<Time> {
        time(self.at.ms().checked_add(after_ms)?)
    }

    /// `Some(None)` for an absent distance, `None` for a broken one.
    fn maybe_seq(self, after: Option<u64>) -> Option<Option<u64>> {
        after.map_or(Some(None), |after| self.seq(after).map(Some))
    }

    /// `Some(None)` for an absent distance, `None` for a broken one.
    fn maybe_at(self, after_ms: Option<u64>) -> Option<Option<Time>> {
        after_ms.map_or(Some(None), |after_ms| self.at(after_ms).map(Some))
    }

    fn stored_list(self, list: &Listed) -> StoredList {
        StoredList { count: list.count, newest_after: list.newest_seq.map(|seq| seq - self.seq) }
    }

    fn list(self, stored: &StoredList) -> Option<Listed> {
        Some(Listed { count: stored.count, newest_seq: self.maybe_seq(stored.newest_after)? })
    }

    fn stored_attempt(self, attempt: &Attempt) -> StoredAttempt {
        let after_ms = |time: Time| time.ms_since(self.at);
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        StoredAttempt {
            number: attempt.number,
            started_after: attempt.started_seq - self.seq,
            lease: attempt.lease.map(|lease| StoredLease {
                after_ms: after_ms(lease.expires_at),
                granted_ms: lease.granted_ms,
                added_ms: lease.added_ms,
            }),
            lease_expired: attempt.lease_expired,
            outcomes: attempt
                .outcomes
                .iter()
                .map(|mark| StoredMark {
                    seq_after: mark.seq - self.seq,
                    at_after_ms: after_ms(mark.at),
                    status: index_of(OutcomeStatus::ALL, &mark.status),
                    flags: flag(mark.late, LATE) | flag(mark.answered, ANSWERED),
                })
                .collect(),
            settled: attempt.settled.map(|settled| {
                let status = settled.status.map(|status| index_of(OutcomeStatus::ALL, &status));
                (index_of(SettledBy::ALL, &settled.by), status, settled.seq - self.seq)
            }),
            checks: (attempt.checks.count > 0).then(|| self.stored_list(&attempt.checks)),
        }
    }

    fn attempt(self, stored: StoredAttempt) -> Option<Attempt> {
        let lease = match stored.lease {
            None => None,
            Some(lease) => Some(Lease {
                expires_at: self.at(lease.after_ms)?,
                granted_ms: lease.granted_ms,
                added_ms: lease.added_ms,
            }),
        };
        let mut outcomes = Vec::with_capacity(stored.outcomes.len());
        for mark in stored.outcomes {
            outcomes.push(OutcomeMark {
                seq: self.seq(mark.seq_after)?,
                at: self.at(mark.at_after_ms)?,
                status: at_index(OutcomeStatus::ALL, mark.status)?,
                late: mark.flags & LATE != 0,
                answered: mark.flags & ANSWERED != 0,
            });
        }
        let settled = match stored.settled {
            None => None,
            Some((by, status, seq_after)) => Some(Settled {
                seq: self.seq(seq_after)?,
                by: at_index(SettledBy::ALL, by)?,
                status: match status {
                    Some(status) => Some(at_index(OutcomeStatus::ALL, status)?),
                    None => None,
                },
            }),
        };
        Some(Attempt {
            number: stored.number,
            started_seq: self.seq(stored.started_after)?,
            lease,
            lease_expired: stored.lease_expired,
            outcomes,
            settled,
            checks: self.list(&stored.checks.unwrap_or_default())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tip() -> Tip {
        let newest = Attempt {
            number: 3,
            started_seq: 90,
            lease: Some(Lease { expires_at: Time::from_ms(9_000), granted_ms: 60, added_ms: 7 }),
            lease_expired: true,
            outcomes: vec![OutcomeMark {
                seq: 95,
                at: Time::from_ms(8_000),
                status: OutcomeStatus::Unknown,
                late: true,
                answered: true,
            }],
            settled: Some(Settled { by: SettledBy::Resolution, status: None, seq: 97 }),
            checks: Listed { count: 2, newest_seq: Some(96) },
        };
        Tip {
            effect: Effect::Keyed,
            key_window_ms: Some(500),
            first_seq: 80,
            recorded_at: Time::from_ms(7_000),
            key_window_from: Time::from_ms(6_500),
            version: 97,
            aged_from: Time::from_ms(9_000),
            unsettled_older: 2,
            unanswered_older: 1,
            ok_attempt: Some(1),
            ok_count: 2,
            ok_late_at: Some(Time::from_ms(7_700)),
            fixed: Some(Fixed::Ok),
            rests_on: Some(97),
            abandoned: true,
            conflict: true,
            resolutions: Listed { count: 1, newest_seq: Some(97) },
            newest,
        }
    }

    #[test]
    fn a_call_comes_back_as_it_was() {
        let tip = tip();
        match TipRow::decode(&TipRow::encode(&tip)).unwrap() {
            ReadTip::Tip(read) => assert_eq!(*read, tip),
            ReadTip::LastEvent(_) => panic!("it is no row of the first version"),
        }
        match AttemptRow::decode(&AttemptRow::encode(&tip.newest, &tip), &tip).unwrap() {
            ReadAttempt::Attempt(read) => assert_eq!(read, tip.newest),
            ReadAttempt::First => panic!("it is no row of the first version"),
        }
    }

    /// A key window that never ends would decide `proceed`.
    #[test]
    fn a_distance_that_leads_nowhere_is_damage() {
        let row = || TipRow {
            effect: 2,
            flags: 0,
            first_seq: 80,
            recorded_ms: 7_000,
            key_window_back_ms: 0,
            version_after: 1,
            aged_after_ms: 0,
            ok_attempt: None,
            ok_count: 0,
            rare: None,
            newest: Origin::of(&tip()).stored_attempt(&tip().newest),
        };
        assert!(row().tip().is_some());
        let damaged: [fn(&mut TipRow); 6] = [
            |row| row.key_window_back_ms = 7_001,
            |row| row.recorded_ms = u64::MAX,
            |row| row.version_after = u64::MAX,
            |row| row.aged_after_ms = u64::MAX,
            |row| row.newest.lease.as_mut().unwrap().after_ms = u64::MAX - 1,
            |row| row.flags = FIXED_OK | FIXED_TERMINAL,
        ];
        for damage in damaged {
            let mut row = row();
            damage(&mut row);
            assert!(TipRow::decode(&put(&row)).is_err());
        }
    }

    #[test]
    fn a_row_of_the_first_version_names_the_last_event() {
        // effect, flags, first_seq, recorded_ms, key_window_back_ms, version_after, and more.
        let bytes = [VERSION, 4, 0, 80, 100, 0, 17, 9, 9, 9];
        let read = TipRow::decode(&bytes).unwrap();
        assert!(matches!(read, ReadTip::LastEvent(97)));
        assert!(TipRow::decode(&bytes[..6]).is_err());
    }
}
