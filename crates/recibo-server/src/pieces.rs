//! Answers that are sent piece by piece. Each piece is read from a short snapshot of its own, so
//! that a slow reader pins no space, and is made on a thread that may block.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use http_body_util::channel::{Channel, Sender};
use recibo_store::Snapshot;
use tokio::sync::OwnedSemaphorePermit;

use crate::answer;
use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;

/// Pieces that may wait for a slow reader.
const BUFFERED: usize = 2;

/// A part of an answer.
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    /// How many rows are in it.
    pub(crate) rows: u64,
    /// Where the next piece begins; `None` for the last one.
    pub(crate) next: Option<u64>,
}

/// Makes the piece that begins at a position.
pub(crate) type Fetch = dyn Fn(&Snapshot, u64) -> Result<Piece, Failure> + Send + Sync;

/// Reads one piece.
pub(crate) async fn read(app: &App, from: u64, fetch: &Arc<Fetch>) -> Result<Piece, Failure> {
    let fetch = fetch.clone();
    app.read(move |snapshot| fetch(snapshot, from)).await
}

/// Sends a piece, all that follow it, and what `end` makes of the number of rows. Breaks off,
/// so that the client sees an answer that is not whole, if one cannot be read or the API key
/// ends.
pub(crate) fn send(
    app: App,
    caller: Caller,
    place: OwnedSemaphorePermit,
    kind: &'static str,
    first: Piece,
    fetch: Arc<Fetch>,
    end: impl FnOnce(u64) -> Vec<u8> + Send + 'static,
) -> Response {
    let (mut sender, channel) = Channel::<Bytes, Failure>::new(BUFFERED);
    tokio::spawn(async move {
        let _place = place;
        let sent = tokio::select! {
            sent = send_to(&app, first, fetch, end, &mut sender) => sent,
            ended = caller.ended(&app) => Err(ended),
        };
        if let Err(failure) = sent {
            tracing::warn!(reason = failure.0.code.as_str(), "a listing breaks off");
            sender.abort(failure);
        }
    });
    let mut response = answer::bare(StatusCode::OK);
    *response.body_mut() = Body::new(channel);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Answers why it breaks off, if it does.
async fn send_to(
    app: &App,
    mut piece: Piece,
    fetch: Arc<Fetch>,
    end: impl FnOnce(u64) -> Vec<u8>,
    sender: &mut Sender<Bytes, Failure>,
) -> Result<(), Failure> {
    let mut rows = 0;
    loop {
        rows += piece.rows;
        let Some(next) = piece.next else {
            piece.bytes.extend_from_slice(&end(rows));
            // An error says that the reader has gone away.
            let _ = sender.send_data(piece.bytes.into()).await;
            return Ok(());
        };
        if !piece.bytes.is_empty() && sender.send_data(piece.bytes.into()).await.is_err() {
            return Ok(());
        }
        piece = read(app, next, &fetch).await?;
    }
}
