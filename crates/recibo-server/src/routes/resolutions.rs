//! An operator's word on a call.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::IF_MATCH;
use recibo_api::answer::CallAnswer;
use recibo_api::request::ResolutionRequest;
use recibo_api::{Action, Code, body};

use super::calls;
use crate::answer::Answer;
use crate::app::App;
use crate::body::JsonBody;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::path::Ids;
use crate::problems::problems;
use crate::query::NoQuery;

problems!(Problems: KEYED, IDS, BODY, WRITE;
    CallNotFound, LeaseLive, NothingToResolve, VersionMismatch, IfMatchRequired);

/// Resolve a call
///
/// Settles all attempts so far. Needs the ETag of the call as it was read. A state that rests on
/// a resolution alone is resolved again by naming that one in `corrects`.
#[utoipa::path(
    post, path = "/v1/runs/{run_id}/calls/{tool_call_id}/resolution",
    operation_id = "resolve_call", tag = "calls",
    params(
        ("run_id" = String, Path), ("tool_call_id" = String, Path),
        ("if-match" = String, Header, description = "The call's ETag")
    ),
    request_body = ResolutionRequest,
    responses(
        (status = 200, description = "The call and its decision", body = CallAnswer),
        Problems
    ),
    security(("api_key" = []))
)]
pub(crate) async fn resolve(
    State(app): State<App>,
    caller: Caller,
    ids: Ids,
    _: NoQuery,
    headers: HeaderMap,
    body: JsonBody,
) -> Answer {
    let call = ids.call()?;
    let (target, by) = (call.clone(), caller.by());
    let resolution =
        body.parse(move |bytes| body::read::<ResolutionRequest>(bytes)?.parse(target, &by)).await?;
    caller.may(Action::Resolve)?;
    let etag = headers.get(IF_MATCH).ok_or_else(|| {
        Failure::new(Code::IfMatchRequired, "read the call and send its ETag as If-Match")
    })?;
    // What is no text is no tag of ours either.
    let etag = etag.to_str().unwrap_or_default().to_owned();
    app.store().resolve(&caller.namespace, resolution, etag).await?;
    calls::with_decision(&app, caller.namespace, call, None).await
}
