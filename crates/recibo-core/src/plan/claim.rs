//! The claim: may this call be run, and under which lease?

use super::twin::{self, Twin, TwinKnown, TwinRule};
use super::{
    Draft, Holder, KnownCall, Place, Plan, Refusal, ScopeKnown, Wanted, free_key, same_input, terms,
};
use crate::decision::{Decision, decide};
use crate::effect::{Effect, Policy, StatedTerms, Terms, TwinScope};
use crate::event::{Body, Facts, Started};
use crate::hash::InputHash;
use crate::id::{CallRef, ClaimId, Labels, MessageId, OperationKey, ScopeId, ToolName, Trace};
use crate::status::DecisionKind;
use crate::time::Time;

/// A claim, checked at the door.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The call.
    pub call: CallRef,
    /// Drawn fresh by the process that will send.
    pub claim_id: ClaimId,
    /// Whose key is to sign.
    pub scope_id: ScopeId,
    /// The tool.
    pub tool: ToolName,
    /// Hash of the canonical arguments.
    pub input_hash: InputHash,
    /// The effect that the caller states, and its numbers.
    pub terms: StatedTerms,
    /// How long the attempt may stay open, in milliseconds.
    pub lease_ms: u64,
    /// The attempt that the caller expects.
    pub attempt: Option<u32>,
    /// The caller's own key.
    pub operation_key: Option<OperationKey>,
    /// A message that the call belongs to.
    pub message_id: Option<MessageId>,
    /// Labels, masked.
    pub labels: Labels,
    /// The caller's trace.
    pub trace: Option<Trace>,
    /// Whether something in the labels was masked.
    pub redacted: bool,
    /// How it is judged against its twins.
    pub twins: TwinRule,
}

/// What must be looked up for a claim.
pub struct ClaimKnown<'a> {
    /// The namespace's policy.
    pub policy: &'a Policy,
    /// The call, if it is known.
    pub call: Option<&'a KnownCall>,
    /// The attempt that this claim id got, if it got one.
    pub claimed: Option<u32>,
    /// Another call that holds the operation key.
    pub holder: Option<&'a Holder>,
    /// The scope.
    pub scope: ScopeKnown<'a>,
    /// Other calls that do the same, the newest first.
    pub twins: &'a [TwinKnown],
}

/// Answer to a claim.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// What is appended.
    pub plan: Plan,
    /// What is answered.
    pub answer: ClaimedAs,
    /// Frozen by the first attempt, or what a first attempt would freeze.
    pub terms: Terms,
    /// The twin that decided, else the one that matters most.
    pub twin: Option<Twin>,
}

/// What a claim is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimedAs {
    /// Permission.
    Granted {
        /// The reason the table gave.
        decision: Decision,
        /// The attempt.
        attempt: u32,
        /// When it started.
        started_seq: u64,
        /// When the lease ends.
        lease_expires_at: Time,
        /// Whether this grant was given before.
        replayed: bool,
    },
    /// No permission; what to do instead.
    Advice(Decision),
}

/// Decides over a claim. The checks run in the order of the contract: same input, the same
/// claim again, what the first attempt froze, state, and then what only a grant needs.
pub fn claim(place: &Place, claim: &Claim, known: &ClaimKnown<'_>) -> Result<Claimed, Refusal> {
    let wanted = Wanted {
        tool: &claim.tool,
        input_hash: &claim.input_hash,
        terms: claim.terms,
        operation_key: claim.operation_key.as_ref(),
    };
    let now = place.moment.now;
    let twin = || twin::telling(known.twins, now);
    if let Some(call) = known.call {
        same_input(call, &wanted)?;
        if let Some(answer) = replay(place, call, known.claimed) {
            let terms = *call.terms();
            return Ok(Claimed { plan: Plan::default(), answer, terms, twin: twin() });
        }
    }
    let terms = terms(known.call, &wanted, known.policy)?;
    let tip = known.call.map(|known| &known.call.tip);
    let decision = decide(tip.map(|tip| (tip, &terms)), &place.moment);
    let advice = |decision, twin| {
        let answer = ClaimedAs::Advice(decision);
        Ok(Claimed { plan: Plan::default(), answer, terms, twin })
    };
    if decision.kind != DecisionKind::Proceed {
        return advice(decision, twin());
    }
    let attempt = tip.map_or(1, |tip| tip.attempts() + 1);
    may_be_granted(claim, known, attempt)?;
    let held = twin::hold_back(&claim.call, decision.state, &terms, &claim.twins, known.twins, now);
    if let Some((decision, twin)) = held {
        return advice(decision, Some(twin));
    }

    let window_end = match tip {
        Some(tip) => tip.key_window_end(),
        None if terms.effect == Effect::Keyed => terms.key_window_ms.map(|ms| now.plus_ms(ms)),
        None => None,
    };
    let lease_expires_at = lease_end(now, claim.lease_ms, window_end);
    let mut draft = Draft::begin(place, known.call.map(|known| known.call.clone()), &claim.call);
    let started_seq = place.seq + draft.bodies.len() as u64;
    draft.append(Body::Started(Started {
        call: claim.call.clone(),
        attempt,
        facts: facts(claim, known, terms),
        claim_id: claim.claim_id.clone(),
        scope_id: claim.scope_id.clone(),
        lease_expires_at,
    }));
    let answer =
        ClaimedAs::Granted { decision, attempt, started_seq, lease_expires_at, replayed: false };
    Ok(Claimed { plan: draft.finish(), answer, terms, twin: twin() })
}

