//! Pages of all calls of the namespace.

use axum::extract::State;
use axum::http::HeaderMap;
use recibo_api::Action;
use recibo_api::answer::{Call, Page};
use recibo_api::page::{self, Listing};
use recibo_core::status::CallState;
use recibo_store::{CallFilter, Snapshot};

use crate::answer::{self, Answer};
use crate::app::App;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::problems::problems;
use crate::query::{Query, refused};
use crate::rows;
use crate::show;

problems!(Problems: KEYED; InvalidPageToken, Overloaded);

/// Filters of the contract that this version cannot apply. Ignoring one would answer another
/// question.
const NOT_YET: [&str; 7] =
    ["tool", "status", "error_class", "input_hash", "operation_key", "since", "until"];

/// List calls, each at its first event
///
/// With `Accept: application/x-ndjson` all rows come, one a line, and then
/// `{"_end": true, "count": n, "last_seq": n}`.
#[utoipa::path(
    get, path = "/v1/calls", operation_id = "list_calls", tag = "calls",
    params(
        ("state" = Option<String>, Query, description = "Only calls in this state"),
        ("order" = Option<String>, Query, description = "`asc`, in ledger order"),
        ("page_size" = Option<u32>, Query, minimum = 1, maximum = 500),
        ("page_token" = Option<String>, Query, description = "From the page before")
    ),
    responses(
        (status = 200, description = "A page, or all rows", content(
            (Page = "application/json"), (Call = "application/x-ndjson")
        )),
        Problems
    ),
    security(("api_key" = []))
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    headers: HeaderMap,
) -> Answer {
    let [tool, status, class, input, key, since, until, state, order, size, token] =
        query.take([
            NOT_YET[0],
            NOT_YET[1],
            NOT_YET[2],
            NOT_YET[3],
            NOT_YET[4],
            NOT_YET[5],
            NOT_YET[6],
            "state",
            "order",
            "page_size",
            "page_token",
        ])?;
    for (given, name) in [tool, status, class, input, key, since, until].iter().zip(NOT_YET) {
        if given.is_some() {
            return Err(refused(format!("{name} is not supported yet")));
        }
    }
    let state = state.as_deref().map(parse_state).transpose()?;
    match order.as_deref() {
        None | Some("asc") => {}
        Some("desc") => return Err(refused("order=desc is not supported yet")),
        Some(_) => return Err(refused("order must be asc or desc")),
    }
    let size = page::page_size(size.as_deref())?;
    let state_word = state.map_or("", CallState::as_str);
    let listing = Listing::new("calls", &[("state", state_word), ("order", "asc")]);
    let from = token.map_or(Ok(0), |token| listing.position(&token))?;
    caller.may(Action::Read)?;
    if rows::are_wanted(&headers) {
        let filter = CallFilter { state };
        let namespace = caller.namespace.clone();
        let fetch = move |snapshot: &Snapshot, from| {
            Ok(snapshot.calls(&namespace, &filter, from, rows::PAGE_SIZE)?)
        };
        return rows::stream(app, caller, from, fetch).await;
    }
    app.read(move |snapshot| {
        let page = snapshot.calls(&caller.namespace, &CallFilter { state }, from, size)?;
        Ok(answer::ok(&show::page(&page, &listing)))
    })
    .await
}

/// A state that a call of the ledger can have.
fn parse_state(text: &str) -> Result<CallState, Failure> {
    let known = CallState::parse(text).filter(|state| *state != CallState::Absent);
    known.ok_or_else(|| {
        let states = CallState::ALL.iter().filter(|state| **state != CallState::Absent);
        let words: Vec<_> = states.map(|state| state.as_str()).collect();
        refused(format!("state must be one of: {}", words.join(", ")))
    })
}
