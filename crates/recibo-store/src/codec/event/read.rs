//! From stored shapes back to events.

use recibo_core::effect::{Effect, IsError, Policy, Rule, Terms, TwinScope};
use recibo_core::event::{
    Body, Facts, Finished, Outcome, Receipt, Recorded, Resolved, Restarted, ScopeOpened, Started,
    StatusChecked,
};
use recibo_core::hash::{InputHash, OutputHash};
use recibo_core::id::{
    CallRef, ClaimId, ErrorClass, Labels, MessageId, OperationKey, RunId, ScopeId, ToolCallId,
    ToolName, Trace,
};
use recibo_core::receipt::Token;
use recibo_core::status::{CheckAnswer, OutcomeStatus, ResolvedAs, ScopeEnd};
use recibo_core::time::Time;

use super::at_index;
use super::stored::*;
use crate::scope_id;

/// `None` if a text or a number is not what was once checked.
pub(super) fn from_stored(stored: StoredBody<'_>, added: Added<'_>, at: Time) -> Option<Body> {
    let token = |digest| Token { epoch: at.epoch_s(), digest };
    Some(match stored {
        StoredBody::ScopeOpened { scope, label, expires_ms } => Body::ScopeOpened(ScopeOpened {
            scope_id: read_scope(&scope)?,
            label: label.map(str::to_owned),
            expires_at: Time::from_ms(expires_ms),
        }),
        StoredBody::ScopeClosed { scope, end } => {
            Body::ScopeClosed { scope_id: read_scope(&scope)?, end: at_index(ScopeEnd::ALL, end)? }
        }
        StoredBody::Started { at, facts, claim, scope, lease_ms } => {
            let (call, attempt) = place(&at)?;
            Body::Started(Started {
                call,
                attempt,
                facts: read_facts(facts, &added)?,
                claim_id: ClaimId::parse(claim).ok()?,
                scope_id: read_scope(&scope)?,
                lease_expires_at: Time::from_ms(lease_ms),
            })
        }
        StoredBody::Finished { at, outcome, late, receipt } => {
            let (call, attempt) = place(&at)?;
            let receipt = match receipt {
                Some(receipt) => Some(Receipt {
                    scope_id: read_scope(&receipt.scope)?,
                    token: token(receipt.digest),
                }),
                None => None,
            };
            let outcome = read_outcome(outcome, &added)?;
            Body::Finished(Finished { call, attempt, outcome, late, receipt })
        }
        StoredBody::Recorded { at, facts, scope, started_ms, outcome, digest } => {
            let (call, attempt) = place(&at)?;
            Body::Recorded(Recorded {
                call,
                attempt,
                facts: read_facts(facts, &added)?,
                scope_id: read_scope(&scope)?,
                started_at: Time::from_ms(started_ms),
                outcome: read_outcome(outcome, &added)?,
                token: digest.map(token),
            })
        }
        StoredBody::LeaseExpired { at } => {
            let (call, attempt) = place(&at)?;
            Body::LeaseExpired { call, attempt }
        }
        StoredBody::LeaseExtended { at, lease_ms } => {
            let (call, attempt) = place(&at)?;
            Body::LeaseExtended { call, attempt, lease_expires_at: Time::from_ms(lease_ms) }
        }
        StoredBody::StatusChecked {
            at,
            answer,
            source,
            age_ms,
            provider_ref,
            settles,
            redacted,
        } => {
            let (call, attempt) = place(&at)?;
            Body::StatusChecked(StatusChecked {
                call,
                attempt,
                answer: at_index(CheckAnswer::ALL, answer)?,
                source: source.to_owned(),
                age_ms,
                provider_ref: provider_ref.map(str::to_owned),
                settles,
                redacted,
            })
        }
        StoredBody::Resolved { at, state, reason, redacted } => Body::Resolved(Resolved {
            call: place(&at)?.0,
            state: at_index(ResolvedAs::ALL, state)?,
            reason: reason.to_owned(),
            redacted,
            by: added.by.map(str::to_owned),
            corrects: added.corrects,
        }),
        StoredBody::PolicySet { rules } => {
            let mut policy = Policy::default();
            let mut added = added.rules.into_iter();
            for rule in rules {
                policy.rules.push(read_rule(&rule, added.next().unwrap_or_default())?);
            }
            Body::PolicySet { policy }
        }
        StoredBody::Restarted { last_ms, key_windows_void } => {
            Body::Restarted(Restarted { last_at: Time::from_ms(last_ms), key_windows_void })
        }
    })
}

