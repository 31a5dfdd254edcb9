//! One call: claim, run, classify, record; again where the ledger permits it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use recibo_api::answer::{DecisionAnswer, OutcomeAnswer, Twin};
use recibo_core::effect::Effect;
use recibo_core::status::{DecisionKind, OutcomeStatus, Reason};
use tokio::time::sleep;

use crate::claim::{CallSpec, Permission};
use crate::context::Context;
use crate::contract::ToolContract;
use crate::error::LedgerError;
use crate::grant::Grant;
use crate::held_back;
use crate::lease::now_ms;
use crate::outcome::{Outcome, Output};
use crate::renew::RENEW_FOR_MAX;
use crate::result::{self, Ended, ToolResult};
use crate::seen::{Seen, see};
use crate::status::{self, Settled};
use crate::tool::{Attempt, ToolCall, ToolError, ToolOutput};
use crate::words;

/// The clock is looked at this often: a machine that has slept must not find a tool running
/// beyond its lease.
const LOOK_EVERY: Duration = Duration::from_millis(500);

type Running = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

/// How one attempt ended.
enum Tried {
    Done(ToolResult),
    /// The text for the model if it stays at that, and whether to ask for another attempt.
    Failed {
        result: ToolResult,
        may_ask_again: bool,
    },
}

pub(crate) async fn call<F, Fut>(
    context: &Arc<Context>,
    contract: &ToolContract,
    call: ToolCall,
    id: String,
    mut tool: F,
) -> ToolResult
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    let mut tool = |attempt| -> Running { Box::pin(tool(attempt)) };
    let settings = &context.run.settings;
    if !settings.enabled {
        return without_ledger(context, contract, &call, id, &mut tool).await;
    }
    let mut spec = match spec(context, contract, &call, &id) {
        Ok(spec) => spec,
        Err(error) => return result::no_decision(id, &error),
    };
    let (mut attempts, mut checks, mut last) = (0, 0, None);
    loop {
        spec.knows = context.run.told.entries();
        let grant = match context.scope.claim(&spec).await {
            Ok(Permission::Granted(grant)) => grant,
            Ok(Permission::Refused(advice)) => {
                match not_granted(context, contract, &advice, &mut checks).await {
                    Some(result) => return result.after(attempts),
                    None => continue,
                }
            }
            // What is known of the attempts that were made says more.
            Err(error) => match last {
                Some(result) => return result,
                None if error.is_transient() && settings.fail_open => {
                    return open(context, contract, &call, id, &mut tool).await;
                }
                None => return result::no_decision(id, &error),
            },
        };
        attempts += 1;
        match attempt(context, contract, &call, grant, attempts, &mut tool).await {
            Tried::Done(result) => return result,
            Tried::Failed { result, may_ask_again } => {
                if !may_ask_again || attempts >= contract.attempts_max {
                    return result;
                }
                last = Some(result);
                sleep(contract.pause(attempts)).await;
            }
        }
    }
}

fn spec(
    context: &Context,
    contract: &ToolContract,
    call: &ToolCall,
    id: &str,
) -> Result<CallSpec, LedgerError> {
    let mut spec = CallSpec::new(&context.run.run_id, id, &contract.tool, &call.arguments)?;
    spec.effect = contract.effect;
    spec.key_window = contract.key_window;
    spec.settle = contract.settle;
    spec.on_twin = contract.on_twin;
    spec.twin_window = contract.twin_window;
    spec.lease = contract.lease_asked();
    spec.wait = contract.wait_asked();
    spec.labels = call.labels.clone();
    spec.operation_key = call.operation_key.clone();
    spec.message_id = call.message_id.clone();
    spec.traceparent = call.traceparent.clone();
    Ok(spec)
}

/// What the model is told of advice; `None` where the outside service was asked and the claim
/// may come again.
async fn not_granted(
    context: &Context,
    contract: &ToolContract,
    advice: &DecisionAnswer,
    checks: &mut u32,
) -> Option<ToolResult> {
    let twin = held_back::twin_of(advice);
    let may_settle =
        advice.decision.0 == DecisionKind::CheckStatus || advice.reason.0 == Reason::TwinUnknown;
    if may_settle && *checks < contract.checks_max {
        *checks += 1;
        let settled = match twin {
            Some(twin) => held_back::settle(context, contract, twin).await,
            None => status::settle(context, contract, advice).await,
        };
        match settled {
            Settled::AskAgain => return None,
            Settled::Told(text) if twin.is_none() => return Some(result::not_run(advice, text)),
            Settled::Told(_) | Settled::NotAsked => {}
        }
    }
    let told = held_back::told(context, advice).await;
    Some(told.unwrap_or_else(|| result::refused(context, advice)))
}

