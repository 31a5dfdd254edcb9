//! A ledger behind a running service.

use std::fmt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderValue, IF_MATCH};
use reqwest::{Client, Url};
use zeroize::Zeroizing;

use super::{Answer, ClientError, Request};

const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// Whether a service on this machine lives is seen at once or never.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// What the address of a socket begins with; its path follows.
pub const UNIX: &str = "unix:";
/// Requests over a socket have a host all the same.
const SOCKET_URL: &str = "http://localhost";

/// A service and the API key to use there. Clones share its connections.
#[derive(Clone)]
pub struct Service {
    client: Client,
    /// Without a slash at the end.
    url: String,
    /// What people know it by.
    name: String,
    authorization: Option<HeaderValue>,
    /// Held, never used: a service that was started on demand ends once nobody is connected.
    presence: Option<Arc<UnixStream>>,
}

/// Without the API key.
impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("url", &self.name).finish_non_exhaustive()
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
        Self::new(client(Reach::Far)?, url, api_key)
    }

    /// A service that runs on a data folder of this machine: no proxy stands before it.
    ///
    /// # Errors
    /// [`ClientError::BadApiKey`] or [`ClientError::NoClient`].
    pub fn nearby(url: &str, api_key: &str) -> Result<Self, ClientError> {
        Self::new(client(Reach::Near)?, url, api_key)
    }

    /// The service that listens on a Unix socket. A service in a data folder needs no API key there
    /// for what the roles `adapter` and `reader` permit. A connection is held as long as a clone of
    /// this lives.
    ///
    /// # Errors
    /// [`ClientError::NoAnswer`] where nobody listens, [`ClientError::BadApiKey`] or
    /// [`ClientError::NoClient`].
    pub fn on_socket(path: &Path, api_key: Option<&str>) -> Result<Self, ClientError> {
        let name = format!("{UNIX}{}", path.display());
        let presence = UnixStream::connect(path).map_err(|error| ClientError::NoAnswer {
            url: name.clone(),
            cause: error.to_string(),
        })?;
        Ok(Self {
            client: client(Reach::Socket(path))?,
            url: SOCKET_URL.to_owned(),
            name,
            authorization: api_key.map(bearer).transpose()?,
            presence: Some(Arc::new(presence)),
        })
    }

    /// The connection that is held to a service on a Unix socket.
    pub fn presence(&self) -> Option<&UnixStream> {
        self.presence.as_deref()
    }

    fn new(client: Client, url: &str, api_key: &str) -> Result<Self, ClientError> {
        let url = url.trim_end_matches('/').to_owned();
        let authorization = Some(bearer(api_key)?);
        Ok(Self { client, name: url.clone(), url, authorization, presence: None })
    }

    /// Sends a request, once.
    ///
    /// # Errors
    /// Where no answer came, or one that is no success.
    pub async fn call(&self, request: Request) -> Result<Answer, ClientError> {
        let mut builder = self
            .client
            .request(request.method, format!("{}{}", self.url, request.path))
            .timeout(request.patience);
        if let Some(authorization) = &self.authorization {
            builder = builder.header(AUTHORIZATION, authorization.clone());
        }
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
        ClientError::NoAnswer { url: self.name.clone(), cause }
    }
}

/// Whether a service of ours answers at an address of this machine.
pub async fn is_alive(url: &str) -> bool {
    let Ok(client) = client(Reach::Near) else { return false };
    let request = client.get(format!("{url}/livez")).timeout(PROBE_PATIENCE);
    request.send().await.is_ok_and(|response| response.status().is_success())
}

/// How a service is reached.
#[derive(Clone, Copy)]
enum Reach<'a> {
    /// As the system says, through a proxy perhaps.
    Far,
    /// On this machine.
    Near,
    /// By a Unix socket.
    Socket(&'a Path),
}

fn client(reach: Reach<'_>) -> Result<Client, ClientError> {
    // An error says that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_PATIENCE)
        // An answer from elsewhere is no answer of this ledger, and the key must not travel.
        .redirect(reqwest::redirect::Policy::none());
    match reach {
        Reach::Far => {}
        Reach::Near => builder = builder.no_proxy(),
        // Nobody is asked there for certificates, and reading those of the system takes time.
        Reach::Socket(path) => {
            builder = builder.no_proxy().unix_socket(path).tls_certs_only([]);
        }
    }
    builder.build().map_err(|error| ClientError::NoClient { cause: error.to_string() })
}

fn bearer(api_key: &str) -> Result<HeaderValue, ClientError> {
    let bearer = Zeroizing::new(format!("Bearer {api_key}"));
    let mut authorization = HeaderValue::from_str(&bearer).map_err(|_| ClientError::BadApiKey)?;
    authorization.set_sensitive(true);
    Ok(authorization)
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
