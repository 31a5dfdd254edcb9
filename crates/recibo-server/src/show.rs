//! Values of the store as the API shows them. Neither crate knows the other.

use recibo_api::answer::{
    ApiKeyEntry, ByState, Call, CallAnswer, ClaimAnswer, Decided, DecisionAnswer, Granted, Lease,
    Page, Record, RenewalAnswer, ResolutionEntry, RunSummary, ScopeAnswer, ScopeState, Terms, Twin,
};
use recibo_api::page::Listing;
use recibo_api::verify::Signature;
use recibo_api::{Roles, Timestamp, Word};
use recibo_core::id::{CallRef, RunId};
use recibo_core::plan::ClaimedAs;
use recibo_core::status::{CallState, DecisionKind};
use recibo_store as store;

/// A whole call.
pub(crate) fn call(view: &store::CallView) -> Call {
    Call {
        run_id: view.call.run_id.to_string(),
        tool_call_id: view.call.tool_call_id.to_string(),
        tool: view.facts.tool.to_string(),
        effect: Word(view.facts.terms.effect),
        state: Word(view.state),
        conflict: view.conflict,
        idempotency_key: view.idempotency_key.to_string(),
        operation_key: view.facts.operation_key.as_ref().map(ToString::to_string),
        input_hash: Some(view.facts.input_hash.to_string()),
        terms: Terms::from_core(&view.facts.terms, view.key_window_ends_at),
        attempts: view.records.iter().map(Record::from_core).collect(),
        resolutions: view.resolutions.iter().map(resolution).collect(),
        version: view.version,
    }
}

fn resolution(mark: &store::ResolutionMark) -> ResolutionEntry {
    ResolutionEntry {
        state: Word(mark.state),
        reason: mark.reason.clone(),
        at: Timestamp(mark.at),
        by: mark.by.clone(),
        seq: mark.seq,
        corrects: mark.corrects,
    }
}

/// A whole call with what to do about it.
pub(crate) fn call_and_decision(view: &store::CallView, ask_again_ms: Option<u64>) -> CallAnswer {
    CallAnswer::from_core(call(view), &view.decision, ask_again_ms)
}

/// A page of calls.
pub(crate) fn page(page: &store::CallPage, listing: &Listing) -> Page {
    Page {
        calls: page.calls.iter().map(call).collect(),
        next_page_token: page.next.map(|position| listing.token(position)),
    }
}

/// What to do about a call.
pub(crate) fn decision(call: &CallRef, view: &store::DecisionView) -> DecisionAnswer {
    DecisionAnswer::from_core(&Decided {
        call,
        key: &view.idempotency_key,
        decision: &view.decision,
        terms: view
            .terms
            .map(|terms| (terms.effect, Terms::from_core(&terms, view.key_window_ends_at))),
        record: view.record.as_deref(),
        input_hash: None,
        twin: view.twin.as_ref(),
    })
}

/// A lease that was renewed.
pub(crate) fn renewed(call: &CallRef, attempt: u32, answer: store::RenewedAnswer) -> RenewalAnswer {
    RenewalAnswer {
        run_id: call.run_id.to_string(),
        tool_call_id: call.tool_call_id.to_string(),
        attempt,
        lease: Lease {
            token: answer.lease_token,
            duration_ms: answer.lease_expires_at.ms_since(answer.now),
            expires_at: Timestamp(answer.lease_expires_at),
        },
    }
}

/// A grant, or advice.
pub(crate) fn claimed(answer: store::ClaimAnswer) -> ClaimAnswer {
    let terms = Terms::from_core(&answer.terms, answer.key_window_ends_at);
    match answer.claimed {
        ClaimedAs::Granted { decision, attempt, lease_expires_at, replayed, .. } => {
            ClaimAnswer::Granted(Box::new(Granted {
                decision: Word(DecisionKind::Proceed),
                reason: Word(decision.reason),
                run_id: answer.call.run_id.to_string(),
                tool_call_id: answer.call.tool_call_id.to_string(),
                attempt,
                state: Word(CallState::InFlight),
                effect: Word(answer.terms.effect),
                terms,
                idempotency_key: answer.idempotency_key.to_string(),
                input_hash: answer.input_hash.to_string(),
                started_at: Timestamp(answer.started_at.expect("a grant has a start")),
                lease: Lease {
                    token: answer.lease_token.expect("a grant has a lease token"),
                    duration_ms: lease_expires_at.ms_since(answer.now),
                    expires_at: Timestamp(lease_expires_at),
                },
                replayed,
                twin: answer.twin.as_ref().map(Twin::from_core),
            }))
        }
        ClaimedAs::Advice(decision) => {
            ClaimAnswer::Advice(Box::new(DecisionAnswer::from_core(&Decided {
                call: &answer.call,
                key: &answer.idempotency_key,
                decision: &decision,
                terms: Some((answer.terms.effect, terms)),
                record: answer.record.as_deref(),
                input_hash: Some(&answer.input_hash),
                twin: answer.twin.as_ref(),
            })))
        }
    }
}

/// A run's counts.
pub(crate) fn run(run_id: &RunId, run: &store::RunSummary) -> RunSummary {
    let count = |state| run.by_state.get(&state).copied().unwrap_or_default();
    RunSummary {
        run_id: run_id.to_string(),
        calls: run.calls,
        attempts: run.attempts,
        by_state: ByState {
            in_flight: count(CallState::InFlight),
            unknown: count(CallState::Unknown),
            retryable: count(CallState::Retryable),
            ok: count(CallState::Ok),
            terminal: count(CallState::Terminal),
            abandoned: count(CallState::Abandoned),
        },
        conflicts: run.conflicts,
        first_at: Timestamp(run.first_at),
        last_at: Timestamp(run.last_at),
    }
}

/// A scope that was opened just now.
pub(crate) fn opened_scope(scope: store::OpenedScope) -> ScopeAnswer {
    ScopeAnswer {
        scope_id: scope.scope_id.to_string(),
        state: Word(ScopeState::Open),
        label: scope.label,
        opened_at: Timestamp(scope.opened_at),
        expires_at: Timestamp(scope.expires_at),
        closed_at: None,
    }
}

/// A scope.
pub(crate) fn scope(scope: store::ScopeView) -> ScopeAnswer {
    ScopeAnswer {
        scope_id: scope.scope_id.to_string(),
        state: Word(match scope.state {
            store::ScopeState::Open => ScopeState::Open,
            store::ScopeState::Closed => ScopeState::Closed,
            store::ScopeState::Gone => ScopeState::Gone,
        }),
        label: scope.label,
        opened_at: Timestamp(scope.opened_at),
        expires_at: Timestamp(scope.expires_at),
        closed_at: scope.closed_at.map(Timestamp),
    }
}

/// What a key says of a receipt.
pub(crate) fn signature(check: store::SignatureCheck) -> Signature {
    match check {
        store::SignatureCheck::Good => Signature::Good,
        store::SignatureCheck::Bad => Signature::Bad,
        store::SignatureCheck::KeyGone => Signature::KeyGone,
    }
}

/// An API key without the key; `None` if a role of it is of a newer version.
pub(crate) fn api_key(info: store::api_key::ApiKeyInfo) -> Option<ApiKeyEntry> {
    Some(ApiKeyEntry {
        roles: Roles::parse(&info.roles)?.iter().map(Word).collect(),
        id: info.id,
        namespace: info.namespace.to_string(),
        created_at: Timestamp(info.created_at),
        expires_at: info.expires_at.map(Timestamp),
        revoked_at: info.revoked_at.map(Timestamp),
    })
}
