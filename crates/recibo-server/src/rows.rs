//! All rows of a listing as `application/x-ndjson`: one call per line, and a last line that
//! says that nothing is missing. Read in short snapshots, so that a slow reader pins no space.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use http_body_util::channel::{Channel, Sender};
use recibo_core::limits;
use recibo_store::{CallPage, Snapshot};
use serde_json::json;

use crate::answer;
use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::show;

const NDJSON: &str = "application/x-ndjson";
/// Pages that may wait for a slow reader.
const BUFFERED_PAGES: usize = 2;

/// Reads the page that begins at a position.
pub(crate) type Fetch = dyn Fn(&Snapshot, u64) -> Result<CallPage, Failure> + Send + Sync;

/// Rows of one page.
pub(crate) const PAGE_SIZE: usize = limits::PAGE_SIZE_MAX;

/// Whether the caller asks for rows.
pub(crate) fn are_wanted(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .filter_map(|kind| kind.split(';').next())
        .any(|kind| kind.trim().eq_ignore_ascii_case(NDJSON))
}

/// Sends all rows of what was in the ledger when it was asked for. Without the last line the
/// answer is not whole.
pub(crate) async fn stream(
    app: App,
    caller: Caller,
    from: u64,
    fetch: Arc<Fetch>,
) -> Result<Response, Failure> {
    let place = app.stream()?;
    let size = app.store().size();
    let first = page(&app, from, &fetch).await?;
    let (mut sender, channel) = Channel::<Bytes, Failure>::new(BUFFERED_PAGES);
    tokio::spawn(async move {
        let _place = place;
        let sent = tokio::select! {
            sent = send(&app, first, size, fetch, &mut sender) => sent,
            ended = caller.ended(&app) => Err(ended),
        };
        if let Err(failure) = sent {
            tracing::warn!(reason = failure.0.code.as_str(), "a listing breaks off");
            sender.abort(failure);
        }
    });
    let mut response = answer::bare(StatusCode::OK);
    *response.body_mut() = Body::new(channel);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(NDJSON));
    Ok(response)
}

async fn page(app: &App, from: u64, fetch: &Arc<Fetch>) -> Result<CallPage, Failure> {
    let fetch = fetch.clone();
    app.read(move |snapshot| fetch(snapshot, from)).await
}

/// Sends page after page. Answers why it breaks off, if it does.
async fn send(
    app: &App,
    mut rows: CallPage,
    size: u64,
    fetch: Arc<Fetch>,
    sender: &mut Sender<Bytes, Failure>,
) -> Result<(), Failure> {
    let mut count = 0_u64;
    loop {
        let mut bytes = Vec::new();
        // What came after the question is not part of the answer.
        let old = rows.calls.iter().filter(|call| call.first_seq() < size);
        for call in old {
            count += 1;
            serde_json::to_writer(&mut bytes, &show::call(call)).expect("calls have a JSON form");
            bytes.push(b'\n');
        }
        let next = rows.next.filter(|next| *next < size);
        if next.is_none() {
            let last_seq = size.checked_sub(1);
            let end = json!({"_end": true, "count": count, "last_seq": last_seq});
            bytes.extend_from_slice(end.to_string().as_bytes());
            bytes.push(b'\n');
        }
        if sender.send_data(bytes.into()).await.is_err() {
            // The reader has gone away.
            return Ok(());
        }
        let Some(next) = next else { return Ok(()) };
        rows = page(app, next, &fetch).await?;
    }
}
