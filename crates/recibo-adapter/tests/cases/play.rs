//! Plays a case: builds contract and tool, makes the calls, compares what comes out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use recibo_adapter::{
    Adapter, Attempt, CheckAnswer, Ended, Ledger, OnTwin, RetryPolicy, Service, Settings, Shown,
    ToolCall, ToolContract, ToolError, ToolOutput, ToolResult, Turn,
};
use tokio::sync::{Notify, watch};

use crate::case::{Behaviour, Call, Case, Contract, Table};
use crate::script;

/// A case that takes so long hangs.
pub const TOO_LONG: Duration = Duration::from_secs(30);

pub const RETRY_POLICY: RetryPolicy =
    RetryPolicy { claim_tries: 3, report_tries: 3, pause: Duration::from_millis(1) };

/// A case against the ledger of its script.
pub async fn scripted(table: &Table, case: &Case) -> Result<(), String> {
    let script = script::Ledger::start(table, &case.exchanges).await?;
    let service = Service::nearby(&script.url, "key").map_err(|e| e.to_string())?;
    let ledger = Ledger::http(service).with_retry_policy(RETRY_POLICY);
    let played = play(case, &ledger, None, Some(script.played.clone())).await;
    ledger.idle().await;
    // What the ledger saw explains what came out.
    script.check()?;
    played
}

/// A case against any ledger.
pub async fn play(
    case: &Case,
    ledger: &Ledger,
    reconciler: Option<Ledger>,
    played: Option<watch::Receiver<usize>>,
) -> Result<(), String> {
    let settings = Settings {
        enabled: case.settings.enabled,
        show_in_response: case.settings.show_in_response,
        inject_system_prompt: case.settings.inject_system_prompt,
        fail_open: case.settings.fail_open,
        run_id: Some("r".into()),
        reconciler,
        ..Settings::default()
    };
    let adapter = Adapter::new(ledger.clone(), settings);
    let turn = adapter.turn("t");
    for (i, call) in case.calls.iter().enumerate() {
        make(&case.contract, call, &turn, played.clone())
            .await
            .map_err(|why| format!("call {i}: {why}"))?;
    }
    if let Some(respond) = &case.respond {
        same("the response", &turn.respond(&respond.text), &respond.gives)?;
    }
    if let Some(has_prompt) = case.system_prompt {
        same("a system prompt", &adapter.system_prompt().is_some(), &has_prompt)?;
    }
    if let Some(unreceipted) = case.unreceipted {
        same("unreceipted calls", &adapter.unreceipted_calls(), &unreceipted)?;
    }
    Ok(())
}

/// The tool of a call, and what it has seen.
#[derive(Default)]
struct Tool {
    runs: AtomicUsize,
    keys: Mutex<Vec<Option<String>>>,
    has_begun: Notify,
    may_end: Notify,
    questions: Arc<AtomicUsize>,
    played: Option<watch::Receiver<usize>>,
}

