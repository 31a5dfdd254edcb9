//! The outcome of a granted attempt. The first one is always taken; later ones only as far
//! as they add evidence.

use super::{Draft, KnownCall, Place, Plan, Refusal, Signer, sign};
use crate::call::Attempt;
use crate::event::{Body, Finished, Outcome, Receipt};
use crate::id::{CallRef, Namespace};
use crate::status::OutcomeStatus;

/// A reported outcome, checked at the door.
#[derive(Clone, Debug)]
pub struct Report {
    /// The call.
    pub call: CallRef,
    /// The attempt.
    pub attempt: u32,
    /// What is reported.
    pub outcome: Outcome,
}

/// What must be looked up for a report.
pub struct ReportKnown<'a> {
    /// The call with the attempt at hand, if it is known.
    pub call: Option<&'a KnownCall>,
    /// Whether the lease token given is the attempt's.
    pub lease_token_is_right: bool,
    /// The attempt's outcomes so far.
    pub outcomes: &'a [Outcome],
    /// Who signs a success: the attempt's scope, else the living one that the report names.
    pub signer: Option<Signer<'a>>,
}

/// Answer to a report.
#[derive(Clone, Debug)]
pub struct Reported {
    /// What is appended.
    pub plan: Plan,
    /// Whether this outcome was reported before.
    pub replayed: bool,
}

/// Decides over a reported outcome.
pub fn report(
    place: &Place,
    namespace: &Namespace,
    report: &Report,
    known: &ReportKnown<'_>,
) -> Result<Reported, Refusal> {
    let call = known.call.ok_or(Refusal::CallNotFound)?;
    let attempt = call.call.attempt(report.attempt).ok_or(Refusal::AttemptNotFound)?;
    if !known.lease_token_is_right {
        return Err(Refusal::LeaseTokenWrong);
    }
    if known.outcomes.iter().any(|outcome| outcome.says_the_same(&report.outcome)) {
        return Ok(Reported { plan: Plan::default(), replayed: true });
    }
    let is_evidence = is_taken(attempt, report.outcome.status)?;

    let now = place.moment.now;
    let late = !attempt.outcomes.is_empty() || attempt.lease_expired || attempt.is_expiry_due(now);
    let receipt = match (report.outcome.status, report.outcome.output_hash, known.signer) {
        (OutcomeStatus::Ok, Some(output), Some(signer)) if !is_evidence => Some(Receipt {
            scope_id: signer.scope_id.clone(),
            token: sign(signer, namespace, &report.call, report.attempt, &call.facts, &output, now),
        }),
        _ => None,
    };
    let mut draft = Draft::begin(place, Some(call.call.clone()), &report.call);
    draft.append(Body::Finished(Finished {
        call: report.call.clone(),
        attempt: report.attempt,
        outcome: report.outcome.clone(),
        late,
        receipt,
    }));
    Ok(Reported { plan: draft.finish(), replayed: false })
}

/// Whether an outcome is taken, and then whether only as evidence: a success after an error.
fn is_taken(attempt: &Attempt, status: OutcomeStatus) -> Result<bool, Refusal> {
    let Some(definite) = attempt.definite() else {
        return if attempt.outcomes.is_empty() || status.is_definite() {
            Ok(false)
        } else {
            Err(Refusal::OutcomeConflict)
        };
    };
    let has_ok = attempt.outcomes.iter().any(|outcome| outcome.status == OutcomeStatus::Ok);
    if definite.status != OutcomeStatus::Ok && status == OutcomeStatus::Ok && !has_ok {
        Ok(true)
    } else {
        Err(Refusal::OutcomeConflict)
    }
}
