//! Listings: pages and rows.

use recibo_tests::service::Service;
use serde_json::{Value, json};

const CALLS: usize = 7;

fn with_calls() -> Service {
    let service = Service::start();
    let scope = service.api.scope();
    for number in 0..CALLS {
        let call = format!("c{number}");
        service.api.claim("r", &call, &scope, "k", json!({"input": number})).expect(201);
    }
    // Another tenant's calls are in no listing.
    let other = service.api_as("admin", "other");
    other.claim("r", "theirs", &other.scope(), "k", json!({})).expect(201);
    service
}

fn ids(calls: &[Value]) -> Vec<&str> {
    calls.iter().map(|call| call["tool_call_id"].as_str().expect("an id")).collect()
}

#[test]
fn rows_end_with_a_line_that_says_so() {
    let service = with_calls();
    for path in ["/v1/calls", "/v1/runs/r/calls", "/v1/calls?state=in_flight"] {
        let accept = [("accept", "application/json;q=0.5, application/x-ndjson")];
        let reply = service.api.send("GET", path, &accept, b"").expect("an answer").expect(200);
        assert_eq!(reply.headers["content-type"], "application/x-ndjson");
        let mut rows: Vec<Value> = reply
            .text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line of JSON"))
            .collect();
        let end = rows.pop().expect("a last line");
        let last_seq = service.store().size() - 1;
        assert_eq!(end, json!({"_end": true, "count": CALLS, "last_seq": last_seq}), "{path}");
        assert_eq!(ids(&rows), ["c0", "c1", "c2", "c3", "c4", "c5", "c6"], "{path}");
        let page = service.api.get(path).expect(200);
        assert_eq!(page.at("calls"), &Value::Array(rows), "the rows of the page");
    }
    let empty =
        service.api.send("GET", "/v1/calls?state=ok", &[("accept", "application/x-ndjson")], b"");
    assert!(empty.expect("an answer").text.starts_with(r#"{"_end":true,"count":0,"#));
    let missing =
        service.api.send("GET", "/v1/runs/q/calls", &[("accept", "application/x-ndjson")], b"");
    assert_eq!(missing.expect("an answer").problem(), (404, "run_not_found"));
}

#[test]
fn pages_follow_each_other_while_writes_go_on() {
    let service = with_calls();
    let scope = service.api.scope();
    for path in ["/v1/calls?page_size=3", "/v1/runs/r/calls?page_size=3"] {
        let (mut seen, mut next) = (Vec::new(), path.to_owned());
        loop {
            let page = service.api.get(&next).expect(200);
            seen.extend(
                ids(page.at("calls").as_array().expect("calls")).into_iter().map(str::to_owned),
            );
            let id = format!("new{}{}", seen.len(), path.len());
            service.api.claim("q", &id, &scope, "k", json!({})).expect(201);
            match page.at("next_page_token").as_str() {
                Some(token) => next = format!("{path}&page_token={token}"),
                None => break,
            }
        }
        assert_eq!(seen[..CALLS], ["c0", "c1", "c2", "c3", "c4", "c5", "c6"], "{path}");
    }
}
