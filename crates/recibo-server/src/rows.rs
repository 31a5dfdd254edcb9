//! All rows of a listing as `application/x-ndjson`: one call per line, and a last line that
//! says that nothing is missing.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::response::Response;
use recibo_core::limits;
use recibo_store::{CallPage, Snapshot};
use serde_json::json;

use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::pieces::{self, Piece};
use crate::show;

const NDJSON: &str = "application/x-ndjson";

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
    page_at: impl Fn(&Snapshot, u64) -> Result<CallPage, Failure> + Send + Sync + 'static,
) -> Result<Response, Failure> {
    let place = app.stream()?;
    let size = app.store().size();
    let fetch: Arc<pieces::Fetch> =
        Arc::new(move |snapshot: &Snapshot, from| Ok(piece(&page_at(snapshot, from)?, size)));
    let first = pieces::read(&app, from, &fetch).await?;
    let end = move |count: u64| {
        let last_seq = size.checked_sub(1);
        format!("{}\n", json!({"_end": true, "count": count, "last_seq": last_seq})).into_bytes()
    };
    Ok(pieces::send(app, caller, place, NDJSON, first, fetch, end))
}

/// What came after the question is not part of the answer.
fn piece(page: &CallPage, size: u64) -> Piece {
    let next = page.next.filter(|next| *next < size);
    let mut piece = Piece { bytes: Vec::new(), rows: 0, next };
    for call in page.calls.iter().filter(|call| call.first_seq() < size) {
        piece.rows += 1;
        serde_json::to_writer(&mut piece.bytes, &show::call(call)).expect("calls have a JSON form");
        piece.bytes.push(b'\n');
    }
    piece
}
