//! Asking for permission.

use std::collections::BTreeMap;
use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use recibo_api::Word;
use recibo_api::answer::DecisionAnswer;
use recibo_api::request::{ClaimRequest, LabelPairs};
use recibo_core::effect::Effect;
use recibo_core::hash::InputHash;
use recibo_core::id::CallRef;
use recibo_core::limits;
use recibo_core::status::{DecisionKind, OutcomeStatus};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::error::LedgerError;
use crate::grant::Grant;
use crate::input;
use crate::lease::now_ms;
use crate::ledger::{Claimed, call_ref};
use crate::outcome::Outcome;
use crate::patience::Tries;
use crate::scope::Scope;

/// What is asked for. Make one with [`CallSpec::new`] and set what else is known.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallSpec {
    /// The run.
    pub run_id: String,
    /// The call: one per intended effect, the same for every retry of it.
    pub tool_call_id: String,
    /// The tool.
    pub tool: String,
    /// Hash of the canonical arguments.
    pub input_hash: InputHash,
    /// What the tool does to the world; without one, what the policy says, else `opaque`.
    pub effect: Option<Effect>,
    /// How long others are kept away: 1 s to 24 h, rounded down to milliseconds.
    pub lease: Duration,
    /// How long to wait while another attempt is under way.
    pub wait: Duration,
    /// At most 16, 2 KiB together.
    pub labels: BTreeMap<String, String>,
    /// A key of the caller's own that the outside service knows.
    pub operation_key: Option<String>,
    /// Links to a message.
    pub message_id: Option<String>,
    /// W3C Trace Context.
    pub traceparent: Option<String>,
}

impl CallSpec {
    /// A call with the arguments as the provider wrote them: JSON, exactly as it came; a text
    /// that does not parse counts as a string. They are hashed here and go nowhere.
    ///
    /// # Errors
    /// `duplicate_member` or `number_out_of_range`. Ids are checked by the claim.
    pub fn new(
        run_id: impl Into<String>,
        tool_call_id: impl Into<String>,
        tool: impl Into<String>,
        arguments: &str,
    ) -> Result<Self, LedgerError> {
        Ok(Self {
            run_id: run_id.into(),
            tool_call_id: tool_call_id.into(),
            tool: tool.into(),
            input_hash: input::hash(arguments)?,
            effect: None,
            lease: Duration::from_millis(limits::LEASE_MS_DEFAULT),
            wait: Duration::ZERO,
            labels: BTreeMap::new(),
            operation_key: None,
            message_id: None,
            traceparent: None,
        })
    }

    fn request(&self, scope_id: String, claim_id: String) -> ClaimRequest<'static> {
        ClaimRequest {
            scope_id,
            claim_id,
            tool: self.tool.clone(),
            effect: self.effect.map(Word),
            key_window_ms: None,
            settle_ms: None,
            input: None,
            input_hash: Some(self.input_hash.to_string()),
            lease_ms: Some(u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX)),
            attempt: None,
            operation_key: self.operation_key.clone(),
            message_id: self.message_id.clone(),
            labels: (!self.labels.is_empty()).then(|| LabelPairs::from(&self.labels)),
            traceparent: self.traceparent.clone(),
            twins: None,
            twin_window_ms: None,
            twin_hash: None,
            knows: None,
        }
    }
}

/// The ledger's answer to a claim.
#[derive(Debug)]
pub enum Permission {
    /// Run it, and report how it ended.
    Granted(Grant),
    /// Do not run it. A decision that is not known reads as `stop`; `proceed` without a grant
    /// is nothing to act upon.
    Refused(Box<DecisionAnswer>),
}

