//! How an attempt ended.

use axum::extract::State;
use recibo_api::answer::OutcomeAnswer;
use recibo_api::request::OutcomeRequest;
use recibo_api::{Action, body};

use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::ResultBody;
use crate::caller::Caller;
use crate::path::Ids;
use crate::problems::problems;
use crate::query::NoQuery;

problems!(Problems: KEYED, IDS, BODY, WRITE;
    LeaseTokenWrong, CallNotFound, AttemptNotFound, OutcomeConflict);

/// Report the outcome of a granted attempt
#[utoipa::path(
    post, path = "/v1/runs/{run_id}/calls/{tool_call_id}/attempts/{n}/outcome",
    operation_id = "report_outcome", tag = "calls",
    params(("run_id" = String, Path), ("tool_call_id" = String, Path), ("n" = u32, Path)),
    request_body = OutcomeRequest,
    responses((status = 200, description = "The record", body = OutcomeAnswer), Problems),
    security(("api_key" = []))
)]
pub(crate) async fn report(
    State(app): State<App>,
    caller: Caller,
    ids: Ids,
    _: NoQuery,
    ResultBody(body): ResultBody,
) -> Answer {
    let (call, attempt) = (ids.call()?, ids.attempt()?);
    let params = body
        .parse(move |bytes| body::read::<OutcomeRequest<'_>>(bytes)?.parse(call, attempt))
        .await?;
    caller.may(Action::ReportOutcome)?;
    let reported = app
        .store()
        .report(&caller.namespace, params.report, params.lease_token, params.scope_id)
        .await?;
    Ok(answer::ok(&OutcomeAnswer::from_core(&reported.record, reported.replayed)))
}
