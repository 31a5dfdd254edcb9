//! Asking the outside service what became of an attempt, and telling the ledger.

use std::time::Duration;

use recibo_api::answer::DecisionAnswer;
use recibo_api::request::CheckRequest;
use recibo_api::{Code, Word};
use recibo_core::status::{CheckAnswer, DecisionKind};
use tokio::time::{sleep, timeout};

use crate::context::Context;
use crate::contract::{StatusQuestion, ToolContract};
use crate::lease::now_ms;
use crate::words;

/// What asking has led to.
pub(crate) enum Settled {
    /// The answer is with the ledger: claim again.
    AskAgain,
    /// It stays unknown; the text for the model.
    Told(String),
    /// There is nobody to ask.
    NotAsked,
}

/// Asks and reports. Where the answer is not final yet, waits until it will be, but no longer
/// than the contract waits for another attempt.
pub(crate) async fn settle(
    context: &Context,
    contract: &ToolContract,
    advice: &DecisionAnswer,
) -> Settled {
    let (Some(hook), Some(attempt)) = (&contract.status_hook, advice.attempt) else {
        return Settled::NotAsked;
    };
    let record = advice.record.as_ref();
    let question = StatusQuestion {
        run_id: advice.run_id.clone(),
        tool_call_id: advice.tool_call_id.clone(),
        attempt,
        idempotency_key: record
            .and_then(|record| record.operation_key.clone())
            .unwrap_or_else(|| advice.idempotency_key.clone()),
        provider_ref: record.and_then(|record| record.provider_ref.clone()),
    };
    // What it says holds for the moment of the question, not of the answer.
    let asked_at_ms = now_ms();
    let answer = timeout(contract.patience(), hook(question)).await;
    let check = CheckRequest {
        answer: Word(answer.unwrap_or(CheckAnswer::Indeterminate)),
        source: contract.tool.clone(),
        age_ms: Some(now_ms().saturating_sub(asked_at_ms)),
        provider_ref: None,
    };
    let run = &context.run;
    let ledger = run.settings.reconciler.as_ref().unwrap_or(&run.ledger);
    let checked = ledger.check(&advice.run_id, &advice.tool_call_id, attempt, check).await;
    match checked {
        Ok(checked) if checked.decision != DecisionKind::CheckStatus => Settled::AskAgain,
        Ok(checked) => match checked.retry_after_ms.map(Duration::from_millis) {
            Some(pause) if !pause.is_zero() && pause <= contract.wait_asked() => {
                sleep(pause).await;
                Settled::AskAgain
            }
            _ => Settled::Told(words::check_status()),
        },
        // Somebody else has settled it meanwhile.
        Err(error) if error.code() == Some(Code::AttemptSettled) => Settled::AskAgain,
        Err(error) => {
            tracing::error!(%error, "a status check could not be reported");
            let text = words::check_status();
            match error.code() {
                Some(Code::Forbidden) => {
                    Settled::Told(format!("{text} {}", words::CHECK_FORBIDDEN))
                }
                _ => Settled::Told(text),
            }
        }
    }
}