fn read_rule(stored: &StoredRule<'_>, added: AddedRule<'_>) -> Option<Rule> {
    Some(Rule {
        pattern: stored.pattern.to_owned(),
        terms: read_terms(&stored.terms, added.is_error)?,
        twin_by: added.twin_by.into_iter().map(str::to_owned).collect(),
        twin_scope: at_index(TwinScope::ALL, added.twin_scope)?,
    })
}

fn read_scope(stored: &StoredScope<'_>) -> Option<ScopeId> {
    match stored {
        StoredScope::Made(bytes) => Some(scope_id::from_bytes(bytes)),
        StoredScope::Other(text) => ScopeId::parse(text).ok(),
    }
}

fn place(stored: &StoredAttempt<'_>) -> Option<(CallRef, u32)> {
    let run_id = RunId::parse(stored.run_id).ok()?;
    let tool_call_id = ToolCallId::parse(stored.tool_call_id).ok()?;
    Some((CallRef { run_id, tool_call_id }, stored.attempt))
}

fn read_facts(stored: StoredFacts<'_>, added: &Added<'_>) -> Option<Facts> {
    Some(Facts {
        tool: ToolName::stored(stored.tool)?,
        input_hash: InputHash::from_bytes(stored.input_hash),
        terms: read_terms(&stored.terms, added.is_error)?,
        operation_key: parsed(stored.operation_key, OperationKey::parse)?,
        message_id: parsed(stored.message_id, MessageId::parse)?,
        labels: read_labels(&stored.labels)?,
        trace: stored.trace.map(|(trace_id, span_id)| Trace { trace_id, span_id }),
        redacted: stored.redacted,
        twin_hash: added.twin_hash.map(InputHash::from_bytes),
        twin_scope: at_index(TwinScope::ALL, added.twin_scope)?,
    })
}

fn read_labels(stored: &[(&str, &str)]) -> Option<Labels> {
    if stored.is_empty() {
        return Some(Labels::default());
    }
    Labels::parse(stored.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))).ok()
}

fn read_terms(stored: &StoredTerms, is_error: Option<u8>) -> Option<Terms> {
    Some(Terms {
        effect: at_index(&Effect::ALL, stored.effect)?,
        key_window_ms: stored.key_window_ms,
        settle_ms: stored.settle_ms,
        max_attempts: stored.max_attempts,
        is_error: match is_error {
            Some(index) => Some(at_index(IsError::ALL, index)?),
            None => None,
        },
    })
}

fn read_outcome(stored: StoredOutcome<'_>, added: &Added<'_>) -> Option<Outcome> {
    Some(Outcome {
        status: at_index(OutcomeStatus::ALL, stored.status)?,
        duration_ms: stored.duration_ms,
        output_hash: stored.output_hash.map(OutputHash::from_bytes),
        output_summary: stored.output_summary.map(str::to_owned),
        error_class: parsed(stored.error_class, ErrorClass::parse)?,
        provider_ref: stored.provider_ref.map(str::to_owned),
        message_id: stored.message_id.map(str::to_owned),
        redacted: stored.redacted,
        answered: added.answered,
    })
}

/// `Some(None)` for an absent text, `None` for a broken one.
fn parsed<T, E>(text: Option<&str>, parse: fn(&str) -> Result<T, E>) -> Option<Option<T>> {
    match text {
        None => Some(None),
        Some(text) => parse(text).ok().map(Some),
    }
}
