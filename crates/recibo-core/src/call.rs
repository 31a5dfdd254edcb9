//! A call, folded from its events. Planning a write and reading a record use the same fold.
//!
//! What a decision needs has a fixed size, however many attempts a call has: a [`Tip`] holds
//! the newest attempt and counts the rest.

use std::collections::BTreeMap;

use crate::effect::Effect;
use crate::event::{Body, Event, StatusChecked};
use crate::status::{AttemptStatus, CallState, CheckAnswer, OutcomeStatus, ResolvedAs, SettledBy};
use crate::time::Time;

/// One try at a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// From 1 without gaps.
    pub number: u32,
    /// The event that opened it.
    pub started_seq: u64,
    /// When its lease ends; `None` for a one-shot, which never was open.
    pub lease_expires_at: Option<Time>,
    /// Whether an event says that the lease ended without an outcome.
    pub lease_expired: bool,
    /// Its outcomes, in order. At most three: an indefinite one, a definite one, and a
    /// success after an error.
    pub outcomes: Vec<OutcomeMark>,
    /// What settled it from outside, if anything did.
    pub settled: Option<Settled>,
}

/// Where an outcome stands and what it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutcomeMark {
    /// Its event.
    pub seq: u64,
    /// Ledger time of the event.
    pub at: Time,
    /// What was reported.
    pub status: OutcomeStatus,
    /// Whether it came after another outcome or after the lease.
    pub late: bool,
}

/// What settled an attempt that had no definite outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Who.
    pub by: SettledBy,
    /// As what; `None` if an operator gave the call up: nobody knows then.
    pub status: Option<OutcomeStatus>,
    /// The event that did.
    pub seq: u64,
}

impl Attempt {
    /// The first definite outcome.
    pub fn definite(&self) -> Option<&OutcomeMark> {
        self.outcomes.iter().find(|outcome| outcome.status.is_definite())
    }

    /// The outcome that the record shows: the first definite one, else the last.
    pub fn deciding(&self) -> Option<&OutcomeMark> {
        self.definite().or(self.outcomes.last())
    }

    /// Whether no outcome, no end of lease and no settlement is on record.
    pub fn is_open(&self) -> bool {
        self.outcomes.is_empty() && !self.lease_expired && self.settled.is_none()
    }

    /// Whether it is open and its lease lives.
    pub fn is_live(&self, now: Time) -> bool {
        self.is_open() && self.lease_expires_at.is_some_and(|end| now < end)
    }

    /// Whether the lease is over and no event says so yet.
    pub fn is_expiry_due(&self, now: Time) -> bool {
        self.is_open() && !self.is_live(now)
    }

    /// What the attempt reads as.
    pub fn status(&self, now: Time) -> AttemptStatus {
        let settled = self.settled.and_then(|settled| settled.status);
        match (self.definite(), settled, self.outcomes.last()) {
            (Some(definite), _, _) => definite.status.as_attempt(),
            (None, Some(status), _) => status.as_attempt(),
            (None, None, Some(last)) => last.status.as_attempt(),
            (None, None, None) if self.is_live(now) => AttemptStatus::Started,
            (None, None, None) => AttemptStatus::Unknown,
        }
    }

    /// Whether it is over, may have taken effect, and nobody has settled it.
    pub fn is_unsettled(&self, now: Time) -> bool {
        self.settled.is_none() && self.status(now).is_indefinite()
    }

    /// When it ended: its first reported outcome, else the end of its lease.
    pub fn ended_at(&self) -> Option<Time> {
        self.outcomes.first().map(|outcome| outcome.at).or(self.lease_expires_at)
    }

    fn knows_of_no_effect(&self) -> bool {
        let reported =
            self.outcomes.iter().any(|o| o.status.is_definite() && o.status != OutcomeStatus::Ok);
        reported || self.settled_as().is_some_and(|status| status != OutcomeStatus::Ok)
    }

    fn settled_as(&self) -> Option<OutcomeStatus> {
        self.settled.and_then(|settled| settled.status)
    }
}

/// A state that never changes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// It took effect.
    Ok,
    /// It failed for good.
    Terminal,
}

/// What decisions need of a call. Its size does not grow with the attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    /// Frozen by the first attempt.
    pub effect: Effect,
    /// The call's first event.
    pub first_seq: u64,
    /// Ledger time of the call's first event.
    pub recorded_at: Time,
    /// From when a key window counts: the start of attempt 1, never later than `recorded_at`.
    pub key_window_from: Time,
    /// The call's last event.
    pub version: u64,
    /// How many attempts before the newest are over, may have taken effect and are not settled.
    pub unsettled_older: u32,
    /// The first attempt that succeeded.
    pub ok_attempt: Option<u32>,
    /// Set once the state cannot change any more.
    pub fixed: Option<Fixed>,
    /// Whether an operator gave the call up.
    pub abandoned: bool,
    /// Whether effect and no-effect evidence contradict each other.
    pub conflict: bool,
    /// The newest attempt.
    pub newest: Attempt,
}

