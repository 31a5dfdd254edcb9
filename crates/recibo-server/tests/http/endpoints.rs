//! One good path per endpoint.

use recibo_api::Role;
use serde_json::{Value, json};

use crate::harness::{START_MS, Service, claim_body, ok_body, one_shot_body};

#[tokio::test]
async fn a_scope_is_opened_read_and_closed() {
    let service = Service::start().await;
    let body = json!({"label": "night", "ttl_ms": 60_000});
    let opened = service.ask(Role::Adapter, "POST", "/v1/scopes").json(body).send().await;
    let opened = opened.expect(201);
    assert_eq!(opened.header("cache-control"), "no-store");
    assert_eq!(opened.text("state"), "open");
    let path = format!("/v1/scopes/{}", opened.text("scope_id"));
    assert_eq!(service.get(&path).await.expect(200).body(), opened.body());
    for _ in 0..2 {
        let closed = service.ask(Role::Adapter, "DELETE", &path).send().await.expect(204);
        assert!(closed.bytes.is_empty());
    }
    assert_eq!(service.get(&path).await.text("state"), "closed");
}

#[tokio::test]
async fn a_claim_is_granted_once_replayed_and_then_reused() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let path = "/v1/runs/r/calls/t/attempts";
    let claim = |id: &str| {
        let body = claim_body(&scope, id, "read_only");
        service.ask(Role::Adapter, "POST", path).json(body).send()
    };
    let granted = claim("c-1").await.expect(201).body();
    assert_eq!(granted["decision"], "proceed");
    assert_eq!(granted["reason"], "first_attempt");
    assert_eq!(granted["lease"]["duration_ms"], 30_000);
    assert_eq!(granted["twin"], Value::Null);
    service.clock.advance_ms(1_000);
    let replayed = claim("c-1").await.expect(200).body();
    assert_eq!(replayed["replayed"], true);
    assert_eq!(replayed["lease"]["duration_ms"], 29_000);
    assert_eq!(replayed["lease"]["token"], granted["lease"]["token"]);
    let wait = claim("c-2").await.expect(200);
    assert_eq!(wait.text("decision"), "wait");
    assert_eq!(wait.body()["lease"], Value::Null);
    assert_eq!(wait.body()["retry_after_ms"], 29_000);
    assert_eq!(wait.header("retry-after"), "29");
    let lease_token = granted["lease"]["token"].as_str().unwrap();
    let record = service.report("t", ok_body(lease_token)).await.expect(200).body();
    assert_eq!(record["status"], "ok");
    assert_eq!(record["replayed"], false);
    let line = format!("[receipt: {}]", record["token"].as_str().unwrap());
    assert_eq!(record["receipt_line"], line.as_str());
    let again = service.report("t", ok_body(lease_token)).await.expect(200).body();
    assert_eq!(again["replayed"], true);
    let reuse = claim("c-3").await.expect(200).body();
    assert_eq!(reuse["decision"], "reuse");
    assert_eq!(reuse["result_available"], false);
    assert_eq!(reuse["record"]["token"], record["token"]);
}

#[tokio::test]
async fn a_call_is_read_with_its_etag() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let lease_token = service.claim(&scope, "t", "queryable").await;
    let path = "/v1/runs/r/calls/t";
    let open = service.get(path).await.expect(200);
    assert_eq!(open.text("state"), "in_flight");
    let conditional = async |etag: &str| {
        service.ask(Role::Reader, "GET", path).header("if-none-match", etag).send().await
    };
    let etag = open.header("etag").to_owned();
    let same = conditional(&etag).await.expect(304);
    assert_eq!((same.header("etag"), same.bytes.len()), (etag.as_str(), 0));
    conditional(&format!("\"x\", W/{etag}")).await.expect(304);
    conditional("*").await.expect(304);
    service.clock.advance_ms(30_000);
    let expired = conditional(&etag).await.expect(200);
    assert_eq!(expired.text("state"), "unknown");
    assert_ne!(expired.header("etag"), etag);
    service.report("t", ok_body(&lease_token)).await.expect(200);
    assert_eq!(conditional(&etag).await.expect(200).text("state"), "ok");
    let attempt = service.get("/v1/runs/r/calls/t/attempts/1").await.expect(200).body();
    assert_eq!(attempt["late"], true);
    let head = service.ask(Role::Reader, "HEAD", path).send().await.expect(200);
    assert!(head.bytes.is_empty());
}

