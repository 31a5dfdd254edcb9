//! Grants that nobody finishes: whatever is dropped, and when, no attempt is left open.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use recibo_adapter::{
    CallSpec, Ledger, Outcome, OutcomeStatus, Output, Permission, Reason, Scope, ScopeSpec,
};
use recibo_api::Code;
use recibo_core::effect::{Effect, Policy, Rule, Terms};
use recibo_core::id::{CallRef, Namespace, RunId, ScopeId, ToolCallId};
use recibo_store::{Config, ScopeState, Store, SystemClock};

struct World {
    store: Store,
    ledger: Ledger,
    scope: Scope,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let entropy = Box::new(|bytes: &mut [u8]| rand::fill(bytes));
        let config = Config { cache_bytes: 4 << 20, ..Config::default() };
        let store = Store::open(folder.path(), config, Arc::new(SystemClock), entropy);
        let store = store.expect("a store");
        let ledger = Ledger::embedded(store.clone(), namespace());
        let scope = ledger.scope(ScopeSpec::default());
        Self { store, ledger, scope, _folder: folder }
    }

    /// Status and error class of the one attempt.
    fn recorded(&self) -> (&'static str, Option<String>) {
        let call = CallRef {
            run_id: RunId::parse("r").expect("an id"),
            tool_call_id: ToolCallId::parse("c").expect("an id"),
        };
        let snapshot = self.store.snapshot().expect("a readable store");
        let view = snapshot.call(&namespace(), &call).expect("a readable store").expect("a call");
        assert_eq!(view.records.len(), 1);
        let record = &view.records[0];
        (record.status.as_str(), record.error_class.clone())
    }
}

fn namespace() -> Namespace {
    Namespace::parse("default").expect("a namespace")
}

fn spec() -> CallSpec {
    CallSpec::new("r", "c", "t", "{}").expect("arguments")
}

/// Begins a future and drops it in the middle.
fn begin_and_drop<T>(future: impl Future<Output = T>) {
    let mut future = std::pin::pin!(future);
    let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending), "it ends too soon to be dropped");
}

#[tokio::test]
async fn a_claim_that_is_dropped_in_the_middle_has_sent_nothing_and_says_so() {
    let world = World::new();
    begin_and_drop(world.scope.claim(&spec()));
    world.ledger.idle().await;
    assert_eq!(world.recorded(), ("retryable_error", Some("cancelled".into())));
}

#[tokio::test]
async fn a_grant_that_is_dropped_is_unknown() {
    let world = World::new();
    let permission = world.scope.claim(&spec()).await.expect("an answer");
    assert!(matches!(permission, Permission::Granted(_)));
    drop(permission);
    world.ledger.idle().await;
    assert_eq!(world.recorded(), ("unknown", Some("dropped".into())));
}

#[tokio::test]
async fn a_report_that_is_dropped_in_the_middle_goes_on() {
    let world = World::new();
    let Permission::Granted(grant) = world.scope.claim(&spec()).await.expect("an answer") else {
        panic!("the first claim is granted");
    };
    begin_and_drop(grant.finish(Outcome::ok(Duration::ZERO, Output::Text("done".into()))));
    world.ledger.idle().await;
    assert_eq!(world.recorded(), ("ok", None));
}

