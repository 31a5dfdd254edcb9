//! Clients that say nothing, say it slowly, or do not listen. The runtime's clock is paused: it
//! jumps on once nothing else can happen.

use std::time::Duration;

use recibo_api::Role;
use recibo_server::{ConnectionLimits, Settings};
use recibo_store::Config;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use crate::harness::Service;
use crate::problems::is_problem;
use crate::socket::{LIVEZ, head, rest, run};

const HALF_A_HEAD: &[u8] = b"GET /livez HTTP/1.1\r\nhost:";

async fn limited(limits: ConnectionLimits) -> Service {
    Service::with(Settings { limits, ..Settings::default() }, Config::default()).await
}

#[tokio::test(start_paused = true)]
async fn a_connection_ends_when_its_head_or_its_next_request_does_not_come() {
    let service = Service::start().await;
    let running = run(&service).await;
    // Whether it is the first request, what is sent of it, and after how many seconds it ends.
    for (is_first, then, seconds) in [
        (true, &b""[..], 10),
        (true, HALF_A_HEAD, 10),
        (false, b"", 75),
        (false, HALF_A_HEAD, 10),
        (false, b"\r\n", 10),
    ] {
        let mut stream = running.client(b"").await;
        if !is_first {
            running.livez(&mut stream).await;
        }
        let begun = Instant::now();
        stream.write_all(then).await.unwrap();
        assert_eq!(rest(&mut stream).await, "");
        assert_eq!(begun.elapsed().as_secs(), seconds, "{then:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_comes_byte_by_byte_has_no_more_time() {
    let service = Service::start().await;
    let running = run(&service).await;
    let mut stream = running.client(HALF_A_HEAD).await;
    let begun = Instant::now();
    for _ in 0..9 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stream.write_all(b"x").await.unwrap();
    }
    assert_eq!(rest(&mut stream).await, "");
    assert_eq!(begun.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stops_arriving_is_answered_and_one_that_goes_on_is_not() {
    let service = Service::start().await;
    let running = run(&service).await;
    let more = "content-type: application/json\r\ncontent-length: 5\r\n";
    let request = head(&service, Role::Adapter, "POST /v1/scopes", more);
    let mut stream = running.client(&request).await;
    let begun = Instant::now();
    for piece in [b"{", b" ", b" "] {
        stream.write_all(piece).await.unwrap();
        tokio::time::sleep(Duration::from_secs(29)).await;
    }
    let reply = rest(&mut stream).await;
    assert!(reply.starts_with("HTTP/1.1 408 ") && reply.contains("body_timeout"), "{reply}");
    assert!((88..90).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_large_is_taken_in_for_ten_seconds_at_most() {
    let service = Service::start().await;
    let running = run(&service).await;
    let more = format!("content-type: application/json\r\ncontent-length: {}\r\n", 3 << 20);
    let request = head(&service, Role::Adapter, "POST /v1/scopes", &more);
    let mut stream = running.client(&request).await;
    let begun = Instant::now();
    for _ in 0..9 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stream.write_all(b" ").await.unwrap();
    }
    let reply = rest(&mut stream).await;
    assert!(reply.starts_with("HTTP/1.1 413 ") && reply.contains("body_too_large"), "{reply}");
    assert_eq!(begun.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_take_the_answer_loses_the_connection() {
    let service = Service::start().await;
    let running = run(&service).await;
    // Many answers are asked for and none is read.
    let request = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(200);
    let mut stream = running.client(&request).await;
    let begun = Instant::now();
    // The service is done with it once it has written nothing for 30 seconds.
    let ended = async {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if stream.write_all(LIVEZ).await.is_err() {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it is closed");
    assert!(begun.elapsed() >= Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn at_the_limit_a_new_connection_is_served_and_the_oldest_idle_one_closed() {
    let service = limited(ConnectionLimits::for_connections(4)).await;
    let running = run(&service).await;
    let mut idle = Vec::new();
    for _ in 0..12 {
        let mut stream = running.client(b"").await;
        running.livez(&mut stream).await;
        stream.write_all(HALF_A_HEAD).await.unwrap();
        idle.push(stream);
    }
    // All but the last two of this address were closed in turn.
    let last = idle.split_off(10);
    for mut stream in idle {
        assert_eq!(rest(&mut stream).await, "");
    }
    for mut stream in last {
        stream.write_all(b" x\r\nconnection: close\r\n\r\n").await.unwrap();
        assert!(rest(&mut stream).await.starts_with("HTTP/1.1 200 OK\r\n"));
    }
}

#[tokio::test]
async fn where_all_connections_have_a_request_in_flight_a_new_one_is_refused() {
    let limits = ConnectionLimits { per_address: 2, ..ConnectionLimits::for_connections(2) };
    let service = limited(ConnectionLimits { long_polls: 2, ..limits }).await;
    let scope = service.scope().await;
    service.claim(&scope, "t", "opaque").await;
    let running = run(&service).await;
    let line = "GET /v1/runs/r/calls/t/decision?wait_ms=30000";
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let mut stream = running.client(b"").await;
        running.livez(&mut stream).await;
        stream.write_all(&head(&service, Role::Reader, line, "")).await.unwrap();
        waiting.push(stream);
    }
    // On one thread, whoever was read first is in flight by the time that this one is.
    assert_eq!(running.exchange(LIVEZ).await, "");
    running.stop.send(()).unwrap();
    for mut stream in waiting {
        assert!(rest(&mut stream).await.contains("\"wait\""));
    }
    running.served.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_no_head_and_for_no_body() {
    let service = Service::start().await;
    let more = "content-type: application/json\r\ncontent-length: 5\r\n";
    let request = head(&service, Role::Adapter, "POST /v1/scopes", more);
    for (sent, seconds, answer) in [
        (&b""[..], 0, ""),
        (HALF_A_HEAD, 0, ""),
        (&request, 1, "HTTP/1.1 503 Service Unavailable\r\n"),
    ] {
        // A service stops once.
        let settings = *service.app.settings();
        let again = Service::with(settings, Config::default()).await;
        let running = run(&again).await;
        let mut stream = running.client(sent).await;
        let mut other = running.client(b"").await;
        running.livez(&mut other).await;
        let begun = Instant::now();
        running.stop.send(()).unwrap();
        running.served.await.unwrap().unwrap();
        assert_eq!(begun.elapsed().as_secs(), seconds, "{sent:?}");
        let reply = rest(&mut stream).await;
        assert!(reply.starts_with(answer) && reply.is_empty() == answer.is_empty(), "{reply}");
    }
}

#[tokio::test]
async fn long_polls_and_streams_have_places_of_their_own() {
    let limits = ConnectionLimits { long_polls: 1, streams: 0, ..ConnectionLimits::default() };
    let service = limited(limits).await;
    let scope = service.scope().await;
    service.claim(&scope, "t", "opaque").await;
    let path = "/v1/runs/r/calls/t/decision?wait_ms=30000";
    let mut waiting = std::pin::pin!(service.get(path));
    tokio::select! {
        biased;
        reply = &mut waiting => panic!("{reply:?}"),
        reply = service.get(path) => {
            is_problem(&reply, 503, "overloaded");
            assert_eq!(reply.header("retry-after"), "1");
        }
    }
    service.get("/v1/runs/r/calls/t/decision").await.expect(200);
    for path in ["/v1/calls", "/v1/runs/r/calls"] {
        let rows = service.ask(Role::Reader, "GET", path).header("accept", "application/x-ndjson");
        let reply = rows.send().await;
        is_problem(&reply, 503, "overloaded");
        assert_eq!(reply.header("retry-after"), "1");
    }
    service.get("/v1/calls").await.expect(200);
}

#[tokio::test]
async fn a_head_that_is_not_http_is_a_problem() {
    let service = Service::start().await;
    let running = run(&service).await;
    let many = format!("GET /livez HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101));
    let large = format!("GET /livez HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(1 << 17));
    for (request, status, code) in [
        ("nonsense\r\n\r\n", 400, "malformed_request"),
        ("GET /livez HTTP/1.1\r\nbad header\r\n\r\n", 400, "malformed_request"),
        ("GET /livez HTTP/1.1\r\nhost: x\r\ncontent-length: x\r\n\r\n", 400, "malformed_request"),
        (&many, 431, "head_too_large"),
        (&large, 431, "head_too_large"),
    ] {
        let mut stream = running.client(b"").await;
        // The service may close before all is sent.
        let _ = stream.write_all(request.as_bytes()).await;
        let reply = rest(&mut stream).await;
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{request:.40}: {reply}");
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("\r\ncontent-type: application/problem+json\r\n"), "{reply}");
        let problem: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)));
    }
    // After a good request too.
    let mut stream = running.client(b"").await;
    running.livez(&mut stream).await;
    stream.write_all(b"nonsense\r\n\r\n").await.unwrap();
    assert!(rest(&mut stream).await.contains("malformed_request"));
}
