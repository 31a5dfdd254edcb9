//! Ids in paths.

use recibo_api::Role;

use crate::harness::{Service, claim_body};

#[tokio::test]
async fn ids_of_real_providers_survive_the_url() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let ids = [
        ("call_x%7Cfc_y=", "call_x|fc_y="),
        ("call_x|fc_y=", "call_x|fc_y="),
        ("a:b.c-d_e~", "a:b.c-d_e~"),
        ("a%2520b", "a%20b"),
        ("what%3Fnow%23here", "what?now#here"),
        ("...", "..."),
        ("a+b&c", "a+b&c"),
        ("{x}", "{x}"),
        ("a%25", "a%"),
    ];
    for (i, (sent, meant)) in ids.into_iter().enumerate() {
        let path = format!("/v1/runs/run{i}%3A/calls/{sent}");
        let claim = claim_body(&scope, "c", "opaque");
        let ask = service.ask(Role::Adapter, "POST", &format!("{path}/attempts")).json(claim);
        let granted = ask.send().await.expect(201);
        assert_eq!(granted.text("tool_call_id"), meant);
        assert_eq!(granted.text("run_id"), format!("run{i}:"));
        assert_eq!(service.get(&path).await.expect(200).text("tool_call_id"), meant);
    }
}

#[tokio::test]
async fn what_is_no_id_is_refused() {
    let service = Service::start().await;
    let long = "x".repeat(257);
    for id in ["a%2Fb", "%2e", "..", "%2E%2E", "a%20b", "%C3%A4", "%ff", "%zz", "a%", "%7F", &long]
    {
        for path in [format!("/v1/runs/{id}"), format!("/v1/runs/r/calls/{id}/decision")] {
            let reply = service.get(&path).await.expect(400);
            assert_eq!(reply.text("code"), "invalid_id", "{path}");
            assert_eq!(reply.header("content-type"), "application/problem+json");
        }
    }
    for n in ["0", "01", "+1", "-1", "x", "4294967296"] {
        let reply = service.get(&format!("/v1/runs/r/calls/t/attempts/{n}")).await.expect(400);
        assert_eq!(reply.text("code"), "invalid_id", "{n}");
    }
}
