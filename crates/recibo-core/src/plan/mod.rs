//! Decides what a write appends. Pure: what is known, the time and the keys are arguments,
//! so that any backend shares these rules and every decision can be replayed.
//!
//! A plan holds the facts to append, in order. A refusal holds none: it changes nothing.

mod check;
mod claim;
mod outcome;
mod record;
mod renew;
mod resolve;
mod twin;

pub use check::{Check, Checked, check};
pub use claim::{Claim, ClaimKnown, Claimed, ClaimedAs, claim};
pub use outcome::{Report, ReportKnown, Reported, report};
pub use record::{OneShot, RecordKnown, Recording, record};
pub use renew::{Renewal, Renewed, renew};
pub use resolve::{Resolution, resolve};
pub use twin::{Knows, OnTwin, Twin, TwinKnown, TwinRule, telling};

use crate::call::{self, Call};
use crate::decision::{Decision, Moment};
use crate::effect::{Effect, StatedTerms, Terms};
use crate::event::{Body, Facts};
use crate::id::{CallRef, Namespace, ScopeId};
use crate::receipt::{ScopeKey, SignedFields, Token};
use crate::time::Time;

/// Where the plan's first event will stand, and when.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Sequence number of the next event.
    pub seq: u64,
    /// The time, and what it means for key windows.
    pub moment: Moment,
}

/// What is known of the call that a draft names.
#[derive(Clone, Debug)]
pub struct KnownCall {
    /// As its first attempt froze it.
    pub facts: Facts,
    /// Its tip, and the older attempts that the draft touches.
    pub call: Call,
}

impl KnownCall {
    /// The frozen terms.
    pub fn terms(&self) -> &Terms {
        &self.facts.terms
    }

    /// What the table says now.
    pub fn decision(&self, moment: &Moment) -> Decision {
        crate::decision::decide(Some((&self.call.tip, self.terms())), moment)
    }
}

/// A signing key that lives.
#[derive(Clone, Copy)]
pub struct Signer<'a> {
    /// Its scope.
    pub scope_id: &'a ScopeId,
    /// The key.
    pub key: &'a ScopeKey,
}

/// What the ledger knows of a scope that a draft names.
#[derive(Clone, Copy)]
pub enum ScopeKnown<'a> {
    /// Its key lives.
    Open(Signer<'a>),
    /// It was open once, in this namespace.
    Gone,
    /// No such scope in this namespace.
    Absent,
}

/// Facts to append, and the call as they leave it.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// In order. Empty for a replay.
    pub bodies: Vec<Body>,
    /// The call after them; `None` if nothing is appended.
    pub call: Option<Call>,
}

/// Why a write was refused. Nothing is appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another tool or input under a known call.
    InputMismatch {
        /// When the call was first seen.
        first_seen_at: Time,
        /// Whether the tool differs.
        tool: bool,
        /// Whether the input hash differs.
        input_hash: bool,
    },
    /// Another effect than the call's first attempt froze.
    EffectMismatch {
        /// The frozen effect.
        frozen: Effect,
    },
    /// A weaker effect than the policy's.
    EffectWeakerThanPolicy {
        /// The policy's effect.
        policy: Effect,
    },
    /// Another operation key than the call's.
    OperationKeyMismatch,
    /// Another call of the namespace holds the operation key.
    OperationKeyTaken {
        /// That call.
        holder: CallRef,
        /// What the table says of it.
        decision: Decision,
    },
    /// The attempt named is not the one that would be made.
    AttemptConflict {
        /// The one that would be, or the newest there is.
        next: u32,
    },
    /// The claim id has had its grant.
    ClaimUsed {
        /// The attempt that it got.
        attempt: u32,
    },
    /// No such scope in this namespace.
    ScopeNotFound,
    /// The scope is closed, or its key went with an earlier process.
    ScopeGone,
    /// No such call.
    CallNotFound,
    /// No such attempt.
    AttemptNotFound,
    /// The lease token is not the attempt's.
    LeaseTokenWrong,
    /// The attempt has another outcome.
    OutcomeConflict,
    /// An attempt is open, so a finished one cannot be recorded.
    AttemptOpen {
        /// The open attempt.
        attempt: u32,
        /// When its lease ends.
        lease_expires_at: Time,
    },
    /// The attempt does not read as `unknown` or `timeout`.
    AttemptSettled,
    /// The call has moved on since the version that the operator saw.
    VersionMismatch,
    /// A lease lives, so nobody can say yet how it ends.
    LeaseLive {
        /// When it ends.
        lease_expires_at: Time,
    },
    /// The call is neither unknown, nor retryable, nor in conflict, and its state does not rest
    /// on the resolution that is to be corrected.
    NothingToResolve,
    /// The lease that is to be renewed is over.
    LeaseOver,
    /// So many scopes of the namespace live that no other one is opened.
    ScopeLimit {
        /// How many may live.
        max: usize,
    },
}

