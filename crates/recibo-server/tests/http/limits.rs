//! Bodies: their size and their type.

use axum::body::Body;
use recibo_api::Role;
use recibo_core::limits::SCOPES_LIVE_MAX;
use serde_json::json;

use crate::harness::{Service, claim_body, ok_body, one_shot_body};

const MIB: usize = 1 << 20;

#[tokio::test]
async fn a_body_may_fill_its_limit_and_not_more() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let lease_token = service.claim(&scope, "o", "opaque").await;
    let mut claim = claim_body(&scope, "c", "opaque");
    claim["input"] = json!("x".repeat(MIB - 1000));
    let mut outcome = ok_body(&lease_token);
    outcome["output"] = json!("x".repeat(16 * MIB - 1000));
    for (path, limit, body) in [
        ("/v1/runs/r/calls/t/attempts", MIB, claim),
        ("/v1/runs/r/calls/o/attempts/1/outcome", 16 * MIB, outcome),
        ("/v1/receipts", 16 * MIB, one_shot_body(&scope, "s")),
        ("/v1/receipts:batch", 16 * MIB, json!({"receipts": []})),
    ] {
        let mut body = body.to_string();
        body.push_str(&" ".repeat(limit - body.len()));
        let post = |body: Body| {
            let ask = service.ask(Role::Adapter, "POST", path).raw(body);
            ask.header("content-type", "application/json").send()
        };
        assert!(post(body.clone().into()).await.status.is_success(), "{path}");
        body.push(' ');
        let stated = service
            .ask(Role::Adapter, "POST", path)
            .header("content-type", "application/json")
            .header("content-length", &body.len().to_string())
            .raw(body.clone())
            .send()
            .await;
        for reply in [stated, post(body.into()).await] {
            let reply = reply.expect(413);
            assert_eq!(reply.text("code"), "body_too_large");
            assert!(reply.text("detail").contains("send output_hash"), "{reply:?}");
        }
    }
}

#[tokio::test]
async fn a_body_needs_its_media_type_and_an_empty_one_does_not() {
    let service = Service::start().await;
    let post = |body: &str| service.ask(Role::Adapter, "POST", "/v1/scopes").raw(body.to_owned());
    post("").send().await.expect(201);
    post("{}").header("content-type", "application/json; charset=utf-8").send().await.expect(201);
    post("{}").send().await.expect(415);
    for kind in ["text/plain", "application/json; charset=utf-16", "application/xml"] {
        let reply = post("{}").header("content-type", kind).send().await.expect(415);
        assert_eq!(reply.text("code"), "unsupported_media_type", "{kind}");
    }
}

#[tokio::test]
async fn large_arguments_are_hashed_like_small_ones() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let mut body = claim_body(&scope, "c", "opaque");
    body["input"] = json!({"a": "x".repeat(200_000)});
    let ask = service.ask(Role::Adapter, "POST", "/v1/runs/r/calls/t/attempts").json(body);
    let granted = ask.send().await.expect(201);
    let canonical = body_text(200_000);
    let hash = recibo_core::hash::InputHash::of_json(canonical.as_bytes()).unwrap();
    assert_eq!(granted.text("input_hash"), hash.to_string());
}

fn body_text(length: usize) -> String {
    format!("{{\"a\":\"{}\"}}", "x".repeat(length))
}

#[tokio::test]
async fn so_many_scopes_of_a_namespace_live_and_no_more() {
    let service = Service::start().await;
    let store = service.app.store();
    let blue = recibo_core::id::Namespace::parse("blue").unwrap();
    for _ in 0..SCOPES_LIVE_MAX {
        store.open_scope(&blue, None, 60_000).await.unwrap();
    }
    let open = || service.ask(Role::Adapter, "POST", "/v1/scopes").json(json!({})).send();
    let events = store.size();
    let refused = open().await.expect(429);
    assert_eq!(refused.text("code"), "scope_limit");
    assert_eq!(store.size(), events, "a refusal appends nothing");
    // Other namespaces have room, and so has this one once a scope ends.
    let green = recibo_core::id::Namespace::parse("green").unwrap();
    store.open_scope(&green, None, 60_000).await.unwrap();
    service.clock.advance_ms(60_000);
    store.tick(&blue).await.unwrap();
    open().await.expect(201);
}
