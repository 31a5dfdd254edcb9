//! The service on a real socket.

use std::net::SocketAddr;

use recibo_api::Role;
use recibo_server::{ServeError, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::harness::Service;

struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Result<(), ServeError>>,
}

async fn run(service: &Service) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let shutdown = async {
        let _ = stopped.await;
    };
    let served = tokio::spawn(serve(listener, service.app.clone(), shutdown));
    Running { address, stop, served }
}

async fn exchange(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.unwrap();
    String::from_utf8(reply).unwrap()
}

#[tokio::test]
async fn the_service_answers_until_it_is_asked_to_stop() {
    let service = Service::start().await;
    let running = run(&service).await;
    let request = b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let reply = exchange(running.address, request).await;
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
    let request = format!(
        "GET /v1/runs/r/calls/t/decision?wait_ms=30000 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n",
        service.key(Role::Reader)
    );
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    // Another request on the same thread: by its answer the first one has been read.
    exchange(running.address, b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    running.stop.send(()).unwrap();
    running.served.await.unwrap().unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
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
    let head = format!(
        "POST /v1/receipts HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nauthorization: Bearer {}\r\n\r\n",
        service.key(Role::Adapter)
    );
    let mut request = head.into_bytes();
    request.resize(request.len() + length, b' ');
    let reply = exchange(running.address, &request).await;
    assert!(reply.starts_with("HTTP/1.1 413 "), "{reply}");
    assert!(reply.contains("body_too_large"), "{reply}");
}
