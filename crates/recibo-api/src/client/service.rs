//! A ledger behind a running service.

use std::fmt;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderValue, IF_MATCH};
use reqwest::{Client, Url};
use zeroize::Zeroizing;

use super::{Answer, ClientError, Request};

const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// Whether a service on this machine lives is seen at once or never.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// A service and the API key to use there. Clones share its connections.
#[derive(Clone)]
pub struct Service {
    client: Client,
    /// Without a slash at the end.
    url: String,
    authorization: HeaderValue,
}

/// Without the API key.
impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Service {
    /// A service at an address that a person gave, for example `http://127.0.0.1:7461`.
    ///
    /// # Errors
    /// [`ClientError::BadAddress`], [`ClientError::BadApiKey`] or [`ClientError::NoClient`].
    pub fn at(url: &str, api_key: &str) -> Result<Self, ClientError> {
        let parsed = Url::parse(url).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.has_host()
        });
        if parsed.is_none() {
            return Err(ClientError::BadAddress { url: url.to_owned() });
        }
        Self::new(client(false)?, url, api_key)
    }

    /// A service that runs on a data folder of this machine: no proxy stands before it.
    ///
    /// # Errors
    /// [`ClientError::BadApiKey`] or [`ClientError::NoClient`].
    pub fn nearby(url: &str, api_key: &str) -> Result<Self, ClientError> {
        Self::new(client(true)?, url, api_key)
    }

    fn new(client: Client, url: &str, api_key: &str) -> Result<Self, ClientError> {
        let bearer = Zeroizing::new(format!("Bearer {api_key}"));
        let mut authorization =
            HeaderValue::from_str(&bearer).map_err(|_| ClientError::BadApiKey)?;
        authorization.set_sensitive(true);
        Ok(Self { client, url: url.trim_end_matches('/').to_owned(), authorization })
    }

    /// Sends a request, once.
    ///
    /// # Errors
    /// Where no answer came, or one that is no success.
    pub async fn call(&self, request: Request) -> Result<Answer, ClientError> {
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
        let response = builder.send().await.map_err(|error| self.no_answer(&error))?;
        let status = response.status().as_u16();
        let etag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
        let etag = etag.map(str::to_owned);
        let body = response.bytes().await.map_err(|error| self.no_answer(&error))?;
        let body = String::from_utf8_lossy(&body).into_owned();
        Answer { status, etag, body }.into_success()
    }

    /// The innermost cause says most; the outer ones repeat the address.
    fn no_answer(&self, error: &reqwest::Error) -> ClientError {
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let cause = if error.is_timeout() { "no answer in time".into() } else { cause.to_string() };
        ClientError::NoAnswer { url: self.url.clone(), cause }
    }
}

/// Whether a service of ours answers at an address of this machine.
pub async fn is_alive(url: &str) -> bool {
    let Ok(client) = client(true) else { return false };
    let request = client.get(format!("{url}/livez")).timeout(PROBE_PATIENCE);
    request.send().await.is_ok_and(|response| response.status().is_success())
}

fn client(is_nearby: bool) -> Result<Client, ClientError> {
    // An error says that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_PATIENCE)
        // An answer from elsewhere is no answer of this ledger, and the key must not travel.
        .redirect(reqwest::redirect::Policy::none());
    if is_nearby {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| ClientError::NoClient { cause: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_key_is_never_shown() {
        let service = Service::at("http://127.0.0.1:1/", "rk_SECRET").unwrap();
        assert_eq!(format!("{service:?}"), r#"Service { url: "http://127.0.0.1:1", .. }"#);
        for bad in ["127.0.0.1:7461", "ftp://x", "http://x?y=1", ""] {
            assert!(matches!(Service::at(bad, "k"), Err(ClientError::BadAddress { .. })), "{bad}");
        }
        assert!(matches!(Service::nearby("http://x", "a\nb"), Err(ClientError::BadApiKey)));
    }
}
