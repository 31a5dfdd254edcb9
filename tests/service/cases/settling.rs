//! Status checks, windows, and what age does to a call.

use recibo_tests::api::call_path;
use recibo_tests::service::Service;
use serde_json::{Value, json};

/// A queryable call whose first attempt timed out; the service is sure after 5 s.
fn timed_out() -> Service {
    let service = Service::start();
    let api = &service.api;
    api.policy(json!([{"match": "t", "effect": "queryable", "settle_ms": 5000}]));
    let scope = api.scope();
    let granted = api.claim("r", "c", &scope, "c1", json!({})).expect(201);
    let timeout = json!({
        "lease_token": granted.at("lease")["token"], "status": "timeout", "duration_ms": 1,
        "error_class": "timeout",
    });
    api.report("r", "c", 1, timeout).expect(200);
    service
}

fn check(service: &Service, body: Value) -> recibo_tests::api::Reply {
    let path = format!("{}/attempts/1/status-checks", call_path("r", "c"));
    service.api.post(&path, &body)
}

#[test]
fn c23_age_never_makes_a_known_call_new() {
    let service = Service::start();
    let api = &service.api;
    api.policy(json!([{"match": "t", "effect": "keyed", "key_window_ms": 86_400_000}]));
    let scope = api.scope();
    let granted = api.claim("r", "c", &scope, "c1", json!({})).expect(201);
    let timeout = json!({
        "lease_token": granted.at("lease")["token"], "status": "timeout", "duration_ms": 1,
        "error_class": "timeout",
    });
    api.report("r", "c", 1, timeout).expect(200);
    assert_eq!(api.decision("r", "c").at("decision"), "proceed");
    service.advance_ms(86_399_999);
    assert_eq!(api.decision("r", "c").at("decision"), "proceed");
    service.advance_ms(1);
    let over = api.decision("r", "c");
    assert_eq!((over.str("decision"), over.str("reason")), ("stop", "key_window_over"));
    service.advance_ms(400 * 86_400_000);
    service.tick();
    let reply = api.claim("r", "c", &api.scope(), "c2", json!({})).expect(200);
    assert_eq!((reply.str("decision"), reply.str("state")), ("stop", "unknown"));
}

#[test]
fn c24_age_alone_resolves_nothing() {
    let mut service = timed_out();
    service.advance_ms(400 * 86_400_000);
    service.tick();
    service.restart();
    let queue = service.api.get("/v1/calls?state=unknown").expect(200);
    assert_eq!(queue.at("calls").as_array().map(Vec::len), Some(1));
    assert_eq!(queue.at("calls")[0]["tool_call_id"], "c");
    assert_eq!(service.api.decision("r", "c").at("decision"), "check_status");
}

#[test]
fn c25_an_early_not_found_does_not_count() {
    let service = timed_out();
    let early = check(&service, json!({"answer": "not_executed", "source": "orders API"}));
    let early = early.expect(200);
    assert_eq!((early.str("state"), early.str("decision")), ("unknown", "check_status"));
    assert_eq!(early.at("retry_after_ms"), 5000);
    service.advance_ms(4999);
    let early = check(&service, json!({"answer": "not_executed", "source": "orders API"}));
    assert_eq!(early.expect(200).at("retry_after_ms"), 1);
    service.advance_ms(1);
    let stale = json!({"answer": "not_executed", "source": "orders API", "age_ms": 1});
    assert_eq!(check(&service, stale).expect(200).at("state"), "unknown");
    let sure = check(&service, json!({"answer": "not_executed", "source": "orders API"}));
    let sure = sure.expect(200);
    assert_eq!((sure.str("state"), sure.str("decision")), ("retryable", "proceed"));
    assert_eq!(sure.at("attempts")[0]["status"], "retryable_error");
    assert_eq!(sure.at("attempts")[0]["settled_by"], "status_check");
    service.api.claim("r", "c", &service.api.scope(), "c2", json!({})).expect(201);
}

#[test]
fn c27_a_status_check_can_say_that_it_does_not_know() {
    let service = timed_out();
    for answer in ["pending", "indeterminate", "unsupported"] {
        let reply = check(&service, json!({ "answer": answer, "source": "orders API" }));
        let reply = reply.expect(200);
        assert_eq!((reply.str("state"), reply.str("decision")), ("unknown", "check_status"));
    }
    let reply = check(&service, json!({"answer": "no", "source": "orders API"}));
    assert_eq!(reply.problem(), (400, "invalid_request"));
    let done = check(&service, json!({"answer": "executed_ok", "source": "orders API"}));
    let done = done.expect(200);
    assert_eq!((done.str("state"), done.str("decision")), ("ok", "reuse"));
    assert!(done.at("attempts")[0]["token"].is_null(), "nobody here saw the result");
    let settled = check(&service, json!({"answer": "executed_failed", "source": "orders API"}));
    assert_eq!(settled.problem(), (409, "attempt_settled"));
}
