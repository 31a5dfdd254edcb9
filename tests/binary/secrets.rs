//! Neither arguments nor results nor keys are left anywhere: not in the data folder, not in a
//! log at trace level, not in an answer to a bad request.

use std::path::Path;

use recibo_tests::binary::{Server, log_file};
use serde_json::json;

/// Found nowhere but where a test puts them.
const IN_ARGUMENTS: &str = "kzq-argument-7f3a";
const IN_RESULT: &str = "kzq-result-91bc";
const IN_BAD: &str = "kzq-refused-55de";

#[test]
fn nothing_secret_is_left_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let server = Server::start_logging(&data, "trace");
    let api = &server.api;
    let scope = api.scope();
    let input = json!({"input": {"password": IN_ARGUMENTS, "n": [IN_ARGUMENTS]}});
    let granted = api.claim("r", "c", &scope, "c1", input).expect(201);
    let result = json!({"rows": [{"secret": IN_RESULT}]});
    let ok = json!({
        "lease_token": granted.at("lease")["token"], "status": "ok", "duration_ms": 1,
        "output": result.to_string(),
    });
    api.report("r", "c", 1, ok).expect(200);
    let shot = json!({
        "run_id": "r", "tool_call_id": "d", "scope_id": scope, "tool": "t", "status": "ok",
        "started_at": "2026-09-13T02:00:00Z", "duration_ms": 1, "input": IN_ARGUMENTS,
        "output": {"value": IN_RESULT},
    });
    let record = api.post("/v1/receipts", &shot).expect(201);
    let verify = json!({"token": record.at("token"), "input": IN_ARGUMENTS, "output": IN_RESULT});
    let mut answers = vec![api.post("/v1/receipts:verify", &verify).expect(200).text];
    answers.extend(bad_requests(&server, &scope));
    assert_eq!(server.stop(), Some(0));

    let admin_key = std::fs::read_to_string(data.join("admin.key")).expect("a key");
    let secret = admin_key.trim_end().rsplit('_').next().expect("a secret part").to_owned();
    let lease_secret = std::fs::read(data.join("lease.key")).expect("a secret");
    for text in [IN_ARGUMENTS, IN_RESULT, IN_BAD] {
        for answer in &answers {
            // The pointer leads the sender, and nobody else, to the fault in the arguments.
            let pointer = format!(r#""pointer":"/input/{text}""#);
            assert!(!answer.replace(&pointer, "").contains(text), "{answer}");
        }
        assert_absent(&data, text.as_bytes());
        assert_absent_in_file(&log_file(&data), text.as_bytes());
    }
    // The keys stand in their own files and nowhere else.
    assert_absent_in_file(&data.join("ledger.redb"), secret.as_bytes());
    assert_absent_in_file(&data.join("ledger.redb"), &lease_secret);
    assert_absent_in_file(&log_file(&data), secret.as_bytes());
    assert_absent_in_file(&log_file(&data), hex(&lease_secret).as_bytes());
    let log = std::fs::read(log_file(&data)).expect("a log");
    assert!(contains(&log, b"receipt generated"), "the log is at debug level at least");
    assert!(contains(&log, record.str("token").as_bytes()));
}

/// Requests that are refused for every kind of reason, with a marker wherever one fits.
fn bad_requests(server: &Server, scope: &str) -> Vec<String> {
    let api = &server.api;
    let mut answers = Vec::new();
    let good = json!({
        "scope_id": scope, "claim_id": "c2", "tool": "t", "input": {}, "effect": "opaque",
        "lease_ms": 1000, "attempt": 1, "operation_key": "k", "message_id": "m",
        "labels": {"a": "b"}, "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    });
    let path = "/v1/runs/r/calls/e/attempts";
    for name in good.as_object().expect("an object").keys() {
        for bad in [json!({ IN_BAD: IN_BAD }), json!([IN_BAD]), json!(format!("{IN_BAD}\n ☀"))] {
            let mut body = good.clone();
            body[name] = bad;
            answers.push(api.post(path, &body).text);
        }
    }
    let mut body = good.clone();
    body[IN_BAD] = json!(IN_BAD);
    answers.push(api.post(path, &body).expect(400).text);
    let headers = [("content-type", "application/json")];
    for raw in [
        format!(r#"{{"input": {{"{IN_BAD}": 1, "{IN_BAD}": 2}}}}"#),
        format!(r#"{{"input": "{IN_BAD}"#),
        format!(r#"{{"input": {IN_BAD}}}"#),
        format!(r#""{IN_BAD}""#),
        format!(r#"{{"scope_id": "x", "claim_id": "{IN_BAD}" "{IN_BAD}"}}"#),
    ] {
        let reply = api.send("POST", path, &headers, raw.as_bytes()).expect("an answer");
        answers.push(reply.expect(400).text);
    }
    for path in [format!("/v1/calls?{IN_BAD}=1"), format!("/v1/calls?state={IN_BAD}")] {
        answers.push(api.get(&path).expect(400).text);
    }
    let stranger = api.with_key(IN_BAD);
    answers.push(stranger.get("/v1/config").expect(401).text);
    let mismatch = json!({"input": {"password": IN_BAD}});
    answers.push(api.claim("r", "c", scope, "c9", mismatch).expect(422).text);
    answers
}

fn assert_absent(folder: &Path, bytes: &[u8]) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        assert_absent_in_file(&entry.expect("an entry").path(), bytes);
    }
}

fn assert_absent_in_file(file: &Path, bytes: &[u8]) {
    let content = std::fs::read(file).expect("a readable file");
    assert!(!contains(&content, bytes), "found in {}", file.display());
}

fn contains(content: &[u8], bytes: &[u8]) -> bool {
    content.windows(bytes.len()).any(|window| window == bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
