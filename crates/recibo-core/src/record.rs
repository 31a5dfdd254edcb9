//! What the ledger shows of one attempt, put together from its events.

use crate::call::{Attempt, OutcomeMark};
use crate::effect::Effect;
use crate::event::{Body, Facts, Outcome};
use crate::hash::{InputHash, OutputHash};
use crate::id::{CallRef, Labels, OperationKey, ScopeId, ToolName, Trace};
use crate::receipt::{IdempotencyKey, Token};
use crate::status::{AttemptStatus, CheckAnswer, SettledBy};
use crate::time::Time;

/// What the ledger knows of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The call.
    pub call: CallRef,
    /// The tool.
    pub tool: ToolName,
    /// The attempt.
    pub attempt: u32,
    /// What it reads as now.
    pub status: AttemptStatus,
    /// Ledger time for a claim, the caller's for a one-shot.
    pub started_at: Time,
    /// The caller's monotonic measure.
    pub duration_ms: Option<u64>,
    /// Ledger time of the outcome that decides.
    pub finished_at: Option<Time>,
    /// Ledger time of the call's first event.
    pub recorded_at: Time,
    /// Hash of the canonical arguments.
    pub input_hash: InputHash,
    /// Hash of the result text.
    pub output_hash: Option<OutputHash>,
    /// Canonical JSON object.
    pub output_summary: Option<String>,
    /// Class of the error; `lease_expired` where the lease ended without an outcome.
    pub error_class: Option<String>,
    /// The receipt.
    pub token: Option<Token>,
    /// The scope that signed, else the one that the attempt named.
    pub scope_id: ScopeId,
    /// Frozen by the call's first attempt.
    pub effect: Effect,
    /// Names the effect to the outside service.
    pub idempotency_key: IdempotencyKey,
    /// The caller's own key.
    pub operation_key: Option<OperationKey>,
    /// A message that the call belongs to.
    pub message_id: Option<String>,
    /// Labels.
    pub labels: Labels,
    /// The caller's trace.
    pub trace: Option<Trace>,
    /// What the outside service calls the effect, as the adapter or a status check said.
    pub provider_ref: Option<String>,
    /// When the lease ends or ended; `None` for a one-shot.
    pub lease_expires_at: Option<Time>,
    /// All outcomes, in order.
    pub outcomes: Vec<OutcomeMark>,
    /// The event that opened the attempt.
    pub started_seq: u64,
    /// The event of the outcome that decides.
    pub finished_seq: Option<u64>,
    /// Whether something stored was masked.
    pub redacted: bool,
    /// Whether the outcome that decides came late.
    pub late: bool,
    /// Who settled the status, if no definite outcome did.
    pub settled_by: Option<SettledBy>,
    /// Status checks of the attempt, in order, the newest [`crate::limits::CHECKS_SHOWN_MAX`].
    pub checks: Vec<CheckMark>,
}

/// A status check of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckMark {
    /// What the outside service said.
    pub answer: CheckAnswer,
    /// Who was asked.
    pub source: String,
    /// Ledger time.
    pub at: Time,
    /// Its event.
    pub seq: u64,
    /// Whether it settled the attempt.
    pub counted: bool,
}

/// The events that a record is put together from.
pub struct RecordEvents<'a> {
    /// The one that opened the attempt, and its time.
    pub opening: (Time, &'a Body),
    /// Its outcomes, in order.
    pub outcomes: &'a [Body],
    /// The one that settled it from outside.
    pub settling: Option<&'a Body>,
    /// Its status checks, in order.
    pub checks: Vec<CheckMark>,
}

/// The error class of an attempt whose lease ended without an outcome.
pub const LEASE_EXPIRED: &str = "lease_expired";

