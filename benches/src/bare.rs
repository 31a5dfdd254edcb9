//! The HTTP limit: axum and serde, and nothing behind them.
//!
//! It parses the same bodies and answers with as many bytes as the ledger does. It authenticates
//! nobody, hashes nothing, keeps nothing.

use std::io::Write as _;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;

use crate::failure::Outcome;

/// Longest answer.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Any of the three bodies: a claim, an outcome, a one-shot. `J` is what a JSON value becomes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "what is parsed is not used")]
struct Body<J> {
    run_id: Option<String>,
    tool_call_id: Option<String>,
    scope_id: Option<String>,
    claim_id: Option<String>,
    lease_token: Option<String>,
    tool: Option<String>,
    effect: Option<String>,
    status: Option<String>,
    started_at: Option<String>,
    duration_ms: Option<u64>,
    error_class: Option<String>,
    input: Option<J>,
    output: Option<J>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "what is parsed is not used")]
struct Batch<J> {
    receipts: Vec<Body<J>>,
}

fn answer<T>(parsed: Result<T, serde_json::Error>, bytes: usize) -> Response {
    static SPACES: [u8; ANSWER_BYTES_MAX] = [b' '; ANSWER_BYTES_MAX];
    match parsed {
        Ok(_) => {
            let body = Bytes::from_static(&SPACES[..bytes.min(ANSWER_BYTES_MAX)]);
            ([(CONTENT_TYPE, "application/json")], body).into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

async fn one(Path(bytes): Path<usize>, body: Bytes) -> Response {
    answer(serde_json::from_slice::<Body<serde_json::Value>>(&body), bytes)
}

async fn batch(Path(bytes): Path<usize>, body: Bytes) -> Response {
    answer(serde_json::from_slice::<Batch<serde_json::Value>>(&body), bytes)
}

async fn one_raw(Path(bytes): Path<usize>, body: Bytes) -> Response {
    answer(serde_json::from_slice::<Body<Box<RawValue>>>(&body), bytes)
}

async fn batch_raw(Path(bytes): Path<usize>, body: Bytes) -> Response {
    answer(serde_json::from_slice::<Batch<Box<RawValue>>>(&body), bytes)
}

/// Serves until killed; prints its address first.
pub async fn serve() -> Outcome<()> {
    let router = Router::new()
        .route("/one/{bytes}", post(one))
        .route("/batch/{bytes}", post(batch))
        .route("/one-raw/{bytes}", post(one_raw))
        .route("/batch-raw/{bytes}", post(batch_raw))
        .route("/empty", get(|| async {}))
        .layer(DefaultBodyLimit::disable());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut out = std::io::stdout();
    writeln!(out, "bare listening on http://{}", listener.local_addr()?)?;
    out.flush()?;
    // As the service does.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, router).await?)
}
