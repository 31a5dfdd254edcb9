//! One debug line per request, and a guard against panics of handlers. The line has the
//! matched route, never the path: ids are the caller's.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower::{Layer, Service};

use crate::failure::Failure;

/// Wraps every route. A service of its own, since the ready-made ones box each request.
#[derive(Clone, Copy)]
pub(crate) struct Trace;

impl<S> Layer<S> for Trace {
    type Service = Traced<S>;

    fn layer(&self, inner: S) -> Traced<S> {
        Traced(inner)
    }
}

/// A route with its trace.
#[derive(Clone)]
pub(crate) struct Traced<S>(S);

impl<S: Service<Request, Response = Response>> Service<Request> for Traced<S> {
    type Response = Response;
    type Error = S::Error;
    type Future = Tracing<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let line = tracing::enabled!(tracing::Level::DEBUG).then(|| Line {
            method: request.method().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
            begun: Instant::now(),
        });
        Tracing { inner: self.0.call(request), line }
    }
}

struct Line {
    method: Method,
    route: Option<MatchedPath>,
    begun: Instant,
}

pin_project! {
    /// A request under way.
    pub(crate) struct Tracing<F> {
        #[pin]
        inner: F,
        line: Option<Line>,
    }
}

impl<F: Future<Output = Result<Response, E>>, E> Future for Tracing<F> {
    type Output = Result<Response, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // A handler that panicked is not polled again, so nothing sees what it left behind.
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| this.inner.poll(context)));
        let response = match polled {
            Ok(poll) => ready!(poll)?,
            Err(_) => Failure::internal().into_response(),
        };
        if let Some(line) = this.line.take() {
            tracing::debug!(
                method = line.method.as_str(),
                route = line.route.as_ref().map_or("-", MatchedPath::as_str),
                status = response.status().as_u16(),
                elapsed_ms = u64::try_from(line.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
                "request"
            );
        }
        Poll::Ready(Ok(response))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::{Router, routing};
    use tower::ServiceExt;

    use super::*;

    async fn breaks() -> Response {
        panic!("MARK")
    }

    #[tokio::test]
    async fn a_handler_that_panics_is_answered_for() {
        let router = Router::<()>::new().route("/", routing::get(breaks)).layer(Trace);
        let response = router.oneshot(Request::new(Body::empty())).await.unwrap();
        assert_eq!(response.status().as_u16(), 500);
        let body = axum::body::to_bytes(response.into_body(), 1000).await.unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        assert!(text.contains("\"internal\"") && !text.contains("MARK"), "{text}");
    }
}
