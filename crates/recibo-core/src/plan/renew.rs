//! The renewal of a lease: its holder still works.

use super::{Draft, KnownCall, Place, Plan, Refusal};
use crate::event::Body;
use crate::id::CallRef;
use crate::time::Time;

/// A renewal, checked at the door.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// The call.
    pub call: CallRef,
    /// The attempt.
    pub attempt: u32,
    /// How long the attempt may stay open from now on, in milliseconds.
    pub lease_ms: u64,
}

/// Answer to a renewal.
#[derive(Clone, Debug)]
pub struct Renewed {
    /// What is appended; nothing where the lease already ends so late.
    pub plan: Plan,
    /// When the lease ends now.
    pub lease_expires_at: Time,
}

/// Decides over a renewal: a lease that lives gets another end, never an earlier one, and never
/// one beyond the key window that it was granted in.
pub fn renew(
    place: &Place,
    renewal: &Renewal,
    known: Option<&KnownCall>,
    lease_token_is_right: bool,
) -> Result<Renewed, Refusal> {
    let known = known.ok_or(Refusal::CallNotFound)?;
    let attempt = known.call.attempt(renewal.attempt).ok_or(Refusal::AttemptNotFound)?;
    if !lease_token_is_right {
        return Err(Refusal::LeaseTokenWrong);
    }
    let now = place.moment.now;
    let lease = attempt.lease.filter(|_| attempt.is_live(now)).ok_or(Refusal::LeaseOver)?;
    let wanted = now.plus_ms(renewal.lease_ms);
    let end = match known.call.tip.key_window_end() {
        Some(window_end) if lease.expires_at <= window_end => wanted.min(window_end),
        _ => wanted,
    };
    if end <= lease.expires_at {
        return Ok(Renewed { plan: Plan::default(), lease_expires_at: lease.expires_at });
    }
    let mut draft = Draft::begin(place, Some(known.call.clone()), &renewal.call);
    draft.append(Body::LeaseExtended {
        call: renewal.call.clone(),
        attempt: renewal.attempt,
        lease_expires_at: end,
    });
    Ok(Renewed { plan: draft.finish(), lease_expires_at: end })
}
