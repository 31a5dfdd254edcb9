//! Request bodies: read up to a limit, judged by their media type, and parsed where parsing
//! does no harm to others. Their bytes go nowhere else.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use axum::http::{HeaderMap, HeaderValue};
use http_body_util::BodyExt;
use recibo_api::{Code, Problem};
use recibo_core::limits;
use tokio::time::{sleep, timeout};

use crate::app::{App, blocking};
use crate::connection::Told;
use crate::failure::Failure;
use crate::limits::{BODY_TIME_AT_STOP, DRAIN_BYTES_MAX, DRAIN_TIME_MAX};

/// Bodies up to this size are parsed and hashed where they arrive. At about 21 us per KiB a
/// larger one would hold up the other requests of its thread for more than a millisecond.
const INLINE_BYTES_MAX: usize = 64 << 10;

/// A body that is JSON, or empty.
pub(crate) struct JsonBody(Bytes);

/// As [`JsonBody`], with room for results: of outcomes, one-shots and batches.
pub(crate) struct ResultBody(pub(crate) JsonBody);

impl JsonBody {
    /// Parses the body, a large one on a blocking thread.
    pub(crate) async fn parse<T: Send + 'static>(
        self,
        parse: impl FnOnce(&[u8]) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Failure> {
        if self.0.len() <= INLINE_BYTES_MAX {
            return Ok(parse(&self.0)?);
        }
        blocking(move || Ok(parse(&self.0)?)).await
    }
}

impl FromRequest<App> for JsonBody {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Self, Failure> {
        read(app, request, limits::BODY_BYTES_MAX).await
    }
}

impl FromRequest<App> for ResultBody {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Self, Failure> {
        read(app, request, limits::BATCH_BYTES_MAX).await.map(Self)
    }
}

/// Why a body was not read to its end.
enum Unread {
    TooLarge,
    /// It did not go on arriving.
    Slow,
    /// It was not here when the service was asked to stop.
    Stopping,
    /// The connection broke: nobody reads the answer.
    Broken,
}

async fn read(app: &App, request: Request, bytes_max: usize) -> Result<JsonBody, Failure> {
    let (parts, mut body) = request.into_parts();
    if stated_length(&parts.headers).is_some_and(|bytes| bytes > bytes_max as u64) {
        // Who asks first gets the answer without sending anything.
        if !parts.headers.contains_key(EXPECT) {
            drain(app, body).await;
        }
        return Err(too_large(bytes_max));
    }
    let collected = tokio::select! {
        collected = collect(&mut body, bytes_max, app.settings().limits.stall) => collected,
        () = late(app) => Err(Unread::Stopping),
    };
    let bytes = match collected {
        Ok(bytes) => bytes,
        Err(unread) => {
            if matches!(unread, Unread::TooLarge) {
                drain(app, body).await;
            }
            return Err(told(app, unread, bytes_max));
        }
    };
    let is_json = match parts.headers.get(CONTENT_TYPE) {
        None => bytes.is_empty(),
        Some(kind) => is_json(kind),
    };
    if is_json { Ok(JsonBody(bytes)) } else { Err(unsupported()) }
}

fn stated_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads a body to its end. A body of one piece is not copied.
async fn collect(body: &mut Body, bytes_max: usize, stall: Duration) -> Result<Bytes, Unread> {
    let mut first = Bytes::new();
    let mut whole = Vec::new();
    loop {
        // Without a timer as long as bytes are here.
        let frame = match timeout(stall, body.frame()).await {
            Err(_) => return Err(Unread::Slow),
            Ok(Some(Err(_))) => return Err(Unread::Broken),
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => return Ok(if whole.is_empty() { first } else { whole.into() }),
        };
        let Ok(bytes) = frame.into_data() else { continue };
        let length = if whole.is_empty() { first.len() } else { whole.len() };
        if bytes.len() > bytes_max - length {
            return Err(Unread::TooLarge);
        }
        if length == 0 {
            first = bytes;
        } else {
            if whole.is_empty() {
                whole.extend_from_slice(&first);
            }
            whole.extend_from_slice(&bytes);
        }
    }
}

/// Takes in what is on its way, up to a bound. If the connection were closed over unread bytes
/// the client would see a reset instead of the answer.
async fn drain(app: &App, mut body: Body) {
    let drained = async {
        let mut left = DRAIN_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            left = left.saturating_sub(length);
            if left == 0 || body.is_end_stream() {
                break;
            }
        }
    };
    tokio::select! {
        // The answer is the same in any case.
        _ = timeout(DRAIN_TIME_MAX, drained) => {}
        () = late(app) => {}
    }
}

/// Ends once a body should have arrived, since the service was asked to stop.
async fn late(app: &App) {
    app.stopped().await;
    sleep(BODY_TIME_AT_STOP).await;
}

fn told(app: &App, unread: Unread, bytes_max: usize) -> Failure {
    match unread {
        Unread::TooLarge => too_large(bytes_max),
        Unread::Slow => {
            app.tally().add(Told::SlowBody);
            let seconds = app.settings().limits.stall.as_secs_f32();
            let detail = format!("no byte of the body came for {seconds} s; nothing was stored");
            Failure::new(Code::BodyTimeout, detail)
        }
        Unread::Stopping => {
            Failure::new(Code::Overloaded, "the service stops; nothing was stored, try again")
        }
        Unread::Broken => Failure::new(Code::InvalidJson, "the body did not arrive whole"),
    }
}

fn too_large(bytes_max: usize) -> Failure {
    let detail =
        format!("a body here has at most {bytes_max} bytes; for a larger result send output_hash");
    Failure::new(Code::BodyTooLarge, detail)
}

fn unsupported() -> Failure {
    let detail = "the content-type of a body must be application/json, in UTF-8";
    Failure::new(Code::UnsupportedMediaType, detail)
}

/// `application/json`, with no parameter but `charset=utf-8`.
fn is_json(kind: &HeaderValue) -> bool {
    let Ok(kind) = kind.to_str() else { return false };
    let mut parts = kind.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    is_json
        && parts.filter(|part| !part.is_empty()).all(|part| {
            part.split_once('=').is_some_and(|(name, value)| {
                let value = value.trim_matches('"');
                name.eq_ignore_ascii_case("charset")
                    && (value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("utf8"))
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_in_utf_8_is_taken() {
        for good in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\"",
            "application/json;",
        ] {
            assert!(is_json(&HeaderValue::from_static(good)), "{good}");
        }
        for bad in [
            "",
            "text/json",
            "application/jsonx",
            "application/problem+json",
            "application/json; charset=latin1",
            "application/json; version=2",
        ] {
            assert!(!is_json(&HeaderValue::from_static(bad)), "{bad}");
        }
    }
}
