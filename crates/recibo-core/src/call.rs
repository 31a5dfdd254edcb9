//! A call, folded from its events. Planning a write and reading a record use the same fold.
//!
//! What a decision needs has a fixed size, however many attempts a call has: a [`Tip`] holds
//! the newest attempt and counts the rest.

use std::collections::BTreeMap;

use crate::effect::{Effect, Terms};
use crate::event::{Body, Event, Resolved, Restarted, StatusChecked};
use crate::status::{AttemptStatus, CallState, CheckAnswer, OutcomeStatus, ResolvedAs, SettledBy};
use crate::time::Time;

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

/// Folds all events of one call, and the restarts among them, in order. `None` if none of them
/// opens an attempt.
pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<Call> {
    let mut call = None;
    for event in events {
        apply(&mut call, event.seq, event.at, &event.body);
    }
    call
}

/// Applies one event of the call, or a restart.
///
/// # Panics
/// If an event of the call other than an opening one comes first, or an attempt that the event
/// touches is not at hand: both are broken invariants of the caller.
pub fn apply(call: &mut Option<Call>, seq: u64, at: Time, body: &Body) {
    match body {
        Body::Started(started) => {
            let lease = Lease::granted(at, started.lease_expires_at);
            let attempt = Attempt::opened(started.attempt, seq, Some(lease));
            open(call, seq, at, at, &started.facts.terms, attempt);
        }
        Body::Recorded(recorded) => {
            let attempt = Attempt::opened(recorded.attempt, seq, None);
            let from = recorded.started_at.min(at);
            let call = open(call, seq, at, from, &recorded.facts.terms, attempt);
            let outcome = &recorded.outcome;
            let (status, answered) = (outcome.status, outcome.answered);
            call.outcome(recorded.attempt, OutcomeMark { seq, at, status, late: false, answered });
        }
        Body::Finished(e) => {
            let (status, answered) = (e.outcome.status, e.outcome.answered);
            let mark = OutcomeMark { seq, at, status, late: e.late, answered };
            touched(call, seq, at).outcome(e.attempt, mark);
        }
        Body::LeaseExpired { attempt, .. } => {
            let call = call.as_mut().expect("a call begins with an attempt");
            call.tip.version = seq;
            call.change(*attempt, at, |attempt| attempt.lease_expired = true);
        }
        Body::LeaseExtended { attempt, lease_expires_at, .. } => {
            let lease = Lease::granted(at, *lease_expires_at);
            touched(call, seq, at).lease(*attempt, at, lease);
        }
        Body::StatusChecked(check) => touched(call, seq, at).checked(check, seq, at),
        Body::Resolved(resolved) => touched(call, seq, at).resolved(resolved, seq, at),
        Body::Restarted(restart) => {
            if let Some(call) = call {
                call.restarted(restart, at);
            }
        }
        Body::ScopeOpened(_) | Body::ScopeClosed { .. } | Body::PolicySet { .. } => {}
    }
}

/// The call that an event is about, with that event as its last.
fn touched(call: &mut Option<Call>, seq: u64, at: Time) -> &mut Call {
    let call = call.as_mut().expect("a call begins with an attempt");
    call.tip.version = seq;
    call.tip.aged_from = call.tip.aged_from.max(at);
    call
}

impl Attempt {
    fn opened(number: u32, seq: u64, lease: Option<Lease>) -> Self {
        Self {
            number,
            started_seq: seq,
            lease,
            lease_expired: false,
            outcomes: Vec::new(),
            settled: None,
            checks: Listed::default(),
        }
    }
}

