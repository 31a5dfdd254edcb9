//! A tool with a side effect meets a timeout, a late answer and a retry. Effects are counted
//! where they take place, and `recibo explain` tells the story afterwards.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use recibo_adapter::{
    Adapter, Attempt, Effect, Ended, Ledger, OutcomeStatus, Service, Settings, Shown, ToolCall,
    ToolContract, ToolError, ToolOutput, Turn,
};
use recibo_core::status::DecisionKind;
use recibo_tests::binary::{self, Server};
use serde_json::json;
use tokio::sync::Notify;

/// The outside service: it creates tasks, and a key that it has seen creates none again.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<Vec<Option<String>>>>);

impl Tasks {
    fn create(&self, key: Option<String>) {
        let mut tasks = self.0.lock().expect("no panic");
        if key.is_none() || !tasks.contains(&key) {
            tasks.push(key);
        }
    }

    fn count(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }
}

/// A service on a folder, and an adapter that talks to it.
struct World {
    server: Server,
    adapter: Adapter,
    turn: Turn,
    folder: tempfile::TempDir,
}

impl World {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::start(&folder.path().join("data"));
        let service = Service::nearby(&server.api.url, &server.api.key).expect("a service");
        let settings = Settings { run_id: Some("run_82f".into()), ..Settings::default() };
        let adapter = Adapter::new(Ledger::http(service), settings);
        let turn = adapter.turn("t");
        Self { server, adapter, turn, folder }
    }

    /// What `recibo explain` says, in one line.
    fn explain(&self) -> String {
        let output = Command::new(binary::path())
            .args(["explain", "run_82f", "t:call_17", "--data"])
            .arg(self.folder.path().join("data"))
            .stdin(Stdio::null())
            .output()
            .expect("the binary runs");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The statuses of the call's attempts.
    fn statuses(&self) -> Vec<String> {
        let whole = self.server.api.whole("run_82f", "t:call_17").expect(200);
        let attempts = whole.at("attempts").as_array().expect("attempts");
        attempts.iter().map(|a| a["status"].as_str().expect("a status").to_owned()).collect()
    }
}

fn asked() -> ToolCall {
    ToolCall::new("call_17", r#"{"ticket": 17}"#)
}

fn contract() -> ToolContract {
    ToolContract::new("create_task", Shown::Everything)
        .timeout(Duration::from_millis(50))
        .wait(Duration::ZERO)
        .backoff(Duration::from_millis(1), Duration::from_millis(1))
}

async fn not_called(_: Attempt) -> Result<ToolOutput, ToolError> {
    panic!("the tool must not run again");
}

#[track_caller]
fn expect_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in: {text}");
    }
}

#[tokio::test]
async fn after_a_timeout_an_opaque_tool_is_not_run_again() {
    let (world, tasks) = (World::start(), Tasks::default());
    let service = tasks.clone();
    let hangs = move |_| {
        let service = service.clone();
        async move {
            service.create(None);
            std::future::pending().await
        }
    };
    let first = world.turn.call(&contract(), asked(), hangs).await;
    assert_eq!(first.ended, Ended::Failed(OutcomeStatus::Timeout));
    let again = world.turn.call(&contract(), asked(), not_called).await;
    assert_eq!(again.ended, Ended::NotRun(DecisionKind::Stop));
    assert!(again.text.contains("Do not assume"), "{}", again.text);
    assert_eq!(tasks.count(), 1);
    assert_eq!(world.statuses(), ["timeout"]);
    expect_all(
        &world.explain(),
        &["no answer came in time", "Whether attempt 1 took effect", "is no evidence either way"],
    );
}

#[tokio::test]
async fn a_late_answer_settles_the_call_and_is_used_again() {
    let (world, tasks) = (World::start(), Tasks::default());
    let (service, go) = (tasks.clone(), Arc::new(Notify::new()));
    let may_answer = go.clone();
    let slow = move |_| {
        let (service, may_answer) = (service.clone(), may_answer.clone());
        async move {
            service.create(None);
            may_answer.notified().await;
            Ok(ToolOutput::json(r#"{"task": 4711}"#).with_provider_ref("task-4711"))
        }
    };
    let first = world.turn.call(&contract().takes_late_answers(), asked(), slow).await;
    assert_eq!(first.ended, Ended::Failed(OutcomeStatus::Timeout));
    go.notify_one();
    // It is recorded in the background; one that never is hangs here.
    while world.turn.receipts_block().is_none() {
        tokio::task::yield_now().await;
    }
    let again = world.turn.call(&contract(), asked(), not_called).await;
    assert_eq!(again.ended, Ended::Ok);
    assert!(again.text.starts_with("{\"task\":4711}\n[receipt: zc-receipt-"), "{}", again.text);
    assert_eq!(tasks.count(), 1);
    assert_eq!(world.statuses(), ["ok"]);
    expect_all(
        &world.explain(),
        &[
            "it succeeded after",
            "It had been reported as timeout first; this came late.",
            "calls it task-4711.",
        ],
    );
}

#[tokio::test]
async fn a_retry_with_the_idempotency_key_has_one_effect() {
    let (world, tasks) = (World::start(), Tasks::default());
    world.server.api.policy(json!([
        {"match": "create_task", "effect": "keyed", "key_window_ms": 600_000},
    ]));
    let service = tasks.clone();
    let breaks_once = move |attempt: Attempt| {
        let service = service.clone();
        async move {
            service.create(attempt.idempotency_key);
            match attempt.number {
                // The effect is there, and its answer is lost on the way.
                1 => Err(ToolError::ambiguous("connection_reset", "")),
                _ => Ok(ToolOutput::json(r#"{"task": 4711}"#)),
            }
        }
    };
    let result = world.turn.call(&contract(), asked(), breaks_once).await;
    assert_eq!((result.ended, result.attempts), (Ended::Ok, 2));
    assert_eq!(tasks.count(), 1);
    assert_eq!(world.statuses(), ["unknown", "ok"]);
    expect_all(
        &world.explain(),
        &["Attempt 1 began", "(connection_reset)", "Attempt 2 began", "it succeeded after"],
    );
    assert_eq!(world.adapter.unreceipted_calls(), 0);
}

#[tokio::test]
async fn a_queryable_tool_is_asked_about_before_it_is_run_again() {
    let (world, tasks) = (World::start(), Tasks::default());
    let (service, asked_service) = (tasks.clone(), Arc::new(Mutex::new(BTreeMap::new())));
    let breaks = move |attempt: Attempt| {
        let service = service.clone();
        async move {
            service.create(attempt.idempotency_key);
            Err(ToolError::ambiguous("connection_reset", ""))
        }
    };
    let (known, questions) = (tasks.clone(), asked_service.clone());
    let contract = contract().effect(Effect::Queryable).asks_status(move |question| {
        questions.lock().expect("no panic").insert(question.attempt, question.idempotency_key);
        let is_known = known.count() > 0;
        async move {
            if is_known {
                recibo_adapter::CheckAnswer::ExecutedOk
            } else {
                recibo_adapter::CheckAnswer::NotExecuted
            }
        }
    });
    let result = world.turn.call(&contract, asked(), breaks).await;
    assert_eq!(result.ended, Ended::NotRun(DecisionKind::Reuse));
    assert_eq!(tasks.count(), 1);
    assert_eq!(world.statuses(), ["ok"]);
    let sent = tasks.0.lock().expect("no panic")[0].clone();
    assert_eq!(asked_service.lock().expect("no panic").get(&1), sent.as_ref());
    expect_all(&world.explain(), &["says that it took effect"]);
}
