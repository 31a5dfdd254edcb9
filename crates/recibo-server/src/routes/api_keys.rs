//! API keys of all namespaces.

use axum::extract::State;
use axum::http::StatusCode;
use recibo_api::answer::{ApiKeyCreated, ApiKeyList};
use recibo_api::request::ApiKeyRequest;
use recibo_api::{Action, Code, Role, Timestamp, Word, body};
use recibo_store::api_key::{self, Revoked};
use zeroize::Zeroizing;

use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::JsonBody;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::path::Ids;
use crate::problems::problems;
use crate::query::NoQuery;
use crate::show;

problems!(CreateProblems: KEYED, BODY, WRITE);
problems!(ListProblems: KEYED);
problems!(RevokeProblems: KEYED, IDS, WRITE; ApiKeyNotFound, LastAdminKey);

/// Create an API key
///
/// It is shown in this answer and never again.
#[utoipa::path(
    post, path = "/v1/api-keys", operation_id = "create_api_key", tag = "api keys",
    request_body = ApiKeyRequest,
    responses((status = 201, description = "Created", body = ApiKeyCreated), CreateProblems),
    security(("api_key" = []))
)]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    _: NoQuery,
    body: JsonBody,
) -> Answer {
    let params = body.parse(|bytes| body::read::<ApiKeyRequest>(bytes)?.parse()).await?;
    caller.may(Action::ManageApiKeys)?;
    let random = Zeroizing::new(app.random());
    let (text, draft) =
        api_key::make(&random, &params.roles.to_string(), params.namespace, params.expires_in_ms);
    let info = app.store().create_api_key(draft).await?;
    let created = ApiKeyCreated {
        id: info.id,
        api_key: text,
        roles: params.roles.iter().map(Word).collect(),
        namespace: info.namespace.to_string(),
        expires_at: info.expires_at.map(Timestamp),
    };
    Ok(answer::json(StatusCode::CREATED, &created))
}

/// List all API keys, oldest first
#[utoipa::path(
    get, path = "/v1/api-keys", operation_id = "list_api_keys", tag = "api keys",
    responses((status = 200, description = "Without the keys", body = ApiKeyList), ListProblems),
    security(("api_key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, _: NoQuery) -> Answer {
    caller.may(Action::ManageApiKeys)?;
    let api_keys = app.store().api_keys().into_iter().filter_map(show::api_key).collect();
    Ok(answer::ok(&ApiKeyList { api_keys }))
}

/// Revoke an API key
///
/// The last admin key that does not expire stays. Long polls and listings under way end.
#[utoipa::path(
    delete, path = "/v1/api-keys/{id}", operation_id = "revoke_api_key", tag = "api keys",
    params(("id" = String, Path)),
    responses((status = 204, description = "It is not valid any more"), RevokeProblems),
    security(("api_key" = []))
)]
pub(crate) async fn revoke(State(app): State<App>, caller: Caller, ids: Ids, _: NoQuery) -> Answer {
    caller.may(Action::ManageApiKeys)?;
    let id = ids.text("id");
    match app.store().revoke_api_key(&caller.namespace, id, Role::Admin.as_str()).await? {
        Revoked::Yes => Ok(answer::bare(StatusCode::NO_CONTENT)),
        Revoked::NotKnown => Err(Failure::new(Code::ApiKeyNotFound, "no API key has this id")),
        Revoked::LastOfRole => Err(Failure::new(
            Code::LastAdminKey,
            "without it nobody could make another API key; create an admin key first",
        )),
    }
}
