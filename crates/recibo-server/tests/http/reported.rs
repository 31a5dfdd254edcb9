//! What clients send that is made by others: ids of providers, results of other languages.

use recibo_api::Role;
use serde_json::{Value, json};

use crate::harness::{Service, claim_body};

async fn size(service: &Service) -> Value {
    service.get("/v1/calls?page_size=500").await.expect(200).body()["calls"].clone()
}

#[tokio::test]
async fn m14_a_provider_id_that_does_not_fit_is_refused_with_the_map() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let before = size(&service).await;
    for id in ["a%2Fb".to_owned(), "x".repeat(1064)] {
        let path = format!("/v1/runs/r/calls/{id}/attempts");
        let claim = claim_body(&scope, "c", "opaque");
        let problem = service.ask(Role::Adapter, "POST", &path).json(claim).send().await;
        let problem = problem.expect(400).body();
        assert_eq!(problem["code"], "invalid_id");
        let hint = problem["hint"].as_str().expect("a hint");
        assert!(hint.contains("TURN:ID") && hint.contains("%XX") && hint.contains("h:"), "{hint}");
    }
    assert_eq!(size(&service).await, before);
}

#[tokio::test]
async fn m15_a_result_that_is_no_json_is_refused_with_the_cause_and_the_lease_stays() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let lease = service.claim(&scope, "t", "opaque").await;
    let before = size(&service).await;
    let path = "/v1/runs/r/calls/t/attempts/1/outcome";
    for (output, cause) in [
        (r#""half \ud835 pair""#, "surrogate"),
        (r#""\udc00""#, "surrogate"),
        (r#"{"x": NaN}"#, "NaN"),
        ("-Infinity", "Infinity"),
    ] {
        let body = format!(
            r#"{{"lease_token":"{lease}","status":"ok","duration_ms":1,"output":{output}}}"#
        );
        let problem = service
            .ask(Role::Adapter, "POST", path)
            .raw(body)
            .header("content-type", "application/json")
            .send()
            .await;
        let problem = problem.expect(400).body();
        assert_eq!(problem["code"], "invalid_json");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.contains(cause) && detail.contains("send output_hash"), "{detail}");
    }
    assert_eq!(size(&service).await, before);
    let hash = format!("sha256:{}", "0".repeat(64));
    let body = json!({"lease_token": lease, "status": "ok", "duration_ms": 1, "output_hash": hash});
    service.report("t", body).await.expect(200);
}

#[tokio::test]
async fn m16_a_provider_id_that_is_used_twice_is_refused_with_the_way_out() {
    let service = Service::start().await;
    let scope = service.scope().await;
    service.claim(&scope, "call_1", "opaque").await;
    let before = size(&service).await;
    let mut other = claim_body(&scope, "c-2", "opaque");
    other["input"] = json!({"another": "call"});
    let path = "/v1/runs/r/calls/call_1/attempts";
    let problem = service.ask(Role::Adapter, "POST", path).json(other).send().await;
    let problem = problem.expect(422).body();
    assert_eq!(problem["code"], "input_mismatch");
    assert!(problem["hint"].as_str().expect("a hint").contains("the turn and the position"));
    assert_eq!(size(&service).await, before);
}

#[tokio::test]
async fn m17_arguments_without_a_canonical_form_are_refused_with_the_path() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let before = size(&service).await;
    for (input, code, pointer) in [
        (r#"{"a":{"b":1,"b":2}}"#, "duplicate_member", "/input/a/b"),
        (r#"{"n":[1e999]}"#, "number_out_of_range", "/input/n/0"),
        (r#"{"t":"\ud835"}"#, "invalid_json", "/input/t"),
    ] {
        let body = format!(
            r#"{{"scope_id":"{scope}","claim_id":"c","tool":"t","effect":"opaque","input":{input}}}"#
        );
        let problem = service
            .ask(Role::Adapter, "POST", "/v1/runs/r/calls/c/attempts")
            .raw(body)
            .header("content-type", "application/json")
            .send()
            .await;
        let problem = problem.expect(400).body();
        assert_eq!((&problem["code"], &problem["pointer"]), (&json!(code), &json!(pointer)));
        assert!(!problem["detail"].as_str().expect("a detail").contains("/a/b"));
    }
    assert_eq!(size(&service).await, before);
}