#[tokio::test]
async fn a_decision_is_given_for_known_and_unknown_calls() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let absent = service.get("/v1/runs/r/calls/t/decision").await.expect(200).body();
    assert_eq!((&absent["decision"], &absent["state"]), (&json!("proceed"), &json!("absent")));
    assert_eq!(absent["attempt"], Value::Null);
    service.claim(&scope, "t", "opaque").await;
    let wait = service.get("/v1/runs/r/calls/t/decision").await.expect(200);
    assert_eq!(wait.text("decision"), "wait");
    assert_eq!(wait.header("retry-after"), "30");
}

#[tokio::test]
async fn a_status_check_settles_an_unknown_attempt() {
    let service = Service::start().await;
    let policy = json!({"tools": [{"match": "crm/*", "effect": "queryable", "settle_ms": 5000}]});
    let path = "/v1/effects/policy";
    let set = service.ask(Role::Operator, "PUT", path).json(policy.clone()).send().await;
    assert_eq!(set.expect(200).body()["tools"][0]["key_window_ms"], Value::Null);
    let read = service.ask(Role::Operator, "GET", path).send().await.expect(200).body();
    assert_eq!(read["tools"][0]["settle_ms"], 5000);
    let scope = service.scope().await;
    service.claim(&scope, "t", "queryable").await;
    service.clock.advance_ms(31_000);
    let check = |answer: &str| {
        let path = "/v1/runs/r/calls/t/attempts/1/status-checks";
        let body = json!({"answer": answer, "source": "crm"});
        service.ask(Role::Reconciler, "POST", path).json(body).send()
    };
    let early = check("not_executed").await.expect(200);
    assert_eq!(early.text("decision"), "check_status");
    assert_eq!(early.body()["retry_after_ms"], 4_000);
    assert_eq!(early.header("retry-after"), "4");
    let settled = check("executed_ok").await.expect(200).body();
    assert_eq!((&settled["state"], &settled["decision"]), (&json!("ok"), &json!("reuse")));
}

#[tokio::test]
async fn an_operator_resolves_what_he_has_read() {
    let service = Service::start().await;
    let scope = service.scope().await;
    service.claim(&scope, "t", "opaque").await;
    service.clock.advance_ms(30_000);
    let etag = service.get("/v1/runs/r/calls/t").await.expect(200).header("etag").to_owned();
    let resolved = service
        .ask(Role::Operator, "POST", "/v1/runs/r/calls/t/resolution")
        .header("if-match", &etag)
        .json(json!({"state": "retryable", "reason": "the provider has no trace of it"}))
        .send()
        .await
        .expect(200);
    assert_eq!(resolved.text("decision"), "proceed");
    assert_ne!(resolved.header("etag"), etag);
}

