//! Outcomes and one-shots: section 2, *Late and repeated outcomes*, and section 6.

use super::Ledger;
use super::call::{Call, CallKey, Event, Outcome, Terms};
use super::fold::Attempt;
use super::words::{Effect, Status};

/// An answer to an outcome that the contract permits.
#[derive(Clone, Debug)]
pub enum OutcomeVerdict {
    Refused(u16, &'static str),
    Replayed,
    Taken {
        late: bool,
        /// It is kept as evidence only: an `ok` after an error.
        is_evidence: bool,
        /// The scopes that may sign; empty: there is no token.
        signers: Vec<String>,
    },
}

/// A one-shot as it is sent, hashed.
#[derive(Clone, Debug, PartialEq)]
pub struct ShotAsk {
    pub key: CallKey,
    pub tool: String,
    pub input_hash: String,
    pub twin_hash: String,
    pub scope: String,
    pub effect: Option<Effect>,
    pub attempt: Option<u32>,
    pub operation_key: Option<String>,
    pub started_at: u64,
    pub outcome: Outcome,
}

/// An answer to a one-shot that the contract permits.
#[derive(Clone, Debug)]
pub enum ShotVerdict {
    Refused(u16, &'static str),
    Replayed(u32),
    Recorded { attempt: u32, terms: Terms, is_signed: bool },
}

impl Ledger {
    /// What becomes of an outcome.
    pub fn judge_outcome(
        &self,
        key: &CallKey,
        number: u32,
        lease_token: &str,
        outcome: &Outcome,
        named: Option<&str>,
    ) -> OutcomeVerdict {
        let Some(call) = self.call(key) else {
            return OutcomeVerdict::Refused(404, "call_not_found");
        };
        let fold = self.fold(call);
        let Some(attempt) = fold.attempt(number) else {
            return OutcomeVerdict::Refused(404, "attempt_not_found");
        };
        if attempt.lease.as_ref().is_none_or(|lease| lease.token != lease_token) {
            return OutcomeVerdict::Refused(403, "lease_token_wrong");
        }
        if attempt.outcomes.iter().any(|(_, _, before)| before.is_same(outcome)) {
            return OutcomeVerdict::Replayed;
        }
        let Some(is_evidence) = is_taken(attempt, outcome.status) else {
            return OutcomeVerdict::Refused(409, "outcome_conflict");
        };
        let late = !attempt.outcomes.is_empty() || !attempt.is_live(self.now);
        let is_signed = outcome.status == Status::Ok && !is_evidence;
        let signers = if is_signed { self.signers(attempt, named) } else { Vec::new() };
        OutcomeVerdict::Taken { late, is_evidence, signers }
    }

    /// The attempt's own scope while it lives; else the living one that the outcome names.
    fn signers(&self, attempt: &Attempt, named: Option<&str>) -> Vec<String> {
        let named = named.filter(|scope| self.can_sign(scope));
        let own = Some(attempt.scope.as_str()).filter(|scope| self.can_sign(scope));
        own.or(named).into_iter().map(str::to_owned).collect()
    }

    /// Books an outcome that was taken.
    pub fn reported(&mut self, key: &CallKey, attempt: u32, late: bool, outcome: Outcome) {
        let index = self.find(key).expect("a known call");
        self.append(index, Event::Finished { at: self.now, attempt, late, outcome });
    }

    /// What becomes of a one-shot. More than one answer only where the contract does not say
    /// which of several obstacles comes first.
    pub fn judge_shot(&self, ask: &ShotAsk) -> Vec<ShotVerdict> {
        let known = self.call(&ask.key);
        if let Some(call) = known {
            if call.tool != ask.tool || call.input_hash != ask.input_hash {
                return vec![ShotVerdict::Refused(422, "input_mismatch")];
            }
            if let Some(attempt) = self.same_shot(call, ask) {
                return vec![ShotVerdict::Replayed(attempt)];
            }
        }
        let key = ask.operation_key.as_deref();
        let terms = match self.frozen(known, &ask.tool, ask.effect, (None, None), key) {
            Ok(terms) => terms,
            Err(refusals) => {
                let refused = |(status, code)| ShotVerdict::Refused(status, code);
                return refusals.into_iter().map(refused).collect();
            }
        };
        let mut found = Vec::new();
        let fold = known.map(|call| self.fold(call));
        let next = fold.as_ref().map_or(1, |fold| fold.attempts.len() as u32 + 1);
        if ask.attempt.is_some_and(|attempt| attempt != next) {
            found.push(ShotVerdict::Refused(409, "attempt_conflict"));
        }
        if fold.is_some_and(|fold| fold.attempts.iter().any(|a| a.is_live(self.now))) {
            found.push(ShotVerdict::Refused(409, "attempt_open"));
        }
        if known.is_none() && self.holder(key, &ask.key).is_some() {
            found.push(ShotVerdict::Refused(409, "operation_key_taken"));
        }
        if self.scope_state(&ask.scope).is_none() {
            found.push(ShotVerdict::Refused(404, "scope_not_found"));
        }
        if found.is_empty() {
            // Like an outcome it is recorded even if nobody can sign it any more.
            let is_signed = ask.outcome.status == Status::Ok && self.can_sign(&ask.scope);
            found.push(ShotVerdict::Recorded { attempt: next, terms, is_signed });
        }
        found
    }

    /// "The same content as an existing one-shot of the call (same attempt, or none given)."
    /// The scope may be another one: who repeats a write after a restart has a new one.
    fn same_shot(&self, call: &Call, ask: &ShotAsk) -> Option<u32> {
        if ask.effect.is_some_and(|effect| effect != call.terms.effect) {
            return None;
        }
        if ask.operation_key.is_some() && ask.operation_key != call.operation_key {
            return None;
        }
        let mut number = 0;
        for event in &call.events {
            match event {
                Event::Started { .. } => number += 1,
                Event::Recorded { started_at, outcome, .. } => {
                    number += 1;
                    let is_same = *started_at == ask.started_at
                        && outcome.is_same(&ask.outcome)
                        && outcome.duration_ms == ask.outcome.duration_ms
                        && outcome.answered == ask.outcome.answered;
                    if is_same && ask.attempt.is_none_or(|attempt| attempt == number) {
                        return Some(number);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Books a one-shot that was recorded.
    pub fn recorded(&mut self, ask: &ShotAsk, terms: Terms, outcome: Outcome) {
        let index = self.find(&ask.key).unwrap_or_else(|| {
            self.calls.push(Call {
                key: ask.key.clone(),
                tool: ask.tool.clone(),
                input_hash: ask.input_hash.clone(),
                twin_hash: ask.twin_hash.clone(),
                terms,
                operation_key: ask.operation_key.clone(),
                recorded_at: self.now,
                window_from: ask.started_at.min(self.now),
                events: Vec::new(),
            });
            self.calls.len() - 1
        });
        let recorded = Event::Recorded {
            at: self.now,
            started_at: ask.started_at,
            scope: ask.scope.clone(),
            outcome,
        };
        self.append(index, recorded);
    }
}

/// Whether an outcome is taken after what the attempt has, and then whether only as evidence.
fn is_taken(attempt: &Attempt, status: Status) -> Option<bool> {
    match attempt.definite() {
        None if attempt.outcomes.is_empty() || status.is_definite() => Some(false),
        None => None,
        Some((_, _, definite)) => {
            let has_ok = attempt.outcomes.iter().any(|(_, _, o)| o.status == Status::Ok);
            (definite.status.is_error() && status == Status::Ok && !has_ok).then_some(true)
        }
    }
}
