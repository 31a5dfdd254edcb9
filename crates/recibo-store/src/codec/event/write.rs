//! From events to their stored shapes.

use recibo_core::effect::{Effect, IsError, Rule, Terms, TwinScope};
use recibo_core::event::{Body, Facts, Outcome};
use recibo_core::id::{CallRef, ScopeId};
use recibo_core::status::{CheckAnswer, OutcomeStatus, ResolvedAs, ScopeEnd};

use super::index_of;
use super::stored::*;
use crate::scope_id;

pub(super) fn to_stored(body: &Body) -> StoredBody<'_> {
    match body {
        Body::ScopeOpened(e) => StoredBody::ScopeOpened {
            scope: scope(&e.scope_id),
            label: e.label.as_deref(),
            expires_ms: e.expires_at.ms(),
        },
        Body::ScopeClosed { scope_id, end } => {
            StoredBody::ScopeClosed { scope: scope(scope_id), end: index_of(ScopeEnd::ALL, end) }
        }
        Body::Started(e) => StoredBody::Started {
            at: attempt(&e.call, e.attempt),
            facts: facts(&e.facts),
            claim: e.claim_id.as_str(),
            scope: scope(&e.scope_id),
            lease_ms: e.lease_expires_at.ms(),
        },
        Body::Finished(e) => StoredBody::Finished {
            at: attempt(&e.call, e.attempt),
            outcome: outcome(&e.outcome),
            late: e.late,
            receipt: e.receipt.as_ref().map(|receipt| StoredReceipt {
                scope: scope(&receipt.scope_id),
                digest: receipt.token.digest,
            }),
        },
        Body::Recorded(e) => StoredBody::Recorded {
            at: attempt(&e.call, e.attempt),
            facts: facts(&e.facts),
            scope: scope(&e.scope_id),
            started_ms: e.started_at.ms(),
            outcome: outcome(&e.outcome),
            digest: e.token.map(|token| token.digest),
        },
        Body::LeaseExpired { call, attempt: number } => {
            StoredBody::LeaseExpired { at: attempt(call, *number) }
        }
        Body::LeaseExtended { call, attempt: number, lease_expires_at } => {
            StoredBody::LeaseExtended {
                at: attempt(call, *number),
                lease_ms: lease_expires_at.ms(),
            }
        }
        Body::StatusChecked(e) => StoredBody::StatusChecked {
            at: attempt(&e.call, e.attempt),
            answer: index_of(CheckAnswer::ALL, &e.answer),
            source: &e.source,
            age_ms: e.age_ms,
            provider_ref: e.provider_ref.as_deref(),
            settles: e.settles,
            redacted: e.redacted,
        },
        Body::Resolved(e) => StoredBody::Resolved {
            at: attempt(&e.call, 0),
            state: index_of(ResolvedAs::ALL, &e.state),
            reason: &e.reason,
            redacted: e.redacted,
        },
        Body::Restarted(e) => {
            StoredBody::Restarted { last_ms: e.last_at.ms(), key_windows_void: e.key_windows_void }
        }
        Body::PolicySet { policy } => StoredBody::PolicySet {
            rules: policy
                .rules
                .iter()
                .map(|rule| StoredRule { pattern: &rule.pattern, terms: terms(&rule.terms) })
                .collect(),
        },
    }
}

pub(super) fn added(body: &Body) -> Added<'_> {
    let mut added = Added::default();
    if let Some(facts) = body.facts() {
        added.is_error = facts.terms.is_error.map(|word| index_of(IsError::ALL, &word));
        added.twin_hash = facts.twin_hash.map(|hash| *hash.as_bytes());
        added.twin_scope = index_of(TwinScope::ALL, &facts.twin_scope);
    }
    added.answered = body.outcome().is_some_and(|outcome| outcome.answered);
    match body {
        Body::Resolved(e) => {
            added.by = e.by.as_deref();
            added.corrects = e.corrects;
        }
        Body::PolicySet { policy } => {
            let rules: Vec<_> = policy.rules.iter().map(added_rule).collect();
            if rules.iter().any(|rule| *rule != AddedRule::default()) {
                added.rules = rules;
            }
        }
        _ => {}
    }
    added
}

fn added_rule(rule: &Rule) -> AddedRule<'_> {
    AddedRule {
        is_error: rule.terms.is_error.map(|word| index_of(IsError::ALL, &word)),
        twin_by: rule.twin_by.iter().map(String::as_str).collect(),
        twin_scope: index_of(TwinScope::ALL, &rule.twin_scope),
    }
}

fn scope(scope_id: &ScopeId) -> StoredScope<'_> {
    match scope_id::to_bytes(scope_id) {
        Some(bytes) => StoredScope::Made(bytes),
        None => StoredScope::Other(scope_id.as_str()),
    }
}

fn attempt(call: &CallRef, attempt: u32) -> StoredAttempt<'_> {
    StoredAttempt {
        run_id: call.run_id.as_str(),
        tool_call_id: call.tool_call_id.as_str(),
        attempt,
    }
}

fn facts(facts: &Facts) -> StoredFacts<'_> {
    StoredFacts {
        tool: facts.tool.as_str(),
        input_hash: *facts.input_hash.as_bytes(),
        terms: terms(&facts.terms),
        operation_key: facts.operation_key.as_ref().map(|key| key.as_str()),
        message_id: facts.message_id.as_ref().map(|id| id.as_str()),
        labels: facts.labels.iter().collect(),
        trace: facts.trace.map(|trace| (trace.trace_id, trace.span_id)),
        redacted: facts.redacted,
    }
}

fn terms(terms: &Terms) -> StoredTerms {
    StoredTerms {
        effect: index_of(&Effect::ALL, &terms.effect),
        key_window_ms: terms.key_window_ms,
        settle_ms: terms.settle_ms,
        max_attempts: terms.max_attempts,
    }
}

fn outcome(outcome: &Outcome) -> StoredOutcome<'_> {
    StoredOutcome {
        status: index_of(OutcomeStatus::ALL, &outcome.status),
        duration_ms: outcome.duration_ms,
        output_hash: outcome.output_hash.map(|hash| *hash.as_bytes()),
        output_summary: outcome.output_summary.as_deref(),
        error_class: outcome.error_class.as_ref().map(|class| class.as_str()),
        provider_ref: outcome.provider_ref.as_deref(),
        message_id: outcome.message_id.as_deref(),
        redacted: outcome.redacted,
    }
}
