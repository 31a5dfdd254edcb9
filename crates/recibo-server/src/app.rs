//! What every handler shares: the store, the settings, and how reads leave the async threads.

use std::sync::{Arc, Mutex};

use recibo_api::Code;
use recibo_api::secrets::SecretPolicy;
use recibo_core::time::Time;
use recibo_store::{Entropy, Snapshot, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::connection::{Connections, Tally, Told};
use crate::failure::Failure;
use crate::limits::ConnectionLimits;

/// Knobs of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What becomes of a claim whose labels hold a credential.
    pub secret_policy: SecretPolicy,
    /// How long what is in flight may take once the service is asked to stop, in milliseconds.
    pub grace_ms: u64,
    /// What one client may take from the others.
    pub limits: ConnectionLimits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            secret_policy: SecretPolicy::default(),
            grace_ms: 30_000,
            limits: ConnectionLimits::default(),
        }
    }
}

/// The service's state. Clones share it.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    store: Store,
    settings: Settings,
    started_at: Time,
    entropy: Mutex<Entropy>,
    /// Set once the service is asked to stop: whoever waits for a decision is answered then.
    stopping: watch::Sender<bool>,
    long_polls: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    connections: Arc<Connections>,
}

impl App {
    /// A service over an open store. `entropy` draws new API keys.
    pub fn new(store: Store, settings: Settings, entropy: Entropy) -> Self {
        let (stopping, _) = watch::channel(false);
        let permits = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self(Arc::new(Inner {
            started_at: store.now(),
            store,
            settings,
            entropy: Mutex::new(entropy),
            stopping,
            long_polls: permits(settings.limits.long_polls),
            streams: permits(settings.limits.streams),
            connections: Connections::new(settings.limits, Arc::default()),
        }))
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Ledger time at which the service was made.
    pub(crate) fn started_at(&self) -> Time {
        self.0.started_at
    }

    /// Random bytes for an API key.
    pub(crate) fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.0.entropy.lock().expect("no holder panics"))(&mut bytes);
        bytes
    }

    pub(crate) fn stop(&self) {
        self.0.stopping.send_replace(true);
    }

    /// Changes to true once the service is asked to stop.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.0.stopping.subscribe()
    }

    /// Ends once the service is asked to stop.
    pub(crate) async fn stopped(&self) {
        // The sender lives in this value.
        let _ = self.stopping().wait_for(|stopping| *stopping).await;
    }

    /// What happened at limits.
    pub(crate) fn tally(&self) -> &Tally {
        &self.0.connections.tally
    }

    /// Who is connected.
    pub(crate) fn connections(&self) -> &Arc<Connections> {
        &self.0.connections
    }

    /// Returns once no client is connected.
    pub async fn until_no_client(&self) {
        self.0.connections.all_gone().await;
    }

    /// Returns once a client is connected.
    pub async fn until_a_client(&self) {
        // The sender lives in the connections, and these in this value.
        let _ = self.0.connections.served().wait_for(|served| *served > 0).await;
    }

    /// A place among the requests that wait for a decision.
    pub(crate) fn long_poll(&self) -> Result<OwnedSemaphorePermit, Failure> {
        self.place(&self.0.long_polls, Told::LongPollRefused, "requests wait for a decision")
    }

    /// A place among the listings that are sent whole.
    pub(crate) fn stream(&self) -> Result<OwnedSemaphorePermit, Failure> {
        self.place(&self.0.streams, Told::StreamRefused, "listings are being sent")
    }

    fn place(
        &self,
        places: &Arc<Semaphore>,
        told: Told,
        what: &str,
    ) -> Result<OwnedSemaphorePermit, Failure> {
        places.clone().try_acquire_owned().map_err(|_| {
            self.tally().add(told);
            Failure::new(Code::Overloaded, format!("too many {what} already; try again"))
        })
    }

    /// Reads a row or a few, right here, for the reason that [`Store::decided`] gives.
    pub(crate) async fn look<T>(
        &self,
        look: impl FnOnce(&Snapshot) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        look(&self.0.store.settled().await?)
    }

    /// Reads from a snapshot on a blocking thread: what may take many rows.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Snapshot) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let snapshot = self.0.store.settled().await?;
        blocking(move || read(&snapshot)).await
    }
}

/// Runs what would hold up other requests on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        // The panic's own message is already on stderr; it is not repeated to the client.
        Err(_) => Err(Failure::internal()),
    }
}
