//! A ledger in this process. No server and no JSON in between: requests are checked as the
//! service checks them, and go to the store as values of the core.

use std::sync::{Arc, Once};
use std::time::Duration;

use recibo_api::answer::{Decided, DecisionAnswer, OutcomeAnswer, ScopeState, Terms, Twin};
use recibo_api::request::{CheckRequest, ClaimRequest, RenewalRequest, ScopeRequest};
use recibo_api::secrets::{SecretPolicy, refuse_claim};
use recibo_api::{Code, Problem};
use recibo_core::id::{CallRef, Namespace, ScopeId};
use recibo_core::limits;
use recibo_core::plan::ClaimedAs;
use recibo_store::{self as store, DecisionView, Store};
use tokio::time::sleep;

use crate::error::LedgerError;
use crate::reply::{Checked, Claimed, Granted};
use crate::report::OutcomeDelivery;

/// How often the ends of leases and scopes are looked for. Nothing that is answered depends on
/// it, but a key whose time is over is wiped by it.
const TICK: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(crate) struct Embedded(Arc<Inner>);

struct Inner {
    store: Store,
    namespace: Namespace,
    ticks: Once,
}

impl Embedded {
    pub(crate) fn new(store: Store, namespace: Namespace) -> Self {
        Self(Arc::new(Inner { store, namespace, ticks: Once::new() }))
    }

    pub(crate) async fn open_scope(&self, request: ScopeRequest) -> Result<String, LedgerError> {
        self.tick();
        let params = request.parse()?;
        let Inner { store, namespace, .. } = &*self.0;
        let opened = store.open_scope(namespace, params.label, params.ttl_ms).await?;
        Ok(opened.scope_id.to_string())
    }

    pub(crate) async fn close_scope(&self, scope_id: &str) -> Result<(), LedgerError> {
        let scope_id = ScopeId::parse(scope_id)?;
        if self.0.store.close_scope(&self.0.namespace, &scope_id).await? {
            Ok(())
        } else {
            Err(Problem::new(Code::ScopeNotFound, "no such scope").into())
        }
    }

    pub(crate) async fn scope_state(&self, scope_id: &str) -> Result<ScopeState, LedgerError> {
        let scope_id = ScopeId::parse(scope_id)?;
        let scope = self.0.store.scope(&self.0.namespace, &scope_id)?;
        match scope.ok_or_else(|| Problem::new(Code::ScopeNotFound, "no such scope"))?.state {
            store::ScopeState::Open => Ok(ScopeState::Open),
            store::ScopeState::Closed => Ok(ScopeState::Closed),
            store::ScopeState::Gone => Ok(ScopeState::Gone),
        }
    }

    pub(crate) async fn claim(
        &self,
        call: &CallRef,
        request: ClaimRequest<'_>,
    ) -> Result<Claimed, LedgerError> {
        let policy = self.0.store.policy(&self.0.namespace);
        let claim = request.parse(call.clone(), &policy)?;
        refuse_claim(&claim, SecretPolicy::Mask)?;
        Ok(claimed(self.0.store.claim(&self.0.namespace, claim).await?))
    }

    pub(crate) async fn decision(
        &self,
        call: &CallRef,
        wait: Duration,
    ) -> Result<DecisionAnswer, LedgerError> {
        let Inner { store, namespace, .. } = &*self.0;
        let wait = wait.min(Duration::from_millis(limits::WAIT_MS_MAX));
        let view = store.decided(namespace, call, wait, std::future::pending()).await?;
        Ok(advice(call, view))
    }

    pub(crate) async fn report(
        &self,
        call: &CallRef,
        attempt: u32,
        delivery: &OutcomeDelivery,
    ) -> Result<OutcomeAnswer, LedgerError> {
        // The result need not become JSON to be hashed.
        let shape = delivery.shape();
        let params = delivery.request(None, shape.as_deref()).parse(call.clone(), attempt)?;
        let Inner { store, namespace, .. } = &*self.0;
        let answer =
            store.report(namespace, params.report, params.lease_token, params.scope_id).await?;
        Ok(OutcomeAnswer::from_core(&answer.record, answer.replayed))
    }

    pub(crate) async fn renew(
        &self,
        call: &CallRef,
        attempt: u32,
        request: RenewalRequest,
    ) -> Result<u64, LedgerError> {
        let params = request.parse(call.clone(), attempt)?;
        let Inner { store, namespace, .. } = &*self.0;
        let renewed = store.renew(namespace, params.renewal, params.lease_token).await?;
        Ok(renewed.lease_expires_at.ms_since(renewed.now))
    }

    pub(crate) async fn check(
        &self,
        call: &CallRef,
        attempt: u32,
        check: CheckRequest,
    ) -> Result<Checked, LedgerError> {
        let check = check.parse(call.clone(), attempt)?;
        let Inner { store, namespace, .. } = &*self.0;
        let checked = store.check(namespace, check).await?;
        let decision = store.settled().await?.decision(namespace, call)?.decision;
        Ok(Checked {
            state: decision.state,
            decision: decision.kind,
            reason: decision.reason,
            retry_after_ms: checked.retry_after_ms.or(decision.retry_after_ms),
        })
    }

    pub(crate) async fn close(&self) {
        let store = self.0.store.clone();
        // A panic in there has been printed, and what was answered is durable.
        let _ = tokio::task::spawn_blocking(move || store.close()).await;
    }

    /// Starts the ticks, once. They end with the last clone of this ledger.
    fn tick(&self) {
        self.0.ticks.call_once(|| {
            let inner = Arc::downgrade(&self.0);
            tokio::spawn(async move {
                loop {
                    sleep(TICK).await;
                    let Some(inner) = inner.upgrade() else { return };
                    // A full queue means that the writer is busy, and the next tick will do.
                    let _ = inner.store.tick(&inner.namespace).await;
                    if !inner.store.is_serving() {
                        return;
                    }
                }
            });
        });
    }
}

fn claimed(answer: store::ClaimAnswer) -> Claimed {
    match answer.claimed {
        ClaimedAs::Granted { attempt, lease_expires_at, replayed, .. } => {
            Claimed::Granted(Granted {
                attempt,
                lease_token: answer.lease_token.expect("a grant has a lease token"),
                lease_ms: lease_expires_at.ms_since(answer.now),
                idempotency_key: answer.idempotency_key.to_string(),
                replayed,
                twin: answer.twin.as_ref().map(Twin::from_core),
                effect: answer.terms.effect,
                is_error: answer.terms.is_error,
            })
        }
        ClaimedAs::Advice(decision) => {
            let terms = Terms::from_core(&answer.terms, answer.key_window_ends_at);
            Claimed::Advice(Box::new(DecisionAnswer::from_core(&Decided {
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

fn advice(call: &CallRef, view: DecisionView) -> DecisionAnswer {
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
