//! Models that ask again: under new ids, for the same effect.

use recibo_adapter::now_ms;
use recibo_tests::binary::Server;
use serde_json::{Value, json};

use super::proxy::{Proxy, Stage, call, calls, outcome, receipt, request};
use super::relay::behind_relay;

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().expect("a text")
}

fn cancel(proxy: &mut Proxy, id: u64) {
    let params = json!({"requestId": id, "reason": "timed out"});
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    proxy.say(&notice.to_string());
}

fn outcomes(server: &Server) -> Vec<String> {
    calls(server).iter().map(outcome).collect()
}

/// The client gives up after a while, and the model asks again under new ids.
#[test]
fn m10_a_charge_that_is_asked_for_again_takes_effect_once() {
    let stage = Stage::new();
    let server = Server::start(&stage.data());
    let mut proxy = stage.start(&[]);
    let gate = stage.path("gate");
    let charge = |id: u64| call(id, "charge", json!({"cents": 1200, "wait": gate}));
    proxy.say(&charge(1));
    stage.wait_for_effects(1);
    cancel(&mut proxy, 1);

    let second = proxy.ask(&charge(2));
    assert_eq!((&second["id"], &second["result"]["isError"]), (&json!(2), &json!(true)));
    let first_id = calls(&server)[0]["tool_call_id"].as_str().expect("an id").to_owned();
    for said in [&*first_id, "since 20", "nobody knows", "status check", "recibo resolve r"] {
        assert!(text(&second).contains(said), "{said}: {second}");
    }

    std::fs::write(&gate, "").expect("a file");
    // The late answer passes, to a client that waits for it no more.
    assert!(receipt(&proxy.hear_json()).is_some());
    let third = proxy.ask(&charge(3));
    assert_eq!(third["id"], 3);
    for said in [&*first_id, "has succeeded in the meantime", "\ndone\n[receipt: zc-receipt-"] {
        assert!(text(&third).contains(said), "{said}: {third}");
    }
    assert_eq!(stage.effects().len(), 1);
    assert_eq!(outcomes(&server), ["1 ok -"], "what was held back has left nothing");

    // The model was told, and wants it once more.
    let fourth = proxy.ask(&charge(4));
    assert!(receipt(&fourth).is_some(), "{fourth}");
    assert_eq!(stage.effects().len(), 2);
    proxy.end();
    assert_eq!(outcomes(&server), ["1 ok -", "4 ok -"]);
}

/// What the host has cancelled waits for nothing any more: its id is free, and nothing holds up the
/// end of the session.
#[test]
fn a_call_that_is_cancelled_while_it_waits_ends_at_once() {
    let stage = Stage::new();
    let mut proxy = stage.start(&["--wait", "1h"]);
    let gate = stage.path("gate");
    let charge = |id: u64| call(id, "charge", json!({ "wait": gate }));
    proxy.say(&charge(1));
    stage.wait_for_effects(1);
    proxy.say(&charge(2));
    // By its answer the one before has been read.
    assert!(receipt(&proxy.ask(&call(3, "other", json!({})))).is_some());
    cancel(&mut proxy, 2);
    let deadline_ms = now_ms() + 60_000;
    while receipt(&proxy.ask(&call(2, "another", json!({})))).is_none() {
        assert!(now_ms() < deadline_ms, "the id stays taken");
    }
    std::fs::write(&gate, "").expect("a file");
    assert!(receipt(&proxy.hear_json()).is_some());
    proxy.end();
    assert_eq!(stage.effects().len(), 3);
}

/// The client gives up without a word.
#[test]
fn m10_an_answer_that_comes_while_the_same_is_asked_for_again_is_told() {
    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    let gate = stage.path("gate");
    let charge = |id: u64| call(id, "charge", json!({ "wait": gate }));
    proxy.say(&charge(1));
    stage.wait_for_effects(1);
    proxy.say(&charge(2));
    // Another call is not held up by the one that waits.
    assert!(receipt(&proxy.ask(&call(3, "other", json!({})))).is_some());
    std::fs::write(&gate, "").expect("a file");
    let answers = [proxy.hear_json(), proxy.hear_json()];
    let of = |id: u64| answers.iter().find(|answer| answer["id"] == id).expect("an answer");
    assert!(receipt(of(1)).is_some());
    assert!(text(of(2)).contains("has succeeded in the meantime"), "{answers:?}");
    proxy.end();
    assert_eq!(stage.effects().len(), 2);
    assert_eq!(stage.outcomes(), ["1 ok -", "3 ok -"]);
}

