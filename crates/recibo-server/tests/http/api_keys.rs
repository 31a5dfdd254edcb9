//! API keys: several roles, their ends, and the one that must stay.

use std::time::Duration;

use recibo_api::Role;
use serde_json::{Value, json};

use crate::harness::Service;
use crate::problems::is_problem;

pub(crate) async fn create(service: &Service, body: Value) -> (String, String) {
    let ask = service.ask(Role::Admin, "POST", "/v1/api-keys").json(body);
    let created = ask.send().await.expect(201);
    (created.text("id"), created.text("api_key"))
}

pub(crate) async fn revoke(service: &Service, id: &str) -> crate::harness::Reply {
    service.ask(Role::Admin, "DELETE", &format!("/v1/api-keys/{id}")).send().await
}

async fn ids_of(service: &Service, role: &str) -> Vec<String> {
    let list = service.ask(Role::Admin, "GET", "/v1/api-keys").send().await.expect(200).body();
    let keys = list["api_keys"].as_array().unwrap().iter();
    let keys = keys.filter(|key| key["roles"] == json!([role]) && key["revoked_at"].is_null());
    keys.map(|key| key["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn roles_are_shown_in_one_order_and_each_once() {
    let service = Service::start().await;
    let body = json!({"roles": ["reconciler", "adapter", "adapter"], "namespace": "red"});
    let ask = service.ask(Role::Admin, "POST", "/v1/api-keys").json(body);
    let created = ask.send().await.expect(201).body();
    assert_eq!(created["roles"], json!(["adapter", "reconciler"]));
    let list = service.ask(Role::Admin, "GET", "/v1/api-keys").send().await.expect(200).body();
    let entry = list["api_keys"].as_array().unwrap().iter().find(|key| key["id"] == created["id"]);
    assert_eq!(entry.unwrap()["roles"], json!(["adapter", "reconciler"]));
    for bad in [json!({"namespace": "red"}), json!({"roles": [], "namespace": "red"})] {
        let ask = service.ask(Role::Admin, "POST", "/v1/api-keys").json(bad);
        is_problem(&ask.send().await, 400, "invalid_request");
    }
}

#[tokio::test]
async fn the_last_admin_key_that_does_not_expire_stays() {
    let service = Service::start().await;
    // Neither one that expires nor one of another role is a way back.
    let expiring = json!({"roles": ["admin"], "namespace": "blue", "expires_in_ms": 60_000});
    let (expiring, _) = create(&service, expiring).await;
    create(&service, json!({"roles": ["operator"], "namespace": "blue"})).await;
    let own = service.key(Role::Admin).split('_').nth(1).unwrap().to_owned();
    for id in ids_of(&service, "admin").await {
        if id != own && id != expiring {
            revoke(&service, &id).await.expect(204);
        }
    }
    is_problem(&revoke(&service, &own).await, 409, "last_admin_key");
    revoke(&service, &expiring).await.expect(204);
    is_problem(&revoke(&service, &own).await, 409, "last_admin_key");
    // With another one, also among other roles, it can go.
    let (_, other) =
        create(&service, json!({"roles": ["admin", "adapter"], "namespace": "x"})).await;
    revoke(&service, &own).await.expect(204);
    service.ask_with(&other, "GET", "/v1/api-keys").send().await.expect(200);
}

#[tokio::test]
async fn who_waits_with_a_key_that_is_revoked_is_answered_at_once() {
    let service = Service::start().await;
    let scope = service.scope().await;
    service.claim(&scope, "t", "opaque").await;
    let (id, key) = create(&service, json!({"roles": ["reader"], "namespace": "blue"})).await;
    let path = "/v1/runs/r/calls/t/decision?wait_ms=30000";
    let mut waiting = std::pin::pin!(service.ask_with(&key, "GET", path).send());
    // A key of somebody else says nothing to it.
    let (other, _) = create(&service, json!({"roles": ["reader"], "namespace": "blue"})).await;
    tokio::select! {
        biased;
        reply = &mut waiting => panic!("{reply:?}"),
        reply = revoke(&service, &other) => drop(reply.expect(204)),
    }
    let begun = tokio::time::Instant::now();
    let (reply, revoked) = tokio::join!(waiting, revoke(&service, &id));
    revoked.expect(204);
    is_problem(&reply, 401, "unauthenticated");
    assert!(begun.elapsed() < Duration::from_secs(15));
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_answered_when_the_key_expires() {
    let service = Service::start().await;
    let scope = service.scope().await;
    service.claim(&scope, "t", "opaque").await;
    let body = json!({"roles": ["reader"], "namespace": "blue", "expires_in_ms": 2_000});
    let (_, key) = create(&service, body).await;
    let path = "/v1/runs/r/calls/t/decision?wait_ms=30000";
    let expires = async {
        // The paused clock jumps on once the request waits.
        tokio::time::sleep(Duration::from_millis(100)).await;
        service.clock.advance_ms(2_000);
    };
    let (reply, ()) = tokio::join!(service.ask_with(&key, "GET", path).send(), expires);
    is_problem(&reply, 401, "unauthenticated");
}
