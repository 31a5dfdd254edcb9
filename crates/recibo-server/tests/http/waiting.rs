//! Waiting for a decision.

use std::time::Duration;

use recibo_api::Role;
use serde_json::json;

use crate::harness::{Service, ok_body};

const PATH: &str = "/v1/runs/r/calls/t/decision?wait_ms=30000";

#[tokio::test]
async fn an_outcome_ends_the_wait() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let lease_token = service.claim(&scope, "t", "opaque").await;
    let begun = tokio::time::Instant::now();
    let mut waiting = std::pin::pin!(service.get(PATH));
    // Other calls that change do not end it.
    for call in ["a", "b", "c"] {
        tokio::select! {
            biased;
            reply = &mut waiting => panic!("{reply:?}"),
            _ = service.done(&scope, call) => {}
        }
    }
    let (reply, reported) = tokio::join!(waiting, service.report("t", ok_body(&lease_token)));
    reported.expect(200);
    assert_eq!(reply.expect(200).text("decision"), "reuse");
    // Far below the 30 seconds after which the lease would have ended it.
    assert!(begun.elapsed() < Duration::from_secs(15));
}

/// By real time: the end of a lease is made durable by another thread, and a paused clock would
/// jump while nothing but that is waited for.
#[tokio::test]
async fn the_end_of_the_lease_ends_the_wait() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let body = json!({"claim_id": "c", "scope_id": scope, "tool": "mail", "effect": "opaque",
        "input": {}, "lease_ms": 1000});
    let claim = service.ask(Role::Adapter, "POST", "/v1/runs/r/calls/t/attempts").json(body);
    claim.send().await.expect(201);
    let begun = tokio::time::Instant::now();
    let mut waiting = std::pin::pin!(service.get(PATH));
    // The request has looked, and waits.
    tokio::select! {
        biased;
        reply = &mut waiting => panic!("{reply:?}"),
        () = tokio::time::sleep(Duration::from_millis(100)) => service.clock.advance_ms(1000),
    }
    let reply = waiting.await.expect(200);
    assert_eq!((reply.text("decision"), reply.text("state")), ("stop".into(), "unknown".into()));
    // Far below the 30 seconds of the wait.
    assert!(begun.elapsed() < Duration::from_secs(15));
}

#[tokio::test(start_paused = true)]
async fn the_wait_ends_in_time() {
    let service = Service::start().await;
    let scope = service.scope().await;
    service.claim(&scope, "t", "opaque").await;
    for (wait_ms, path) in [
        (0, "/v1/runs/r/calls/t/decision"),
        (0, "/v1/runs/r/calls/t/decision?wait_ms=0"),
        (2_000, "/v1/runs/r/calls/t/decision?wait_ms=2000"),
    ] {
        let begun = tokio::time::Instant::now();
        let reply = service.get(path).await.expect(200);
        assert_eq!(reply.text("decision"), "wait");
        assert_eq!(reply.header("retry-after"), "30");
        let waited = u64::try_from(begun.elapsed().as_millis()).unwrap();
        assert!((wait_ms..=wait_ms + 10).contains(&waited), "{path}: {waited}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_not_to_wait_does_not_wait() {
    let service = Service::start().await;
    let scope = service.scope().await;
    let begun = tokio::time::Instant::now();
    let absent = service.get(PATH).await.expect(200);
    assert_eq!(absent.text("decision"), "proceed");
    let body = crate::harness::one_shot_body(&scope, "t");
    service.ask(Role::Adapter, "POST", "/v1/receipts").json(body).send().await.expect(201);
    assert_eq!(service.get(PATH).await.expect(200).body()["decision"], json!("reuse"));
    assert_eq!(begun.elapsed(), Duration::ZERO);
}
