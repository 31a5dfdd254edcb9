//! Verifying receipts.

use axum::extract::State;
use recibo_api::verify::{VerifyAnswer, VerifyRequest, verify_against};
use recibo_api::{Action, body};

use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::JsonBody;
use crate::caller::Caller;
use crate::problems::problems;
use crate::query::NoQuery;
use crate::show;

problems!(Problems: KEYED, BODY);

/// Verify a receipt
///
/// A bad receipt is a verdict, not a problem.
#[utoipa::path(
    post, path = "/v1/receipts:verify", operation_id = "verify_receipt", tag = "receipts",
    request_body = VerifyRequest,
    responses((status = 200, description = "The verdict", body = VerifyAnswer), Problems),
    security(("api_key" = []))
)]
pub(crate) async fn receipt(
    State(app): State<App>,
    caller: Caller,
    _: NoQuery,
    body: JsonBody,
) -> Answer {
    let asked = body.parse(|bytes| body::read::<VerifyRequest<'_>>(bytes)?.parse()).await?;
    caller.may(Action::Verify)?;
    let Some(token) = asked.token else { return Ok(answer::ok(&VerifyAnswer::malformed())) };
    app.read(move |snapshot| {
        let Some(record) = snapshot.receipt(&caller.namespace, &token)? else {
            return Ok(answer::ok(&VerifyAnswer::forged()));
        };
        let signature = show::signature(snapshot.check_signature(&caller.namespace, &record));
        Ok(answer::ok(&verify_against(&asked, &record, signature)))
    })
    .await
}
