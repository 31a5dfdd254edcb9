//! Single attempts.

use axum::extract::State;
use recibo_api::answer::Record;
use recibo_api::{Action, Code};

use crate::answer::{self, Answer};
use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::path::Ids;
use crate::problems::problems;
use crate::query::NoQuery;

problems!(Problems: KEYED, IDS; CallNotFound, AttemptNotFound);

/// Read the record of an attempt
#[utoipa::path(
    get, path = "/v1/runs/{run_id}/calls/{tool_call_id}/attempts/{n}",
    operation_id = "get_attempt", tag = "calls",
    params(("run_id" = String, Path), ("tool_call_id" = String, Path), ("n" = u32, Path)),
    responses((status = 200, description = "The record", body = Record), Problems),
    security(("api_key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, ids: Ids, _: NoQuery) -> Answer {
    let (call, attempt) = (ids.call()?, ids.attempt()?);
    caller.may(Action::Read)?;
    app.look(|snapshot| match snapshot.attempt(&caller.namespace, &call, attempt)? {
        Some(Some(record)) => Ok(answer::ok(&Record::from_core(&record))),
        Some(None) => Err(Failure::new(Code::AttemptNotFound, "the call has no such attempt")),
        None => Err(Failure::new(Code::CallNotFound, "no such call")),
    })
    .await
}
