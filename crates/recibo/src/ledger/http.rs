//! A ledger behind a running service.

use std::time::Duration;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderValue, IF_MATCH};
use reqwest::{Client, Url};
use zeroize::Zeroizing;

use super::{Answer, Request};
use crate::failure::Failure;

const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// Whether a service on this machine lives is seen at once or never.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// A service and the API key to use there.
pub struct Service {
    client: Client,
    /// Without a slash at the end.
    url: String,
    authorization: HeaderValue,
}

impl Service {
    /// A service at an address that a person gave.
    pub fn at(url: &str, api_key: &str) -> Result<Self, Failure> {
        let parsed = Url::parse(url).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.has_host()
        });
        if parsed.is_none() {
            return Err(Failure::usage(format!("`{url}` is no http:// or https:// address")));
        }
        Self::new(client(false)?, url, api_key)
    }

    /// A service that runs on a data folder of this machine.
    pub fn nearby(url: &str, api_key: &str) -> Result<Self, Failure> {
        Self::new(client(true)?, url, api_key)
    }

    fn new(client: Client, url: &str, api_key: &str) -> Result<Self, Failure> {
        let bearer = Zeroizing::new(format!("Bearer {api_key}"));
        let mut authorization = HeaderValue::from_str(&bearer)
            .map_err(|_| Failure::usage("the API key file does not hold an API key"))?;
        authorization.set_sensitive(true);
        Ok(Self { client, url: url.trim_end_matches('/').to_owned(), authorization })
    }

    /// Sends a request.
    pub async fn call(&self, request: Request) -> Result<Answer, Failure> {
        let mut builder = self
            .client
            .request(request.method, format!("{}{}", self.url, request.path))
            .header(AUTHORIZATION, self.authorization.clone())
            .timeout(request.patience);
        if let Some(tag) = request.if_match {
            builder = builder.header(IF_MATCH, tag);
        }
        if let Some(body) = request.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body);
        }
        let response = builder.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status().as_u16();
        let etag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
        let etag = etag.map(str::to_owned);
        let body = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        Ok(Answer { status, etag, body: String::from_utf8_lossy(&body).into_owned() })
    }

    /// The innermost cause says most; the outer ones repeat the address.
    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let what = if error.is_timeout() { "no answer in time".into() } else { cause.to_string() };
        Failure::Unreachable {
            detail: format!("cannot reach the service at {}: {what}", self.url),
            advice: "see whether the service runs and whether the address is right".into(),
        }
    }
}

/// Whether a service of ours answers at an address of this machine.
pub async fn is_alive(url: &str) -> bool {
    let Ok(client) = client(true) else { return false };
    let request = client.get(format!("{url}/livez")).timeout(PROBE_PATIENCE);
    request.send().await.is_ok_and(|response| response.status().is_success())
}

fn client(is_nearby: bool) -> Result<Client, Failure> {
    // An error says that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_PATIENCE)
        // An answer from elsewhere is no answer of this ledger, and the key must not travel.
        .redirect(reqwest::redirect::Policy::none());
    if is_nearby {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| Failure::said(format!("no HTTP client: {error}")))
}
