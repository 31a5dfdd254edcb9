//! How sessions and calls end, over the real binary: batches, a ledger that is down, time limits,
//! refusals, signals, hosts and servers that go.

use std::process::Command;

use recibo_adapter::now_ms;
use recibo_tests::binary::Server;
use serde_json::{Value, json};

use super::proxy::{Stage, call, calls, outcome, receipt, request, result};
use super::relay::behind_relay;

fn sorted(server: &Server) -> Vec<String> {
    let mut outcomes: Vec<String> = calls(server).iter().map(outcome).collect();
    outcomes.sort();
    outcomes
}

#[test]
fn a_batch_gets_its_receipts_and_its_refusals() {
    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    let line = format!(
        "[{},{},{},{}]",
        call(1, "echo", json!({"a": 1})),
        call(1, "echo", json!({"a": 2})),
        request(2, "ping", json!({})),
        call("x", "echo", json!({"how": "error"})),
    );
    proxy.say(&line);
    let mut heard: Vec<Value> = (0..4).map(|_| proxy.hear_json()).collect();
    heard.sort_by_key(|answer| answer.to_string());
    let refusal = heard.iter().find(|answer| answer.is_array()).expect("one refusal");
    assert_eq!(refusal[0]["id"], 1);
    assert_eq!(heard.iter().filter(|answer| receipt(answer).is_some()).count(), 1);
    proxy.end();
    assert_eq!(stage.effects().len(), 2);
    let mut outcomes = stage.outcomes();
    outcomes.sort();
    assert_eq!(outcomes, ["1 ok -", "s:x unknown tool_error"]);
}

