//! A resolution: an operator says what became of a call.

use super::{Draft, KnownCall, Place, Plan, Refusal};
use crate::event::{Body, Resolved};
use crate::id::CallRef;
use crate::status::{CallState, ResolvedAs};

/// A resolution, checked at the door.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// The call.
    pub call: CallRef,
    /// The operator's word.
    pub state: ResolvedAs,
    /// In the operator's words, masked.
    pub reason: String,
    /// Whether something in the reason was masked.
    pub redacted: bool,
    /// Id of the API key that says so.
    pub by: String,
    /// The resolution that this one corrects.
    pub corrects: Option<u64>,
}

/// Decides over a resolution. `known` must have every unsettled attempt at hand, and every
/// attempt where the resolution corrects or replaces another one.
/// `is_current` says whether the operator saw the call as it is now.
pub fn resolve(
    place: &Place,
    resolution: &Resolution,
    known: Option<&KnownCall>,
    is_current: bool,
) -> Result<Plan, Refusal> {
    let known = known.ok_or(Refusal::CallNotFound)?;
    let tip = &known.call.tip;
    if !is_current {
        return Err(Refusal::VersionMismatch);
    }
    let now = place.moment.now;
    if tip.newest.is_live(now) {
        let lease_expires_at = tip.newest.lease_expires_at().unwrap_or(now);
        return Err(Refusal::LeaseLive { lease_expires_at });
    }
    let is_permitted = match resolution.corrects {
        // Evidence is never overruled, and nobody corrects a word that has been corrected.
        Some(corrected) => tip.rests_on == Some(corrected),
        None => tip.conflict || matches!(tip.state(now), CallState::Unknown | CallState::Retryable),
    };
    if !is_permitted {
        return Err(Refusal::NothingToResolve);
    }
    let mut draft = Draft::begin(place, Some(known.call.clone()), &resolution.call);
    draft.append(Body::Resolved(Resolved {
        call: resolution.call.clone(),
        state: resolution.state,
        reason: resolution.reason.clone(),
        redacted: resolution.redacted,
        by: Some(resolution.by.clone()),
        corrects: resolution.corrects,
    }));
    Ok(draft.finish())
}
