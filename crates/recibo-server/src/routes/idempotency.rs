//! Calls by the key that the outside service knows.

use axum::extract::State;
use recibo_api::answer::CallAnswer;
use recibo_api::{Action, Code};
use recibo_core::id::ToolCallId;

use crate::answer::{self, Answer};
use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::path::Ids;
use crate::problems::problems;
use crate::query::NoQuery;
use crate::show;

problems!(Problems: KEYED, IDS; KeyNotFound);

/// Find a call by its idempotency key or operation key
#[utoipa::path(
    get, path = "/v1/idempotency/{key}", operation_id = "get_call_by_key", tag = "calls",
    params(("key" = String, Path)),
    responses(
        (status = 200, description = "The call and its decision", body = CallAnswer,
            headers(("retry-after" = u64, description = "With wait and check_status"))),
        Problems
    ),
    security(("api_key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, ids: Ids, _: NoQuery) -> Answer {
    let key = ids.text("key").to_owned();
    // Both kinds of key are ids in form.
    if ToolCallId::parse(&key).is_err() {
        let detail = "key must be an idempotency key or an operation key";
        return Err(Failure::new(Code::InvalidId, detail));
    }
    caller.may(Action::Read)?;
    app.read(move |snapshot| {
        let call = snapshot.call_by_key(&caller.namespace, &key)?.ok_or_else(not_found)?;
        let view = snapshot.call(&caller.namespace, &call)?.ok_or_else(not_found)?;
        let shown = show::call_and_decision(&view, None);
        let response = answer::with_retry_after(answer::ok(&shown), shown.retry_after_ms);
        Ok(answer::with_etag(response, &view.etag))
    })
    .await
}

fn not_found() -> Failure {
    Failure::new(Code::KeyNotFound, "no call has this key")
}
