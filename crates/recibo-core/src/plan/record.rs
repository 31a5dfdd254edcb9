//! The one-shot: a finished attempt in one write. It records what has happened, so no state
//! refuses it; only an open attempt does.

use super::claim::twin_scope;
use super::{
    Draft, Holder, KnownCall, Place, Plan, Refusal, ScopeKnown, Wanted, free_key, same_input, sign,
    terms,
};
use crate::effect::{Policy, StatedTerms};
use crate::event::{Body, Facts, Outcome, Recorded};
use crate::hash::InputHash;
use crate::id::{CallRef, Labels, MessageId, Namespace, OperationKey, ScopeId, ToolName, Trace};
use crate::status::OutcomeStatus;
use crate::time::Time;

/// A finished attempt, checked at the door.
#[derive(Clone, Debug)]
pub struct OneShot {
    /// The call.
    pub call: CallRef,
    /// The attempt that the caller expects.
    pub attempt: Option<u32>,
    /// Whose key is to sign.
    pub scope_id: ScopeId,
    /// The tool.
    pub tool: ToolName,
    /// Hash of the canonical arguments.
    pub input_hash: InputHash,
    /// The effect that the caller states, and its numbers.
    pub terms: StatedTerms,
    /// The caller's own key.
    pub operation_key: Option<OperationKey>,
    /// A message that the call belongs to.
    pub message_id: Option<MessageId>,
    /// Labels, masked.
    pub labels: Labels,
    /// The caller's trace.
    pub trace: Option<Trace>,
    /// By the caller's clock.
    pub started_at: Time,
    /// What happened; its `redacted` covers the labels too.
    pub outcome: Outcome,
    /// What calls of the tool share that do the same, where that is not the input hash.
    pub twin_hash: Option<InputHash>,
}

impl OneShot {
    /// Whether a recorded attempt has the same content. The scope may differ: who repeats a
    /// write after a restart has a new one.
    pub fn is_same_as(&self, recorded: &Recorded) -> bool {
        let facts = &recorded.facts;
        self.tool == facts.tool
            && self.input_hash == facts.input_hash
            && self.terms.effect.is_none_or(|effect| effect == facts.terms.effect)
            && self
                .operation_key
                .as_ref()
                .is_none_or(|key| facts.operation_key.as_ref() == Some(key))
            && self.message_id == facts.message_id
            && self.labels == facts.labels
            && self.trace == facts.trace
            && self.started_at == recorded.started_at
            && self.outcome == recorded.outcome
    }
}

/// What must be looked up for a one-shot.
pub struct RecordKnown<'a> {
    /// The namespace's policy.
    pub policy: &'a Policy,
    /// The call, if it is known.
    pub call: Option<&'a KnownCall>,
    /// The one-shot attempt of this call with the same content: the one named, if one is.
    pub same: Option<u32>,
    /// Another call that holds the operation key.
    pub holder: Option<&'a Holder>,
    /// The scope.
    pub scope: ScopeKnown<'a>,
}

/// Answer to a one-shot.
#[derive(Clone, Debug)]
pub struct Recording {
    /// What is appended.
    pub plan: Plan,
    /// The attempt.
    pub attempt: u32,
    /// Whether it was recorded before.
    pub replayed: bool,
}

/// Decides over a one-shot.
pub fn record(
    place: &Place,
    namespace: &Namespace,
    shot: &OneShot,
    known: &RecordKnown<'_>,
) -> Result<Recording, Refusal> {
    let wanted = Wanted {
        tool: &shot.tool,
        input_hash: &shot.input_hash,
        terms: shot.terms,
        operation_key: shot.operation_key.as_ref(),
    };
    if let Some(call) = known.call {
        same_input(call, &wanted)?;
    }
    if let Some(attempt) = known.same {
        return Ok(Recording { plan: Plan::default(), attempt, replayed: true });
    }
    let terms = terms(known.call, &wanted, known.policy)?;
    let attempt = free_attempt(place.moment.now, shot, known.call)?;
    if known.call.is_none() {
        free_key(known.holder)?;
    }
    let signer = match known.scope {
        ScopeKnown::Open(signer) => Some(signer),
        // What happened is recorded even if nobody can sign it any more.
        ScopeKnown::Gone => None,
        ScopeKnown::Absent => return Err(Refusal::ScopeNotFound),
    };

    let (operation_key, twin_hash, twin_scope) = match known.call {
        Some(KnownCall { facts, .. }) => {
            (facts.operation_key.clone(), facts.twin_hash, facts.twin_scope)
        }
        None => (
            shot.operation_key.clone(),
            shot.twin_hash.filter(|hash| *hash != shot.input_hash),
            twin_scope(known.policy, &shot.tool),
        ),
    };
    let facts = Facts {
        tool: shot.tool.clone(),
        input_hash: shot.input_hash,
        terms,
        operation_key,
        message_id: shot.message_id.clone(),
        labels: shot.labels.clone(),
        trace: shot.trace,
        redacted: false,
        twin_hash,
        twin_scope,
    };
    let token = match (shot.outcome.status, shot.outcome.output_hash, signer) {
        (OutcomeStatus::Ok, Some(output), Some(signer)) => {
            Some(sign(signer, namespace, &shot.call, attempt, &facts, &output, place.moment.now))
        }
        _ => None,
    };
    let mut draft = Draft::begin(place, known.call.map(|known| known.call.clone()), &shot.call);
    draft.append(Body::Recorded(Recorded {
        call: shot.call.clone(),
        attempt,
        facts,
        scope_id: shot.scope_id.clone(),
        started_at: shot.started_at,
        outcome: shot.outcome.clone(),
        token,
    }));
    Ok(Recording { plan: draft.finish(), attempt, replayed: false })
}

fn free_attempt(now: Time, shot: &OneShot, known: Option<&KnownCall>) -> Result<u32, Refusal> {
    let newest = known.map(|known| &known.call.tip.newest);
    let next = newest.map_or(1, |newest| newest.number + 1);
    if shot.attempt.is_some_and(|expected| expected != next) {
        return Err(Refusal::AttemptConflict { next });
    }
    match newest.filter(|newest| newest.is_live(now)) {
        Some(open) => Err(Refusal::AttemptOpen {
            attempt: open.number,
            lease_expires_at: open.lease_expires_at().unwrap_or(now),
        }),
        None => Ok(next),
    }
}
