//! More half-open connections than the service has descriptors.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use recibo_tests::api::Api;
use recibo_tests::binary::{Server, log_file};

/// What the service starts with, and what it raises that to.
const DESCRIPTORS: (u32, u32) = (32, 256);
const CLIENTS: usize = 300;
const LOOK_UPS: usize = 21;

#[test]
fn three_hundred_half_open_connections_at_256_descriptors_block_nobody() {
    let temp = tempfile::tempdir().expect("a folder");
    let folder = temp.path().join("data");
    let server = Server::start_with_descriptors(&folder, DESCRIPTORS.0, DESCRIPTORS.1);
    let address = server.api.url.strip_prefix("http://").expect("a URL").to_owned();
    let mut half_open = Vec::new();
    for _ in 0..CLIENTS {
        let mut stream = TcpStream::connect(&address).expect("a connection");
        // The service may have closed it already, to make room.
        let _ = stream.write_all(b"GET /v1/calls HTTP/1.1\r\nhost: ");
        half_open.push(stream);
    }
    // The first one stands behind all of them.
    let mut took: Vec<Duration> = (0..LOOK_UPS).map(|_| look_up(&server.api)).collect();
    let first = took[0];
    took.sort();
    let median = took[LOOK_UPS / 2];
    println!("the first look-up took {first:?}, half of them {median:?}, all {:?}", took.last());
    // The first one may meet a busy machine.
    assert!(median < Duration::from_millis(100), "{took:?}");
    assert!(first < Duration::from_secs(2), "{first:?}");

    let (code, took) = timed(|| server.stop());
    assert_eq!(code, Some(0));
    println!("a stop took {took:?}");
    // It would be 30 seconds if it waited for them.
    assert!(took < Duration::from_secs(10), "{took:?}");
    let log = std::fs::read_to_string(log_file(&folder)).expect("a log");
    assert!(log.contains("descriptors=256 connections=128"), "{log}");
    assert!(log.contains("clients at their limits"), "{log}");
    drop(half_open);
}

/// How long an answer takes over a connection of its own.
fn look_up(api: &Api) -> Duration {
    let api = Api::new(&api.url, &api.key);
    let (reply, took) = timed(|| api.get("/v1/runs/r/calls/t/decision"));
    reply.expect(200);
    took
}

#[expect(clippy::disallowed_methods, reason = "how long the service takes is what is tested")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let done = work();
    (done, begun.elapsed())
}