fn facts(claim: &Claim, known: &ClaimKnown<'_>, terms: Terms) -> Facts {
    let (operation_key, twin_hash, twin_scope) = match known.call {
        Some(KnownCall { facts, .. }) => {
            (facts.operation_key.clone(), facts.twin_hash, facts.twin_scope)
        }
        None => (
            claim.operation_key.clone(),
            claim.twins.hash.filter(|hash| *hash != claim.input_hash),
            twin_scope(known.policy, &claim.tool),
        ),
    };
    Facts {
        tool: claim.tool.clone(),
        input_hash: claim.input_hash,
        terms,
        operation_key,
        message_id: claim.message_id.clone(),
        labels: claim.labels.clone(),
        trace: claim.trace,
        redacted: claim.redacted,
        twin_hash,
        twin_scope,
    }
}

/// Where twins of a tool are looked for.
pub(super) fn twin_scope(policy: &Policy, tool: &ToolName) -> TwinScope {
    policy.rule(tool).map(|rule| rule.twin_scope).unwrap_or_default()
}

/// The same claim while its attempt is open and its lease lives: the same grant again.
fn replay(place: &Place, known: &KnownCall, claimed: Option<u32>) -> Option<ClaimedAs> {
    let newest = &known.call.tip.newest;
    if claimed != Some(newest.number) || !newest.is_live(place.moment.now) {
        return None;
    }
    // What the table said when the grant was made: the first attempt, or another one.
    let first = newest.number == 1;
    Some(ClaimedAs::Granted {
        decision: Decision {
            kind: DecisionKind::Proceed,
            reason: if first {
                crate::status::Reason::FirstAttempt
            } else {
                crate::status::Reason::RetryAllowed
            },
            state: known.call.tip.state(place.moment.now),
            retry_after_ms: None,
        },
        attempt: newest.number,
        started_seq: newest.started_seq,
        lease_expires_at: newest.lease_expires_at()?,
        replayed: true,
    })
}

fn may_be_granted(claim: &Claim, known: &ClaimKnown<'_>, attempt: u32) -> Result<(), Refusal> {
    if let Some(attempt) = known.claimed {
        return Err(Refusal::ClaimUsed { attempt });
    }
    if claim.attempt.is_some_and(|expected| expected != attempt) {
        return Err(Refusal::AttemptConflict { next: attempt });
    }
    if known.call.is_none() {
        free_key(known.holder)?;
    }
    match known.scope {
        ScopeKnown::Open(_) => Ok(()),
        ScopeKnown::Gone => Err(Refusal::ScopeGone),
        ScopeKnown::Absent => Err(Refusal::ScopeNotFound),
    }
}

/// A keyed lease ends no later than the key window, while there is one left. After the window
/// a grant means that no earlier attempt can take effect any more, so nothing can collide.
fn lease_end(now: Time, lease_ms: u64, key_window_end: Option<Time>) -> Time {
    let end = now.plus_ms(lease_ms);
    match key_window_end {
        Some(window_end) if window_end > now => end.min(window_end),
        _ => end,
    }
}
