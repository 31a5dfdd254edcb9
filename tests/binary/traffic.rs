//! 572 real tool calls of an airline agent, through the running binary.

use std::collections::HashMap;
use std::path::Path;

use recibo_store::{Config, LogHead, Store, SystemClock};
use recibo_tests::api::{Api, Reply, call_path};
use recibo_tests::binary::Server;
use serde_json::{Value, json};

const CALLS: &str = include_str!("../data/airline-calls.ndjson");

struct RealCall {
    run: String,
    turn: u64,
    id: String,
    tool: String,
    arguments: Value,
    result: String,
}

fn calls() -> Vec<RealCall> {
    let calls: Vec<RealCall> = CALLS
        .lines()
        .map(|line| {
            let call: Value = serde_json::from_str(line).expect("a line of JSON");
            let text = |name: &str| call[name].as_str().expect("text").to_owned();
            RealCall {
                run: text("run_id"),
                turn: call["turn"].as_u64().expect("a number"),
                id: text("tool_call_id"),
                tool: text("tool"),
                // The provider gives arguments as JSON text.
                arguments: serde_json::from_str(&text("arguments")).expect("JSON"),
                result: text("result"),
            }
        })
        .collect();
    assert_eq!(calls.len(), 572);
    calls
}

fn claim(api: &Api, scope: &str, call: &RealCall, id: &str, claim_id: &str) -> Reply {
    let more = json!({"tool": call.tool, "input": call.arguments});
    api.claim(&call.run, id, scope, claim_id, more)
}

fn outcome(call: &RealCall, lease_token: &Value) -> Value {
    let mut outcome = json!({"lease_token": lease_token, "duration_ms": 3});
    if call.result.starts_with("Error") {
        outcome["status"] = json!("terminal_error");
        outcome["error_class"] = json!("tool_error");
    } else {
        outcome["status"] = json!("ok");
    }
    outcome["output"] = json!(call.result);
    outcome
}

/// Event count and log root of a stopped ledger.
fn log(data: &Path) -> LogHead {
    let clock = std::sync::Arc::new(SystemClock);
    let store = Store::open(data, Config::default(), clock, Box::new(|bytes| rand::fill(bytes)));
    let store = store.expect("a store");
    let head = store.snapshot().and_then(|snapshot| snapshot.log_head()).expect("a head");
    store.close();
    head
}

#[test]
fn ids_as_the_provider_gave_them_are_refused_where_they_are_reused() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let server = Server::start(&data);
    let api = &server.api;
    let scope = api.scope();
    let (mut granted, mut mismatched, mut repeated) = (0, 0, 0);
    for (index, call) in calls().iter().enumerate() {
        let before = api.whole(&call.run, &call.id).text;
        let reply = claim(api, &scope, call, &call.id, &format!("c{index}"));
        match reply.status {
            201 => {
                granted += 1;
                let body = outcome(call, &reply.at("lease")["token"]);
                api.report(&call.run, &call.id, 1, body).expect(200);
            }
            200 => {
                assert!(["reuse", "stop"].contains(&reply.str("decision")), "{}", reply.text);
                repeated += 1;
            }
            _ => {
                assert_eq!(reply.problem(), (422, "input_mismatch"));
                assert_eq!(api.whole(&call.run, &call.id).text, before);
                mismatched += 1;
            }
        }
    }
    assert_eq!((granted, mismatched, repeated), (534, 37, 1));
    // A scope, and two events for every granted call: nothing of the others.
    assert_eq!(server.stop(), Some(0));
    assert_eq!(log(&data).size, 1 + 2 * granted);
}

#[test]
fn with_the_turn_before_the_id_every_call_has_its_receipt() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let server = Server::start(&data);
    let scope = server.api.scope();
    let mut records = HashMap::new();
    for call in &calls() {
        let api = &server.api;
        let id = format!("{}:{}", call.turn, call.id);
        let granted = claim(api, &scope, call, &id, "c").expect(201);
        let body = outcome(call, &granted.at("lease")["token"]);
        let record = api.report(&call.run, &id, 1, body).expect(200);
        if call.result.starts_with("Error") {
            assert_eq!(record.at("status"), "terminal_error");
            assert!(record.at("token").is_null() && record.at("receipt_line").is_null());
        } else {
            let line = format!("[receipt: {}]", record.str("token"));
            assert_eq!(record.str("receipt_line"), line);
            assert_eq!(verify(api, &record, &call.result), ("valid".into(), json!([])));
            let changed = format!("{} ", call.result);
            assert_eq!(verify(api, &record, &changed), ("mismatch".into(), json!(["output"])));
        }
        records.insert((call.run.clone(), id), record);
    }
    assert_eq!(records.len(), 572);
    assert_eq!(server.stop(), Some(0));
    let before = log(&data);

    // The keys are gone with the process; the records are not.
    let server = Server::start(&data);
    let api = &server.api;
    for call in &calls() {
        let id = format!("{}:{}", call.turn, call.id);
        let record = &records[&(call.run.clone(), id.clone())];
        let mut before = record.json.clone();
        for answer_only in ["replayed", "receipt_line", "no_token_reason"] {
            before.as_object_mut().expect("an object").remove(answer_only);
        }
        let now = api.get(&format!("{}/attempts/1", call_path(&call.run, &id))).expect(200);
        assert_eq!(now.json, before);
        if record.at("token").is_string() {
            assert_eq!(verify(api, record, &call.result), ("recorded".into(), json!([])));
            let changed = format!("{} ", call.result);
            assert_eq!(verify(api, record, &changed), ("mismatch".into(), json!(["output"])));
        }
    }
    let forged =
        json!({"token": "zc-receipt-1774608496-gzpEBuUIRYX1vd4fQl4oYkqhq4-GnoJDStmlYzvQiWA"});
    assert_eq!(api.post("/v1/receipts:verify", &forged).at("verdict"), "forged");
    assert_eq!(server.stop(), Some(0));
    assert_eq!(log(&data), before, "a restart and reads append nothing");
}

fn verify(api: &Api, record: &Reply, output: &str) -> (String, Value) {
    let body = json!({"token": record.at("token"), "output": output});
    let answer = api.post("/v1/receipts:verify", &body).expect(200);
    (answer.str("verdict").to_owned(), answer.at("mismatches").clone())
}
