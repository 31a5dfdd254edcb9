//! What every handler shares: the store, the settings, and how reads leave the async threads.

use std::sync::{Arc, Mutex};

use recibo_api::secrets::SecretPolicy;
use recibo_store::{Entropy, Snapshot, Store};
use tokio::sync::watch;

use crate::failure::Failure;

/// Knobs of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What becomes of a claim whose labels hold a credential.
    pub secret_policy: SecretPolicy,
    /// How long what is in flight may take once the service is asked to stop, in milliseconds.
    pub grace_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { secret_policy: SecretPolicy::default(), grace_ms: 30_000 }
    }
}

/// The service's state. Clones share it.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    store: Store,
    settings: Settings,
    entropy: Mutex<Entropy>,
    /// Set once the service is asked to stop: whoever waits for a decision is answered then.
    stopping: watch::Sender<bool>,
}

impl App {
    /// A service over an open store. `entropy` draws new API keys.
    pub fn new(store: Store, settings: Settings, entropy: Entropy) -> Self {
        let (stopping, _) = watch::channel(false);
        Self(Arc::new(Inner { store, settings, entropy: Mutex::new(entropy), stopping }))
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
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
