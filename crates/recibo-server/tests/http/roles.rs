//! Who may do what: every route, every role.

use std::collections::BTreeSet;

use recibo_api::Role;
use serde_json::{Value, json};

use crate::harness::{Service, claim_body, ok_body, one_shot_body};

/// Method, path as documented, and a column per role: adapter, reader, reconciler, operator,
/// auditor, admin.
const TABLE: &[(&str, &str, &str)] = &[
    ("POST", "/v1/scopes", "x....x"),
    ("GET", "/v1/scopes/{scope_id}", "xxxxxx"),
    ("DELETE", "/v1/scopes/{scope_id}", "x....x"),
    ("POST", "/v1/runs/{run_id}/calls/{tool_call_id}/attempts", "x....x"),
    ("POST", "/v1/runs/{run_id}/calls/{tool_call_id}/attempts/{n}/outcome", "x....x"),
    ("POST", "/v1/runs/{run_id}/calls/{tool_call_id}/attempts/{n}/lease", "x....x"),
    ("POST", "/v1/runs/{run_id}/calls/{tool_call_id}/attempts/{n}/status-checks", "..xx.x"),
    ("POST", "/v1/runs/{run_id}/calls/{tool_call_id}/resolution", "...x.x"),
    ("GET", "/v1/runs/{run_id}/calls/{tool_call_id}", "xxxxxx"),
    ("GET", "/v1/runs/{run_id}/calls/{tool_call_id}/attempts/{n}", "xxxxxx"),
    ("GET", "/v1/runs/{run_id}/calls/{tool_call_id}/decision", "xxxxxx"),
    ("GET", "/v1/runs/{run_id}", "xxxxxx"),
    ("GET", "/v1/runs/{run_id}/calls", "xxxxxx"),
    ("GET", "/v1/runs/{run_id}/receipts-block", "xxxxxx"),
    ("GET", "/v1/calls", "xxxxxx"),
    ("GET", "/v1/idempotency/{key}", "xxxxxx"),
    ("GET", "/v1/receipts/{token}", "xxxxxx"),
    ("POST", "/v1/receipts", "x....x"),
    ("POST", "/v1/receipts:batch", "x....x"),
    ("POST", "/v1/receipts:verify", "xxxxxx"),
    ("GET", "/v1/effects/policy", "xxxxxx"),
    ("PUT", "/v1/effects/policy", "...x.x"),
    ("GET", "/v1/config", "xxxxxx"),
    ("GET", "/v1/status", "xxxxxx"),
    ("POST", "/v1/api-keys", ".....x"),
    ("GET", "/v1/api-keys", ".....x"),
    ("DELETE", "/v1/api-keys/{id}", ".....x"),
];

/// A body of good shape; what it asks for need not be there.
pub(crate) fn body(method: &str, path: &str) -> Option<Value> {
    let name = path.rsplit('/').next().unwrap();
    Some(match (method, name) {
        ("POST", "scopes") => json!({}),
        ("POST", "attempts") => claim_body("sc_x", "c", "opaque"),
        ("POST", "outcome") => ok_body("token"),
        ("POST", "lease") => json!({"lease_token": "token", "lease_ms": 1000}),
        ("POST", "status-checks") => json!({"answer": "pending", "source": "crm"}),
        ("POST", "resolution") => json!({"state": "ok", "reason": "seen"}),
        ("POST", "receipts") => one_shot_body("sc_x", "t"),
        ("POST", "receipts:batch") => json!({"receipts": [one_shot_body("sc_x", "t")]}),
        ("POST", "receipts:verify") => json!({"token": "x"}),
        ("PUT", "policy") => json!({"tools": []}),
        ("POST", "api-keys") => json!({"roles": ["reader"], "namespace": "red"}),
        _ => return None,
    })
}

pub(crate) fn url(path: &str) -> String {
    let token = format!("zc-receipt-1789264800-{}", "A".repeat(43));
    path.replace("{token}", &token).replace("{n}", "1").replace(['{', '}'], "")
}

/// A key of the usual namespace with each of all sets of roles, and the set as a bit per column.
async fn keys_of_all_sets(service: &Service) -> Vec<(usize, String)> {
    let mut keys = Vec::new();
    for set in 1..1 << Role::ALL.len() {
        let has = |column: usize| set >> column & 1 == 1;
        let roles = (0..Role::ALL.len()).filter(|column| has(*column));
        let roles: Vec<_> = roles.map(|column| Role::ALL[column].as_str()).collect();
        let body = json!({"roles": roles, "namespace": "blue"});
        let ask = service.ask(Role::Admin, "POST", "/v1/api-keys").json(body);
        keys.push((set, ask.send().await.expect(201).text("api_key")));
    }
    keys
}

#[tokio::test]
async fn every_set_of_roles_may_do_what_one_of_them_may_and_nothing_else() {
    let service = Service::start().await;
    let keys = keys_of_all_sets(&service).await;
    for (method, path, cells) in TABLE {
        for (set, key) in &keys {
            let mut ask = service.ask_with(key, method, &url(path));
            if let Some(body) = body(method, path) {
                ask = ask.json(body);
            }
            let reply = ask.send().await;
            let is_forbidden = reply.text("code") == "forbidden";
            let mut columns = cells.char_indices().filter(|(column, _)| set >> column & 1 == 1);
            let may = columns.any(|(_, cell)| cell == 'x');
            assert_eq!(is_forbidden, !may, "{set:06b} {method} {path}: {reply:?}");
            assert_eq!(is_forbidden, reply.status == 403, "{set:06b} {method} {path}");
            assert!(is_forbidden || ![400, 401, 405, 500].contains(&reply.status.as_u16()));
        }
    }
}

#[tokio::test]
async fn every_documented_operation_with_an_api_key_is_in_the_table() {
    let document: Value = serde_json::from_str(recibo_server::openapi_text()).unwrap();
    let mut documented = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            if operation["security"].is_array() {
                documented.insert((method.to_uppercase(), path.clone()));
            }
        }
    }
    let listed = TABLE.iter().map(|(method, path, _)| (method.to_string(), path.to_string()));
    assert_eq!(documented, listed.collect());
    let service = Service::start().await;
    for (method, path) in documented {
        let reply = service.anonymous(&method, &url(&path)).send().await.expect(401);
        assert_eq!(reply.header("www-authenticate"), "Bearer");
    }
}

#[tokio::test]
async fn the_shape_is_judged_before_the_role_and_the_role_before_everything_else() {
    let service = Service::start().await;
    let post = |role, path: &str, body: Value| service.ask(role, "POST", path).json(body).send();
    let claims = "/v1/runs/r/calls/t/attempts";
    post(Role::Reader, claims, json!({})).await.expect(400);
    post(Role::Reader, "/v1/runs/a%2Fb/calls/t/attempts", json!({})).await.expect(400);
    let mut secret = claim_body("sc_x", "c", "opaque");
    secret["tool"] = json!("AKIAIOSFODNN7EXAMPLE");
    post(Role::Reader, claims, secret.clone()).await.expect(403);
    post(Role::Adapter, claims, secret).await.expect(422);
    let resolution = json!({"state": "ok", "reason": "seen"});
    post(Role::Reader, "/v1/runs/r/calls/t/resolution", resolution).await.expect(403);
    let anonymous = service.anonymous("POST", claims).json(json!({}));
    anonymous.send().await.expect(401);
}