fn open<'c>(
    slot: &'c mut Option<Call>,
    seq: u64,
    at: Time,
    key_window_from: Time,
    terms: &Terms,
    attempt: Attempt,
) -> &'c mut Call {
    let aged_from = at.max(attempt.lease_expires_at().unwrap_or(at));
    match slot {
        None => {
            let tip = Tip {
                effect: terms.effect,
                key_window_ms: terms.key_window_ms,
                first_seq: seq,
                recorded_at: at,
                key_window_from,
                version: seq,
                aged_from,
                unsettled_older: 0,
                unanswered_older: 0,
                ok_attempt: None,
                ok_count: 0,
                ok_late_at: None,
                fixed: None,
                rests_on: None,
                abandoned: false,
                conflict: false,
                resolutions: Listed::default(),
                newest: attempt,
            };
            slot.insert(Call { tip, older: BTreeMap::new() })
        }
        Some(call) => {
            let tip = &mut call.tip;
            assert_eq!(attempt.number, tip.attempts() + 1, "attempts have no gaps");
            tip.version = seq;
            tip.aged_from = tip.aged_from.max(aged_from);
            tip.unsettled_older += u32::from(tip.newest.is_unsettled(at));
            tip.unanswered_older += u32::from(tip.newest.is_unanswered(at));
            if tip.fixed.is_none() && !tip.abandoned {
                tip.rests_on = None;
            }
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

    /// Changes one attempt and keeps the counts over the older ones right.
    fn change(&mut self, number: u32, at: Time, change: impl FnOnce(&mut Attempt)) {
        let Self { tip, older } = self;
        if number == tip.newest.number {
            change(&mut tip.newest);
        } else {
            let attempt = older.get_mut(&number).expect("the attempt is at hand");
            let before = (attempt.is_unsettled(at), attempt.is_unanswered(at));
            change(attempt);
            let after = (attempt.is_unsettled(at), attempt.is_unanswered(at));
            let moved = |count: u32, before: bool, after: bool| {
                count - u32::from(before && !after) + u32::from(after && !before)
            };
            tip.unsettled_older = moved(tip.unsettled_older, before.0, after.0);
            tip.unanswered_older = moved(tip.unanswered_older, before.1, after.1);
        }
        if self.tip.fixed.is_none() && self.tip.state(at) == CallState::Terminal {
            self.tip.fixed = Some(Fixed::Terminal);
            self.tip.rests_on = None;
        }
    }

    fn lease(&mut self, number: u32, at: Time, lease: Lease) {
        self.tip.aged_from = self.tip.aged_from.max(lease.expires_at);
        self.change(number, at, |attempt| attempt.lease = Some(lease));
    }

    fn restarted(&mut self, restart: &Restarted, at: Time) {
        let window_end = self.tip.key_window_end();
        let newest = &self.tip.newest;
        if let Some(lease) = newest.lease.filter(|_| newest.is_open()) {
            self.lease(newest.number, at, lease.restarted(restart, at, window_end));
        }
    }

    fn outcome(&mut self, number: u32, mark: OutcomeMark) {
        let at = mark.at;
        let before = self.attempt(number).expect("the attempt is at hand");
        let is_first_definite = mark.status.is_definite() && before.definite().is_none();
        let no_effect_before = before.knows_of_no_effect();
        // An operator's "it took effect" is about the call: with several attempts it does not
        // say which one did, so an error of one of them is no contradiction.
        let ok_before = before.settled.is_some_and(|settled| {
            settled.status == Some(OutcomeStatus::Ok)
                && (settled.by == SettledBy::StatusCheck || self.tip.attempts() == 1)
        });
        match mark.status {
            OutcomeStatus::Ok => {
                self.tip.conflict |= no_effect_before;
                if is_first_definite {
                    self.succeeded(number, mark.late.then_some(at));
                }
            }
            OutcomeStatus::RetryableError | OutcomeStatus::TerminalError => {
                self.tip.conflict |= ok_before;
                if self.tip.fixed.is_none() && !self.tip.abandoned {
                    self.tip.rests_on = None;
                }
            }
            OutcomeStatus::Timeout | OutcomeStatus::Unknown => {}
        }
        self.change(number, at, |attempt| attempt.outcomes.push(mark));
    }

    /// Effect evidence: beats everything but a state that is already terminal. `late_at` is when
    /// it came, if it came after the caller may have given up.
    fn succeeded(&mut self, number: u32, late_at: Option<Time>) {
        let counted = self.attempt(number).is_some_and(Attempt::counts_as_ok);
        let tip = &mut self.tip;
        tip.ok_count += u32::from(!counted);
        let once = matches!(tip.effect, Effect::Queryable | Effect::Opaque);
        tip.conflict |= once && tip.ok_count > 1;
        match tip.fixed {
            Some(Fixed::Terminal) => tip.conflict = true,
            Some(Fixed::Ok) => {
                tip.rests_on = None;
                tip.ok_attempt.get_or_insert(number);
            }
            None => {
                tip.fixed = Some(Fixed::Ok);
                tip.rests_on = None;
                tip.ok_attempt = Some(number);
                tip.ok_late_at = late_at;
            }
        }
    }

    fn checked(&mut self, check: &StatusChecked, seq: u64, at: Time) {
        self.change(check.attempt, at, |attempt| attempt.checks.add(seq));
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
            self.succeeded(check.attempt, Some(at));
        }
        let settled = Settled { by: SettledBy::StatusCheck, status: Some(status), seq };
        self.change(check.attempt, at, |attempt| attempt.settled = Some(settled));
    }

    /// An operator's word settles all attempts that nothing settled. One that corrects another
    /// first takes that one back.
    fn resolved(&mut self, resolved: &Resolved, seq: u64, at: Time) {
        if let Some(corrected) = resolved.corrects {
            self.take_back(corrected, at);
        }
        self.tip.resolutions.add(seq);
        self.tip.conflict = false;
        let status = match resolved.state {
            ResolvedAs::Ok => Some(OutcomeStatus::Ok),
            ResolvedAs::Retryable => Some(OutcomeStatus::RetryableError),
            ResolvedAs::Terminal => Some(OutcomeStatus::TerminalError),
            ResolvedAs::Abandoned => None,
        };
        let settled = Settled { by: SettledBy::Resolution, status, seq };
        // A word that the state rests on gives way to this one, evidence never does.
        let decides = self.tip.fixed.is_none() || self.tip.rests_on.is_some();
        let evident = self.numbers(Attempt::is_reported_ok).first().copied();
        if let (Some(_), Some(replaced)) = (self.tip.fixed, self.tip.rests_on) {
            self.replace(replaced, settled, at);
        }
        if decides {
            self.decide(resolved.state, evident, at);
        }
        let unsettled: Vec<u32> = self.numbers(|attempt| attempt.is_unsettled(at));
        for number in unsettled {
            if status == Some(OutcomeStatus::Ok) {
                self.tip.ok_attempt.get_or_insert(number);
                self.tip.ok_count += 1;
            }
            self.change(number, at, |attempt| attempt.settled = Some(settled));
        }
        // Last, since a settled attempt looks like evidence to what counts above.
        if decides {
            let rests_on_evidence = evident.is_some() && self.tip.fixed == Some(Fixed::Ok);
            self.tip.rests_on = (!rests_on_evidence).then_some(seq);
        }
    }

    /// What the replaced word settled is settled by the new one if that says the same, and open
    /// to it if not.
    fn replace(&mut self, replaced: u64, settled: Settled, at: Time) {
        let numbers = self.numbers(|attempt| attempt.settled.is_some_and(|s| s.seq == replaced));
        for number in numbers {
            let before = self.attempt(number).and_then(Attempt::settled_as);
            if before == settled.status {
                self.change(number, at, |attempt| attempt.settled = Some(settled));
            } else {
                self.unsettle(number, at);
            }
        }
        self.tip.ok_attempt = self.numbers(Attempt::counts_as_ok).first().copied();
    }

    fn unsettle(&mut self, number: u32, at: Time) {
        let before = self.attempt(number).is_some_and(Attempt::counts_as_ok);
        self.change(number, at, |attempt| attempt.settled = None);
        let after = self.attempt(number).is_some_and(Attempt::counts_as_ok);
        self.tip.ok_count -= u32::from(before && !after);
    }

    /// Lets a word decide. A success that was reported against an earlier word decides with it,
    /// unless the new word is `terminal` again.
    fn decide(&mut self, word: ResolvedAs, evident: Option<u32>, at: Time) {
        let tip = &mut self.tip;
        tip.fixed = match word {
            ResolvedAs::Terminal => Some(Fixed::Terminal),
            ResolvedAs::Ok => Some(Fixed::Ok),
            ResolvedAs::Retryable | ResolvedAs::Abandoned => evident.map(|_| Fixed::Ok),
        };
        let is_ok = tip.fixed == Some(Fixed::Ok);
        tip.abandoned = word == ResolvedAs::Abandoned && !is_ok;
        tip.ok_late_at = is_ok.then_some(at);
        if is_ok && tip.ok_attempt.is_none() {
            tip.ok_attempt = evident;
        }
    }

    /// Undoes the resolution that the state rests on: its attempts are unsettled again, and what
    /// evidence there is decides.
    fn take_back(&mut self, resolution: u64, at: Time) {
        let numbers = self.numbers(|attempt| attempt.settled.is_some_and(|s| s.seq == resolution));
        self.tip.fixed = None;
        self.tip.rests_on = None;
        self.tip.abandoned = false;
        self.tip.ok_late_at = None;
        for number in numbers {
            self.unsettle(number, at);
        }
        let evident = self.numbers(Attempt::counts_as_ok);
        self.tip.ok_attempt = evident.first().copied();
        if self.tip.ok_attempt.is_some() {
            self.tip.fixed = Some(Fixed::Ok);
        }
    }

    fn numbers(&self, which: impl Fn(&Attempt) -> bool) -> Vec<u32> {
        let newest = std::iter::once(&self.tip.newest);
        let attempts = self.older.values().chain(newest);
        attempts.filter(|attempt| which(attempt)).map(|attempt| attempt.number).collect()
    }
}
