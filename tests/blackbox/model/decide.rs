//! The decision table.

use super::call::Call;
use super::fold::{Attempt, Fold};
use super::words::{Effect, State, Status};
use super::{CallKey, Ledger};

/// `retry_after_ms` of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The answer has none.
    None,
    /// It is this.
    Exactly(u64),
    /// It lies between these: the contract does not say which of several attempts counts.
    Within(u64, u64),
}

/// What the table says of a call.
#[derive(Clone, Debug)]
pub struct Decision {
    pub kind: &'static str,
    /// The reasons that hold; any of them may be given.
    pub reasons: Vec<&'static str>,
    pub state: State,
    pub retry: Retry,
    /// The attempts that may be named as the one that decides; empty: there is none.
    pub attempts: Vec<u32>,
}

impl Ledger {
    /// What to do about a call, known or not.
    pub fn decide(&self, key: &CallKey) -> Decision {
        match self.call(key) {
            Some(call) => self.decide_known(call),
            None => Decision {
                kind: "proceed",
                reasons: vec!["first_attempt"],
                state: State::Absent,
                retry: Retry::None,
                attempts: Vec::new(),
            },
        }
    }

    /// What to do about a known call.
    pub fn decide_known(&self, call: &Call) -> Decision {
        let fold = self.fold(call);
        let state = fold.state(self.now);
        let (mut kind, reason) = self.by_state(call, state);
        let mut reasons = vec![reason];
        if kind == "proceed" {
            let used = fold.attempts.len() as u32;
            let exhausted = call.terms.max_attempts.is_some_and(|max| used >= max);
            if fold.conflict || exhausted {
                kind = "stop";
                reasons.clear();
            }
            if fold.conflict {
                reasons.push("conflict");
            }
            if exhausted {
                reasons.push("attempts_exhausted");
            }
        }
        let retry = match kind {
            "wait" => self.until_lease_end(&fold),
            "check_status" => self.until_settled(call, &fold),
            _ => Retry::None,
        };
        Decision { kind, reasons, state, retry, attempts: deciding(&fold, self.now) }
    }

    fn by_state(&self, call: &Call, state: State) -> (&'static str, &'static str) {
        match state {
            State::Absent => ("proceed", "first_attempt"),
            State::InFlight => ("wait", "lease_live"),
            State::Ok => ("reuse", "already_ok"),
            State::Terminal => ("stop", "terminal_error"),
            State::Abandoned => ("stop", "abandoned"),
            State::Retryable => ("proceed", "retry_allowed"),
            State::Unknown => match call.terms.effect {
                Effect::ReadOnly | Effect::Idempotent => ("proceed", "retry_allowed"),
                Effect::Keyed if self.is_inside_window(call) => ("proceed", "retry_allowed"),
                Effect::Keyed => ("stop", "key_window_over"),
                Effect::Queryable => ("check_status", "outcome_unknown"),
                Effect::Opaque => ("stop", "outcome_unknown"),
            },
        }
    }

    /// Whether the key window of a call counts as over since nobody can measure it.
    pub fn is_void(&self, call: &Call) -> bool {
        self.windows_void_until.is_some_and(|until| call.window_from <= until)
    }

    /// Whether the outside service still honours the key of a keyed call.
    pub fn is_inside_window(&self, call: &Call) -> bool {
        !self.is_void(call) && call.window_end().is_some_and(|end| self.now < end)
    }

    /// How long the lease of an open attempt has.
    pub fn until_lease_end(&self, fold: &Fold) -> Retry {
        let open = fold.attempts.iter().find(|attempt| attempt.is_live(self.now));
        let lease = open.and_then(|attempt| attempt.lease.as_ref()).expect("an open attempt");
        Retry::Exactly(lease.end - self.now)
    }

    /// How long until the outside service's answer is final. Which attempt that is about is not
    /// said where there are several.
    fn until_settled(&self, call: &Call, fold: &Fold) -> Retry {
        let settle_ms = call.terms.settle_ms.unwrap_or(0);
        let newest = fold.attempts.len() as u32;
        let counts =
            |attempt: &&Attempt| attempt.is_unsettled(self.now) || attempt.number == newest;
        let unsettled = fold.attempts.iter().filter(counts);
        let left: Vec<u64> = unsettled
            .filter_map(|attempt| attempt.ended_at())
            .map(|end| (end + settle_ms).saturating_sub(self.now))
            .collect();
        match (left.iter().min(), left.iter().max()) {
            (Some(min), Some(max)) if min == max => Retry::Exactly(*min),
            (Some(min), Some(max)) => Retry::Within(*min, *max),
            _ => Retry::Within(0, settle_ms),
        }
    }
}

/// "the one that decides (the ok one, the open one, else the newest)".
fn deciding(fold: &Fold, now: u64) -> Vec<u32> {
    if fold.state(now) == State::Ok {
        // One that a check or a word settled `ok` counts as that, also where it says otherwise.
        let counts = |a: &&Attempt| a.status(now) == Status::Ok || fold.counts_as_ok(a.number);
        let ok = fold.attempts.iter().filter(counts);
        let ok: Vec<u32> = ok.map(|attempt| attempt.number).collect();
        if !ok.is_empty() {
            return ok;
        }
    }
    let open = fold.attempts.iter().find(|attempt| attempt.is_live(now));
    open.or(fold.attempts.last()).map(|attempt| attempt.number).into_iter().collect()
}
