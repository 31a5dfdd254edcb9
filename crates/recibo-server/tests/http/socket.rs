//! The service on a real socket, and clients that speak to it byte by byte.

use std::net::SocketAddr;

use recibo_api::Role;
use recibo_server::{ServeError, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::harness::Service;

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) served: JoinHandle<Result<(), ServeError>>,
}

pub(crate) async fn run(service: &Service) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let shutdown = async {
        let _ = stopped.await;
    };
    let served = tokio::spawn(serve(listener, service.app.clone(), shutdown));
    Running { address, stop, served }
}

impl Running {
    /// A client that has sent something and keeps its connection.
    pub(crate) async fn client(&self, sent: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        stream
    }

    /// What a client gets that sends this and waits for the end.
    pub(crate) async fn exchange(&self, request: &[u8]) -> String {
        let mut stream = self.client(request).await;
        rest(&mut stream).await
    }

    /// A whole request and its answer, over a connection that is kept.
    pub(crate) async fn livez(&self, stream: &mut TcpStream) {
        stream.write_all(LIVEZ).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"{\"status\":\"ok\"}") {
            assert_ne!(stream.read_buf(&mut head).await.unwrap(), 0, "the connection ended");
        }
        assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"));
    }
}

pub(crate) const LIVEZ: &[u8] = b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n";

/// All that still comes, up to the end of the connection, whichever way it ends.
pub(crate) async fn rest(stream: &mut TcpStream) -> String {
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply).await;
    String::from_utf8(reply).unwrap()
}

/// The head of a request with the key of a role, up to the empty line.
pub(crate) fn head(service: &Service, role: Role, line: &str, more: &str) -> Vec<u8> {
    let key = service.key(role);
    format!("{line} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n{more}\r\n").into_bytes()
}
