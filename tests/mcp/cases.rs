//! What public reports of hosts, gateways and SDKs did to the proxy, over the real binary. The
//! numbers are those of the reports.

use recibo_tests::binary::Server;
use serde_json::{Value, json};

use super::proxy::{Proxy, Stage, call, outcome, receipt, request, result};

/// Says lines that the server must never see, each followed by a call that must pass; gives
/// what was answered to the last one.
#[track_caller]
fn refused(line: &str, code: i64) {
    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    proxy.say(line);
    if code != 0 {
        let answer = proxy.hear_json();
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    let after = proxy.ask(&call("after", "echo", json!({})));
    assert!(receipt(&after).is_some(), "{line}: {after}");
    let ended = proxy.end();
    assert!(ended.stderr.contains("not passed on"), "{line}: {}", ended.stderr);
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.rest, Vec::<String>::new(), "{line}");
    let effects = stage.effects();
    assert_eq!(effects.len(), 1, "{line}: {effects:?}");
    assert_eq!(stage.outcomes(), ["s:after ok -"], "{line}");
}

const PAY: &str = r#""params":{"name":"pay","arguments":{"amount":1}}"#;

#[test]
fn m04_numbers_that_json_does_not_have_are_not_passed_on() {
    refused(&call(1, "pay", json!({"amount": 77})).replace("77", "NaN"), -32700);
    let meta = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"x":Infinity},"name":"pay"}}"#;
    refused(meta, -32700);
}

#[test]
fn m05_members_in_another_case_or_twice_are_not_passed_on() {
    for line in [
        format!(r#"{{"jsonrpc":"2.0","id":1,"Method":"tools/call",{PAY}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call",{PAY}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call",{PAY}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"TOOLS/CALL",{PAY}}}"#),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","Name":"pay"}}"#
            .into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["pay",{}]}"#.into(),
    ] {
        refused(&line, -32600);
    }
}

#[test]
fn m06_calls_of_a_batch_without_an_id_are_dropped() {
    let line = format!(r#"{{"jsonrpc":"2.0","method":"tools/call",{PAY}}}"#);
    refused(&line, 0);
    refused(&format!("[{line}]"), 0);
    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    let nested = call(8, "pay", json!({}));
    proxy.say(&format!("[{line},{},[{nested}],7]", call(2, "echo", json!({"a": 1}))));
    let errors = proxy.hear_json();
    let answer = proxy.hear_json();
    let (errors, answer) = if errors.is_array() { (errors, answer) } else { (answer, errors) };
    assert_eq!(errors.as_array().map(Vec::len), Some(2), "{errors}");
    assert!(receipt(&answer).is_some(), "{answer}");
    proxy.end();
    assert_eq!(stage.effects().len(), 1);
    assert_eq!(stage.outcomes(), ["2 ok -"]);
}

#[test]
fn m07_two_messages_in_a_line_are_not_passed_on() {
    let ping = request(1, "ping", json!({}));
    refused(&format!("{ping} {}", call(2, "pay", json!({}))), -32700);
    // Python's text streams end a line at a carriage return.
    let inner = call(2, "pay", json!({}));
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}"#, '\r');
    refused(&format!("{line}{inner}\r}}"), -32700);
}

#[test]
fn m07_other_framings_are_told_once_and_end_the_session() {
    let pay = call(1, "pay", json!({}));
    let (head, tail) = pay.split_at(20);
    for text in [
        format!("Content-Length: {}\r\n\r\n{pay}", pay.len()),
        format!("content-length:{}\n\n{pay}\n", pay.len()),
        format!("{head}\n{tail}\n{pay}\n"),
    ] {
        let stage = Stage::new();
        let mut proxy = stage.start(&[]);
        proxy.write(text.as_bytes());
        assert_eq!(proxy.hear_json()["error"]["code"], -32700, "{text}");
        let ended = proxy.end();
        assert_eq!(ended.code, Some(1), "{text}");
        assert_eq!(ended.stderr.matches("the session ends").count(), 1, "{}", ended.stderr);
        assert_eq!(stage.effects(), Vec::<Value>::new(), "{text}");
    }
}