#[test]
fn the_same_call_twice_in_a_batch_runs_once_and_holds_nobody_up() {
    let stage = Stage::new();
    let mut proxy = stage.start(&["--wait", "1h"]);
    let both = [1, 2].map(|id| call(id, "pay", json!({"a": 1})));
    proxy.say(&format!("[{}]", both.join(",")));
    let mut heard = [proxy.hear_json(), proxy.hear_json()];
    heard.sort_by_key(|answer| !answer.is_array());
    let [refusal, answer] = heard;
    let text = refusal[0]["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("Not run") && text.contains(":1, is under way"), "{text}");
    assert!(receipt(&answer).is_some(), "{answer}");
    proxy.end();
    assert_eq!(stage.effects().len(), 1);
}

#[test]
fn without_a_ledger_calls_are_refused_or_pass_as_the_user_wants() {
    let stage = Stage::new();
    let key = stage.path("key");
    std::fs::write(&key, "rk_none").expect("a file");
    for fail_open in [false, true] {
        // Nobody listens there.
        let mut words = vec!["--url", "http://127.0.0.1:9", "--api-key-file"];
        words.push(key.to_str().expect("a path of text"));
        words.extend(fail_open.then_some("--fail-open"));
        let mut proxy = stage.start_bare(&words, "last");
        let tools = proxy.ask(&request(1, "tools/list", json!({})));
        assert!(tools["result"]["tools"].is_array(), "{tools}");
        let answer = proxy.ask(&call(2, "pay", json!({})));
        assert_eq!(answer["result"]["isError"] == true, !fail_open, "{answer}");
        assert_eq!(receipt(&answer), None);
        let ended = proxy.end();
        let is_told = ended.stderr.contains("1 tool calls passed unrecorded");
        assert_eq!(is_told, fail_open, "{}", ended.stderr);
        assert_eq!(stage.effects().len(), usize::from(fail_open));
    }
}

#[test]
fn a_late_answer_is_recorded_and_only_repeatable_tools_are_told_to_stop() {
    let stage = Stage::new();
    let server = Server::start(&stage.data());
    server.api.policy(json!([{"match": "read", "effect": "read_only"}]));
    let mut proxy = stage.start(&["--timeout", "1s"]);
    let gate = stage.path("gate");
    for (id, tool) in [(1, "pay"), (2, "read")] {
        proxy.say(&call(id, tool, json!({ "wait": gate })));
    }
    for _ in 0..2 {
        let answer = proxy.hear_json();
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
    assert_eq!(sorted(&server), ["1 timeout timeout", "2 timeout timeout"]);
    std::fs::write(gate, "").expect("a file");
    let deadline_ms = now_ms() + 60_000;
    while sorted(&server) != ["1 ok -", "2 ok -"] {
        proxy.ask(&request(3, "ping", json!({})));
        assert!(now_ms() < deadline_ms, "{:?}", sorted(&server));
    }
    let ended = proxy.end();
    assert_eq!(ended.rest, Vec::<String>::new(), "the host has its answers");
    for call in calls(&server) {
        let record = &call["attempts"][0];
        assert_eq!(record["status"], "ok", "{record}");
        assert_eq!(record["late"], true);
    }
    // The lenient server writes down what it is told to cancel.
    let cancelled = std::fs::read_to_string(stage.path("effects.cancelled")).unwrap_or_default();
    assert_eq!(cancelled, "2\n");
}

#[test]
fn a_cancelled_call_is_recorded_at_once() {
    let stage = Stage::new();
    let server = Server::start(&stage.data());
    let mut proxy = stage.start(&[]);
    let gate = stage.path("gate");
    proxy.say(&call(1, "pay", json!({ "wait": gate })));
    stage.wait_for_effects(1);
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    proxy.say(&cancel.to_string());
    let all = calls(&server);
    let id = all[0]["tool_call_id"].as_str().expect("an id");
    let path = format!("{}/decision?wait_ms=20000", recibo_tests::api::call_path("r", id));
    assert_eq!(server.api.get(&path).str("state"), "unknown");
    assert_eq!(outcome(&calls(&server)[0]), "1 unknown cancelled");
    std::fs::write(gate, "").expect("a file");
    assert!(receipt(&proxy.hear_json()).is_some());
    proxy.end();
    assert_eq!(outcome(&calls(&server)[0]), "1 ok -");
}

#[test]
fn a_host_that_goes_and_a_server_that_goes_are_told_apart() {
    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    proxy.say(&call(1, "pay", json!({"how": "die"})));
    let ended = proxy.end();
    assert_eq!(ended.code, Some(7));
    // The host may have closed its side before the server went.
    let outcomes = stage.outcomes();
    assert!(["1 unknown server_gone", "1 unknown host_gone"].contains(&&*outcomes[0]));

    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    proxy.say(&call(1, "pay", json!({"how": "die"})));
    // Nothing comes any more; the host has not closed its side.
    assert!(proxy.ends_silently());
    assert_eq!(stage.outcomes(), ["1 unknown server_gone"]);

    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    proxy.say(&call(1, "pay", json!({"wait": stage.path("never")})));
    stage.wait_for_effects(1);
    assert_eq!(proxy.end().code, Some(0));
    assert_eq!(stage.outcomes(), ["1 unknown host_gone"]);
}

#[test]
fn a_signal_ends_the_server_and_leaves_a_record() {
    for signal in ["-TERM", "-INT"] {
        let stage = Stage::new();
        let mut proxy = stage.start(&[]);
        proxy.say(&call(1, "pay", json!({"wait": stage.path("never")})));
        stage.wait_for_effects(1);
        let pid = proxy.pid().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().expect("kill runs").success());
        assert!(proxy.ends_silently());
        assert_eq!(stage.outcomes(), ["1 unknown host_gone"], "{signal}");
    }
}

#[test]
fn a_service_elsewhere_is_named_by_its_url() {
    let stage = Stage::new();
    let server = Server::start(&stage.data());
    let key = stage.path("key");
    std::fs::write(&key, &server.api.key).expect("a file");
    let words = ["--url", &server.api.url, "--api-key-file", key.to_str().expect("text")];
    let mut proxy = stage.start_bare(&words, "last");
    let answer = proxy.ask(&call(1, "pay", json!({})));
    let token = receipt(&answer).expect("a receipt");
    let verdict = server.api.post("/v1/receipts:verify", &json!({ "token": token })).expect(200);
    assert_eq!(verdict.str("verdict"), "valid");
    proxy.end();
}

#[test]
fn what_a_server_says_of_its_tools_counts_only_if_it_is_believed() {
    for (words, effect) in [(&[][..], "opaque"), (&["--trust-annotations"], "read_only")] {
        let stage = Stage::new();
        let mut proxy = stage.start(words);
        proxy.ask(&request(1, "tools/list", json!({})));
        proxy.ask(&call(2, "read", json!({"how": "error"})));
        proxy.end();
        let record = stage.calls()[0]["attempts"][0].clone();
        assert_eq!(record["effect"], effect);
        let status = if effect == "opaque" { "unknown" } else { "retryable_error" };
        assert_eq!(record["status"], status);
    }
}

#[test]
fn a_refusal_says_what_is_known() {
    let stage = Stage::new();
    let first = |words: &[&str], how: &str| {
        let mut proxy = stage.start(words);
        let answer = proxy.ask(&call(1, "pay", json!({ "how": how })));
        proxy.end();
        answer.to_string()
    };
    let words = ["--session", "s"];
    assert!(!first(&words, "error").contains("not run"));
    let stopped = first(&words, "error");
    assert!(stopped.contains("not run now") && stopped.contains("may or may not"), "{stopped}");
    let other = first(&words, "refuse");
    assert!(other.contains("not run") && other.contains("input_mismatch"), "{other}");
    assert_eq!(stage.effects().len(), 1);
}

#[test]
fn a_server_that_reads_nothing_gets_no_call_after_its_lease() {
    let stage = Stage::new();
    let server = Server::start(&stage.data());
    let mut proxy = stage.start(&["--lease", "1s"]);
    // The server does not read while it says something that nobody hears.
    let gate = stage.path("gate");
    proxy.say(&call(1, "pay", json!({"block": gate})));
    stage.wait_for_effects(1);
    let big = "x".repeat(300_000);
    proxy.say(&call(2, "pay", json!({ "text": big })));
    proxy.say(&call(3, "pay", json!({})));
    let answer = proxy.hear_json();
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(3), &json!(true)));
    std::fs::write(gate, "").expect("a file");
    proxy.end();
    let outcomes = sorted(&server);
    assert_eq!(outcomes[0], "1 ok -");
    assert_eq!(outcomes[1], "2 unknown sent_in_part");
    assert!(outcomes[2].starts_with("3 retryable_error "), "{outcomes:?}");
    assert_eq!(stage.effects().len(), 1);
}

