//! Status checks and resolutions.

use super::Ledger;
use super::call::{CallKey, Event};
use super::decide::Retry;
use super::words::{Answer, Resolved, State, Status};

/// An answer to a status check that the contract permits.
#[derive(Clone, Debug)]
pub enum CheckVerdict {
    Refused(u16, &'static str),
    /// Stored.
    Taken {
        counted: bool,
        /// When to ask again, where the answer came too early; `None`: what the decision says.
        retry: Option<Retry>,
    },
}

impl Ledger {
    /// What becomes of a status check.
    pub fn judge_check(
        &self,
        key: &CallKey,
        number: u32,
        answer: Answer,
        age_ms: u64,
    ) -> CheckVerdict {
        let Some(call) = self.call(key) else {
            return CheckVerdict::Refused(404, "call_not_found");
        };
        let fold = self.fold(call);
        let Some(attempt) = fold.attempt(number) else {
            return CheckVerdict::Refused(404, "attempt_not_found");
        };
        if !matches!(attempt.status(self.now), Status::Unknown | Status::Timeout) {
            return CheckVerdict::Refused(409, "attempt_settled");
        }
        if answer != Answer::NotExecuted {
            return CheckVerdict::Taken { counted: answer.settles_as().is_some(), retry: None };
        }
        // "if the check was made (`now - age_ms`) at or after the attempt's end + `settle_ms`"
        let Some(settle_ms) = call.terms.settle_ms else {
            return CheckVerdict::Taken { counted: false, retry: None };
        };
        let final_at = attempt.ended_at().expect("it has ended") + settle_ms;
        if self.now.saturating_sub(age_ms) >= final_at {
            return CheckVerdict::Taken { counted: true, retry: None };
        }
        let retry = Retry::Exactly(final_at.saturating_sub(self.now));
        CheckVerdict::Taken { counted: false, retry: Some(retry) }
    }

    /// The refusals that are all true of a resolution with a fresh ETag; none: it is taken.
    pub fn judge_resolution(
        &self,
        key: &CallKey,
        corrects: Option<u64>,
    ) -> Vec<(u16, &'static str)> {
        let Some(call) = self.call(key) else { return vec![(404, "call_not_found")] };
        let fold = self.fold(call);
        let state = fold.state(self.now);
        let mut refusals = Vec::new();
        if fold.attempts.iter().any(|attempt| attempt.is_live(self.now)) {
            refusals.push((409, "lease_live"));
        }
        let is_open = matches!(state, State::Unknown | State::Retryable) || fold.conflict;
        let rests_on = fold.resolved.filter(|_| fold.fixed.is_none()).map(|(_, seq)| seq);
        let may = match corrects {
            None => is_open,
            Some(seq) => rests_on == Some(seq),
        };
        if !may {
            refusals.push((409, "nothing_to_resolve"));
        }
        refusals
    }

    /// Books a status check.
    pub fn checked(
        &mut self,
        key: &CallKey,
        attempt: u32,
        answer: Answer,
        source: &str,
        counted: bool,
    ) {
        let index = self.find(key).expect("a known call");
        let source = source.to_owned();
        self.append(index, Event::Checked { at: self.now, attempt, answer, source, counted });
    }

    /// Books a resolution.
    pub fn resolved(
        &mut self,
        key: &CallKey,
        state: Resolved,
        reason: &str,
        corrects: Option<u64>,
        seq: u64,
    ) {
        let index = self.find(key).expect("a known call");
        let reason = reason.to_owned();
        self.append(index, Event::Resolved { at: self.now, state, reason, corrects, seq });
    }
}
