//! Running the service on a listener until it is asked to stop or the ledger stops.

use std::convert::Infallible;
use std::future::Future;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use recibo_core::id::Namespace;
use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::app::App;
use crate::connection::{Admission, Connections, converse};
use crate::router::router;

/// How often what time alone has caused is appended. No answer depends on it.
const TICK: Duration = Duration::from_secs(1);

/// How long nothing is accepted after that failed for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why the service ended other than by being asked.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The ledger takes no writes any more. The next start reads what is true.
    #[error("the ledger has stopped")]
    LedgerStopped,
}

/// Serves until `shutdown` is done, then finishes what is in flight: requests that wait for a
/// decision are answered at once, others have [`crate::Settings::grace_ms`], and connections
/// without a request in flight are closed. The store stays open; closing it is the caller's.
///
/// # Errors
/// [`ServeError::LedgerStopped`] if the store stopped first, whatever the reason.
pub async fn serve(
    listener: TcpListener,
    app: App,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let connections = Connections::new(app.settings().limits, app.tally().clone());
    let ended = tokio::select! {
        never = accept(&listener, &connections, &app) => match never {},
        never = tick(&app) => match never {},
        () = shutdown => Ok(()),
        () = app.store().ended() => Err(ServeError::LedgerStopped),
    };
    drop(listener);
    app.stop();
    connections.close_waiting();
    let grace = Duration::from_millis(app.settings().grace_ms);
    if timeout(grace, connections.all_gone()).await.is_err() {
        tracing::warn!("some requests did not end in time");
        connections.close_all();
        connections.all_gone().await;
    }
    app.tally().log();
    // The ledger may have stopped while the last requests were served.
    if app.store().is_serving() { ended } else { Err(ServeError::LedgerStopped) }
}

async fn accept(listener: &TcpListener, connections: &Arc<Connections>, app: &App) -> Infallible {
    let router = router(app.clone());
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                cannot_accept(&error, connections).await;
                continue;
            }
        };
        // Answers are small and complete; nothing follows that they could be sent with. An
        // error here costs latency, no more.
        let _ = stream.set_nodelay(true);
        let Admission::Granted(ticket, made_room) = connections.admit(peer.ip()) else {
            continue;
        };
        let limits = app.settings().limits;
        let served = converse(stream, ticket, router.clone(), limits, app.stopping());
        tokio::spawn(served);
        if let Some(gone) = made_room {
            // So that a storm of connections does not outrun the ends of those before it. The
            // error says that it is gone.
            let _ = gone.await;
        }
    }
}

async fn cannot_accept(error: &std::io::Error, connections: &Connections) {
    let is_of_one_client = matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
    );
    if !is_of_one_client {
        tracing::error!(error = error as &dyn std::error::Error, "cannot accept connections");
        connections.make_room();
        sleep(ACCEPT_PAUSE).await;
    }
}

async fn tick(app: &App) -> Infallible {
    // The store wants a namespace with every request; ticks concern all of them.
    let namespace = Namespace::parse("default").expect("a good name");
    let mut interval = interval(TICK);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        app.tally().log();
        // A full queue means that the writer is busy, and the next tick will do. That the
        // store has stopped is noticed elsewhere.
        let _ = app.store().tick(&namespace).await;
    }
}
