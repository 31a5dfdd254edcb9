//! More half-open connections than the service has descriptors.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use recibo_tests::binary::{Server, log_file};

const DESCRIPTORS: u32 = 256;
const CLIENTS: usize = 300;

#[test]
fn three_hundred_half_open_connections_at_256_descriptors_block_nobody() {
    let temp = tempfile::tempdir().expect("a folder");
    let folder = temp.path().join("data");
    let server = Server::start_with_descriptors(&folder, DESCRIPTORS);
    let address = server.api.url.strip_prefix("http://").expect("a URL").to_owned();
    let mut half_open = Vec::new();
    for _ in 0..CLIENTS {
        let mut stream = TcpStream::connect(&address).expect("a connection");
        // The service may have closed it already, to make room.
        let _ = stream.write_all(b"GET /v1/calls HTTP/1.1\r\nhost: ");
        half_open.push(stream);
    }
    let begun = Instant::now();
    let answer = server.api.get("/v1/runs/r/calls/t/decision");
    let took = begun.elapsed();
    println!("a look-up took {took:?}");
    assert_eq!(answer.status, 200, "{answer:?}");
    // 2 ms alone; the rest is for a busy machine.
    assert!(took < Duration::from_secs(2), "{took:?}");

    let begun = Instant::now();
    assert_eq!(server.stop(), Some(0));
    let took = begun.elapsed();
    println!("a stop took {took:?}");
    // It would be 30 seconds if it waited for them.
    assert!(took < Duration::from_secs(10), "{took:?}");
    let log = std::fs::read_to_string(log_file(&folder)).expect("a log");
    assert!(log.contains("clients at their limits"), "{log}");
    drop(half_open);
}
