//! Models retry under a new tool_call_id: claims that ask to be held back by their twins.

use recibo_tests::api::{Api, Reply, call_path};
use recibo_tests::service::Service;
use serde_json::{Value, json};

fn claim(api: &Api, run: &str, call: &str, more: Value) -> Reply {
    let scope = api.scope();
    let mut asked = json!({"twins": "stop", "effect": "opaque", "lease_ms": 10_000});
    for (name, value) in more.as_object().expect("members") {
        asked[name] = value.clone();
    }
    api.claim(run, call, &scope, &format!("claim-{call}"), asked)
}

/// Claims and reports; gives the lease token.
fn ended(api: &Api, call: &str, status: &str, more: Value) -> String {
    let granted = claim(api, "r", call, json!({})).expect(201);
    let token = granted.at("lease")["token"].as_str().expect("a token").to_owned();
    if status != "open" {
        report(api, call, &token, status, more);
    }
    token
}

fn report(api: &Api, call: &str, token: &str, status: &str, more: Value) {
    let mut body = json!({"lease_token": token, "status": status, "duration_ms": 1});
    if status == "ok" {
        body["output"] = json!("done");
    } else {
        body["error_class"] = json!("x");
    }
    for (name, value) in more.as_object().expect("members") {
        body[name] = value.clone();
    }
    api.report("r", call, 1, body).expect(200);
}

/// Decision, reason, and the twin that decided.
fn answer(reply: &Reply) -> (u16, String, String, String) {
    let twin = reply.at("twin")["tool_call_id"].as_str().unwrap_or("").to_owned();
    (reply.status, reply.str("decision").to_owned(), reply.str("reason").to_owned(), twin)
}

fn held(decision: &str, reason: &str, twin: &str) -> (u16, String, String, String) {
    (200, decision.to_owned(), reason.to_owned(), twin.to_owned())
}

fn granted(twin: &str) -> (u16, String, String, String) {
    (201, "proceed".to_owned(), "first_attempt".to_owned(), twin.to_owned())
}

/// A payment that timed out is called again under another id: one effect.
#[test]
fn a_twin_of_unknown_outcome_stops_a_claim_until_somebody_settles_it() {
    let service = Service::start();
    let api = &service.api;
    ended(api, "a", "timeout", json!({}));
    let events = service.log();
    let stopped = claim(api, "r", "b", json!({}));
    assert_eq!(answer(&stopped), held("stop", "twin_unknown", "a"));
    assert_eq!((stopped.str("state"), stopped.at("record")), ("absent", &json!(null)));
    assert_eq!(stopped.at("effect"), "opaque");
    assert_eq!(service.log().0, events.0 + 1, "a scope was opened, and nothing else");
    // Who only asks for advice is granted, and a repeatable tool is never held back.
    assert_eq!(answer(&claim(api, "r", "c", json!({"twins": "advise"}))), granted("a"));
    assert_eq!(answer(&claim(api, "r2", "d", json!({}))), granted(""));
    assert_eq!(
        answer(&claim(api, "r", "e", json!({"input": {"a": 2}}))),
        granted(""),
        "another input is no twin"
    );
    // Under its own id the table decides alone.
    let own = claim(api, "r", "a", json!({"claim_id": "x"}));
    assert_eq!((own.str("decision"), own.str("reason")), ("stop", "outcome_unknown"));
    let path = format!("{}/resolution", call_path("r", "a"));
    let word = json!({"state": "terminal", "reason": "the bank says no"}).to_string();
    let headers = [("if-match", "*"), ("content-type", "application/json")];
    api.send("POST", &path, &headers, word.as_bytes()).expect("an answer").expect(200);
    // The call that was advised is still under way.
    assert_eq!(answer(&claim(api, "r", "b", json!({}))), held("wait", "twin_in_flight", "c"));
}

#[test]
fn a_twin_stops_a_claim_only_for_a_while() {
    let service = Service::start();
    let api = &service.api;
    ended(api, "a", "open", json!({}));
    service.advance_ms(10_000);
    let within = json!({"twin_window_ms": 5000});
    service.advance_ms(4999);
    assert_eq!(answer(&claim(api, "r", "b", within.clone())), held("stop", "twin_unknown", "a"));
    // The event that says that the lease is over makes the twin no younger.
    service.tick();
    service.advance_ms(1);
    assert_eq!(answer(&claim(api, "r", "b", within)), granted("a"));
}

