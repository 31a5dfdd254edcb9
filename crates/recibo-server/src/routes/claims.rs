//! The claim: permission to run a call, or advice.

use axum::extract::State;
use axum::http::StatusCode;
use recibo_api::answer::{ClaimAnswer, Granted};
use recibo_api::request::ClaimRequest;
use recibo_api::{Action, body, secrets};

use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::JsonBody;
use crate::caller::Caller;
use crate::path::Ids;
use crate::problems::problems;
use crate::query::NoQuery;
use crate::show;

problems!(Problems: KEYED, IDS, BODY, WRITE;
    ScopeNotFound, AttemptConflict, ClaimUsed, OperationKeyTaken, ScopeGone, InputMismatch,
    EffectMismatch, EffectWeakerThanPolicy, OperationKeyMismatch, SecretDetected);

/// Claim an attempt at a call
///
/// Permission is an answer with a lease; everything else is advice.
#[utoipa::path(
    post, path = "/v1/runs/{run_id}/calls/{tool_call_id}/attempts",
    operation_id = "claim_attempt", tag = "calls",
    params(("run_id" = String, Path), ("tool_call_id" = String, Path)),
    request_body = ClaimRequest,
    responses(
        (status = 201, description = "Granted", body = Granted),
        (status = 200, description = "The same grant again, or advice", body = ClaimAnswer,
            headers(("retry-after" = u64, description = "With wait and check_status"))),
        Problems
    ),
    security(("api_key" = []))
)]
pub(crate) async fn claim(
    State(app): State<App>,
    caller: Caller,
    ids: Ids,
    _: NoQuery,
    body: JsonBody,
) -> Answer {
    let call = ids.call()?;
    let policy = app.store().policy(&caller.namespace);
    let claim = body
        .parse(move |bytes| body::read::<ClaimRequest<'_>>(bytes)?.parse(call, &policy))
        .await?;
    caller.may(Action::Claim)?;
    secrets::refuse_claim(&claim, app.settings().secret_policy)?;
    let claimed = show::claimed(app.store().claim(&caller.namespace, claim).await?);
    Ok(match &claimed {
        ClaimAnswer::Granted(granted) if !granted.replayed => {
            answer::json(StatusCode::CREATED, granted)
        }
        ClaimAnswer::Granted(granted) => answer::ok(granted),
        ClaimAnswer::Advice(advice) => {
            answer::with_retry_after(answer::ok(advice), advice.retry_after_ms)
        }
    })
}
