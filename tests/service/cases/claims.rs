//! Racing, repeated and refused claims.

use recibo_tests::service::Service;
use serde_json::{Value, json};

#[test]
fn c06_of_a_hundred_claims_at_once_one_is_granted() {
    let service = Service::start();
    let scope = service.api.scope();
    let race = |call: &str, same: bool| -> Vec<(u16, Value)> {
        std::thread::scope(|threads| {
            let claims: Vec<_> = (0..100)
                .map(|i| {
                    let (api, scope, call) = (service.api.clone(), scope.clone(), call.to_owned());
                    let id = if same { "same".to_owned() } else { format!("c{i}") };
                    threads.spawn(move || {
                        let reply = api.claim("r", &call, &scope, &id, json!({}));
                        (reply.status, reply.json)
                    })
                })
                .collect();
            claims.into_iter().map(|claim| claim.join().expect("a claim")).collect()
        })
    };

    let different = race("different", false);
    assert_eq!(different.iter().filter(|(status, _)| *status == 201).count(), 1);
    let others = different.iter().filter(|(status, _)| *status == 200);
    assert!(others.clone().all(|(_, answer)| answer["decision"] == "wait"));
    assert_eq!(others.count(), 99);

    let same = race("same", true);
    assert_eq!(same.iter().filter(|(status, _)| *status == 201).count(), 1);
    let tokens: Vec<&Value> = same.iter().map(|(_, answer)| &answer["lease"]["token"]).collect();
    assert!(tokens.iter().all(|token| token.is_string() && *token == tokens[0]));
    assert!(same.iter().all(|(status, a)| a["replayed"] == (*status == 200)));
    assert_eq!(service.api.whole("r", "same").at("attempts").as_array().map(Vec::len), Some(1));
}

#[test]
fn c07_another_input_is_noticed_before_any_state() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    let other = |call: &str| {
        let before = service.log();
        for change in [json!({"input": {"a": 2}}), json!({"tool": "u"})] {
            let reply = api.claim("r", call, &scope, "other", change);
            assert_eq!(reply.problem(), (422, "input_mismatch"));
            assert!(reply.at("first_seen_at").is_string());
        }
        assert_eq!(service.log(), before);
    };
    let token = |call: &str| {
        let granted = api.claim("r", call, &scope, "c1", json!({})).expect(201);
        granted.at("lease")["token"].clone()
    };
    token("open");
    other("open");
    for status in ["ok", "timeout", "retryable_error", "terminal_error", "unknown"] {
        let mut report = json!({"lease_token": token(status), "status": status, "duration_ms": 1});
        if status == "ok" {
            report["output"] = json!("x");
        } else {
            report["error_class"] = json!("x");
        }
        api.report("r", status, 1, report).expect(200);
        other(status);
    }
    token("over");
    service.advance_ms(60_000);
    other("over");
}

#[test]
fn c08_a_lost_answer_to_a_claim_can_be_asked_for_again() {
    let mut service = Service::start();
    let scope = service.api.scope();
    let first = service.api.claim("r", "c", &scope, "c1", json!({})).expect(201);
    service.advance_ms(20_000);
    let again = service.api.claim("r", "c", &scope, "c1", json!({})).expect(200);
    assert_eq!(again.at("replayed"), true);
    assert_eq!(again.at("decision"), "proceed");
    assert_eq!(again.at("attempt"), 1);
    assert_eq!(again.at("lease")["token"], first.at("lease")["token"]);
    assert_eq!(again.at("lease")["duration_ms"], 40_000, "what is left of it");
    assert_eq!(again.at("started_at"), first.at("started_at"));

    // Also after a restart, although nothing but the secret is stored.
    service.restart();
    let again = service.api.claim("r", "c", &scope, "c1", json!({})).expect(200);
    assert_eq!(again.at("lease")["token"], first.at("lease")["token"]);
    // Later it is no permission any more.
    service.advance_ms(200_000);
    let later = service.api.claim("r", "c", &scope, "c1", json!({})).expect(200);
    assert_eq!(later.at("decision"), "stop");

    let scope = service.api.scope();
    let read_only = json!({"effect": "read_only"});
    service.api.claim("r", "d", &scope, "c1", read_only.clone()).expect(201);
    service.advance_ms(60_000);
    let used = service.api.claim("r", "d", &scope, "c1", read_only.clone());
    assert_eq!(used.problem(), (409, "claim_used"));
    service.api.claim("r", "d", &scope, "c2", read_only).expect(201);
}