#[test]
fn a_twin_under_way_is_waited_for() {
    let service = Service::start();
    let api = &service.api;
    ended(api, "a", "open", json!({}));
    service.advance_ms(4000);
    let wait = claim(api, "r", "b", json!({}));
    assert_eq!(answer(&wait), held("wait", "twin_in_flight", "a"));
    assert_eq!(wait.at("retry_after_ms"), 6000);
    assert_eq!(wait.headers["retry-after"], "6");
}

#[test]
fn a_late_success_is_told_until_the_caller_knows_it() {
    let service = Service::start();
    let api = &service.api;
    let token = ended(api, "a", "timeout", json!({}));
    report(api, "a", &token, "ok", json!({}));
    let told = claim(api, "r", "b", json!({}));
    assert_eq!(answer(&told), held("reuse", "twin_ok_late", "a"));
    assert_eq!(told.at("result_available"), false);
    assert_eq!(told.at("twin")["run_id"], "r");
    let others = json!({"knows": ["nobody", "r2/a"]});
    assert_eq!(answer(&claim(api, "r", "b", others)), held("reuse", "twin_ok_late", "a"));
    for (call, known) in [("b", "a"), ("c", "r/a")] {
        let knows = json!({ "knows": [known] });
        let reply = claim(api, "r", call, knows);
        assert_eq!(reply.status, if call == "b" { 201 } else { 200 }, "{}", reply.text);
        if call == "c" {
            assert_eq!(answer(&reply), held("wait", "twin_in_flight", "b"));
        }
    }
}

#[test]
fn a_success_in_time_and_an_answered_failure_stop_nothing() {
    let service = Service::start();
    let api = &service.api;
    ended(api, "a", "ok", json!({}));
    assert_eq!(answer(&claim(api, "r", "b", json!({"input": {"a": 1}}))), granted("a"));
    let service = Service::start();
    let api = &service.api;
    ended(api, "a", "unknown", json!({"answered": true}));
    let call = api.whole("r", "a").expect(200);
    assert_eq!(call.at("state"), "unknown");
    assert_eq!(answer(&claim(api, "r", "b", json!({}))), granted("a"));
    // A timeout was seen by nobody, whatever is said of it.
    let service = Service::start();
    let api = &service.api;
    ended(api, "a", "timeout", json!({"answered": true}));
    assert_eq!(answer(&claim(api, "r", "b", json!({}))), held("stop", "twin_unknown", "a"));
}

/// Of several twins the one that is most in the way decides, and of equals the newest.
#[test]
fn stop_goes_before_wait_and_wait_before_reuse() {
    let service = Service::start();
    let api = &service.api;
    let advise = |call: &str| {
        let reply = claim(api, "r", call, json!({"twins": "advise"})).expect(201);
        reply.at("lease")["token"].as_str().expect("a token").to_owned()
    };
    let late = advise("late");
    report(api, "late", &late, "timeout", json!({}));
    report(api, "late", &late, "ok", json!({}));
    let first = advise("first");
    let second = advise("second");
    let open = advise("open");
    report(api, "first", &first, "timeout", json!({}));
    report(api, "second", &second, "timeout", json!({}));
    let asked = || answer(&claim(api, "r", "new", json!({})));
    assert_eq!(asked(), held("stop", "twin_unknown", "second"));
    report(api, "second", &second, "retryable_error", json!({}));
    assert_eq!(asked(), held("stop", "twin_unknown", "first"));
    report(api, "first", &first, "retryable_error", json!({}));
    assert_eq!(asked(), held("wait", "twin_in_flight", "open"));
    report(api, "open", &open, "retryable_error", json!({}));
    assert_eq!(asked(), held("reuse", "twin_ok_late", "late"));
}

