//! The service in this process, on loopback, with a clock that the test moves.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use recibo_core::id::Namespace;
use recibo_server::{App, Settings};
use recibo_store::{Config, ManualClock, Store, api_key};
use tokio::sync::oneshot;

use crate::api::Api;

/// Wall time at which every such service starts: 2027-01-15T08:00:00Z.
pub const START_MS: u64 = 1_800_000_000_000;

/// A running service.
pub struct Service {
    /// A client with an admin key of the namespace `default`.
    pub api: Api,
    /// Its clock.
    pub clock: Arc<ManualClock>,
    /// Taken out only while it restarts: a file can be opened once.
    store: Option<Store>,
    folder: tempfile::TempDir,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Default for Service {
    fn default() -> Self {
        Self::start()
    }
}

impl Service {
    /// Starts on an empty folder.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(ManualClock::at(START_MS));
        let store = open(folder.path(), clock.clone());
        let key = new_key(&store, "admin", "default");
        let (url, running) = run(&store);
        Self {
            api: Api::new(&url, &key),
            clock,
            store: Some(store),
            folder,
            running: Some(running),
        }
    }

    /// Stops and starts again on the same folder: keys in memory are gone, the rest is there.
    pub fn restart(&mut self) {
        self.stop();
        self.start_again();
    }

    /// Stops, lets the machine be off for so long, boots it anew, and starts again.
    pub fn reboot(&mut self, off_ms: u64) {
        self.stop();
        self.clock.advance_ms(off_ms);
        self.clock.reboot();
        self.start_again();
    }

    fn start_again(&mut self) {
        let store = open(self.folder.path(), self.clock.clone());
        let (url, running) = run(&store);
        self.store = Some(store);
        self.running = Some(running);
        self.api.url = url;
    }

    /// Its store.
    pub fn store(&self) -> &Store {
        self.store.as_ref().expect("it runs")
    }

    /// Lets time pass, as the service sees it.
    pub fn advance_ms(&self, ms: u64) {
        self.clock.advance_ms(ms);
    }

    /// Runs the background job now.
    pub fn tick(&self) {
        self.store().tick(&namespace("default")).wait().expect("the store serves");
    }

    /// A client with a new key.
    pub fn api_as(&self, role: &str, of: &str) -> Api {
        self.api.with_key(&new_key(self.store(), role, of))
    }

    /// Event count and log root.
    pub fn log(&self) -> (u64, [u8; 32]) {
        let head = self.store().snapshot().and_then(|s| s.log_head()).expect("a readable store");
        (head.size, head.root)
    }

    fn stop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            // An error means that it has stopped already.
            let _ = stop.send(());
            let _ = thread.join();
            if let Some(store) = self.store.take() {
                store.close();
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A namespace that is known to be a good name.
pub fn namespace(name: &str) -> Namespace {
    Namespace::parse(name).expect("a namespace")
}

fn open(folder: &Path, clock: Arc<ManualClock>) -> Store {
    let config = Config { cache_bytes: 8 << 20, ..Config::default() };
    Store::open(folder, config, clock, Box::new(|bytes| rand::fill(bytes))).expect("a store")
}

fn new_key(store: &Store, role: &str, of: &str) -> String {
    let mut random = [0; 48];
    rand::fill(&mut random);
    let (text, draft) = api_key::make(&random, role, namespace(of), None);
    store.create_api_key(draft).wait().expect("the store serves");
    text
}

fn run(store: &Store) -> (String, (oneshot::Sender<()>, JoinHandle<()>)) {
    let app = App::new(store.clone(), Settings::default(), Box::new(|bytes| rand::fill(bytes)));
    let (stop, stopped) = oneshot::channel();
    let (ready, address) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            ready.send(listener.local_addr().expect("an address")).expect("the test waits");
            let shutdown = async {
                let _ = stopped.await;
            };
            // A store that a test stops on purpose ends the service with an error.
            let _ = recibo_server::serve(listener, app, shutdown).await;
        });
    });
    let address = address.recv().expect("the service starts");
    (format!("http://{address}"), (stop, thread))
}
