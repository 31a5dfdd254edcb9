//! Good answers as responses.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use serde::Serialize;

use crate::failure::Failure;

/// What every handler returns.
pub(crate) type Answer = Result<Response, Failure>;

/// Answers are about one moment and one caller.
pub(crate) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A record is about this long; growing a buffer to it would copy several times.
const JSON_BYTES_USUAL: usize = 1024;

/// A JSON document.
pub(crate) fn json(status: StatusCode, document: &impl Serialize) -> Response {
    let mut bytes = Vec::with_capacity(JSON_BYTES_USUAL);
    serde_json::to_writer(&mut bytes, document)
        .expect("answers hold only what always has a JSON form");
    let mut response = bare(status);
    *response.body_mut() = bytes.into();
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// A JSON document, status 200.
pub(crate) fn ok(document: &impl Serialize) -> Response {
    json(StatusCode::OK, document)
}

/// No body.
pub(crate) fn bare(status: StatusCode) -> Response {
    let mut response = Response::default();
    *response.status_mut() = status;
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

/// The media type of plain text.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// Plain text, status 200.
pub(crate) fn text(text: Vec<u8>) -> Response {
    let mut response = bare(StatusCode::OK);
    *response.body_mut() = text.into();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TEXT));
    response
}

/// Adds the quoted tag.
pub(crate) fn with_etag(response: Response, tag: &str) -> Response {
    with(response, ETAG, HeaderValue::try_from(format!("\"{tag}\"")).ok())
}

/// Adds when to ask again: whole seconds, rounded up, so that nobody comes too early.
pub(crate) fn with_retry_after(response: Response, ms: Option<u64>) -> Response {
    with(response, RETRY_AFTER, ms.map(|ms| HeaderValue::from(ms.div_ceil(1000))))
}

fn with(mut response: Response, name: HeaderName, value: Option<HeaderValue>) -> Response {
    if let Some(value) = value {
        response.headers_mut().insert(name, value);
    }
    response
}