/// A model that plans again words the rest anew.
#[test]
fn the_policy_names_the_arguments_that_make_two_calls_the_same() {
    let service = Service::start();
    let api = &service.api;
    api.policy(json!([{"match": "t", "effect": "opaque", "twin_by": ["order_id", "cents"]}]));
    let input = |text: &str, cents: u64| json!({"input": {"order_id": "o-1", "cents": cents, "text": text}});
    claim(api, "r", "a", input("Dear", 5)).expect(201);
    let again = claim(api, "r", "b", input("Hello", 5));
    assert_eq!(answer(&again), held("wait", "twin_in_flight", "a"));
    assert_eq!(answer(&claim(api, "r", "c", input("Dear", 6))), granted(""));
    // The call's own id stays bound to the whole input.
    let other = claim(api, "r", "a", input("Hello", 5));
    assert_eq!(other.problem(), (422, "input_mismatch"));
    assert_eq!(other.at("differs"), &json!(["input_hash"]));
    let hint = other.str("hint");
    assert!(hint.contains("turn") && hint.contains("position"), "{hint}");
}

/// Agents that start again under a new run.
#[test]
fn twins_of_other_runs_count_where_the_policy_says_so() {
    let service = Service::start();
    let api = &service.api;
    api.policy(json!([
        {"match": "t", "effect": "opaque", "twin_scope": "namespace"},
        {"match": "u", "effect": "opaque"},
    ]));
    claim(api, "r", "a", json!({})).expect(201);
    claim(api, "r", "a2", json!({"tool": "u"})).expect(201);
    let again = claim(api, "r2", "a", json!({}));
    assert_eq!(answer(&again), held("wait", "twin_in_flight", "a"));
    assert_eq!(again.at("twin")["run_id"], "r");
    assert_eq!(answer(&claim(api, "r2", "b", json!({"tool": "u"}))), granted(""));
    // Another namespace has twins of its own.
    let foreign = service.api_as("adapter", "foreign");
    assert_eq!(answer(&claim(&foreign, "r2", "a", json!({}))), granted(""));
    // Nor does a restart forget any.
    let mut service = service;
    service.restart();
    let again = claim(&service.api, "r3", "a", json!({}));
    assert_eq!(answer(&again), held("wait", "twin_in_flight", "a"));
}

#[test]
fn answers_carry_the_terms_and_a_claim_brings_them_where_no_rule_matches() {
    let service = Service::start();
    let api = &service.api;
    let stated = json!({"effect": "keyed", "key_window_ms": 60_000, "settle_ms": 5000});
    let reply = claim(api, "r", "a", stated.clone()).expect(201);
    let terms = json!({
        "key_window_ms": 60_000, "key_window_ends_at": "2027-01-15T08:01:00.000Z",
        "settle_ms": 5000, "max_attempts": null, "is_error": null,
    });
    assert_eq!((reply.at("effect"), reply.at("terms")), (&json!("keyed"), &terms));
    assert_eq!(api.decision("r", "a").at("terms"), &terms);
    assert_eq!(api.whole("r", "a").at("terms"), &terms);
    let absent = api.decision("r", "none");
    assert_eq!((absent.at("effect"), absent.at("terms")), (&json!(null), &json!(null)));
    api.policy(json!([
        {"match": "t", "effect": "keyed", "key_window_ms": 1000, "is_error": "no_effect"},
    ]));
    let reply = claim(api, "r", "b", json!({"effect": "keyed", "key_window_ms": 9, "input": 2}));
    assert_eq!(reply.at("terms")["key_window_ms"], 1000, "the policy's rule goes before");
    assert_eq!(reply.at("terms")["is_error"], "no_effect");
}

#[test]
fn a_success_without_its_key_says_so_and_one_that_names_a_living_scope_is_signed() {
    let mut service = Service::start();
    let first = ended(&service.api, "a", "open", json!({}));
    let second = claim(&service.api, "r", "b", json!({"input": 2})).expect(201);
    let second = second.at("lease")["token"].as_str().expect("a token").to_owned();
    service.restart();
    let api = &service.api;
    let ok = |token: &str| json!({"lease_token": token, "status": "ok", "duration_ms": 1, "output": "x"});
    let unsigned = api.report("r", "a", 1, ok(&first)).expect(200);
    assert_eq!(unsigned.at("token"), &json!(null));
    assert_eq!(unsigned.at("no_token_reason"), "scope_gone");
    let mut named = ok(&second);
    named["scope_id"] = json!(api.scope());
    let signed = api.report("r", "b", 1, named).expect(200);
    assert!(signed.at("token").is_string());
    assert_eq!(signed.at("no_token_reason"), &json!(null));
}
