//! The socket in a data folder: who may open it is trusted with the roles `adapter` and `reader`.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use recibo_api::Role;
use recibo_server::{ConnectionLimits, Listeners, Settings, serve};
use recibo_store::Config;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::harness::Service;
use crate::socket::{LIVEZ, head};

struct Running {
    service: Service,
    socket: PathBuf,
    url: String,
    stop: oneshot::Sender<()>,
    served: tokio::task::JoinHandle<Result<(), recibo_server::ServeError>>,
    _folder: tempfile::TempDir,
}

async fn run(limits: ConnectionLimits) -> Running {
    let settings = Settings { limits, ..Settings::default() };
    let service = Service::with(settings, Config::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let unix = UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o600)).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = tcp.local_addr().unwrap().to_string();
    let listeners = Listeners { tcp: Some(tcp), unix: Some(unix) };
    let (stop, stopped) = oneshot::channel();
    let served = tokio::spawn(serve(listeners, service.app.clone(), async {
        let _ = stopped.await;
    }));
    Running { service, socket, url, stop, served, _folder: folder }
}

impl Running {
    async fn client(&self) -> UnixStream {
        UnixStream::connect(&self.socket).await.unwrap()
    }

    /// Status and document of a request that is the last one of its connection.
    async fn ask(&self, line: &str, more: &str, body: &str) -> (u16, Value) {
        let request = format!(
            "{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{more}content-length: {}\r\n\r\n\
             {body}",
            body.len()
        );
        self.exchange(request.as_bytes()).await
    }

    async fn exchange(&self, request: &[u8]) -> (u16, Value) {
        let mut stream = self.client().await;
        stream.write_all(request).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap_or_default())
    }
}

const JSON: &str = "content-type: application/json\r\n";

#[tokio::test]
async fn without_a_key_the_socket_is_for_adapters_and_readers() {
    let running = run(ConnectionLimits::default()).await;
    let (status, scope) = running.ask("POST /v1/scopes", JSON, "{}").await;
    assert_eq!(status, 201, "{scope}");
    assert_eq!(running.ask("GET /v1/calls", "", "").await.0, 200);
    let (status, refused) = running.ask("GET /v1/api-keys", "", "").await;
    assert_eq!((status, &refused["code"]), (403, &"forbidden".into()));
    assert_eq!(
        refused["detail"],
        "without an API key the roles are adapter, reader; this needs one of: admin"
    );
    let (status, _) = running.ask("PUT /v1/effects/policy", JSON, "{\"tools\": []}").await;
    assert_eq!(status, 403);
    // A key that is given counts, and a bad one is no key that is left out.
    let bad = "authorization: Bearer rcb_x_y\r\n";
    assert_eq!(running.ask("GET /v1/calls", bad, "").await.0, 401);
    let close = "connection: close\r\n";
    let admin = head(&running.service, Role::Admin, "GET /v1/api-keys", close);
    assert_eq!(running.exchange(&admin).await.0, 200);
    // The same over TCP needs a key.
    let mut stream = tokio::net::TcpStream::connect(&running.url).await.unwrap();
    stream
        .write_all(b"GET /v1/calls HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 401 "), "{reply}");
}

#[tokio::test]
async fn a_process_of_the_owner_may_be_idle_for_as_long_as_it_likes() {
    let short = Duration::from_millis(50);
    let limits = ConnectionLimits { head: short, idle: short, ..ConnectionLimits::default() };
    let running = run(limits).await;
    let (mut silent, mut idle, mut slow) =
        (running.client().await, running.client().await, running.client().await);
    let mut answer = [0; 17];
    idle.write_all(LIVEZ).await.unwrap();
    idle.read_exact(&mut answer).await.unwrap();
    slow.write_all(b"GET /li").await.unwrap();
    sleep(4 * short).await;
    for stream in [&mut silent, &mut idle] {
        stream.write_all(LIVEZ).await.unwrap();
        stream.read_exact(&mut answer).await.unwrap();
    }
    // A head that has begun has its time here too.
    let mut rest = Vec::new();
    assert!(slow.read_to_end(&mut rest).await.is_err() || rest.is_empty());
    // A stop waits for none of them.
    running.stop.send(()).unwrap();
    timeout(Duration::from_secs(10), running.served).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn the_status_names_who_is_connected_but_for_who_asks() {
    let running = run(ConnectionLimits::default()).await;
    let held = running.client().await;
    running.ask("GET /livez", "", "").await;
    let (_, own) = running.ask("GET /v1/status", "", "").await;
    assert_eq!(own["clients"], serde_json::json!([]), "{own}");
    let pid = std::process::id();
    assert_eq!((&own["pid"], &own["addresses"]), (&pid.into(), &0.into()));
    let mut stream = tokio::net::TcpStream::connect(&running.url).await.unwrap();
    let close = "connection: close\r\n";
    let request = head(&running.service, Role::Reader, "GET /v1/status", close);
    stream.write_all(&request).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    assert!(reply.contains(&format!("\"clients\":[{pid}],\"addresses\":1,")), "{reply}");
    drop(held);
}

#[tokio::test]
async fn the_status_counts_what_is_open_and_unknown_in_the_namespace() {
    let service = Service::start().await;
    let scope = service.scope().await;
    for (call, effect) in [("a", "opaque"), ("b", "opaque"), ("c", "read_only")] {
        service.claim(&scope, call, effect).await;
    }
    service.done(&scope, "d").await;
    let status = service.get("/v1/status").await.expect(200).body();
    assert_eq!((&status["in_flight"], &status["unknown"]), (&3.into(), &0.into()), "{status}");
    service.clock.advance_ms(30_000);
    let status = service.get("/v1/status").await.expect(200).body();
    assert_eq!((&status["in_flight"], &status["unknown"]), (&0.into(), &3.into()), "{status}");
    assert_eq!(status["read_only"], false);
    let key = service.foreign_key(Role::Reader);
    let foreign = service.ask_with(key, "GET", "/v1/status").send().await.expect(200).body();
    assert_eq!(foreign["unknown"], 0);
}