#[test]
fn blank_lines_and_carriage_returns_at_line_ends_are_no_errors() {
    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    proxy.write(b"\r\n\n");
    let answer = proxy.ask(&format!("{}\r", call(1, "echo", json!({}))));
    assert!(receipt(&answer).is_some());
    // One line that is cut off does not end a session.
    assert_eq!(proxy.ask("{\"jsonrpc\":")["error"]["code"], -32700);
    let other = request(2, "prompts/get", json!({"name": "a", "Name": "b"}));
    assert_eq!(proxy.ask(&other)["result"], json!({}));
    assert_eq!(proxy.end().code, Some(0));
}

#[test]
fn m17_arguments_without_a_canonical_form_are_refused_with_the_path() {
    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    for (arguments, path) in [
        (r#"{"a":{"b":1,"b":2}}"#, "/a/b"),
        (r#"{"n":[1e999]}"#, "/n/0"),
        (r#"{"t":"\ud835"}"#, "/t"),
    ] {
        let line = call(1, "pay", json!("ARGUMENTS")).replace("\"ARGUMENTS\"", arguments);
        let answer = proxy.ask(&line);
        assert_eq!(answer["result"]["isError"], true);
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
        assert!(text.contains(path), "{text}");
    }
    let ended = proxy.end();
    assert!(ended.stderr.contains("not passed on") && !ended.stderr.contains("/a/b"));
    assert!(stage.effects().is_empty() && stage.calls().is_empty());
}

/// A call whose server says these lines, and what the host and the ledger have of it.
fn said(lines: &[String], then: impl FnOnce(&mut Proxy)) -> (Vec<String>, Vec<Value>) {
    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    proxy.say(&call(1, "work", json!({ "say": lines })));
    then(&mut proxy);
    stage.wait_for_effects(1);
    let mut heard = Vec::new();
    // The answer to a last request is behind all others.
    proxy.say(&request("last", "ping", json!({})));
    loop {
        let line = proxy.hear();
        if line.contains("\"last\"") {
            break;
        }
        heard.push(line);
    }
    proxy.end();
    (heard, stage.calls())
}

fn bare(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
}

#[test]
fn m01_a_task_is_followed_to_its_end_in_both_shapes() {
    let done = r#"{"content":[{"type":"text","text":"paid"}]}"#;
    let bad = r#"{"content":[],"isError":true}"#;
    let flat = |rest: &str| format!(r#"{{"resultType":"task","taskId":TASK,{rest}}}"#);
    let accepted = flat(r#""status":"working""#);
    let nested = r#"{"task":{"taskId":TASK,"status":"working"}}"#.to_owned();
    let both = flat(r#""status":"working","task":{"taskId":TASK,"status":"working"}"#);
    for accepted in [accepted, nested, both] {
        for (state, expected) in [
            (format!(r#"{{"status":"completed","result":{done}}}"#), "ok -"),
            (format!(r#"{{"status":"completed","result":{bad}}}"#), "unknown tool_error"),
            (
                r#"{"status":"failed","error":{"code":-32602,"message":"m"}}"#.into(),
                "terminal_error rpc_32602",
            ),
            (
                r#"{"status":"failed","error":{"code":-32603,"message":"m"}}"#.into(),
                "unknown rpc_32603",
            ),
            (r#"{"status":"cancelled"}"#.into(), "unknown cancelled"),
        ] {
            // The server's answer to `tasks/get` is the id of the task.
            let task = serde_json::to_string(&state).expect("a string");
            let line = accepted.replace("TASK", &task);
            let (heard, calls) = said(&[result(&line)], |proxy| {
                assert_eq!(proxy.hear(), bare(&line));
                proxy.say(&request(2, "tasks/get", json!({ "taskId": state })));
            });
            assert_eq!(outcome(&calls[0]), format!("1 {expected}"), "{line} {state}");
            let answer: Value = heard[0].parse().expect("JSON");
            let inner = json!({"result": answer["result"]["result"]});
            assert_eq!(receipt(&inner).is_some(), expected == "ok -", "{answer}");
        }
    }
}

#[test]
fn m01_a_notice_of_the_server_ends_a_task_too() {
    for method in ["notifications/tasks", "notifications/tasks/status"] {
        let accepted = result(r#"{"resultType":"task","taskId":"tk","status":"working"}"#);
        let notice = format!(
            r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"taskId":"tk","status":"completed","result":{{"content":[]}}}}}}"#
        );
        let (heard, calls) = said(&[accepted, notice], |_| {});
        assert_eq!(outcome(&calls[0]), "1 ok -");
        assert!(heard[1].contains(r#""result":{"content":[{"type":"text","text":"[receipt: "#));
    }
}

#[test]
fn m02_a_result_of_an_unknown_type_is_no_success() {
    let line = r#"{"resultType":"perhaps","content":[{"type":"text","text":"a"}]}"#;
    let (heard, calls) = said(&[result(line)], |_| {});
    assert_eq!(heard, [bare(line)]);
    assert_eq!(outcome(&calls[0]), "1 unknown unknown_result_type");
}

#[test]
fn m03_an_id_that_was_answered_names_a_new_call() {
    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    for file in ["a", "b", "c", "a"] {
        let answer = proxy.ask(&call(1, "read_file", json!({ "path": file })));
        assert!(receipt(&answer).is_some(), "{answer}");
    }
    for _ in 0..2 {
        proxy.ask(&request(0, "initialize", json!({})));
    }
    assert!(receipt(&proxy.ask(&call(1, "read_file", json!({"path": "d"})))).is_some());
    proxy.end();
    assert_eq!(stage.effects().len(), 5);
    assert_eq!(stage.outcomes(), ["1 ok -", "1#2 ok -", "1#3 ok -", "1#4 ok -", "1 ok -"]);
    // A session with a name says that an id means a call.
    let stage = Stage::new();
    let mut proxy = stage.start(&["--session", "s"]);
    assert!(receipt(&proxy.ask(&call(1, "read_file", json!({})))).is_some());
    let again = proxy.ask(&call(1, "read_file", json!({})));
    assert_eq!(again["result"]["isError"], true, "{again}");
    proxy.end();
    assert_eq!(stage.effects().len(), 1);
}

#[test]
fn a_second_initialize_begins_another_run_unless_the_run_was_named() {
    let charge = |id: u64| call(id, "charge", json!({"cents": 5}));
    for (variable, expected) in [(None, ["", ".2", ".3"]), (Some("mine"), ["", "", ""])] {
        let stage = Stage::new();
        let server = Server::start(&stage.data());
        let mut proxy = stage.start_for_run(variable, "last");
        for id in 1..=3 {
            proxy.ask(&request(0, "initialize", json!({})));
            assert!(receipt(&proxy.ask(&charge(id))).is_some());
        }
        proxy.end();
        let page = server.api.get("/v1/calls").expect(200);
        let runs: Vec<_> = page.json["calls"].as_array().expect("calls").iter().collect();
        let runs: Vec<_> =
            runs.iter().map(|call| call["run_id"].as_str().expect("a run")).collect();
        let first = runs[0];
        assert_eq!(runs, expected.map(|end| format!("{first}{end}")));
        assert!(variable.is_none_or(|run| run == first), "{runs:?}");
    }
}

#[test]
fn m03_an_id_in_flight_is_refused_whatever_asks() {
    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    let gate = stage.path("gate");
    proxy.say(&call(1, "pay", json!({ "wait": gate })));
    let again = proxy.ask(&call(1, "pay", json!({})));
    assert_eq!(again["result"]["isError"], true, "{again}");
    assert_eq!(proxy.ask(&request(1, "ping", json!({})))["error"]["code"], -32600);
    std::fs::write(gate, "").expect("a file");
    assert!(receipt(&proxy.hear_json()).is_some());
    proxy.end();
    assert_eq!(stage.effects().len(), 1);
}

#[test]
fn m08_an_unreadable_answer_ends_its_call_at_once() {
    for line in [
        result(r#"{"content":[],"structuredContent":{"x":NaN}}"#),
        result(r#"{"content":[],"isError":true,"isError":false}"#),
        result("17"),
        format!("[{}]", result(r#"{"x":-Infinity}"#)),
    ] {
        let (heard, calls) = said(std::slice::from_ref(&line), |_| {});
        assert_eq!(heard, [line.replace("@ID@", "1")]);
        assert_eq!(outcome(&calls[0]), "1 unknown unreadable_answer", "{line}");
    }
}

#[test]
fn m09_a_second_answer_is_not_passed_on() {
    let text =
        |text: &str| result(&format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#));
    let notice = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"later"}}"#;
    let lines = [text("one"), text("two"), notice.into(), format!("[{}]", text("three"))];
    let (heard, calls) = said(&lines, |_| {});
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(heard[0].contains("one") && heard[0].contains("[receipt: "));
    assert_eq!(heard[1], notice);
    assert_eq!(outcome(&calls[0]), "1 ok -");
}

#[test]
fn an_answer_with_an_id_of_the_other_type_ends_its_call() {
    let line = r#"{"jsonrpc":"2.0","id":"1","result":{"content":[]}}"#;
    let (heard, calls) = said(&[line.into()], |_| {});
    assert!(
        heard[0].starts_with(r#"{"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text""#)
    );
    assert_eq!(outcome(&calls[0]), "1 ok -");
}

#[test]
fn an_answer_to_a_ping_is_no_success_of_a_call_with_its_id() {
    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    let ping = request(1, "ping", json!({}));
    // A server that answers a ping never, and something else twice.
    let line = r#"{"jsonrpc":"2.0","id":9,"result":{}}"#;
    proxy.say(&request(9, "notifications/none", json!({})));
    let answer = proxy.ask(&call(9, "pay", json!({ "say": [line] })));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    proxy.ask(&ping);
    assert!(receipt(&proxy.ask(&call(1, "pay", json!({})))).is_some());
    proxy.end();
    assert_eq!(stage.outcomes(), ["1 ok -"]);
}

#[test]
fn m11_a_long_tool_name_runs_with_a_prefix_too() {
    let stage = Stage::new();
    let mut proxy = stage.start(&["--tool-prefix", "notes/"]);
    // As long as MCP allows.
    let name = "x".repeat(128);
    assert!(receipt(&proxy.ask(&call(1, &name, json!({})))).is_some());
    proxy.end();
    assert_eq!(stage.calls()[0]["tool"], format!("notes/{name}"));
}

#[test]
fn m11_a_tool_name_that_the_ledger_does_not_take_is_refused_with_the_reason() {
    let stage = Stage::new();
    let mut proxy = stage.start(&["--tool-prefix", "notes/"]);
    let answer = proxy.ask(&call(1, &"x".repeat(260), json!({})));
    let text = answer["result"]["content"][0]["text"].as_str().expect("a text").to_owned();
    assert!(text.contains("tool"), "{text}");
    assert!(text.contains("bytes") || text.contains("1 to"), "{text}");
    proxy.end();
    assert!(stage.effects().is_empty());
}

#[test]
fn m18_receipts_go_where_the_user_wants_them_and_labels_say_who() {
    for (placement, item, meta) in
        [("item", true, false), ("meta", false, true), ("none", false, false)]
    {
        let stage = Stage::new();
        let mut proxy = stage.start(&["--receipt", placement, "--label", "team=blue"]);
        let client = json!({"clientInfo": {"name": "host\u{202e}", "version": "2"}});
        proxy.ask(&request(0, "initialize", client));
        let answer = proxy.ask(&call(1, "pay", json!({})));
        assert_eq!(receipt(&answer).is_some(), item, "{answer}");
        let token = &answer["result"]["_meta"]["recibo/receipt"];
        assert_eq!(token.is_string(), meta, "{answer}");
        proxy.end();
        let record = stage.calls()[0]["attempts"][0].clone();
        assert!(record["token"].is_string());
        if meta {
            assert_eq!(&record["token"], token);
        }
        let labels = json!({"team": "blue", "mcp.client": "host 2", "mcp.server": "lenient 1.0"});
        assert_eq!(record["labels"], labels);
    }
}

#[test]
fn m18_a_client_that_is_named_like_a_credential_fails_no_call() {
    let stage = Stage::new();
    let mut proxy = stage.start(&[]);
    let name = format!("ghp_{}", "a1B2".repeat(9));
    proxy.ask(&request(0, "initialize", json!({"clientInfo": {"name": name}})));
    assert!(receipt(&proxy.ask(&call(1, "pay", json!({})))).is_some());
    proxy.end();
    assert!(!stage.calls()[0].to_string().contains(&name));
}