#[test]
fn m10_one_command_settles_a_call_that_nobody_knows_the_outcome_of() {
    let stage = Stage::new();
    let server = Server::start(&stage.data());
    let mut proxy = stage.start(&[]);
    let charge = |id: u64| call(id, "charge", json!({"wait": stage.path("never")}));
    proxy.say(&charge(1));
    stage.wait_for_effects(1);
    cancel(&mut proxy, 1);
    assert!(text(&proxy.ask(&charge(2))).contains("nobody knows"));
    let id = calls(&server)[0]["tool_call_id"].as_str().expect("an id").to_owned();
    let data = stage.data();
    let resolved = std::process::Command::new(recibo_tests::binary::path())
        .args(["resolve", "r", &id, "--as", "retryable", "--reason", "asked the bank", "--data"])
        .arg(&data)
        .output()
        .expect("the binary runs");
    assert!(resolved.status.success(), "{resolved:?}");
    proxy.say(&charge(3));
    stage.wait_for_effects(2);
    drop(proxy);
}

#[test]
fn with_advise_the_same_runs_again_at_once() {
    let stage = Stage::new();
    let mut proxy = stage.start(&["--twins", "advise"]);
    let gate = stage.path("gate");
    let charge = |id: u64| call(id, "charge", json!({ "wait": gate }));
    proxy.say(&charge(1));
    stage.wait_for_effects(1);
    cancel(&mut proxy, 1);
    proxy.say(&charge(2));
    stage.wait_for_effects(2);
    std::fs::write(&gate, "").expect("a file");
    assert!(receipt(&proxy.hear_json()).is_some() && receipt(&proxy.hear_json()).is_some());
    proxy.end();
    assert_eq!(stage.outcomes(), ["1 ok -", "2 ok -"]);
}

/// A failure that the tool tells of is an answer: the model has read it, and may ask again.
#[test]
fn m12_is_error_is_an_answer_and_its_meaning_is_the_policys() {
    let stage = Stage::new();
    let server = Server::start(&stage.data());
    server.api.policy(json!([
        {"match": "safe", "effect": "opaque", "is_error": "no_effect"},
        {"match": "read", "effect": "read_only"},
        {"match": "put", "effect": "idempotent"},
    ]));
    let mut proxy = stage.start(&[]);
    for (id, tool) in [(1, "pay"), (2, "safe"), (3, "read"), (4, "put")] {
        for id in [id, id + 10] {
            let answer = proxy.ask(&call(id, tool, json!({"how": "error", "of": tool})));
            assert_eq!(text(&answer), "done", "the tool has run: {answer}");
        }
    }
    proxy.end();
    let statuses = ["unknown", "terminal_error", "retryable_error", "unknown"];
    let expected = [1, 11, 2, 12, 3, 13, 4, 14].iter().zip(statuses.iter().flat_map(|s| [s, s]));
    let expected: Vec<String> =
        expected.map(|(id, status)| format!("{id} {status} tool_error")).collect();
    assert_eq!(outcomes(&server), expected);
}

#[test]
fn m12_a_login_that_is_needed_first_is_no_unknown_outcome() {
    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    let error = r#"{"jsonrpc":"2.0","id":@ID@,"error":{"code":-32042,"message":"visit a page"}}"#;
    proxy.ask(&call(1, "pay", json!({"say": [error]})));
    proxy.end();
    assert_eq!(stage.outcomes(), ["1 retryable_error rpc_32042"]);
}

