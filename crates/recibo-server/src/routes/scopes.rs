//! Scopes: the lifetimes of signing keys.

use axum::extract::State;
use axum::http::StatusCode;
use recibo_api::answer::ScopeAnswer;
use recibo_api::request::ScopeRequest;
use recibo_api::{Action, Code};

use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::JsonBody;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::path::Ids;
use crate::problems::problems;
use crate::query::NoQuery;
use crate::show;

problems!(OpenProblems: KEYED, BODY, WRITE; ScopeLimit);
problems!(GetProblems: KEYED, IDS; ScopeNotFound);
problems!(CloseProblems: KEYED, IDS, WRITE; ScopeNotFound);

/// Open a scope: make a signing key
///
/// An empty body asks for the defaults.
#[utoipa::path(
    post, path = "/v1/scopes", operation_id = "open_scope", tag = "scopes",
    request_body = ScopeRequest,
    responses((status = 201, description = "Opened", body = ScopeAnswer), OpenProblems),
    security(("api_key" = []))
)]
pub(crate) async fn open(
    State(app): State<App>,
    caller: Caller,
    _: NoQuery,
    body: JsonBody,
) -> Answer {
    let params = body.parse(|bytes| ScopeRequest::read(bytes)?.parse()).await?;
    caller.may(Action::OpenScope)?;
    let opened = app.store().open_scope(&caller.namespace, params.label, params.ttl_ms).await?;
    Ok(answer::json(StatusCode::CREATED, &show::opened_scope(opened)))
}

/// Read a scope
#[utoipa::path(
    get, path = "/v1/scopes/{scope_id}", operation_id = "get_scope", tag = "scopes",
    params(("scope_id" = String, Path)),
    responses((status = 200, description = "The scope", body = ScopeAnswer), GetProblems),
    security(("api_key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, ids: Ids, _: NoQuery) -> Answer {
    let scope_id = ids.scope_id()?;
    caller.may(Action::Read)?;
    match app.store().scope(&caller.namespace, &scope_id)? {
        Some(scope) => Ok(answer::ok(&show::scope(scope))),
        None => Err(not_found()),
    }
}

/// Close a scope: wipe its key
///
/// Closing again changes nothing more.
#[utoipa::path(
    delete, path = "/v1/scopes/{scope_id}", operation_id = "close_scope", tag = "scopes",
    params(("scope_id" = String, Path)),
    responses((status = 204, description = "Its key is wiped"), CloseProblems),
    security(("api_key" = []))
)]
pub(crate) async fn close(State(app): State<App>, caller: Caller, ids: Ids, _: NoQuery) -> Answer {
    let scope_id = ids.scope_id()?;
    caller.may(Action::CloseScope)?;
    match app.store().close_scope(&caller.namespace, &scope_id).await? {
        true => Ok(answer::bare(StatusCode::NO_CONTENT)),
        false => Err(not_found()),
    }
}

fn not_found() -> Failure {
    Failure::new(Code::ScopeNotFound, "no such scope")
}
