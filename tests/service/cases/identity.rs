//! Whose call it is, and what names it.

use recibo_tests::service::Service;
use serde_json::{Value, json};

#[test]
fn c15_a_call_of_another_tenant_looks_absent() {
    let service = Service::start();
    let (red, blue) = (service.api_as("admin", "red"), service.api_as("admin", "blue"));
    let scope = red.scope();
    let granted = red.claim("r", "c", &scope, "c1", json!({})).expect(201);
    let ok = json!({
        "lease_token": granted.at("lease")["token"], "status": "ok", "duration_ms": 1, "output": "x",
    });
    let record = red.report("r", "c", 1, ok.clone()).expect(200);
    let token = record.str("token");
    let key = record.str("idempotency_key");

    for path in [
        "/v1/runs/r/calls/c".to_owned(),
        "/v1/runs/r/calls/c/attempts/1".to_owned(),
        "/v1/runs/r".to_owned(),
        "/v1/runs/r/calls".to_owned(),
        "/v1/runs/r/receipts-block".to_owned(),
        format!("/v1/receipts/{token}"),
        format!("/v1/idempotency/{key}"),
        format!("/v1/scopes/{scope}"),
    ] {
        let (theirs, absent) = (blue.get(&path), service.api_as("admin", "green").get(&path));
        assert_eq!(red.get(&path).status, 200, "{path}");
        assert_eq!(theirs.status, 404, "{path}");
        assert_eq!(theirs.text, absent.text, "{path}");
    }
    assert_eq!(blue.decision("r", "c").at("state"), "absent");
    let verify = json!({ "token": token });
    assert_eq!(blue.post("/v1/receipts:verify", &verify).at("verdict"), "forged");
    assert_eq!(blue.report("r", "c", 1, ok).status, 404);
    assert_eq!(blue.claim("q", "c", &scope, "c1", json!({})).problem(), (404, "scope_not_found"));
    // The same ids are another call with another key.
    let own = blue.claim("r", "c", &blue.scope(), "c1", json!({"input": 2})).expect(201);
    assert_ne!(own.str("idempotency_key"), key);
}

#[test]
fn c16_the_key_names_the_effect_and_nothing_volatile() {
    let service = Service::start();
    let api = &service.api;
    let read_only = json!({"effect": "read_only", "message_id": "m1", "labels": {"try": "1"}});
    let first = api.claim("r", "c", &api.scope(), "c1", read_only).expect(201);
    service.advance_ms(60_000);
    let other = json!({"effect": "read_only", "message_id": "m2", "labels": {"try": "2"}});
    let second = api.claim("r", "c", &api.scope(), "c2", other).expect(201);
    assert_eq!(second.at("attempt"), 2);
    assert_eq!(first.str("idempotency_key"), second.str("idempotency_key"));
    assert_eq!(api.decision("r", "c").str("idempotency_key"), first.str("idempotency_key"));
}

#[test]
fn c17_the_ledger_derives_the_key() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    let own = json!({"idempotency_key": "mine"});
    let reply = api.claim("r", "c", &scope, "c1", own);
    assert_eq!(reply.problem(), (400, "invalid_request"));
    let disguised = api.claim("r", "c", &scope, "c1", json!({"operation_key": "rk1_mine"}));
    assert_eq!(disguised.status, 400);
    // A key of the outside service is one for the call: the same on every attempt.
    let order = json!({"operation_key": "order-17", "effect": "idempotent"});
    api.claim("r", "c", &scope, "c1", order.clone()).expect(201);
    let taken = api.claim("r", "d", &scope, "c2", json!({"operation_key": "order-17"}));
    assert_eq!(taken.problem(), (409, "operation_key_taken"));
    assert_eq!(taken.at("holder"), &json!({"run_id": "r", "tool_call_id": "c"}));
    assert_eq!(taken.at("decision"), "wait");
    service.advance_ms(60_000);
    let other = json!({"operation_key": "order-18", "effect": "idempotent"});
    let reply = api.claim("r", "c", &scope, "c3", other);
    assert_eq!(reply.problem(), (422, "operation_key_mismatch"));
    api.claim("r", "c", &scope, "c3", order).expect(201);
    for key in ["order-17", api.decision("r", "c").str("idempotency_key")] {
        let found = api.get(&format!("/v1/idempotency/{key}")).expect(200);
        assert_eq!((found.str("tool_call_id"), found.str("decision")), ("c", "wait"));
    }
}

