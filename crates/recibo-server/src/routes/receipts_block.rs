//! The receipts of a run as a block of text, for the end of a message.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use recibo_api::Action;
use recibo_core::id::ScopeId;
use recibo_core::limits::PAGE_SIZE_MAX as PAGE_SIZE;
use recibo_core::visible::visible;
use recibo_store::{ReceiptPage, Snapshot};

use super::runs;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::caller::Caller;
use crate::path::Ids;
use crate::pieces::{self, Piece};
use crate::problems::problems;
use crate::query::Query;

problems!(Problems: KEYED, IDS; RunNotFound, Overloaded);

const HEAD: &[u8; 18] = b"---\nTool receipts:";

/// Read a run's receipts as a block of text
#[utoipa::path(
    get, path = "/v1/runs/{run_id}/receipts-block", operation_id = "get_receipts_block",
    tag = "runs",
    params(
        ("run_id" = String, Path),
        ("scope_id" = Option<String>, Query, description = "Only what this scope signed")
    ),
    responses(
        (status = 200, description = "The block", body = String, content_type = "text/plain"),
        (status = 204, description = "There is nothing to show"),
        Problems
    ),
    security(("api_key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, ids: Ids, query: Query) -> Answer {
    let run_id = ids.run_id()?;
    let [scope_id] = query.take(["scope_id"])?;
    let scope_id = scope_id.as_deref().map(ScopeId::parse).transpose()?;
    caller.may(Action::Read)?;
    let size = app.store().size();
    let namespace = caller.namespace.clone();
    let fetch: Arc<pieces::Fetch> = Arc::new(move |snapshot: &Snapshot, from| {
        let page = snapshot.receipts(&namespace, &run_id, scope_id.as_ref(), from, PAGE_SIZE)?;
        Ok(piece(&page.ok_or_else(runs::not_found)?, size))
    });
    let mut first = pieces::read(&app, 0, &fetch).await?;
    while let (true, Some(next)) = (first.bytes.is_empty(), first.next) {
        first = pieces::read(&app, next, &fetch).await?;
    }
    if first.bytes.is_empty() {
        return Ok(answer::bare(StatusCode::NO_CONTENT));
    }
    first.bytes.splice(..0, *HEAD);
    if first.next.is_none() {
        return Ok(answer::text(first.bytes));
    }
    let place = app.stream()?;
    Ok(pieces::send(app, caller, place, answer::TEXT, first, fetch, |_| Vec::new()))
}

/// What came after the question is not part of the answer.
fn piece(page: &ReceiptPage, size: u64) -> Piece {
    let mut lines = String::new();
    let next = page.next.filter(|next| *next < size);
    for line in page.lines.iter().filter(|line| line.first_seq < size) {
        let tool = visible(line.tool.as_str());
        write!(lines, "\n  {tool}: {}", line.token).expect("a string takes all text");
    }
    Piece { bytes: lines.into(), rows: 0, next }
}

#[cfg(test)]
mod tests {
    use recibo_core::id::ToolName;
    use recibo_core::receipt::Token;
    use recibo_store::ReceiptLine;

    use super::*;

    #[test]
    fn a_hidden_character_in_an_old_tool_name_is_spelled_out() {
        let tool = ToolName::stored("pay\u{202e}tnem").expect("it was taken once");
        let token = Token { epoch: 1, digest: [7; 32] };
        let line = format!("\n  pay\\u{{202e}}tnem: {token}");
        let lines = vec![ReceiptLine { first_seq: 0, tool, token }];
        let piece = piece(&ReceiptPage { lines, next: None }, 1);
        assert_eq!(piece.bytes, line.into_bytes());
    }
}
