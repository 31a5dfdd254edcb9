//! What to do about a call; on request only once there is something else to do than wait.

use std::time::Duration;

use axum::extract::State;
use recibo_api::Action;
use recibo_api::answer::DecisionAnswer;
use recibo_core::limits;

use crate::answer::{self, Answer};
use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::path::Ids;
use crate::problems::problems;
use crate::query::{Query, refused};
use crate::show;

problems!(Problems: KEYED, IDS; Overloaded);

/// Ask what to do about a call
///
/// Also for a call that is not known. With `wait_ms` the answer comes once it is another than
/// `wait`, or when the time is over.
#[utoipa::path(
    get, path = "/v1/runs/{run_id}/calls/{tool_call_id}/decision",
    operation_id = "get_decision", tag = "calls",
    params(
        ("run_id" = String, Path), ("tool_call_id" = String, Path),
        ("wait_ms" = Option<u64>, Query, maximum = 30000)
    ),
    responses(
        (status = 200, description = "Advice, never permission", body = DecisionAnswer,
            headers(("retry-after" = u64, description = "With wait and check_status"))),
        Problems
    ),
    security(("api_key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, ids: Ids, query: Query) -> Answer {
    let call = ids.call()?;
    let [wait_ms] = query.take(["wait_ms"])?;
    let wait_ms = wait_ms.as_deref().map_or(Ok(0), parse_wait)?;
    caller.may(Action::Read)?;
    // Whoever does not wait takes no place from those who do.
    let _place = (wait_ms > 0).then(|| app.long_poll()).transpose()?;
    let wait = Duration::from_millis(wait_ms);
    let view = tokio::select! {
        view = app.store().decided(&caller.namespace, &call, wait, app.stopped()) => view?,
        ended = caller.ended(&app) => return Err(ended),
    };
    let shown = show::decision(&call, &view);
    Ok(answer::with_retry_after(answer::ok(&shown), shown.retry_after_ms))
}

fn parse_wait(text: &str) -> Result<u64, Failure> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let ms = text.parse().ok().filter(|ms| is_plain && *ms <= limits::WAIT_MS_MAX);
    ms.ok_or_else(|| {
        refused(format!("wait_ms must be an integer from 0 to {}", limits::WAIT_MS_MAX))
    })
}
