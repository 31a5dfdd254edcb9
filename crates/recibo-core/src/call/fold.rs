//! Folding events into a call.

use std::collections::BTreeMap;

use super::{Attempt, Call, Fixed, Lease, Listed, OutcomeMark, Settled, Tip};
use crate::effect::{Effect, Terms};
use crate::event::{Body, Event, Resolved, Restarted, StatusChecked};
use crate::status::{CallState, CheckAnswer, OutcomeStatus, ResolvedAs, SettledBy};
use crate::time::Time;

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