async fn make(
    terms: &Contract,
    call: &Call,
    turn: &Turn,
    played: Option<watch::Receiver<usize>>,
) -> Result<(), String> {
    let tool = Arc::new(Tool { played, ..Tool::default() });
    let contract = contract(terms, tool.questions.clone());
    let asked = ToolCall {
        provider_call_id: Some(call.call.id.clone().unwrap_or_else(|| "1".into())),
        arguments: match (&call.call.arguments, call.call.arguments_of_x) {
            (Some(arguments), _) => arguments.clone(),
            (None, Some(bytes)) => "x".repeat(bytes),
            (None, None) => r#"{"to":17}"#.into(),
        },
        operation_key: call.call.operation_key.clone(),
        message_id: call.call.message_id.clone(),
        labels: call.call.labels.clone(),
        traceparent: call.call.traceparent.clone(),
    };
    let behaviours = call.tool.clone();
    let (owned_turn, state) = (turn.clone(), tool.clone());
    let calling = tokio::spawn(async move {
        let run = |attempt: Attempt| {
            let behaviour = behaviours.get(state.runs.fetch_add(1, Ordering::SeqCst)).cloned();
            state.keys.lock().expect("no panic").push(attempt.idempotency_key);
            act(behaviour, state.clone())
        };
        owned_turn.call(&contract, asked, run).await
    });
    if call.dropped {
        tool.has_begun.notified().await;
        calling.abort();
        let _ = calling.await;
        turn.scope().ledger().idle().await;
        return Ok(());
    }
    let result = calling.await.map_err(|error| error.to_string())?;
    if call.tool.iter().any(|behaviour| behaviour.late.is_some()) {
        tool.may_end.notify_one();
        // It is kept once it is recorded; if it never is, the case hangs and says so.
        while turn.receipts_block().is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    compare(call, &result)?;
    same("runs of the tool", &tool.runs.load(Ordering::SeqCst), &call.tool.len())?;
    if let Some(keys) = &call.keys {
        same("keys", &*tool.keys.lock().expect("no panic"), keys)?;
    }
    if let Some(questions) = call.status_questions {
        same("status questions", &tool.questions.load(Ordering::SeqCst), &questions)?;
    }
    Ok(())
}

fn contract(terms: &Contract, questions: Arc<AtomicUsize>) -> ToolContract {
    let shown = match &terms.shown {
        Some(names) => Shown::members(names.clone()),
        None => Shown::Everything,
    };
    let mut contract = ToolContract::new("send", shown)
        .timeout(Duration::from_millis(terms.timeout_ms.unwrap_or(10_000)))
        .wait(Duration::from_millis(terms.wait_ms))
        .attempts_max(terms.attempts_max.unwrap_or(3))
        .backoff(Duration::from_millis(1), Duration::from_millis(1))
        .masks(terms.masked.clone())
        .summarizes(terms.summarized.clone());
    if terms.no_timeout {
        contract = contract.timeout(None);
    }
    if let Some(ms) = terms.lease_ms {
        contract = contract.lease(Duration::from_millis(ms));
    }
    if let Some(ms) = terms.key_window_ms {
        contract = contract.key_window(Duration::from_millis(ms));
    }
    if let Some(ms) = terms.settle_ms {
        contract = contract.settle(Duration::from_millis(ms));
    }
    if terms.twins_advise {
        contract = contract.on_twin(OnTwin::Advise);
    }
    if let Some(ms) = terms.twin_window_ms {
        contract = contract.twin_window(Duration::from_millis(ms));
    }
    if terms.late_answers {
        contract = contract.takes_late_answers();
    }
    if let Some(effect) = terms.effect {
        contract = contract.effect(effect.0);
    }
    if let Some(answers) = terms.status.clone() {
        contract = contract.asks_status(move |_| {
            let word = answers.get(questions.fetch_add(1, Ordering::SeqCst)).cloned();
            async move {
                let word = word.expect("an answer for each question");
                CheckAnswer::parse(&word).expect("a word of the contract")
            }
        });
    }
    contract
}

async fn act(behaviour: Option<Behaviour>, tool: Arc<Tool>) -> Result<ToolOutput, ToolError> {
    let Some(mut behaviour) = behaviour else {
        return Err(ToolError::terminal("not_planned", "the tool was called once too often"));
    };
    tool.has_begun.notify_one();
    if behaviour.hangs {
        std::future::pending::<()>().await;
    }
    if let Some(late) = behaviour.late.take() {
        tool.may_end.notified().await;
        behaviour = *late;
    }
    if behaviour.after_exchanges > 0 {
        let mut played = tool.played.clone().expect("a script");
        let is_enough = |played: &usize| *played >= behaviour.after_exchanges;
        played.wait_for(is_enough).await.expect("the script goes on");
    }
    let class = behaviour.class.as_deref().unwrap_or("x");
    let message = behaviour.message.clone().unwrap_or_default();
    match behaviour.fails.as_deref() {
        Some("denied") => return Err(ToolError::denied(message)),
        Some("retryable") => return Err(ToolError::retryable(class, message)),
        Some("terminal") => return Err(ToolError::terminal(class, message)),
        Some("ambiguous") if behaviour.answered => {
            return Err(ToolError::ambiguous(class, message).answered());
        }
        Some("ambiguous") => return Err(ToolError::ambiguous(class, message)),
        Some("unclassified") => return Err(std::fmt::Error.into()),
        Some(other) => panic!("no failure {other}"),
        None => {}
    }
    let mut output = match (&behaviour.text, &behaviour.json, behaviour.text_of_x) {
        (Some(text), None, None) => ToolOutput::text(text),
        (None, Some(json), None) => ToolOutput::json(json),
        (None, None, Some(bytes)) => ToolOutput::text("x".repeat(bytes)),
        _ => panic!("one result is needed"),
    };
    if let Some(id) = behaviour.provider_ref {
        output = output.with_provider_ref(id);
    }
    if let Some(id) = behaviour.message_id {
        output = output.with_message_id(id);
    }
    Ok(output)
}

fn compare(call: &Call, result: &ToolResult) -> Result<(), String> {
    if let Some(text) = &call.text {
        let line = result.token.as_deref().map(|token| format!("[receipt: {token}]"));
        let wanted = text.replace("{receipt}", line.as_deref().unwrap_or("no receipt"));
        same("the text", &result.text, &wanted)?;
    }
    if let Some(ended) = &call.ended {
        let word = match result.ended {
            Ended::Ok => "ok",
            Ended::Failed(status) => status.as_str(),
            Ended::NotRun(decision) => decision.as_str(),
            Ended::NoDecision => "no_decision",
        };
        same("the end", &word, &ended.as_str())?;
        same("is_error", &result.is_error, &(ended != "ok"))?;
    }
    if let Some(attempts) = call.attempts {
        same("attempts", &result.attempts, &attempts)?;
    }
    if let Some(twin) = &call.twin {
        let id = result.twin.as_ref().map(|twin| &twin.tool_call_id);
        same("the twin", &id, &Some(twin))?;
    }
    Ok(())
}

pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, wanted: &T) -> Result<(), String> {
    if got == wanted {
        Ok(())
    } else {
        Err(format!("{what} is\n  {got:?}\ninstead of\n  {wanted:?}"))
    }
}