async fn attempt(
    context: &Arc<Context>,
    contract: &ToolContract,
    call: &ToolCall,
    mut grant: Grant,
    attempts: u32,
    tool: &mut impl FnMut(Attempt) -> Running,
) -> Tried {
    let failure = Failure { context, contract, attempts, twin: grant.twin().cloned() };
    if !grant.may_send() {
        let error = ToolError::retryable("lease_over", "");
        return failure.report(grant, &error, Duration::ZERO).await;
    }
    let began_ms = now_ms();
    let time_left = contract.timeout.unwrap_or(RENEW_FOR_MAX);
    let mut running = tool(Attempt {
        run_id: grant.run_id().to_owned(),
        tool_call_id: grant.tool_call_id().to_owned(),
        number: grant.attempt(),
        idempotency_key: Some(
            call.operation_key.clone().unwrap_or_else(|| grant.idempotency_key().to_owned()),
        ),
        time_left,
        twin: grant.twin().cloned(),
    });
    let ended = until_timeout(&mut running, &grant, end_ms(began_ms, time_left)).await;
    let took = Duration::from_millis(now_ms().saturating_sub(began_ms));
    match ended {
        Some(Ok(output)) => {
            let (id, twin) = (grant.tool_call_id().to_owned(), failure.twin);
            let seen = see(contract, &output);
            let recorded = grant.finish(success(&seen, &output, took)).await;
            let result = result::succeeded(context, seen, recorded, id);
            Tried::Done(result.after(attempts).with_twin(twin))
        }
        Some(Err(error)) => failure.report(grant, &error, took).await,
        None => {
            // Nothing may be sent once the timeout is reported.
            let running = contract.takes_late_answers.then_some(running);
            let outcome = Outcome::failed(OutcomeStatus::Timeout, took, "timeout");
            let recorded = grant.report(outcome).await;
            let id = grant.tool_call_id().to_owned();
            if let Some(running) = running {
                tokio::spawn(late(context.clone(), contract.clone(), grant, running, began_ms));
            }
            failure.tried(id, &ToolError::timeout(), recorded)
        }
    }
}

/// Waits for an answer that comes after its time, as long as the lease permits, and records it.
/// The first definite outcome after a timeout is taken.
async fn late(
    context: Arc<Context>,
    contract: ToolContract,
    grant: Grant,
    mut running: Running,
    began_ms: u64,
) {
    let Some(ended) = until(&mut running, || grant.last_moment_ms()).await else { return };
    let took = Duration::from_millis(now_ms().saturating_sub(began_ms));
    let (outcome, text) = match &ended {
        Ok(output) => {
            let seen = see(&contract, output);
            (success(&seen, output, took), Some(seen.text))
        }
        Err(error) if error.status.is_definite() => {
            (Outcome::failed(error.status, took, &error.class), None)
        }
        // Nothing new.
        Err(_) => return,
    };
    match grant.finish(outcome).await {
        Ok(answer) => context.kept.keep(&answer, text.as_deref()),
        Err(error) => tracing::warn!(%error, "a late outcome could not be recorded"),
    }
}

/// The answer of a tool, or `None` when its time or its lease is over. The lease is renewed
/// meanwhile, as far as the tool's time needs it.
async fn until_timeout(
    running: &mut Running,
    grant: &Grant,
    end_ms: u64,
) -> Option<Result<ToolOutput, ToolError>> {
    let renewing = async {
        grant.renewed_until(end_ms).await;
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        biased;
        ended = until(running, || end_ms.min(grant.last_moment_ms())) => ended,
        never = renewing => match never {},
    }
}

