//! Answers that are sent piece by piece: their places, and the end of the API key that asked.

use std::time::Duration;

use http_body_util::BodyExt;
use recibo_api::Role;
use recibo_server::{ConnectionLimits, Settings};
use recibo_store::Config;
use serde_json::json;

use crate::api_keys::{create, revoke};
use crate::harness::{Ask, Service, one_shot_body};
use crate::problems::is_problem;

/// Pages of 500, more than may wait for a slow reader.
const CALLS: usize = 3_000;

const PATHS: [&str; 3] = ["/v1/calls", "/v1/runs/r/calls", "/v1/runs/r/receipts-block"];

/// A service with one place for what is sent piece by piece, and a long run.
async fn with_a_long_run() -> Service {
    let limits = ConnectionLimits { streams: 1, ..ConnectionLimits::default() };
    let settings = Settings { limits, ..Settings::default() };
    let service =
        Service::with(settings, Config { queue_len_max: 2048, ..Config::default() }).await;
    let scope = service.scope().await;
    for batch in 0..CALLS / 1000 {
        let shots = (0..1000).map(|i| one_shot_body(&scope, &format!("{batch}-{i}")));
        let body = json!({"receipts": shots.collect::<Vec<_>>()});
        let ask = service.ask(Role::Adapter, "POST", "/v1/receipts:batch").json(body);
        ask.send().await.expect(200);
    }
    service
}

fn rows(ask: Ask<'_>) -> Ask<'_> {
    ask.header("accept", "application/x-ndjson")
}

#[tokio::test(start_paused = true)]
async fn what_is_being_sent_breaks_off_when_the_key_ends() {
    let service = with_a_long_run().await;
    for path in PATHS {
        for is_revoked in [true, false] {
            let body = json!({"roles": ["reader"], "namespace": "blue", "expires_in_ms": 60_000});
            let (id, key) = create(&service, body).await;
            let answer = rows(service.ask_with(&key, "GET", path)).begin().await;
            assert_eq!(answer.status(), 200, "{path}");
            // The reader does not read, so the only place is taken.
            let other = rows(service.ask(Role::Reader, "GET", path)).send().await;
            is_problem(&other, 503, "overloaded");
            if is_revoked {
                revoke(&service, &id).await.expect(204);
            } else {
                service.clock.advance_ms(60_000);
                // The paused clock jumps on once nothing but the key's end is waited for.
                tokio::time::sleep(Duration::from_secs(61)).await;
            }
            // What was ready is not followed by an end that could be taken for a whole answer.
            assert!(answer.into_body().collect().await.is_err(), "{path} {is_revoked}");
            // The place is free again.
            let whole = rows(service.ask(Role::Reader, "GET", path)).send().await.expect(200);
            let lines = whole.bytes.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(lines, CALLS + 1, "{path}");
        }
    }
}