#[tokio::test]
async fn runs_are_counted_and_paged() {
    let service = Service::start().await;
    let scope = service.scope().await;
    for call in ["a", "b", "c"] {
        service.done(&scope, call).await;
    }
    service.claim(&scope, "d", "opaque").await;
    let run = service.get("/v1/runs/r").await.expect(200).body();
    assert_eq!((&run["calls"], &run["by_state"]["ok"]), (&json!(4), &json!(3)));
    for listing in ["/v1/runs/r/calls", "/v1/calls", "/v1/calls?order=asc"] {
        let join = if listing.contains('?') { '&' } else { '?' };
        let mut seen = Vec::new();
        let mut token = String::new();
        loop {
            let path = format!("{listing}{join}page_size=3{token}");
            let page = service.get(&path).await.expect(200).body();
            let calls = page["calls"].as_array().unwrap();
            seen.extend(calls.iter().map(|c| c["tool_call_id"].as_str().unwrap().to_owned()));
            let Some(next) = page["next_page_token"].as_str() else { break };
            token = format!("&page_token={next}");
        }
        assert_eq!(seen, ["a", "b", "c", "d"], "{listing}");
    }
    let open = service.get("/v1/calls?state=in_flight").await.expect(200).body();
    assert_eq!(open["calls"][0]["tool_call_id"], "d");
    assert_eq!(open["calls"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_receipts_block_lists_the_receipts_of_a_run_or_of_a_scope() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let token = service.done(&scope, "a").await["token"].as_str().unwrap().to_owned();
    service.claim(&scope, "b", "opaque").await;
    let block = service.get("/v1/runs/r/receipts-block").await.expect(200);
    assert_eq!(block.header("content-type"), "text/plain; charset=utf-8");
    let text = format!("---\nTool receipts:\n  crm/lookup: {token}");
    assert_eq!(String::from_utf8(block.bytes).unwrap(), text);
    let path = format!("/v1/runs/r/receipts-block?scope_id={scope}");
    assert_eq!(service.get(&path).await.expect(200).bytes, text.as_bytes());
    service.get("/v1/runs/r/receipts-block?scope_id=sc_other").await.expect(204);
}

#[tokio::test]
async fn a_receipts_block_of_many_pages_is_whole() {
    let service = Service::start().await;
    let (first, second) = (service.scope().await, service.scope().await);
    let mut lines = Vec::new();
    // The first page has nothing of the second scope.
    for (scope, count) in [(&first, 501), (&second, 700)] {
        let shots = (0..count).map(|i| one_shot_body(scope, &format!("{scope}-{i:03}")));
        let body = json!({"receipts": shots.collect::<Vec<_>>()});
        let ask = service.ask(Role::Adapter, "POST", "/v1/receipts:batch").json(body);
        let results = ask.send().await.expect(200).body();
        for result in results["results"].as_array().unwrap() {
            lines.push(format!("\n  mail/send: {}", result["record"]["token"].as_str().unwrap()));
        }
    }
    let block = |lines: &[String]| format!("---\nTool receipts:{}", lines.concat());
    let path = "/v1/runs/r/receipts-block";
    let of = |scope: &str| format!("{path}?scope_id={scope}");
    for (path, lines) in
        [(path.to_owned(), &lines[..]), (of(&first), &lines[..501]), (of(&second), &lines[501..])]
    {
        let reply = service.get(&path).await.expect(200);
        assert_eq!(reply.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(String::from_utf8(reply.bytes).unwrap(), block(lines), "{path}");
    }
    service.get(&of("sc_other")).await.expect(204);
}

#[tokio::test]
async fn a_call_is_found_by_either_key() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let mut body = one_shot_body(&scope, "t");
    body["operation_key"] = json!("order|17:a%2F");
    let record = service.ask(Role::Adapter, "POST", "/v1/receipts").json(body).send().await;
    let key = record.expect(201).text("idempotency_key");
    for key in [key.as_str(), "order%7C17:a%252F"] {
        let found = service.get(&format!("/v1/idempotency/{key}")).await.expect(200).body();
        assert_eq!(found["tool_call_id"], "t");
        assert_eq!(found["decision"], "reuse");
    }
}

#[tokio::test]
async fn a_one_shot_is_recorded_replayed_found_and_verified() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let send = || {
        let body = one_shot_body(&scope, "t");
        service.ask(Role::Adapter, "POST", "/v1/receipts").json(body).send()
    };
    let record = send().await.expect(201);
    assert_eq!(send().await.expect(200).body()["replayed"], true);
    let token = record.text("token");
    let found = service.get(&format!("/v1/receipts/{token}")).await.expect(200);
    assert_eq!(found.text("tool_call_id"), "t");
    let verify = async |body: Value| {
        let ask = service.ask(Role::Reader, "POST", "/v1/receipts:verify").json(body);
        ask.send().await.expect(200).body()
    };
    let valid = verify(json!({"token": token, "output": "sent", "run_id": "r"})).await;
    assert_eq!((&valid["verdict"], &valid["level"]), (&json!("valid"), &json!("signature")));
    let mismatch = verify(json!({"token": token, "output": "not sent"})).await;
    assert_eq!(mismatch["mismatches"], json!(["output"]));
    let forged = format!("zc-receipt-1789264800-{}", "A".repeat(43));
    assert_eq!(verify(json!({"token": forged})).await["verdict"], "forged");
    assert_eq!(verify(json!({"token": "nonsense"})).await["verdict"], "malformed");
    let scope_path = format!("/v1/scopes/{scope}");
    service.ask(Role::Adapter, "DELETE", &scope_path).send().await.expect(204);
    assert_eq!(verify(json!({"token": token})).await["verdict"], "recorded");
}

#[tokio::test]
async fn the_items_of_a_batch_succeed_and_fail_on_their_own() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let mut other = one_shot_body(&scope, "a");
    other["input"] = json!("another");
    let mut secret = one_shot_body(&scope, "b");
    secret["tool"] = json!("AKIAIOSFODNN7EXAMPLE");
    let items = json!({"receipts": [
        one_shot_body(&scope, "a"), {"bad": 1}, other, secret, one_shot_body(&scope, "a"),
    ]});
    let ask = service.ask(Role::Adapter, "POST", "/v1/receipts:batch").json(items);
    let results = ask.send().await.expect(200).body()["results"].clone();
    let of = |i: usize, name: &str| results[i]["problem"][name].clone();
    assert_eq!(results[0]["status"], 201);
    assert_eq!(results[0]["record"]["status"], "ok");
    assert_eq!(of(1, "code"), "invalid_request");
    assert_eq!(of(2, "code"), "input_mismatch");
    assert_eq!(of(3, "code"), "secret_detected");
    assert_eq!(results[4]["status"], 200);
    let many: Vec<_> = (0..200).map(|i| one_shot_body(&scope, &format!("n{i}"))).collect();
    let ask = service.ask(Role::Adapter, "POST", "/v1/receipts:batch");
    let reply = ask.json(json!({"receipts": many})).send().await.expect(200).body();
    let results = reply["results"].as_array().unwrap();
    assert_eq!(results.len(), 200);
    assert!(results.iter().all(|result| result["status"] == 201));
    let empty = service.ask(Role::Adapter, "POST", "/v1/receipts:batch");
    let empty = empty.json(json!({"receipts": []})).send().await.expect(200);
    assert_eq!(empty.body(), json!({"results": []}));
}

