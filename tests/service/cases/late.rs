//! Repeated and late outcomes.

use recibo_tests::api::Api;
use recibo_tests::service::Service;
use serde_json::{Value, json};

fn granted(api: &Api, call: &str, effect: &str) -> Value {
    let scope = api.scope();
    let reply = api.claim("r", call, &scope, "c1", json!({ "effect": effect })).expect(201);
    reply.at("lease")["token"].clone()
}

fn report(token: &Value, status: &str) -> Value {
    let mut report = json!({"lease_token": token, "status": status, "duration_ms": 1});
    if status == "ok" {
        report["output"] = json!("done");
    } else {
        report["error_class"] = json!("test");
    }
    report
}

#[test]
fn c09_the_same_outcome_again_is_no_error() {
    let service = Service::start();
    let api = &service.api;
    let token = granted(api, "c", "opaque");
    let first = api.report("r", "c", 1, report(&token, "ok")).expect(200);
    let before = service.log();
    let again = api.report("r", "c", 1, report(&token, "ok")).expect(200);
    assert_eq!((first.at("replayed"), again.at("replayed")), (&json!(false), &json!(true)));
    assert_eq!(first.at("token"), again.at("token"));
    assert_eq!(first.at("receipt_line"), again.at("receipt_line"));
    assert_eq!(service.log(), before);
}

#[test]
fn c13_a_result_after_the_timeout_is_kept_and_adopted() {
    let service = Service::start();
    let api = &service.api;
    let token = granted(api, "c", "opaque");
    api.report("r", "c", 1, report(&token, "timeout")).expect(200);
    assert_eq!(api.decision("r", "c").at("decision"), "stop");
    let late = api.report("r", "c", 1, report(&token, "ok")).expect(200);
    assert_eq!(late.at("late"), true);
    assert_eq!(late.at("status"), "ok");
    let outcomes = late.at("outcomes").as_array().expect("outcomes");
    let statuses: Vec<&Value> = outcomes.iter().map(|o| &o["status"]).collect();
    assert_eq!(statuses, ["timeout", "ok"], "all stay visible");
    let call = api.whole("r", "c");
    assert_eq!((call.str("state"), call.at("conflict")), ("ok", &json!(false)));
}

#[test]
fn c21_an_ambiguous_failure_is_never_final() {
    let service = Service::start();
    let api = &service.api;
    for status in ["timeout", "unknown"] {
        for effect in ["read_only", "idempotent", "queryable", "opaque"] {
            let call = format!("{effect}-{status}");
            let token = granted(api, &call, effect);
            api.report("r", &call, 1, report(&token, status)).expect(200);
            assert_eq!(api.whole("r", &call).at("state"), "unknown");
            api.report("r", &call, 1, report(&token, "ok")).expect(200);
            assert_eq!(api.whole("r", &call).at("state"), "ok");
        }
    }
}

#[test]
fn c26_a_second_failure_says_nothing_of_the_first_attempt() {
    let service = Service::start();
    let api = &service.api;
    let token = granted(api, "c", "opaque");
    api.report("r", "c", 1, report(&token, "timeout")).expect(200);
    let shot = json!({
        "run_id": "r", "tool_call_id": "c", "scope_id": api.scope(), "tool": "t", "input": {"a": 1},
        "status": "retryable_error", "error_class": "http.402", "duration_ms": 3,
        "started_at": "2027-01-15T08:00:01.000Z",
    });
    api.post("/v1/receipts", &shot).expect(201);
    let call = api.whole("r", "c");
    assert_eq!(call.at("state"), "unknown");
    assert_eq!(call.at("attempts")[0]["status"], "timeout");
    assert_eq!(api.decision("r", "c").at("decision"), "stop");
}

#[test]
fn c28_a_timeout_is_not_not_done() {
    let service = Service::start();
    let api = &service.api;
    for (effect, decision) in [
        ("read_only", "proceed"),
        ("idempotent", "proceed"),
        ("keyed", "stop"),
        ("queryable", "check_status"),
        ("opaque", "stop"),
    ] {
        let token = granted(api, effect, effect);
        let record = api.report("r", effect, 1, report(&token, "timeout")).expect(200);
        assert!(record.at("token").is_null());
        let answer = api.decision("r", effect);
        assert_eq!(answer.at("state"), "unknown");
        assert_eq!(answer.at("decision"), decision, "{effect}");
        for page in [&answer, &api.whole("r", effect)] {
            assert!(!page.text.contains("not_executed") && !page.text.contains("not executed"));
        }
    }
}
