//! A call, folded from its events. Planning a write and reading a record use the same fold.
//!
//! What a decision needs has a fixed size, however many attempts a call has: a [`Tip`] holds
//! the newest attempt and counts the rest.

mod fold;

use std::collections::BTreeMap;

use crate::effect::Effect;
use crate::event::Restarted;
use crate::status::{AttemptStatus, CallState, OutcomeStatus, SettledBy};
use crate::time::Time;

pub use fold::{apply, fold};

/// One try at a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// From 1 without gaps.
    pub number: u32,
    /// The event that opened it.
    pub started_seq: u64,
    /// Its lease; `None` for a one-shot, which never was open.
    pub lease: Option<Lease>,
    /// Whether an event says that the lease ended without an outcome.
    pub lease_expired: bool,
    /// Its outcomes, in order. At most three: an indefinite one, a definite one, and a
    /// success after an error.
    pub outcomes: Vec<OutcomeMark>,
    /// What settled it from outside, if anything did.
    pub settled: Option<Settled>,
    /// The status checks of it.
    pub checks: Listed,
}

/// How long an attempt may stay open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// When the ledger stops believing in the attempt.
    pub expires_at: Time,
    /// How long it was when it was granted or renewed last.
    pub granted_ms: u64,
    /// What restarts have added since: together no more than `granted_ms`.
    pub added_ms: u64,
}

impl Lease {
    /// A lease that is granted or renewed now.
    fn granted(now: Time, expires_at: Time) -> Self {
        Self { expires_at, granted_ms: expires_at.ms_since(now), added_ms: 0 }
    }

    /// What a restart on another boot makes of it: it lives for the time that remained when the
    /// ledger was last seen. But restarts together let it live no longer than it was granted for,
    /// and inside a key window it stays there.
    fn restarted(self, restart: &Restarted, now: Time, key_window_end: Option<Time>) -> Self {
        if self.expires_at <= restart.last_at {
            return self;
        }
        let left = now.plus_ms(self.expires_at.ms_since(restart.last_at));
        // From here on it lives only because of the restart.
        let from = self.expires_at.max(now);
        let most = from.plus_ms(self.granted_ms.saturating_sub(self.added_ms));
        let end = match key_window_end {
            // A lease that was granted after the window, when nothing could collide, has no
            // such end.
            Some(window_end) if self.expires_at <= window_end => left.min(most).min(window_end),
            _ => left.min(most),
        };
        let expires_at = end.max(self.expires_at);
        let added_ms = self.added_ms + expires_at.ms_since(from);
        Self { expires_at, added_ms, ..self }
    }
}

/// Events of one kind: how many there are, and the newest, from which the others are found by
/// going back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// How many.
    pub count: u32,
    /// The newest.
    pub newest_seq: Option<u64>,
}

impl Listed {
    fn add(&mut self, seq: u64) {
        self.count = self.count.saturating_add(1);
        self.newest_seq = Some(seq);
    }
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
    /// Whether the caller saw the service's answer.
    pub answered: bool,
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
        self.is_open() && self.lease.is_some_and(|lease| now < lease.expires_at)
    }

    /// When its lease ends or ended; `None` without one, and where nobody knows.
    pub fn lease_expires_at(&self) -> Option<Time> {
        self.lease.map(|lease| lease.expires_at).filter(|end| *end < Time::MAX)
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
        self.outcomes.first().map(|outcome| outcome.at).or(self.lease_expires_at())
    }

    /// Whether it is unsettled and its caller saw no answer of the service either.
    fn is_unanswered(&self, now: Time) -> bool {
        let is_answered = self
            .outcomes
            .last()
            .is_some_and(|last| last.status == OutcomeStatus::Unknown && last.answered);
        self.is_unsettled(now) && !is_answered
    }

    fn is_reported_ok(&self) -> bool {
        self.definite().is_some_and(|outcome| outcome.status == OutcomeStatus::Ok)
    }

    /// Whether it counts as one that took effect: it was reported so, or settled so.
    fn counts_as_ok(&self) -> bool {
        self.is_reported_ok() || self.settled_as() == Some(OutcomeStatus::Ok)
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
    /// Frozen by the first attempt: see [`Terms::key_window_ms`].
    pub key_window_ms: Option<u64>,
    /// The call's first event.
    pub first_seq: u64,
    /// Ledger time of the call's first event.
    pub recorded_at: Time,
    /// From when a key window counts: the start of attempt 1, never later than `recorded_at`.
    pub key_window_from: Time,
    /// The call's last event.
    pub version: u64,
    /// The latest of its last event other than the end of a lease, and the ends of its leases.
    pub aged_from: Time,
    /// How many attempts before the newest are over, may have taken effect and are not settled.
    pub unsettled_older: u32,
    /// How many of these ended without an answer of the service.
    pub unanswered_older: u32,
    /// The first attempt that counts as one that took effect.
    pub ok_attempt: Option<u32>,
    /// How many attempts count as ones that took effect.
    pub ok_count: u32,
    /// When it became `ok` by a late outcome, a status check or a resolution.
    pub ok_late_at: Option<Time>,
    /// Set once the state cannot change any more, but by a resolution that corrects one.
    pub fixed: Option<Fixed>,
    /// The resolution that the state rests on, if it rests on nothing else.
    pub rests_on: Option<u64>,
    /// Whether an operator gave the call up.
    pub abandoned: bool,
    /// Whether effect and no-effect evidence contradict each other.
    pub conflict: bool,
    /// The resolutions of the call.
    pub resolutions: Listed,
    /// The newest attempt.
    pub newest: Attempt,
}

impl Tip {
    /// How many attempts there are.
    pub fn attempts(&self) -> u32 {
        self.newest.number
    }

    /// Where the key window of a keyed call ends; `None` without a window.
    pub fn key_window_end(&self) -> Option<Time> {
        (self.effect == Effect::Keyed)
            .then_some(self.key_window_ms?)
            .map(|window_ms| self.key_window_from.plus_ms(window_ms))
    }

    /// Whether an attempt is unsettled of which nobody saw an answer.
    pub fn is_unanswered(&self, now: Time) -> bool {
        self.unanswered_older > 0 || self.newest.is_unanswered(now)
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
