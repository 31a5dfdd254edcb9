//! One call: what the ledger knows of it, and what has really happened.
//!
//! The world is truthful, not kind. Adapters may stall, crash and report late, answers get
//! lost, requests arrive late or never. What it keeps to is what the promise asks of it:
//! adapters do not send after their lease and say only what they know, a source's "not
//! executed" is final once its settle time has passed, an operator does not lie, and a service
//! that honours keys honours them for the whole window.

use recibo_core::call::{Attempt, Call, Fixed};
use recibo_core::effect::Effect;
use recibo_core::status::{CallState, OutcomeStatus};
use recibo_core::time::Time;

/// Length of a lease, in milliseconds, which are the ticks of this world.
pub const LEASE: u64 = 2;
/// How long after an attempt's end a source's "not executed" is final.
pub const SETTLE: u64 = 1;
/// How long the outside service honours the key: two leases do not fit, so that the second is cut.
pub const WINDOW: u64 = 3;
/// Attempts that are explored.
pub const ATTEMPTS_MAX: usize = 3;

/// Who runs an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adapter {
    /// Has claimed and waits for the answer.
    Asking,
    /// Holds the grant and has not sent.
    Ready,
    /// Has sent, and can still learn how it went.
    Sent,
    /// Has crashed, or has said all that it will ever say.
    Gone,
}

/// What became of an attempt's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Never sent.
    None,
    /// Under way.
    Net,
    /// Took effect; for a keyed call perhaps as a repetition that the service recognized.
    Applied,
    /// Refused or lost: it has no effect and never will.
    Dropped,
}

/// What has really happened with one attempt.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// Who runs it.
    pub adapter: Adapter,
    /// Its request.
    pub request: Request,
    /// Until when its adapter may send.
    pub lease_end: Time,
    /// When its adapter first reported.
    pub reported_at: Option<Time>,
}

/// One call in one world.
#[derive(Clone)]
pub struct World {
    /// What the ledger knows.
    pub call: Option<Call>,
    /// The time.
    pub now: Time,
    /// What has really happened, per attempt.
    pub sides: Vec<Side>,
    /// How often the call took effect.
    pub effects: u8,
    /// A "not executed" that a source said of an attempt, and when; it is not booked yet.
    pub noted: Option<(u32, Time)>,
}

/// What tells two worlds apart.
pub type Key = [u8; 25];

impl World {
    /// Nothing has happened.
    pub fn new() -> Self {
        Self { call: None, now: Time::from_ms(1000), sides: Vec::new(), effects: 0, noted: None }
    }

    /// State of the call.
    pub fn state(&self) -> CallState {
        self.call.as_ref().map_or(CallState::Absent, |call| call.tip.state(self.now))
    }

    /// The attempt of a number, from 1.
    pub fn side(&self, attempt: u32) -> &Side {
        &self.sides[attempt as usize - 1]
    }

    /// The same, to change it.
    pub fn side_mut(&mut self, attempt: u32) -> &mut Side {
        &mut self.sides[attempt as usize - 1]
    }

    /// Whether an attempt may send yet.
    fn can_send(&self, side: &Side) -> bool {
        matches!(side.adapter, Adapter::Asking | Adapter::Ready) && self.now < side.lease_end
    }

    /// Whether the call has taken effect, or still may by an attempt made so far.
    pub fn may_have_effect(&self) -> bool {
        self.has_trace_outside() || self.sides.iter().any(|side| self.can_send(side))
    }

    /// Whether it has taken effect or a request is under way: what an operator can find out.
    pub fn has_trace_outside(&self) -> bool {
        self.effects > 0 || self.sides.iter().any(|side| side.request == Request::Net)
    }

    /// When the outside service forgets the key.
    pub fn window_end(&self) -> Option<Time> {
        self.call.as_ref().map(|call| call.tip.key_window_from.plus_ms(WINDOW))
    }

    /// When a source's "not executed" about an attempt becomes final.
    pub fn final_from(&self, side: &Side) -> Time {
        side.reported_at.unwrap_or(side.lease_end).plus_ms(SETTLE)
    }

