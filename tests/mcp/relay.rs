//! A way to the service that loses answers or holds them back, as networks do.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::spawn;

use recibo_tests::binary::Server;

use super::proxy::{Proxy, Stage};

/// Passes bytes between clients and the service.
pub struct Relay {
    /// Its address, as that of a service.
    pub url: String,
    switch: Arc<Switch>,
}

#[derive(Default)]
struct Switch {
    to_lose: AtomicUsize,
    lost: AtomicUsize,
    is_held: Mutex<bool>,
    changed: Condvar,
}

impl Relay {
    /// To the service at this address.
    pub fn start(to: &str) -> Self {
        let to = to.strip_prefix("http://").expect("an address").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let switch = Arc::new(Switch::default());
        let relay = Self { url, switch: switch.clone() };
        spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(service)) = (client, TcpStream::connect(&to)) else { continue };
                let both = || (client.try_clone(), service.try_clone());
                let (Ok(from), Ok(into)) = both() else { continue };
                spawn(move || pass(from, into, || true));
                let switch = switch.clone();
                spawn(move || pass(service, client, || switch.lets_through()));
            }
        });
        relay
    }

    /// The next answers are lost, and their connections with them.
    pub fn lose(&self, answers: usize) {
        self.switch.to_lose.store(answers, Ordering::SeqCst);
    }

    /// How many answers were lost.
    pub fn lost(&self) -> usize {
        self.switch.lost.load(Ordering::SeqCst)
    }

    /// Answers wait while this is so.
    pub fn hold(&self, is_held: bool) {
        *self.switch.is_held.lock().expect("no holder panics") = is_held;
        self.switch.changed.notify_all();
    }
}

impl Switch {
    fn lets_through(&self) -> bool {
        let is_held = self.is_held.lock().expect("no holder panics");
        drop(self.changed.wait_while(is_held, |is_held| *is_held).expect("no holder panics"));
        let lost =
            self.to_lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        self.lost.fetch_add(usize::from(lost.is_ok()), Ordering::SeqCst);
        lost.is_err()
    }
}

fn pass(mut from: TcpStream, mut into: TcpStream, may_pass: impl Fn() -> bool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if !may_pass() || into.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    for stream in [from, into] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// A proxy that reaches the service through a relay.
pub fn behind_relay(stage: &Stage, server: &Server) -> (Relay, Proxy) {
    let relay = Relay::start(&server.api.url);
    let key = stage.path("key");
    std::fs::write(&key, &server.api.key).expect("a file");
    let words = ["--url", &relay.url, "--api-key-file", key.to_str().expect("text")];
    let proxy = stage.start_bare(&words, "last");
    (relay, proxy)
}