/// Claims, and while another attempt is under way waits for its end.
pub(crate) async fn patiently(scope: &Scope, spec: &CallSpec) -> Result<Permission, LedgerError> {
    let wait_ms = u64::try_from(spec.wait.as_millis()).unwrap_or(u64::MAX);
    let over_at_ms = now_ms().saturating_add(wait_ms);
    loop {
        let permission = now(scope, spec).await?;
        let Permission::Refused(advice) = &permission else { return Ok(permission) };
        if advice.decision.0 != DecisionKind::Wait || now_ms() >= over_at_ms {
            return Ok(permission);
        }
        let advice = until_decided(scope, spec, over_at_ms).await?;
        if advice.decision.0 == DecisionKind::Wait {
            return Ok(Permission::Refused(Box::new(advice)));
        }
    }
}

async fn until_decided(
    scope: &Scope,
    spec: &CallSpec,
    over_at_ms: u64,
) -> Result<DecisionAnswer, LedgerError> {
    let ledger = scope.ledger();
    let mut tries = Tries::new(ledger.patience.claim_tries, &ledger.patience);
    loop {
        let left = Duration::from_millis(over_at_ms.saturating_sub(now_ms()));
        match ledger.decision(&spec.run_id, &spec.tool_call_id, left).await {
            Ok(advice) if advice.decision.0 != DecisionKind::Wait => return Ok(advice),
            Ok(advice) if now_ms() >= over_at_ms => return Ok(advice),
            // It answered before its time, for instance since it stops.
            Ok(_) => sleep(ledger.patience.pause.min(left)).await,
            Err(error) if error.is_passing() && tries.take() => tries.wait().await,
            Err(error) => return Err(error),
        }
    }
}

/// One claim, in a task of its own: a caller that is dropped in the middle must not leave a
/// grant behind that nobody knows of.
pub(crate) async fn now(scope: &Scope, spec: &CallSpec) -> Result<Permission, LedgerError> {
    let call = call_ref(&spec.run_id, &spec.tool_call_id)?;
    let (answer, answered) = oneshot::channel();
    let running = scope.ledger().background.begin();
    let (scope, spec) = (scope.clone(), spec.clone());
    tokio::spawn(async move {
        let result = insist(&scope, &spec, call).await;
        if let Err(Ok(Permission::Granted(grant))) = answer.send(result) {
            let outcome =
                Outcome::failed(OutcomeStatus::RetryableError, grant.since_asked(), "cancelled");
            // If this fails, the end of the lease will make it `unknown`.
            let _ = grant.finish(outcome).await;
        }
        drop(running);
    });
    answered.await.unwrap_or_else(|_| Err(LedgerError::internal()))
}

/// Sends a claim until it is answered. Its id is drawn here and lives nowhere else, so that a
/// replay of its grant permits only this task, which knows that it has not sent.
async fn insist(scope: &Scope, spec: &CallSpec, call: CallRef) -> Result<Permission, LedgerError> {
    let ledger = scope.ledger();
    let mut tries = Tries::new(ledger.patience.claim_tries, &ledger.patience);
    let mut scope_id = scope.open().await?;
    let request = spec.request(scope_id.clone(), claim_id());
    loop {
        let request = ClaimRequest { scope_id: scope_id.clone(), ..request.clone() };
        // Before the request: the lease is over for this side first.
        let asked_at_ms = now_ms();
        let error = match ledger.claim(&call, request).await {
            Ok(Claimed::Granted(granted)) => {
                let grant =
                    Grant::new(scope.clone(), call, &spec.tool, scope_id, granted, asked_at_ms);
                return Ok(Permission::Granted(grant));
            }
            Ok(Claimed::Advice(advice)) => return Ok(Permission::Refused(advice)),
            Err(error) => error,
        };
        if !(error.is_passing() || error.is_scope_gone()) || !tries.take() {
            return Err(error);
        }
        if error.is_scope_gone() {
            // A refused claim has appended nothing, so it may come again.
            scope_id = scope.renew(&scope_id).await?;
        } else {
            tries.wait().await;
        }
    }
}

fn claim_id() -> String {
    let random: [u8; 16] = rand::random();
    format!("c-{}", BASE32_NOPAD.encode(&random).to_lowercase())
}
