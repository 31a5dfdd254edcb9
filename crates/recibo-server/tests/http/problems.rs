//! Every problem code, produced once.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use recibo_api::{Code, Role};
use recibo_server::{SecretPolicy, Settings};
use recibo_store::Config;
use serde_json::{Value, json};

use crate::harness::{Reply, Service, claim_body, ok_body, one_shot_body};

/// Codes that need a broken disk (see the tests below), a disk that is only read (`read_only`),
/// thousands of scopes (`limits`), a socket (`slow_clients`), or the loss of all other admin keys
/// (`api_keys`).
const ELSEWHERE: &[Code] = &[
    Code::Overloaded,
    Code::Internal,
    Code::LedgerStopped,
    Code::ReadOnly,
    Code::ScopeLimit,
    Code::BodyTimeout,
    Code::MalformedRequest,
    Code::HeadTooLarge,
    Code::LastAdminKey,
];

const KEY: &str = "AKIAIOSFODNN7EXAMPLE";

#[tokio::test]
async fn every_code_is_what_some_request_gets() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let closed = service.scope().await;
    let path = format!("/v1/scopes/{closed}");
    service.ask(Role::Adapter, "DELETE", &path).send().await.expect(204);
    service.done(&scope, "done").await;
    let open = service.claim(&scope, "open", "opaque").await;
    let mut keyed = one_shot_body(&scope, "keyed");
    keyed["operation_key"] = json!("op");
    service.ask(Role::Adapter, "POST", "/v1/receipts").json(keyed.clone()).send().await;
    let policy = json!({"tools": [{"match": "pay", "effect": "opaque"}]});
    service.ask(Role::Operator, "PUT", "/v1/effects/policy").json(policy).send().await.expect(200);
    let retryable = json!({"lease_token": service.claim(&scope, "again", "opaque").await,
        "status": "retryable_error", "duration_ms": 1, "error_class": "http.429"});
    service.report("again", retryable.clone()).await.expect(200);

    let with = |mut body: Value, name: &str, value: Value| {
        body[name] = value;
        body
    };
    let claim = |id: &str| claim_body(&scope, id, "opaque");
    let attempts = |call: &str| format!("/v1/runs/r/calls/{call}/attempts");
    let resolution = json!({"state": "ok", "reason": "seen"});
    let resolve = |call: &str| format!("/v1/runs/r/calls/{call}/resolution");
    let (adapter, reader, operator) = (Role::Adapter, Role::Reader, Role::Operator);
    let none = Value::Null;
    let terminal = json!({"lease_token": open, "status": "terminal_error", "duration_ms": 1,
        "error_class": "denied"});
    service.report("open", terminal).await.expect(200);
    let lease = service.claim(&scope, "live", "opaque").await;

    // Role, method, path, body (or a text that is sent as it is), status, code.
    let rows: Vec<(Role, &str, String, Value, u16, &str)> = vec![
        (adapter, "POST", attempts("t"), json!("{\"a\":"), 400, "invalid_json"),
        (adapter, "POST", attempts("t"), json!("{\"a\":\"\\ud800\"}"), 400, "invalid_json"),
        (adapter, "POST", attempts("t"), json!("{\"tool\":1,\"tool\":1}"), 400, "duplicate_member"),
        (adapter, "POST", attempts("t"), json!("{\"input\":1e999}"), 400, "number_out_of_range"),
        (adapter, "POST", attempts("t"), json!({"nope": 1}), 400, "invalid_request"),
        (adapter, "POST", attempts("t"), json!("[]"), 400, "invalid_request"),
        (adapter, "POST", attempts("t"), json!(" "), 400, "invalid_json"),
        (
            adapter,
            "POST",
            attempts("t"),
            with(claim("c"), "lease_ms", json!(1)),
            400,
            "invalid_request",
        ),
        (
            adapter,
            "POST",
            attempts("t"),
            with(claim("c"), "claim_id", json!("a b")),
            400,
            "invalid_id",
        ),
        (adapter, "POST", attempts("a%2Fb"), claim("c"), 400, "invalid_id"),
        (reader, "GET", "/v1/receipts/nonsense".into(), none.clone(), 400, "invalid_id"),
        (reader, "GET", "/v1/idempotency/a%20b".into(), none.clone(), 400, "invalid_id"),
        (reader, "GET", "/v1/runs/r?verbose=1".into(), none.clone(), 400, "invalid_query"),
        (adapter, "POST", "/v1/scopes?x".into(), none.clone(), 400, "invalid_query"),
        (
            reader,
            "GET",
            "/v1/calls?page_size=1&page_size=1".into(),
            none.clone(),
            400,
            "invalid_query",
        ),
        (reader, "GET", "/v1/calls?tool=x".into(), none.clone(), 400, "invalid_query"),
        (reader, "GET", "/v1/calls?order=desc".into(), none.clone(), 400, "invalid_query"),
        (reader, "GET", "/v1/calls?state=absent".into(), none.clone(), 400, "invalid_query"),
        (reader, "GET", "/v1/calls?page_size=501".into(), none.clone(), 400, "invalid_query"),
        (
            reader,
            "GET",
            "/v1/runs/r/calls/t/decision?wait_ms=30001".into(),
            none.clone(),
            400,
            "invalid_query",
        ),
        (reader, "GET", "/v1/calls?state=%zz".into(), none.clone(), 400, "invalid_query"),
        (
            reader,
            "GET",
            "/v1/calls?page_token=AAAA".into(),
            none.clone(),
            400,
            "invalid_page_token",
        ),
        (reader, "POST", attempts("t"), claim("c"), 403, "forbidden"),
        (
            adapter,
            "POST",
            format!("{}/1/outcome", attempts("live")),
            ok_body("wrong"),
            403,
            "lease_token_wrong",
        ),
        (reader, "GET", "/".into(), none.clone(), 404, "not_found"),
        (reader, "GET", "/v1/nothing".into(), none.clone(), 404, "not_found"),
        (reader, "GET", "/v1/calls/".into(), none.clone(), 404, "not_found"),
        (reader, "GET", "/v1/runs/none".into(), none.clone(), 404, "run_not_found"),
        (reader, "GET", "/v1/runs/r/calls/none".into(), none.clone(), 404, "call_not_found"),
        (reader, "GET", format!("{}/2", attempts("done")), none.clone(), 404, "attempt_not_found"),
        (adapter, "POST", attempts("t"), claim_body("sc_x", "c", "opaque"), 404, "scope_not_found"),
        (reader, "GET", "/v1/scopes/sc_x".into(), none.clone(), 404, "scope_not_found"),
        (
            reader,
            "GET",
            format!("/v1/receipts/zc-receipt-1-{}", "A".repeat(43)),
            none.clone(),
            404,
            "receipt_not_found",
        ),
        (reader, "GET", "/v1/idempotency/none".into(), none.clone(), 404, "key_not_found"),
        (reader, "GET", "/v1/idempotency/rk1_none".into(), none.clone(), 404, "key_not_found"),
        (Role::Admin, "DELETE", "/v1/api-keys/none".into(), none.clone(), 404, "api_key_not_found"),
        (adapter, "PUT", "/v1/scopes".into(), none.clone(), 405, "method_not_allowed"),
        (adapter, "GET", "/v1/receipts:verify".into(), none.clone(), 405, "method_not_allowed"),
        (adapter, "OPTIONS", "/v1/calls".into(), none.clone(), 405, "method_not_allowed"),
        (
            adapter,
            "POST",
            attempts("t"),
            with(claim("c"), "attempt", json!(2)),
            409,
            "attempt_conflict",
        ),
        (
            adapter,
            "POST",
            "/v1/receipts".into(),
            with(
                with(one_shot_body(&scope, "live"), "tool", json!("crm/lookup")),
                "input",
                json!({"customer": 17}),
            ),
            409,
            "attempt_open",
        ),
        (
            Role::Reconciler,
            "POST",
            format!("{}/1/status-checks", attempts("done")),
            json!({"answer": "executed_ok", "source": "crm"}),
            409,
            "attempt_settled",
        ),
        (
            adapter,
            "POST",
            format!("{}/1/lease", attempts("open")),
            json!({"lease_token": open, "lease_ms": 5000}),
            409,
            "lease_over",
        ),
        (
            operator,
            "PUT",
            "/v1/effects/policy".into(),
            json!({"tools": [{"match": "a", "effect": "keyed"}]}),
            422,
            "policy_invalid",
        ),
        (adapter, "POST", attempts("again"), claim("c-again"), 409, "claim_used"),
        (
            adapter,
            "POST",
            format!("{}/1/outcome", attempts("again")),
            with(retryable, "status", json!("terminal_error")),
            409,
            "outcome_conflict",
        ),
        (
            adapter,
            "POST",
            "/v1/receipts".into(),
            with(keyed.clone(), "tool_call_id", json!("other")),
            409,
            "operation_key_taken",
        ),
        (adapter, "POST", attempts("t"), claim_body(&closed, "c", "opaque"), 409, "scope_gone"),
        (operator, "POST", resolve("live"), resolution.clone(), 409, "lease_live"),
        (operator, "POST", resolve("done"), resolution.clone(), 409, "nothing_to_resolve"),
        (operator, "POST", resolve("none"), resolution.clone(), 404, "call_not_found"),
        (
            adapter,
            "POST",
            attempts("live"),
            with(claim("c"), "input", json!(1)),
            422,
            "input_mismatch",
        ),
        (
            adapter,
            "POST",
            attempts("live"),
            with(claim("c"), "effect", json!("keyed")),
            422,
            "effect_mismatch",
        ),
        (
            adapter,
            "POST",
            attempts("t"),
            with(with(claim("c"), "tool", json!("pay")), "effect", json!("read_only")),
            422,
            "effect_weaker_than_policy",
        ),
        (
            adapter,
            "POST",
            "/v1/receipts".into(),
            with(with(keyed, "operation_key", json!("op2")), "duration_ms", json!(9)),
            422,
            "operation_key_mismatch",
        ),
        (
            adapter,
            "POST",
            attempts("t"),
            with(claim("c"), "tool", json!(KEY)),
            422,
            "secret_detected",
        ),
        (adapter, "POST", attempts(KEY), claim("c"), 422, "secret_detected"),
        (
            adapter,
            "POST",
            "/v1/receipts".into(),
            with(one_shot_body(&scope, "s"), "run_id", json!(KEY)),
            422,
            "secret_detected",
        ),
        (
            operator,
            "PUT",
            "/v1/effects/policy".into(),
            json!({"tools": [{"match": KEY, "effect": "opaque"}]}),
            422,
            "secret_detected",
        ),
    ];
    let mut produced = BTreeSet::new();
    for (role, method, path, body, status, code) in rows {
        let mut ask = service.ask(role, method, &path);
        if code != "if_match_required" {
            ask = ask.header("if-match", "*");
        }
        ask = match body {
            Value::Null => ask,
            Value::String(text) => ask.raw(text).header("content-type", "application/json"),
            body => ask.json(body),
        };
        produced.insert(is_problem(&ask.send().await, status, code));
    }
    let again = || service.ask(operator, "POST", &resolve("again")).json(resolution.clone());
    let stale = again().header("if-match", "\"0\"");
    produced.insert(is_problem(&stale.send().await, 412, "version_mismatch"));
    produced.insert(is_problem(&again().send().await, 428, "if_match_required"));
    let untyped = service.ask(adapter, "POST", &attempts("t")).raw("{}");
    produced.insert(is_problem(&untyped.send().await, 415, "unsupported_media_type"));
    let large = service.ask(adapter, "POST", &attempts("t")).raw(vec![b' '; (1 << 20) + 1]);
    produced.insert(is_problem(&large.send().await, 413, "body_too_large"));
    for credential in ["", "Bearer", "Bearer rcb_x_y", "Basic x", "Bearer rcb_"] {
        let ask = service.anonymous("GET", "/v1/calls").header("authorization", credential);
        let reply = ask.send().await;
        produced.insert(is_problem(&reply, 401, "unauthenticated"));
        assert_eq!(reply.header("www-authenticate"), "Bearer");
    }
    service.report("live", ok_body(&lease)).await.expect(200);
    produced.extend(ELSEWHERE);
    assert_eq!(produced, Code::ALL.iter().copied().collect());
}

