//! What the outside service says of an attempt whose outcome nobody knows.

use axum::extract::State;
use recibo_api::answer::CallAnswer;
use recibo_api::request::CheckRequest;
use recibo_api::{Action, body};

use super::calls;
use crate::answer::Answer;
use crate::app::App;
use crate::body::JsonBody;
use crate::caller::Caller;
use crate::path::Ids;
use crate::problems::problems;
use crate::query::NoQuery;

problems!(Problems: KEYED, IDS, BODY, WRITE; CallNotFound, AttemptNotFound, AttemptSettled);

/// Report a status check
///
/// Every answer is stored; some settle the attempt.
#[utoipa::path(
    post, path = "/v1/runs/{run_id}/calls/{tool_call_id}/attempts/{n}/status-checks",
    operation_id = "report_status_check", tag = "calls",
    params(("run_id" = String, Path), ("tool_call_id" = String, Path), ("n" = u32, Path)),
    request_body = CheckRequest,
    responses(
        (status = 200, description = "The call and its decision", body = CallAnswer,
            headers(("retry-after" = u64, description = "If it makes sense to ask again"))),
        Problems
    ),
    security(("api_key" = []))
)]
pub(crate) async fn check(
    State(app): State<App>,
    caller: Caller,
    ids: Ids,
    _: NoQuery,
    body: JsonBody,
) -> Answer {
    let (call, attempt) = (ids.call()?, ids.attempt()?);
    let target = call.clone();
    let check =
        body.parse(move |bytes| body::read::<CheckRequest>(bytes)?.parse(target, attempt)).await?;
    caller.may(Action::CheckStatus)?;
    let checked = app.store().check(&caller.namespace, check).await?;
    calls::with_decision(&app, caller.namespace, call, checked.retry_after_ms).await
}