/// The answer of a tool, or `None` when its time is over. The clock that decides goes on while
/// the machine sleeps; the runtime's may not.
async fn until(
    running: &mut Running,
    end_ms: impl Fn() -> u64,
) -> Option<Result<ToolOutput, ToolError>> {
    loop {
        let left = Duration::from_millis(end_ms().saturating_sub(now_ms()));
        tokio::select! {
            biased;
            ended = &mut *running => return Some(ended),
            () = sleep(left.min(LOOK_EVERY)) => {
                if now_ms() >= end_ms() {
                    return None;
                }
            }
        }
    }
}

fn end_ms(began_ms: u64, time_left: Duration) -> u64 {
    began_ms.saturating_add(u64::try_from(time_left.as_millis()).unwrap_or(u64::MAX))
}

fn success(seen: &Seen, output: &ToolOutput, took: Duration) -> Outcome {
    let mut outcome = Outcome::ok(took, Output::Text(seen.text.clone()));
    outcome.summary = seen.summary.clone();
    outcome.provider_ref = output.provider_ref.clone();
    outcome.message_id = output.message_id.clone();
    outcome
}

/// An attempt that failed.
struct Failure<'a> {
    context: &'a Context,
    contract: &'a ToolContract,
    attempts: u32,
    twin: Option<Twin>,
}

impl Failure<'_> {
    async fn report(self, grant: Grant, error: &ToolError, took: Duration) -> Tried {
        let id = grant.tool_call_id().to_owned();
        let mut outcome = Outcome::failed(error.status, took, &error.class);
        outcome.answered = error.is_answered;
        let recorded = grant.finish(outcome).await;
        self.tried(id, error, recorded)
    }

    fn tried(
        self,
        tool_call_id: String,
        error: &ToolError,
        recorded: Result<OutcomeAnswer, LedgerError>,
    ) -> Tried {
        let may_ask_again = match &recorded {
            Ok(answer) => {
                self.context.kept.keep(answer, None);
                self.may_ask_again(error.status, answer.record.effect.0)
            }
            Err(error) => {
                tracing::warn!(%error, tool_call_id, "a failure could not be recorded");
                false
            }
        };
        let ended = Ended::Failed(error.status);
        let result = ToolResult::new(words::failed(error), ended, tool_call_id);
        let result = result.after(self.attempts).with_twin(self.twin);
        Tried::Failed { result, may_ask_again }
    }

    /// Whether the ledger might permit another attempt; what it says is what counts.
    fn may_ask_again(&self, status: OutcomeStatus, effect: Effect) -> bool {
        match status {
            OutcomeStatus::RetryableError => true,
            OutcomeStatus::Ok | OutcomeStatus::TerminalError => false,
            OutcomeStatus::Timeout | OutcomeStatus::Unknown => match effect {
                Effect::ReadOnly | Effect::Idempotent | Effect::Keyed => true,
                Effect::Queryable => self.contract.status_hook.is_some(),
                Effect::Opaque => false,
            },
        }
    }
}

/// The ledger cannot be reached, and the operator wants to go on without it.
async fn open(
    context: &Context,
    contract: &ToolContract,
    call: &ToolCall,
    id: String,
    tool: &mut impl FnMut(Attempt) -> Running,
) -> ToolResult {
    context.run.count_unreceipted();
    tracing::warn!(tool_call_id = id, "a tool runs without the ledger: it cannot be reached");
    let result = without_ledger(context, contract, call, id, tool).await;
    result.with_line(Some(words::UNRECEIPTED))
}

/// One attempt that nobody permits and nothing records.
async fn without_ledger(
    context: &Context,
    contract: &ToolContract,
    call: &ToolCall,
    tool_call_id: String,
    tool: &mut impl FnMut(Attempt) -> Running,
) -> ToolResult {
    let time_left = contract.timeout.unwrap_or(Duration::MAX);
    let mut running = tool(Attempt {
        run_id: context.run.run_id.clone(),
        tool_call_id: tool_call_id.clone(),
        number: 1,
        idempotency_key: call.operation_key.clone(),
        time_left,
        twin: None,
    });
    let end_ms = end_ms(now_ms(), time_left);
    let (text, ended) = match until(&mut running, || end_ms).await {
        Some(Ok(output)) => (see(contract, &output).text, Ended::Ok),
        Some(Err(error)) => (words::failed(&error), Ended::Failed(error.status)),
        None => (words::failed(&ToolError::timeout()), Ended::Failed(OutcomeStatus::Timeout)),
    };
    ToolResult::new(text, ended, tool_call_id).after(1)
}