/// Appends facts in memory: each is applied to the call as it will be when read back.
struct Draft {
    place: Place,
    call: Option<Call>,
    bodies: Vec<Body>,
}

impl Draft {
    /// Begins, with the end of a lease that is due before anything else.
    fn begin(place: &Place, call: Option<Call>, target: &CallRef) -> Self {
        // Nearly always one; two where a lease ended unnoticed.
        let mut draft = Self { place: *place, call, bodies: Vec::with_capacity(1) };
        let due = draft.call.as_ref().map(|call| &call.tip.newest);
        if let Some(newest) = due.filter(|newest| newest.is_expiry_due(place.moment.now)) {
            let attempt = newest.number;
            draft.append(Body::LeaseExpired { call: target.clone(), attempt });
        }
        draft
    }

    fn append(&mut self, body: Body) {
        let seq = self.place.seq + self.bodies.len() as u64;
        call::apply(&mut self.call, seq, self.place.moment.now, &body);
        self.bodies.push(body);
    }

    fn finish(self) -> Plan {
        Plan { bodies: self.bodies, call: self.call }
    }
}

/// The end of a lease, for the background job. `None` if it is not due.
pub fn expire(place: &Place, target: &CallRef, known: &KnownCall) -> Option<Plan> {
    let draft = Draft::begin(place, Some(known.call.clone()), target);
    (!draft.bodies.is_empty()).then(|| draft.finish())
}

/// The checks that come before any state: same tool and input.
fn same_input(known: &KnownCall, facts: &Wanted<'_>) -> Result<(), Refusal> {
    let tool = known.facts.tool != *facts.tool;
    let input_hash = known.facts.input_hash != *facts.input_hash;
    if tool || input_hash {
        let first_seen_at = known.call.tip.recorded_at;
        return Err(Refusal::InputMismatch { first_seen_at, tool, input_hash });
    }
    Ok(())
}

/// What a draft states of its call.
struct Wanted<'a> {
    tool: &'a crate::id::ToolName,
    input_hash: &'a crate::hash::InputHash,
    terms: StatedTerms,
    operation_key: Option<&'a crate::id::OperationKey>,
}

/// The frozen terms, or those of a new call.
fn terms(
    known: Option<&KnownCall>,
    wanted: &Wanted<'_>,
    policy: &crate::effect::Policy,
) -> Result<Terms, Refusal> {
    let Some(known) = known else {
        return policy
            .terms(wanted.tool, wanted.terms)
            .map_err(|weaker| Refusal::EffectWeakerThanPolicy { policy: weaker.policy });
    };
    let frozen = *known.terms();
    if wanted.terms.effect.is_some_and(|effect| effect != frozen.effect) {
        return Err(Refusal::EffectMismatch { frozen: frozen.effect });
    }
    // A key that comes only with a later attempt is refused too: the first attempt may have
    // taken effect under another one.
    if wanted.operation_key.is_some_and(|key| known.facts.operation_key.as_ref() != Some(key)) {
        return Err(Refusal::OperationKeyMismatch);
    }
    Ok(frozen)
}

/// Another call that holds the operation key.
#[derive(Clone, Debug)]
pub struct Holder {
    /// That call.
    pub call: CallRef,
    /// What the table says of it.
    pub decision: Decision,
}

fn free_key(holder: Option<&Holder>) -> Result<(), Refusal> {
    match holder {
        None => Ok(()),
        Some(holder) => Err(Refusal::OperationKeyTaken {
            holder: holder.call.clone(),
            decision: holder.decision,
        }),
    }
}

/// Signs a success.
fn sign(
    signer: Signer<'_>,
    namespace: &Namespace,
    call: &CallRef,
    attempt: u32,
    facts: &Facts,
    output_hash: &crate::hash::OutputHash,
    now: Time,
) -> Token {
    signer.key.sign(&SignedFields {
        tool: facts.tool.as_str(),
        input_hash: &facts.input_hash,
        output_hash,
        timestamp: now.epoch_s(),
        namespace: namespace.as_str(),
        run_id: call.run_id.as_str(),
        tool_call_id: call.tool_call_id.as_str(),
        attempt,
        scope_id: signer.scope_id.as_str(),
    })
}
