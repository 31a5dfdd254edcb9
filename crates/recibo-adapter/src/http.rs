//! A ledger behind a service: paths and bodies, nothing else.

use std::time::Duration;

use recibo_api::answer::{
    CallAnswer, ClaimAnswer, DecisionAnswer, OutcomeAnswer, RenewalAnswer, ScopeAnswer, ScopeState,
};
use recibo_api::client::{Answer, Request, Service};
use recibo_api::request::{CheckRequest, ClaimRequest, RenewalRequest, ScopeRequest};
use recibo_core::id::CallRef;
use recibo_core::limits;

use crate::error::LedgerError;
use crate::reply::{Checked, Claimed};
use crate::report::OutcomeDelivery;

#[derive(Clone)]
pub(crate) struct Http(pub(crate) Service);

impl Http {
    pub(crate) async fn open_scope(&self, request: ScopeRequest) -> Result<String, LedgerError> {
        let answer = self.call(Request::post(&["scopes"], &request)).await?;
        Ok(answer.read::<ScopeAnswer>()?.scope_id)
    }

    pub(crate) async fn close_scope(&self, scope_id: &str) -> Result<(), LedgerError> {
        self.call(Request::delete(&["scopes", scope_id])).await?;
        Ok(())
    }

    pub(crate) async fn scope_state(&self, scope_id: &str) -> Result<ScopeState, LedgerError> {
        let answer = self.call(Request::get(&["scopes", scope_id])).await?;
        Ok(answer.read::<ScopeAnswer>()?.state.0)
    }

    pub(crate) async fn claim(
        &self,
        call: &CallRef,
        request: ClaimRequest<'_>,
    ) -> Result<Claimed, LedgerError> {
        let answer = self.call(Request::post(&segments(call, &["attempts"]), &request)).await?;
        Ok(answer.read::<ClaimAnswer>()?.into())
    }

    pub(crate) async fn decision(
        &self,
        call: &CallRef,
        wait: Duration,
    ) -> Result<DecisionAnswer, LedgerError> {
        let wait = wait.min(Duration::from_millis(limits::WAIT_MS_MAX));
        let mut request = Request::get(&segments(call, &["decision"]));
        if !wait.is_zero() {
            request = request.with("wait_ms", &wait.as_millis().to_string()).waiting(wait);
        }
        Ok(self.call(request).await?.read()?)
    }

    pub(crate) async fn report(
        &self,
        call: &CallRef,
        attempt: u32,
        delivery: &OutcomeDelivery,
    ) -> Result<OutcomeAnswer, LedgerError> {
        let attempt = attempt.to_string();
        let path = segments(call, &["attempts", &attempt, "outcome"]);
        let text = delivery.text();
        let shape = if text.is_none() { delivery.shape() } else { None };
        let body = delivery.request(text.as_deref(), shape.as_deref());
        Ok(self.call(Request::post(&path, &body)).await?.read()?)
    }

    pub(crate) async fn renew(
        &self,
        call: &CallRef,
        attempt: u32,
        request: RenewalRequest,
    ) -> Result<u64, LedgerError> {
        let attempt = attempt.to_string();
        let path = segments(call, &["attempts", &attempt, "lease"]);
        let answer: RenewalAnswer = self.call(Request::post(&path, &request)).await?.read()?;
        Ok(answer.lease.duration_ms)
    }

    pub(crate) async fn check(
        &self,
        call: &CallRef,
        attempt: u32,
        check: CheckRequest,
    ) -> Result<Checked, LedgerError> {
        let attempt = attempt.to_string();
        let path = segments(call, &["attempts", &attempt, "status-checks"]);
        let answer: CallAnswer = self.call(Request::post(&path, &check)).await?.read()?;
        Ok(Checked {
            state: answer.call.state.0,
            decision: answer.decision.0,
            reason: answer.reason.0,
            retry_after_ms: answer.retry_after_ms,
        })
    }

    async fn call(&self, request: Request) -> Result<Answer, LedgerError> {
        Ok(self.0.call(request).await?)
    }
}

fn segments<'a>(call: &'a CallRef, rest: &[&'a str]) -> Vec<&'a str> {
    let start = ["runs", call.run_id.as_str(), "calls", call.tool_call_id.as_str()];
    [&start, rest].concat()
}