#[tokio::test]
async fn limits_are_told() {
    let service = Service::start().await;
    let config = service.get("/v1/config").await.expect(200).body();
    assert_eq!(config["lease_ms"]["default"], 60_000);
    assert_eq!(config["limits"]["batch_len_max"], 1000);
}

#[tokio::test]
async fn an_api_key_is_made_used_listed_and_revoked() {
    let service = Service::start().await;
    let body = json!({"roles": ["reader"], "namespace": "red", "expires_in_ms": 60_000});
    let ask = service.ask(Role::Admin, "POST", "/v1/api-keys").json(body);
    let created = ask.send().await.expect(201);
    let (api_key, id) = (created.text("api_key"), created.text("id"));
    let used = async || service.ask_with(&api_key, "GET", "/v1/calls").send().await;
    used().await.expect(200);
    let list = service.ask(Role::Admin, "GET", "/v1/api-keys").send().await.expect(200);
    assert!(!String::from_utf8_lossy(&list.bytes).contains(&api_key));
    assert!(list.body()["api_keys"].as_array().unwrap().iter().any(|key| key["id"] == *id));
    let path = format!("/v1/api-keys/{id}");
    service.ask(Role::Admin, "DELETE", &path).send().await.expect(204);
    used().await.expect(401);
}

#[tokio::test]
async fn probes_and_the_document_need_no_api_key() {
    let service = Service::start().await;
    for path in ["/livez", "/readyz", "/openapi.json"] {
        let reply = service.anonymous("GET", path).send().await.expect(200);
        assert_eq!(reply.header("content-type"), "application/json");
    }
    service.stop_ledger().await;
    service.anonymous("GET", "/livez").send().await.expect(200);
    let stopped = service.anonymous("GET", "/readyz").send().await.expect(503);
    assert_eq!(stopped.text("code"), "ledger_stopped");
}

#[tokio::test]
async fn a_start_a_day_after_the_last_event_is_shown() {
    const DAY_MS: u64 = 86_400_000;
    let mut service = Service::start().await;
    service.scope().await;
    for (ms_later, is_ahead) in [(0, false), (DAY_MS, false), (2 * DAY_MS + 1, true)] {
        service = service.again_at(START_MS + ms_later).await;
        let reply = service.anonymous("GET", "/readyz").send().await.expect(200);
        assert_eq!(reply.body(), json!({"status": "ok", "clock_ahead": is_ahead}), "{ms_later}");
    }
}

#[tokio::test]
async fn another_namespace_sees_nothing() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let record = service.done(&scope, "t").await;
    let (token, key) = (&record["token"], &record["idempotency_key"]);
    let paths = [
        (format!("/v1/scopes/{scope}"), "scope_not_found"),
        ("/v1/runs/r".to_owned(), "run_not_found"),
        ("/v1/runs/r/calls".to_owned(), "run_not_found"),
        ("/v1/runs/r/receipts-block".to_owned(), "run_not_found"),
        ("/v1/runs/r/calls/t".to_owned(), "call_not_found"),
        ("/v1/runs/r/calls/t/attempts/1".to_owned(), "call_not_found"),
        (format!("/v1/receipts/{}", token.as_str().unwrap()), "receipt_not_found"),
        (format!("/v1/idempotency/{}", key.as_str().unwrap()), "key_not_found"),
    ];
    let foreign = service.foreign_key(Role::Admin);
    for (path, code) in paths {
        service.get(&path).await.expect(200);
        let reply = service.ask_with(foreign, "GET", &path).send().await.expect(404);
        assert_eq!(reply.text("code"), code, "{path}");
    }
    let page = service.ask_with(foreign, "GET", "/v1/calls").send().await.expect(200);
    assert_eq!(page.body()["calls"], json!([]));
}