#[test]
fn a_structured_result_is_hashed_whole() {
    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    let whole = r#"{"content":[{"text":"a","type":"text"}],"structuredContent":{"x":1}}"#;
    proxy.ask(&call(1, "work", json!({"say": [result(whole)]})));
    proxy.end();
    let hash = recibo_core::hash::OutputHash::of_text(whole).to_string();
    assert_eq!(stage.calls()[0]["attempts"][0]["output_hash"], hash);
}

#[test]
fn a_session_that_ends_leaves_no_key_behind() {
    let stage = Stage::new();
    let server = Server::start(&stage.data());
    let level = |token: &str| {
        let answer = server.api.post("/v1/receipts:verify", &json!({"token": token}));
        answer.expect(200).at("level").clone()
    };
    let mut proxy = stage.start(&[]);
    let answer = proxy.ask(&call(1, "echo", json!({})));
    let token = receipt(&answer).expect("a receipt").to_owned();
    assert_eq!(level(&token), "signature");
    proxy.end();
    // A service holds a limited number of keys.
    assert_eq!(level(&token), "recorded");
}

#[test]
fn a_ledger_that_is_open_elsewhere_for_a_moment_is_waited_for() {
    let stage = Stage::new();
    let mut first = stage.start(&["--alone"]);
    assert!(receipt(&first.ask(&call(1, "echo", json!({"a": 1})))).is_some());
    // A host that starts its server anew does not wait for the end of the old one.
    let mut second = stage.start(&["--alone"]);
    second.say(&call(1, "echo", json!({"a": 2})));
    first.end();
    assert!(receipt(&second.hear_json()).is_some());
    let ended = second.end();
    assert!(!ended.stderr.contains("another process"), "{}", ended.stderr);
}

