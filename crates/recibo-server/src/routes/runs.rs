//! Runs: their counts and their calls.

use axum::extract::State;
use axum::http::HeaderMap;
use recibo_api::answer::{Call, Page, RunSummary};
use recibo_api::page::{self, Listing};
use recibo_api::{Action, Code};
use recibo_store::Snapshot;

use crate::answer::{self, Answer};
use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::path::Ids;
use crate::problems::problems;
use crate::query::{NoQuery, Query};
use crate::rows;
use crate::show;

problems!(GetProblems: KEYED, IDS; RunNotFound);
problems!(CallsProblems: KEYED, IDS; InvalidPageToken, RunNotFound, Overloaded);

/// Read a run's counts
#[utoipa::path(
    get, path = "/v1/runs/{run_id}", operation_id = "get_run", tag = "runs",
    params(("run_id" = String, Path)),
    responses((status = 200, description = "Its counts", body = RunSummary), GetProblems),
    security(("api_key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, ids: Ids, _: NoQuery) -> Answer {
    let run_id = ids.run_id()?;
    caller.may(Action::Read)?;
    app.read(move |snapshot| {
        let run = snapshot.run(&caller.namespace, &run_id)?.ok_or_else(not_found)?;
        Ok(answer::ok(&show::run(&run_id, &run)))
    })
    .await
}

/// List a run's calls, by first event
///
/// With `Accept: application/x-ndjson` all rows come, one a line, and then
/// `{"_end": true, "count": n, "last_seq": n}`.
#[utoipa::path(
    get, path = "/v1/runs/{run_id}/calls", operation_id = "list_run_calls", tag = "runs",
    params(
        ("run_id" = String, Path),
        ("page_size" = Option<u32>, Query, minimum = 1, maximum = 500),
        ("page_token" = Option<String>, Query, description = "From the page before")
    ),
    responses(
        (status = 200, description = "A page, or all rows", content(
            (Page = "application/json"), (Call = "application/x-ndjson")
        )),
        CallsProblems
    ),
    security(("api_key" = []))
)]
pub(crate) async fn calls(
    State(app): State<App>,
    caller: Caller,
    ids: Ids,
    query: Query,
    headers: HeaderMap,
) -> Answer {
    let run_id = ids.run_id()?;
    let [size, token] = query.take(["page_size", "page_token"])?;
    let size = page::page_size(size.as_deref())?;
    let listing = Listing::new("run_calls", &[("run_id", run_id.as_str())]);
    let from = token.map_or(Ok(0), |token| listing.position(&token))?;
    caller.may(Action::Read)?;
    if rows::are_wanted(&headers) {
        let namespace = caller.namespace.clone();
        let fetch = move |snapshot: &Snapshot, from| {
            let page = snapshot.run_calls(&namespace, &run_id, from, rows::PAGE_SIZE)?;
            page.ok_or_else(not_found)
        };
        return rows::stream(app, caller, from, fetch).await;
    }
    app.read(move |snapshot| {
        let page = snapshot.run_calls(&caller.namespace, &run_id, from, size)?;
        Ok(answer::ok(&show::page(&page.ok_or_else(not_found)?, &listing)))
    })
    .await
}

/// No call of the namespace has this run.
pub(super) fn not_found() -> Failure {
    Failure::new(Code::RunNotFound, "no such run")
}
