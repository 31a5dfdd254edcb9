//! Whole calls.

use axum::extract::State;
use axum::http::header::IF_NONE_MATCH;
use axum::http::{HeaderMap, StatusCode};
use recibo_api::answer::Call;
use recibo_api::{Action, Code};
use recibo_core::id::{CallRef, Namespace};

use crate::answer::{self, Answer};
use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::path::Ids;
use crate::problems::problems;
use crate::query::NoQuery;
use crate::show;

problems!(Problems: KEYED, IDS; CallNotFound);

/// Read a call with all its attempts
#[utoipa::path(
    get, path = "/v1/runs/{run_id}/calls/{tool_call_id}", operation_id = "get_call", tag = "calls",
    params(
        ("run_id" = String, Path), ("tool_call_id" = String, Path),
        ("if-none-match" = Option<String>, Header, description = "An ETag that is known")
    ),
    responses(
        (status = 200, description = "The call", body = Call,
            headers(("etag" = String, description = "Changes with the call"))),
        (status = 304, description = "The call is as it was"),
        Problems
    ),
    security(("api_key" = []))
)]
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    ids: Ids,
    _: NoQuery,
    headers: HeaderMap,
) -> Answer {
    let call = ids.call()?;
    caller.may(Action::Read)?;
    app.read(move |snapshot| {
        let view = snapshot.call(&caller.namespace, &call)?.ok_or_else(not_found)?;
        let response = if is_known(&headers, &view.etag) {
            answer::bare(StatusCode::NOT_MODIFIED)
        } else {
            answer::ok(&show::call(&view))
        };
        Ok(answer::with_etag(response, &view.etag))
    })
    .await
}

/// Whether the caller has this version. Compared weakly, as RFC 9110 13.1.2 wants it.
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || tag.trim_start_matches("W/").trim_matches('"') == etag)
}

/// A call as a write has left it, with its decision.
pub(super) async fn with_decision(
    app: &App,
    namespace: Namespace,
    call: CallRef,
    ask_again_ms: Option<u64>,
) -> Answer {
    app.read(move |snapshot| {
        let view = snapshot.call(&namespace, &call)?.ok_or_else(not_found)?;
        let shown = show::call_and_decision(&view, ask_again_ms);
        let response = answer::with_retry_after(answer::ok(&shown), shown.retry_after_ms);
        Ok(answer::with_etag(response, &view.etag))
    })
    .await
}

fn not_found() -> Failure {
    Failure::new(Code::CallNotFound, "no such call")
}