#[test]
fn c18_a_reused_id_is_refused_with_a_hint() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    api.claim("r", "call_1", &scope, "c1", json!({})).expect(201);
    let reply = api.claim("r", "call_1", &scope, "c2", json!({"tool": "search"}));
    assert_eq!(reply.problem(), (422, "input_mismatch"));
    assert!(reply.str("hint").contains("turn"), "{}", reply.text);
    api.claim("r", "2:call_1", &scope, "c3", json!({"tool": "search"})).expect(201);
}

#[test]
fn c19_order_and_white_space_of_arguments_mean_nothing() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    let raw = |input: &str, id: &str| {
        let body = format!(
            r#"{{"scope_id":"{scope}","claim_id":"{id}","tool":"t","effect":"read_only","input":{input}}}"#
        );
        let headers = [("content-type", "application/json")];
        api.send("POST", "/v1/runs/r/calls/c/attempts", &headers, body.as_bytes())
            .expect("an answer")
    };
    let first = raw(r#"{"b": [1, 2.0], "a": {"y": "\u00e9", "x": null}}"#, "c1");
    assert_eq!(first.status, 201);
    let again = raw("{ \"a\":{\"x\":null,\"y\":\"é\"},\n\"b\":[1.0e0,2]}", "c2");
    assert_eq!((again.status, again.str("decision")), (200, "wait"));
    assert_eq!(first.str("input_hash"), again.str("input_hash"));
}

#[test]
fn c20_large_ids_stay_different() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    let raw = |call: &str, input: &str| {
        let body = format!(
            r#"{{"scope_id":"{scope}","claim_id":"c","tool":"t","input":{{"id":{input}}}}}"#
        );
        let headers = [("content-type", "application/json")];
        let path = format!("/v1/runs/r/calls/{call}/attempts");
        api.send("POST", &path, &headers, body.as_bytes()).expect("an answer")
    };
    let one = raw("a", "9007199254740993").expect(201);
    let other = raw("b", "9007199254740992").expect(201);
    assert_ne!(one.str("input_hash"), other.str("input_hash"));
    assert!(other.at("twin").is_null());
    assert_eq!(raw("a", "9007199254740992").problem(), (422, "input_mismatch"));
}

#[test]
fn c11_a_stalled_worker_can_only_speak_of_its_own_attempt() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    let claim = |id: &str| {
        let granted = api.claim("r", "c", &scope, id, json!({"effect": "idempotent"})).expect(201);
        granted.at("lease")["token"].clone()
    };
    let ok = |token: &Value, output: &str| json!({"lease_token": token, "status": "ok", "duration_ms": 1, "output": output});
    let stalled = claim("worker");
    service.advance_ms(60_000);
    let replacement = claim("worker-2");
    assert_ne!(stalled, replacement);
    let foreign = api.report("r", "c", 2, ok(&stalled, "old"));
    assert_eq!(foreign.problem(), (403, "lease_token_wrong"));
    // Its own late word is kept, and the other's attempt stays as it is.
    let late = api.report("r", "c", 1, ok(&stalled, "old")).expect(200);
    assert_eq!((late.at("attempt"), late.at("late")), (&json!(1), &json!(true)));
    let open = api.get("/v1/runs/r/calls/c/attempts/2").expect(200);
    assert_eq!(open.at("status"), "started");
    api.report("r", "c", 2, ok(&replacement, "new")).expect(200);
    let call = api.whole("r", "c");
    let hashes: Vec<&Value> = call
        .at("attempts")
        .as_array()
        .expect("attempts")
        .iter()
        .map(|a| &a["output_hash"])
        .collect();
    assert_ne!(hashes[0], hashes[1], "neither has replaced the other");
}
