//! A ledger opened in this process. Requests go through the service's own router, so that
//! every rule, role and refusal is the same as over the wire.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, IF_MATCH};
use recibo_api::client::Answer;
use recibo_server::{App, Settings, router};
use recibo_store::Store;
use tower::ServiceExt;
use zeroize::Zeroizing;

use super::Request;
use crate::data;
use crate::failure::Failure;

/// A store of this process behind a router.
pub struct Embedded {
    store: Store,
    router: Router,
    api_key: Zeroizing<String>,
}

impl Embedded {
    /// Puts a router before an open store.
    pub fn new(store: Store, api_key: Zeroizing<String>) -> Self {
        let app = App::new(store.clone(), Settings::default(), data::entropy());
        Self { store, router: router(app), api_key }
    }

    /// Sends a request.
    pub async fn call(&self, request: Request) -> Result<Answer, Failure> {
        let response = self.router.clone().oneshot(self.build(request)?).await;
        let response = response.unwrap_or_else(|never| match never {});
        let status = response.status().as_u16();
        let etag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
        let etag = etag.map(str::to_owned);
        let body = to_bytes(response.into_body(), usize::MAX)
            .await
            .map_err(|error| Failure::said(format!("the answer broke off: {error}")))?;
        Ok(Answer { status, etag, body: String::from_utf8_lossy(&body).into_owned() })
    }

    fn build(&self, request: Request) -> Result<http::Request<Body>, Failure> {
        let bearer = format!("Bearer {}", *self.api_key);
        let mut builder = http::Request::builder()
            .method(request.method)
            .uri(request.path)
            .header(AUTHORIZATION, bearer);
        if let Some(tag) = request.if_match {
            builder = builder.header(IF_MATCH, tag);
        }
        let body = match request.body {
            Some(body) => {
                builder = builder.header(CONTENT_TYPE, "application/json");
                Body::from(body)
            }
            None => Body::empty(),
        };
        builder.body(body).map_err(|error| Failure::usage(format!("no request: {error}")))
    }

    /// Closes the store.
    pub async fn close(self) {
        let store = self.store;
        // A panic in there has been printed, and what was answered is durable.
        let _ = tokio::task::spawn_blocking(move || store.close()).await;
    }
}
