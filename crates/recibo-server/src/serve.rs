//! Running the service on its listeners until it is asked to stop or the ledger stops.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::io::ErrorKind;
use std::time::Duration;

use axum::Router;
use recibo_core::id::Namespace;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::app::App;
use crate::connection::{Admission, Connections, Peer, converse};
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

/// Where a service listens. On the Unix socket a request without an API key has the roles `adapter`
/// and `reader` in the namespace `default`, so whoever may open the socket must be trusted with
/// those, and a connection may be idle for as long as it likes.
#[derive(Debug, Default)]
pub struct Listeners {
    /// For everybody who has an API key.
    pub tcp: Option<TcpListener>,
    /// For the processes of the folder's owner.
    pub unix: Option<UnixListener>,
}

impl From<TcpListener> for Listeners {
    fn from(listener: TcpListener) -> Self {
        Self { tcp: Some(listener), unix: None }
    }
}

/// Serves until `shutdown` is done, then finishes what is in flight: requests that wait for a
/// decision are answered at once, others have [`crate::Settings::grace_ms`], and connections
/// without a request in flight are closed. The store stays open; closing it is the caller's.
///
/// # Errors
/// [`ServeError::LedgerStopped`] if the store stopped first, whatever the reason.
pub async fn serve(
    listeners: impl Into<Listeners>,
    app: App,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let listeners = listeners.into();
    let connections = app.connections();
    let ended = tokio::select! {
        never = accept_tcp(listeners.tcp.as_ref(), &app) => match never {},
        never = accept_unix(listeners.unix.as_ref(), &app) => match never {},
        never = tick(&app) => match never {},
        () = shutdown => Ok(()),
        () = app.store().ended() => Err(ServeError::LedgerStopped),
    };
    drop(listeners);
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

async fn accept_tcp(listener: Option<&TcpListener>, app: &App) -> Infallible {
    let Some(listener) = listener else { return pending().await };
    let router = router(app.clone());
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                // Answers are small and complete; nothing follows that they could be sent with.
                // An error here costs latency, no more.
                let _ = stream.set_nodelay(true);
                take_in(stream, address.ip().into(), app, &router).await;
            }
            Err(error) => cannot_accept(&error, app.connections()).await,
        }
    }
}

async fn accept_unix(listener: Option<&UnixListener>, app: &App) -> Infallible {
    let Some(listener) = listener else { return pending().await };
    let router = router(app.clone());
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let peer = Peer::process(stream.peer_cred().ok().and_then(|peer| peer.pid()));
                take_in(stream, peer, app, &router).await;
            }
            Err(error) => cannot_accept(&error, app.connections()).await,
        }
    }
}

async fn take_in<S>(stream: S, peer: Peer, app: &App, router: &Router)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let Admission::Granted(ticket, made_room) = app.connections().admit(peer) else { return };
    let limits = app.settings().limits;
    tokio::spawn(converse(stream, ticket, router.clone(), limits, app.stopping()));
    if let Some(gone) = made_room {
        // So that a storm of connections does not outrun the ends of those before it. The
        // error says that it is gone.
        let _ = gone.await;
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
