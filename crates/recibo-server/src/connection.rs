//! Connections: how many there are, which one makes room for a new one, and how one is served.
//! Knows nothing of routes.

mod alarm;
mod refusal;
mod registry;
mod stream;
mod tally;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tower::Service;

pub(crate) use self::registry::{Admission, Connections, Peer, Ticket};
pub(crate) use self::tally::{Tally, Told};

use self::registry::Link;
use self::stream::Watched;
use crate::limits::{ConnectionLimits, HEAD_BYTES_MAX};

/// How long a process of this machine may hold a connection without a request.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Serves one connection until it ends, is closed to make room, or the service stops.
pub(crate) async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    ticket: Ticket,
    router: Router,
    mut limits: ConnectionLimits,
    mut stopping: watch::Receiver<bool>,
) {
    let Ticket { link, mut closed, _gone } = ticket;
    if link.is_local() {
        limits.idle = FOR_EVER;
    }
    let io = TokioIo::new(Watched::new(stream, link.clone(), limits));
    let service = service_fn(|request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        if link.is_local() {
            request.extensions_mut().insert(link.peer());
        }
        let response = link.begin().then(|| router.clone().call(request));
        let link = link.clone();
        async move {
            // This connection was chosen to make room a moment ago: nothing was begun.
            let Some(response) = response else { return Err(Closed) };
            let Ok(response) = response.await;
            Ok::<_, Closed>(response.map(|body| Answering { body, link }))
        }
    });
    let connection = http1::Builder::new()
        // The stream has its own, which tells a slow head from an idle connection.
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(io, service);
    let mut connection = pin!(connection);
    let mut is_last = false;
    loop {
        tokio::select! {
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(error = &error as &dyn std::error::Error, "a connection broke");
                }
                return;
            }
            // Whatever is left of it is dropped.
            _ = &mut closed => return,
            _ = stopping.wait_for(|stopping| *stopping), if !is_last => {
                connection.as_mut().graceful_shutdown();
                is_last = true;
            }
        }
    }
}

/// Ends a connection that was closed while a request arrived.
#[derive(Debug, thiserror::Error)]
#[error("the connection was closed to make room")]
struct Closed;

/// The body of an answer. With it ends what the service has to say to the request.
struct Answering {
    body: Body,
    link: Arc<Link>,
}

impl HttpBody for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.link.answered();
    }
}