impl Tip {
    /// How many attempts there are.
    pub fn attempts(&self) -> u32 {
        self.newest.number
    }

    /// The state at a ledger time; leases are judged here, at read time.
    pub fn state(&self, now: Time) -> CallState {
        match self.fixed {
            Some(Fixed::Ok) => return CallState::Ok,
            Some(Fixed::Terminal) => return CallState::Terminal,
            None if self.newest.is_live(now) => return CallState::InFlight,
            None => {}
        }
        let unsettled = self.unsettled_older > 0 || self.newest.is_unsettled(now);
        if unsettled && !self.effect.is_repeatable() {
            return CallState::Unknown;
        }
        if self.abandoned {
            return CallState::Abandoned;
        }
        match self.newest.status(now) {
            AttemptStatus::Ok => CallState::Ok,
            AttemptStatus::TerminalError => CallState::Terminal,
            AttemptStatus::RetryableError => CallState::Retryable,
            AttemptStatus::Started => CallState::InFlight,
            AttemptStatus::Timeout | AttemptStatus::Unknown => CallState::Unknown,
        }
    }
}

/// A call in memory: its tip, and those older attempts that are at hand. Planning loads the
/// ones that a write touches; reading a whole call has all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What decisions need.
    pub tip: Tip,
    /// Attempts before the newest, by number.
    pub older: BTreeMap<u32, Attempt>,
}

/// Folds all events of one call, in order. `None` if none of them opens an attempt.
pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<Call> {
    let mut call = None;
    for event in events {
        apply(&mut call, event.seq, event.at, &event.body);
    }
    call
}

/// Applies one event of the call.
///
/// # Panics
/// If an event other than an opening one comes first, or an attempt that the event touches is
/// not at hand: both are broken invariants of the caller.
pub fn apply(call: &mut Option<Call>, seq: u64, at: Time, body: &Body) {
    match body {
        Body::Started(started) => {
            let attempt = Attempt {
                number: started.attempt,
                started_seq: seq,
                lease_expires_at: Some(started.lease_expires_at),
                lease_expired: false,
                outcomes: Vec::new(),
                settled: None,
            };
            open(call, seq, at, at, started.facts.terms.effect, attempt);
        }
        Body::Recorded(recorded) => {
            let attempt = Attempt {
                number: recorded.attempt,
                started_seq: seq,
                lease_expires_at: None,
                lease_expired: false,
                outcomes: Vec::new(),
                settled: None,
            };
            let from = recorded.started_at.min(at);
            let call = open(call, seq, at, from, recorded.facts.terms.effect, attempt);
            call.outcome(recorded.attempt, seq, at, recorded.outcome.status, false);
        }
        Body::Finished(e) => known(call, seq).outcome(e.attempt, seq, at, e.outcome.status, e.late),
        Body::LeaseExpired { attempt, .. } => {
            known(call, seq).change(*attempt, at, |attempt| attempt.lease_expired = true);
        }
        Body::LeaseExtended { attempt, lease_expires_at, .. } => {
            let end = *lease_expires_at;
            known(call, seq).change(*attempt, at, |a| a.lease_expires_at = Some(end));
        }
        Body::StatusChecked(check) => known(call, seq).checked(check, seq, at),
        Body::Resolved { state, .. } => known(call, seq).resolved(*state, seq, at),
        Body::ScopeOpened(_) | Body::ScopeClosed { .. } | Body::PolicySet { .. } => {}
    }
}

fn known(call: &mut Option<Call>, seq: u64) -> &mut Call {
    let call = call.as_mut().expect("a call begins with an attempt");
    call.tip.version = seq;
    call
}

fn open(
    slot: &mut Option<Call>,
    seq: u64,
    at: Time,
    key_window_from: Time,
    effect: Effect,
    attempt: Attempt,
) -> &mut Call {
    match slot {
        None => {
            let tip = Tip {
                effect,
                first_seq: seq,
                recorded_at: at,
                key_window_from,
                version: seq,
                unsettled_older: 0,
                ok_attempt: None,
                fixed: None,
                abandoned: false,
                conflict: false,
                newest: attempt,
            };
            slot.insert(Call { tip, older: BTreeMap::new() })
        }
        Some(call) => {
            let tip = &mut call.tip;
            assert_eq!(attempt.number, tip.attempts() + 1, "attempts have no gaps");
            tip.version = seq;
            tip.unsettled_older += u32::from(tip.newest.is_unsettled(at));
            let before = std::mem::replace(&mut tip.newest, attempt);
            call.older.insert(before.number, before);
            call
        }
    }
}

impl Call {
    /// An attempt that is at hand.
    pub fn attempt(&self, number: u32) -> Option<&Attempt> {
        if number == self.tip.newest.number {
            Some(&self.tip.newest)
        } else {
            self.older.get(&number)
        }
    }

