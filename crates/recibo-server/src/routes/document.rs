//! The description of the API, without an API key.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;

use crate::answer::{self, Answer};
use crate::problems::problems;
use crate::query::NoQuery;
use crate::router::openapi_text;

problems!(Problems: ; InvalidQuery);

/// Read this document
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "get_openapi", tag = "service",
    responses((status = 200, description = "OpenAPI 3.1", body = Object), Problems)
)]
pub(crate) async fn get(_: NoQuery) -> Answer {
    let mut response = answer::bare(axum::http::StatusCode::OK);
    *response.body_mut() = openapi_text().into();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    Ok(response)
}
