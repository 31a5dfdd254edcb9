//! The receipts of a run as a block of text, for the end of a message.

use std::fmt::Write;

use axum::extract::State;
use axum::http::StatusCode;
use recibo_api::Action;
use recibo_core::id::ScopeId;
use recibo_core::visible::visible;
use recibo_store::ReceiptLine;

use super::runs;
use crate::answer::{self, Answer};
use crate::app::App;
use crate::caller::Caller;
use crate::path::Ids;
use crate::problems::problems;
use crate::query::Query;

problems!(Problems: KEYED, IDS; RunNotFound);

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
    app.read(move |snapshot| {
        let lines = snapshot.receipts(&caller.namespace, &run_id, scope_id.as_ref())?;
        let lines = lines.ok_or_else(runs::not_found)?;
        Ok(if lines.is_empty() {
            answer::bare(StatusCode::NO_CONTENT)
        } else {
            answer::text(block(&lines))
        })
    })
    .await
}

fn block(lines: &[ReceiptLine]) -> String {
    let mut block = String::from("---\nTool receipts:");
    for line in lines {
        let tool = visible(line.tool.as_str());
        write!(block, "\n  {tool}: {}", line.token).expect("a string takes all text");
    }
    block
}

#[cfg(test)]
mod tests {
    use recibo_core::id::ToolName;
    use recibo_core::receipt::Token;

    use super::*;

    #[test]
    fn a_hidden_character_in_an_old_tool_name_is_spelled_out() {
        let tool = ToolName::stored("pay\u{202e}tnem").expect("it was taken once");
        let token = Token { epoch: 1, digest: [7; 32] };
        let line = format!("\n  pay\\u{{202e}}tnem: {token}");
        assert!(block(&[ReceiptLine { tool, token }]).ends_with(&line));
    }
}
