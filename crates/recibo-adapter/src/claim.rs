//! Asking for permission.

use std::collections::BTreeMap;
use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use recibo_api::answer::{DecisionAnswer, Twin};
use recibo_api::request::{ClaimRequest, LabelPairs};
use recibo_api::{Code, Word};
use recibo_core::effect::Effect;
use recibo_core::hash::InputHash;
use recibo_core::id::CallRef;
use recibo_core::limits;
use recibo_core::plan::OnTwin;
use recibo_core::status::{CallState, DecisionKind, OutcomeStatus, Reason};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::error::LedgerError;
use crate::grant::Grant;
use crate::input::Arguments;
use crate::lease::now_ms;
use crate::leased::LeasedAttempt;
use crate::ledger::{Ledger, call_ref};
use crate::outcome::Outcome;
use crate::reply::Claimed;
use crate::retry::Backoff;
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
    /// How long the outside service honours an idempotency key. Holds where the policy has no
    /// rule for the tool.
    pub key_window: Option<Duration>,
    /// How long after an attempt's end the outside service's answer is final. Holds where the
    /// policy has no rule for the tool.
    pub settle: Option<Duration>,
    /// How long others are kept away: 1 s to 24 h, rounded down to milliseconds. It may be
    /// renewed.
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
    /// Whether a grant is held back while another call that does the same may have taken effect,
    /// is under way, or has succeeded without anybody having seen its result. `stop` unless told
    /// otherwise.
    pub on_twin: OnTwin,
    /// How long such a call holds the grant back; an hour when not given.
    pub twin_window: Option<Duration>,
    /// Calls that are known to have succeeded late, at most 64: `tool_call_id`, or
    /// `run_id/tool_call_id` of another run. They hold nothing back.
    pub knows: Vec<String>,
    arguments: Arguments,
}

impl CallSpec {
    /// A call with the arguments as the provider wrote them: JSON, exactly as it came; a text
    /// that does not parse counts as a string. The claim sends them, up to 512 KiB, since the
    /// policy may say which of them make two calls the same; of longer ones it sends the hash.
    /// The ledger keeps neither.
    ///
    /// # Errors
    /// `duplicate_member` or `number_out_of_range`. Ids are checked by the claim.
    pub fn new(
        run_id: impl Into<String>,
        tool_call_id: impl Into<String>,
        tool: impl Into<String>,
        arguments: &str,
    ) -> Result<Self, LedgerError> {
        let arguments = Arguments::read(arguments)?;
        Ok(Self {
            run_id: run_id.into(),
            tool_call_id: tool_call_id.into(),
            tool: tool.into(),
            input_hash: arguments.hash(),
            effect: None,
            key_window: None,
            settle: None,
            lease: Duration::from_millis(limits::LEASE_MS_DEFAULT),
            wait: Duration::ZERO,
            labels: BTreeMap::new(),
            operation_key: None,
            message_id: None,
            traceparent: None,
            on_twin: OnTwin::Stop,
            twin_window: None,
            knows: Vec::new(),
            arguments,
        })
    }