pub(crate) fn is_problem(reply: &Reply, status: u16, code: &str) -> Code {
    let body = reply.body();
    assert_eq!((reply.status.as_u16(), &body["code"]), (status, &json!(code)), "{body}");
    assert_eq!(body["status"], status);
    assert_eq!(reply.header("content-type"), "application/problem+json");
    assert_eq!(reply.header("cache-control"), "no-store");
    let text = String::from_utf8_lossy(&reply.bytes);
    assert!(!text.contains(KEY) && !text.contains("DISKTEXT"), "{text}");
    Code::parse(code).unwrap()
}

#[tokio::test]
async fn the_allow_header_names_the_methods() {
    let service = Service::start().await;
    let reply = service.anonymous("PATCH", "/v1/effects/policy").send().await.expect(405);
    let mut allowed: Vec<_> = reply.header("allow").split(',').map(str::trim).collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "PUT"]);
}

#[tokio::test]
async fn by_policy_a_claim_with_a_credential_in_its_labels_is_refused() {
    for (secret_policy, status) in [(SecretPolicy::Mask, 201), (SecretPolicy::Refuse, 422)] {
        let settings = Settings { secret_policy, ..Settings::default() };
        let service = Service::with(settings, Config::default()).await;
        let mut body = claim_body(&service.scope().await, "c", "opaque");
        body["labels"] = json!({"note": KEY});
        let ask = service.ask(Role::Adapter, "POST", "/v1/runs/r/calls/t/attempts").json(body);
        let reply = ask.send().await.expect(status);
        assert!(!String::from_utf8_lossy(&reply.bytes).contains(KEY));
    }
}

