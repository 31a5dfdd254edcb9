//! Running the service on a listener until it is asked to stop or the ledger stops.

use std::future::Future;
use std::time::Duration;

use axum::serve::ListenerExt;
use recibo_core::id::Namespace;
use recibo_store::Store;
use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::app::App;
use crate::router::router;

/// How often what time alone has caused is appended. No answer depends on it.
const TICK: Duration = Duration::from_secs(1);

/// Why the service ended other than by being asked.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The ledger takes no writes any more. The next start reads what is true.
    #[error("the ledger has stopped")]
    LedgerStopped,
    /// The listener failed.
    #[error("the listener failed")]
    Io(#[from] std::io::Error),
}

/// Serves until `shutdown` is done, then finishes what is in flight: requests that wait for a
/// decision are answered at once, others have [`crate::Settings::grace_ms`]. The store stays
/// open; closing it is the caller's.
///
/// # Errors
/// [`ServeError::LedgerStopped`] if the store stopped first, whatever the reason.
pub async fn serve(
    listener: TcpListener,
    app: App,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    // Answers are small and complete; nothing follows that they could be sent with.
    let listener = listener.tap_io(|stream| {
        // An error here costs latency, no more.
        let _ = stream.set_nodelay(true);
    });
    let mut stopping = app.stopping();
    let served = axum::serve(listener, router(app.clone())).with_graceful_shutdown(async move {
        // The sender lives in the router as long as anything is served.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    });
    let mut served = std::pin::pin!(served.into_future());
    let ended = tokio::select! {
        result = &mut served => return Ok(result?),
        () = shutdown => Ok(()),
        () = app.store().ended() => Err(ServeError::LedgerStopped),
        never = tick(app.store()) => match never {},
    };
    app.stop();
    match timeout(Duration::from_millis(app.settings().grace_ms), served).await {
        Ok(result) => result?,
        Err(_) => tracing::warn!("some requests did not end in time"),
    }
    // The ledger may have stopped while the last requests were served.
    if app.store().is_serving() { ended } else { Err(ServeError::LedgerStopped) }
}

async fn tick(store: &Store) -> std::convert::Infallible {
    // The store wants a namespace with every request; ticks concern all of them.
    let namespace = Namespace::parse("default").expect("a good name");
    let mut interval = interval(TICK);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        // A full queue means that the writer is busy, and the next tick will do. That the
        // store has stopped is noticed elsewhere.
        let _ = store.tick(&namespace).await;
    }
}