impl Record {
    /// Puts a record together from an attempt and its events.
    ///
    /// # Panics
    /// If the opening event opens no attempt.
    pub fn build(
        idempotency_key: IdempotencyKey,
        recorded_at: Time,
        attempt: &Attempt,
        events: RecordEvents<'_>,
        now: Time,
    ) -> Self {
        let RecordEvents { opening: (opened_at, opening), outcomes, settling, checks } = events;
        let (call, _) = opening.call().expect("an opening event names a call");
        let facts = opening.facts().expect("an opening event has facts");
        let (started_at, scope_id) = match opening {
            Body::Recorded(e) => (e.started_at, &e.scope_id),
            Body::Started(e) => (opened_at, &e.scope_id),
            _ => unreachable!("only these have facts"),
        };
        let mark = attempt.deciding();
        let deciding = mark.and_then(|mark| deciding_body(attempt, mark, outcomes));
        let outcome = deciding.and_then(Body::outcome);
        let signer = match deciding {
            Some(Body::Finished(e)) => e.receipt.as_ref().map(|receipt| &receipt.scope_id),
            _ => None,
        };
        let status = attempt.status(now);
        let late_redacted = outcomes.iter().filter_map(Body::outcome).any(|o| o.redacted);
        let (checked_ref, settling_redacted) = match settling {
            Some(Body::StatusChecked(e)) => (e.provider_ref.clone(), e.redacted),
            Some(Body::Resolved(e)) => (None, e.redacted),
            _ => (None, false),
        };
        Self {
            call: call.clone(),
            tool: facts.tool.clone(),
            attempt: attempt.number,
            status,
            started_at,
            duration_ms: outcome.map(|outcome| outcome.duration_ms),
            finished_at: mark.map(|mark| mark.at),
            recorded_at,
            input_hash: facts.input_hash,
            output_hash: outcome.and_then(|outcome| outcome.output_hash),
            output_summary: outcome.and_then(|outcome| outcome.output_summary.clone()),
            error_class: error_class(attempt, status, outcome),
            token: deciding.and_then(Body::token).copied(),
            scope_id: signer.unwrap_or(scope_id).clone(),
            effect: facts.terms.effect,
            idempotency_key,
            operation_key: facts.operation_key.clone(),
            message_id: message_id(facts, outcomes),
            labels: facts.labels.clone(),
            trace: facts.trace,
            provider_ref: outcome.and_then(|outcome| outcome.provider_ref.clone()).or(checked_ref),
            lease_expires_at: attempt.lease_expires_at(),
            outcomes: attempt.outcomes.clone(),
            started_seq: attempt.started_seq,
            finished_seq: mark.map(|mark| mark.seq),
            redacted: facts.redacted || late_redacted || settling_redacted,
            late: mark.is_some_and(|mark| mark.late),
            settled_by: attempt
                .settled
                .filter(|_| attempt.definite().is_none())
                .map(|settled| settled.by),
            checks,
        }
    }
}

fn deciding_body<'a>(
    attempt: &Attempt,
    deciding: &OutcomeMark,
    outcomes: &'a [Body],
) -> Option<&'a Body> {
    let index = attempt.outcomes.iter().position(|mark| mark.seq == deciding.seq)?;
    outcomes.get(index)
}

fn error_class(
    attempt: &Attempt,
    status: AttemptStatus,
    outcome: Option<&Outcome>,
) -> Option<String> {
    match outcome {
        Some(outcome) if status != AttemptStatus::Ok => {
            outcome.error_class.as_ref().map(|class| class.as_str().to_owned())
        }
        Some(_) => None,
        None if status == AttemptStatus::Unknown && attempt.lease.is_some() => {
            Some(LEASE_EXPIRED.to_owned())
        }
        None => None,
    }
}

/// The newest one that was given: an e-mail has an id only once it is sent.
fn message_id(facts: &Facts, outcomes: &[Body]) -> Option<String> {
    let by_outcome = outcomes.iter().rev().filter_map(Body::outcome);
    by_outcome
        .filter_map(|outcome| outcome.message_id.clone())
        .next()
        .or_else(|| facts.message_id.as_ref().map(|id| id.as_str().to_owned()))
}
