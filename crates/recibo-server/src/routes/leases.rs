//! Leases of attempts that still work.

use axum::extract::State;
use recibo_api::answer::RenewalAnswer;
use recibo_api::request::RenewalRequest;
use recibo_api::{Action, body};

use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::JsonBody;
use crate::caller::Caller;
use crate::path::Ids;
use crate::problems::problems;
use crate::query::NoQuery;
use crate::show;

problems!(Problems: KEYED, IDS, BODY, WRITE;
    LeaseTokenWrong, CallNotFound, AttemptNotFound, LeaseOver);

/// Renew the lease of a granted attempt
///
/// While the lease lives its end becomes now + `lease_ms`, but never an earlier one, and never
/// one beyond the key window.
#[utoipa::path(
    post, path = "/v1/runs/{run_id}/calls/{tool_call_id}/attempts/{n}/lease",
    operation_id = "renew_lease", tag = "calls",
    params(("run_id" = String, Path), ("tool_call_id" = String, Path), ("n" = u32, Path)),
    request_body = RenewalRequest,
    responses((status = 200, description = "The lease as it is now", body = RenewalAnswer), Problems),
    security(("api_key" = []))
)]
pub(crate) async fn renew(
    State(app): State<App>,
    caller: Caller,
    ids: Ids,
    _: NoQuery,
    body: JsonBody,
) -> Answer {
    let (call, attempt) = (ids.call()?, ids.attempt()?);
    let target = call.clone();
    let params = body
        .parse(move |bytes| body::read::<RenewalRequest>(bytes)?.parse(target, attempt))
        .await?;
    caller.may(Action::ReportOutcome)?;
    let renewed = app.store().renew(&caller.namespace, params.renewal, params.lease_token).await?;
    Ok(answer::ok(&show::renewed(&call, attempt, renewed)))
}