#[test]
fn a_ledger_that_another_process_keeps_holds_no_session_up() {
    let stage = Stage::new();
    let mut first = stage.start(&["--alone"]);
    assert!(receipt(&first.ask(&call(1, "echo", json!({"a": 1})))).is_some());
    let mut second = stage.start(&[]);
    // The first one is there all the time.
    assert!(second.ask(&request(1, "tools/list", json!({})))["result"]["tools"].is_array());
    first.end();
    assert!(receipt(&second.ask(&call(2, "echo", json!({"a": 2})))).is_some());
    let ended = second.end();
    assert!(ended.stderr.contains("not there yet"), "{}", ended.stderr);
}

#[test]
fn a_claim_whose_answer_is_lost_comes_again_as_the_same_claim() {
    let stage = Stage::new();
    let server = Server::start(&stage.data());
    let (relay, mut proxy) = behind_relay(&stage, &server);
    // Its scope is open now.
    assert!(receipt(&proxy.ask(&call(1, "pay", json!({"n": 1})))).is_some());
    relay.lose(1);
    // Another claim would wait for the lease of the first one.
    assert!(receipt(&proxy.ask(&call(2, "pay", json!({"n": 2})))).is_some());
    assert_eq!(relay.lost(), 1);
    proxy.end();
    assert_eq!(sorted(&server), ["1 ok -", "2 ok -"]);
    assert_eq!(stage.effects().len(), 2);
}

#[test]
fn a_service_that_hangs_and_a_host_that_cancels_hold_nothing_else_up() {
    let stage = Stage::new();
    let server = Server::start(&stage.data());
    let (relay, mut proxy) = behind_relay(&stage, &server);
    assert!(receipt(&proxy.ask(&call(1, "pay", json!({"n": 1})))).is_some());
    relay.hold(true);
    for id in 2..6 {
        proxy.say(&call(id, "pay", json!({ "n": id })));
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                               "params": {"requestId": id}});
        proxy.say(&cancelled.to_string());
        assert_eq!(proxy.ask(&request(id + 100, "ping", json!({})))["id"], id + 100);
    }
    relay.hold(false);
    assert!(receipt(&proxy.ask(&call(9, "pay", json!({"n": 9})))).is_some());
    proxy.end();
    // The cancelled ones were never sent.
    assert_eq!(stage.effects().len(), 2);
    let unsent = |outcome: &String| outcome.ends_with("retryable_error cancelled");
    let outcomes = sorted(&server);
    assert_eq!(outcomes.len(), 6, "{outcomes:?}");
    assert!(outcomes[1..outcomes.len() - 1].iter().all(unsent), "{outcomes:?}");
}

#[test]
fn parallel_calls_find_out_once_that_the_service_is_down() {
    let stage = Stage::new();
    let key = stage.path("key");
    std::fs::write(&key, "rk_none").expect("a file");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        // Takes connections and says nothing.
        for stream in listener.incoming() {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            drop(stream);
        }
    });
    let words = ["--url", &url, "--api-key-file", key.to_str().expect("text")];
    let mut proxy = stage.start_bare(&words, "last");
    for id in 0..20 {
        proxy.say(&call(id, "pay", json!({ "n": id })));
    }
    for _ in 0..20 {
        assert_eq!(proxy.hear_json()["result"]["isError"], true);
    }
    let asked = asked.load(std::sync::atomic::Ordering::SeqCst);
    // A few tries, and not as many for each call.
    assert!(asked <= 30, "{asked}");
    proxy.end();
    assert!(stage.effects().is_empty());
}