/// `--lease` bounds one renewal, not the tool.
#[test]
fn a_call_may_outlast_its_lease_which_is_renewed() {
    for (words, status) in [
        (&["--lease", "1s"][..], "in_flight"),
        (&["--lease", "1s", "--renew-for", "1s"][..], "unknown"),
    ] {
        let stage = Stage::new();
        let server = Server::start(&stage.data());
        let mut proxy = stage.start(words);
        let gate = stage.path("gate");
        proxy.say(&call(1, "pay", json!({ "wait": gate })));
        stage.wait_for_effects(1);
        let id = calls(&server)[0]["tool_call_id"].as_str().expect("an id").to_owned();
        // Ends early only where the lease does.
        let path = format!("{}/decision?wait_ms=2500", recibo_tests::api::call_path("r", &id));
        assert_eq!(server.api.get(&path).str("state"), status, "{words:?}");
        std::fs::write(&gate, "").expect("a file");
        assert!(receipt(&proxy.hear_json()).is_some());
        proxy.ask(&request(2, "ping", json!({})));
        proxy.end();
        assert_eq!(outcomes(&server), ["1 ok -"]);
    }
}

/// The host may take its time over a question of the server.
#[test]
fn what_the_server_asked_for_continues_the_call_within_its_lease_only() {
    let stage = Stage::new();
    let server = Server::start(&stage.data());
    let mut proxy = stage.start(&["--lease", "2s"]);
    let line = r#"{"jsonrpc":"2.0","id":@ID@,"result":{"resultType":"input_required",
        "requestState":"s","inputRequests":{}}}"#
        .replace("\n        ", "");
    let charge = |id: u64, state: Option<&str>| {
        let params = json!({"name": "charge", "arguments": {"say": [line]}, "requestState": state});
        request(id, "tools/call", params)
    };
    assert_eq!(proxy.ask(&charge(1, None))["result"]["requestState"], "s");
    assert_eq!(proxy.ask(&charge(2, Some("s")))["result"]["requestState"], "s");
    assert_eq!(stage.effects().len(), 2, "the second one belongs to the first");
    let id = calls(&server)[0]["tool_call_id"].as_str().expect("an id").to_owned();
    let path = format!("{}/decision?wait_ms=10000", recibo_tests::api::call_path("r", &id));
    assert_eq!(server.api.get(&path).str("state"), "unknown");
    // Now the ledger decides, as of any call that does the same.
    let refused = proxy.ask(&charge(3, Some("s")));
    assert!(text(&refused).contains("nobody knows"), "{refused}");
    assert_eq!(stage.effects().len(), 2);
}

/// What was said to nobody was not said.
#[test]
fn a_late_success_is_not_told_to_a_host_that_has_cancelled() {
    let stage = Stage::new();
    let server = Server::start(&stage.data());
    let (relay, mut proxy) = behind_relay(&stage, &server);
    let gate = stage.path("gate");
    let charge = |id: u64| call(id, "charge", json!({ "wait": gate }));
    proxy.say(&charge(1));
    stage.wait_for_effects(1);
    cancel(&mut proxy, 1);
    std::fs::write(&gate, "").expect("a file");
    assert!(receipt(&proxy.hear_json()).is_some());
    relay.hold(true);
    proxy.say(&charge(2));
    cancel(&mut proxy, 2);
    assert_eq!(proxy.ask(&request(3, "ping", json!({})))["id"], 3);
    relay.hold(false);
    let fourth = proxy.ask(&charge(4));
    assert_eq!(fourth["id"], 4, "nobody waits for the second one: {fourth}");
    assert!(text(&fourth).contains("has succeeded in the meantime"), "{fourth}");
    assert_eq!(stage.effects().len(), 1);
    assert!(receipt(&proxy.ask(&charge(5))).is_some());
}

/// A host that gives up on a call may start its server anew.
#[test]
fn a_server_that_the_host_starts_anew_stays_in_the_hosts_run() {
    let stage = Stage::new();
    let server = Server::start(&stage.data());
    let charge = |id: u64| call(id, "charge", json!({"wait": stage.path("never")}));
    let mut proxy = stage.start_for_run(None, "last");
    proxy.say(&charge(1));
    stage.wait_for_effects(1);
    proxy.end();
    let mut proxy = stage.start_for_run(None, "last");
    assert!(text(&proxy.ask(&charge(1))).contains("nobody knows"));
    proxy.end();
    // Another server's tool of the same name is another tool.
    let mut other = stage.start_for_run(None, "first");
    other.say(&charge(1));
    stage.wait_for_effects(2);
    drop(server);
}