#[test]
fn c10_a_refused_write_changes_nothing() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    let granted = api.claim("r", "c", &scope, "c1", json!({})).expect(201);
    let token = granted.at("lease")["token"].clone();
    let ok = json!({"lease_token": token, "status": "ok", "duration_ms": 1, "output": "x"});
    api.report("r", "c", 1, ok).expect(200);
    let (before, call) = (service.log(), api.whole("r", "c").text);

    let refused = [
        api.claim("r", "c", &scope, "c2", json!({"input": {"a": 9}})),
        api.claim("r", "c", &scope, "c2", json!({"effect": "read_only"})),
        api.claim("r", "c", &scope, "c2", json!({"operation_key": "k"})),
        api.claim("r", "new", "sc_none", "c2", json!({})),
        api.claim("r", "new", &scope, "c2", json!({"attempt": 2})),
        api.report("r", "c", 1, json!({"lease_token": token, "status": "timeout", "duration_ms": 1, "error_class": "x"})),
        api.report("r", "c", 1, json!({"lease_token": "wrong", "status": "ok", "duration_ms": 1, "output": "y"})),
        api.report("r", "c", 2, json!({"lease_token": token, "status": "ok", "duration_ms": 1, "output": "y"})),
        api.report("r", "new", 1, json!({"lease_token": token, "status": "ok", "duration_ms": 1, "output": "y"})),
    ];
    for reply in refused {
        assert!((400..500).contains(&reply.problem().0), "{}", reply.text);
    }
    assert_eq!(service.log(), before);
    assert_eq!(api.whole("r", "c").text, call);
    api.whole("r", "new").expect(404);
}

#[test]
fn c12_the_attempt_is_always_named() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    let read_only = json!({"effect": "read_only"});
    api.claim("r", "c", &scope, "c1", read_only.clone()).expect(201);
    service.advance_ms(60_000);
    let second = api.claim("r", "c", &scope, "c2", read_only).expect(201);
    assert_eq!(second.at("attempt"), 2);
    let token = &second.at("lease")["token"];
    let ok = json!({"lease_token": token, "status": "ok", "duration_ms": 1, "output": "x"});
    assert_eq!(api.post("/v1/runs/r/calls/c/outcome", &ok).status, 404);
    let wrong = api.report("r", "c", 1, ok.clone());
    assert_eq!(wrong.problem(), (403, "lease_token_wrong"));
    api.report("r", "c", 2, ok).expect(200);
    let call = api.whole("r", "c");
    assert_eq!(call.at("attempts")[0]["status"], "unknown");
    assert_eq!(call.at("attempts")[1]["status"], "ok");
}

#[test]
fn c22_replayed_stands_in_the_body() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    let granted = api.claim("r", "c", &scope, "c1", json!({})).expect(201);
    assert_eq!(granted.at("replayed"), false);
    let failed = json!({
        "lease_token": granted.at("lease")["token"], "status": "terminal_error", "duration_ms": 1,
        "error_class": "bad_request",
    });
    assert_eq!(api.report("r", "c", 1, failed.clone()).expect(200).at("replayed"), false);
    assert_eq!(api.report("r", "c", 1, failed).expect(200).at("replayed"), true);
}

#[test]
fn c29_the_same_call_under_another_id_is_pointed_out() {
    let service = Service::start();
    let api = &service.api;
    let scope = api.scope();
    let first = api.claim("r", "c1", &scope, "x", json!({})).expect(201);
    assert!(first.at("twin").is_null());
    service.advance_ms(3);
    let second = api.claim("r", "c2", &scope, "y", json!({})).expect(201);
    let twin = json!({"run_id": "r", "tool_call_id": "c1", "attempt": 1, "state": "in_flight"});
    assert_eq!(second.at("twin"), &twin);
    // Another input, another tool or another run is no twin.
    let others = [
        api.claim("r", "c3", &scope, "z", json!({"input": {"a": 2}})),
        api.claim("r", "c4", &scope, "z", json!({"tool": "u"})),
        api.claim("r2", "c5", &scope, "z", json!({})),
    ];
    for other in others {
        assert!(other.expect(201).at("twin").is_null());
    }
    // The newest one counts, and a failed one does not.
    let failed = json!({
        "lease_token": second.at("lease")["token"], "status": "terminal_error", "duration_ms": 1,
        "error_class": "denied",
    });
    api.report("r", "c2", 1, failed).expect(200);
    let third = api.claim("r", "c6", &scope, "w", json!({})).expect(201);
    assert_eq!(third.at("twin")["tool_call_id"], "c1");
}
