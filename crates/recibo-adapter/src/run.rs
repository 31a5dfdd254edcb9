//! One call: claim, run, classify, record; again where the ledger permits it.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use recibo_api::answer::{DecisionAnswer, OutcomeAnswer, Twin};
use recibo_core::effect::Effect;
use recibo_core::receipt::receipt_line;
use recibo_core::status::{DecisionKind, OutcomeStatus};
use tokio::time::sleep;

use crate::claim::{CallSpec, Permission};
use crate::contract::ToolContract;
use crate::error::LedgerError;
use crate::grant::Grant;
use crate::lease::now_ms;
use crate::outcome::{Outcome, Output};
use crate::seen::{Seen, see};
use crate::status::{self, Settled};
use crate::tool::{Attempt, ToolCall, ToolError, ToolOutput};
use crate::turn::Turn;
use crate::words;

/// The clock is looked at this often: a machine that has slept must not find a tool running
/// beyond its lease.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What the model may be told of a call, and what a program may want to know.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolResult {
    /// For the model: the result and, after a line feed, its receipt line; or what is known.
    pub text: String,
    /// Whether `text` is no result of the tool.
    pub is_error: bool,
    /// How it ended.
    pub ended: Ended,
    /// The call's id in the ledger.
    pub tool_call_id: String,
    /// Attempts that were made now.
    pub attempts: u32,
    /// The receipt.
    pub token: Option<String>,
    /// Another call of the run with the same tool and arguments, which is done, under way or
    /// unknown. Advice only: two calls may be meant.
    pub twin: Option<Twin>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It succeeded, now or before.
    Ok,
    /// Its last attempt ended otherwise.
    Failed(OutcomeStatus),
    /// The ledger did not permit it.
    NotRun(DecisionKind),
    /// The ledger refused the request, or was not to be reached.
    NoDecision,
}

/// Without the text, which holds the result.
impl std::fmt::Debug for ToolResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolResult")
            .field("tool_call_id", &self.tool_call_id)
            .field("ended", &self.ended)
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}

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
    turn: &Turn,
    contract: &ToolContract,
    call: ToolCall,
    mut tool: F,
) -> ToolResult
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    let mut tool = |attempt| -> Running { Box::pin(tool(attempt)) };
    let id = turn.call_id(call.provider_call_id.as_deref());
    if !turn.adapter().settings().enabled {
        return without_ledger(turn, contract, &call, id, &mut tool).await;
    }
    let spec = match spec(turn, contract, &call, &id) {
        Ok(spec) => spec,
        Err(error) => return no_decision(id, &error),
    };
    let (mut attempts, mut checks, mut last) = (0, 0, None);
    loop {
        let grant = match turn.scope().claim(&spec).await {
            Ok(Permission::Granted(grant)) => grant,
            Ok(Permission::Refused(advice)) => {
                if advice.decision.0 == DecisionKind::CheckStatus && checks < contract.checks_max {
                    checks += 1;
                    match status::settle(turn, contract, &advice).await {
                        Settled::AskAgain => continue,
                        Settled::Told(text) => return not_run(&advice, text, attempts),
                        Settled::NotAsked => {}
                    }
                }
                return refused(turn, &advice, attempts);
            }
            // What is known of the attempts that were made says more.
            Err(error) => match last {
                Some(result) => return result,
                None if error.is_passing() && turn.adapter().settings().fail_open => {
                    return open(turn, contract, &call, id, &mut tool).await;
                }
                None => return no_decision(id, &error),
            },
        };
        attempts += 1;
        match attempt(turn, contract, &call, grant, attempts, &mut tool).await {
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
    turn: &Turn,
    contract: &ToolContract,
    call: &ToolCall,
    id: &str,
) -> Result<CallSpec, LedgerError> {
    let run_id = turn.adapter().run_id();
    let mut spec = CallSpec::new(run_id, id, &contract.tool, &call.arguments)?;
    spec.effect = contract.effect;
    spec.lease = contract.lease_asked();
    spec.wait = contract.wait_asked();
    spec.labels = call.labels.clone();
    spec.operation_key = call.operation_key.clone();
    spec.message_id = call.message_id.clone();
    spec.traceparent = call.traceparent.clone();
    Ok(spec)
}

async fn attempt(
    turn: &Turn,
    contract: &ToolContract,
    call: &ToolCall,
    mut grant: Grant,
    attempts: u32,
    tool: &mut impl FnMut(Attempt) -> Running,
) -> Tried {
    let failure = Failure { turn, contract, attempts, twin: grant.twin().cloned() };
    if !grant.may_send() {
        let error = ToolError::retryable("lease_over", "");
        return failure.report(grant, &error, Duration::ZERO).await;
    }
    let began_ms = now_ms();
    let timeout_ms = u64::try_from(contract.timeout.as_millis()).unwrap_or(u64::MAX);
    let end_ms = began_ms.saturating_add(timeout_ms).min(grant.last_moment_ms());
    let mut running = tool(Attempt {
        run_id: grant.run_id().to_owned(),
        tool_call_id: grant.tool_call_id().to_owned(),
        number: grant.attempt(),
        idempotency_key: Some(
            call.operation_key.clone().unwrap_or_else(|| grant.idempotency_key().to_owned()),
        ),
        time_left: Duration::from_millis(end_ms.saturating_sub(began_ms)),
        twin: grant.twin().cloned(),
    });
    let ended = until(&mut running, end_ms).await;
    let took = Duration::from_millis(now_ms().saturating_sub(began_ms));
    match ended {
        Some(Ok(output)) => {
            let (id, twin) = (grant.tool_call_id().to_owned(), failure.twin);
            let seen = see(contract, &output);
            let recorded = grant.finish(success(&seen, &output, took)).await;
            Tried::Done(succeeded(turn, seen, recorded, id, attempts, twin))
        }
        Some(Err(error)) => failure.report(grant, &error, took).await,
        None => {
            // Nothing may be sent once the timeout is reported.
            let running = contract.takes_late_answers.then_some(running);
            let outcome = Outcome::failed(OutcomeStatus::Timeout, took, "timeout");
            let recorded = grant.report(outcome).await;
            let id = grant.tool_call_id().to_owned();
            if let Some(running) = running {
                tokio::spawn(late(turn.clone(), contract.clone(), grant, running, began_ms));
            }
            failure.tried(id, OutcomeStatus::Timeout, "timeout", "", recorded)
        }
    }
}

/// Waits for an answer that comes after its time, as long as the lease permits, and records it.
/// The first definite outcome after a timeout is taken.
async fn late(
    turn: Turn,
    contract: ToolContract,
    grant: Grant,
    mut running: Running,
    began_ms: u64,
) {
    let Some(ended) = until(&mut running, grant.last_moment_ms()).await else { return };
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
        Ok(answer) => turn.keep(&answer, text.as_deref()),
        Err(error) => tracing::warn!(%error, "a late outcome could not be recorded"),
    }
}