/// The policy names what makes two calls the same, and the claim brings the arguments for it.
#[tokio::test]
async fn a_call_that_does_the_same_in_other_words_is_held_back() {
    let world = World::new();
    let mut rule = Rule::new("pay", Terms::of(Effect::Opaque));
    rule.twin_by = vec!["order".into()];
    let policy = Policy { rules: vec![rule] };
    world.store.set_policy(&namespace(), policy).await.expect("the store serves");
    let claim = async |call: &str, arguments: &str| {
        let spec = CallSpec::new("r", call, "pay", arguments).expect("arguments");
        world.scope.claim(&spec).await.expect("an answer")
    };
    let Permission::Granted(grant) = claim("a", r#"{"order":1,"text":"Dear"}"#).await else {
        panic!("the first claim is granted");
    };
    let outcome = Outcome::failed(OutcomeStatus::Unknown, Duration::ZERO, "reset");
    grant.finish(outcome).await.expect("an answer");
    let Permission::Refused(advice) = claim("b", r#"{"order":1,"text":"Hello"}"#).await else {
        panic!("nobody knows of the first one");
    };
    assert_eq!(advice.reason.0, Reason::TwinUnknown);
    let other = claim("c", r#"{"order":2,"text":"Dear"}"#).await;
    assert!(matches!(other, Permission::Granted(_)), "{other:?}");
}

#[tokio::test]
async fn a_renewed_lease_moves_the_last_moment_and_none_is_renewed_after_the_end() {
    let world = World::new();
    let mut spec = spec();
    spec.lease = Duration::from_secs(10);
    let Permission::Granted(mut grant) = world.scope.claim(&spec).await.expect("an answer") else {
        panic!("the first claim is granted");
    };
    let mut end = grant.lease_end();
    let first_ms = grant.last_moment_ms();
    grant.renew(Duration::from_secs(60)).await.expect("a lease that lives");
    end.moved().await;
    assert!(
        grant.last_moment_ms() >= first_ms + 49_000,
        "{} after {first_ms}",
        grant.last_moment_ms()
    );
    assert_eq!(end.last_moment_ms(), grant.last_moment_ms());
    // Never earlier than before.
    let second_ms = grant.last_moment_ms();
    grant.renew(Duration::from_secs(5)).await.expect("a lease that lives");
    assert_eq!(grant.last_moment_ms(), second_ms);
    let outcome = Outcome::failed(OutcomeStatus::RetryableError, Duration::ZERO, "busy");
    grant.report(outcome).await.expect("an answer");
    let error = grant.renew(Duration::from_secs(60)).await.expect_err("it has ended");
    assert_eq!(error.code(), Some(Code::LeaseOver));
}

#[tokio::test]
async fn a_lease_is_kept_renewed_until_it_lasts_long_enough() {
    let world = World::new();
    let mut spec = spec();
    spec.lease = Duration::from_secs(1);
    let Permission::Granted(grant) = world.scope.claim(&spec).await.expect("an answer") else {
        panic!("the first claim is granted");
    };
    let first_ms = grant.last_moment_ms();
    grant.keep_renewed(Duration::from_millis(1_700)).await;
    assert!(grant.last_moment_ms() > first_ms + 700, "{} after {first_ms}", grant.last_moment_ms());
    grant.finish(Outcome::ok(Duration::ZERO, Output::Text("done".into()))).await.expect("it lives");
    assert_eq!(world.recorded(), ("ok", None));
}

#[tokio::test]
async fn a_success_after_its_scope_was_closed_is_signed_by_another_one_that_is_closed_too() {
    let world = World::new();
    let Permission::Granted(grant) = world.scope.claim(&spec()).await.expect("an answer") else {
        panic!("the first claim is granted");
    };
    world.scope.close().await.expect("an answer");
    let outcome = Outcome::ok(Duration::ZERO, Output::Text("done".into()));
    let answer = grant.finish(outcome).await.expect("an answer");
    assert!(answer.record.token.is_some(), "{answer:?}");
    let signer = ScopeId::parse(&answer.record.scope_id).expect("an id");
    let signer = world.store.scope(&namespace(), &signer).expect("a readable store");
    assert_eq!(signer.expect("a scope").state, ScopeState::Closed);
}

#[test]
fn a_grant_that_is_dropped_outside_any_runtime_is_left_to_its_lease() {
    let world = World::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let permission = runtime.block_on(world.scope.claim(&spec())).expect("an answer");
    drop(permission);
    runtime.block_on(world.ledger.idle());
    assert_eq!(world.recorded(), ("started", None));
}

#[tokio::test]
async fn a_tool_that_panics_leaves_an_unknown_attempt() {
    let world = World::new();
    let settings = recibo_adapter::Settings {
        run_id: Some("r".into()),
        ..recibo_adapter::Settings::default()
    };
    let turn = recibo_adapter::Adapter::new(world.ledger.clone(), settings).turn("t");
    let calling = tokio::spawn(async move {
        let contract = recibo_adapter::ToolContract::new("t", recibo_adapter::Shown::Everything);
        let call = recibo_adapter::ToolCall::new("x", "{}");
        turn.call(&contract, call, |_| async { panic!("on purpose") }).await
    });
    assert!(calling.await.is_err_and(|error| error.is_panic()));
    world.ledger.idle().await;
    let decision = world.ledger.decision("r", "t:x", Duration::ZERO).await.expect("an answer");
    let record = decision.record.expect("an attempt");
    assert_eq!(record.error_class.as_deref(), Some("dropped"));
}
