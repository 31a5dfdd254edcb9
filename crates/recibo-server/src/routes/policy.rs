//! The effect policy of the namespace.

use axum::extract::State;
use recibo_api::policy::PolicyBody;
use recibo_api::{Action, secrets};

use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::JsonBody;
use crate::caller::Caller;
use crate::problems::problems;
use crate::query::NoQuery;

problems!(GetProblems: KEYED);
problems!(SetProblems: KEYED, BODY, WRITE; PolicyInvalid, SecretDetected);

/// Read the effect policy
#[utoipa::path(
    get, path = "/v1/effects/policy", operation_id = "get_effect_policy", tag = "policies",
    responses((status = 200, description = "The policy", body = PolicyBody), GetProblems),
    security(("api_key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, _: NoQuery) -> Answer {
    caller.may(Action::Read)?;
    app.read(move |snapshot| {
        let (policy, _) = snapshot.policy(&caller.namespace)?;
        Ok(answer::ok(&PolicyBody::from_core(&policy)))
    })
    .await
}

/// Replace the effect policy
///
/// Concerns calls whose first attempt comes later.
#[utoipa::path(
    put, path = "/v1/effects/policy", operation_id = "set_effect_policy", tag = "policies",
    request_body = PolicyBody,
    responses((status = 200, description = "The policy", body = PolicyBody), SetProblems),
    security(("api_key" = []))
)]
pub(crate) async fn set(
    State(app): State<App>,
    caller: Caller,
    _: NoQuery,
    body: JsonBody,
) -> Answer {
    let policy = body.parse(PolicyBody::read).await?;
    caller.may(Action::WritePolicy)?;
    secrets::refuse_policy(&policy)?;
    let shown = PolicyBody::from_core(&policy);
    app.store().set_policy(&caller.namespace, policy).await?;
    Ok(answer::ok(&shown))
}
