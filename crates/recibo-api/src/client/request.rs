//! Requests and answers, the same for every transport.

use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ClientError;

/// What RFC 3986 never gives a meaning to; all else in an id is data and is escaped.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How long an answer may take beyond what the request itself waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request to a ledger. It has no `Debug`: its body may hold arguments and results.
#[derive(Clone)]
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
    ///
    /// # Panics
    /// If the value has no JSON form, which the types of this crate always have.
    pub fn post(segments: &[&str], body: &impl Serialize) -> Self {
        let body = serde_json::to_string(body).expect("a request has a JSON form");
        Self { body: Some(body), ..Self::new(Method::POST, segments) }
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
    /// The answer if it has a status of success.
    ///
    /// # Errors
    /// What the error status means.
    pub fn into_success(self) -> Result<Self, ClientError> {
        if (200..300).contains(&self.status) {
            Ok(self)
        } else {
            Err(ClientError::from_answer(self.status, self.body))
        }
    }

    /// Reads the document.
    ///
    /// # Errors
    /// [`ClientError::Unreadable`] if it is of another form.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_str(&self.body)
            .map_err(|error| ClientError::Unreadable { cause: error.to_string() })
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