/// The answer of a tool, or `None` when its time is over. The clock that decides goes on while
/// the machine sleeps; the runtime's may not.
async fn until(running: &mut Running, end_ms: u64) -> Option<Result<ToolOutput, ToolError>> {
    loop {
        let left = Duration::from_millis(end_ms.saturating_sub(now_ms()));
        tokio::select! {
            biased;
            ended = &mut *running => return Some(ended),
            () = sleep(left.min(LOOK_EVERY)) => {
                if now_ms() >= end_ms {
                    return None;
                }
            }
        }
    }
}

fn success(seen: &Seen, output: &ToolOutput, took: Duration) -> Outcome {
    let mut outcome = Outcome::ok(took, Output::Text(seen.text.clone()));
    outcome.summary = seen.summary.clone();
    outcome.provider_ref = output.provider_ref.clone();
    outcome.message_id = output.message_id.clone();
    outcome
}

fn succeeded(
    turn: &Turn,
    seen: Seen,
    recorded: Result<OutcomeAnswer, LedgerError>,
    tool_call_id: String,
    attempts: u32,
    twin: Option<Twin>,
) -> ToolResult {
    let (line, token) = match recorded {
        Ok(answer) => {
            turn.keep(&answer, Some(&seen.text));
            (answer.receipt_line, answer.record.token)
        }
        Err(error) => {
            tracing::warn!(%error, tool_call_id, "a success could not be recorded");
            (Some(words::NOT_RECORDED.to_owned()), None)
        }
    };
    let text = with_line(seen.text, line.as_deref());
    ToolResult { text, is_error: false, ended: Ended::Ok, tool_call_id, attempts, token, twin }
}

fn with_line(text: String, line: Option<&str>) -> String {
    match line {
        Some(line) => format!("{text}\n{line}"),
        None => text,
    }
}

/// An attempt that failed.
struct Failure<'a> {
    turn: &'a Turn,
    contract: &'a ToolContract,
    attempts: u32,
    twin: Option<Twin>,
}

