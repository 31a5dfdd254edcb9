//! What callers can count on.

use recibo_api::Action;
use recibo_api::answer::ConfigAnswer;

use crate::answer::{self, Answer};
use crate::caller::Caller;
use crate::problems::problems;
use crate::query::NoQuery;

problems!(Problems: KEYED);

/// Read limits and bounds
#[utoipa::path(
    get, path = "/v1/config", operation_id = "get_config", tag = "service",
    responses((status = 200, description = "Limits and bounds", body = ConfigAnswer), Problems),
    security(("api_key" = []))
)]
pub(crate) async fn get(caller: Caller, _: NoQuery) -> Answer {
    caller.may(Action::Read)?;
    Ok(answer::ok(&ConfigAnswer::new(env!("CARGO_PKG_VERSION"))))
}