    /// Changes one attempt and keeps the count of the unsettled ones right.
    fn change(&mut self, number: u32, at: Time, change: impl FnOnce(&mut Attempt)) {
        if number == self.tip.newest.number {
            change(&mut self.tip.newest);
        } else {
            let attempt = self.older.get_mut(&number).expect("the attempt is at hand");
            let before = attempt.is_unsettled(at);
            change(attempt);
            let after = attempt.is_unsettled(at);
            self.tip.unsettled_older -= u32::from(before && !after);
            self.tip.unsettled_older += u32::from(after && !before);
        }
        if self.tip.fixed.is_none() && self.tip.state(at) == CallState::Terminal {
            self.tip.fixed = Some(Fixed::Terminal);
        }
    }

    fn outcome(&mut self, number: u32, seq: u64, at: Time, status: OutcomeStatus, late: bool) {
        let before = self.attempt(number).expect("the attempt is at hand");
        let is_first_definite = status.is_definite() && before.definite().is_none();
        let no_effect_before = before.knows_of_no_effect();
        // An operator's "it took effect" is about the call: with several attempts it does not
        // say which one did, so an error of one of them is no contradiction.
        let ok_before = before.settled.is_some_and(|settled| {
            settled.status == Some(OutcomeStatus::Ok)
                && (settled.by == SettledBy::StatusCheck || self.tip.attempts() == 1)
        });
        match status {
            OutcomeStatus::Ok => {
                self.tip.conflict |= no_effect_before;
                if is_first_definite {
                    self.succeeded(number);
                }
            }
            OutcomeStatus::RetryableError | OutcomeStatus::TerminalError => {
                self.tip.conflict |= ok_before;
            }
            OutcomeStatus::Timeout | OutcomeStatus::Unknown => {}
        }
        let mark = OutcomeMark { seq, at, status, late };
        self.change(number, at, |attempt| attempt.outcomes.push(mark));
    }

    /// Effect evidence: beats everything but a state that is already terminal.
    fn succeeded(&mut self, number: u32) {
        let once = matches!(self.tip.effect, Effect::Queryable | Effect::Opaque);
        match self.tip.fixed {
            Some(Fixed::Terminal) => self.tip.conflict = true,
            Some(Fixed::Ok) => {
                let other = self.tip.ok_attempt.is_some_and(|ok| ok != number);
                self.tip.conflict |= once && other;
                self.tip.ok_attempt.get_or_insert(number);
            }
            None => {
                self.tip.fixed = Some(Fixed::Ok);
                self.tip.ok_attempt = Some(number);
            }
        }
    }

    fn checked(&mut self, check: &StatusChecked, seq: u64, at: Time) {
        if !check.settles {
            return;
        }
        let status = match check.answer {
            CheckAnswer::ExecutedOk => OutcomeStatus::Ok,
            CheckAnswer::ExecutedFailed => OutcomeStatus::TerminalError,
            CheckAnswer::NotExecuted => OutcomeStatus::RetryableError,
            CheckAnswer::Pending | CheckAnswer::Indeterminate | CheckAnswer::Unsupported => return,
        };
        if status == OutcomeStatus::Ok {
            self.succeeded(check.attempt);
        }
        let settled = Settled { by: SettledBy::StatusCheck, status: Some(status), seq };
        self.change(check.attempt, at, |attempt| attempt.settled = Some(settled));
    }

    fn resolved(&mut self, state: ResolvedAs, seq: u64, at: Time) {
        self.tip.conflict = false;
        let status = match state {
            ResolvedAs::Ok => Some(OutcomeStatus::Ok),
            ResolvedAs::Retryable => Some(OutcomeStatus::RetryableError),
            ResolvedAs::Terminal => Some(OutcomeStatus::TerminalError),
            ResolvedAs::Abandoned => None,
        };
        if self.tip.fixed.is_none() {
            self.tip.abandoned = state == ResolvedAs::Abandoned;
            match state {
                ResolvedAs::Ok => self.tip.fixed = Some(Fixed::Ok),
                ResolvedAs::Terminal => self.tip.fixed = Some(Fixed::Terminal),
                ResolvedAs::Retryable | ResolvedAs::Abandoned => {}
            }
        }
        let settled = Settled { by: SettledBy::Resolution, status, seq };
        let unsettled: Vec<u32> = self.unsettled(at).collect();
        for number in unsettled {
            if status == Some(OutcomeStatus::Ok) {
                self.tip.ok_attempt.get_or_insert(number);
            }
            self.change(number, at, |attempt| attempt.settled = Some(settled));
        }
    }

    fn unsettled(&self, at: Time) -> impl Iterator<Item = u32> {
        let newest = std::iter::once(&self.tip.newest);
        self.older.values().chain(newest).filter(move |a| a.is_unsettled(at)).map(|a| a.number)
    }
}