impl Failure<'_> {
    async fn report(self, grant: Grant, error: &ToolError, took: Duration) -> Tried {
        let id = grant.tool_call_id().to_owned();
        let recorded = grant.finish(Outcome::failed(error.status, took, &error.class)).await;
        self.tried(id, error.status, &error.class, &error.message, recorded)
    }

    fn tried(
        self,
        tool_call_id: String,
        status: OutcomeStatus,
        class: &str,
        message: &str,
        recorded: Result<OutcomeAnswer, LedgerError>,
    ) -> Tried {
        let may_ask_again = match &recorded {
            Ok(answer) => {
                self.turn.keep(answer, None);
                self.may_ask_again(status, answer.record.effect.0)
            }
            Err(error) => {
                tracing::warn!(%error, tool_call_id, "a failure could not be recorded");
                false
            }
        };
        let result = ToolResult {
            text: words::failed(status, class, message),
            is_error: true,
            ended: Ended::Failed(status),
            tool_call_id,
            attempts: self.attempts,
            token: None,
            twin: self.twin,
        };
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

/// Advice: the result of before if it is here, else what is known.
fn refused(turn: &Turn, advice: &DecisionAnswer, attempts: u32) -> ToolResult {
    let record = advice.record.as_ref().filter(|_| advice.decision.0 == DecisionKind::Reuse);
    let Some((text, record)) = record.and_then(|record| Some((turn.kept_result(record)?, record)))
    else {
        return not_run(advice, words::advice(advice), attempts);
    };
    let line = record.token.as_deref().map(line_of);
    ToolResult {
        text: with_line(text, line.as_deref()),
        is_error: false,
        ended: Ended::Ok,
        tool_call_id: advice.tool_call_id.clone(),
        attempts,
        token: record.token.clone(),
        twin: advice.twin.clone(),
    }
}

/// A token that the ledger gave is well formed; any other is shown as it is.
fn line_of(token: &str) -> String {
    match token.parse() {
        Ok(token) => receipt_line(&token),
        Err(_) => format!("[receipt: {token}]"),
    }
}

fn not_run(advice: &DecisionAnswer, text: String, attempts: u32) -> ToolResult {
    ToolResult {
        text,
        is_error: true,
        ended: Ended::NotRun(advice.decision.0),
        tool_call_id: advice.tool_call_id.clone(),
        attempts,
        token: None,
        twin: advice.twin.clone(),
    }
}

fn no_decision(tool_call_id: String, error: &LedgerError) -> ToolResult {
    tracing::warn!(%error, tool_call_id, "a call was not run");
    ToolResult {
        text: words::no_decision(error),
        is_error: true,
        ended: Ended::NoDecision,
        tool_call_id,
        attempts: 0,
        token: None,
        twin: None,
    }
}

/// The ledger cannot be reached, and the operator wants to go on without it.
async fn open(
    turn: &Turn,
    contract: &ToolContract,
    call: &ToolCall,
    id: String,
    tool: &mut impl FnMut(Attempt) -> Running,
) -> ToolResult {
    turn.adapter().count_unreceipted();
    tracing::warn!(tool_call_id = id, "a tool runs without the ledger: it cannot be reached");
    let mut result = without_ledger(turn, contract, call, id, tool).await;
    result.text = with_line(result.text, Some(words::UNRECEIPTED));
    result
}

/// One attempt that nobody permits and nothing records.
async fn without_ledger(
    turn: &Turn,
    contract: &ToolContract,
    call: &ToolCall,
    tool_call_id: String,
    tool: &mut impl FnMut(Attempt) -> Running,
) -> ToolResult {
    let mut running = tool(Attempt {
        run_id: turn.adapter().run_id().to_owned(),
        tool_call_id: tool_call_id.clone(),
        number: 1,
        idempotency_key: call.operation_key.clone(),
        time_left: contract.timeout,
        twin: None,
    });
    let timeout_ms = u64::try_from(contract.timeout.as_millis()).unwrap_or(u64::MAX);
    let (text, ended) = match until(&mut running, now_ms().saturating_add(timeout_ms)).await {
        Some(Ok(output)) => (see(contract, &output).text, Ended::Ok),
        Some(Err(error)) => {
            let text = words::failed(error.status, &error.class, &error.message);
            (text, Ended::Failed(error.status))
        }
        None => {
            let status = OutcomeStatus::Timeout;
            (words::failed(status, "timeout", ""), Ended::Failed(status))
        }
    };
    let is_error = ended != Ended::Ok;
    ToolResult { text, is_error, ended, tool_call_id, attempts: 1, token: None, twin: None }
}
