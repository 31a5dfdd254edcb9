//! A status check: the outside service was asked what became of an attempt.

use super::{Draft, KnownCall, Place, Plan, Refusal};
use crate::call::Attempt;
use crate::effect::Terms;
use crate::event::{Body, StatusChecked};
use crate::id::CallRef;
use crate::status::CheckAnswer;
use crate::time::Time;

/// A status check, checked at the door.
#[derive(Clone, Debug)]
pub struct Check {
    /// The call.
    pub call: CallRef,
    /// The attempt.
    pub attempt: u32,
    /// What the service said.
    pub answer: CheckAnswer,
    /// Who was asked, masked.
    pub source: String,
    /// How long ago, in milliseconds.
    pub age_ms: u64,
    /// What the service calls the effect, masked.
    pub provider_ref: Option<String>,
    /// Whether something here was masked.
    pub redacted: bool,
}

/// Answer to a status check.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What is appended.
    pub plan: Plan,
    /// For a "not executed" that came too early: when to ask again, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// Decides over a status check. Every answer is stored; some settle the attempt.
pub fn check(place: &Place, check: &Check, known: Option<&KnownCall>) -> Result<Checked, Refusal> {
    let known = known.ok_or(Refusal::CallNotFound)?;
    let attempt = known.call.attempt(check.attempt).ok_or(Refusal::AttemptNotFound)?;
    let now = place.moment.now;
    if !attempt.status(now).is_indefinite() {
        return Err(Refusal::AttemptSettled);
    }
    let (settles, retry_after_ms) = match check.answer {
        CheckAnswer::ExecutedOk | CheckAnswer::ExecutedFailed => (true, None),
        CheckAnswer::NotExecuted => counts(attempt, known.terms(), now, check.age_ms),
        CheckAnswer::Pending | CheckAnswer::Indeterminate | CheckAnswer::Unsupported => {
            (false, None)
        }
    };
    let mut draft = Draft::begin(place, Some(known.call.clone()), &check.call);
    draft.append(Body::StatusChecked(StatusChecked {
        call: check.call.clone(),
        attempt: check.attempt,
        answer: check.answer,
        source: check.source.clone(),
        age_ms: check.age_ms,
        provider_ref: check.provider_ref.clone(),
        settles,
        redacted: check.redacted,
    }));
    Ok(Checked { plan: draft.finish(), retry_after_ms })
}

/// "Not executed" counts if the question was asked at or after the attempt's end plus the time
/// that the service needs to be sure. Without such a time it never counts.
fn counts(attempt: &Attempt, terms: &Terms, now: Time, age_ms: u64) -> (bool, Option<u64>) {
    let (Some(end), Some(settle_ms)) = (attempt.ended_at(), terms.settle_ms) else {
        return (false, None);
    };
    let final_from = end.plus_ms(settle_ms);
    let asked_at = Time::from_ms(now.ms().saturating_sub(age_ms));
    if asked_at >= final_from { (true, None) } else { (false, Some(final_from.ms_since(now))) }
}
