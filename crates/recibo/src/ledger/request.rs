//! Requests and answers, the same for every transport.

use std::time::Duration;

use axum::http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;

/// What RFC 3986 never gives a meaning to; all else in an id is data and is escaped.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How long an answer may take beyond what the request itself waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request to a ledger.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Path and query, escaped.
    pub path: String,
    /// The version of the call that the caller has seen.
    pub if_match: Option<String>,
    /// A JSON document.
    pub body: Option<String>,
    /// How long the answer may take.
    pub patience: Duration,
}

impl Request {
    fn new(method: Method, segments: &[&str]) -> Self {
        let mut path = String::from("/v1");
        for segment in segments {
            path.push('/');
            path.extend(utf8_percent_encode(segment, ESCAPED));
        }
        Self { method, path, if_match: None, body: None, patience: PATIENCE }
    }

    /// Reads; the segments come after `/v1` and are escaped here.
    pub fn get(segments: &[&str]) -> Self {
        Self::new(Method::GET, segments)
    }

    /// Sends a JSON document.
    pub fn post(segments: &[&str], body: &Value) -> Self {
        Self { body: Some(body.to_string()), ..Self::new(Method::POST, segments) }
    }

    /// Verifies a receipt. This path has a colon, which is not data.
    pub fn verify(body: String) -> Self {
        let path = "/v1/receipts:verify".to_owned();
        Self { path, body: Some(body), ..Self::new(Method::POST, &[]) }
    }

    /// Replaces a document.
    pub fn put(segments: &[&str], body: String) -> Self {
        Self { body: Some(body), ..Self::new(Method::PUT, segments) }
    }

    /// Takes something away.
    pub fn delete(segments: &[&str]) -> Self {
        Self::new(Method::DELETE, segments)
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.path.push(if self.path.contains('?') { '&' } else { '?' });
        self.path.push_str(name);
        self.path.push('=');
        self.path.extend(utf8_percent_encode(value, ESCAPED));
        self
    }

    /// Adds a query parameter if there is one.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Says which version of the call was seen.
    #[must_use]
    pub fn if_match(mut self, tag: String) -> Self {
        self.if_match = Some(tag);
        self
    }

    /// The ledger may let the answer wait this long.
    #[must_use]
    pub fn waiting(mut self, wait: Duration) -> Self {
        self.patience += wait;
        self
    }
}

/// An answer of a ledger.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The version of the call, with quotes.
    pub etag: Option<String>,
    /// The document.
    pub body: String,
}

impl Answer {
    /// Reads the document.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_str(&self.body).map_err(|error| {
            Failure::advised(
                format!("the answer is not what was asked for: {error}"),
                "the service may be of another version: compare `recibo --version` with /v1/config",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_provider_ids_survive_the_path() {
        let request = Request::get(&["runs", "a:b|c.d-e_f=g%h?i#j", "calls"]).with("tool", "x/y z");
        assert_eq!(request.path, "/v1/runs/a%3Ab%7Cc.d-e_f%3Dg%25h%3Fi%23j/calls?tool=x%2Fy%20z");
        let two = request.with_some("none", None).with_some("state", Some("ok"));
        assert!(two.path.ends_with("&state=ok"), "{}", two.path);
    }
}