    fn request(&self, scope_id: String, claim_id: String) -> ClaimRequest<'_> {
        let input = self.arguments.json(self.input_hash);
        ClaimRequest {
            scope_id,
            claim_id,
            tool: self.tool.clone(),
            effect: self.effect.map(Word),
            key_window_ms: self.key_window.map(ms),
            settle_ms: self.settle.map(ms),
            input,
            input_hash: input.is_none().then(|| self.input_hash.to_string()),
            lease_ms: Some(ms(self.lease)),
            attempt: None,
            operation_key: self.operation_key.clone(),
            message_id: self.message_id.clone(),
            labels: (!self.labels.is_empty()).then(|| LabelPairs::from(&self.labels)),
            traceparent: self.traceparent.clone(),
            twins: (self.on_twin != OnTwin::Advise).then_some(Word(self.on_twin)),
            twin_window_ms: self.twin_window.map(ms),
            twin_hash: None,
            knows: (!self.knows.is_empty()).then(|| self.knows.clone()),
        }
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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

/// Claims, and while another attempt, or another call that does the same, is under way waits for
/// its end.
pub(crate) async fn patiently(scope: &Scope, spec: &CallSpec) -> Result<Permission, LedgerError> {
    let over_at_ms = now_ms().saturating_add(ms(spec.wait));
    loop {
        let permission = now(scope, spec).await?;
        let Permission::Refused(advice) = &permission else { return Ok(permission) };
        let left = Duration::from_millis(over_at_ms.saturating_sub(now_ms()));
        if advice.decision.0 != DecisionKind::Wait || left.is_zero() {
            return Ok(permission);
        }
        if let Some(advice) = wait_out(scope.ledger(), advice, left).await? {
            return Ok(Permission::Refused(advice));
        }
    }
}

/// Waits for the end of what the advice names: the call itself, or the twin that holds it back.
/// `None`: claim again.
pub(crate) async fn wait_out(
    ledger: &Ledger,
    advice: &DecisionAnswer,
    wait: Duration,
) -> Result<Option<Box<DecisionAnswer>>, LedgerError> {
    let over_at_ms = now_ms().saturating_add(ms(wait));
    let twin = advice.twin.as_ref().filter(|_| advice.reason.0 == Reason::TwinInFlight);
    let Some(twin) = twin else {
        let (run_id, tool_call_id) = (&advice.run_id, &advice.tool_call_id);
        let now = until_decided(ledger, run_id, tool_call_id, over_at_ms).await?;
        return Ok((now.decision.0 == DecisionKind::Wait).then(|| Box::new(now)));
    };
    // Services of before twins had runs name none.
    let run_id = if twin.run_id.is_empty() { &advice.run_id } else { &twin.run_id };
    let now = until_decided(ledger, run_id, &twin.tool_call_id, over_at_ms).await?;
    if now.decision.0 == DecisionKind::Wait {
        return Ok(Some(Box::new(advice.clone())));
    }
    if now.state.0 != CallState::Ok {
        return Ok(None);
    }
    // Its success is news to whoever waits: a claim now would be granted, and repeat it.
    let mut told = advice.clone();
    told.decision = Word(DecisionKind::Reuse);
    told.reason = Word(Reason::TwinOkLate);
    told.retry_after_ms = None;
    told.result_available = Some(false);
    told.twin = Some(Twin {
        run_id: run_id.clone(),
        attempt: now.attempt.unwrap_or(twin.attempt),
        state: now.state,
        ..twin.clone()
    });
    told.record = now.record;
    Ok(Some(Box::new(told)))
}

async fn until_decided(
    ledger: &Ledger,
    run_id: &str,
    tool_call_id: &str,
    over_at_ms: u64,
) -> Result<DecisionAnswer, LedgerError> {
    let mut backoff = Backoff::new(ledger.retry_policy.claim_tries, &ledger.retry_policy);
    loop {
        let left = Duration::from_millis(over_at_ms.saturating_sub(now_ms()));
        match ledger.decision(run_id, tool_call_id, left).await {
            Ok(advice) if advice.decision.0 != DecisionKind::Wait => return Ok(advice),
            Ok(advice) if now_ms() >= over_at_ms => return Ok(advice),
            // It answered before its time, for instance since it stops.
            Ok(_) => sleep(ledger.retry_policy.pause.min(left)).await,
            Err(error) if error.is_transient() && backoff.take() => {
                backoff.wait().await;
                ledger.find_again().await;
            }
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
    let mut backoff = Backoff::new(ledger.retry_policy.claim_tries, &ledger.retry_policy);
    let mut scope_id = scope.open().await?;
    let mut request = spec.request(scope_id.clone(), claim_id());
    loop {
        request.scope_id.clone_from(&scope_id);
        // Before the request: the lease is over for this side first.
        let asked_at_ms = now_ms();
        let error = match ledger.claim(&call, request.clone()).await {
            Ok(Claimed::Granted(granted)) => {
                let leased = LeasedAttempt::new(
                    scope.clone(),
                    call,
                    &spec.tool,
                    scope_id,
                    granted,
                    asked_at_ms,
                    ms(spec.lease),
                );
                return Ok(Permission::Granted(Grant::new(leased)));
            }
            Ok(Claimed::Advice(advice)) => return Ok(Permission::Refused(advice)),
            Err(error) => error,
        };
        if error.code() == Some(Code::BodyTooLarge) && request.input.is_some() {
            // Something on the way takes less than the ledger does.
            request.input = None;
            request.input_hash = Some(spec.input_hash.to_string());
            continue;
        }
        if !(error.is_transient() || error.is_scope_gone()) || !backoff.take() {
            return Err(error);
        }
        if error.is_scope_gone() {
            // A refused claim has appended nothing, so it may come again.
            scope_id = scope.renew(&scope_id).await?;
        } else {
            backoff.wait().await;
            // The service may have ended or moved. The claim that is sent again is the same one:
            // another one would wait for the grant that the first one may have got.
            ledger.find_again().await;
        }
    }
}

fn claim_id() -> String {
    let random: [u8; 16] = rand::random();
    format!("c-{}", BASE32_NOPAD.encode(&random).to_lowercase())
}
