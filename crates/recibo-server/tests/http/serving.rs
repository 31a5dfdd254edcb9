//! The service on a real socket.

use recibo_api::Role;
use recibo_server::ServeError;
use tokio::net::TcpStream;

use crate::harness::Service;
use crate::socket::{head, rest, run};

#[tokio::test]
async fn the_service_answers_until_it_is_asked_to_stop() {
    let service = Service::start().await;
    let running = run(&service).await;
    let request = b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let reply = running.exchange(request).await;
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
    // An idle connection holds nothing up.
    let idle = TcpStream::connect(running.address).await.unwrap();
    running.stop.send(()).unwrap();
    running.served.await.unwrap().unwrap();
    drop(idle);
    assert!(TcpStream::connect(running.address).await.is_err());
    assert!(service.app.store().is_serving());
}

#[tokio::test]
async fn who_waits_is_answered_when_the_service_stops() {
    let service = Service::start().await;
    let scope = service.scope().await;
    service.claim(&scope, "t", "opaque").await;
    let running = run(&service).await;
    let line = "GET /v1/runs/r/calls/t/decision?wait_ms=30000";
    let mut stream = running.client(&head(&service, Role::Reader, line, "")).await;
    // Another request on the same thread: by its answer the first one has been read.
    running.exchange(b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    running.stop.send(()).unwrap();
    running.served.await.unwrap().unwrap();
    let reply = rest(&mut stream).await;
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.contains("\"wait\""), "{reply}");
}

#[tokio::test]
async fn a_ledger_that_stops_ends_the_service_with_an_error() {
    let service = Service::start().await;
    let running = run(&service).await;
    service.stop_ledger().await;
    let served = running.served.await.unwrap();
    assert!(matches!(served, Err(ServeError::LedgerStopped)));
}

#[tokio::test]
async fn who_sends_too_much_gets_to_read_why() {
    let service = Service::start().await;
    let running = run(&service).await;
    let length = 3 << 20;
    let more = format!(
        "connection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n"
    );
    let mut request = head(&service, Role::Admin, "POST /v1/scopes", &more);
    request.resize(request.len() + length, b' ');
    let reply = running.exchange(&request).await;
    assert!(reply.starts_with("HTTP/1.1 413 "), "{reply}");
    assert!(reply.contains("body_too_large"), "{reply}");
}