#[tokio::test]
#[expect(clippy::await_holding_lock, reason = "the lock is what keeps the queue full")]
async fn a_full_queue_is_overload_and_nothing_else() {
    let config = Config { queue_len_max: 1, ..Config::default() };
    let service = Service::with(Settings::default(), config).await;
    let faults = service.faults.clone();
    let gate = faults.gate.lock().unwrap();
    // Once the writer hangs it takes nothing more, and the queue fills up.
    let namespace = recibo_core::id::Namespace::parse("blue").unwrap();
    let mut waiting = Vec::new();
    loop {
        let hangs = faults.hangs.load(Ordering::SeqCst);
        let mut write = service.app.store().open_scope(&namespace, None, 1_000);
        let polled = std::future::poll_fn(|context| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut write).poll(context).is_ready())
        });
        match polled.await {
            // It is refused at once, or it waits.
            true if hangs => break,
            true => std::thread::yield_now(),
            false => waiting.push(write),
        }
    }
    let reply = service.ask(Role::Adapter, "POST", "/v1/scopes").send().await;
    is_problem(&reply, 503, "overloaded");
    assert_eq!(reply.header("retry-after"), "1");
    drop(gate);
    for write in waiting {
        write.await.unwrap();
    }
    service.scope().await;
}

#[tokio::test]
async fn a_broken_disk_is_told_without_its_words() {
    let config = Config { cache_bytes: 0, ..Config::default() };
    let service = Service::with(Settings::default(), config).await;
    let scope = service.scope().await;
    service.done(&scope, "t").await;
    service.faults.fails.store(true, Ordering::SeqCst);
    let reply = service.get("/v1/runs/r/calls/t").await;
    is_problem(&reply, 500, "internal");
    let reply = service.ask(Role::Adapter, "POST", "/v1/scopes").send().await;
    is_problem(&reply, 503, "ledger_stopped");
    assert!(service.app.store().has_failed());
}