    /// Everything that can still matter to a rule or to somebody in the world: times as
    /// distances from now, cut where only "over" is left; of an attempt that is closed and
    /// whose adapter is gone, only what its request may still do. Numbers of events are left
    /// out, since no rule looks at them.
    pub fn key(&self, effect: Effect) -> Key {
        let mut key = [0; 25];
        let Some(call) = &self.call else { return key };
        let tip = &call.tip;
        key[0] = 1 + self.effects;
        key[1] = match tip.fixed {
            None => 0,
            Some(Fixed::Ok) => 1,
            Some(Fixed::Terminal) => 2,
        };
        key[2] = u8::from(tip.abandoned) | u8::from(tip.conflict) << 1;
        key[3] = byte(tip.unsettled_older.into()) | byte(tip.ok_attempt.unwrap_or(0).into()) << 2;
        if effect == Effect::Keyed {
            key[4] = byte(tip.key_window_from.plus_ms(WINDOW).ms_since(self.now));
        }
        if let Some((n, asked_at)) = self.noted {
            let attempt = call.attempt(n).expect("the ledger knows it");
            let is_final_from = attempt.ended_at().unwrap_or(self.now).plus_ms(SETTLE);
            // On an attempt that is closed nothing can be booked any more.
            if !is_closed(attempt) {
                key[23] = byte(n.into());
                key[24] = byte(is_final_from.ms_since(asked_at));
            }
        }
        for (index, side) in self.sides.iter().enumerate() {
            let attempt = call.attempt(index as u32 + 1).expect("the ledger knows it");
            let is_newest = index + 1 == self.sides.len();
            let part = self.part(effect, attempt, side, is_newest);
            key[5 + index * part.len()..][..part.len()].copy_from_slice(&part);
        }
        key
    }

    /// One attempt's part of the key.
    fn part(&self, effect: Effect, attempt: &Attempt, side: &Side, is_newest: bool) -> [u8; 6] {
        // Who did not get the answer within the lease never will.
        let late = side.adapter == Adapter::Asking && self.now >= side.lease_end;
        let adapter = if late { Adapter::Gone } else { side.adapter };
        let (is_gone, is_asked) = (adapter == Adapter::Gone, effect == Effect::Queryable);
        let settled = attempt.settled.and_then(|settled| settled.status);
        let is_closed = is_closed(attempt);
        let is_over = is_gone && request_is_over(side.request) && (is_closed || !is_asked);
        let request = if is_over { Request::None } else { side.request };

        let mut part = [0; 6];
        part[0] = 1 + adapter as u8 * 4 + request as u8;
        if is_gone && is_closed && !is_newest {
            return part;
        }
        if let Some(definite) = attempt.definite().filter(|_| is_gone) {
            part[1] = 64 + kind(definite.status);
            return part;
        }
        if attempt.is_open() || matches!(adapter, Adapter::Asking | Adapter::Ready) {
            part[1] = byte(side.lease_end.ms_since(self.now));
        }
        // Once nobody can report, how an attempt came to be unknown makes no difference, but
        // for the time from which a source is asked.
        if is_gone && !is_asked && !attempt.is_open() {
            part[2] = 32;
        } else {
            part[1] |= u8::from(attempt.lease_expired) << 3;
            part[2] = attempt.outcomes.iter().fold(0, |key, mark| key * 5 + kind(mark.status));
        }
        part[3] = u8::from(attempt.settled.is_some()) + settled.map_or(0, kind);
        if is_asked && !is_closed {
            let ended_at = attempt.ended_at().unwrap_or(self.now);
            part[4] = byte(ended_at.plus_ms(SETTLE).ms_since(self.now));
            part[5] = byte(self.final_from(side).ms_since(self.now));
        }
        part
    }
}

fn is_closed(attempt: &Attempt) -> bool {
    let settled = attempt.settled.and_then(|settled| settled.status);
    attempt.definite().is_some() || settled.is_some()
}

fn request_is_over(request: Request) -> bool {
    request != Request::Net
}

/// Timeout and unknown mean the same to every rule.
fn kind(status: OutcomeStatus) -> u8 {
    match status {
        OutcomeStatus::Timeout | OutcomeStatus::Unknown => 1,
        OutcomeStatus::Ok => 2,
        OutcomeStatus::RetryableError => 3,
        OutcomeStatus::TerminalError => 4,
    }
}

fn byte(number: u64) -> u8 {
    u8::try_from(number).expect("what is counted here is small")
}
