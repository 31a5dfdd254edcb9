//! What status checks, restarts and other calls leave in the answers.

use recibo_tests::service::Service;
use serde_json::json;

#[test]
fn what_a_status_check_brought_is_in_the_record_masked() {
    let service = Service::start();
    let api = &service.api;
    let path = "/v1/runs/r/calls/c/attempts/1/status-checks";
    api.claim("r", "c", &api.scope(), "k", json!({"effect": "queryable"})).expect(201);
    service.advance_ms(60_000);
    let check = json!({"answer": "executed_ok", "source": "shop", "provider_ref": "order-17"});
    let call = api.post(path, &check).expect(200);
    let attempt = &call.at("attempts")[0];
    assert_eq!(attempt["provider_ref"], "order-17");
    assert_eq!(attempt["redacted"], false);

    let path = "/v1/runs/r/calls/d/attempts/1/status-checks";
    api.claim("r", "d", &api.scope(), "k", json!({"effect": "queryable"})).expect(201);
    service.advance_ms(60_000);
    let check = json!({"answer": "executed_ok", "source": "key AKIAQ3EGRIAE7ZKLMNOP"});
    let call = api.post(path, &check).expect(200);
    assert_eq!(call.at("attempts")[0]["redacted"], true);
    assert!(!call.text.contains("AKIAQ3EGRIAE7ZKLMNOP"));
}

#[test]
fn a_scope_whose_process_ended_stays_gone() {
    let mut service = Service::start();
    let scope = service.api.scope();
    let path = format!("/v1/scopes/{scope}");
    assert_eq!(service.api.get(&path).at("state"), "open");
    service.restart();
    let before = service.log();
    assert_eq!(service.api.get(&path).at("state"), "gone");
    service.api.call("DELETE", &path, &serde_json::Value::Null).expect(204);
    assert_eq!(service.api.get(&path).at("state"), "gone", "nobody closed it while it lived");
    assert_eq!(service.log(), before);
    let closed = service.api.claim("r", "c", &scope, "k", json!({}));
    assert_eq!(closed.problem(), (409, "scope_gone"));
}

#[test]
fn a_decision_names_the_twin_too() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    for call in ["a", "b"] {
        api.claim("r", call, &scope, "k", json!({})).expect(201);
    }
    let twin = |call: &str| api.decision("r", call).at("twin")["tool_call_id"].clone();
    assert_eq!((twin("a"), twin("b")), (json!("b"), json!("a")));
    assert!(api.decision("r", "c").at("twin").is_null());
}

#[test]
fn masks_that_grow_cost_no_other_label() {
    let service = Service::start();
    let api = &service.api;
    let labels = json!({"m": "redis://:p@h ".repeat(100), "team": "blue", "note": "two\nlines"});
    api.claim("r", "c", &api.scope(), "k", json!({ "labels": labels })).expect(201);
    let record = &api.whole("r", "c").json["attempts"][0];
    assert_eq!(record["labels"]["team"], "blue");
    assert_eq!(record["labels"]["note"], "two\nlines");
    assert!(record["labels"]["m"].as_str().expect("a mask").starts_with("[REDACTED:"));
    assert_eq!(record["redacted"], true);
}
